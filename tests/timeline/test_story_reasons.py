"""What a story says of why: whose death holds a rebalance up, and what a coordinator changed by itself."""

from __future__ import annotations

from coordwire.messages import MetadataRequest, MetadataResponse
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.timeline.events import GroupEvent, LostMember, RebalanceEnded
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.group_block import GroupBlock
from tests.timeline.script import SECOND, START, Script, only
from tests.timeline.test_modern import ORDERS, beat, joined


def overview(events: list[GroupEvent]) -> str:
    """The lines of the story, as one."""
    (group,) = CollectedEvents(events).groups.values()
    return " ".join("".join(text for text, _ in line) for line in GroupBlock(group, 300).overview.lines())


# --- a death that a rebalance waits for ---


def test_a_member_whose_connection_ended_explains_a_rebalance_that_is_not_over() -> None:
    script = Script().steady("a", "b")
    script.now = 5
    script.close("b")
    script.now = 6
    script.join("c")
    script.heartbeat("a", 1, 27)
    script.join("a")
    events = script.events(ends=True)
    ended = only(events, RebalanceEnded)[-1]
    assert (ended.outcome, ended.lost) == ("unfinished", (LostMember("b-id", START + 5 * SECOND, None),))
    assert "without #2 (b), whose connection ended at 22:13:25.0" in overview(events)


def test_a_member_that_may_still_join_does_not() -> None:
    script = Script().steady("a", "b")
    script.now = 6
    script.join("c")
    script.heartbeat("a", 1, 27)
    script.join("a")
    script.close("a")  # after it has joined
    events = script.events(ends=True)
    assert only(events, RebalanceEnded)[-1].lost == ()
    assert "whose connection ended" not in overview(events)


# --- what the coordinator changed ---


def reassigned(given: list[int]) -> list[GroupEvent]:
    """A member has partitions 0 and 1 of orders; later its coordinator gives it others."""
    script = Script()
    topic = MetadataResponseTopic(name="orders", topic_id=ORDERS)
    script.answer(script.ask(MetadataRequest(), "a"), MetadataResponse(topics=[topic]))
    joined(script, "a", 1, [0, 1])
    script.now = 20
    epoch = 2 if {0, 1} <= set(given) else 1  # the new one, once it has given up what it must
    beat(script, "a", 1, epoch, given=given)
    script.now = 21
    beat(script, "a", epoch, 2, owns=given)
    return script.events()


def test_partitions_that_a_coordinator_adds_are_named() -> None:
    assert "by the coordinator: orders-2..3 added " in overview(reassigned([0, 1, 2, 3]))


def test_partitions_that_are_gone_are_named() -> None:
    assert "by the coordinator: orders-1 gone " in overview(reassigned([0]))


def test_of_very_many_their_number_is_named() -> None:
    odd = list(range(3, 200, 2))
    assert f"by the coordinator: {len(odd)} partitions of orders added " in overview(reassigned([0, 1, *odd]))
