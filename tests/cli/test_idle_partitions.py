"""How a story words for how long partitions had no consumer."""

from __future__ import annotations

import pytest

from coordwire.timeline.events import Idle, RebalanceEnded
from coordwire.timeline.story.event_lines import EventLines
from coordwire.timeline.story.member_numbers import MemberNumbers

MS = 1_000_000


def words(*gaps: tuple[int, int]) -> str:
    """What is said of gaps, given as partition and nanoseconds."""
    event = RebalanceEnded(
        group="g", time_ns=1, source="s", number=1, packet=None, kind="classic", outcome="steady",
        cause="unknown", member_id=None, inferred=False, detail="", began_ns=0, joined_ns=0, ended_ns=1,
        length_ns=1, generation_before=1, generation=2, protocol=None, leader=None, members=(),
        last_to_join=None, assignments=(), moved=(),
        idle=tuple(Idle("t", partition, 0, length) for partition, length in gaps),
    )  # fmt: skip
    first = next(EventLines(MemberNumbers(), one_day=True).below(event))
    return "".join(text for text, _ in first).strip().removeprefix("without a consumer: ")


@pytest.mark.parametrize(
    ("gaps", "text"),
    [
        (((0, 15_948_000), (1, 16_100_000)), "t-0..1 for 16 ms"),
        (((0, 1_234_400_000), (1, 1_234_600_000), (2, 5 * MS)), "t-0..1 for 1.23 s, t-2 for 5 ms"),
        (((0, 3_010 * MS), (0, 3_011 * MS), (1, 3_012 * MS)), "t-0 twice for 3.01 s, t-1 for 3.01 s"),
        (tuple((0, 7 * MS) for _ in range(3)), "t-0 3 times for 7 ms"),
        (
            tuple((number, (number + 1) * MS) for number in range(6)),
            "t-5 for 6 ms, t-4 for 5 ms, t-3 for 4 ms, t-2 for 3 ms and 2 shorter gaps",
        ),
    ],
)
def test_gaps_that_read_the_same_are_together(gaps: tuple[tuple[int, int], ...], text: str) -> None:
    assert words(*gaps) == text
