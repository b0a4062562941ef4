"""The rebalances of a group as a table, a row each.

Strategy: a rebalance that another one overtakes goes on in that one, so that both are one row, with the
epochs of both. Rules: the columns keep their widths, whatever the terminal's; the cause takes what is left,
and is cut there; `--rebalance N` has all of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coordwire.capture.printable import Pieces
from coordwire.timeline.events import Cause, GroupEvent, MemberJoined, RebalanceEnded
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.wording import clock, duration

__all__ = ["TableRow", "causes", "rows", "table"]

GAP_NS = 1_000_000_000
"""A rebalance that begins later than this after one that was given up is not the same."""

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
_JOINS = frozenset({"first_member", "new_member"})


@dataclass(slots=True)
class TableRow:
    """One rebalance. parts: with those that it overtook, the last last; joined: who came meanwhile."""

    parts: list[RebalanceEnded]
    joined: tuple[str, ...] = ()

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
    for part in sorted(ended, key=lambda event: event.ended_ns or event.time_ns or 0):
        last = table_rows[-1].last if table_rows else None
        near = last is not None and (part.began_ns or 0) - (last.ended_ns or 0) <= GAP_NS
        if last is not None and last.outcome == "superseded" and near:
            table_rows[-1].parts.append(part)
        else:
            table_rows.append(TableRow([part]))
    for row in table_rows:
        if any(part.cause in _JOINS for part in row.parts) and row.began_ns and row.ended_ns:
            row.joined = tuple(
                event.member_id for event in joined if row.began_ns <= (event.time_ns or 0) <= row.ended_ns
            )
    return table_rows


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
        named_members = numbers.names(members) or numbers.name(None, clients.get(cause))
        text = _WHY[cause].format(named_members)
        texts.append(
            text.replace(" joins", " join") if " " in named_members and cause == "new_member" else text
        )
    reason = next(
        (part.detail for part in row.parts if part.cause in ("member_rejoined",) and part.detail), ""
    )
    return ", ".join(texts) + (f": {reason}" if reason else "")


def table(
    rows_shown: Sequence[TableRow], numbers: MemberNumbers, width: int, *, first: int = 1
) -> Iterator[Pieces]:
    """The table's lines: a head, and one a row. first: the number of the first row."""
    packets = len(str(max((row.last.packet or 0 for row in rows_shown), default=0)))
    texts = [_columns(number, row, packets) for number, row in enumerate(rows_shown, first)]
    heads = ["", "began", "epoch", "took", "in", "why", "moved", "idle ≤", "packet"]
    widths = [max(len(head), *(len(text[at]) for text in texts)) for at, head in enumerate(heads)]
    spare = width - 3 - sum(widths) + widths[5] - 2 * (len(heads) - 1)
    whys = [causes(row, numbers) for row in rows_shown]
    widths[5] = max(min(max(map(len, (*whys, "why"))), spare), 12)
    yield [("   " + _line(heads, widths), "note")]
    for text, cause, row in zip(texts, whys, rows_shown, strict=True):
        text[5] = cause if len(cause) <= widths[5] else f"{cause[: widths[5] - 1]}…"
        slow = (row.length_ns or 0) > 10_000_000_000
        unsettled = row.last.outcome in ("superseded", "unfinished")
        yield [("   " + _line(text, widths), "bad" if slow or unsettled else "plain")]


def _columns(number: int, row: TableRow, packets: int) -> list[str]:
    last = row.last
    length = duration(row.length_ns) if row.length_ns else "-"
    if last.outcome == "superseded":
        length = f"{length}, given up"
    elif last.outcome == "unfinished":
        length = f"{length}, not over"
    elif last.outcome == "not_needed":
        length = "not needed"
    members = f"{len(last.members)}" if last.members and last.outcome != "not_needed" else ""
    members = "0" if last.outcome == "empty" else members
    began = "" if row.began_ns is None else clock(row.began_ns)
    moved = len(last.moved)
    idle = duration(row.longest_idle_ns) if row.longest_idle_ns else "-"
    packet = "" if last.packet is None else f"{last.packet:>{packets}}"
    return [f"{number}", began, row.epochs(), length, members, "", f"{moved}" if moved else "-", idle, packet]


_RIGHT = {0, 4, 6, 8}


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        text.rjust(width) if at in _RIGHT else text.ljust(width)
        for at, (text, width) in enumerate(zip(texts, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
