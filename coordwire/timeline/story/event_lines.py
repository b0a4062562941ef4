"""The lines of a timeline for people, of one event each.

Strategy: pieces of text with the names of their styles. Rules: text from outside reaches the terminal with
its control characters escaped; what is inferred is called "presumably".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from coordwire.capture.printable import Pieces, quoted, shown
from coordwire.enums import ErrorCode
from coordwire.timeline.events import (
    BrokerAway,
    CaptureHole,
    CoordinatorFound,
    CoordinatorStalled,
    ErrorMet,
    GroupConfigured,
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    OffsetReset,
    ProducerFenced,
    RebalanceBegan,
    RebalanceCost,
    RebalanceEnded,
    TopicChanged,
    TopicPartition,
    TransactionStep,
    Unanswered,
)
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.story_links import StoryLinks, ending_text
from coordwire.timeline.story.wording import (
    CAUSES,
    COMES,
    GOES,
    LEAVINGS,
    count,
    duration,
    error_name,
    ranges,
    stamp,
)

__all__ = ["EventLines", "deletion_text", "reset_text", "settings_text", "stall_text", "topic_text"]

SLOW_NS = 10_000_000_000
MS = 1_000_000
MOST_GAPS = 4
SILENT = "it was silent for longer than its session timeout"
"""The part of a cause's detail that repeats the cause."""


