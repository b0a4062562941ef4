"""The rebalances of a group as a table, a row each.

Strategy: rebalances are numbered in the order in which they ended. One that another overtakes goes on in that
one, so that both are one row, with the numbers and the epochs of both. `HEADS` and `cells` are the table on
every surface; `table` lays it out for a terminal. Rules: the cause is never cut: on a narrow terminal the
packet, then the epoch make room for it, and what is still too long goes on below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from textwrap import wrap

from coordwire.capture.printable import Pieces, shown
from coordwire.timeline.events import Cause, GroupEvent, MemberJoined, RebalanceEnded, TopicPartition
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.wording import LONG_NAMES, clock, count, duration, ranges

__all__ = ["HEADS", "NUMBERS", "WHY", "TableRow", "causes", "cells", "is_bad", "rows", "table"]

GAP_NS = 1_000_000_000
"""A rebalance that begins later than this after one that was given up is not the same."""

_PARTS = re.compile(r"[^-._]*[-._]+|[^-._]+")

LOOP, LOOP_GAP_NS = 10, 5_000_000_000
"""So many rebalances are a loop, if each begins within this time after the one before."""

_WHY: dict[Cause, str] = {
    "first_member": "{} first",
    "new_member": "{} joins",
    "static_member_returned": "{} back (static)",
    "member_left": "{} left",
    "session_timeout": "{} timed out",
    "member_removed": "{} removed",
    "member_fenced": "{} fenced",
    "subscription_changed": "{} new subscription",
    "partitions_revoked": "{} gave up partitions",
    "leader_rejoined": "leader {} joins again",
    "member_rejoined": "{} joins again",
    "assignment_changed": "by the coordinator",
    "coordinator_moved": "the coordinator moved",
    "unknown": "not shown",
}
_AGAIN = frozenset({"leader_rejoined", "member_rejoined", "subscription_changed"})
_JOINS = frozenset({"first_member", "new_member"})
_OUTCOMES = {"superseded": "given up", "unfinished": "not over", "not_needed": "not needed"}

HEADS = (
    "", "began", "took", "why", "members", "partitions moved", "longest without a consumer", "epoch",
    "packet",
)  # fmt: skip
NUMBERS = (0, 4, 5, 8)
"""The columns that are set to the right."""

WHY, EPOCH, PACKET = 3, 7, 8
SHORTEST_WHY, AMPLE_WHY = 12, 40
"""Columns that a cause has in any case, and with which it makes no other give way."""

HEAD_LINES = 3


@dataclass(slots=True)
class TableRow:
    """One rebalance. first: its number, or the first one's; parts: with those that it overtook, the last
    last; joined: who came meanwhile; loop_ns: of a loop, which has many, how long these took in all."""

    first: int
    parts: list[RebalanceEnded]
    joined: tuple[str, ...] = ()
    loop_ns: int | None = None

    @property
    def numbers(self) -> range:
        """The numbers of its rebalances."""
        return range(self.first, self.first + len(self.parts))

    @property
    def name(self) -> str:
        """Its number, or the first and the last of them."""
        return f"{self.first}" if len(self.parts) == 1 else f"{self.first}–{self.numbers[-1]}"

    @property
    def last(self) -> RebalanceEnded:
        return self.parts[-1]

    @property
    def began_ns(self) -> int | None:
        return min((part.began_ns for part in self.parts if part.began_ns is not None), default=None)

    @property
    def ended_ns(self) -> int | None:
        return self.last.ended_ns

    @property
    def length_ns(self) -> int | None:
        if self.loop_ns is not None:
            return self.loop_ns
        began_ns, ended_ns = self.began_ns, self.ended_ns
        return None if began_ns is None or ended_ns is None else max(ended_ns - began_ns, 0)

    @property
    def longest_idle_ns(self) -> int:
        return max((gap.until_ns - gap.since_ns for part in self.parts for gap in part.idle), default=0)

    def epochs(self) -> str:
        """The generation or epoch that it made, or the first and the last."""
        numbers = [
            part.generation
            for part in self.parts
            if part.generation is not None and part.generation != part.generation_before
        ]
        if not numbers:
            stays = self.last.generation if self.last.generation is not None else self.last.generation_before
            return "-" if stays is None else f"{stays}"
        first, last = min(numbers), max(numbers)
        before = self.parts[0].generation_before
        first = first if before is None else min(first, before + 1)
        return f"{last}" if first == last else f"{first}–{last}"


def rows(events: Iterable[GroupEvent]) -> list[TableRow]:
    """The rows of a group's events, by their begin."""
    ended: list[RebalanceEnded] = []
    joined: list[MemberJoined] = []
    for event in events:
        if isinstance(event, RebalanceEnded):
            ended.append(event)
        elif isinstance(event, MemberJoined) and not event.rejoined:
            joined.append(event)
    table_rows: list[TableRow] = []
    for number, part in enumerate(sorted(ended, key=lambda event: event.ended_ns or event.time_ns or 0), 1):
        last = table_rows[-1].last if table_rows else None
        near = last is not None and (part.began_ns or 0) - (last.ended_ns or 0) <= GAP_NS
        if last is not None and last.outcome == "superseded" and near:
            table_rows[-1].parts.append(part)
        else:
            table_rows.append(TableRow(number, [part]))
    for row in table_rows:
        if any(part.cause in _JOINS for part in row.parts) and row.began_ns and row.ended_ns:
            row.joined = tuple(
                event.member_id for event in joined if row.began_ns <= (event.time_ns or 0) <= row.ended_ns
            )
    return table_rows


