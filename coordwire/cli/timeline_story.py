"""A timeline for people: a block a group, its story told line by line.

Strategy: events gather by group; at the end each group's block is written: a head with what it amounts to,
then a line an event, with a rebalance's assignment below it; commits in a row become one line. Rules: what
gathers is bounded, and what was dropped is said; text from outside reaches the terminal with its control
characters escaped; an inferred cause is called "presumably".
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from coordwire.capture.model import format_time
from coordwire.cli import Failure
from coordwire.cli.body import Pieces, quoted
from coordwire.cli.error_names import ERROR_NAMES
from coordwire.cli.inputs import shown
from coordwire.groups.events import (
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
from coordwire.groups.story import GroupStory

MOST_EVENTS = 100_000
STYLES = {
    "head": "bold", "rule": "dim", "time": "dim", "note": "dim", "plain": "", "good": "green",
    "in": "bold green", "out": "bold yellow", "busy": "bold yellow", "bad": "bold red", "number": "cyan", "member": "cyan",
}  # fmt: skip
SLOW_NS = 10_000_000_000
REBALANCE_IN_PROGRESS = 27
SHORT = 8
"""Characters of a member id that are shown behind its client id."""

CAUSES = {
    "first_member": "{} is the first member",
    "new_member": "{} joins",
    "static_member_returned": "{} is back, a static member",
    "member_left": "{} left",
    "session_timeout": "{} was silent for longer than its session",
    "member_removed": "{} was removed",
    "member_fenced": "{} was fenced",
    "subscription_changed": "{} changed its subscription",
    "partitions_revoked": "{} gave up partitions and joins again",
    "leader_rejoined": "the leader {} joined again",
    "member_rejoined": "{} joined again",
    "assignment_changed": "the coordinator changed the assignment",
    "coordinator_moved": "the coordinator moved",
    "unknown": "the members were told to join again",
}
LEAVINGS = {
    "left": "left", "left_for_now": "left for now (static)", "session_timeout": "timed out",
    "removed": "was removed", "fenced": "was fenced", "not_rejoined": "didn't join again",
}  # fmt: skip


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
                cells = ((text, STYLES[style]) for text, style in line)
                self._console.print(Text.assemble(*cells), soft_wrap=True)
        if self._count > MOST_EVENTS:
            dropped = (
                f"… {self._count - MOST_EVENTS:,} more events; --format json, --since or --group show them"
            )
            self._console.print(dropped, style="bold yellow")


class _Block:
    """One group's lines."""

    def __init__(self, story: GroupStory, events: list[GroupEvent], width: int) -> None:
        self._story = story
        self._events = sorted(events, key=lambda event: event.time_ns or 0)
        self._width = width
        self._names = _short_names(events)
        days = {_day(event.time_ns) for event in events if event.time_ns is not None}
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
            span = f"{_stamp(story.first_ns)} for {duration(story.last_ns - story.first_ns)}: "
        parts = [_count(story.joined, "member"), _count(story.generations, "generation")]
        parts += [_count(story.commits, "commit")]
        yield span + ", ".join(parts), "plain"
        if story.rebalances:
            text = _count(story.rebalances, "rebalance")
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
        errors = {code: count for code, count in story.errors.items() if code != REBALANCE_IN_PROGRESS}
        if errors:
            told = ", ".join(f"{_error(code)} × {count}" for code, count in story.errors.most_common())
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
        time = _stamp(event.time_ns)
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
                return [("✗ ", "bad"), (f"{who} commits {where}: {_error(event.error_code)}", "bad")]
            case ErrorMet(api="OffsetCommit" | "TxnOffsetCommit"):
                return []  # the commits themselves say so
            case ErrorMet():
                style = "note" if event.error_code == REBALANCE_IN_PROGRESS else "bad"
                who = self._name(event.member_id or event.client_id)
                more = f" ({quoted(event.message, 200)})" if event.message else ""
                return [("✗ ", style), (f"{who} {event.api}: {_error(event.error_code)}{more}", style)]
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
        told = [f"client {shown(event.client_id)}"] if event.client_id is not None else []
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
        told += [_count(len(event.members), "member")] if event.members else []
        told += [f"last to join {self._name(event.last_to_join)}"] if event.last_to_join else []
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
            change = " ".join(f"{sign}{count}" for sign, count in counts if count)
            yield [
                (pad, "plain"), (self._name(one.member_id).ljust(width), "member"),
                (f"  {shown(ranges(one.partitions)) or 'nothing'}", "plain"), (f"  {change}", "note"),
            ]  # fmt: skip

    def _positions(self, events: list[GroupEvent]) -> Iterator[Pieces]:
        """Commits in a row, and the lags measured with them."""
        if not events:
            return
        offsets: dict[TopicPartition, list[int]] = {}
        lags: dict[TopicPartition, int] = {}
        who = ""
        for event in events:
            if isinstance(event, OffsetCommitted):
                offsets.setdefault(TopicPartition(event.topic, event.partition), []).append(event.offset)
                who = self._name(event.member_id or event.client_id)
            elif isinstance(event, LagMeasured):
                lags[TopicPartition(event.topic, event.partition)] = event.lag
        told = []
        for where in {**offsets, **lags}:
            steps = offsets.get(where, [])
            path = f" → {steps[-1]}" if steps else ""
            lag = f" (lag {lags[where]:,})" if where in lags else ""
            told.append(f"{where.topic}-{where.partition}{path}{lag}")
        verb = f"{who} commits" if offsets else "lag"
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
    text = f"transaction {shown(event.transactional_id)} {what.get(event.step, event.step + 's')}"
    if event.partitions:
        text += f" {shown(ranges(event.partitions))}"
    text += f"  producer {event.producer_id} epoch {event.producer_epoch}"
    if event.error_code:
        return [("✗ ", "bad"), (f"{text}: {_error(event.error_code)}", "bad")]
    return [("· ", "note"), (text, "note")]


