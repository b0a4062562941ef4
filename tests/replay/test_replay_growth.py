"""The work of a replay for n partitions, n records and n ids, for n, 2n and 4n."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from coordwire.capture import Entry
from coordwire.codec import Message
from coordwire.messages import (
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from coordwire.replay.differences import differences
from coordwire.replay.identifiers import Identifiers
from tests.growth import assert_linear
from tests.replay.recorded import Exchange, answering, entries, outcome


def topics(n: int) -> tuple[Any, Any]:
    """Two answers with n topics, in another order."""
    part = MetadataResponsePartition(partition_index=0)
    made = [MetadataResponseTopic(name=f"t{number}", partitions=[part]) for number in range(n)]
    return MetadataResponse(topics=made), MetadataResponse(topics=made[::-1])


def partitions(n: int) -> tuple[Any, Any]:
    """Two answers with n partitions, which all differ."""

    def answer(mark: int) -> FetchResponse:
        data = [PartitionData(partition_index=number, high_watermark=mark) for number in range(n)]
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=data)])

    return answer(1), answer(2)


def batches_of(n: int) -> ProduceRequest:
    batch = encode_batch(
        [Record(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=0, base_offset=0
    )
    data = [PartitionProduceData(index=number, records=batch) for number in range(n)]
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=data)])


def compared(pair: tuple[Any, Any]) -> None:
    differences(*pair, 12)


def learned(pair: tuple[Any, Any]) -> None:
    Identifiers().learn(MetadataRequest(), *pair, 12)


def updated(request: ProduceRequest) -> None:
    Identifiers().update(request, 9)


# --- whole replays ---


def exchanges(n: int) -> list[Exchange]:
    """n requests on one connection, each answered before the next."""
    return [Exchange(HeartbeatRequest(group_id="g", member_id="m"), HeartbeatResponse()) for _ in range(n)]


def connections(n: int) -> list[Exchange]:
    """n connections with one request."""
    return [replace(exchange, connection=number) for number, exchange in enumerate(exchanges(n))]


def late(n: int) -> list[Exchange]:
    """n requests that are answered after all of them."""
    return [replace(exchange, late=True) for exchange in exchanges(n)]


def unanswered(n: int) -> list[Exchange]:
    """n requests whose answers the capture lacks."""
    return [replace(exchange, response=None) for exchange in exchanges(n)]


def mismatches(n: int) -> list[Exchange]:
    """n answers that differ."""
    return [replace(exchange, response=HeartbeatResponse(error_code=25)) for exchange in exchanges(n)]


def members(n: int) -> list[Exchange]:
    """n members, whose ids are others now."""
    join = JoinGroupRequest(group_id="g", protocol_type="consumer")
    return [Exchange(join, JoinGroupResponse(member_id=f"captured-{number}"), 5) for number in range(n)]


def nodes(n: int) -> list[Exchange]:
    """Metadata with n brokers."""
    return [Exchange(MetadataRequest(topics=[]), _cluster(n, "captured"), 9)]


def _cluster(n: int, host: str) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host=f"{host}-{node}", port=9) for node in range(n)]
    return MetadataResponse(brokers=brokers)


def _captured(make: Callable[[int], list[Exchange]]) -> Callable[[int], list[Entry]]:
    def made(n: int) -> list[Entry]:
        return entries(make(n))

    made.__name__ = make.__name__
    return made


def replayed(captured: list[Entry]) -> None:
    numbers = count()

    def react(request: Message) -> Message:
        match request:
            case JoinGroupRequest():
                return JoinGroupResponse(member_id=f"now-{next(numbers)}")
            case MetadataRequest():
                return _cluster(len(captured[1].message.brokers), "now")  # type: ignore[union-attr]
        return HeartbeatResponse()

    with answering(react):
        replay, _ = outcome(captured)
    assert replay.totals.failed == 0


WHOLE = (exchanges, connections, late, unanswered, mismatches, members, nodes)
CASES: list[tuple[Callable[[int], Any], Callable[[Any], None], int]] = [
    (batches_of, updated, 100),
    (topics, compared, 200),
    (partitions, compared, 1_000),
    (topics, learned, 200),
    *((_captured(make), replayed, 60) for make in WHOLE),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1].__name__}")
def test_work_grows_as_the_input(case: tuple[Callable[[int], Any], Callable[[Any], None], int]) -> None:
    make, work, n = case
    assert_linear(make, work, n)
