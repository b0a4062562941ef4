"""A case for clients, and what it works with: a scripted broker, what went over the wire, the client's tasks,
checks.

Strategy: each case has a broker of its own, in this process, and a `Wire` before it. The client gets a task
with Kafka's settings and reports at its end; the case plays the broker meanwhile: faults, changed answers,
records, members. Rules: what is judged is what came over the wire and what the log has; of what the client
says only values and whether there was an error count. A function's docstring is its rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol, Self
from uuid import uuid4

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.harness.cluster_view import committed_offsets, produce_records, read_records
from coordwire.broker.injection.fault_registry import FaultHandle
from coordwire.broker.injection.fault_rule import parse_fault
from coordwire.conformance.cases import API_KEYS, Broken, Lacking, message_of
from coordwire.conformance.client.wire import Wire, WireExchange
from coordwire.coordinator import RequestContext
from coordwire.errors import CoordwireError
from coordwire.messages import find_message

SECONDS = 15.0
"""What a task takes at most; the client gets `GRACE` more to report it."""

GRACE = 10.0
PATIENCE = 12.0
"""Seconds that `until` waits."""

TOPIC, GROUP, TRANSACTION = "conformance-topic", "conformance-group", "conformance-transaction"

SETTINGS = {
    "client.id": "conformance-client",
    "retry.backoff.ms": 100,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 100,
    "request.timeout.ms": 5_000,
}
PRODUCER = {"acks": "all", "linger.ms": 0, "delivery.timeout.ms": 12_000, "max.block.ms": 12_000}
CONSUMER = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "fetch.max.wait.ms": 200,
    "default.api.timeout.ms": 12_000,
}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "classic": {"group.protocol": "classic", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}


class ClientUnderTest(Protocol):
    """What is judged: a process, or a client in this one."""

    async def ask(self, request: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """The report on a task. Raises `ProcessDied`."""

    async def output(self) -> str:
        """What it wrote to standard error since the last call."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a client says at the end of a task. values: of records that it consumed, in their order; sent: how
    many values of records were acknowledged; error: its own words, None if there was none."""

    values: Sequence[str | None] = ()
    sent: int = 0
    error: str | None = None


class ClientStage:
    """A case's surroundings, to be used in `async with`."""

    def __init__(self, client: ClientUnderTest, case: ClientCase) -> None:
        config = BrokerConfig(as_of=case.as_of, **case.config)
        self.wire = Wire(case.nodes)
        self._client = client
        self._case = case
        self._config = config
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Future[Any]] = []
        self._report: Report | None = None
        self._failure: CoordwireError | None = None

    async def __aenter__(self) -> Self:
        wire = await self._stack.enter_async_context(self.wire)
        topics = {TOPIC: self._case.partitions}
        broker = Broker(topics=topics, nodes=self._case.nodes, advertised=wire.addresses, config=self._config)
        self.broker = await self._stack.enter_async_context(broker)
        wire.upstream = broker.listening
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.wire.stop()  # before the broker, which then has no connections to end
        await self._stack.aclose()

    # --- the client ---

    async def produce(self, *values: str, **settings: Any) -> Report:
        """Let the client send records with these values to partition 0, and await them."""
        return await self._ask("produce", {"values": values, "partition": 0}, PRODUCER, settings)

    async def transact(
        self, *values: str, end: str = "commit", offset: int | None = None, **settings: Any
    ) -> Report:
        """Let the client send values in a transaction, commit `offset` of partition 0 for the group in it if
        there is one, and end it by "commit" or "abort"."""
        task = {"values": values, "partition": 0, "end": end, "group": GROUP, "offset": offset}
        own = {"transactional.id": TRANSACTION, "transaction.timeout.ms": 30_000, **PRODUCER}
        return await self._ask("transact", task, own, settings)

    async def consume(
        self,
        records: int,
        *,
        protocol: str = "classic",
        commit: bool = False,
        **settings: Any,
    ) -> Report:
        """Let the client consume so many records as a member of the group, commit them if it shall, and
        leave. It polls until it has them, until an error, or for `SECONDS`."""
        own = {"group.id": GROUP, **CONSUMER, **PROTOCOLS[protocol]}
        return await self._ask("consume", {"records": records, "commit": commit}, own, settings)

    async def _ask(
        self, task: str, values: dict[str, Any], own: dict[str, Any], settings: dict[str, Any]
    ) -> Report:
        self._report = None
        names = {name.replace("_", "."): value for name, value in settings.items()}
        bootstrap = ",".join(f"{host}:{port}" for host, port in self.wire.addresses)
        request = {
            "do": task,
            "topic": TOPIC,
            "seconds": SECONDS,
            **values,
            "settings": {"bootstrap.servers": bootstrap, **SETTINGS, **own, **names},
        }
        try:
            self._report = _report(await self._client.ask(request, timeout=SECONDS + GRACE))
        except CoordwireError as error:
            self._failure = error  # for what waits meanwhile
            raise
        return self._report

    def later(self, work: Awaitable[Any]) -> asyncio.Future[Any]:
        """Do something meanwhile."""
        task = asyncio.ensure_future(work)
        self._tasks.append(task)
        return task

    # --- the broker ---

    def fault(self, rule: str, condition: Callable[[Any], bool] = bool) -> FaultHandle:
        """Let requests fail by a rule of `FaultRule`. condition: on the request's message."""
        parsed = replace(parse_fault(rule), when=lambda incoming: condition(incoming.message))
        return self.broker.faults.add(parsed)

    def write(self, *values: str, partition: int = 0, topic: str = TOPIC) -> None:
        """Append records, in one batch."""
        produce_records(self.broker.cluster, topic, values, partition=partition)
        self.broker.handled()

    def log(self, *, committed: bool = False) -> list[str]:
        """The values of the topic's records."""
        records = read_records(self.broker.cluster, TOPIC, committed=committed)
        return [(record.value or b"").decode() for record in records]

    def committed(self, partition: int = 0) -> int | None:
        """The offset that the group has committed."""
        return committed_offsets(self.broker.cluster, GROUP).get((TOPIC, partition))

    async def ask_group(self, api: str, version: int, **values: Any) -> Any:
        """The coordinator's answer to a request of another member, which doesn't go over the wire."""
        message = message_of(find_message(API_KEYS[api], "request"), {"group_id": GROUP, **values})
        groups = self.broker.cluster.groups
        context = RequestContext(client_id="other", client_host="/127.0.0.1", new_id=lambda: str(uuid4()))
        promise = groups.submit(groups.coordinator_of(GROUP), message, version, context)
        self.broker.handled()
        if not promise.is_fulfilled:
            answered = asyncio.Event()
            promise.resume = answered.set
            await answered.wait()
        return promise.value

    # --- the wire ---

    def sent(self, api: str, after: WireExchange | None = None) -> list[WireExchange]:
        """The client's requests of an API, those alone that came after the answer to another one."""
        since = -1.0 if after is None else after.answered
        if since is None:
            return []
        return [
            exchange
            for exchange in self.wire.exchanges
            if exchange.api == api and exchange.sent >= since and exchange is not after
        ]

    def first(self, api: str, error: str | None = None, after: WireExchange | None = None) -> WireExchange:
        """The first request of an API, with an error in its answer if one is named. Raises `Broken`."""
        for exchange in self.sent(api, after):
            if error is None or error in exchange.errors:
                return exchange
        with_error = f" that is answered with {error}" if error else ""
        raise Broken(f"no {api}{with_error} is sent{' after that' if after else ''}")

    async def until(self, check: Callable[[], bool], subject: str) -> None:
        """Wait for something. subject: what the client does. Raises `Broken`."""
        deadline = asyncio.get_running_loop().time() + PATIENCE
        while not check():
            if self._failure is not None:
                raise self._failure
            if self._report is not None and self._report.error is not None:
                raise Broken(f"the client reports an error before {subject}: {self._report.error}")
            if asyncio.get_running_loop().time() > deadline:
                raise Broken(f"not within {PATIENCE:g} s: {subject}")
            await asyncio.sleep(0.02)

    async def until_sent(self, api: str, after: WireExchange | None = None) -> WireExchange:
        """Wait for a request of an API that is answered without an error."""

        def successes() -> list[WireExchange]:
            return [
                exchange
                for exchange in self.sent(api, after)
                if exchange.response is not None and not exchange.errors
            ]

        await self.until(lambda: bool(successes()), f"{api} that succeeds")
        return successes()[0]

    # --- checks ---

    def succeeded(self, report: Report, *values: str) -> None:
        """Check that a task succeeded, and that these values were consumed. Raises `Broken`."""
        if report.error is not None:
            raise Broken(f"the client reports an error: {report.error}")
        if values and list(report.values) != list(values):
            raise Broken(f"consumed {_short(report.values)}, not {_short(values)}")

    def failed(self, report: Report) -> None:
        """Check that a task did not succeed. Raises `Broken`."""
        if report.error is None:
            raise Broken("the client reports no error")

    def equal(self, subject: str, value: object, expected: object) -> None:
        """Check a value. Raises `Broken`."""
        if value != expected:
            raise Broken(f"{subject}: {value!r}, not {expected!r}")

    def true(self, condition: bool, reason: str) -> None:
        """Check a condition. reason: what is wrong without. Raises `Broken`."""
        if not condition:
            raise Broken(reason)