def _go_together(first: GroupEvent, event: GroupEvent) -> bool:
    """Whether two positions may stand on one line: those of one member within a second."""
    if isinstance(event, OffsetCommitted) and isinstance(first, OffsetCommitted):
        if event.member_id != first.member_id or event.transactional_id != first.transactional_id:
            return False
    elif isinstance(event, OffsetCommitted):
        return False
    return abs((event.time_ns or 0) - (first.time_ns or 0)) < 1_000_000_000


def _short_names(events: list[GroupEvent]) -> dict[str, str]:
    """Member ids as they are shown: the client's name and some characters, where that tells them apart."""
    clients = {
        event.member_id: event.client_id or ""
        for event in events
        if isinstance(event, MemberJoined | MemberLeft)
    }
    short = {one: _shortened(one, client) for one, client in clients.items()}
    seen = list(short.values())
    return {one: name if seen.count(name) == 1 else shown(one) for one, name in short.items()}


def _shortened(member_id: str, client_id: str) -> str:
    prefix = f"{client_id}-" if client_id and member_id.startswith(f"{client_id}-") else ""
    rest = member_id[len(prefix) :]
    named = prefix or (f"{client_id}/" if client_id and client_id != member_id else "")
    return shown(f"{named}{rest}" if len(rest) <= 2 * SHORT else f"{named}{rest[:SHORT]}…")


def ranges(partitions: tuple[TopicPartition, ...]) -> str:
    """Partitions in short: "orders-0..3,7 payments-1"."""
    topics: dict[str, list[tuple[int, int]]] = {}
    for topic, number in sorted(partitions):
        runs = topics.setdefault(topic, [])
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return " ".join(
        f"{topic}-{','.join(str(low) if low == high else f'{low}..{high}' for low, high in runs)}"
        for topic, runs in topics.items()
    )


def duration(ns: int) -> str:
    """A length of time in units that people read."""
    if ns < 1_000_000:
        return f"{ns / 1e3:.0f} µs"
    if ns < 1_000_000_000:
        return f"{ns / 1e6:.0f} ms"
    if ns < 100_000_000_000:
        return f"{ns / 1e9:.3g} s" if ns < 10_000_000_000 else f"{ns / 1e9:.1f} s"
    minutes, seconds = divmod(ns // 1_000_000_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def _error(code: int) -> str:
    return ERROR_NAMES.get(code, f"error {code}")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _stamp(time_ns: int) -> str:
    return format_time(time_ns, 3).replace("T", " ").removesuffix("Z")


def _day(time_ns: int) -> Any:
    return time_ns // 86_400_000_000_000
