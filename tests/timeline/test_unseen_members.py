"""Members that were in before a capture began, and of which no frame shows anything."""

from __future__ import annotations

import pytest

from coordwire.messages import MetadataRequest, MetadataResponse, OffsetFetchRequest, OffsetFetchResponse
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from coordwire.timeline.events import RebalanceEnded
from tests.timeline.script import Script, only
from tests.timeline.test_modern import ORDERS, beat, rebalances


def begun(script: Script, *members: str, epoch: int = 3) -> None:
    """Members that are in before the capture begins."""
    for member in members:
        beat(script, member, epoch, epoch)
    script.now = 12


def fetch_offsets(script: Script, client: str, numbers: list[int], *, version: int = 9) -> None:
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=numbers)
    if version >= 10:
        topic = OffsetFetchRequestTopics(topic_id=ORDERS, partition_indexes=numbers)
    group = OffsetFetchRequestGroup(group_id="g", topics=[topic])
    request = OffsetFetchRequest(groups=[group], require_stable=True)
    answer = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g")])
    script.answer(script.ask(request, client, version), answer)


def last(script: Script) -> RebalanceEnded:
    return rebalances(script)[-1]


@pytest.mark.parametrize("version", [9, 10])
def test_who_gets_more_of_a_topic_that_it_shared_shows_the_end_of_an_unseen_session(version: int) -> None:
    script = Script()
    begun(script, "a")
    beat(script, "a", 3, 4, given=[0, 1, 2, 3, 4])
    fetch_offsets(script, "a", [3, 4], version=version)
    beat(script, "a", 4, 4, owns=[0, 1, 2, 3, 4])
    end = last(script)
    assert (end.cause, end.member_id, end.inferred, end.generation) == ("session_timeout", None, True, 4)
    assert "2 more partitions of topics that it shared" in end.detail


def test_a_member_that_reports_what_it_had_shows_the_same() -> None:
    script = Script()
    begun(script, "a")
    beat(script, "a", 3, 4, given=[0, 1, 2])
    beat(script, "a", 4, 4, owns=[0, 1])
    beat(script, "a", 4, 4, owns=[0, 1, 2])
    assert (last(script).cause, last(script).member_id) == ("session_timeout", None)


def test_members_that_had_nothing_were_given_topics_by_the_coordinator() -> None:
    script = Script()
    begun(script, "a", "b")
    for member, given in (("a", [0, 2]), ("b", [1])):
        beat(script, member, 3, 4, given=given)
        beat(script, member, 4, 4, owns=[])
        beat(script, member, 4, 4, owns=given)
    assert (last(script).cause, last(script).inferred) == ("assignment_changed", True)


@pytest.mark.parametrize("given", [[0], [0, 1]])
def test_as_many_partitions_as_sessions_may_have_ended_conclude_nothing(given: list[int]) -> None:
    script = Script()
    begun(script, "a", epoch=3)
    beat(script, "a", 3, 3 + len(given), given=given)
    beat(script, "a", 3 + len(given), 3 + len(given), owns=[])
    beat(script, "a", 3 + len(given), 3 + len(given), owns=given)
    assert last(script).cause == "unknown"


def test_one_member_of_which_nothing_is_known_concludes_nothing() -> None:
    script = Script()
    begun(script, "a", "b")
    beat(script, "a", 3, 4, given=[0, 2])
    beat(script, "a", 4, 4, owns=[])
    beat(script, "a", 4, 4, owns=[0, 2])
    beat(script, "b", 3, 4, given=[1, 3])
    beat(script, "b", 4, 4, owns=[1, 3])
    assert last(script).cause == "unknown"


@pytest.mark.parametrize(("client", "asked"), [("tool", [3, 4]), ("a", [3, 9]), ("a", [0, 1, 2, 3, 4])])
def test_other_questions_about_offsets_conclude_nothing(client: str, asked: list[int]) -> None:
    """A tool's, one about partitions that it was not given, or about all that it has, in one step."""
    script = Script()
    begun(script, "a")
    topic = MetadataResponseTopic(name="orders", topic_id=ORDERS)
    script.answer(script.ask(MetadataRequest(), "a"), MetadataResponse(topics=[topic]))
    beat(script, "a", 3, 8, given=[0, 1, 2, 3, 4])
    fetch_offsets(script, client, asked)
    beat(script, "a", 8, 8, owns=[0, 1, 2, 3, 4])
    assert last(script).cause == "unknown"
    assert only(script.events(), RebalanceEnded)[-1].generation == 8


def test_partitions_that_a_member_seen_may_have_lost_had_no_unseen_owner() -> None:
    script = Script()
    begun(script, "a", "b")
    beat(script, "a", 3, 3, given=[0])
    beat(script, "a", 3, 4, owns=[0])
    beat(script, "b", 3, 4, given=[1, 2])
    fetch_offsets(script, "b", [2], version=10)
    beat(script, "b", 4, 4, owns=[1, 2])
    assert last(script).cause == "unknown"
