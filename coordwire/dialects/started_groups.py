"""Groups of drafts 1 and 2, whose coordinator pings its consumers, stops them and starts them.

Strategy: what the coordinator knows of a group is followed by what it sends and by how connections end. A
consumer is in from its registration on, once the coordinator has accepted it or has sent it a request. In
draft 2 it is out when its connection ends; in draft 1 once it was pinged in vain as often as its registration
allows, of which a connection that has ended shows nothing more: the coordinator's timers are followed then.
From the first Stop to the answer of the last Start the group rebalances; Stops once more are another attempt
of the same rebalance. In draft 2's overview no Stop is sent: a rebalance breaks connections, and ends with
the answers of the registrations, which list partitions.

Rules: a connection that the coordinator ends without a ping that was in vain says nothing yet: its consumer
registers again, or is out when the next rebalance goes on without it. Registrations at another broker than
before make that one the coordinator. A Start that is answered too late, or not by all, is a failed attempt.
The end of a rebalance, which lists what all have, comes when as many frames as pay for it were seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.timeline.consumer_data import owned
from coordwire.timeline.events import HowEnded, Leaving, MemberEnding, MemberLeft, TopicPartition
from coordwire.timeline.evidence import Seen, cited
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.rebalance import Trigger

__all__ = ["DraftRegistration", "StartedGroup", "ending_of", "owned_parts", "partition_of"]

MS = 1_000_000
SOON_NS = 100 * MS
"""A coordinator's timers may be late by so much, and what follows from one comes within it."""

MOST_REASONS = 100
MOST_PARTITIONS = 100_000
"""So many of a group's partitions are remembered."""

_CLOSED = "it closed its connection"
_NOTHING: Owned = frozenset()


def partition_of(reported: Any) -> TopicPartition:
    """A partition that the drafts call "broker-partition", as text."""
    broker, _, number = (reported.partition or "").rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        return TopicPartition(
            f"{reported.topic or ''}/{broker}" if broker else reported.topic or "", int(number)
        )
    return TopicPartition(f"{reported.topic or ''}/{reported.partition or ''}", -1)


def owned_parts(parts: Iterable[Any]) -> Owned:
    """The partitions of a Start or of a registration's answer."""
    return owned((partition.topic, [partition.partition]) for partition in map(partition_of, parts))


def ending_of(end: ConnectionEnd | None, last_place: Seen, at: Seen) -> MemberEnding:
    """How a member's connection ended, if it did, and its last message. at: when and where it was out."""
    last_sent = last_place.time_ns, cited(last_place, at)
    if end is None:
        return MemberEnding("open", None, (), *last_sent, None)
    ended: HowEnded = "closed" if end.sender == "client" else "closed_by_broker"
    ended = "reset" if end.kind == "rst" else ended
    packet = cited(Seen(end.time_ns, end.capture, 0, end.packet), at)
    return MemberEnding(ended, end.time_ns, () if packet is None else (packet,), *last_sent, None)


@dataclass(slots=True, eq=False)
class DraftRegistration:
    """A consumer's registration over one connection.

    broker: where; ping_ns, answer_ns: how often it is pinged, and how soon it must answer; retries: pings in
    vain that are allowed, None for a setting of the coordinator's. is_in: whether it is known to be accepted;
    is_served: whether its answer listed partitions. pinged: the last ping without an answer; pinged_ns: when
    the last one was sent; failures: those in vain before it; started: the last Start, without an answer;
    last_place: its last message; end: of its connection.
    """

    broker: str
    member: Member
    place: Seen
    ping_ns: int
    answer_ns: int
    retries: int | None
    is_in: bool = False
    is_served: bool = False
    pinged: Seen | None = None
    pinged_ns: int = 0
    failures: int = 0
    started: Seen | None = None
    last_place: Seen | None = None
    end: ConnectionEnd | None = None

    @classmethod
    def of(cls, entry: FrameEntry, message: Any, place: Seen) -> DraftRegistration:
        """The registration that a request asks for."""
        client, _, broker = entry.flow.partition(" > ")
        timeout = getattr(message, "session_timeout_ms", None)
        member = Member(
            message.consumer_id or "", host=client or None, topics=(message.topic_count or "",),
            session_timeout_ms=timeout,
        )  # fmt: skip
        if timeout is not None:
            third = max(timeout, 0) // 3 * MS
            return cls(broker, member, place, third, 2 * third, None)
        ping_ns = max(message.ping_interval_ms, 0) * MS
        return cls(broker, member, place, ping_ns, ping_ns, max(message.max_ping_retries, 0))

    @property
    def name(self) -> str:
        return self.member.member_id

    @property
    def deadline_ns(self) -> int:
        """When the coordinator of draft 1 gives the consumer up, if it never answers again."""
        allowed = (self.retries or 0) + 1
        if self.pinged is not None:
            deadline_ns = (self.pinged.time_ns or 0) + (allowed - self.failures) * self.ping_ns
        else:
            last_ns = self.pinged_ns or self.place.time_ns or 0
            deadline_ns = last_ns + (1 + allowed) * self.ping_ns
        if self.started is not None:
            deadline_ns = min(deadline_ns, (self.started.time_ns or 0) + allowed * self.ping_ns)
        return deadline_ns

    def is_overdue(self, time_ns: int) -> bool:
        """Whether the coordinator may have given it up by then, since it has not answered."""
        if self.retries is not None:
            return self.deadline_ns - SOON_NS <= time_ns
        return self.pinged is not None and time_ns - (self.pinged.time_ns or 0) >= self.answer_ns - SOON_NS