def folded(table_rows: Iterable[TableRow]) -> list[TableRow]:
    """The rows with those of a loop as one: members that join again and again, and nothing moves."""
    result: list[TableRow] = []
    loop: list[TableRow] = []
    for row in table_rows:
        is_idle = not (row.joined or row.longest_idle_ns or any(part.moved for part in row.parts)) and all(
            part.cause in _AGAIN for part in row.parts
        )
        is_near = bool(loop) and (row.began_ns or 0) - (loop[-1].ended_ns or 0) <= LOOP_GAP_NS
        if loop and not (is_idle and is_near):
            result += _loop(loop)
            loop = []
        if is_idle:
            loop.append(row)
        else:
            result.append(row)
    return result + _loop(loop)


def _loop(table_rows: list[TableRow]) -> list[TableRow]:
    if len(table_rows) < LOOP:
        return table_rows
    parts = [part for row in table_rows for part in row.parts]
    length_ns = sum(row.length_ns or 0 for row in table_rows)
    return [TableRow(table_rows[0].first, parts, loop_ns=length_ns)]


def causes(row: TableRow, numbers: MemberNumbers) -> str:
    """The cause of a row's rebalance, in short."""
    by_cause: dict[Cause, list[str | None]] = {}
    clients: dict[Cause, str | None] = {}
    for part in row.parts:
        cause: Cause = part.cause
        if cause == "unknown" and len(row.parts) > 1 and by_cause:
            continue
        by_cause.setdefault(cause, []).append(part.member_id)
        clients.setdefault(cause, part.client_id)
    named = {member_id for members in by_cause.values() for member_id in members}
    later = [member_id for member_id in row.joined if member_id not in named]
    if later:
        by_cause.setdefault("new_member", []).extend(later)
    texts = []
    for cause, members in by_cause.items():
        text = _WHY[cause].format(numbers.names(members) or numbers.name(None, clients.get(cause)))
        text += _own_changes(row.last) if list(by_cause) == ["assignment_changed"] else ""
        several = cause == "new_member" and len({*members} - {None}) > 1
        texts.append(text.replace(" joins", " join") if several else text)
    reason = next(
        (
            part.detail
            for part in row.parts
            if part.cause in ("leader_rejoined", "member_rejoined") and part.detail
        ),
        "",
    )
    if row.loop_ns is not None:
        idle = sum(part.outcome == "not_needed" for part in row.parts)
        return f"{len(row.parts):,} times: {', '.join(texts)}" + (f"; {idle:,} not needed" if idle else "")
    outcome = _OUTCOMES.get(row.last.outcome)
    return ", ".join(texts) + (f": {shown(reason)}" if reason else "") + (f"; {outcome}" if outcome else "")


