"""A group's story as a picture: a lane a member over time, with the rebalances, and the partitions without a
consumer in lanes of their own below.

Strategy: one SVG for reports and notebooks. Places across are in percent and sizes of text in pixels, so that
it fills any width and stays readable; a lane's name is above its bars. Rules: at most `MOST_MEMBERS` and
`MOST_PARTITIONS` lanes and `MOST_MARKS` marks of each kind, the longest; the last line says what is left out;
names are escaped; colours have a contrast of 3 or more on white and on black.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from coordwire.capture.printable import shown
from coordwire.timeline.events import BrokerAway, CoordinatorStalled, MemberJoined, MemberLeft, TopicPartition
from coordwire.timeline.story.contents import StoryContents
from coordwire.timeline.story.markup import escaped
from coordwire.timeline.story.rebalance_table import causes
from coordwire.timeline.story.wording import LEAVINGS, clock, count, duration

__all__ = ["MOST_MARKS", "MOST_MEMBERS", "MOST_PARTITIONS", "lanes_svg"]

MOST_MEMBERS, MOST_PARTITIONS, MOST_MARKS = 24, 8, 400
LONG_NAME = 40
"""Characters of a lane's name."""

TOP, LANE, BAR, LINE = 22, 26, 8, 17
"""Pixels: above the lanes, a lane, its bar, a line of text below."""

MEMBER, REBALANCE, GAP, AWAY = "#3b7dd8", "#b07a10", "#d9483b", "#7d7d7d"
_LEGEND = (
    ((MEMBER, "member in the group"), (REBALANCE, "rebalance")),
    ((GAP, "partition without a consumer"), (AWAY, "coordinator away or silent")),
)


class _Mark(NamedTuple):
    """A stretch of time, in nanoseconds; label: its tooltip."""

    since_ns: int
    until_ns: int
    label: str

    @property
    def length_ns(self) -> int:
        return self.until_ns - self.since_ns


def lanes_svg(contents: StoryContents) -> str:
    """The picture; "" where the story has no length of time, or no member."""
    low_ns, high_ns = contents.totals.first_ns, contents.totals.last_ns
    if low_ns is None or high_ns is None or low_ns >= high_ns or not contents.numbers.stays:
        return ""
    members, partitions = _members(contents, low_ns, high_ns), _partitions(contents)
    rebalances, outages = _rebalances(contents), _outages(contents, high_ns)
    lanes = [(name, MEMBER, marks) for name, marks in members[:MOST_MEMBERS]]
    lanes += [(name, GAP, marks) for name, marks in partitions[:MOST_PARTITIONS]]
    bottom = TOP + LANE * len(lanes)

    def at(time_ns: int) -> float:
        return 100 * (min(max(time_ns, low_ns), high_ns) - low_ns) / (high_ns - low_ns)

    parts = [*_axis(low_ns, high_ns, bottom)]
    for marks, colour in ((outages, AWAY), (rebalances, REBALANCE)):
        parts += [_rect(mark, at, colour, TOP, bottom - TOP, 0.35) for mark in _longest(marks)]
    room = {MEMBER: MOST_MARKS, GAP: MOST_MARKS}
    dropped: Counter[str] = Counter()
    for number, (name, colour, marks) in enumerate(lanes):
        top = TOP + LANE * number
        name = shown(name if len(name) <= LONG_NAME else f"{name[:LONG_NAME]}…")
        parts.append(f'<text x="0" y="{top + 13}">{escaped(name)}</text>')
        parts += [_rect(mark, at, colour, top + 16, BAR, 1) for mark in marks[: room[colour]]]
        dropped[colour] += max(len(marks) - room[colour], 0)
        room[colour] = max(room[colour] - len(marks), 0)
    omitted = [
        (len(members) - MOST_MEMBERS, "member"), (len(partitions) - MOST_PARTITIONS, "partition"),
        (len(rebalances) - MOST_MARKS, "rebalance"), (len(outages) - MOST_MARKS, "outage"),
        (dropped[MEMBER], "stay"), (dropped[GAP], "gap"),
    ]  # fmt: skip
    texts = [_legend(keys) for keys in _LEGEND]
    left_out = ", ".join(count(number, noun) for number, noun in omitted if number > 0)
    texts += [f"not shown: {left_out}"] if left_out else []
    for number, text in enumerate(texts, 1):
        parts.append(f'<text x="0" y="{bottom + LINE * number}">{text}</text>')
    height = bottom + LINE * len(texts) + 8
    return (
        f'<svg role="img" aria-label="{escaped(f"Members of {contents.name} over time")}" '
        f'style="display:block;width:100%;height:{height}px;margin:.5em 0" '
        f'font-size="12" fill="currentColor">'
        f"{''.join(parts)}</svg>"
    )


