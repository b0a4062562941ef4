"""The signs of a classic group's rebalances: what begins one, and why.

Strategy: a member that leaves, is refused, or is silent when another asks, and an answer that members shall
join again: each begins a rebalance, or another, if the one under way has its generation. JoinGroups that wait
are the cause if they came first. `rebalance_cause` infers why. Rules: a sign is dated to when it must have
happened.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from coordwire.enums import ErrorCode
from coordwire.timeline.events import Cause
from coordwire.timeline.from_wire.classic_requests import leavers
from coordwire.timeline.from_wire.classic_silence import TIMEOUT, ClassicSilence
from coordwire.timeline.from_wire.classic_state import MOST_REPLAYED, NEAR_NS, is_heir
from coordwire.timeline.group import MOVED, UNAVAILABLE
from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen, is_before
from coordwire.timeline.rebalance import Rebalance, Why
from coordwire.timeline.rebalance_cause import of_rejoin_demand

__all__ = ["ClassicSigns"]

_NOT_COORDINATOR = int(ErrorCode.NOT_COORDINATOR)
_REBALANCE_IN_PROGRESS = int(ErrorCode.REBALANCE_IN_PROGRESS)
_UNKNOWN_MEMBER_ID, _FENCED_INSTANCE_ID = int(ErrorCode.UNKNOWN_MEMBER_ID), int(ErrorCode.FENCED_INSTANCE_ID)


class ClassicSigns(ClassicSilence):
    """What begins rebalances."""

    def _begin_with_joins(self) -> Rebalance | None:
        """The JoinGroups that wait are why the group rebalances: begin that with the first of them."""
        if not self._causes:
            return None
        self._sync_phase_over(next(iter(self._causes)), near_ns=0)  # it may have been over before
        place, why = self._causes.popitem(last=False)
        others, self._causes = self._causes, OrderedDict()
        rebalance = self._disturbed(why, place)
        for one in (place, *others):
            member = self.waiting.get(one)
            if member is not None and member.member_id:
                rebalance.join(member.member_id, one.time_ns)
        return rebalance

    def _gone(self, why: Why, place: Seen) -> None:
        """A member is out."""
        self.let_in_listed()
        rebalance = self.rebalance
        if self.members:
            begun = self._disturbed(why, place)
            if begun.generation is None and (place.time_ns or 0) < (begun.began.time_ns or 0):
                begun.explain(why, place)
        elif rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
        elif not self.waiting:
            self.end("empty", place)

    def _disturbed(self, why: Why, place: Seen) -> Rebalance:
        """A sign that the members must join again: another rebalance, if this one has its generation."""
        rebalance = self.rebalance
        self.let_in_listed()
        self._drop_unlisted(place)
        if rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
            self._resume(rebalance, place)
        if self.rebalance is None and self._causes and is_before(next(iter(self._causes)), place):
            self._begin_with_joins()
        return self.begin(why, place)

    def _resume(self, over: Rebalance, place: Seen) -> None:
        """The members that waited for their assignments are answered that they must join again."""
        for name in over.syncing:
            member = self.members.get(name)
            if member is not None and member.parked and name not in self._asked and place.time_ns is not None:
                member.last_seen_ns = max(member.last_seen_ns or 0, place.time_ns)
                member.parked = False

    def _heir_came(self, static: Member) -> Seen | None:
        """Where the JoinGroup was seen that took a static member's place, if it isn't answered yet."""
        if len(self.waiting) > MOST_REPLAYED:
            return None
        return next((place for place, one in self.waiting.items() if is_heir(one, place, static)), None)

    def _asked_to_rejoin(self, place: Seen) -> None:
        """REBALANCE_IN_PROGRESS: the sign of a rebalance whose cause may not have been seen."""
        if self._is_late(place) or (self.rebalance is not None and self.rebalance.generation is None):
            return
        if self._begin_with_joins() is not None:
            return
        self._drop_unlisted(place)
        if self._sync_phase_over(place):
            return
        leaving = next((one for one in self._leaving if one in self.members), None)
        if leaving is not None:
            when, reason = self._leaves(leaving)
            self._gone(Why("member_left", leaving, detail=reason or "LeaveGroup"), when)
            return
        if self.rebalance is not None and self.rebalance.joined_ns is not None:
            self.waiting.forget_before(self.rebalance.joined_ns)
        first = self._sessions.first()
        soon_ns = None if place.time_ns is None else place.time_ns + NEAR_NS
        dead = first if first is not None and self.quiet_at(first, soon_ns) else None
        why = of_rejoin_demand(self, self.waiting.members(), dead)
        began = place
        if why.cause == "session_timeout" and dead is not None:
            began = place.at(self.quiet_until_ns(dead))
        self._disturbed(why, began)

    def _sync_phase_over(self, place: Seen, near_ns: int = NEAR_NS) -> bool:
        """Whether members that never asked for their assignment are out, as their time for that is over."""
        rebalance = self._formed
        over_ns = None if rebalance is None else rebalance.over_ns(rebalance.joined_ns)
        if rebalance is None or over_ns is None or (place.time_ns or 0) < over_ns - near_ns:
            return False
        self._formed = None  # it is asked once
        listed = rebalance.members or tuple(self.members)
        absent = [one for one in listed if one not in rebalance.syncing and one in self.members]
        when = place.at(over_ns)
        if not absent and rebalance.heir in self.members:
            detail = "the member in whose place it is never sent SyncGroup"
            self._disturbed(Why("static_member_returned", rebalance.heir, inferred=True, detail=detail), when)
            return True
        if not absent:
            return False
        for one in absent:
            self.remove(one, when, "not_rejoined", inferred=True)
        self._gone(Why("member_removed", absent[0], inferred=True, detail="it never sent SyncGroup"), when)
        return True

    # --- leaving ---

    def leave_request(self, message: Any, place: Seen) -> None:
        self._left.clear()
        self._leaving = {name: (place, reason) for name, reason in leavers(self, message)}

    def leave_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        if message.error_code:
            self._leaving.clear()
            self.refused(message.error_code, request.member_id, place)
            return
        leaving = leavers(self, request, message)
        for one in message.members:
            if one.error_code and self._leaving.pop(one.member_id, None) is not None:
                self.refused(one.error_code, one.member_id, place)
        for name, reason in leaving:
            self._leaving.pop(name, None)
            if name in self._left:
                continue
            member = self.members.get(name)
            when = asked
            if member is not None and (member.answered_ns or 0) > (asked.time_ns or 0):
                when = place  # its LeaveGroup waited for its JoinGroup's answer
            if self._causes and is_before(next(iter(self._causes)), when):
                self._begin_with_joins()  # the rebalance waits for this member until now
            self.remove(name, when, "left", reason=reason)
            self._known_from_start = True
            self._gone(Why("member_left", name, detail=reason or "LeaveGroup"), when)
        self._left.clear()

    def _leaves(self, member_id: str) -> tuple[Seen, str | None]:
        """A member whose LeaveGroup is not answered yet is out: others were answered for it."""
        when, reason = self._leaving.pop(member_id)
        self._left.add(member_id)
        self.remove(member_id, when, "left", reason=reason)
        return when, reason

    def refused(self, error_code: int, member_id: str, place: Seen) -> None:
        """What an error code says of the group."""
        member = self.members.get(member_id)
        if error_code in UNAVAILABLE:
            if error_code in MOVED:
                self.expire_all(place)
            self.unavailable(place)
            self._moved_coordinator |= error_code == _NOT_COORDINATOR
            if error_code in MOVED:
                self._formed = None  # a group that is loaded waits for no SyncGroup
            if member is not None:
                self._seen(member, place)
        elif error_code == _REBALANCE_IN_PROGRESS:
            if member is not None:
                self._seen(member, place)
            self._asked_to_rejoin(place)
        elif member is not None and error_code == _UNKNOWN_MEMBER_ID:
            self._unknown(member, place)
        elif member is not None and error_code == _FENCED_INSTANCE_ID:
            when = self._heir_came(member) or place
            self.remove(member_id, place.at(when.time_ns), "fenced")
            self._gone(Why("member_fenced", member_id, detail="FENCED_INSTANCE_ID"), place)
        elif member is not None:
            member.parked = False

    def _unknown(self, member: Member, place: Seen) -> None:
        """The coordinator doesn't know a member any more."""
        member.asked_ns = 0  # the request that shows it does not say that it lives
        if self._causes and (next(iter(self._causes)).time_ns or 0) < (place.time_ns or 0) - NEAR_NS:
            self._begin_with_joins()  # one that is refused would have been answered
        self._all_gone_meanwhile(place)
        if member.member_id not in self.members:
            return
        before = member.member_id in self._gone_by  # the generation was formed without it
        how, when = self._why_unknown(member, place)
        self.remove(member.member_id, when, how, inferred=True)
        self._known_from_start |= not self.members
        if not before or self.rebalance is None:
            cause: Cause = "session_timeout" if how == "session_timeout" else "member_removed"
            self._gone(Why(cause, member.member_id, inferred=True, detail="UNKNOWN_MEMBER_ID"), when)

    def unreadable(self, asked: Seen, error_code: int, member_id: str, place: Seen) -> None:
        """The answer to any of its requests couldn't be read whole, but perhaps its error code."""
        if self.waiting.pop(asked) is not None and error_code:
            self._causes.pop(asked, None)
            self._withdraw(member_id)
        if error_code:
            self.refused(error_code, member_id, place)

    def _withdraw(self, member_id: str) -> None:
        """A JoinGroup was refused."""
        if self.rebalance is not None and member_id:
            self.rebalance.withdraw(member_id)

    # --- silence that a JoinGroup shows ---

    def _expire_static(self, heir: Member, place: Seen) -> None:
        """The static member in whose place another joins may be out by then."""
        static = self.members.of_instance(heir.instance_id)
        if static is None or static.member_id == heir.member_id or not self.quiet_at(static, place.time_ns):
            return
        until_ns = self.quiet_until_ns(static) or 0
        if self._replaced_by(static, until_ns):
            return  # it was no longer in by then
        if len(self.members) == 1:
            self._all_gone_meanwhile(place)
            return
        self._drop_unlisted(place)
        if static.member_id not in self.members:
            return
        how = TIMEOUT
        if len(self.members) <= MOST_REPLAYED:
            gone = self._departures(place.time_ns)
            if static.member_id not in gone:
                return  # a generation that formed unseen has it
            if len(gone) == len(self.members):
                self._all_gone_meanwhile(place)
                return
            self._form_unseen(place)
            until_ns, how = gone[static.member_id]
        self.remove(static.member_id, place.at(until_ns), how, inferred=True)
        cause: Cause = "session_timeout" if how == TIMEOUT else "member_removed"
        detail = "it was silent for longer than its session timeout" if how == TIMEOUT else ""
        self._gone(Why(cause, static.member_id, inferred=True, detail=detail), place.at(until_ns))

    def expire_all(self, place: Seen) -> None:
        """If all members must be out by now, no request was there to show it: the group is empty."""
        now_ns = place.time_ns
        if not self.members or now_ns is None or now_ns <= self._alive_until_ns:
            return
        if self.rebalance is not None:
            self._all_gone_meanwhile(place)
            return
        alive = next((one for one in self.members.values() if not self.quiet_at(one, now_ns)), None)
        if alive is None:
            self._all_gone(place)
            self._known_from_start = True
        else:
            self._alive_until_ns = self.quiet_until_ns(alive) or 0

    def over_by(self, place: Seen) -> None:
        """It becomes a consumer group: who must be out is, and a rebalance without a generation ends."""
        self.expire_all(place)
        few = len(self.members) <= MOST_REPLAYED
        for name, (when_ns, how) in self._departures(place.time_ns).items() if few else ():
            self.remove(name, place.at(when_ns), how, inferred=True)
            cause: Cause = "session_timeout" if how == "session_timeout" else "member_removed"
            self._gone(Why(cause, name, inferred=True), place.at(when_ns))
        if self.rebalance is not None and self.rebalance.generation is None:
            self.end("superseded", place)

    def _all_gone_meanwhile(self, place: Seen) -> None:
        """The same while a rebalance is under way, whose members may wait for their answers."""
        rebalance, few = self.rebalance, len(self.members) <= MOST_REPLAYED
        gone = self._departures(place.time_ns) if few else {}
        if rebalance is None or len(gone) < len(self.members):
            return
        self._drop_unlisted(place)
        for name, (when_ns, how) in gone.items():
            if name in self.members:
                self.remove(name, place.at(when_ns), how, inferred=True)
        last_ns = max(rebalance.began.time_ns or 0, *(when_ns for when_ns, _ in gone.values()))
        self.end("superseded" if rebalance.generation is not None else "empty", place.at(last_ns))
        self._known_from_start = True
