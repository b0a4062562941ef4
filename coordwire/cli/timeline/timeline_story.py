"""A timeline for people: a block a group, its story told line by line.

Strategy: events gather by group; at the end each group's block is written: a head with what it amounts to,
then a line an event, with a rebalance's assignment below it; commits in a row become one line. Rules: what
gathers is bounded, and what was dropped is said; text from outside reaches the terminal with its control
characters escaped; an inferred cause is called "presumably".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from coordwire.cli import Failure
from coordwire.cli.inputs import shown
from coordwire.cli.message_lines import Pieces, quoted
from coordwire.cli.timeline.timeline_words import (
    CAUSES,
    LEAVINGS,
    count,
    day,
    duration,
    error_name,
    offset_text,
    ranges,
    short_names,
    stamp,
)
from coordwire.enums import ErrorCode
from coordwire.groups.group_totals import GroupStory
from coordwire.groups.timeline_events import (
    CoordinatorFound,
    ErrorMet,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    TransactionStep,
    Unanswered,
)

if TYPE_CHECKING:
    from rich.text import Text

MOST_EVENTS = 100_000
STYLES = {
    "head": "bold", "rule": "dim", "time": "dim", "note": "dim", "plain": "", "good": "green",
    "in": "bold green", "out": "bold yellow", "busy": "bold yellow", "bad": "bold red",
    "number": "cyan", "member": "cyan",
}  # fmt: skip
SLOW_NS = 10_000_000_000
HANGING = 19
"""Columns before an event's words: margin, time, sign."""


class StoryFormat:
    """Writes blocks to standard output, at the end."""

    def __init__(self) -> None:
        try:
            from rich.console import Console
        except ImportError:
            raise Failure(
                "the story needs rich: pip install 'coordwire[cli]' (--format json does without)"
            ) from None
        self._console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        self._width = max(self._console.width, 60)
        self._events: dict[str, list[GroupEvent]] = {}
        self._stories: dict[str, GroupStory] = {}
        self._count = 0

    def write(self, event: GroupEvent) -> None:
        self._stories.setdefault(event.group, GroupStory(event.group)).add(event)
        self._events.setdefault(event.group, [])
        self._count += 1
        if self._count <= MOST_EVENTS:
            self._events[event.group].append(event)

    def finish(self) -> None:
        from rich.text import Text

        for number, (group, events) in enumerate(self._events.items()):
            if number:
                self._console.print()
            for line in _Block(self._stories[group], events, self._width).lines():
                text = Text.assemble(*((text, STYLES[style]) for text, style in line))
                if self._console.is_terminal:
                    self._hang(text)
                else:
                    self._console.print(text, soft_wrap=True)
        if self._count > MOST_EVENTS:
            dropped = (
                f"… {self._count - MOST_EVENTS:,} more events; --format json, --since or --group show them"
            )
            self._console.print(dropped, style="bold yellow")

    def _hang(self, text: Text) -> None:
        """A line; what has no room in it goes on under its words, not under its time."""
        from rich.padding import Padding

        first = text.wrap(self._console, self._console.width)[0]
        self._console.print(first)
        rest = text.plain[len(first.plain) :].lstrip()
        if rest:
            self._console.print(Padding(text[-len(rest) :], (0, 0, 0, HANGING), expand=False))


