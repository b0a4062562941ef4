"""`Replay`: the order in which a capture's requests are sent again, the connections, and the answers.

    async for request in Replay(settings).run(capture.entries()):
        print(request.entry, request.differences)

Strategy: the capture says what happened before what. A request is sent once all answers that came before it
in the capture have come, over a connection in the place of the captured one, to the broker that has the id of
the captured one's; the next request does not wait for its answer, unless the capture's did. So a join that
waited for another member does so again. Rules: times are not kept. A request of the older dialects, one that
cannot be read, and what authenticates are left out and counted. An answer has a time limit, and so has the
broker's reading of a request; a connection on which either is exceeded ends, and a broker with several such
in a row gets no other. What waits to be compared is bounded in bytes. A connection has its own task, which
ends with the run; the connections that were idle longest are closed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.client.errors import BrokerUnreachable, ClientError, DeadlineExceeded
from coordwire.client.settings import Address, ClientSettings, shown_address
from coordwire.client.streams import Stream, open_stream
from coordwire.codec import Message
from coordwire.codec.walk import FieldSelection, entity_field
from coordwire.connection.dialect import KAFKA
from coordwire.connection.kafka import is_fire_and_forget
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import encode_request, read_response
from coordwire.replay.differences import Difference, differences
from coordwire.replay.identifiers import Identifiers
from coordwire.versions import ApiKey, VersionRange

MOST_CONNECTIONS = 200
MOST_WAITING = 10_000
MOST_WAITING_BYTES = 64 << 20
"""Of requests whose answers are not compared yet, and of these answers, unless it is but one."""

MOST_FAILURES = 3
"""Connections in a row that a broker did not open or did not answer, after which no other is tried."""

_SKIPPED = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_HOSTS = FieldSelection(lambda field: field.entity == "broker_host")
_READ = 1 << 16
_Answer = asyncio.Future[bytes]


@dataclass(frozen=True, slots=True)
class ReplayedRequest:
    """A request that was sent again, and whose answer is known. entry: the captured request; captured,
    answered: the answers, None where there is none. error: why there is none now. differences: none, if the
    answers are equal. response: the entry of the captured answer that was compared."""

    entry: FrameEntry
    captured: Message | None = None
    answered: Message | None = None
    error: CoordwireError | None = None
    differences: list[Difference] = field(default_factory=list)
    response: FrameEntry | None = None

    @property
    def is_equal(self) -> bool:
        return self.error is None and not self.differences


@dataclass(slots=True)
class ReplayTotals:
    """sent: requests; compared: answers, of which `differing` differ; failed: requests that could not be sent
    or had no answer; skipped: requests that were left out, by reason."""

    sent: int = 0
    compared: int = 0
    differing: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


class _Line:
    """One connection to the cluster, in the place of a captured one. timeout_s: in which the broker must take
    a request. failures: of each broker. answered: called when an answer has come, with its bytes."""

    def __init__(
        self, stream: Stream, timeout_s: float, failures: Counter[Address], answered: Callable[[int], None]
    ) -> None:
        self.stream = stream
        self._timeout_s = timeout_s
        self._failures = failures
        self._answered = answered
        self._waiting: dict[int, _Answer] = {}
        self._next_id = 0
        self.error: CoordwireError | None = None
        self.task = asyncio.get_running_loop().create_task(self._read())

    async def send(self, request: Message, version: int, client_id: str | None) -> _Answer | None:
        """Send a request; its answer, None for one without. Raises `EncodeError`, `ClientError`."""
        number, self._next_id = self._next_id, (self._next_id + 1) & 0x7FFF_FFFF
        wire = encode_request(request, version=version, correlation_id=number, client_id=client_id)
        if self.error is not None:
            raise copy(self.error)  # one that is raised again keeps all that it has passed
        answer: _Answer | None = None
        if not is_fire_and_forget(request):
            answer = self._waiting[number] = asyncio.get_running_loop().create_future()
            answer.add_done_callback(lambda _: self._waiting.pop(number, None))
        self.stream.writer.write(wire)
        try:
            await self.drain()
        except OSError:
            error = self.fail(DeadlineExceeded(f"a request was not read within {self._timeout_s:g} s"))
            if answer is None:
                raise copy(error) from None
        return answer

    async def drain(self) -> None:
        """Wait until the broker has taken almost all. Raises `OSError`."""
        async with asyncio.timeout(self._timeout_s):
            await self.stream.writer.drain()

    async def _read(self) -> None:
        buffer = ReceiveBuffer()
        error: CoordwireError = ClientError("the broker closed the connection")
        try:
            while data := await self.stream.reader.read(_READ):
                buffer.append(data)
                while (body := buffer.next_frame()) is not None:
                    self._take(body)
        except DecodeError as refusal:
            error = refusal
        except OSError as failure:
            error = ClientError(f"the connection failed: {failure.strerror or failure}")
        self.fail(error)

    def _take(self, body: bytes) -> None:
        answer = self._waiting.get(int.from_bytes(body[:4], "big", signed=True))
        if answer is not None and not answer.done():
            answer.set_result(body)
            self._answered(len(body))

    def fail(self, error: CoordwireError) -> CoordwireError:
        """End the connection at once; all that wait get the reason, the first that there was."""
        if self.error is None:
            self.error = error
            self._failures[self.stream.address] += isinstance(error, DeadlineExceeded)
            self.stream.writer.transport.abort()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(copy(error))
                    answer.exception()  # it is looked at later, or never
        return self.error

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.stream.close()


@dataclass(slots=True)
class _Waiting:
    """A request whose answer is not compared yet, as captured and on its connection."""

    entry: FrameEntry
    line: _Line
    answer: _Answer

    @property
    def size_bytes(self) -> int:
        """What is kept for it."""
        has_answer = self.answer.done() and not self.answer.cancelled() and self.answer.exception() is None
        return self.entry.size + (len(self.answer.result()) if has_answer else 0)


class Replay:
    """One replay. settings: of the cluster; timeout_s: for each answer. totals: what was done so far.

    >>> import asyncio
    >>> from coordwire.broker import Broker
    >>> from coordwire.broker.harness import Traffic
    >>> from coordwire.client import ClientSettings, addresses, connect
    >>> from coordwire.messages import ListGroupsRequest
    >>> from coordwire.replay import Replay
    >>> async def main() -> list[str | None]:
    ...     traffic = Traffic()
    ...     async with Broker(traffic=traffic) as broker, connect(broker.bootstrap) as client:
    ...         await client.request(ListGroupsRequest())
    ...     async with Broker() as broker:
    ...         replay = Replay(ClientSettings(bootstrap=addresses(broker.bootstrap)))
    ...         return [type(sent).__name__ async for sent in replay.run(traffic.entries())]
    >>> set(asyncio.run(main()))
    {'ReplayedRequest'}
    """

    def __init__(self, settings: ClientSettings, *, timeout_s: float = 30.0) -> None:
        limit_ms = min(settings.connection_timeout_ms, max(1, round(timeout_s * 1000)))
        self._settings = replace(settings, connection_timeout_ms=limit_ms)
        self._timeout_s = timeout_s
        self.identifiers = Identifiers()
        self.totals = ReplayTotals()
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()
        self._failures: Counter[Address] = Counter()
        """How often in a row a broker could not be reached, or did not answer."""
        self._waiting: OrderedDict[tuple[str, int], _Waiting] = OrderedDict()
        self._waiting_bytes = 0
        self._captured_nodes: dict[Address, int] = {}
        self._captured_ports: dict[int, int] = {}
        """The same by port alone, for brokers that are named otherwise than their packets have it."""
        self._nodes: dict[int, Address] = {}
        """Of the captured brokers, by id."""

    def __repr__(self) -> str:
        return f"<Replay: {self.totals!r}>"

    async def run(self, entries: Iterable[Entry]) -> AsyncGenerator[ReplayedRequest, None]:
        """Send the requests; each with what became of it, in the order of the captured answers.

        Raises what `entries` raises.
        """
        try:
            for entry in entries:
                if not isinstance(entry, FrameEntry) or entry.dialect != KAFKA:
                    self.totals.skipped["unreadable"] += 1
                elif entry.direction == "request":
                    failed = await self._request(entry)
                    if failed is not None:
                        yield failed
                else:
                    result = await self._response(entry)
                    if result is not None:
                        yield result
            drains = [line.drain() for line in self._lines.values() if line.error is None]
            await asyncio.gather(*drains, return_exceptions=True)
        finally:
            lines, self._lines = list(self._lines.values()), OrderedDict()
            await asyncio.gather(*(line.close() for line in lines), *self._closing)

    # --- requests ---

    async def _request(self, entry: FrameEntry) -> ReplayedRequest | None:
        if entry.token or entry.api_key in _SKIPPED:
            self.totals.skipped["authentication"] += 1
            return None
        if entry.error is not None or entry.message is None or entry.api_version is None:
            self.totals.skipped["unreadable"] += 1
            return None
        request, version = deepcopy(entry.message), entry.api_version
        self.identifiers.update(request, version)
        try:
            line = await self._line(entry)
            offered = line.stream.session.versions.get(entry.api_key or 0, VersionRange(0, -1))
            if version not in offered:
                raise ClientError(f"the broker has no {entry.api_name} v{version}")
            answer = await line.send(request, version, entry.client_id)
        except CoordwireError as error:
            self.totals.failed += 1
            return ReplayedRequest(entry, error=error)
        self.totals.sent += 1
        if answer is not None:
            self._waiting[entry.capture, entry.number] = _Waiting(entry, line, answer)
            self._keep(entry.size)
        return None

    def _keep(self, size_bytes: int) -> None:
        """Count bytes of requests and answers that wait; the oldest of too many are given up."""
        self._waiting_bytes += size_bytes
        while len(self._waiting) > MOST_WAITING or (
            self._waiting_bytes > MOST_WAITING_BYTES and len(self._waiting) > 1
        ):
            _, oldest = self._waiting.popitem(last=False)
            self._waiting_bytes -= oldest.size_bytes
            oldest.answer.cancel()
            self.totals.skipped["answered too late in the capture"] += 1

    async def _line(self, entry: FrameEntry) -> _Line:
        """The connection in the place of a captured request's. Raises `ClientError`."""
        key = f"{entry.capture} {entry.flow}"
        line = self._lines.get(key)
        if line is not None:
            self._lines.move_to_end(key)
            return line
        address = self._address(entry)
        if self._failures[address] >= MOST_FAILURES:
            raise BrokerUnreachable(
                f"{shown_address(address)}: given up after {MOST_FAILURES} connections in a row that failed"
            )
        while len(self._lines) >= MOST_CONNECTIONS:
            _, oldest = self._lines.popitem(last=False)
            await self._close_later(oldest)
        try:
            stream = await open_stream(address, self._settings)
        except ClientError:
            self._failures[address] += 1
            raise
        line = self._lines[key] = _Line(stream, self._timeout_s, self._failures, self._keep)
        return line

    async def _close_later(self, line: _Line) -> None:
        task = asyncio.create_task(line.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        if len(self._closing) >= MOST_CONNECTIONS:
            await asyncio.wait(self._closing, return_when=asyncio.FIRST_COMPLETED)

    def _address(self, entry: FrameEntry) -> Address:
        """Of the broker with the id that the captured one had; else the first of the settings."""
        if entry.connection is not None:
            host, port = entry.connection.broker
            node = self._captured_nodes.get((host, port), self._captured_ports.get(port))
            if node is not None and node in self._nodes:
                return self._nodes[node]
        return self._settings.bootstrap[0]

    # --- responses ---

    async def _response(self, entry: FrameEntry) -> ReplayedRequest | None:
        if entry.request is None:
            return None
        waiting = self._waiting.pop((entry.capture, entry.request.number), None)
        if waiting is None:
            return None
        request, address = waiting.entry, waiting.line.stream.address
        try:
            answered = await self._answer(waiting)
        except CoordwireError as failure:
            self.totals.failed += 1
            return ReplayedRequest(request, captured=entry.message, error=failure)
        finally:
            self._waiting_bytes -= waiting.size_bytes
        del self._failures[address]
        if entry.error is not None or entry.message is None or request.message is None:
            self.totals.skipped["unreadable"] += 1
            return None
        version = entry.body_version if entry.body_version is not None else 0
        captured_brokers = dict(_brokers(entry.message))
        for captured_address, node in captured_brokers.items():
            self._captured_nodes[captured_address] = self._captured_ports[captured_address[1]] = node
        captured_ids = set(captured_brokers.values())
        self._nodes.update((node, current) for current, node in _brokers(answered) if node in captured_ids)
        self.totals.compared += 1
        if type(answered) is not type(entry.message):
            return None
        self.identifiers.learn(request.message, entry.message, answered, version)
        places = differences(entry.message, answered, version)
        self.totals.differing += bool(places)
        return ReplayedRequest(request, entry.message, answered, differences=places, response=entry)

    async def _answer(self, waiting: _Waiting) -> Message:
        """The answer to a request, which ends the connection if it does not come: those after it would not
        either. Raises `CoordwireError`."""
        try:
            async with asyncio.timeout(self._timeout_s):
                body = await asyncio.shield(waiting.answer)
        except TimeoutError:
            waiting.line.fail(DeadlineExceeded(f"no answer within {self._timeout_s:g} s"))
            body = await waiting.answer
        key, version = waiting.entry.api_key or 0, waiting.entry.api_version or 0
        return read_response(body, key, version, strict=False).message


def _brokers(message: Message) -> Iterator[tuple[Address, int]]:
    """The brokers that a response names, with their ids."""
    for place in _HOSTS.places(message):
        owner: Any = place.owner
        cls: Any = type(owner)
        port_name, node_name = entity_field(cls, "broker_port"), entity_field(cls, "broker_id")
        if place.value and port_name and node_name and 0 < getattr(owner, port_name) < 65536:
            yield (place.value, getattr(owner, port_name)), getattr(owner, node_name)
