"""The error codes of responses: each with its place and what it is about, and a frame's own one."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import coordwire
from coordwire.capture.answer_errors import (
    MOST_TEXTS,
    ErrorPlace,
    KnownAnswers,
    answer_errors,
    asked_places,
    error_code,
    own_places,
)
from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.codec.walk import entity_places
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
)
from coordwire.messages.fetch import PartitionData as FetchedPartition
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

CAPTURES = Path(__file__).parents[1] / "data" / "captures"


def error_places(entry: FrameEntry) -> list[ErrorPlace]:
    return asked_places(entry, own_places(entry))


def answered(request: Message, response: Message, version: int) -> FrameEntry:
    """The entry of a response."""
    data = coordwire.encode_request(request, version=version, correlation_id=1, client_id="c")
    data += coordwire.encode_response(response, version=version, correlation_id=1)
    asked, entry = Capture(io.BytesIO(data), "x", input="frames").entries()
    assert isinstance(asked, FrameEntry)
    assert isinstance(entry, FrameEntry)
    assert error_code(asked) is None
    return entry


def test_the_group_is_the_requests_where_the_answer_names_none() -> None:
    request = HeartbeatRequest(group_id="payments", generation_id=3, member_id="m")
    entry = answered(request, HeartbeatResponse(error_code=27), 4)
    assert list(error_places(entry)) == [
        ErrorPlace(27, "REBALANCE_IN_PROGRESS", "error_code", "error_message", None, None, None, "payments")
    ]
    assert error_code(entry) == (27, "REBALANCE_IN_PROGRESS")
    assert error_code(answered(request, HeartbeatResponse(), 4)) == (0, "NONE")


def test_nested_codes_have_their_group_topic_and_partition() -> None:
    topic = OffsetFetchResponseTopics(
        name="orders",
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, error_code=code)
            for index, code in enumerate((0, 88, 30))
        ],
    )
    groups = [
        OffsetFetchResponseGroup(group_id="a", topics=[topic]),
        OffsetFetchResponseGroup(group_id="", error_code=-7),
    ]
    entry = answered(OffsetFetchRequest(groups=[]), OffsetFetchResponse(groups=groups), 8)
    results = [
        (place.code, place.path, place.topic, place.partition, place.group) for place in error_places(entry)
    ]
    place = "groups[0].topics[0].partitions"
    assert results == [
        (88, f"{place}[1].error_code", "orders", 1, "a"),
        (30, f"{place}[2].error_code", "orders", 2, "a"),
        (-7, "groups[1].error_code", None, None, ""),
    ]
    assert [place.name for place in error_places(entry)][2] == "UNKNOWN_-7"
    assert error_code(entry) == (88, "UNSTABLE_OFFSET_COMMIT")


def test_the_messages_own_code_goes_first_wherever_it_is() -> None:
    topic = OffsetFetchResponseTopic(
        name="orders", partitions=[OffsetFetchResponsePartition(partition_index=5, error_code=3)]
    )
    request = OffsetFetchRequest(group_id="g", topics=[])
    entry = answered(request, OffsetFetchResponse(topics=[topic], error_code=16), 5)
    assert [place.code for place in error_places(entry)] == [3, 16]
    assert {place.group for place in error_places(entry)} == {"g"}
    assert error_code(entry) == (16, "NOT_COORDINATOR")


@pytest.mark.parametrize(("version", "topic"), [(12, "t"), (13, "")])
def test_a_topic_that_only_its_id_names(version: int, topic: str) -> None:
    partition = FetchedPartition(partition_index=2, error_code=1)
    response = FetchResponse(responses=[FetchableTopicResponse(topic=topic, partitions=[partition])])
    (place,) = error_places(answered(FetchRequest(), response, version))
    assert (place.topic, place.partition) == (topic or None, 2)


def test_codes_are_none_before_the_version_that_has_them() -> None:
    fetched = answered(FetchRequest(), FetchResponse(), 4)
    assert error_code(fetched) == (0, "NONE")  # those of partitions, of which there are none
    alone = answered(OffsetFetchRequest(), OffsetFetchResponse(), 1)
    assert error_code(alone) == (0, "NONE")


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_places_are_those_of_the_schema(path: Path) -> None:
    with path.open("rb") as stream:
        for entry in Capture(stream, path.name).entries():
            if not isinstance(entry, FrameEntry):
                continue
            places = list(error_places(entry))
            assert {(place.code, place.name) for place in places} == {
                (error.code, error.name) for error in answer_errors(entry)
            }
            assert sum(error.times for error in answer_errors(entry)) == len(places)
            if entry.direction == "response":
                expected = [
                    (path, code) for path, _, _, code in entity_places(entry.message, "error_code") if code
                ]
                assert [(place.path, place.code) for place in places] == expected
                assert bool(places) == bool((error_code(entry) or (0,))[0])


def test_texts_of_errors_are_kept_within_bounds() -> None:
    asked: list[FrameEntry] = []

    def write(entry: FrameEntry) -> str:
        asked.append(entry)
        return " ".join(error.name for error in answer_errors(entry))

    texts = KnownAnswers(write)
    entry = answered(HeartbeatRequest(), HeartbeatResponse(error_code=27), 4)
    for number in range(MOST_TEXTS):
        assert texts.of(entry, f"body {number}") == "REBALANCE_IN_PROGRESS"
    assert texts.of(entry, "body 7") == "REBALANCE_IN_PROGRESS"
    assert len(asked) == MOST_TEXTS
    texts.of(entry, "one more")
    texts.of(entry, "long" * 1000)
    assert len(texts.known) == 1