class _Block:
    """One group's lines."""

    def __init__(self, story: GroupStory, events: list[GroupEvent], width: int) -> None:
        self._story = story
        self._events = sorted(events, key=lambda event: event.time_ns or 0)
        self._width = width
        self._names = short_names(events)
        days = {day(event.time_ns) for event in events if event.time_ns is not None}
        self._day = days.pop() if len(days) == 1 else None

    def lines(self) -> Iterator[Pieces]:
        yield from self._head()
        pending: list[GroupEvent] = []
        for event in self._events:
            if isinstance(event, OffsetCommitted | LagMeasured) and not getattr(event, "error_code", 0):
                if pending and not _go_together(pending[0], event):
                    yield from self._positions(pending)
                    pending = []
                pending.append(event)
                continue
            yield from self._positions(pending)
            pending = []
            yield from self._event(event)
        yield from self._positions(pending)

    def _head(self) -> Iterator[Pieces]:
        story = self._story
        name = shown(story.group) if story.group else "transactions of no group that is known"
        title = f"── {name} "
        kind = f"{story.kind} group " if story.kind else ""
        yield [
            (title, "head"), (kind, "note"), ("─" * max(self._width - len(title) - len(kind), 2), "rule")
        ]  # fmt: skip
        for text, style in self._sums():
            yield [("   ", "plain"), (text, style)]

    def _sums(self) -> Iterator[tuple[str, str]]:
        story = self._story
        span = ""
        if story.first_ns is not None and story.last_ns is not None:
            span = f"{stamp(story.first_ns)} for {duration(story.last_ns - story.first_ns)}: "
        parts = [count(story.joined, "member"), count(story.generations, "generation")]
        parts += [count(story.commits, "commit")]
        yield span + ", ".join(parts), "plain"
        if story.rebalances:
            text = count(story.rebalances, "rebalance")
            if story.rebalancing_ns:
                text += f", {duration(story.rebalancing_ns)} in all"
            if story.longest is not None and story.longest.length_ns:
                why = self._cause(story.longest)
                text += f"; the longest {duration(story.longest.length_ns)}: {why}"
            yield text, "plain"
        if story.lag:
            behind = {where: lag for where, lag in story.lag.items() if lag}
            most = max(behind, key=lambda where: behind[where], default=None)
            text = f"lag at the end {sum(behind.values()):,}"
            if most is not None:
                text += f", most in {shown(most.topic)}-{most.partition}: {behind[most]:,}"
            yield text, "busy" if behind else "good"
        errors = set(story.errors) - {ErrorCode.REBALANCE_IN_PROGRESS}
        if errors:
            told = ", ".join(f"{error_name(code)} × {times}" for code, times in story.errors.most_common())
            yield f"errors: {told}", "bad"

    def _event(self, event: GroupEvent) -> Iterator[Pieces]:
        pieces = self._said(event)
        if pieces:
            yield [*self._time(event), *pieces]
        if isinstance(event, RebalanceEnded):
            yield from self._assignments(event)

    def _time(self, event: GroupEvent) -> Pieces:
        if event.time_ns is None:
            return [(f"   #{event.number}  ", "time")]
        time = stamp(event.time_ns)
        if self._day is not None:
            time = time.partition(" ")[2]
        return [(f"   {time}  ", "time")]

    def _said(self, event: GroupEvent) -> Pieces:
        match event:
            case CoordinatorFound():
                verb = "moved to" if event.moved else "is"
                text = f"coordinator {verb} node {event.node_id} at {shown(event.host)}:{event.port}"
                return [("· ", "note"), (text, "busy" if event.moved else "note")]
            case MemberJoined():
                return self._joined(event)
            case MemberLeft():
                return self._left(event)
            case RebalanceBegan():
                return [
                    ("⟳ ", "busy"),
                    ("rebalance: ", "busy"),
                    (self._cause(event), "plain"),
                    *_detail(event),
                ]
            case RebalanceEnded():
                return self._ended(event)
            case OffsetCommitted():
                where = f"{shown(event.topic)}-{event.partition} → {event.offset}"
                who = self._name(event.member_id or event.client_id)
                return [("✗ ", "bad"), (f"{who} commits {where}: {error_name(event.error_code)}", "bad")]
            case ErrorMet(api="OffsetCommit" | "TxnOffsetCommit"):
                return []  # the commits themselves say so
            case ErrorMet():
                style = "note" if event.error_code == ErrorCode.REBALANCE_IN_PROGRESS else "bad"
                who = self._name(event.member_id or event.client_id)
                more = f" ({quoted(event.message, 200)})" if event.message else ""
                return [("✗ ", style), (f"{who} {event.api}: {error_name(event.error_code)}{more}", style)]
            case Unanswered():
                who = self._name(event.member_id or event.client_id)
                what = "an answer that couldn't be read" if event.unreadable else "no answer seen"
                return [("? ", "busy"), (f"{who} {event.api}: {what}", "busy")]
            case TransactionStep():
                return _transaction(event)
        return []

    def _joined(self, event: MemberJoined) -> Pieces:
        word = "is back" if event.rejoined else "is in"
        pieces: Pieces = [("+ ", "in"), (self._name(event.member_id), "member"), (f" {word}", "plain")]
        told = [f"client {shown(event.client_id)}"] if event.client_id else []
        told += [f"from {shown(event.host)}"] if event.host else []
        told += [f"static {shown(event.instance_id)}"] if event.instance_id is not None else []
        told += [f"wants {shown(', '.join(event.topics))}"] if event.topics else []
        told += [quoted(event.reason, 200)] if event.reason else []
        pieces.append((f"  {', '.join(told)}", "note"))
        if self._name(event.member_id) != shown(event.member_id):
            pieces.append((f"  {shown(event.member_id)}", "rule"))
        return pieces

    def _left(self, event: MemberLeft) -> Pieces:
        presumably = "presumably " if event.inferred else ""
        pieces: Pieces = [
            ("- ", "out"), (self._name(event.member_id), "member"),
            (f" {presumably}{LEAVINGS[event.how]}", "plain" if event.how == "left" else "out"),
        ]  # fmt: skip
        if event.reason:
            pieces.append((f"  {quoted(event.reason, 200)}", "note"))
        return pieces

    def _ended(self, event: RebalanceEnded) -> Pieces:
        length = "" if event.length_ns is None else f" after {duration(event.length_ns)}"
        style = "bad" if (event.length_ns or 0) > SLOW_NS else "good"
        generation = "" if event.generation is None else f"generation {event.generation} "
        match event.outcome:
            case "steady":
                pieces: Pieces = [("✓ ", "good"), (f"{generation}steady{length}", style)]
            case "superseded":
                pieces = [("↻ ", "busy"), (f"{generation}given up{length}: another begins", "busy")]
            case "not_needed":
                pieces = [("✓ ", "good"), (f"{generation}stays{length}", "good")]
            case "empty":
                pieces = [("✓ ", "good"), (f"nobody is left{length}", "good")]
            case _:
                pieces = [("? ", "busy"), (f"{generation}not finished{length}, when the input ends", "busy")]
        told = [f"{event.protocol}"] if event.protocol else []
        told += [f"leader {self._name(event.leader)}"] if event.leader else []
        told += [count(len(event.members), "member")] if event.members else []
        told += [f"last to join {self._name(event.last_to_join)}"] if event.last_to_join else []
        if told:
            pieces.append((f"  {shown(', '.join(told))}", "note"))
        return pieces

    def _assignments(self, event: RebalanceEnded) -> Iterator[Pieces]:
        if event.outcome != "steady":
            return
        pad = " " * (len(self._time(event)[0][0]) + 2)
        width = max((len(self._name(one.member_id)) for one in event.assignments), default=0)
        gains = {one.member_id: 0 for one in event.assignments}
        losses = dict(gains)
        for moved in event.moved:
            if moved.after in gains:
                gains[moved.after] += 1
            if moved.before in losses:
                losses[moved.before] += 1
        for one in event.assignments:
            counts = ("+", gains[one.member_id]), ("-", losses[one.member_id])
            change = " ".join(f"{sign}{number}" for sign, number in counts if number)
            yield [
                (pad, "plain"), (self._name(one.member_id).ljust(width), "member"),
                (f"  {shown(ranges(one.partitions)) or 'nothing'}", "plain"),
                (f"  {change}" if change else "", "note"),
            ]  # fmt: skip

    def _positions(self, events: list[GroupEvent]) -> Iterator[Pieces]:
        """Commits in a row, and the lags measured with them."""
        if not events:
            return
        offsets: dict[TopicPartition, int | None] = {}
        lags: dict[TopicPartition, int] = {}
        who = ""
        for event in events:
            if isinstance(event, OffsetCommitted):
                where = TopicPartition(event.topic, event.partition)
                offsets[where] = None if event.removed else event.offset
                who = event.member_id or event.client_id or who
            elif isinstance(event, LagMeasured):
                lags[TopicPartition(event.topic, event.partition)] = event.lag
        told = []
        for where in {**offsets, **lags}:
            path = "" if where not in offsets else f" → {offset_text(offsets[where])}"
            lag = f" (lag {lags[where]:,})" if where in lags else ""
            told.append(f"{where.topic}-{where.partition}{path}{lag}")
        verb = "lag" if not offsets else f"{self._name(who)} commits" if who else "committed"
        if any(isinstance(event, OffsetCommitted) and event.transactional_id for event in events):
            verb += " in a transaction"
        yield [
            *self._time(events[0]), ("· ", "note"), (f"{verb} ", "note"), (shown(", ".join(told)), "number")
        ]  # fmt: skip

    def _name(self, member_id: str | None) -> str:
        return "somebody" if member_id is None else self._names.get(member_id, shown(member_id))

    def _cause(self, event: RebalanceBegan | RebalanceEnded) -> str:
        text = CAUSES[event.cause].format(self._name(event.member_id))
        return f"presumably {text}" if event.inferred and event.cause != "unknown" else text


def _detail(event: RebalanceBegan) -> Pieces:
    return [(f"  {shown(event.detail)}", "note")] if event.detail else []


def _transaction(event: TransactionStep) -> Pieces:
    what = {"init": "starts", "add_partitions": "adds", "add_offsets": "adds the group's offsets"}
    name = f" {shown(event.transactional_id)}" if event.transactional_id else ""
    text = f"transaction{name} {what.get(event.step, event.step + 's')}"
    if event.partitions:
        text += f" {shown(ranges(event.partitions))}"
    text += f"  producer {event.producer_id} epoch {event.producer_epoch}"
    if event.error_code:
        return [("✗ ", "bad"), (f"{text}: {error_name(event.error_code)}", "bad")]
    return [("· ", "note"), (text, "note")]


def _go_together(first: GroupEvent, event: GroupEvent) -> bool:
    """Whether two positions may be on one line: those of one member within a second."""
    if isinstance(event, OffsetCommitted) and isinstance(first, OffsetCommitted):
        if event.member_id != first.member_id or event.transactional_id != first.transactional_id:
            return False
    elif isinstance(event, OffsetCommitted):
        return False
    return abs((event.time_ns or 0) - (first.time_ns or 0)) < 1_000_000_000