def _report(answer: dict[str, Any]) -> Report:
    if "lacks" in answer:
        raise Lacking(str(answer["lacks"])[:200])
    error, values, sent = answer.get("error"), answer.get("values", []), answer.get("sent", 0)
    if not isinstance(values, list) or not isinstance(sent, int):
        raise Broken("a report of another form")
    return Report(values, sent, None if error is None else str(error)[:200])


def _short(values: Sequence[object]) -> str:
    text = repr([str(value)[:20] for value in values[:5]])
    return text if len(values) <= 5 else f"{text} and {len(values) - 5:,} more"


ClientPlay = Callable[[ClientStage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ClientCase:
    """A case. document: a KIP or a page of Kafka's documentation; broker: what the scripted one does; answer:
    what a client must do; rule: what is checked; recommended: no client is wrong without; nodes, partitions,
    as_of, config: of the broker."""

    address: str
    document: str
    broker: str
    answer: str
    rule: str
    play: ClientPlay
    recommended: bool = False
    nodes: int = 1
    partitions: int = 1
    as_of: str | None = None
    config: dict[str, Any] = field(default_factory=dict)


CASES: list[ClientCase] = []


def case(
    address: str, document: str, broker: str, answer: str, *, rule: str = "", **settings: Any
) -> Callable[[ClientPlay], ClientPlay]:
    """Make a case of a function. rule: in place of its docstring; settings: of `ClientCase`."""

    def register(play: ClientPlay) -> ClientPlay:
        text = rule or " ".join((play.__doc__ or "").split())
        CASES.append(ClientCase(address, document, broker, answer, text, play, **settings))
        return play

    return register