def _own_changes(event: RebalanceEnded) -> str:
    """The partitions that the coordinator added to what members have, and those that it took from all."""
    added = [TopicPartition(part.topic, part.partition) for part in event.moved if part.before is None]
    removed = [TopicPartition(part.topic, part.partition) for part in event.moved if part.after is None]
    texts = []
    for partitions, deed in ((removed, "gone"), (added, "added")):
        names = shown(ranges(partitions))
        if len(names) > LONG_NAMES:
            names = f"{count(len(partitions), 'partition')} of {_topics(partitions)}"
        texts += [f"{names} {deed}"] if partitions else []
    return f": {', '.join(texts)}" if texts else ""


def _topics(partitions: Iterable[TopicPartition]) -> str:
    """A topic's name, or how many there are."""
    topics = {partition.topic for partition in partitions}
    return shown(*topics) if len(topics) == 1 else count(len(topics), "topic")


def cells(row: TableRow, numbers: MemberNumbers) -> list[str]:
    """A row's texts, below `HEADS`."""
    last = row.last
    members = f"{len(last.members)}" if last.members and last.outcome != "not_needed" else ""
    return [
        row.name,
        "" if row.began_ns is None else clock(row.began_ns),
        duration(row.length_ns) if row.length_ns else "-",
        causes(row, numbers),
        "0" if last.outcome == "empty" else members,
        f"{len(last.moved)}" if last.moved else "-",
        duration(row.longest_idle_ns) if row.longest_idle_ns else "-",
        row.epochs(),
        "" if last.packet is None else f"{last.packet}",
    ]


def is_bad(row: TableRow) -> bool:
    """Whether it took long, or did not come to an end."""
    return (row.length_ns or 0) > 10_000_000_000 or row.last.outcome in ("superseded", "unfinished")


def table(rows_shown: Sequence[TableRow], numbers: MemberNumbers, width: int) -> Iterator[Pieces]:
    """The table's lines: a head, and one or more a row."""
    texts = [cells(row, numbers) for row in rows_shown]
    columns = list(range(len(HEADS)))
    widths = [max(_head_width(head), *(len(text[at]) for text in texts)) for at, head in enumerate(HEADS)]
    for column in (PACKET, EPOCH):
        if _spare(columns, widths, width) < min(widths[WHY], AMPLE_WHY):
            columns.remove(column)
    widths[WHY] = min(widths[WHY], max(_spare(columns, widths, width), SHORTEST_WHY))
    heads = [wrap(head, widths[at]) for at, head in enumerate(HEADS)]
    lines = max(len(heads[at]) for at in columns)
    heads = [[""] * (lines - len(head)) + head for head in heads]
    yield from ([(line, "note")] for line in _lines(heads, columns, widths))
    for text, row in zip(texts, rows_shown, strict=True):
        style = "bad" if is_bad(row) else "plain"
        wrapped = [_wrapped(cell, widths[at]) for at, cell in enumerate(text)]
        yield from ([(line, style)] for line in _lines(wrapped, columns, widths))


def _wrapped(text: str, width: int) -> list[str]:
    """A cell's lines. A word that is too long is broken after its parts, as a client's id has them."""
    lines = [""]
    for word in text.split():
        parts = [word] if len(word) <= width else _PARTS.findall(word)
        for number, part in enumerate(parts):
            space = " " if lines[-1] and not number else ""
            if len(lines[-1]) + len(space) + len(part) <= width:
                lines[-1] += space + part
                continue
            lines += [""] if lines[-1] else []
            lines[-1:] = [part[at : at + width] for at in range(0, len(part), width)]
    return lines


def _head_width(head: str) -> int:
    """The least width at which a heading has at most `HEAD_LINES` lines."""
    width = max(map(len, head.split()), default=1)
    while len(wrap(head, width)) > HEAD_LINES:
        width += 1
    return width


def _spare(columns: Sequence[int], widths: Sequence[int], width: int) -> int:
    """What these columns leave of a line for the cause."""
    return width - 3 - sum(widths[at] for at in columns if at != WHY) - 2 * (len(columns) - 1)


def _lines(texts: Sequence[list[str]], columns: Sequence[int], widths: Sequence[int]) -> Iterator[str]:
    """A row's lines. texts: of each column, its lines."""
    for line in zip_longest(*(texts[at] for at in columns), fillvalue=""):
        parts = [
            text.rjust(widths[at]) if at in NUMBERS else text.ljust(widths[at])
            for at, text in zip(columns, line, strict=True)
        ]
        yield f"   {'  '.join(parts)}".rstrip()