class EventLines:
    """numbers: those of members; one_day: whether all events are of one day, so that times suffice;
    packet_width: of the column of packet numbers, 0 for none; links: what lines owe to others."""

    def __init__(
        self,
        numbers: MemberNumbers,
        *,
        one_day: bool,
        packet_width: int = 0,
        links: StoryLinks | None = None,
    ) -> None:
        self._links = links or StoryLinks()
        self._numbers = numbers
        self._one_day = one_day
        self._packet_width = packet_width
        self.margin = 19 + (packet_width + 2 if packet_width else 0)
        """Columns before an event's words: margin, time, packet, sign."""

    def time(self, event: GroupEvent) -> Pieces:
        """The time, and the packet that shows the event."""
        packet = "" if event.packet is None else str(event.packet)
        column = f"{packet:>{self._packet_width}}  " if self._packet_width else ""
        return [(f"   {self.clock(event)}  {column}", "time")]

    def clock(self, event: GroupEvent) -> str:
        """The time alone, or the number where there is none."""
        return f"#{event.number}" if event.time_ns is None else self._clock(event.time_ns)

    def _clock(self, time_ns: int) -> str:
        time = stamp(time_ns)
        return time.partition(" ")[2] if self._one_day else time

    def pieces(self, event: GroupEvent) -> Pieces:
        match event:
            case GroupConverted():
                member = f" by {self.name(event.member_id)}" if event.member_id else ""
                text = f"the group {_presumably(event)}goes on as a {event.kind} group, no longer a "
                text += f"{event.kind_before} one{member}"
                return [("⇄ ", "busy"), (text, "busy")]
            case GroupDeleted():
                return [("✗ ", "busy"), (deletion_text(event), "busy")]
            case RebalanceCost():
                return self._cost(event)
            case CoordinatorFound():
                verb = "moved to" if event.moved else "is"
                text = f"coordinator {verb} node {event.node_id} at {shown(event.host)}:{event.port}"
                return [("· ", "note"), (text, "busy" if event.moved else "note")]
            case BrokerAway():
                return [("✗ ", "bad"), (self._away(event), "bad")]
            case CoordinatorStalled():
                return [("✗ ", "bad"), (stall_text(event, self._clock), "bad")]
            case ProducerFenced():
                return [
                    ("✗ ", "bad"),
                    (f"{fenced_text(event, self.name(event.member_id), self._clock)}", "bad"),
                ]
            case OffsetReset():
                by = f" by {shown(event.client_id)}" if event.client_id else ""
                return [("✗ ", "busy"), (f"committed offset changed{by}: {reset_text(event)}", "busy")]
            case TopicChanged():
                return [("⟳ ", "busy"), (topic_text(event), "busy")]
            case GroupConfigured():
                return [("⟳ ", "busy"), (settings_text(event), "busy")]
            case CaptureHole():
                text = f"the capture lacks {count(event.size, 'byte')} of {self.name(event.member_id)}"
                return [("? ", "busy"), (f"{text}, {shown(event.flow)}", "busy")]
            case MemberJoined():
                return self._joined(event)
            case MemberLeft():
                return self._leaving(event)
            case RebalanceBegan():
                return [
                    ("⟳ ", "busy"),
                    ("rebalance: ", "busy"),
                    (self.cause(event), "plain"),
                    *self._detail(event),
                ]
            case RebalanceEnded():
                return self._ended(event)
            case ErrorMet(api="OffsetCommit" | "TxnOffsetCommit"):
                return []  # the commits themselves say so
            case ErrorMet():
                style = "note" if event.error_code == ErrorCode.REBALANCE_IN_PROGRESS else "bad"
                member = self.name(event.member_id or event.client_id)
                suffix = f" ({quoted(event.message, 200)})" if event.message else self.fenced(event)
                return [
                    ("✗ ", style),
                    (f"{member} {event.api}: {error_name(event.error_code)}{suffix}", style),
                ]
            case Unanswered():
                member = self.name(event.member_id or event.client_id)
                outcome = "an answer that couldn't be read" if event.unreadable else "no answer seen"
                return [("? ", "busy"), (f"{member} {event.api}: {outcome}", "busy")]
            case TransactionStep():
                return _transaction(event)
            case LagMeasured() if event.lag < 0:
                return _beyond(event)
        return []

    def _away(self, event: BrokerAway) -> str:
        text = f"coordinator {shown(event.broker)} ended {count(event.connections, 'connection')}"
        if event.until_ns is None:
            return f"{text}, and did not come back"
        by = "" if event.answered_by in (None, event.broker) else f" by {shown(event.answered_by or '')}"
        length = duration(event.until_ns - (event.time_ns or 0))
        return f"{text}; the next answer{by} came after {length}: sessions begin again"

    def _joined(self, event: MemberJoined) -> Pieces:
        word = "was in before" if event.was_in else "is back" if event.rejoined else "is in"
        pieces: Pieces = [("+ ", "in"), (self.name(event.member_id), "member"), (f" {word}", "plain")]
        notes = [f"client {shown(event.client_id)}"] if event.client_id else []
        notes += [f"from {shown(event.host)}"] if event.host else []
        notes += [f"static {shown(event.instance_id)}"] if event.instance_id is not None else []
        notes += [f"wants {shown(', '.join(event.topics))}"] if event.topics else []
        if event.session_timeout_ms:
            notes.append(f"session {duration(event.session_timeout_ms * MS)}")
        notes += [quoted(event.reason, 200)] if event.reason else []
        forebear = self._links.forebears.get(event.member_id)
        notes += [f"in place of {self.name(forebear)}"] if forebear is not None else []
        notes += self._expelled(event.member_id)
        pieces.append((f"  {', '.join(notes)}", "note"))
        if self.name(event.member_id) != shown(event.member_id):
            pieces.append((f"  {shown(event.member_id)}", "rule"))
        return pieces

    def _leaving(self, event: MemberLeft) -> Pieces:
        pieces: Pieces = [
            ("- ", "out"), (self.name(event.member_id), "member"),
            (f" {_presumably(event)}{LEAVINGS[event.how]}", "plain" if event.how == "left" else "out"),
        ]  # fmt: skip
        if event.reason:
            pieces.append((f"  {quoted(event.reason, 200)}", "note"))
        if event.inferred:
            notes = [ending_text(event.ending, self._clock)] if event.ending is not None else []
            notes += [f"packet {event.packet} shows that it is out"] if event.packet is not None else []
            if notes:
                pieces.append((f"  {'; '.join(notes)}", "note"))
        return pieces

    def fenced(self, event: ErrorMet | OffsetCommitted) -> str:
        """The member that has the same static name, with a space before, where that is why a request was
        refused."""
        heir = self._links.heirs.get(event.member_id or "")
        if event.error_code != ErrorCode.FENCED_INSTANCE_ID or heir is None:
            return ""
        return f" ({self.name(heir.member_id)} has its group.instance.id since {self.clock(heir)})"

    def _expelled(self, member_id: str | None) -> list[str]:
        """That a member's client was in before, and how that ended."""
        leaving = self._links.expelled.get(member_id or "")
        if leaving is None:
            return []
        departure = f"{_leaving_words(leaving)} at {self.clock(leaving)}"
        subject = "process" if member_id in self._links.processes else "client"
        return [f"the same {subject} as {self.name(leaving.member_id)}, which {departure}"]

    def _detail(self, event: RebalanceBegan) -> Pieces:
        """The evidence for a cause, and what is known about the member that caused it."""
        member = self._links.causer(event)
        of_death = event.cause in GOES and event.cause != "member_left"
        ending = self._links.endings.get((member or "", event.time_ns)) if of_death else None
        notes = [] if ending is None else [ending_text(ending, self._clock)]
        detail = event.detail.removesuffix(SILENT).rstrip("; ") if event.cause == "session_timeout" else ""
        detail = detail if event.cause == "session_timeout" else event.detail
        notes += [shown(detail)] if detail else []
        notes += self._expelled(member) if event.cause in COMES else []
        return [(f"  {'; '.join(notes)}", "note")] if notes else []

    def _ended(self, event: RebalanceEnded) -> Pieces:
        length = f" after {duration(event.length_ns)}" if event.length_ns else ""
        style = "bad" if (event.length_ns or 0) > SLOW_NS else "good"
        generation = "" if event.generation is None else f"generation {event.generation} "
        if event.outcome != "steady" and event.generation in (None, event.generation_before):
            generation = ""  # none was formed
        match event.outcome:
            case "steady":
                pieces: Pieces = [("✓ ", "good"), (f"{generation}steady{length}", style)]
            case "superseded":
                pieces = [("↻ ", "busy"), (f"{generation or 'the rebalance '}given up{length}", "busy")]
            case "not_needed":
                generation_number = (
                    event.generation if event.generation is not None else event.generation_before
                )
                generation_text = (
                    "the generation" if generation_number is None else f"generation {generation_number}"
                )
                pieces = [
                    ("✓ ", "good"),
                    (f"{generation_text} stays{length}, no rebalance was needed", "good"),
                ]
            case "empty":
                pieces = [("✓ ", "good"), (f"no member is left{length}", "good")]
            case _:
                pieces = [("? ", "busy"), (f"{generation}not finished{length}, when the input ends", "busy")]
        notes = [f"{event.protocol}"] if event.protocol else []
        notes += [f"leader {self.name(event.leader)}"] if event.leader else []
        shows_members = event.members and event.outcome != "not_needed"
        notes += [count(len(event.members), "member")] if shows_members else []
        notes += [f"last to join {self.name(event.last_to_join)}"] if event.last_to_join else []
        notes += _passed(event)
        if notes:
            pieces.append((f"  {shown(', '.join(notes))}", "note"))
        return pieces

    def below(self, event: RebalanceEnded) -> Iterator[Pieces]:
        pad = " " * (len(self.time(event)[0][0]) + 2)
        if event.idle:
            yield [(pad, "plain"), (f"without a consumer: {shown(_idle(event))}", "busy")]
        if event.outcome != "steady":
            return
        width = max((len(self.name(assignment.member_id)) for assignment in event.assignments), default=0)
        gains = {assignment.member_id: 0 for assignment in event.assignments}
        losses = dict(gains)
        for moved in event.moved:
            if moved.after in gains:
                gains[moved.after] += 1
            if moved.before in losses:
                losses[moved.before] += 1
        standby = {assignment.member_id: assignment.partitions for assignment in event.standby}
        for assignment in event.assignments:
            spare = ranges(standby.get(assignment.member_id, ()))
            counts = ("+", gains[assignment.member_id]), ("-", losses[assignment.member_id])
            change = " ".join(f"{sign}{number}" for sign, number in counts if number)
            yield [
                (pad, "plain"), (self.name(assignment.member_id).ljust(width), "member"),
                (f"  {shown(ranges(assignment.partitions)) or 'nothing'}", "plain"),
                (f"  standby {shown(spare)}" if spare else "", "plain"),
                (f"  {change}" if change else "", "note"),
            ]  # fmt: skip

    def _cost(self, event: RebalanceCost) -> Pieces:
        if not event.lag_before and not event.lag_after:
            return []
        waited = event.lag_after - event.lag_before
        partitions = count(event.partitions, "partition")
        text = f"lag of {partitions} without a consumer: {event.lag_before:,} → {event.lag_after:,}"
        if waited > 0:
            text += f": {count(waited, 'record')} waited"
        return [("· ", "note"), (text, "busy" if waited > 0 else "note")]

    def name(self, member_id: str | None) -> str:
        """A member as it is shown."""
        return self._numbers.name(member_id)

    def cause(self, event: RebalanceBegan | RebalanceEnded) -> str:
        """The cause of a rebalance, in words."""
        causer = self._links.causer(event)
        began_ns = event.began_ns if isinstance(event, RebalanceEnded) else event.time_ns
        ending = self._links.endings.get((causer or "", began_ns))
        words = CAUSES[event.cause]
        if event.cause == "session_timeout" and ending is not None and ending.unanswered_ns is not None:
            words = "{}'s session was over"  # its coordinator was what was silent
        text = words.format(self.name(causer))
        return f"presumably {text}" if event.inferred and event.cause != "unknown" else text


