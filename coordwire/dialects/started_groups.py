"""Groups of drafts 1 and 2, whose coordinator pings its consumers, stops them and starts them.

Strategy: what the coordinator knows of a group is followed by what it sends and by how connections end. A
consumer is in from its registration on, once the coordinator has accepted it or has sent it a request. In
draft 2 it is out when its connection ends; in draft 1 once it was pinged in vain as often as its registration
allows, of which a connection that has ended shows nothing more: the coordinator's timers are followed then.
From the first Stop to the answer of the last Start the group rebalances; Stops once more are another attempt
of the same rebalance. In draft 2's overview no Stop is sent: a rebalance breaks connections, and ends with
the answers of the registrations, which list partitions.

Rules: all Stops of an attempt precede its Starts, so a Stop after them is another attempt; one whose awaited
consumer is given up has failed, as one with a Start that is answered too late, or not by all. A connection
that the coordinator ends without a ping that was in vain says nothing yet: its consumer registers again, or
is out when the next rebalance goes on without it. Registrations at another broker than before make that one
the coordinator. The end of a rebalance, which lists what all have, comes when as many frames as pay for it
were seen.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.dialects.draft_attempts import DraftAttempt, leaves_none_out, most_of_a_topic
from coordwire.dialects.draft_registrations import SOON_NS, DraftRegistration, ending_of, owned_parts
from coordwire.timeline.events import Leaving, MemberLeft, TopicPartition
from coordwire.timeline.evidence import Seen
from coordwire.timeline.group import Group
from coordwire.timeline.members import MOST_MEMBERS, Owned
from coordwire.timeline.rebalance import Trigger

WAITED_INTERVALS = 4
"""How long an overview's coordinator waits for a consumer whose connection it has broken, in ping intervals:
three of them are a session timeout."""

RETRIES = 4
"""After so many a coordinator tries no more, by default: that no attempt follows does not show then that the
last one has succeeded."""

MOST_REASONS = 100
MOST_PARTITIONS = 100_000
FEW_DEADLINES = 100
"""So many of a group's partitions are remembered."""

_CLOSED = "it closed its connection"
_JOINS = ("first_member", "new_member", "member_rejoined")
_NOTHING: Owned = frozenset()


