"""A classic group's JoinGroups and the generations that they form.

Strategy: a JoinGroup begins something once it is known that it isn't refused: when it is answered, another
member is asked to join again, or the input ends; it counts from its request on. The first answer forms the
generation, the leader's lists its members: who isn't listed is out, and who is listed is in, even if its own
answer is never seen. Rules: a first JoinGroup that is merely given a member id (KIP-394) is not a join. An
answer with the generation that holds, or after a move with one from before, forms none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import has_pattern, wanted_topics
from coordwire.timeline.events import Cause
from coordwire.timeline.from_wire.classic_requests import joining_member
from coordwire.timeline.from_wire.classic_signs import ClassicSigns
from coordwire.timeline.from_wire.classic_state import MOST_REPLAYED, MOST_WAITING, MS, NEAR_NS, is_heir
from coordwire.timeline.from_wire.classic_timers import Departures
from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen, is_before, remember
from coordwire.timeline.rebalance import Rebalance, Why
from coordwire.timeline.rebalance_cause import of_generation, of_join

__all__ = ["ClassicJoins"]

_MEMBER_ID_REQUIRED = int(ErrorCode.MEMBER_ID_REQUIRED)
_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)

GIVES_MEMBER_ID = 4
"""The version from which JoinGroup gives a dynamic member its id before it lets it in."""


NEW_EPOCH = 2
"""What the first member of a new consumer group is given, which an empty classic group becomes."""


class ClassicJoins(ClassicSigns):
    """Joining, and generations."""

    def join_request(self, entry: FrameEntry, message: Any, place: Seen, host: str | None) -> None:
        self.let_in_listed()
        member = joining_member(entry, message, host)
        self.waiting.add(place, member)
        known = self.members.get(message.member_id)
        if known is not None:
            member.last_seen_ns = known.last_seen_ns
            known.last_seen_ns, known.parked = place.time_ns, True
            self.consumption.keeps(known.member_id, member.owned or frozenset(), place.time_ns)
        if message.member_id or message.group_instance_id or (entry.api_version or 0) < GIVES_MEMBER_ID:
            self.asks_to_join(member, place)

    def asks_to_join(self, member: Member, place: Seen) -> None:
        """A member that asks to be let in, and is not merely given an id."""
        self._expire_static(member, place)
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None:
            if member.member_id:
                rebalance.join(member.member_id, place.time_ns)
            return
        self.expire_all(place)
        why = of_join(
            self, member, moved_coordinator=self._moved_coordinator, known_from_start=self._known_from_start
        )
        self._moved_coordinator = self._moved_coordinator and why.cause != "coordinator_moved"
        remember(self._causes, place, why, MOST_WAITING)
        if member.member_id:
            remember(self._asked, member.member_id, place, MOST_WAITING)

    def join_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        member = self.waiting.pop(asked)
        if message.error_code:
            if asked in self._causes and _waited(asked, place):
                self._begin_with_joins()  # it was accepted, and another took its place meanwhile
            self._causes.pop(asked, None)
            if message.error_code != _REBALANCE_IN_PROGRESS:
                self._withdraw(request.member_id)
            elif member is not None and (member.member_id or message.member_id):
                # It waited, and is in the consumer group that this one becomes.
                member.member_id = member.member_id or message.member_id
                if member.member_id not in self.members:
                    self._let_in(member, self.members.of_instance(member.instance_id), asked)
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
            member = Member(request.member_id, instance_id=request.group_instance_id, classic=True)
        tentative = not member.member_id
        static = self.members.of_instance(member.instance_id)
        member.member_id = message.member_id
        generation = message.generation_id
        if self.generation is not None and generation < self.generation and self._has_moved(place):
            self._restore(generation, place)
        holds = generation == self.generation
        if holds and self._has_moved(place):  # which has lost what was not written
            if self.rebalance is not None and self.rebalance.generation is None:
                self.end("not_needed", place)
            # Another generation has the number of one that was lost, if a JoinGroup had to wait for it.
            waits = _waited(asked, place) or self._others_wait(place)
            holds = generation == self._written[0] or not waits
        if holds and self.rebalance is None and static is None:
            static = self._still_there(member, asked)
        if holds and self.rebalance is None and self.members:
            # The generation holds: a late answer, or a static member that is back.
            why = self._causes.pop(asked, None)
            if why is not None:
                why = why._replace(member_id=member.member_id, client_id=None)
                self.begin(why, asked).join(member.member_id, asked.time_ns)
            heard_ns = member.last_seen_ns
            self._let_in(member, static, place, steady=True)
            self._not_renewed(member.member_id, heard_ns)
            self.end("not_needed", place)
            return
        if generation != self.generation and self._is_late(place):
            return
        rebalance = self._rebalance_of(generation, member, asked, place)
        if tentative or member.member_id not in rebalance.joined:
            rebalance.join(member.member_id, asked.time_ns)
            why = rebalance.why
            if why.member_id is None and why.client_id == member.client_id:
                rebalance.why = why._replace(member_id=member.member_id, client_id=None)
        few = len(self.members) <= MOST_REPLAYED or bool(message.members)  # a list is as long anyway
        gone = self._departures_formed(asked, place) if rebalance.generation is None and few else {}
        self._let_in(member, static, place)
        if rebalance.generation is None and holds and not message.members:
            self.end("not_needed", place)
            return
        self._new_generation(rebalance, message, gone, place)

    def _others_wait(self, place: Seen) -> bool:
        """Whether JoinGroups wait since the coordinator has moved: a group whose generation holds would have
        answered them at once."""
        return len(self.waiting) <= MOST_REPLAYED and any(
            (seen.time_ns or 0) > self.available_ns and _waited(seen, place)
            for seen, _ in self.waiting.items()
        )

    def let_in_waiting(self, place: Seen) -> None:
        """Who waits to be let in is a member for its coordinator, with what it subscribes to now."""
        for seen, one in list(self.waiting.items()):
            name = one.member_id
            if name in self.members:
                self.members[name].subscribe(one)
            accepted = (self.rebalance is not None and name in self.rebalance.joined) or seen in self._causes
            waited_ns = (place.time_ns or 0) - (seen.time_ns or 0)
            if waited_ns > (one.rebalance_timeout_ms or 0) * MS:
                continue  # it isn't there any more, else it would have been answered
            if name and name not in self.members and accepted and is_before(seen, place):
                one.last_seen_ns = place.time_ns
                self.add(one, seen)

    def _let_in(self, member: Member, static: Member | None, place: Seen, *, steady: bool = False) -> None:
        old = self.members.get(member.member_id)
        self._listed.pop(member.member_id, None)
        if old is not None:
            old.subscribe(member)
            old.owned = member.owned
            old.rebalance_timeout_ms = member.rebalance_timeout_ms or old.rebalance_timeout_ms
            self._seen(old, place)
            old.answered_ns = place.time_ns
            return
        if static is not None:
            self._replace(static, member, place)
            if steady and self._written[1].pop(static.member_id, None) is not None:
                self._written[1][member.member_id] = member, member.topics, member.owned
            if self._formed is not None and (steady or member.member_id not in self._formed.named):
                if static.member_id not in self._formed.syncing:
                    self._formed.heir = member.member_id
                self._formed.syncing.add(member.member_id)  # none waits for that one's SyncGroup
        member.last_seen_ns = member.answered_ns = place.time_ns
        self.add(member, place, rejoined=static is not None)
        self._sessions.watch(member)

    def _rebalance_of(self, generation: int, member: Member, asked: Seen, place: Seen) -> Rebalance:
        """The rebalance that made the generation which a member is in."""
        rebalance: Rebalance | None = self.rebalance
        if rebalance is not None and rebalance.generation in (None, generation):
            self._causes.pop(asked, None)
            return rebalance
        rebalance = self._begin_with_joins()
        if rebalance is not None:
            return rebalance
        self.end("superseded", place)
        why = of_join(self, member, moved_coordinator=False, known_from_start=self._known_from_start)
        return self.begin(why, asked)

    # --- generations ---

    def _new_generation(self, rebalance: Rebalance, message: Any, gone: Departures, place: Seen) -> None:
        """gone: who must have been out by then."""
        if rebalance.generation is None:
            few = len(self.members) <= MOST_REPLAYED or bool(message.members)
            self._leave_before(rebalance, place)
            self._forms(rebalance, gone if few else None, place)
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
            rebalance.name(tuple(one.member_id for one in message.members))
            if rebalance.heir in rebalance.named:  # it joined that generation itself
                rebalance.syncing.discard(rebalance.heir)
                rebalance.heir = None
            if rebalance.named != before:
                self._still_in(rebalance.named, place)
                self._let_in_named(message.members, place)
            self._drop_missing(rebalance, before, place)
        rebalance.why = of_generation(rebalance)

    def _leave_before(self, rebalance: Rebalance, place: Seen) -> None:
        """A generation is formed without members who would be awaited: their LeaveGroups, which are answered
        after it, let it form."""
        found = [one for one in self._leaving if one in self.members and one not in rebalance.joined]
        if found:
            rebalance.patience_ns = self._patience_ns()
        for name in found:
            if not rebalance.patience_ns or not rebalance.waited_out(place.time_ns, NEAR_NS):
                self._leaves(name)

    def _forms(self, rebalance: Rebalance, gone: Departures | None, place: Seen) -> None:
        """All who are in the new generation are answered now, those included that are dead.
        gone: None if that is not to be looked at for each of many members."""
        self._formed, self._formed_ns, self._gone_by = rebalance, place.time_ns, gone or {}
        if gone is not None:
            rebalance.patience_ns = self._patience_ns()
            for one in self.members.values():
                if one.member_id not in gone:
                    one.last_seen_ns, one.parked = place.time_ns, False

    def _restore(self, generation: int, place: Seen) -> None:
        """The coordinator goes on with a generation that was written; a later one is lost."""
        self.end("not_needed", place)
        self.generation = generation
        written, members = self._written
        if written == generation and len(self.waiting) <= MOST_REPLAYED:
            waiting = {one.member_id for one in self.waiting.members()}
            for name in [one for one in self.members if one not in members and one not in waiting]:
                self.remove(name, place, "removed", inferred=True)  # it came after what was written
        for name, (member, topics, owned) in members.items() if written == generation else ():
            known = self.members.get(name, member)
            known.topics, known.owned = topics, owned
            if name not in self.members:
                member.last_seen_ns, member.parked = place.time_ns, False
                self.add(member, place, rejoined=True)
                self._sessions.watch(member)

    def _still_in(self, named: frozenset[str], place: Seen) -> None:
        """Members that a generation has which were taken to be out: their coordinator moved meanwhile."""
        for name in [one for one in self._presumed if one in named and one not in self.members]:
            member = self._presumed.pop(name)
            member.last_seen_ns, member.parked = place.time_ns, False
            self.add(member, place, rejoined=True)
            self._sessions.watch(member)

    def still_in_by(self, request: Any, message: Any, place: Seen) -> None:
        """A member joins by KIP-848: if the epoch that it is given is the generation, but for its own coming,
        all are in, though all seemed to be out: their coordinator moved meanwhile."""
        epoch = message.member_epoch
        if self.members or self.generation is None or has_pattern(wanted_topics(request) or ()):
            return
        if epoch <= NEW_EPOCH:
            return
        last = [one for one in self._presumed.values() if one.generation == self.generation]
        heir = any(one.instance_id == request.instance_id for one in last if one.instance_id is not None)
        if epoch == self.generation + (0 if heir else 1):
            self._still_in(frozenset(one.member_id for one in last), place)

    def _still_there(self, heir: Member, asked: Seen) -> Member | None:
        """A static member that was taken to be out, in whose place another is in the generation that holds: a
        new one would have formed another."""
        for name, member in self._presumed.items():
            if heir.instance_id is not None and member.instance_id == heir.instance_id:
                self.members[name] = self._presumed.pop(name)
                detail = f"as {heir.instance_id}"
                self._causes[asked] = Why("static_member_returned", heir.member_id, detail=detail)
                return member
        return None

    def _let_in_named(self, named: Any, place: Seen) -> None:
        """Members that the leader's answer lists, and whose own answers may never be seen."""
        if len(self.waiting) > MOST_REPLAYED:
            return
        waiting = list(self.waiting.members())
        for one in named:
            name, instance_id = one.member_id, one.group_instance_id
            if name in self.members:
                continue
            asked = [
                joining for joining in waiting
                if joining.member_id == name
                or (instance_id is not None and not joining.member_id and joining.instance_id == instance_id)
            ]  # fmt: skip
            if not asked:
                continue  # its JoinGroup isn't in the input
            member = replace(asked[-1], member_id=name, parked=False)
            member.last_seen_ns = member.answered_ns = place.time_ns
            self._listed[name] = member, place

    def _drop_missing(self, rebalance: Rebalance, before: frozenset[str], place: Seen) -> None:
        """Members that the new generation has no more. before: those that it was said to have already; all
        others of the members have joined since."""
        named, members = rebalance.named, self.members
        if not before:
            rebalance.patience_ns = rebalance.patience_ns or self._patience_ns()
            for one in named:
                if one in members and one not in self._gone_by:
                    members[one].last_seen_ns, members[one].parked = place.time_ns, False
        earlier, generation = rebalance.generation_before, rebalance.generation
        skipped = earlier is not None and generation is not None and generation > earlier + 1
        late_ns = (rebalance.joined_ns or 0) - NEAR_NS  # who joined after that may be in the next one
        gone = (
            one
            for one in before or members
            if one not in named and (skipped or (rebalance.joined.get(one, -1) or late_ns) < late_ns)
        )
        waiting = self.waiting.items() if len(self.waiting) <= MOST_REPLAYED else ()
        statics = ((seen, one, members.of_instance(one.instance_id)) for seen, one in waiting)
        heirs = {one.instance_id for seen, one, static in statics if static and is_heir(one, seen, static)}
        for one in sorted((one for one in gone if one in members), key=lambda one: members[one].serial):
            if one in self._leaving:  # its LeaveGroup let the generation form, and is answered after it
                self._leaves(one)
                continue
            if members[one].instance_id in heirs:
                continue  # another takes its place, once that one's JoinGroup is answered
            how, when = self._went(members[one], rebalance, place)
            self.remove(one, when, how, inferred=True)
            went_first = (when.time_ns or 0) <= (rebalance.began.time_ns or 0)
            if rebalance.is_unexplained or went_first:
                cause: Cause = "session_timeout" if how == "session_timeout" else "member_removed"
                why = Why(cause, one, inferred=True, detail="it isn't in the new generation")
                rebalance.explain(why, when)


def _waited(asked: Seen, place: Seen) -> bool:
    """Whether a request wasn't answered at once."""
    return (place.time_ns or 0) - (asked.time_ns or 0) > NEAR_NS