def deletion_text(event: GroupDeleted) -> str:
    """That a group was deleted, and by whom."""
    by = f" by {shown(event.client_id)}" if event.client_id else ""
    return f"the group was {_presumably(event)}deleted{by}"


def fenced_text(event: ProducerFenced, member: str, clock: Callable[[int], str]) -> str:
    """Who has a producer's transactional id. member: whose offsets are refused; clock: a time's text."""
    client = shown(event.client_id or "a producer")
    of_member = f" of {member}" if event.member_id else ""
    since = "" if event.since_ns is None else f" since {clock(event.since_ns)}"
    by = shown(event.by_client_id or "another producer")
    by = "another producer of this client" if event.by_client_id == event.client_id else by
    name = shown(event.transactional_id)
    return f"{client} was fenced: {by} has the transactional id {name}{since}; offsets{of_member} are refused"


def reset_text(event: OffsetReset) -> str:
    """What became of a committed offset."""
    before = "" if event.before is None else f" {event.before:,} →"
    after = "deleted" if event.offset is None else f"{event.offset:,}"
    return f"{shown(event.topic)}-{event.partition}{before} {after}"


def topic_text(event: TopicChanged) -> str:
    """What became of a topic, and by whom."""
    deed = f"was {event.deed}"
    if event.deed == "grown":
        deed = "was enlarged" + ("" if event.partitions is None else f" to {event.partitions:,} partitions")
    by = f" by {shown(event.client_id)}" if event.client_id else ""
    return f"topic {shown(event.topic)} {deed}{by}"


