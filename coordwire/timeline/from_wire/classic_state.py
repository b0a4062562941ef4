"""The state of a classic group: its members, who of them is silent, and the rebalance that their signs begin.

Strategy: what frames show changes this, and `classic_group` reads the frames.

    state       a session runs from the last answer to its member; it does not run while a JoinGroup or
                SyncGroup of the member waits. A request in a steady group does not restart it; after a
                move of the coordinator every session begins again.
    silence     the coordinator's timers are replayed (`classic_timers`) from what was last seen of each
                member; what they lead to is reported once something shows it: an answer that a member is
                unknown, a generation without it, or the group's next sign of life. A member that is taken to
                be out is remembered, as a generation may show that it is in.
    signs       a member that leaves, is refused, or is silent when another asks, and an answer that members
                have to join again: each begins a rebalance, or another, if the one under way has its
                generation. JoinGroups that wait are the cause if they came first. `rebalance_cause` infers
                the reason. A sign is dated to when it must have happened.

Rules: frames may come in any order; in a group of many members, none is looked at for each of the others.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice, takewhile

from coordwire.timeline.events import Leaving
from coordwire.timeline.evidence import Seen, is_before, remember
from coordwire.timeline.from_wire.classic_requests import Leaver, PendingJoins, is_heir
from coordwire.timeline.from_wire.classic_silence import MOST_REPLAYED, MS, NEAR_NS, SilentMembers
from coordwire.timeline.from_wire.classic_timers import Departures
from coordwire.timeline.from_wire.member_death import Sessions
from coordwire.timeline.from_wire.written_generation import WrittenGeneration
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.rebalance_cause import of_joins, of_rejoin_demand

__all__ = ["MOST_WAITING", "ClassicState"]

MOST_WAITING = 10_000

TIMEOUT: Leaving = "session_timeout"


class ClassicState(Group):
    """Of one classic group. waiting: JoinGroups that are not answered yet.

    place: where a frame was seen; request_place: where the request that it answers was.
    """

    # --- state ---

    def __init__(self, group: str) -> None:
        super().__init__(group, "classic")
        self.waiting = PendingJoins(MOST_WAITING)
        self._causes: OrderedDict[Seen, Trigger] = OrderedDict()  # JoinGroups that may begin a rebalance
        self._join_places: OrderedDict[str, Seen] = OrderedDict()  # the last of each member
        self._parked: dict[str, None] = {}  # whose JoinGroup or SyncGroup has waited since the last outage
        self._leaving: OrderedDict[str, tuple[Seen, Leaver]] = OrderedDict()  # whose LeaveGroup waits
        self._confirmed_leavers: set[str] = set()  # of those, who is known to have left already
        self._overdue: dict[str, Rebalance] = {}  # of those, who is not in a generation after a stall
        self._sessions = Sessions(self.members, self.clocks.quiet_until_ns)
        self._all_in_until_ns = 0  # until then a member's session runs
        self._silence = SilentMembers(self.members, self.clocks)
        self._since_ns = 0  # when the first answer of the generation was seen
        self._unseen_generation: int | None = None  # the last that no answer to a JoinGroup showed
        self._answered_ns = 0  # when a JoinGroup was last answered with a new generation
        self._written = WrittenGeneration()
        self._given_ids: OrderedDict[str, None] = OrderedDict()  # of members that are not in yet
        self._listed_members: dict[
            str, tuple[Member, Seen]
        ] = {}  # by the leader's answer, and not answered yet
        self._presumed: OrderedDict[str, Member] = OrderedDict()  # who was taken to be out, and may be in
        self._moved_coordinator = False
        self._known_from_start = False

    def add(self, member: Member, place: Seen, *, rejoined: bool = False, was_in: bool = False) -> None:
        name = member.member_id
        is_new = rejoined or name in self._given_ids or self.has_gone(name)
        self._given_ids.pop(name, None)
        super().add(member, place, rejoined=rejoined, was_in=was_in or not is_new)

    def gives_id(self, member_id: str) -> None:
        """A JoinGroup without a member id was answered with this one: that member was not in before."""
        remember(self._given_ids, member_id, None, MOST_WAITING)

    def let_in_listed(self, *, at_end: bool = False) -> None:
        """Something else begins: static members that were listed are in, though their answers weren't seen;
        at the end of the input all are."""
        listed_members, self._listed_members = self._listed_members, {}
        for name, (member, place) in listed_members.items():
            if name not in self.members and (at_end or member.instance_id is not None):
                static = self.members.of_instance(member.instance_id)
                if static is not None:
                    self._replace(static, member, place)
                self.add(member, place, rejoined=static is not None)
                self._sessions.watch(member)

    def _replace(self, static: Member, heir: Member, place: Seen) -> None:
        """A static member's place is its heir's."""
        del self.members[static.member_id]
        self.inherits(heir, static, place)
        if self.leader == static.member_id:
            self.leader = heir.member_id
        rebalance = self.rebalance
        if rebalance is not None and len(rebalance.members) <= MOST_REPLAYED:
            rebalance.replace(static.member_id, heir.member_id)

    def awaits(self, waiting: PendingJoins) -> None:
        """The JoinGroups of the consumer group that this one was, which are not answered yet."""
        self.waiting = waiting

    def begin_anew(self) -> None:
        """The group is known to be new: none of this id is left."""
        self._known_from_start = True

    def adopt(self) -> None:
        """The members are those of the consumer group that this one was."""
        self._known_from_start = True
        for member in self.members.values():
            self._sessions.watch(member)

    def _is_late(self, place: Seen) -> bool:
        """Whether something is of an earlier generation: after a lost packet, answers come late."""
        return place.time_ns is not None and place.time_ns < self._since_ns

    def _is_of_before(self, place: Seen) -> bool:
        """Whether something was seen before the rebalance under way began, as it came late."""
        rebalance = self.rebalance
        return rebalance is not None and rebalance.generation is None and is_before(place, rebalance.began)

    def _has_moved(self, place: Seen) -> bool:
        """Whether the coordinator has moved since the generation was formed."""
        return self.clocks.available_ns >= self._since_ns and not self._is_late(place)

    def _renew(self, member: Member, place: Seen) -> None:
        time_ns, seen_ns = place.time_ns, member.last_seen_ns
        session_ns = (member.session_timeout_ms or 0) * MS
        soon = time_ns is not None and seen_ns is not None and time_ns - seen_ns <= session_ns
        asked_ns = member.asked_ns if member.asked_ns > (seen_ns or 0) else time_ns
        if not soon and self.clocks.silent_at(member, asked_ns):
            self.clocks.unavailable(place, inferred=True)  # else it would be out
        member.last_seen_ns = time_ns
        member.parked, member.unread = False, None
        if self._silence.gone_by:
            self._silence.gone_by.pop(member.member_id, None)
        if member.member_id not in self._sessions.watched:
            self._sessions.watch(member)

    def _not_renewed(self, member_id: str, heard_ns: int | None) -> None:
        """A request in a steady group does not restart a session, which runs since then."""
        member = self.members.get(member_id)
        if member is not None and heard_ns is not None:
            member.last_seen_ns = heard_ns

    def _patience_ns(self) -> int:
        """How long a rebalance of these members waits for them at most; 0 if one of them didn't say."""
        known = [member.rebalance_timeout_ms for member in self.members.values()]
        return 0 if None in known else max((timeout_ms or 0 for timeout_ms in known), default=0) * MS

    def remove(
        self,
        member_id: str,
        place: Seen,
        departure: Leaving,
        *,
        reason: str | None = None,
        inferred: bool = False,
    ) -> None:
        member = self.members.get(member_id)
        super().remove(member_id, place, departure, reason=reason, inferred=inferred)
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None and member_id not in rebalance.joined:
            rebalance.absent[member_id] = place.time_ns or 0
        if inferred and member is not None:
            remember(self._presumed, member_id, member, MOST_REPLAYED)

    # --- silent members ---

    def _departures(self, until_ns: int | None) -> Departures:
        """The members that are out by then because of their silence, each with the time and the way."""
        if until_ns is None:
            return {}
        return self._silence.departures(*self._joins_until(until_ns), until_ns)

    def _departures_formed(self, request_place: Seen, place: Seen) -> Departures:
        """The same when a generation was formed, as this first answer to a JoinGroup shows. Sessions may run
        from a little earlier than their last answers."""
        if request_place.time_ns is None or place.time_ns is None:
            return {}
        waited = request_place.time_ns, place.time_ns - NEAR_NS
        until_ns = place.time_ns + NEAR_NS
        departures = self._silence.departures(*self._joins_until(until_ns), until_ns, waited)
        return {
            name: (min(when_ns, place.time_ns), departure)
            for name, (when_ns, departure) in departures.items()
        }

    def _joins_until(self, until_ns: int) -> tuple[list[tuple[int, str]], dict[str, int]]:
        """The JoinGroups by then of a join phase that is not over, and until when that waited for members
        that are out: see `SilentMembers.replayed`."""
        rebalance = self.rebalance
        joins: list[tuple[int, str]] = []
        absent: dict[str, int] = {}
        if rebalance is not None and rebalance.generation is None:
            absent = rebalance.absent
            joins = [(join_ns or 0, name) for name, join_ns in rebalance.joined.items()]
            joins.append((rebalance.began.time_ns or 0, ""))
            joins += self._nameless(rebalance.began.time_ns or 0, until_ns)
            available_ns = self.clocks.available_ns
            joins = [join for join in joins if join[0] >= available_ns]  # what was before, a move has lost
        elif self._causes and len(self._causes) <= MOST_REPLAYED:
            joins = self._unanswered(until_ns)
        return joins, absent

    def _nameless(self, since_ns: int, until_ns: int) -> list[tuple[int, str]]:
        """Static members that wait for their answers, which have their ids, or whose place they take."""
        joins = []
        for place, member in self.waiting.items() if len(self.waiting) <= MOST_REPLAYED else ():
            asked_ns = place.time_ns or 0
            if not member.member_id and member.instance_id and since_ns <= asked_ns < until_ns - NEAR_NS:
                static = self.members.of_instance(member.instance_id)
                joins.append((asked_ns, member.instance_id if static is None else static.member_id))
        return joins

    def _unanswered(self, until_ns: int) -> list[tuple[int, str]]:
        """The JoinGroups that begin a rebalance: one that is refused would have been answered at once."""
        joins = []
        for place in self._causes:
            member, asked_ns = self.waiting.get(place), place.time_ns or 0
            if (
                member is not None
                and max(self.clocks.available_ns, self._since_ns) <= asked_ns < until_ns - NEAR_NS
            ):
                static = self.members.of_instance(member.instance_id)
                joins.append((asked_ns, member.member_id or ("" if static is None else static.member_id)))
        return joins

    def _form_unseen(self, place: Seen) -> None:
        """A generation that its timers formed, with members whose JoinGroups were answered unseen."""
        if place.time_ns is None:
            return
        joins, absent = self._joins_until(place.time_ns)
        departures, formed_ns = self._silence.replayed(joins, absent, place.time_ns)
        rebalance = self.rebalance
        for member in self.members.values() if formed_ns is not None else ():
            if member.parked and member.member_id not in departures:
                member.last_seen_ns, member.parked = formed_ns, False
                if rebalance is not None:
                    rebalance.joined.pop(member.member_id, None)

    def _replaced_by(self, static: Member, until_ns: int) -> bool:
        """Whether a JoinGroup took a static member's place before, which is not answered yet."""
        if len(self.waiting) > MOST_REPLAYED:
            return False
        return any(
            (place.time_ns or 0) <= until_ns and is_heir(joining, place, static)
            for place, joining in self.waiting.items()
        )

    def _remove_all(self, place: Seen) -> None:
        """Remove all members."""
        departures = self._departures(place.time_ns)
        for member in sorted(self.members.values(), key=lambda member: member.serial):
            over_ns = self.clocks.quiet_until_ns(member) or 0
            when_ns, departure = departures.get(member.member_id, (over_ns, TIMEOUT))
            self.remove(member.member_id, place.at(when_ns), departure, inferred=True)

    def _drop_unlisted(self, place: Seen) -> None:
        """A generation without a list of its members is over, as its leader left before its answer. Remove
        the members that can't have been in the generation."""
        rebalance = self._silence.formed
        if rebalance is None or rebalance.named:
            return
        departures, self._silence.gone_by = self._silence.gone_by, {}
        for name, (when_ns, departure) in departures.items():
            member = self.members.get(name)
            if member is not None and (self.clocks.quiet_ns(member) or 0) <= when_ns:
                self.remove(name, place.at(when_ns), departure, inferred=True)

    # --- signs of a rebalance ---

    def _asked_before(self, place: Seen) -> bool:
        """Whether a JoinGroup waits that can begin a rebalance, and that was read before; one that was sent
        during a stall was so after it."""
        for first in self._causes:
            read_ns = self.clocks.stalls.read_ns(first.time_ns or 0)
            return is_before(first, place) and (read_ns == first.time_ns or read_ns < (place.time_ns or 0))
        return False

    def _begin_with_joins(self) -> Rebalance | None:
        """Begin a rebalance whose cause is the first of the JoinGroups that wait and can be one."""
        if not self._causes:
            return None
        self._sync_phase_over(next(iter(self._causes)), near_ns=0)  # it may have been over before
        causes, self._causes = self._causes, OrderedDict()
        number, trigger = of_joins(causes.values())
        first = next(islice(causes, number, None))
        is_late = self.clocks.stalls.read_ns(first.time_ns or 0) > (first.time_ns or 0)
        if is_late and not self.members and trigger.cause == "new_member":
            trigger = trigger._replace(cause="first_member")  # all were out before it was read
        rebalance = self._disturbed(trigger, first)
        for join_place in causes:
            member = self.waiting.get(join_place)
            if member is not None and member.member_id:
                rebalance.join(member.member_id, join_place.time_ns)
        return rebalance

    def _lose_member(self, trigger: Trigger, place: Seen) -> None:
        """A member is out."""
        self.let_in_listed()
        rebalance = self.rebalance
        if self.members:
            current = self._disturbed(trigger, place)
            if current.generation is None and (place.time_ns or 0) < (current.began.time_ns or 0):
                current.explain(trigger, place)
        elif rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
        elif not self.waiting:
            self.end("empty", place)

    def _disturbed(self, trigger: Trigger, place: Seen) -> Rebalance:
        """A sign that the members must join again: another rebalance, if this one has its generation."""
        rebalance = self.rebalance
        self.let_in_listed()
        self._drop_unlisted(place)
        if rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
            self._resume(rebalance, place)
        if self.rebalance is None and self._asked_before(place):
            self._begin_with_joins()
        return self.begin(trigger, place)

    def _resume(self, over: Rebalance, place: Seen) -> None:
        """The members that waited for their assignments are answered that they must join again."""
        for name in over.syncing:
            member = self.members.get(name)
            if (
                member is not None
                and member.parked
                and name not in self._join_places
                and place.time_ns is not None
            ):
                member.last_seen_ns = max(member.last_seen_ns or 0, place.time_ns)
                member.parked = False

    def _heir_came(self, static: Member) -> Seen | None:
        """Where the JoinGroup was seen that took a static member's place, if it isn't answered yet."""
        if len(self.waiting) > MOST_REPLAYED:
            return None
        return next(
            (place for place, joining in self.waiting.items() if is_heir(joining, place, static)), None
        )

    def _asked_to_rejoin(self, place: Seen, request_place: Seen) -> None:
        """REBALANCE_IN_PROGRESS: the sign of a rebalance whose cause may not have been seen, and which began
        before the request was read, at the latest when it was answered."""
        if self._is_late(place) or (self.rebalance is not None and self.rebalance.generation is None):
            return
        rebalance = self._begin_with_joins()
        if rebalance is not None and not rebalance.is_unexplained:
            return
        self._drop_unlisted(place)
        if self._sync_phase_over(place):
            return
        leaving = next((member_id for member_id in self._leaving if member_id in self.members), None)
        if leaving is not None and not is_before(request_place, self._leaving[leaving][0]):
            moment, trigger = self._leaves(leaving)
            self._lose_member(trigger, moment)
            return
        if self.rebalance is not None and self.rebalance.joined_ns is not None:
            self.forget_joins(self.rebalance.joined_ns)
        first = self._sessions.first()
        soon_ns = None if place.time_ns is None else place.time_ns + NEAR_NS
        dead = first if first is not None and self.clocks.quiet_at(first, soon_ns) else None
        trigger = of_rejoin_demand(self, self.waiting.members(), dead)
        began = place
        if trigger.cause == "session_timeout" and dead is not None:
            began = place.at(self.clocks.quiet_until_ns(dead))
        self._disturbed(trigger, began)

    def forget_joins(self, formed_ns: int) -> None:
        """JoinGroups that were read before a generation was formed, and are not in it, wait no more."""
        stall = self.clocks.stalls.at(formed_ns - NEAR_NS)
        self.waiting.forget_before(formed_ns if stall is None else min(formed_ns, stall.prompt_ns))

    def _sync_phase_over(self, place: Seen, near_ns: int = NEAR_NS) -> bool:
        """Whether members that never asked for their assignment are out, as their time for that is over."""
        rebalance = self._silence.formed
        over_ns = None if rebalance is None else rebalance.over_ns(rebalance.joined_ns)
        over_ns = None if over_ns is None else self.clocks.stalls.after(over_ns)
        if rebalance is None or over_ns is None or (place.time_ns or 0) < over_ns - near_ns:
            return False
        self._silence.formed = None  # it is asked once
        member_ids = rebalance.members or tuple(self.members)
        absent = [
            member_id
            for member_id in member_ids
            if member_id not in rebalance.syncing and member_id in self.members
        ]
        moment = place.at(over_ns)
        if not absent and rebalance.heir in self.members:
            detail = "the member in whose place it is never sent SyncGroup"
            self._disturbed(
                Trigger("static_member_returned", rebalance.heir, inferred=True, detail=detail), moment
            )
            return True
        if not absent:
            return False
        triggers = [
            self.goes(member_id, moment, "not_rejoined", "it never sent SyncGroup", inferred=True)
            for member_id in absent
        ]
        self._lose_member(triggers[0], moment)
        return True

    def _leaves(self, member_id: str) -> tuple[Seen, Trigger]:
        """A member whose LeaveGroup is not answered yet is out: others were answered for it."""
        moment, (_, reason, departure) = self._leaving.pop(member_id)
        self._confirmed_leavers.add(member_id)
        return moment, self.goes(member_id, moment, departure, reason or "LeaveGroup", reason=reason)

    def let_leave(self) -> None:
        """Those whose LeaveGroups were not answered since a stall, and whom a generation lacks, have left."""
        for name in self._overdue:
            if name in self._leaving and name in self.members:
                self._leaves(name)
        self._overdue = {}

    # --- silence that a JoinGroup shows ---

    def _expire_static(self, heir: Member, place: Seen) -> None:
        """The static member in whose place another joins may be out by then."""
        static = self.members.of_instance(heir.instance_id)
        if (
            static is None
            or static.member_id == heir.member_id
            or not self.clocks.quiet_at(static, place.time_ns)
        ):
            return
        until_ns = self.clocks.quiet_until_ns(static) or 0
        if self._replaced_by(static, until_ns):
            return  # it was no longer in by then
        if len(self.members) == 1:
            self._remove_all_meanwhile(place)
            return
        self._drop_unlisted(place)
        if static.member_id not in self.members:
            return
        departure = TIMEOUT
        if len(self.members) <= MOST_REPLAYED:
            departures = self._departures(place.time_ns)
            if static.member_id not in departures:
                return  # a generation that formed unseen has it
            if len(departures) == len(self.members):
                self._remove_all_meanwhile(place)
                return
            self._form_unseen(place)
            until_ns, departure = departures[static.member_id]
        detail, moment = "it was silent for longer than its session timeout", place.at(until_ns)
        detail = detail if departure == TIMEOUT else ""
        self._lose_member(self.goes(static.member_id, moment, departure, detail, inferred=True), moment)

    def expire_all(self, place: Seen) -> None:
        """If all members must be out by now, no request was there to show it: the group is empty."""
        now_ns = place.time_ns
        if not self.members or now_ns is None or now_ns <= self._all_in_until_ns or self.is_away:
            return
        if self.rebalance is not None:
            self._remove_all_meanwhile(place)
            return
        alive = next(
            (member for member in self.members.values() if not self.clocks.quiet_at(member, now_ns)), None
        )
        if alive is None and self._is_answered_soon(place):
            return
        if alive is None:
            self._remove_all(place)
            self._known_from_start = True
        else:
            self._all_in_until_ns = self.clocks.quiet_until_ns(alive) or 0

    def _is_answered_soon(self, place: Seen) -> bool:
        """Whether the answers that wait since a stall will show who is in."""
        few = len(self.members) <= MOST_REPLAYED
        return few and any(self.clocks.is_answered_soon(member, place) for member in self.members.values())

    def over_by(self, place: Seen) -> None:
        """The group becomes a consumer group: remove the members that must be out, and end a rebalance that
        has no generation."""
        self.expire_all(place)
        few = len(self.members) <= MOST_REPLAYED
        for name, (when_ns, departure) in self._departures(place.time_ns).items() if few else ():
            moment = place.at(when_ns)
            self._lose_member(self.goes(name, moment, departure, inferred=True), moment)
        if self.rebalance is not None and self.rebalance.generation is None:
            self.end("superseded", place)

    def empty_by(self, place: Seen) -> None:
        self.over_by(place)
        super().empty_by(place)

    def _remove_all_meanwhile(self, place: Seen) -> None:
        """The same while a rebalance is under way, whose members may wait for their answers."""
        rebalance, few = self.rebalance, len(self.members) <= MOST_REPLAYED
        departures = self._departures(place.time_ns) if few else {}
        if rebalance is None or len(departures) < len(self.members) or self._is_answered_soon(place):
            return
        self._drop_unlisted(place)
        for name, (when_ns, departure) in departures.items():
            if name in self.members:
                self.remove(name, place.at(when_ns), departure, inferred=True)
        last_ns = max(rebalance.began.time_ns or 0, *(when_ns for when_ns, _ in departures.values()))
        self.end("superseded" if rebalance.generation is not None else "empty", place.at(last_ns))
        self._known_from_start = True

    # --- a move of the coordinator, and the end ---

    def park(self, member: Member) -> None:
        """A JoinGroup or SyncGroup of a member waits."""
        member.parked = True
        self._parked[member.member_id] = None

    def _still_in(self, named: frozenset[str], place: Seen) -> None:
        """Members that a generation has which were taken to be out: their coordinator moved meanwhile."""
        for name in [
            member_id for member_id in self._presumed if member_id in named and member_id not in self.members
        ]:
            member = self._presumed.pop(name)
            member.last_seen_ns, member.parked = place.time_ns, False
            self.add(member, place, rejoined=True)
            self._sessions.watch(member)

    def restart(self, since: Seen | None, place: Seen) -> None:
        """What was not written is lost: JoinGroups that waited, and a rebalance without a generation."""
        super().restart(since, place)
        self._silence.formed = None  # a group that is loaded waits for no SyncGroup
        if since is None:
            return
        older = list(takewhile(lambda waiting: is_before(waiting[0], since), self.waiting.items()))
        for join_place, _ in older:
            self.waiting.pop(join_place)
            self._causes.pop(join_place, None)
        parked, self._parked = self._parked, {}
        for name in parked:
            member = self.members.get(name)
            if member is not None and member.parked:
                member.parked = not _is_older(self._join_places.get(name), since)
                if member.parked:
                    self._parked[name] = None
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None:
            self.end("superseded", since)

    def finish(self, place: Seen) -> None:
        """The input is at its end: remove the members that must have timed out by then."""
        self.let_in_listed(at_end=True)
        self.let_leave()
        self._begin_with_joins()
        self._drop_unlisted(place)
        departures = self._departures(place.time_ns)
        self._end_led(departures, place)
        waiting = (
            set() if self.rebalance is None or len(departures) == len(self.members) else self.rebalance.joined
        )
        for name, (when_ns, departure) in departures.items():
            if name not in waiting and (self.clocks.quiet_ns(self.members[name]) or 0) <= when_ns:
                self.remove(name, place.at(when_ns), departure, inferred=True)
        self.end("unfinished", place)

    def _end_led(self, departures: Departures, place: Seen) -> None:
        """If only members are without their assignments that are out, the others are steady since they have
        theirs."""
        rebalance = self.rebalance
        if rebalance is None or not rebalance.led or rebalance.synced_ns is None:
            return
        if not any(
            member_id in self.members and member_id not in departures
            for member_id in rebalance.unsynced_named
        ):
            self.end("steady", place.at(rebalance.synced_ns))


def _is_older(place: Seen | None, since: Seen) -> bool:
    """Whether something was seen before the coordinator went away."""
    return place is None or is_before(place, since)
