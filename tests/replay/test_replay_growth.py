"""The work of a replay for n partitions, n records and n ids, for n, 2n and 4n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordwire.messages import FetchResponse, MetadataRequest, MetadataResponse, ProduceRequest
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from coordwire.replay.differences import differences
from coordwire.replay.identifiers import Identifiers
from tests.growth import assert_linear


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


CASES: list[tuple[Callable[[int], Any], Callable[[Any], None], int]] = [
    (batches_of, updated, 100),
    (topics, compared, 200),
    (partitions, compared, 1_000),
    (topics, learned, 200),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].__name__}-{case[1].__name__}")
def test_work_grows_as_the_input(case: tuple[Callable[[int], Any], Callable[[Any], None], int]) -> None:
    make, work, n = case
    assert_linear(make, work, n)