def settings_text(event: GroupConfigured) -> str:
    """Which settings of the group were changed, and by whom."""
    by = f" by {shown(event.client_id)}" if event.client_id else ""
    settings = (
        shown(name) + (f" = {value}" if value is not None else " changed") for name, value in event.settings
    )
    return f"settings of the group were changed{by}: {', '.join(settings)}"


def stall_text(event: CoordinatorStalled, clock: Callable[[int], str]) -> str:
    """From when to when a coordinator answered nothing. clock: a time's text."""
    waited = f"{count(event.requests, 'request')} waited"
    if event.until_ns is None:
        return f"the coordinator {shown(event.broker)} did not answer until the input ends: {waited}"
    length = duration(event.until_ns - (event.time_ns or 0))
    text = f"the coordinator {shown(event.broker)} did not answer for {length}, until {clock(event.until_ns)}"
    if event.answered_by not in (None, event.broker):
        text += f", when {shown(event.answered_by or '')} did"
    return f"{text}: {waited}"


def _presumably(event: GroupConverted | GroupDeleted | MemberLeft) -> str:
    """Before a verb, where what it says is inferred."""
    return "presumably " if event.inferred else ""


def _leaving_words(event: MemberLeft) -> str:
    return LEAVINGS[event.how]


def _passed(event: RebalanceEnded) -> list[str]:
    """The classic generations between this one and the one before, of which nothing was seen."""
    before, after = event.generation_before, event.generation
    if event.kind != "classic" or event.outcome != "steady" or before is None or after is None:
        return []
    if after < before + 2:
        return []
    first, last = before + 1, after - 1
    passed = f"generation {first}" if first == last else f"generations {first} to {last}"
    return [f"no member was seen in {passed}"]


def _beyond(event: LagMeasured) -> Pieces:
    """The line of a commit beyond the end."""
    position = f"{shown(event.topic)}-{event.partition} → {event.committed:,}"
    end = "its end" if event.reason == "committed_beyond_end" else "the end that was last seen"
    return [
        ("✗ ", "bad"),
        (f"committed {position}, {-event.lag:,} beyond {end}, {event.end_offset:,}", "bad"),
    ]


def _transaction(event: TransactionStep) -> Pieces:
    verbs = {"init": "starts", "add_partitions": "adds", "add_offsets": "adds the group's offsets"}
    name = f" {shown(event.transactional_id)}" if event.transactional_id else ""
    text = f"transaction{name} {verbs.get(event.step, event.step + 's')}"
    if event.partitions:
        text += f" {shown(ranges(event.partitions))}"
    text += f"  producer {event.producer_id} epoch {event.producer_epoch}"
    if event.error_code:
        return [("✗ ", "bad"), (f"{text}: {error_name(event.error_code)}", "bad")]
    return [("· ", "note"), (text, "note")]


def _idle(event: RebalanceEnded) -> str:
    """The partitions that had no consumer, those whose gaps read the same together, the longest first."""
    together: dict[str, Counter[TopicPartition]] = {}
    for gap in sorted(event.idle, key=lambda gap: gap.since_ns - gap.until_ns):
        gaps = together.setdefault(duration(gap.until_ns - gap.since_ns), Counter())
        gaps[TopicPartition(gap.topic, gap.partition)] += 1
    texts = []
    for length, gaps in together.items():
        for times in sorted(set(gaps.values()), reverse=True):
            often = "" if times == 1 else "twice " if times == 2 else f"{times:,} times "
            texts.append(f"{ranges(gap for gap in gaps if gaps[gap] == times)} {often}for {length}")
    hidden = len(texts) - MOST_GAPS
    return ", ".join(texts[:MOST_GAPS]) + (f" and {hidden:,} shorter gaps" if hidden > 0 else "")
