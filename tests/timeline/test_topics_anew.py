"""Topics that are deleted and made anew: what groups committed before does not belong to the new one."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.codec import Message
from coordwire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from coordwire.messages.create_topics import CreatableTopicResult
from coordwire.messages.delete_topics import DeletableTopicResult
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.timeline.events import LagMeasured
from tests.timeline.script import Script, only
from tests.timeline.test_timeline import commit, end

Exchange = tuple[Message, Message]


def metadata(number: int) -> Exchange:
    topics = [MetadataResponseTopic(name="t", topic_id=UUID(int=number))]
    return MetadataRequest(), MetadataResponse(topics=topics)


def created(number: int) -> Exchange:
    topics = [CreatableTopicResult(name="t", topic_id=UUID(int=number))]
    return CreateTopicsRequest(), CreateTopicsResponse(topics=topics)


def deleted(error_code: int = 0, topic_id: int = 0) -> Exchange:
    name = None if topic_id else "t"
    responses = [DeletableTopicResult(name=name, topic_id=UUID(int=topic_id), error_code=error_code)]
    return DeleteTopicsRequest(), DeleteTopicsResponse(responses=responses)


def told(script: Script) -> list[tuple[int, int, int, str | None]]:
    return [
        (one.committed, one.end_offset, one.lag, one.reason) for one in only(script.events(), LagMeasured)
    ]


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ([], [deleted()]),
        ([], [deleted(), created(2)]),
        ([metadata(1)], [created(2)]),
        ([created(1)], [metadata(2)]),
        ([metadata(1)], [deleted(), metadata(1), metadata(2)]),
        ([metadata(1)], [deleted(topic_id=1)]),
    ],
)
def test_offsets_of_the_topic_before_are_not_held_against_the_new_ends(
    before: list[Exchange], between: list[Exchange]
) -> None:
    script = Script()
    for request, response in before:
        script.answer(script.ask(request, "a"), response)
    end(script, 100)
    commit(script, 80)
    for request, response in between:
        script.now += 2
        script.answer(script.ask(request, "a"), response)
    for offset in (0, 7):
        script.now += 2
        end(script, offset)
    commit(script, 3)
    script.now += 2
    end(script, 9)
    assert told(script) == [(80, 100, 20, None), (3, 7, 4, None), (3, 9, 6, None)]


@pytest.mark.parametrize("between", [[], [metadata(1), metadata(1)], [deleted(error_code=3)], [created(1)]])
def test_offsets_of_a_topic_that_stays_are(between: list[Exchange]) -> None:
    script = Script()
    script.answer(script.ask(metadata(1)[0], "a"), metadata(1)[1])
    end(script, 100)
    commit(script, 80)
    for request, response in between:
        script.answer(script.ask(request, "a"), response)
    script.now += 2
    end(script, 7)
    assert told(script) == [(80, 100, 20, None), (80, 7, -73, "committed_beyond_end")]


def test_a_broker_that_has_not_heard_of_the_new_topic_yet_makes_no_other() -> None:
    script = Script()

    def learn(number: int) -> None:
        request, response = metadata(number)
        script.now += 2
        script.answer(script.ask(request, "a"), response)

    learn(1)
    learn(2)
    end(script, 100)
    commit(script, 80)
    learn(1)
    learn(2)
    end(script, 110)
    assert told(script) == [(80, 100, 20, None), (80, 110, 30, None)]


def end_by_id(script: Script, number: int, offset: int) -> None:
    """The high watermark of partition 0 of the topic with this id."""
    data = PartitionData(partition_index=0, high_watermark=offset, records=b"")
    topic = FetchableTopicResponse(topic_id=UUID(int=number), partitions=[data])
    script.answer(script.ask(FetchRequest(), "a", version=13), FetchResponse(responses=[topic]))


def commit_by_id(script: Script, number: int, offset: int) -> None:
    """A commit in partition 0 of the topic with this id."""
    one = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(topic_id=UUID(int=number), partitions=[one])
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=4, member_id="a-id", topics=[topic]
    )
    script.answer(script.ask(request, "a", version=10), OffsetCommitResponse())


@pytest.mark.parametrize("between", [[metadata(2)], [deleted()], [deleted(), created(2)]])
def test_what_comes_late_of_the_topic_before_is_not_of_the_new_one(between: list[Exchange]) -> None:
    """A consumer still fetches and commits by the old id, of which a broker has not heard that it is past."""
    script = Script()
    for request, response in [metadata(1), *between]:
        script.answer(script.ask(request, "a"), response)
    commit_by_id(script, 1, 80)
    script.now += 2
    end(script, 7)
    script.now += 2
    commit(script, 3)
    script.now += 2
    end_by_id(script, 1, 100)
    assert told(script) == [(3, 7, 4, None)]


def test_a_commit_between_a_deletion_and_the_new_topic_is_of_neither() -> None:
    """Its coordinator has not heard of the deletion yet."""
    script = Script()
    for request, response in [metadata(1), deleted()]:
        script.answer(script.ask(request, "a"), response)
    commit(script, 80)
    request, response = metadata(2)
    script.answer(script.ask(request, "a"), response)
    script.now += 2
    end(script, 0)
    assert told(script) == []


def test_the_id_of_the_topic_that_is_decides_nothing_else() -> None:
    script = Script()
    for request, response in [metadata(1), metadata(2)]:
        script.answer(script.ask(request, "a"), response)
    end_by_id(script, 2, 7)
    commit_by_id(script, 2, 3)
    assert told(script) == [(3, 7, 4, None)]


@pytest.mark.parametrize("offsets", [[0, 7], [7]])
def test_an_end_by_name_may_be_that_of_a_topic_whose_id_is_not_known_yet(offsets: list[int]) -> None:
    """Some client asks for the new topic before any has Metadata of it."""
    script = Script()
    for request, response in [metadata(1)]:
        script.answer(script.ask(request, "a"), response)
    end(script, 100)
    commit(script, 80)
    for offset in offsets:
        script.now += 2
        end(script, offset)
    request, response = metadata(2)
    script.answer(script.ask(request, "a"), response)
    script.now += 2
    commit(script, 3)
    script.now += 2
    end(script, 9)
    assert told(script) == [(80, 100, 20, None), (3, 9, 6, None)]


def test_a_commit_beyond_an_end_is_reported_once_the_topic_has_stayed_for_a_while() -> None:
    script = Script()
    script.answer(script.ask(metadata(1)[0], "a"), metadata(1)[1])
    end(script, 100)
    commit(script, 80)
    script.now += 2
    end(script, 7)
    script.now += 61
    end(script, 7)
    commit(script, 5)
    assert told(script) == [(80, 100, 20, None), (80, 7, -73, "committed_beyond_end"), (5, 7, 2, None)]


def test_an_end_by_id_is_in_no_doubt() -> None:
    script = Script()
    script.answer(script.ask(metadata(1)[0], "a"), metadata(1)[1])
    end_by_id(script, 1, 100)
    commit_by_id(script, 1, 80)
    script.now += 2
    end_by_id(script, 1, 7)
    script.now += 2
    commit_by_id(script, 1, 5)
    beyond = (80, 7, -73, "committed_beyond_end")
    assert told(script) == [(80, 100, 20, None), beyond, (5, 7, 2, None)]
