"""A static member that takes another's place: what it inherits, and what a story says of both.

The capture is of a real broker: q3 is killed, q3b takes its name, q4 takes it while q3b still runs;
then KIP-848's only member goes.
"""

from __future__ import annotations

import lzma
from io import BytesIO
from pathlib import Path

import pytest

from coordwire.capture.reader import Capture
from coordwire.timeline.events import GroupConverted, GroupEvent, Moved, RebalanceEnded
from coordwire.timeline.from_wire.timeline import timeline
from coordwire.timeline.story import story_lines
from coordwire.timeline.totals import stories

CAPTURE = Path(__file__).parent.parent / "data" / "groups" / "kafka-4.4.0__java431-classic.pcap.xz"
ONCE, TWICE, THRICE = (
    "inst-q3-a8a79877-8954-4b08-8f51-ebb8703d3811",
    "inst-q3-9e2cec1f-34fe-4ea6-8c4f-cae6f98058c1",
    "inst-q3-13844a39-02ed-4438-8e75-926d81ea925d",
)


def events(*, ends: bool) -> list[GroupEvent]:
    capture = Capture(BytesIO(lzma.decompress(CAPTURE.read_bytes())), "c")
    return list(timeline(capture.entries_and_ends() if ends else capture.entries(), ends=ends))


@pytest.fixture(scope="module")
def seen() -> list[GroupEvent]:
    return events(ends=True)


def ended(seen: list[GroupEvent], outcome: str) -> list[RebalanceEnded]:
    return [event for event in seen if isinstance(event, RebalanceEnded) and event.outcome == outcome]


def test_an_heir_has_what_the_one_before_had(seen: list[GroupEvent]) -> None:
    for heir, event in zip((TWICE, THRICE), ended(seen, "not_needed"), strict=True):
        has = {assignment.member_id: assignment.partitions for assignment in event.assignments}
        assert has[heir] == (("o", 0),)
        assert len(has) == 3


def test_nothing_moves_to_an_heir_but_what_it_gains(seen: list[GroupEvent]) -> None:
    fourth = next(rebalance for rebalance in ended(seen, "steady") if rebalance.generation == 4)
    assert [one for one in fourth.moved if THRICE in (one.before, one.after)] == [
        Moved("o", 1, fourth.leader, THRICE)
    ]


def test_partitions_idle_from_the_end_of_the_connection_to_the_heir(seen: list[GroupEvent]) -> None:
    """The second heir's forebear still ran."""
    gaps = [
        [(one.topic, one.partition, one.until_ns - one.since_ns) for one in event.idle]
        for event in ended(seen, "not_needed")
    ]
    assert gaps == [[("o", 0, 1_897_639_000)], []]


def test_without_the_ends_of_connections_no_gap_is_known() -> None:
    assert [event.idle for event in ended(events(ends=False), "not_needed")] == [(), ()]


def test_what_was_not_needed_is_no_rebalance_in_the_sums(seen: list[GroupEvent]) -> None:
    story = stories(seen)["jq.cl"]
    assert story.rebalances == 8
    assert not any("static_member_returned" in causes for causes in story.caused.values())
    assert story.idle_ns == sum(event.idle_ns for event in seen if isinstance(event, RebalanceEnded))
    assert list(story.members) == [THRICE]


def test_the_story_names_who_took_whose_place(seen: list[GroupEvent]) -> None:
    lines = [line.lstrip(" 0123456789:.") for line in story_lines(seen)]
    assert "✓ generation 3 stays after 989 µs, no rebalance was needed" in lines
    assert any(line.startswith("+ #5 (q4) is back") and "in place of #4 (q3b)" in line for line in lines)
    fenced = "✗ #4 (q3b) commits o-0 → 161: FENCED_INSTANCE_ID "
    assert fenced + "(#5 (q4) has its group.instance.id since 21:18:49.948)" in lines


def test_a_group_is_presumably_classic_once_the_last_member_of_kip_848_went(seen: list[GroupEvent]) -> None:
    converted = [
        (group_converted.kind, group_converted.inferred)
        for group_converted in seen
        if isinstance(group_converted, GroupConverted)
    ]
    assert converted == [("consumer", False), ("classic", True)]
    lines = "\n".join(story_lines(seen))
    assert "⇄ the group presumably goes on as a classic group, no longer a consumer one" in lines
    assert "↻ the rebalance given up after 24 ms" in lines