@dataclass(slots=True)
class _Attempt:
    """One attempt of a rebalance. stopped: the consumers that got a Stop, or a Start; parts: what each shall
    start; started: the partitions of all Starts; answered: the consumers that have; failed: whether it can't
    succeed any more; completed: where the last answer was seen, while others may be waited for that can't
    answer, or its end is not paid for yet."""

    began: Seen
    stopped: dict[str, DraftRegistration] = field(default_factory=dict)
    parts: dict[str, Owned] = field(default_factory=dict)
    started: set[TopicPartition] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    failed: bool = False
    completed: Seen | None = None


class StartedGroup:
    """One group."""

    def __init__(self, group_id: str) -> None:
        self.group = Group(group_id, "draft")
        self._broker: str | None = None
        self._registrations: dict[str, DraftRegistration] = {}
        self._unanswered: dict[str, DraftRegistration] = {}  # not known to be accepted yet
        self._unserved: set[str] = set()  # in, and without partitions yet
        self._lost: dict[str, DraftRegistration] = {}  # in, and their connections have ended
        self._missing: dict[str, DraftRegistration] = {}  # those of them who do not register again
        self._deadlines: list[tuple[int, int, DraftRegistration]] = []
        self._reasons: list[tuple[Trigger, Seen]] = []
        self._attempt: _Attempt | None = None
        self._partitions: set[TopicPartition] = set()
        self._is_overview = False
        self._number = 0
        self._paid = 0  # frames since the last end of a rebalance, which lists what all have
        self._served: Seen | None = None  # where all were served, which is not paid for yet

    # --- frames ---

    def register(self, registration: DraftRegistration) -> None:
        """A consumer asks to be in."""
        self._unanswered[registration.name] = registration
        self._note_missing(registration.name)

    def feed(self, registration: DraftRegistration, entry: FrameEntry, message: Any, place: Seen) -> None:
        """A message on the connection of a registration."""
        self._paid += 1
        self._give_up_overdue(place)
        code = getattr(message, "error_code", 0)
        match type(message).__name__:
            case "Draft2RegisterConsumerResponse" if not code:
                self._accept(registration, place)
                if entry.api_version:
                    self._serve(registration, owned_parts(message.assigned_parts), place)
            case "Draft2RegisterConsumerResponse":
                self._refuse(registration)
            case "Draft1PingRequest" | "Draft2PingRequest":
                self._accept(registration, place)
                registration.failures = message.num_retries
                registration.pinged, registration.pinged_ns = place, place.time_ns or 0
            case "Draft1PingResponse" | "Draft2PingResponse":
                self._note_message(registration, place)
                registration.pinged = None
            case "Draft1StopRequest" | "Draft2StopFetcherRequest":
                self._accept(registration, place)
                self._stop(registration, place)
            case "Draft2StopFetcherResponse":
                self._note_message(registration, place)
                self._answered(registration, entry, code, place)
                self.group.consumption.has(registration.name, _NOTHING, place.time_ns)
            case "Draft1StartRequest":
                self._accept(registration, place)
                self._start(registration, owned_parts(message.assigned_parts), place)
            case "Draft2StartFetcherRequest":
                self._accept(registration, place)
                parts = [part for thread in message.ownership_info for part in thread.assigned_parts]
                self._start(registration, owned_parts(parts), place)
            case "Draft1StartResponse" | "Draft2StartFetcherResponse":
                self._note_message(registration, place)
                registration.started, registration.failures = None, 0
                if self._answered(registration, entry, code, place):
                    self._take(registration, place)

    def _note_message(self, registration: DraftRegistration, place: Seen) -> None:
        registration.last_place = place
        registration.member.last_seen_ns = place.time_ns

    # --- who is in ---

    def _accept(self, registration: DraftRegistration, place: Seen) -> None:
        """The coordinator has the registration."""
        if registration.is_in:
            return
        registration.is_in = True
        self._refuse(registration)
        name, group = registration.name, self.group
        if self._broker not in (None, registration.broker):
            self._move(registration.broker, place)
        self._broker = registration.broker
        rejoined = name in group.members
        if rejoined:
            trigger = Trigger("member_rejoined", name)
        else:
            trigger = Trigger(
                "new_member" if group.members else "first_member", name, inferred=not group.members
            )
        self._lost.pop(name, None)
        self._missing.pop(name, None)
        self._registrations[name] = registration
        self._unserved.add(name)
        registration.member.last_seen_ns = registration.place.time_ns
        group.add(registration.member, registration.place, rejoined=rejoined)
        self._add_reason(trigger, registration.place)

    def _refuse(self, registration: DraftRegistration) -> None:
        """A registration does not wait any longer."""
        if self._unanswered.get(registration.name) is registration:
            del self._unanswered[registration.name]
            self._note_missing(registration.name)

    def _move(self, broker: str, place: Seen) -> None:
        """Another broker is the coordinator, which knows none of the consumers that are in."""
        self._add_reason(Trigger("coordinator_moved", detail="consumers register at another broker"), place)
        for name, registration in self._registrations.items():
            if registration.broker != broker:
                self._lost[name] = registration
            elif registration.end is None:
                self._lost.pop(name, None)
        self._broker = broker
        for name in self._registrations:
            self._note_missing(name)
        self._attempt = None

    def _is_void(self, registration: DraftRegistration) -> bool:
        """Whether the coordinator does not know a consumer any more whose connection has ended."""
        return registration.retries is None or registration.broker != self._broker

    def end(self, registration: DraftRegistration, end: ConnectionEnd, place: Seen) -> None:
        """The connection of a registration has ended."""
        self._give_up_overdue(place)
        self._refuse(registration)
        name = registration.name
        if self._registrations.get(name) is not registration or registration.end is not None:
            return
        overdue = end.sender == "broker" and registration.is_overdue(end.time_ns)
        registration.end = end
        if registration.retries is None:
            self.group.consumption.ends(name, end.time_ns)
        attempt = self._attempt
        if attempt is not None and name in attempt.stopped and name not in attempt.answered:
            attempt.failed = attempt.failed or registration.retries is None
        elif attempt is not None and name in attempt.stopped and registration.retries is None:
            attempt.failed = True
        if overdue:
            self._remove(registration, place, "session_timeout")
        elif registration.retries is not None:
            self._lose(registration)
            self._number += 1
            heappush(self._deadlines, (registration.deadline_ns, self._number, registration))
        elif end.sender == "client":
            self._remove(registration, place, "left")
        else:
            self._lose(registration)
            if self._is_overview and registration.is_served:
                detail = "the coordinator breaks its consumers' connections"
                self._add_reason(Trigger("unknown", inferred=True, detail=detail), place)

    def _give_up_overdue(self, place: Seen) -> None:
        """Remove those whose coordinator must have given them up by now."""
        time_ns = (place.time_ns or 0) - SOON_NS
        while self._deadlines and self._deadlines[0][0] < time_ns:
            _, _, registration = heappop(self._deadlines)
            name = registration.name
            if self._lost.get(name) is registration and name not in self._unanswered:
                self._remove(registration, place.at(registration.deadline_ns), "session_timeout")
        attempt = self._attempt
        completed = None if attempt is None else attempt.completed
        is_over = completed is not None and (completed.time_ns or 0) < time_ns and not self._missing
        if attempt is not None and completed is not None and is_over:
            self._end(attempt, completed)

    def _remove(self, registration: DraftRegistration, place: Seen, departure: Leaving) -> None:
        """A consumer is out."""
        group, name = self.group, registration.name
        self._lost.pop(name, None)
        self._missing.pop(name, None)
        self._unserved.discard(name)
        del self._registrations[name]
        if self._attempt is not None:
            self._attempt.stopped.pop(name, None)
            self._attempt.answered.discard(name)
        has_left = departure == "left"
        last_ns = registration.member.last_seen_ns
        detail = ""
        if not has_left and last_ns is not None and place.time_ns is not None:
            detail = f"silent for {max(place.time_ns - last_ns, 0) / 1e9:.3g} s"
        trigger = group.goes(
            name, place, departure, detail, reason=_CLOSED if has_left else None, inferred=not has_left
        )  # fmt: skip
        event = group.pending[-1]
        if not has_left and isinstance(event, MemberLeft):
            last_place = registration.last_place or registration.place
            group.pending[-1] = replace(event, ending=ending_of(registration.end, last_place, place))
        self._add_reason(trigger, place)
        if not group.members:
            group.end("empty", place)
            self._attempt = None
            self._reasons.clear()

    def _lose(self, registration: DraftRegistration) -> None:
        self._lost[registration.name] = registration
        self._note_missing(registration.name)

    def _note_missing(self, name: str) -> None:
        """Whether a consumer is lost and does not register again: anything of that has changed."""
        lost, waiting = self._lost.get(name), self._unanswered.get(name)
        if lost is not None and (waiting is None or waiting.broker != self._broker):
            self._missing[name] = lost
        else:
            self._missing.pop(name, None)

    def _remove_lost(self, place: Seen, departure: Leaving) -> None:
        """The group goes on without those whose connections the coordinator has ended."""
        for registration in list(self._missing.values()):
            if self._is_void(registration):
                end = registration.end
                at = place if departure == "not_rejoined" or end is None else place.at(end.time_ns)
                self._remove(registration, at, departure)
            elif registration.is_overdue(place.time_ns or 0):
                self._remove(registration, place.at(registration.deadline_ns), "session_timeout")

    # --- rebalances ---

    def _add_reason(self, trigger: Trigger, place: Seen) -> None:
        if len(self._reasons) < MOST_REASONS:
            self._reasons.append((trigger, place))

    def _reason(self) -> tuple[Trigger, Seen] | None:
        """The oldest of what may be why the coordinator rebalances now."""
        reasons = [reason for reason in self._reasons if reason[0].cause != "unknown"] or self._reasons
        return min(reasons, key=lambda reason: reason[1].time_ns or 0, default=None)

    def _begin(self, place: Seen) -> _Attempt:
        """The first Stop, or Start, of an attempt."""
        self._remove_lost(place, "removed")
        reason = self._reason()
        unknown = Trigger("unknown", inferred=True, detail="the coordinator stops its consumers")
        self.group.begin(unknown if reason is None else reason[0], place)
        self._reasons.clear()
        attempt = self._attempt = _Attempt(place)
        return attempt

    def _stop(self, registration: DraftRegistration, place: Seen) -> None:
        name = registration.name
        if self._registrations.get(name) is not registration:
            return
        self._resume(registration, place)
        attempt = self._attempt
        if attempt is not None and name in attempt.stopped and attempt.completed is not None:
            waited_ns = (place.time_ns or 0) - (attempt.began.time_ns or 0)
            if waited_ns < registration.answer_ns - SOON_NS:  # too early for one that waited for all
                self._end(attempt, attempt.completed)
        if attempt is None or attempt.failed or name in attempt.stopped:
            attempt = self._begin(place)
        self._explain(attempt)
        attempt.stopped[name] = registration
        if self.group.rebalance is not None:
            self.group.rebalance.join(name, place.time_ns)
        if registration.retries is not None:  # Stop is not answered there
            self.group.consumption.has(name, _NOTHING, place.time_ns)

    def _resume(self, registration: DraftRegistration, place: Seen) -> None:
        """A coordinator that another one seemed to have followed goes on with its consumers."""
        if registration.broker != self._broker and registration.end is None:
            self._move(registration.broker, place)

    def _start(self, registration: DraftRegistration, parts: Owned, place: Seen) -> None:
        name = registration.name
        if self._registrations.get(name) is not registration:
            return
        self._resume(registration, place)
        attempt = self._attempt or self._begin(place)
        attempt.stopped[name] = registration
        attempt.parts[name] = parts
        attempt.started |= parts
        registration.started = place
        if len(self._partitions) < MOST_PARTITIONS:
            self._partitions |= parts

    def _answered(self, registration: DraftRegistration, entry: FrameEntry, code: int, place: Seen) -> bool:
        """Whether a Stop or a Start of the attempt is answered as it should be; else that has failed."""
        attempt = self._attempt
        if attempt is None or registration.name not in attempt.stopped:
            return False
        request_ns = None if entry.request is None else entry.request.time_ns
        if request_ns is None or place.time_ns is None:
            is_late, is_older = False, False
        else:
            is_late = place.time_ns - request_ns >= registration.answer_ns > 0
            is_older = request_ns < (attempt.began.time_ns or 0)
        if not is_older and (code or is_late):
            attempt.failed = True
        return not (code or is_late or is_older)

    def _take(self, registration: DraftRegistration, place: Seen) -> None:
        """A consumer has started what its Start says."""
        attempt, name = self._attempt, registration.name
        if attempt is None or name not in attempt.parts:
            return
        attempt.answered.add(name)
        self._assign(registration, attempt.parts[name], place)
        if self.group.rebalance is not None:
            self.group.rebalance.sync(name)
        self._complete(registration, place)

    def _assign(self, registration: DraftRegistration, parts: Owned, place: Seen) -> None:
        self.group.assign(registration.member, parts)
        self.group.consumption.has(registration.name, parts, place.time_ns)

    def _complete(self, registration: DraftRegistration, place: Seen) -> None:
        """End the rebalance if all consumers have started."""
        attempt = self._attempt
        if attempt is None or attempt.failed or not attempt.stopped:
            return
        if len(attempt.answered) < len(attempt.stopped):
            return
        covers = len(attempt.started) >= len(self._partitions)
        if covers and attempt.completed is None:  # so the others have nothing
            for missing in list(self._missing.values()):
                if missing.member.assigned:
                    at = min(missing.deadline_ns, attempt.began.time_ns or 0)
                    self._remove(missing, place.at(at), "session_timeout")
                    self._explain(attempt)
        must_cover = registration.retries is not None  # draft 1 sends nothing where a connection has ended
        if not self._missing and (covers or not must_cover):
            self._end(attempt, place)
        elif covers:  # another attempt may follow, without those who can't answer
            attempt.completed = place

    def _end(self, attempt: _Attempt, place: Seen, *, is_last: bool = False) -> None:
        if not is_last and self._paid < len(self.group.members):
            attempt.completed = place
            return
        self._paid = 0
        self._attempt = None
        for registration in self._lost.values():
            self.group.assign(registration.member, None)
        self.group.end("steady", place)
        began_ns = attempt.began.time_ns or 0
        self._reasons = [reason for reason in self._reasons if (reason[1].time_ns or 0) > began_ns]

    def _explain(self, attempt: _Attempt) -> None:
        """What shows only now why the rebalance began."""
        rebalance, reason = self.group.rebalance, self._reason()
        if rebalance is not None and rebalance.is_unexplained and reason is not None:
            rebalance.explain(reason[0], attempt.began)
            self.group.begin(reason[0], attempt.began)
            self._reasons.clear()

    # --- draft 2's overview ---

    def _serve(self, registration: DraftRegistration, parts: Owned, place: Seen) -> None:
        """A registration's answer lists what its consumer owns: so all are answered that wait."""
        self._is_overview = True
        group, name = self.group, registration.name
        if group.rebalance is None:
            for waiting in [
                waiting for waiting in self._unanswered.values() if waiting.broker == registration.broker
            ]:
                self._accept(waiting, place)
            reason = self._reason()
            first = min((at for _, at in self._reasons), key=lambda at: at.time_ns or 0, default=place)
            group.begin(Trigger("unknown", inferred=True) if reason is None else reason[0], first)
            self._reasons.clear()
        self._served = None
        registration.is_served = True
        self._unserved.discard(name)
        self._assign(registration, parts, place)
        if group.rebalance is not None:
            group.rebalance.join(name, registration.place.time_ns)
            group.rebalance.sync(name)
        if not self._unserved:
            self._remove_lost(place, "not_rejoined")
            self._reasons.clear()
            self._served = place
            if self._paid >= len(group.members):
                self._end_served()

    def _end_served(self) -> None:
        if self._served is not None:
            self.group.end("steady", self._served)
            self._served, self._paid = None, 0

    # --- the end ---

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self._give_up_overdue(place)
        if self._attempt is not None and self._attempt.completed is not None:
            self._end(self._attempt, self._attempt.completed, is_last=True)
        self._end_served()
        self._remove_lost(place, "removed")
        if self._is_overview and self.group.rebalance is None and self._unserved:
            reason = self._reason()
            if reason is not None:
                self.group.begin(*reason)
        self.group.end("unfinished", place)