class StartedGroup:
    """One group."""

    def __init__(self, group_id: str) -> None:
        self.group = Group(group_id, "draft")
        self._broker: str | None = None
        self._registrations: dict[str, DraftRegistration] = {}
        self._unanswered: dict[str, DraftRegistration] = {}  # not known to be accepted yet
        self._unserved: set[str] = set()  # in, connected, and without partitions yet
        self._lost: dict[str, DraftRegistration] = {}  # in, and their connections have ended
        self._missing: dict[str, DraftRegistration] = {}  # those of them who do not register again
        self._void: dict[str, DraftRegistration] = {}  # of these, those that the coordinator does not know
        self._owners: dict[str, DraftRegistration] = {}  # of these, those that may have partitions
        self._deadlines: list[tuple[int, int, DraftRegistration]] = []
        self._reasons: list[tuple[Trigger, Seen]] = []
        self._attempt: DraftAttempt | None = None
        self._suspended: tuple[DraftAttempt | None, int | None] = None, None  # of the coordinator before
        self._partitions: set[TopicPartition] = set()
        self._series_ns: int | None = None  # when the first attempt of the rebalance began
        self._awaited_ns: int | None = None  # until when an overview's coordinator waits for its consumers
        self._is_overview = False
        self._number = 0
        self._paid = 0  # frames since the last end of a rebalance, which lists what all have
        self._served: Seen | None = None  # where all were served, which is not paid for yet
        self._served_ns = 0  # when all of an overview's consumers were served last

    # --- frames ---

    @property
    def is_full(self) -> bool:
        """Whether so many consumers are in, or ask to be, that no others are looked at."""
        return len(self._registrations) + len(self._unanswered) >= MOST_MEMBERS

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
                registration.pinged, registration.failures = None, 0
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
                self._resume_attempt(registration, place)
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
        is_left_over = False
        if self._broker not in (None, registration.broker):
            self._move(registration.broker, place)
            is_left_over = (registration.place.time_ns or 0) < self._served_ns  # by one that comes back
        self._broker = registration.broker
        rejoined = name in group.members
        if rejoined and (attempt := self._attempt) is not None:
            self._leave_attempt(attempt, self._registrations[name], registration.place)
            # Its coordinator goes by what it was answered, also where it has nothing any more.
            if name in attempt.answered and not attempt.failed:
                registration.member.assigned = attempt.parts[name]
        if rejoined:
            trigger = Trigger("member_rejoined", name)
        else:
            trigger = Trigger(
                "new_member" if group.members else "first_member", name, inferred=not group.members
            )
        self._lost.pop(name, None)
        self._drop_missing(name)
        self._registrations[name] = registration
        self._unserved.add(name)
        registration.member.last_seen_ns = registration.place.time_ns
        group.add(registration.member, registration.place, rejoined=rejoined)
        self._add_reason(trigger, place if is_left_over else registration.place)

    def _refuse(self, registration: DraftRegistration) -> None:
        """A registration does not wait any longer."""
        if self._unanswered.get(registration.name) is registration:
            del self._unanswered[registration.name]
            self._note_missing(registration.name)
            if (lost := self._missing.get(registration.name)) is not None and lost.retries is not None:
                self._watch(lost)

    def _move(self, broker: str, place: Seen) -> None:
        """Another broker is the coordinator, which knows none of the consumers that are in."""
        self._add_reason(Trigger("coordinator_moved", detail="consumers register at another broker"), place)
        for name, registration in self._registrations.items():
            if registration.broker != broker:
                self._lost[name] = registration
                self._unserved.discard(name)
            elif registration.end is None:
                self._lost.pop(name, None)
                if not registration.is_served:
                    self._unserved.add(name)
        self._broker = broker
        for name in self._registrations:
            self._note_missing(name)
        self._suspended = self._attempt, self._series_ns
        self._attempt = self._series_ns = self._awaited_ns = None

    def _is_void(self, registration: DraftRegistration) -> bool:
        """Whether the coordinator does not know a consumer any more whose connection has ended."""
        return registration.retries is None or registration.broker != self._broker

    def end(self, registration: DraftRegistration, end: ConnectionEnd, place: Seen) -> None:
        """The connection of a registration has ended."""
        self._give_up_overdue(place)
        if end.sender == "client" and self._is_taken_up(registration, end.time_ns):
            self._accept(registration, place)
        self._refuse(registration)
        name = registration.name
        if self._registrations.get(name) is not registration or registration.end is not None:
            return
        overdue = end.sender == "broker" and registration.is_overdue(end.time_ns)
        registration.end = end
        self._unserved.discard(name)  # who registers again waits again
        if registration.retries is None:
            self.group.consumption.ends(name, end.time_ns)
        attempt = self._attempt
        if attempt is not None and registration.retries is None and registration.broker == self._broker:
            attempt.failed = True  # also where it was not stopped
        if overdue:
            self._remove(registration, place, "session_timeout")
        elif registration.retries is not None:
            self._lose(registration)
            self._watch(registration)
        elif end.sender == "client":
            self._remove(registration, place, "left")
        else:
            self._lose(registration)
            if self._is_overview and registration.is_served:
                until_ns = end.time_ns + WAITED_INTERVALS * registration.ping_ns
                self._awaited_ns = max(self._awaited_ns or 0, until_ns)
                detail = "the coordinator breaks its consumers' connections"
                self._add_reason(Trigger("unknown", inferred=True, detail=detail), place)

    def _is_taken_up(self, registration: DraftRegistration, time_ns: int | None) -> bool:
        """Whether an overview's coordinator took up a registration that it did not answer: a refusal is sent
        at once. What a coordinator that crashes had taken up it does not know any more."""
        waited_ns = (time_ns or 0) - (registration.place.time_ns or 0)
        return (
            self._is_overview and self._unanswered.get(registration.name) is registration
            and registration.broker == self._broker and waited_ns >= SOON_NS
        )  # fmt: skip

    def _give_up_overdue(self, place: Seen) -> None:
        """Remove those whose coordinator must have given them up by now."""
        time_ns = (place.time_ns or 0) - SOON_NS
        self._give_up(time_ns, place)
        attempt = self._attempt
        completed = None if attempt is None else attempt.completed
        if attempt is None or completed is None or (completed.time_ns or 0) >= time_ns:
            return
        if attempt.given_up is not None and attempt.number <= RETRIES:
            registration, given_up_ns = attempt.given_up
            if given_up_ns + registration.ping_ns < time_ns:
                self._end_without(attempt)
                return
        if attempt.failed:
            return
        if attempt.missing == len(self._missing):  # those that are missing have answered before
            self._end(attempt, completed)

    def _watch(self, registration: DraftRegistration) -> None:
        self._number += 1
        heappush(self._deadlines, (registration.deadline_ns, self._number, registration))
        if len(self._deadlines) > 2 * len(self._lost) + FEW_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if self._is_lost(entry[2])]
            heapify(self._deadlines)

    def _give_up(self, time_ns: int, place: Seen) -> None:
        while self._deadlines and self._deadlines[0][0] < time_ns:
            _, _, registration = heappop(self._deadlines)
            name = registration.name
            if self._is_lost(registration) and name not in self._unanswered:
                at_ns = registration.deadline_among(self._series_ns)
                self._remove(registration, place.at(at_ns), "session_timeout")

    def _is_lost(self, registration: DraftRegistration) -> bool:
        return self._lost.get(registration.name) is registration

    def _remove(self, registration: DraftRegistration, place: Seen, departure: Leaving) -> None:
        """A consumer is out."""
        group, name = self.group, registration.name
        self._lost.pop(name, None)
        self._drop_missing(name)
        self._unserved.discard(name)
        del self._registrations[name]
        if (attempt := self._attempt) is not None:
            had_failed = attempt.failed
            self._leave_attempt(attempt, registration, place)
            if attempt.failed and not had_failed and departure == "session_timeout":
                attempt.given_up = registration, place.time_ns or 0
            attempt.stopped.pop(name, None)
            attempt.answered.discard(name)
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
            self._attempt = self._series_ns = None
            self._reasons.clear()

    def _lose(self, registration: DraftRegistration) -> None:
        self._lost[registration.name] = registration
        self._note_missing(registration.name)

    def _note_missing(self, name: str) -> None:
        """Whether a consumer is lost and does not register again: anything of that has changed."""
        lost, waiting = self._lost.get(name), self._unanswered.get(name)
        if lost is not None and (waiting is None or waiting.broker != self._broker):
            self._count_missing(name, name not in self._missing)
            self._missing[name] = self._owners[name] = lost
            if self._is_void(lost):
                self._void[name] = lost
            else:
                self._void.pop(name, None)
        else:
            self._drop_missing(name)

    def _drop_missing(self, name: str) -> None:
        self._count_missing(name, -(name in self._missing))
        for missing in (self._missing, self._void, self._owners):
            missing.pop(name, None)

    def _count_missing(self, name: str, change: int) -> None:
        if self._attempt is not None and name in self._attempt.answered:
            self._attempt.missing += change

    def _remove_lost(self, place: Seen, departure: Leaving) -> None:
        """The group goes on without those whose connections the coordinator has ended."""
        time_ns = place.time_ns or 0
        self._give_up(time_ns + SOON_NS, place)
        if departure == "not_rejoined" and (self._awaited_ns is None or time_ns < self._awaited_ns - SOON_NS):
            departure = "removed"  # it did not wait for them: their connections were lost
        for registration in list(self._void.values()):
            end = registration.end
            if departure == "not_rejoined" and self._awaited_ns is not None:
                at = place.at(min(self._awaited_ns, time_ns))
            else:
                at = place if end is None else place.at(end.time_ns)
            self._remove(registration, at, departure)

    # --- rebalances ---

    def _leave_attempt(self, attempt: DraftAttempt, registration: DraftRegistration, place: Seen) -> None:
        """A coordinator of draft 1 that waits for a consumer's answer gives the attempt up with it."""
        is_awaited = registration.name not in attempt.answered and (
            registration.name in attempt.stopped or registration.end is not None
        )
        if is_awaited and registration.retries is not None and registration.broker == self._broker:
            attempt.failed |= (place.time_ns or 0) > (attempt.began.time_ns or 0)

    def _add_reason(self, trigger: Trigger, place: Seen) -> None:
        if len(self._reasons) < MOST_REASONS:
            self._reasons.append((trigger, place))

    def _reason(self) -> tuple[Trigger, Seen] | None:
        """The oldest of what may be why the coordinator rebalances now."""
        reasons = [reason for reason in self._reasons if reason[0].cause != "unknown"] or self._reasons
        return min(reasons, key=lambda reason: reason[1].time_ns or 0, default=None)

    def _begin(self, place: Seen) -> DraftAttempt:
        """The first Stop, or Start, of an attempt."""
        self._remove_lost(place, "removed")
        reason = self._reason()
        unknown = Trigger("unknown", inferred=True, detail="the coordinator stops its consumers")
        if self._series_ns is None:
            self._series_ns = place.time_ns
        self.group.begin(unknown if reason is None else reason[0], place)
        reasons = [*(self._attempt.reasons if self._attempt else ()), *self._reasons][:MOST_REASONS]
        self._reasons.clear()
        number = 1 if self._attempt is None else self._attempt.number + 1
        attempt = self._attempt = DraftAttempt(place, number, reasons=reasons)
        return attempt

    def _stop(self, registration: DraftRegistration, place: Seen) -> None:
        name = registration.name
        if self._registrations.get(name) is not registration:
            return
        self._resume(registration, place)
        attempt = self._attempt
        if attempt is not None and (name in attempt.stopped or attempt.parts):  # all Stops precede all Starts
            self._give_up((place.time_ns or 0) + SOON_NS, place)
            waited_ns = (place.time_ns or 0) - (attempt.began.time_ns or 0)
            is_early = waited_ns < registration.answer_ns - SOON_NS  # for one that waited for all
            has_cause = bool(self._reasons_since(attempt))  # else it failed with one given up meanwhile
            if is_early and has_cause and attempt.completed is not None and not attempt.failed:
                self._end(attempt, attempt.completed)
            elif attempt.given_up is not None and self._has_joined_since(attempt.given_up[1]):
                self._end_without(attempt)
            attempt = None
        if attempt is None or attempt.failed:
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

    def _resume_attempt(self, registration: DraftRegistration, place: Seen) -> None:
        """An answer to a Start of the coordinator that another one, which was frozen, seemed to follow."""
        attempt, series_ns = self._suspended
        if attempt is None or registration.broker == self._broker:
            return
        if attempt.stopped.get(registration.name) is registration:
            self._move(registration.broker, place)
            self._attempt, self._series_ns = attempt, series_ns
            self._reasons.clear()

    def _start(self, registration: DraftRegistration, parts: Owned, place: Seen) -> None:
        name = registration.name
        if self._registrations.get(name) is not registration:
            return
        self._resume(registration, place)
        attempt = self._attempt or self._begin(place)
        attempt.stopped[name] = registration
        attempt.parts[name] = parts
        if len(attempt.started) < MOST_PARTITIONS:
            attempt.started |= parts
        if len(self._partitions) < MOST_PARTITIONS:
            self._partitions |= parts
        registration.starts(place)
        if not attempt.covers and len(attempt.started) >= len(self._partitions):
            attempt.covers = True  # so the others have nothing
            owners, self._owners = self._owners, {}
            serves_all = leaves_none_out(attempt)
            names, most = sorted(attempt.stopped), most_of_a_topic(attempt.started)
            for missing in list((self._missing if serves_all else owners).values()):
                would_have_some = bisect_left(names, missing.name) < most  # ranges go in the order of names
                has_had_some = bool(missing.member.assigned) and would_have_some
                if has_had_some or (serves_all and missing.name not in attempt.stopped):
                    at = min(missing.deadline_ns, attempt.began.time_ns or 0)
                    self._remove(missing, place.at(at), "session_timeout")
                    self._explain(attempt)

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
        if name not in attempt.answered:
            attempt.answered.add(name)
            attempt.missing += name in self._missing
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
        must_cover = registration.retries is not None  # draft 1 sends nothing where a connection has ended
        if (attempt.covers or not must_cover) and attempt.missing == len(self._missing):
            self._end(attempt, place)
        elif attempt.covers:  # another attempt may follow, without those who can't answer
            attempt.completed = place

    def _end(self, attempt: DraftAttempt, place: Seen, *, is_last: bool = False) -> None:
        if not is_last and self._paid < len(self.group.members):
            attempt.completed = place
            return
        self._paid = 0
        self._attempt = self._series_ns = None
        for name, registration in self._lost.items():
            if name not in attempt.answered:
                self.group.assign(registration.member, None)
        self.group.end("steady", place)
        self._reasons = self._reasons_since(attempt)

    def _end_without(self, attempt: DraftAttempt) -> None:
        """End an attempt that no other one follows: all have answered, and the coordinator had given the lost
        consumer up before it, earlier than by its pings."""
        if attempt.given_up is None or attempt.completed is None:
            return
        name = attempt.given_up[0].name
        attempt.given_up, attempt.failed = None, False
        self._reasons = [
            reason for reason in self._reasons if reason[0].member_id != name or reason[0].cause in _JOINS
        ]
        self._end(attempt, attempt.completed)

    def _has_joined_since(self, time_ns: int) -> bool:
        return any(
            reason.cause in _JOINS and (place.time_ns or 0) > time_ns for reason, place in self._reasons
        )

    def _reasons_since(self, attempt: DraftAttempt) -> list[tuple[Trigger, Seen]]:
        """Why the next rebalance may begin: what came later, and consumers that this one did without."""
        began_ns = attempt.began.time_ns or 0
        left_out = [reason for reason in attempt.reasons if self._is_left_out(reason[0], attempt)]
        return left_out + [reason for reason in self._reasons if (reason[1].time_ns or 0) > began_ns]

    def _is_left_out(self, trigger: Trigger, attempt: DraftAttempt) -> bool:
        registration = self._registrations.get(trigger.member_id or "")
        return (
            trigger.cause in _JOINS and registration is not None
            and registration.name not in attempt.stopped and registration.end is None
        )  # fmt: skip

    def _explain(self, attempt: DraftAttempt) -> None:
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
            self._served_ns = self._served.time_ns or 0
            self._served, self._awaited_ns, self._paid = None, None, 0

    # --- the end ---

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self._give_up_overdue(place)
        attempt = self._attempt
        if attempt is not None and attempt.completed is not None and not attempt.failed:
            self._end(attempt, attempt.completed, is_last=True)
        for waiting in list(self._unanswered.values()):
            if self._is_taken_up(waiting, place.time_ns):
                self._accept(waiting, place)
        self._end_served()
        self._remove_lost(place, "removed")
        if self._is_overview and self.group.rebalance is None and self._unserved:
            reason = self._reason()
            if reason is not None:
                self.group.begin(*reason)
        self.group.end("unfinished", place)
