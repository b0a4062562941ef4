"""A classic group, by JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Strategy: a rebalance begins with its first sign (a member that joins or leaves, or one that is asked to join
again), has its generation with the first answer to a JoinGroup, and ends when all who were seen joining have
their assignment; a sign in between begins another. `rebalance_cause` infers why. Rules: a JoinGroup begins
something once it is known that it isn't refused: when it is answered, another member is asked to join again,
or the input ends; it counts from its request on. A first JoinGroup that is merely given a member id (KIP-394)
is not a join. What a connection sends after a JoinGroup takes effect after that one's answer. Frames may come
in any order.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.embedded import open_embedded
from coordwire.enums import ErrorCode
from coordwire.groups.consumer_data import given, subscribe
from coordwire.groups.group import FOLLOWS, UNAVAILABLE, Group
from coordwire.groups.joining import Joining
from coordwire.groups.member_death import Sessions
from coordwire.groups.members import Member
from coordwire.groups.rebalance import Rebalance, Why
from coordwire.groups.rebalance_cause import of_generation, of_join, of_rejoin_demand
from coordwire.groups.seen import Seen, remember
from coordwire.groups.timeline_events import Cause, Leaving

__all__ = ["ClassicGroup", "joining_member", "leavers"]

GIVES_MEMBER_ID = 4
"""The version from which JoinGroup gives a dynamic member its id before it lets it in."""

MOST_WAITING = 10_000


class ClassicGroup(Group):
    """One classic group. place: where a frame was seen; asked: where the request that it answers was."""

    def __init__(self, group: str) -> None:
        super().__init__(group, "classic")
        self._waiting = Joining(MOST_WAITING)
        self._causes: OrderedDict[Seen, Why] = OrderedDict()  # JoinGroups that may begin a rebalance
        self._asked: OrderedDict[str, Seen] = OrderedDict()  # the last of each member
        self._sessions = Sessions(self.members, self.quiet_until_ns)
        self._formed_ns: int | None = None  # when the last generation was formed
        self._since_ns = 0  # when the first answer of the generation was seen
        self._moved_coordinator = False
        self._known_from_start = False

    # --- joining ---

    def join_request(self, entry: FrameEntry, message: Any, place: Seen, host: str | None) -> None:
        member = joining_member(entry, message, host)
        self._waiting.add(place, member)
        known = self.members.get(message.member_id)
        if known is not None:
            known.last_seen_ns, known.parked = place.time_ns, True
            self.consumption.keeps(known.member_id, member.owned or frozenset(), place.time_ns)
        if message.member_id or message.group_instance_id or (entry.api_version or 0) < GIVES_MEMBER_ID:
            self._asks(member, place)

    def _asks(self, member: Member, place: Seen) -> None:
        """A member that asks to be let in, and is not merely given an id."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None:
            if member.member_id:
                rebalance.join(member.member_id, place.time_ns)
            return
        why = of_join(
            self, member, moved_coordinator=self._moved_coordinator, known_from_start=self._known_from_start
        )
        self._moved_coordinator = self._moved_coordinator and why.cause != "coordinator_moved"
        remember(self._causes, place, why, MOST_WAITING)
        if member.member_id:
            remember(self._asked, member.member_id, place, MOST_WAITING)

    def _begin_with_joins(self) -> Rebalance | None:
        """The JoinGroups that wait are why the group rebalances: begin that with the first of them."""
        if not self._causes:
            return None
        place, why = self._causes.popitem(last=False)
        others, self._causes = self._causes, OrderedDict()
        rebalance = self._disturbed(why, place)
        for one in (place, *others):
            member = self._waiting.get(one)
            if member is not None and member.member_id:
                rebalance.join(member.member_id, one.time_ns)
        return rebalance

    def join_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        member = self._waiting.pop(asked)
        if message.error_code:
            self._causes.pop(asked, None)
            self._withdraw(request.member_id)
            if message.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self.refused(message.error_code, request.member_id, place)
            return
        if member is None:
            member = Member(request.member_id, instance_id=request.group_instance_id, classic=True)
        tentative = not member.member_id
        static = self.members.of_instance(member.instance_id)
        member.member_id = message.member_id
        generation = message.generation_id
        if generation == self.generation and self.rebalance is None:
            # The generation holds: a late answer, or a static member that is back.
            why = self._causes.pop(asked, None)
            if why is not None:
                why = why._replace(member_id=member.member_id)
                self.begin(why, asked).join(member.member_id, asked.time_ns)
            self._let_in(member, static, place)
            self.end("not_needed", place)
            return
        if generation != self.generation and self._is_late(place):
            return
        rebalance = self._rebalance_of(generation, member, asked, place)
        if tentative or member.member_id not in rebalance.joined:
            rebalance.join(member.member_id, asked.time_ns)
            if rebalance.why.member_id == member.client_id:
                rebalance.why = rebalance.why._replace(member_id=member.member_id)
        self._let_in(member, static, place)
        if rebalance.generation is None and generation == self.generation and not message.members:
            self.end("not_needed", place)
            return
        self._new_generation(rebalance, message, place)

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

    def _new_generation(self, rebalance: Rebalance, message: Any, place: Seen) -> None:
        if rebalance.generation is None:
            rebalance.generation, rebalance.joined_ns = message.generation_id, place.time_ns
            self._since_ns = place.time_ns or 0
            self._moved_coordinator = False
            self.unassign()
        rebalance.protocol = self.protocol = message.protocol_name or rebalance.protocol
        rebalance.leader = self.leader = message.leader or rebalance.leader
        self.generation = message.generation_id
        self.members[message.member_id].generation = message.generation_id
        if message.members:
            before = rebalance.named
            rebalance.name(tuple(one.member_id for one in message.members))
            self._drop_missing(rebalance, before, place)
        rebalance.why = of_generation(rebalance)

    def _drop_missing(self, rebalance: Rebalance, before: frozenset[str], place: Seen) -> None:
        """Members that the new generation has no more. before: those that it was said to have already; all
        others of the members have joined since."""
        named, members = rebalance.named, self.members
        gone = (one for one in before or members if one not in named and one not in rebalance.joined)
        for one in sorted((one for one in gone if one in members), key=lambda one: members[one].serial):
            how, when = self._how_gone(members[one], "not_rejoined", place)
            self.remove(one, when, how, inferred=True)
            earlier = how == "session_timeout" and (when.time_ns or 0) <= (rebalance.began.time_ns or 0)
            if rebalance.why.cause == "unknown" or (earlier and rebalance.why.cause in FOLLOWS):
                cause: Cause = "session_timeout" if how == "session_timeout" else "member_removed"
                why = Why(cause, one, inferred=True, detail="it isn't in the new generation")
                rebalance.explain(why, when)
        self._formed_ns = place.time_ns

    def _let_in(self, member: Member, static: Member | None, place: Seen) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            old.topics, old.owned = member.topics or old.topics, member.owned
            old.protocols = member.protocols or old.protocols
            self._seen(old, place)
            old.answered_ns = place.time_ns
            return
        if static is not None:
            del self.members[static.member_id]
            self.consumption.passes(static.member_id, member.member_id)
        member.last_seen_ns = member.answered_ns = place.time_ns
        self.add(member, place, rejoined=static is not None)
        self._sessions.watch(member)

    def unreadable(self, asked: Seen, error_code: int, member_id: str, place: Seen) -> None:
        """The answer to any of its requests couldn't be read whole, but perhaps its error code."""
        if self._waiting.pop(asked) is not None and error_code:
            self._causes.pop(asked, None)
            self._withdraw(member_id)
        if error_code:
            self.refused(error_code, member_id, place)

    def _withdraw(self, member_id: str) -> None:
        """A JoinGroup was refused."""
        if self.rebalance is not None and member_id:
            self.rebalance.withdraw(member_id)

    # --- the assignment ---

    def sync_request(self, message: Any, place: Seen) -> None:
        member = self.members.get(message.member_id)
        if member is not None:
            self._seen(member, place)
            member.parked = True
        self._causes.pop(self._asked.pop(message.member_id, place), None)  # its JoinGroup was answered
        if not message.assignments or message.generation_id != self.generation:
            return
        opened = open_embedded(message)
        for index, share in enumerate(message.assignments):
            partitions = given(opened.get(f"assignments[{index}].assignment"))
            member = self.members.get(share.member_id)
            if partitions is not None and member is not None:
                self.assign(member, partitions)

    def sync_response(
        self, request: Any, message: Any, asked: FrameEntry, place: Seen, host: str | None
    ) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            return
        partitions = given(open_embedded(message).get("assignment"))
        member = self._known(request, request.generation_id, asked, place, host)
        if partitions is not None:
            self.assign(member, partitions)
            self.consumption.has(member.member_id, partitions, place.time_ns)
        rebalance = self.rebalance
        if rebalance is None or request.generation_id != rebalance.generation:
            return
        rebalance.sync(request.member_id)
        if self._complete(rebalance):
            self._waiting.forget_before(rebalance.joined_ns or 0)
            self.end("steady", place)

    def _complete(self, rebalance: Rebalance) -> bool:
        """Whether all of the generation who were seen joining have their assignment."""
        if rebalance.unsynced_named if rebalance.named else rebalance.unsynced:
            return False
        # One whose id isn't known yet may be among those who are named.
        return not (rebalance.unjoined and self._waiting.has_nameless(rebalance.began.time_ns or 0))

    # --- living and leaving ---

    def alive(
        self, request: Any, error_code: int, generation: int, asked: FrameEntry, place: Seen, host: str | None
    ) -> None:
        """A heartbeat's answer, or that of a commit. generation: the one that its member is in."""
        if error_code:
            self.refused(error_code, request.member_id, place)
        elif request.member_id and generation >= 0:
            self._known(request, generation, asked, place, host)

    def _known(
        self, request: Any, generation: int, asked: FrameEntry, place: Seen, host: str | None
    ) -> Member:
        """A member whose request was accepted. One that wasn't seen joining was in before, or the answer to
        its JoinGroup is missing."""
        member = self.members.get(request.member_id)
        if member is None:
            member = Member(
                request.member_id, asked.client_id, host, getattr(request, "group_instance_id", None),
                generation=generation, last_seen_ns=place.time_ns, classic=True,
            )  # fmt: skip
            self.add(member, place, rejoined=self.generation is None)
            if self.generation is None and self.rebalance is None:
                self.generation = generation
        self._seen(member, place)
        self._formed_unseen(generation, place)
        return member

    def _formed_unseen(self, generation: int, place: Seen) -> None:
        """A member is in this generation. If it is a later one, the answers to JoinGroups are missing: the
        rebalance under way is over, and who has what isn't known."""
        if self.generation is None or generation <= self.generation:
            return
        rebalance = self._begin_with_joins() or self.rebalance
        self.generation, self._since_ns = generation, place.time_ns or 0
        self.unassign()
        if rebalance is not None:
            rebalance.generation = generation
            self.end("steady", place)

    def leave_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            return
        for name, reason in leavers(self, request, message):
            member = self.members.get(name)
            when = asked
            if member is not None and (member.answered_ns or 0) > (asked.time_ns or 0):
                when = place  # its LeaveGroup waited for its JoinGroup's answer
            self.remove(name, when, "left", reason=reason)
            self._known_from_start = True
            self._gone(Why("member_left", name, detail=reason or "LeaveGroup"), when)

    def refused(self, error_code: int, member_id: str, place: Seen) -> None:
        """What an error code says of the group."""
        member = self.members.get(member_id)
        if error_code in UNAVAILABLE:
            self.unavailable(place)
            self._moved_coordinator |= error_code == ErrorCode.NOT_COORDINATOR
            if member is not None:
                self._seen(member, place)
        elif error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            if member is not None:
                self._seen(member, place)
            self._asked_to_rejoin(place)
        elif member is not None and error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            how, when = self._how_gone(member, "removed", place)
            self.remove(member_id, when, how, inferred=True)
            cause: Cause = "session_timeout" if how == "session_timeout" else "member_removed"
            self._gone(Why(cause, member_id, inferred=True, detail="UNKNOWN_MEMBER_ID"), when)
        elif member is not None and error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.remove(member_id, place, "fenced")
            self._gone(Why("member_fenced", member_id, detail="FENCED_INSTANCE_ID"), place)
        elif member is not None:
            member.parked = False

    def _how_gone(self, member: Member, otherwise: Leaving, place: Seen) -> tuple[Leaving, Seen]:
        """How a member must have gone, and when. While its JoinGroup or SyncGroup waits its session doesn't
        run; if it wasn't seen to be answered, it runs from the next generation on."""
        over_ns = self.over_ns(member)
        if over_ns is not None and member.parked:
            waited_ns = (self._formed_ns or 0) - (member.last_seen_ns or 0)
            over_ns = over_ns + waited_ns if waited_ns > 0 else None
        if over_ns is not None and place.time_ns is not None and place.time_ns > over_ns:
            return "session_timeout", place.at(over_ns)
        return otherwise, place

    def _gone(self, why: Why, place: Seen) -> None:
        """A member is out."""
        rebalance = self.rebalance
        if self.members:
            self._disturbed(why, place)
        elif rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
        elif not self._waiting:
            self.end("empty", place)

    def _disturbed(self, why: Why, place: Seen) -> Rebalance:
        """A sign that the members must join again: another rebalance, if this one has its generation."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
        if self.rebalance is None and self._causes:
            first = next(iter(self._causes))
            if (first.time_ns or 0) < (place.time_ns or 0):
                self._begin_with_joins()  # they came before
        return self.begin(why, place)

    def _asked_to_rejoin(self, place: Seen) -> None:
        """REBALANCE_IN_PROGRESS: the sign of a rebalance whose cause may not have been seen."""
        if self._is_late(place) or (self.rebalance is not None and self.rebalance.generation is None):
            return
        if self._begin_with_joins() is not None:
            return
        first = self._sessions.first()
        dead = first if first is not None and self.quiet_at(first, place.time_ns) else None
        why = of_rejoin_demand(self, self._waiting.members(), dead)
        began = place
        if why.cause == "session_timeout" and dead is not None:
            began = place.at(self.over_ns(dead))
        self._disturbed(why, began)

    def _is_late(self, place: Seen) -> bool:
        """Whether something is of an earlier generation: after a lost packet, answers come late."""
        return place.time_ns is not None and place.time_ns < self._since_ns

    def _seen(self, member: Member, place: Seen) -> None:
        if self.silent_at(member, place.time_ns):
            self.unavailable(place)  # else it would be out
        member.last_seen_ns = place.time_ns
        member.parked = False
        self._sessions.watch(member)

    def adopt(self) -> None:
        """The members are those of the consumer group that this one was."""
        self._known_from_start = True
        for member in self.members.values():
            self._sessions.watch(member)

    def finish(self, place: Seen) -> None:
        """The input is at its end; who must have timed out by then is out."""
        self._begin_with_joins()
        if self.rebalance is None:
            for one in list(self.members.values()):
                how, when = self._how_gone(one, "removed", place)
                if how == "session_timeout" and self.quiet_at(one, place.time_ns):
                    self.remove(one.member_id, when, how, inferred=True)
        self.end("unfinished", place)


def joining_member(entry: FrameEntry, message: Any, host: str | None) -> Member:
    """A member as its JoinGroup describes it."""
    member = Member(
        message.member_id, entry.client_id, host, message.group_instance_id,
        protocols=tuple(one.name for one in message.protocols),
        session_timeout_ms=message.session_timeout_ms, classic=True,
    )  # fmt: skip
    subscribe(member, open_embedded(message).get("protocols[0].metadata"))
    return member


def leavers(group: Group, request: Any, message: Any) -> list[tuple[str, str | None]]:
    """Whom a LeaveGroup takes out, by its answer, with their reasons."""
    refused = {(one.member_id, one.group_instance_id) for one in message.members if one.error_code}
    found = []
    for one in [request, *request.members]:
        instance_id = getattr(one, "group_instance_id", None)
        static = group.members.of_instance(instance_id)
        name = one.member_id or (static.member_id if static else "")
        if name and (one.member_id, instance_id) not in refused:
            found.append((name, getattr(one, "reason", None)))
    return found
