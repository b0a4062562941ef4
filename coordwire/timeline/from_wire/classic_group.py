"""A classic group, by JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Strategy: a rebalance begins with its first sign, has its generation with the first answer to a JoinGroup, and
ends when all members that were seen joining have their assignment; a sign in between begins another.
`classic_state` has who is in and who is silent.

    JoinGroup   it begins something once it is known that it is not refused: when it is answered, another
                member is asked to join again, or the input ends; it counts from its request on. The first
                answer forms the generation, the leader's lists its members: a member that is not listed is
                out, and a listed one is in, even if its own answer is never seen. A first JoinGroup that is
                merely given a member id (KIP-394) is not a join. An answer with the current generation, or
                after a move with an earlier one, forms none.

Rules: a request that a connection sends after a JoinGroup takes effect after that one's answer. Frames may
come in any order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import assignment_of, has_pattern, wanted_topics
from coordwire.timeline.events import Cause
from coordwire.timeline.evidence import Seen, is_before, remember
from coordwire.timeline.from_wire.classic_requests import is_heir, joining_member, leavers
from coordwire.timeline.from_wire.classic_silence import MOST_REPLAYED, MS, NEAR_NS
from coordwire.timeline.from_wire.classic_state import MOST_WAITING, ClassicState
from coordwire.timeline.from_wire.classic_timers import Departures
from coordwire.timeline.from_wire.group_frames import place_of
from coordwire.timeline.from_wire.written_generation import WrittenGeneration
from coordwire.timeline.group import MOVED, UNAVAILABLE
from coordwire.timeline.members import Member
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.rebalance_cause import of_generation, of_join, of_joins
from coordwire.timeline.stalls import STALL_NS

__all__ = ["ClassicGroup"]

_NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)

_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)

_UNKNOWN_MEMBER_ID, _FENCED_INSTANCE_ID = int(ErrorCode.UNKNOWN_MEMBER_ID), int(ErrorCode.FENCED_INSTANCE_ID)

_MEMBER_ID_REQUIRED = int(ErrorCode.MEMBER_ID_REQUIRED)

GIVES_MEMBER_ID = 4
"""The version from which JoinGroup gives a dynamic member its id before it lets it in."""

NEW_EPOCH = 2
"""What the first member of a new consumer group is given, which an empty classic group becomes."""


class ClassicGroup(ClassicState):
    """One. place: where a frame was seen; request_place: where the request that it answers was."""

    # --- leaving ---

    def leave_request(self, message: Any, asking: FrameEntry, place: Seen) -> None:
        self._confirmed_leavers.clear()
        if not self.may_stall(place):
            self._leaving.clear()
        for leaver in leavers(self, asking, message):
            name = leaver.member_id
            remember(self._leaving, name, (place, leaver), MOST_WAITING)
            if leaver.departure == "left" and name in self.members:
                self.sends(self.members[name], place.time_ns or 0)

    def leave_response(
        self, request: Any, asking: FrameEntry, message: Any, place: Seen, request_place: Seen
    ) -> None:
        for answer in [message, *message.members]:
            name = getattr(answer, "member_id", request.member_id)
            if answer.error_code and self._leaving.pop(name, None) is not None:
                rebalance = self._overdue.pop(name, None)
                if rebalance is None or name not in self.members:
                    self.refused(answer.error_code, name, place)
                else:  # it was out when the generation was formed
                    self._missing_from(rebalance, self.members[name], place)
        if message.error_code:
            return
        leaving = leavers(self, asking, request, message)
        for name, reason, departure in leaving:
            overdue = self._overdue.pop(name, None)
            if overdue is not None and name in self._leaving:
                moment, trigger = self._leaves(name)
                if overdue is self.rebalance and is_before(moment, overdue.began):
                    overdue.explain(trigger, moment)
            self._leaving.pop(name, None)
            if name in self._confirmed_leavers or self.has_gone(name):
                continue
            member = self.members.get(name)
            moment = leave_place = request_place
            if member is not None and (member.answered_ns or 0) > (request_place.time_ns or 0):
                moment = leave_place = place  # its LeaveGroup waited for its JoinGroup's answer
            elif (place.time_ns or 0) - (request_place.time_ns or 0) >= STALL_NS:
                moment = place  # its coordinator did not read it before
                self.consumption.ends(name, request_place.time_ns)
            if self._causes and is_before(next(iter(self._causes)), leave_place):
                self._begin_with_joins()  # the rebalance waits for this member until now
            trigger = self.goes(name, moment, departure, reason or "LeaveGroup", reason=reason)
            self._known_from_start = True
            self._lose_member(trigger, moment)
        self._confirmed_leavers.clear()

    def refused(
        self, error_code: int, member_id: str, place: Seen, request_place: Seen | None = None
    ) -> None:
        """Apply an error code's meaning to the group. request_place: of a request that does not wait."""
        member = self.members.get(member_id)
        if error_code in UNAVAILABLE:
            if error_code in MOVED and not self.is_away:
                self.expire_all(place)
            self.clocks.unavailable(place)
            self._moved_coordinator |= error_code == _NOT_COORDINATOR
            if error_code in MOVED:
                self._silence.formed = None  # a group that is loaded waits for no SyncGroup
            if member is not None:
                self._renew(member, place)
        elif error_code == _REBALANCE_IN_PROGRESS:
            if member is not None:
                self._renew(member, place)
            self._asked_to_rejoin(place, request_place or place)
        elif member is not None and error_code == _UNKNOWN_MEMBER_ID:
            self._unknown(member, place)
        elif member is not None and error_code == _FENCED_INSTANCE_ID:
            moment = self._heir_came(member) or place
            self._lose_member(
                self.goes(member_id, place.at(moment.time_ns), "fenced", "FENCED_INSTANCE_ID"), place
            )
        elif member is not None:
            member.parked, member.unread = False, None
        elif error_code == _UNKNOWN_MEMBER_ID:
            self.is_told_unknown(member_id, place)

    def _unknown(self, member: Member, place: Seen) -> None:
        """The coordinator doesn't know a member any more."""
        self.is_told_unknown(member.member_id, place)
        if member.silence[1] - member.silence[0] > self.session_ns(member):
            member.asked_ns = member.silence[0]  # the request that shows it does not say that it lives
        elif not self.holes.count:
            member.asked_ns = 0
        member.unseen = False  # its silence counts again
        if self._asked_before(place.at((place.time_ns or 0) - NEAR_NS)):
            self._begin_with_joins()  # one that is refused would have been answered
        self._remove_all_meanwhile(place)
        if member.member_id not in self.members:
            return
        before = member.member_id in self._silence.gone_by  # the generation was formed without it
        few = len(self.members) <= MOST_REPLAYED
        replayed = self._departures(place.time_ns) if few else {}
        departure, moment = self._silence.departure_of_unknown(member, replayed, place)
        trigger = self.goes(member.member_id, moment, departure, "UNKNOWN_MEMBER_ID", inferred=True)
        self._known_from_start |= not self.members
        if not before or self.rebalance is None:
            self._lose_member(trigger, moment)

    def unreadable(self, request_place: Seen, error_code: int, member_id: str, place: Seen) -> None:
        """The answer to any of its requests couldn't be read whole, but perhaps its error code."""
        if self.waiting.pop(request_place) is not None and error_code:
            self._causes.pop(request_place, None)
            self._withdraw(member_id)
        if error_code:
            self.refused(error_code, member_id, place)

    def _withdraw(self, member_id: str) -> None:
        """A JoinGroup was refused."""
        if self.rebalance is not None and member_id:
            self.rebalance.withdraw(member_id)

    # --- JoinGroup and generations ---

    def join_request(self, entry: FrameEntry, message: Any, place: Seen, host: str | None) -> None:
        self.let_in_listed()
        self.let_leave()
        member = joining_member(entry, message, host)
        self.waiting.add(place, member)
        known = self.members.get(message.member_id)
        if known is None and self.has_gone(message.member_id):
            self.asks(message.member_id, place)
        if known is not None:
            self.sends(known, place.time_ns or 0)
            member.last_seen_ns = known.last_seen_ns
            known.last_seen_ns = place.time_ns
            self.park(known)
            self.consumption.keeps(known.member_id, member.owned or frozenset(), place.time_ns)
        if message.member_id or message.group_instance_id or (entry.api_version or 0) < GIVES_MEMBER_ID:
            self.asks_to_join(member, place)

    def asks_to_join(self, member: Member, place: Seen) -> None:
        """A member that asks to be let in, and is not merely given an id."""
        is_read = not self.may_stall(place)  # else its answer shows who was out before
        if is_read:
            self._expire_static(member, place)
        rebalance = self.rebalance
        if rebalance is not None and self._nobody_joined(rebalance) and is_read:
            self.expire_all(place)
            rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None:
            if member.member_id:
                rebalance.join(member.member_id, place.time_ns)
            return
        if is_read:
            self.expire_all(place)
        trigger = of_join(
            self,
            member,
            place,
            moved_coordinator=self._moved_coordinator,
            known_from_start=self._known_from_start,
        )
        self._moved_coordinator = self._moved_coordinator and trigger.cause != "coordinator_moved"
        remember(self._causes, place, trigger, MOST_WAITING)
        if member.member_id:
            remember(self._join_places, member.member_id, place, MOST_WAITING)

    def _nobody_joined(self, rebalance: Rebalance) -> bool:
        """Whether no member has joined again in a rebalance, which no move has lost."""
        is_under_way = rebalance.generation is None and not rebalance.joined
        return is_under_way and self.clocks.available_ns <= (rebalance.began.time_ns or 0)

    def join_response(
        self, request: Any, message: Any, request_entry: FrameEntry, place: Seen, host: str | None
    ) -> None:
        request_place = place_of(request_entry)
        member = self.waiting.pop(request_place)
        if message.member_id and not request.member_id:
            self.gives_id(message.member_id)
        if message.error_code:
            read_place = place.at(self.clocks.stalls.read_ns(request_place.time_ns or 0))
            if request_place in self._causes and _waited(read_place, place):
                self._begin_with_joins()  # it was accepted, and another took its place meanwhile
            self._causes.pop(request_place, None)
            if message.error_code != _REBALANCE_IN_PROGRESS:
                self._withdraw(request.member_id)
            elif member is not None and (member.member_id or message.member_id):
                # It waited, and is in the consumer group that this one becomes.
                member.member_id = member.member_id or message.member_id
                if member.member_id not in self.members:
                    self._admit(member, self.members.of_instance(member.instance_id), request_place)
                    member.last_seen_ns = place.time_ns
            known = self.members.get(request.member_id)
            if known is not None and member is not None:  # as before it asked
                known.last_seen_ns, known.parked = member.last_seen_ns, False
                if message.error_code == _REBALANCE_IN_PROGRESS:
                    known.subscribe(member)
            if message.error_code != _MEMBER_ID_REQUIRED:
                self.refused(message.error_code, request.member_id, place)
            return
        if member is None:
            member = joining_member(request_entry, request, host)
        tentative = not member.member_id
        static = self.members.of_instance(member.instance_id)
        member.member_id = message.member_id
        generation = message.generation_id
        if self.generation is not None and generation < self.generation and self._has_moved(place):
            self._restore(generation, place)
        is_current = generation == self.generation and not self._begins_anew(member, request_place, place)
        if is_current and self._has_moved(place):  # which has lost what was not written
            if self.rebalance is not None and self.rebalance.generation is None:
                self.end("not_needed", place)
            # Another generation has the number of one that was lost, if a JoinGroup had to wait for it.
            waits = _waited(request_place, place) or self._others_wait(place)
            is_current = generation == self._written.generation or not waits
        if is_current and self.rebalance is None and static is None:
            static = self._still_there(member, request_place)
        if is_current and self.rebalance is None and self.members:
            # The generation holds: a late answer, or a static member that is back.
            trigger = self._causes.pop(request_place, None)
            if trigger is not None:
                trigger = trigger._replace(member_id=member.member_id, client_id=None, asker=None)
                self.begin(trigger, request_place).join(member.member_id, request_place.time_ns)
            heard_ns = member.last_seen_ns
            self._admit(member, static, place, steady=True)
            self._not_renewed(member.member_id, heard_ns)
            self.end("not_needed", place)
            return
        if generation != self.generation and self._is_late(place):
            return
        if is_current and self._is_of_before(place):
            if not self.is_past(member.member_id, place):
                self._admit(member, static, place, steady=True)
            return
        rebalance = self._rebalance_of(generation, member, request_place, place)
        if tentative or member.member_id not in rebalance.joined:
            rebalance.join(member.member_id, request_place.time_ns)
            trigger = rebalance.trigger
            if trigger.asker is member:
                rebalance.trigger = trigger._replace(member_id=member.member_id, client_id=None, asker=None)
        few = len(self.members) <= MOST_REPLAYED or bool(message.members)  # a list is as long anyway
        departures = (
            self._departures_formed(request_place, place) if rebalance.generation is None and few else {}
        )
        self._admit(member, static, place)
        if rebalance.generation is None and is_current and not message.members:
            self.end("not_needed", place)
            return
        self._new_generation(rebalance, message, departures, place)

    def _begins_anew(self, first: Member, request_place: Seen, place: Seen) -> bool:
        """Whether the first member of a group joins, for whom others were waited: a generation that has the
        number of the last one is that of another group, as this one was deleted."""
        rebalance = self.rebalance
        if self.members or first.member_id in self._presumed or not _waited(request_place, place):
            return False
        trigger = next(iter(self._causes.values()), None) if rebalance is None else rebalance.trigger
        is_open = rebalance is None or rebalance.generation is None
        return is_open and trigger is not None and trigger.cause == "first_member"

    def _others_wait(self, place: Seen) -> bool:
        """Whether JoinGroups wait since the coordinator has moved: a group whose generation holds would have
        answered them at once."""
        return len(self.waiting) <= MOST_REPLAYED and any(
            (join_place.time_ns or 0) > self.clocks.available_ns and _waited(join_place, place)
            for join_place, _ in self.waiting.items()
        )

    def let_in_waiting(self, place: Seen) -> None:
        """Add the members that wait for an answer: the coordinator counts them, with their new
        subscriptions."""
        for join_place, member in list(self.waiting.items()):
            name = member.member_id
            if name in self.members:
                self.members[name].subscribe(member)
            accepted = (
                self.rebalance is not None and name in self.rebalance.joined
            ) or join_place in self._causes
            waited_ns = (place.time_ns or 0) - (join_place.time_ns or 0)
            if waited_ns > (member.rebalance_timeout_ms or 0) * MS:
                continue  # it isn't there any more, else it would have been answered
            if name and name not in self.members and accepted and is_before(join_place, place):
                member.last_seen_ns = place.time_ns
                self.add(member, join_place)

    def _admit(self, member: Member, static: Member | None, place: Seen, *, steady: bool = False) -> None:
        old = self.members.get(member.member_id)
        self._listed_members.pop(member.member_id, None)
        if old is not None:
            old.subscribe(member)
            old.owned = member.owned
            old.rebalance_timeout_ms = member.rebalance_timeout_ms or old.rebalance_timeout_ms
            self._renew(old, place)
            old.answered_ns = place.time_ns
            return
        if static is not None:
            self._replace(static, member, place)
            if steady:
                self._written.replace(static, member)
            formed = self._silence.formed
            if formed is not None and (steady or member.member_id not in formed.named):
                if static.member_id not in formed.syncing:
                    formed.heir = member.member_id
                formed.syncing.add(member.member_id)  # none waits for that one's SyncGroup
        member.last_seen_ns = member.answered_ns = place.time_ns
        self.add(member, place, rejoined=static is not None)
        self._sessions.watch(member)

    def _rebalance_of(self, generation: int, member: Member, request_place: Seen, place: Seen) -> Rebalance:
        """The rebalance that made the generation which a member is in."""
        rebalance: Rebalance | None = self.rebalance
        if rebalance is not None and rebalance.generation in (None, generation):
            joins = self._causes.pop(request_place, None)
            if joins is not None and rebalance.is_unexplained and is_before(request_place, rebalance.began):
                rebalance.explain(joins, request_place)  # it is seen late, after a lost packet
            return rebalance
        rebalance = self._begin_with_joins()
        if rebalance is not None:
            return rebalance
        self.end("superseded", place)
        trigger = of_join(
            self, member, request_place, moved_coordinator=False, known_from_start=self._known_from_start
        )
        return self.begin(of_joins([trigger])[1], request_place)

    # --- generations ---

    def _new_generation(
        self, rebalance: Rebalance, message: Any, departures: Departures, place: Seen
    ) -> None:
        """departures: who must have been out by then."""
        if rebalance.generation is None:
            rebalance.after_ns = self._since_ns
            few = len(self.members) <= MOST_REPLAYED or bool(message.members)
            self._leave_before(rebalance, place)
            self._forms(rebalance, departures if few else None, place)
            rebalance.generation, rebalance.joined_ns = message.generation_id, place.time_ns
            self._since_ns = place.time_ns or 0
            self._moved_coordinator = False
            self.unassign()
        rebalance.protocol = self.protocol = message.protocol_name or rebalance.protocol
        rebalance.leader = self.leader = message.leader or rebalance.leader
        self.generation, self._answered_ns = message.generation_id, place.time_ns or 0
        self.members[message.member_id].generation = message.generation_id
        if message.members:
            before = rebalance.named
            rebalance.name(tuple(member.member_id for member in message.members))
            self._silence.are_in(rebalance.named)
            if rebalance.heir in rebalance.named:  # it joined that generation itself
                rebalance.syncing.discard(rebalance.heir)
                rebalance.heir = None
            if rebalance.named != before:
                self._still_in(rebalance.named, place)
                self._let_in_named(message.members, place)
                self._came_too_late(rebalance)
            self._drop_missing(rebalance, before, place)
        rebalance.trigger = of_generation(rebalance)

    def _came_too_late(self, rebalance: Rebalance) -> None:
        """JoinGroups that came while a generation was formed without them begin the next rebalance."""
        late_ns = (rebalance.joined_ns or 0) - NEAR_NS
        for place, member in list(self.waiting.items()) if len(self.waiting) <= MOST_REPLAYED else ():
            name = member.member_id
            if not name or name in rebalance.named or name in self.members or place in self._causes:
                continue
            if (place.time_ns or 0) >= late_ns:
                rebalance.withdraw(name)
                self._causes[place] = Trigger("new_member", name)

    def _leave_before(self, rebalance: Rebalance, place: Seen) -> None:
        """A generation is formed without members who would be awaited: their LeaveGroups, which are answered
        after it, let it form."""
        leaver_ids = [
            member_id
            for member_id in self._leaving
            if member_id in self.members and member_id not in rebalance.joined
        ]
        if leaver_ids:
            rebalance.patience_ns = self._patience_ns()
        for name in leaver_ids:
            if self._is_overdue(name, rebalance, place):
                continue
            if not rebalance.patience_ns or not rebalance.waited_out(place.time_ns, NEAR_NS):
                self._leaves(name)

    def _is_overdue(self, name: str, rebalance: Rebalance, place: Seen) -> bool:
        """Whether a LeaveGroup waits since a stall: the generation was formed by it, or by the coordinator's
        clock before, as the answer to it will show."""
        is_overdue = (place.time_ns or 0) - (self._leaving[name][0].time_ns or 0) >= STALL_NS
        if is_overdue:
            self._overdue[name] = rebalance
        return is_overdue

    def _forms(self, rebalance: Rebalance, departures: Departures | None, place: Seen) -> None:
        """All members of the new generation are answered now, including those that are dead.
        departures: None if that is not to be looked at for each of many members."""
        self._silence.forms(rebalance, departures or {}, place)
        if departures is not None:
            rebalance.patience_ns = self._patience_ns()
            self._silence.heard_before = {}
            for member in self.members.values():
                if member.member_id not in departures:
                    self._silence.heard_before[member.member_id] = member.last_seen_ns or 0
                    member.last_seen_ns, member.parked = place.time_ns, False

    def _restore(self, generation: int, place: Seen) -> None:
        """The coordinator goes on with a generation that was written; a later one is lost."""
        self.end("not_needed", place)
        self.generation = generation
        written = self._written
        if written.generation != generation:
            return
        if len(self.waiting) <= MOST_REPLAYED:
            waiting = {member.member_id for member in self.waiting.members()}
            for name in [
                member_id
                for member_id in self.members
                if member_id not in written and member_id not in waiting
            ]:
                self.remove(name, place, "removed", inferred=True)  # it came after what was written
        for member in written.restored(self.members):
            if member.member_id not in self.members:
                member.last_seen_ns, member.parked = place.time_ns, False
                self.add(member, place, rejoined=True)
                self._sessions.watch(member)

    def still_in_by(self, request: Any, message: Any, place: Seen) -> None:
        """A member joins by KIP-848: if the epoch that it is given is the generation, but for its own coming,
        all are in, though all seemed to be out: their coordinator moved meanwhile. If it is a new group's,
        all were out, though they seemed to be in since a move."""
        epoch = message.member_epoch
        if epoch <= NEW_EPOCH and epoch < (self.generation or 0):
            self.unmoved_if_silent(place)
            return
        if self.members or self.generation is None or has_pattern(wanted_topics(request) or ()):
            return
        if epoch <= NEW_EPOCH:
            return
        last = [member for member in self._presumed.values() if member.generation == self.generation]
        heir = any(
            member.instance_id == request.instance_id for member in last if member.instance_id is not None
        )
        if epoch == self.generation + (0 if heir else 1):
            self._still_in(frozenset(member.member_id for member in last), place)

    def _still_there(self, heir: Member, request_place: Seen) -> Member | None:
        """A static member that was taken to be out, in whose place another is in the generation that holds: a
        new one would have formed another."""
        for name, member in self._presumed.items():
            if heir.instance_id is not None and member.instance_id == heir.instance_id:
                self.members[name] = self._presumed.pop(name)
                detail = f"as {heir.instance_id}"
                self._causes[request_place] = Trigger("static_member_returned", heir.member_id, detail=detail)
                return member
        return None

    def _let_in_named(self, named: Any, place: Seen) -> None:
        """Members that the leader's answer lists, and whose own answers may never be seen."""
        if len(self.waiting) > MOST_REPLAYED:
            return
        waiting = list(self.waiting.members())
        for listed_member in named:
            name, instance_id = listed_member.member_id, listed_member.group_instance_id
            if name in self.members:
                continue
            joins = [
                joining for joining in waiting
                if joining.member_id == name
                or (instance_id is not None and not joining.member_id and joining.instance_id == instance_id)
            ]  # fmt: skip
            if not joins:
                continue  # its JoinGroup isn't in the input
            if not joins[-1].member_id:
                self.gives_id(name)
            member = replace(joins[-1], member_id=name, parked=False)
            member.last_seen_ns = member.answered_ns = place.time_ns
            self._listed_members[name] = member, place

    def _drop_missing(self, rebalance: Rebalance, before: frozenset[str], place: Seen) -> None:
        """Remove the members that aren't in the new generation. before: the members that an earlier answer
        listed; all other members have joined since."""
        named, members = rebalance.named, self.members
        if not before:
            rebalance.patience_ns = rebalance.patience_ns or self._patience_ns()
            for member_id in named:
                if member_id in members and member_id not in self._silence.gone_by:
                    members[member_id].last_seen_ns, members[member_id].parked = place.time_ns, False
        earlier, generation = rebalance.generation_before, rebalance.generation
        skipped = earlier is not None and generation is not None and generation > earlier + 1
        late_ns = (rebalance.joined_ns or 0) - NEAR_NS  # who joined after that may be in the next one
        missing_ids = (
            member_id
            for member_id in before or members
            if member_id not in named
            and (skipped or (rebalance.joined.get(member_id, -1) or late_ns) < late_ns)
        )
        waiting = self.waiting.items() if len(self.waiting) <= MOST_REPLAYED else ()
        statics = (
            (join_place, joining, members.of_instance(joining.instance_id)) for join_place, joining in waiting
        )
        heirs = {
            joining.instance_id
            for join_place, joining, static in statics
            if static and is_heir(joining, join_place, static)
        }
        for member_id in sorted(
            (member_id for member_id in missing_ids if member_id in members),
            key=lambda member_id: members[member_id].serial,
        ):
            if member_id in self._leaving:  # its LeaveGroup let the generation form, and is answered after it
                if not self._is_overdue(member_id, rebalance, place):
                    self._leaves(member_id)
                continue
            if members[member_id].instance_id in heirs:
                continue  # another takes its place, once that one's JoinGroup is answered
            self._missing_from(rebalance, members[member_id], place)

    def _missing_from(self, rebalance: Rebalance, member: Member, place: Seen) -> None:
        """A member isn't in the generation of a rebalance."""
        earlier, last = rebalance.generation_before, member.generation
        departure, moment = self._silence.departure_from(rebalance, member, place)
        over_ns = self._over_unread_ns(member, place)
        if over_ns is not None:
            departure, moment = "session_timeout", place.at(over_ns)
        self.remove(member.member_id, moment, departure, inferred=True)
        if earlier is not None and earlier == self._unseen_generation != last:
            return  # it may have been missing from that one
        began_ns = rebalance.began.time_ns or 0
        if departure == "not_rejoined" and not rebalance.waited_out(place.time_ns, NEAR_NS):
            # A sync phase was over with a stall, before the join that waited was read.
            began_ns = self.clocks.stalls.read_ns(began_ns)
        went_first = rebalance.after_ns <= (moment.time_ns or 0) <= began_ns
        if rebalance.is_unexplained or went_first:
            cause: Cause = "session_timeout" if departure == "session_timeout" else "member_removed"
            detail = "it isn't in the new generation"
            rebalance.explain(Trigger(cause, member.member_id, inferred=True, detail=detail), moment)

    def _over_unread_ns(self, member: Member, place: Seen) -> int | None:
        """When the session was over of a member whose JoinGroup waits since a stall, and came too late."""
        join_place = self._join_places.get(member.member_id)
        joining = None if join_place is None else self.waiting.get(join_place)
        session_ns = self.session_ns(member)
        if join_place is None or joining is None or joining.last_seen_ns is None or not session_ns:
            return None
        stalls, asked_ns = self.clocks.stalls, join_place.time_ns or 0
        over_ns = stalls.after(max(joining.last_seen_ns, self.clocks.available_ns) + session_ns)
        return over_ns if asked_ns < stalls.read_ns(asked_ns) and over_ns <= (place.time_ns or 0) else None

    # --- the assignment ---

    def sync_request(self, message: Any, place: Seen) -> None:
        member, formed = self.members.get(message.member_id), self._silence.formed
        if member is not None:
            self.sends(member, place.time_ns or 0)
        if member is not None and not self.clocks.quiet_at(member, place.time_ns):
            self.park(member)
            if formed is not None and formed.generation == message.generation_id:
                over_ns = formed.over_ns(formed.joined_ns)
                if over_ns is None or place.time_ns is None or place.time_ns <= over_ns:
                    formed.syncing.add(member.member_id)
        self._causes.pop(self._join_places.pop(message.member_id, place), None)  # its JoinGroup was answered
        if not message.assignments or message.generation_id != self.generation:
            return
        if formed is not None and not formed.led:
            formed.led = True
            self._resume(formed, place)  # as the leader's assignments are there, all are answered
        for share in message.assignments:
            partitions = assignment_of(share, message.protocol_type)
            member = self.members.get(share.member_id)
            if partitions is not None and member is not None:
                self.assign(member, partitions)

    def sync_response(
        self, request: Any, message: Any, request_entry: FrameEntry, place: Seen, host: str | None
    ) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            if message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._unwritten(request.generation_id, place)
            return
        if self.is_past(request.member_id, place):
            return
        partitions = assignment_of(message, message.protocol_type)
        known = self.members.get(request.member_id)
        steady = self.rebalance is None or self.rebalance.is_stable_at(place_of(request_entry))
        heard_ns = None if known is None or not steady else known.last_seen_ns
        member = self._known(request, request.generation_id, request_entry, place, host)
        self._not_renewed(member.member_id, heard_ns)
        if partitions is not None:
            self.assign(member, partitions)
            self.consumption.has(member.member_id, partitions, place.time_ns)
        rebalance = self.rebalance
        if rebalance is None or request.generation_id != rebalance.generation:
            return
        rebalance.sync(request.member_id)
        rebalance.stable = rebalance.stable or place
        rebalance.synced_ns = place.time_ns
        if self._complete(rebalance):
            self.forget_joins(rebalance.joined_ns or 0)
            if rebalance.named or len(self.members) <= MOST_REPLAYED:
                self._written = WrittenGeneration(rebalance.generation, self.members.values())
            while self._causes and (next(iter(self._causes)).time_ns or 0) < self._answered_ns - NEAR_NS:
                self._causes.popitem(last=False)  # a generation was formed since
            self.end("steady", place)

    def _unwritten(self, generation: int, place: Seen) -> None:
        """The assignments of a generation could not be written: all must join again."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation == generation:
            self._disturbed(Trigger("unknown", detail="the assignments could not be written"), place)

    def _complete(self, rebalance: Rebalance) -> bool:
        """Whether all of the generation who were seen joining have their assignment."""
        if rebalance.unsynced_named if rebalance.named else rebalance.unsynced:
            return False
        # One whose id isn't known yet may be among those who are named.
        return not (rebalance.unjoined and self.waiting.has_nameless(rebalance.began.time_ns or 0))

    def refused_elsewhere(self, request_place: Seen, member_id: str) -> None:
        """A broker that is not the coordinator refused a request."""
        joining = self.waiting.pop(request_place)
        if joining is not None:
            self._causes.pop(request_place, None)
            self._withdraw(member_id)
        member = self.members.get(member_id)
        if member is not None:
            member.parked = False
            if joining is not None:
                member.last_seen_ns = joining.last_seen_ns

    # --- living, and the end ---

    def alive(
        self,
        request: Any,
        error_code: int,
        generation: int,
        request_entry: FrameEntry,
        place: Seen,
        host: str | None,
    ) -> None:
        """A heartbeat's answer, or that of a commit. generation: the one that its member is in; one that is
        over shows that the answer comes late, and nothing of now."""
        if error_code:
            self.refused(error_code, request.member_id, place, place_of(request_entry))
        elif generation < (self.generation or 0):
            return
        elif request.member_id and generation >= 0 and not self.is_past(request.member_id, place):
            self._known(request, generation, request_entry, place, host)

    def _known(
        self, request: Any, generation: int, request_entry: FrameEntry, place: Seen, host: str | None
    ) -> Member:
        """A member whose request was accepted. One that wasn't seen joining was in before, or the answer to
        its JoinGroup is missing."""
        member = self.members.get(request.member_id)
        if member is None:
            member = Member(
                request.member_id, request_entry.client_id, host, getattr(request, "group_instance_id", None),
                generation=generation, last_seen_ns=place.time_ns, classic=True,
            )  # fmt: skip
            self.add(member, place)
            if self.generation is None and self.rebalance is None:
                self.generation = generation
        self.stays(member, generation, place)
        return member

    def stays(self, member: Member, generation: int, place: Seen) -> None:
        """A member's request was accepted, which is in that generation."""
        self._renew(member, place)
        member.generation = generation
        if self.generation is not None and generation > self.generation:
            self._formed_unseen(generation, place)

    def _formed_unseen(self, generation: int, place: Seen) -> None:
        """A member is in this later generation, and the answers to JoinGroups are missing: the rebalance
        under way is over, and who has what isn't known."""
        rebalance = self._begin_with_joins() or self.rebalance
        self.generation, self._since_ns = generation, place.time_ns or 0
        self._unseen_generation = generation
        self.unassign()
        if rebalance is not None:
            rebalance.generation = generation
            self.end("steady", place)


def _waited(request_place: Seen, place: Seen) -> bool:
    """Whether a request wasn't answered at once."""
    return (place.time_ns or 0) - (request_place.time_ns or 0) > NEAR_NS