# --- what is drawn ---


def _members(contents: StoryContents, low_ns: int, high_ns: int) -> list[tuple[str, list[_Mark]]]:
    """Each member's times in the group, by its name, in the order of numbers."""
    marks: dict[str, list[_Mark]] = {member_id: [] for member_id in contents.numbers.numbers}
    since: dict[str, int] = {}

    def end(member_id: str, time_ns: int, ending: str) -> None:
        start_ns = since.pop(member_id, low_ns)
        marks[member_id].append(_Mark(start_ns, time_ns, f"in {clock(start_ns)}, {ending}"))

    for event in sorted(contents.members, key=lambda event: event.time_ns or 0):
        time_ns = low_ns if event.time_ns is None else event.time_ns
        if isinstance(event, MemberJoined):
            since.setdefault(event.member_id, time_ns)
            forebear = contents.links.forebears.get(event.member_id)
            if forebear is not None and forebear in since:
                end(forebear, time_ns, f"its place was taken {clock(time_ns)}")
        elif isinstance(event, MemberLeft):
            end(event.member_id, time_ns, f"{LEAVINGS[event.how]} {clock(time_ns)}")
    for member_id in list(since):
        end(member_id, high_ns, "in at the end")
    return [(contents.numbers.name(member_id), stays) for member_id, stays in marks.items()]


def _partitions(contents: StoryContents) -> list[tuple[str, list[_Mark]]]:
    """The gaps of each partition, those that had no consumer for longest first."""
    gaps: dict[TopicPartition, list[_Mark]] = defaultdict(list)
    for row in contents.rows:
        for gap in (gap for part in row.parts for gap in part.idle):
            label = f"no consumer for {duration(gap.until_ns - gap.since_ns)} from {clock(gap.since_ns)}"
            mark = _Mark(gap.since_ns, gap.until_ns, label)
            gaps[TopicPartition(gap.topic, gap.partition)].append(mark)
    order = sorted(gaps, key=lambda partition: -sum(mark.length_ns for mark in gaps[partition]))
    return [(f"{partition.topic}-{partition.partition}", gaps[partition]) for partition in order]


def _rebalances(contents: StoryContents) -> list[_Mark]:
    marks = []
    for row in contents.rows:
        if row.began_ns is not None:
            length = f", {duration(row.length_ns)}" if row.length_ns else ""
            label = f"rebalance {row.name}, {clock(row.began_ns)}: {causes(row, contents.numbers)}{length}"
            marks.append(_Mark(row.began_ns, row.ended_ns or row.began_ns, label))
    return marks


def _outages(contents: StoryContents, high_ns: int) -> list[_Mark]:
    marks = []
    for event in contents.events:
        if isinstance(event, BrokerAway | CoordinatorStalled):
            deed = "away" if isinstance(event, BrokerAway) else "answers nothing"
            label = f"coordinator {shown(event.broker)} {deed}"
            marks.append(_Mark(event.time_ns or 0, event.until_ns or high_ns, label))
    return marks


# --- parts ---


def _longest(marks: Sequence[_Mark]) -> list[_Mark]:
    return sorted(marks, key=lambda mark: -mark.length_ns)[:MOST_MARKS]


def _rect(mark: _Mark, at: Callable[[int], float], colour: str, top: int, height: int, opacity: float) -> str:
    """A bar; its outline makes a very short one wide enough to be seen."""
    x, end = at(mark.since_ns), at(mark.until_ns)
    return (
        f'<rect x="{x:.2f}%" y="{top}" width="{max(end - x, 0):.2f}%" height="{height}" fill="{colour}" '
        f'stroke="{colour}" stroke-width="2" opacity="{opacity}"><title>{escaped(mark.label)}</title></rect>'
    )


def _axis(low_ns: int, high_ns: int, bottom: int) -> Iterator[str]:
    """Three times, which a narrow page has room for, with lines down to the last lane."""
    for number, anchor in enumerate(("start", "middle", "end")):
        time, x = clock(low_ns + (high_ns - low_ns) * number // 2), f"{50 * number}%"
        yield f'<text x="{x}" y="12" text-anchor="{anchor}" opacity=".7">{time}</text>'
        yield f'<line x1="{x}" x2="{x}" y1="{TOP - 5}" y2="{bottom}" stroke="currentColor" opacity=".15"/>'


def _legend(keys: Iterable[tuple[str, str]]) -> str:
    return " ".join(f'<tspan fill="{colour}">■</tspan> {text}' for colour, text in keys)
