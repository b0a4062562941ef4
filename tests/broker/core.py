"""A cluster without sockets, on a clock that the test moves; requests go in, answers come out as clients read
them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from coordwire import Response
from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.promise import HandlerRun, immediate_result
from coordwire.broker.connections.version_fit import fit
from coordwire.broker.handlers import APIS, ApiCall
from coordwire.broker.handlers.api_call import HandlerResult, result_of
from coordwire.broker.handlers.authorization import authorized
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.codec import Message, Request
from coordwire.coordinator.apis import ALWAYS
from coordwire.records import Record, encode_batch

R = TypeVar("R", bound=Response)


def asked_of(cluster: ClusterState, request: Message, version: int, node: int = 1) -> Message:
    """The answer of a cluster to a request that is answered at once."""
    assert request.api_key is not None
    call = ApiCall(cluster, node, request, version, "test", "/127.0.0.1")
    response = immediate_result(result_of(_handled(call, request.api_key)))
    assert response is not None
    return response


def _handled(call: ApiCall, key: int) -> HandlerResult:
    """A handler's answer to a client that may do everything."""
    handler = APIS[key].handler
    return authorized(call, key, handler) if key in ALWAYS else handler(call)


def answers_of(handler_answer: HandlerResult) -> tuple[list[Message], HandlerRun[Message | None]]:
    """A list that has or gets a handler's answer, and the run of the handler, which a test may close."""
    answers: list[Message] = []

    def advance() -> None:
        response = run.advance()
        if response is not None:
            answers.append(response)

    run = HandlerRun(result_of(handler_answer), advance)
    advance()
    return answers, run


class Core:
    """A cluster and what it answers. A transaction ends at once unless a test says otherwise."""

    def __init__(self, *, topics: dict[str, int] | None = None, nodes: int = 1, **config: Any) -> None:
        self.now = 1_700_000_000_000
        numbers = count(1)
        self.cluster = ClusterState(
            clock=lambda: self.now,
            config=BrokerConfig(**({"marker_delay_ms": 0} | config)),
            nodes=tuple(range(1, nodes + 1)),
            new_uuid=lambda: UUID(int=next(numbers) << 64 | 4 << 12),
        )
        for name, partitions in (topics or {}).items():
            self.cluster.create_topic(name, partitions)

    def begin(
        self, request: Message, version: int, node: int = 1
    ) -> tuple[list[Message], HandlerRun[Message | None]]:
        """Hand in a request; its answer is or will be in the list."""
        key = request.api_key
        assert key is not None
        api = APIS[key]
        assert api.first <= version <= api.last
        sent = type(request).decode(request.encode(version=version), version=version)
        call = ApiCall(self.cluster, node, sent, version, "test", "/127.0.0.1")
        return answers_of(_handled(call, key))

    def ask(self, request: Request[R], version: int, node: int = 1) -> R:
        """The answer to a request that is answered at once, as the client reads it."""
        answers, _ = self.begin(request, version, node)
        if not answers:  # what is due at once
            self.cluster.advance()
        (answer,) = answers
        fit(answer, version)
        data = answer.encode(version=version)
        read = type(answer).decode(data, version=version)
        assert read.encode(version=version) == data
        return read  # type: ignore[return-value]

    def pass_time(self, milliseconds: int) -> None:
        """Let time pass, and run what is due."""
        self.now += milliseconds
        self.cluster.advance()


def batch(*values: bytes | None, **options: Any) -> bytes:
    """A producer's batch."""
    first = options.pop("timestamp", 1_700_000_000_000)
    keys = options.pop("keys", None)
    records = [
        Record(timestamp=first + number, key=keys[number] if keys else None, value=value)
        for number, value in enumerate(values)
    ]
    return encode_batch(records, base_offset=0, **options)


def records_of(data: bytes) -> Iterator[tuple[int, bytes | None]]:
    """Offsets and values in a record set."""
    from coordwire.records import batches

    for record_batch in batches(data):
        for record in record_batch:
            yield record.offset, record.value
