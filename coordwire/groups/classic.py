"""A classic group, told by JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Strategy: a rebalance begins with its first sign (a member that joins or leaves, or one that is told to
rejoin), has its generation with the first answer to a JoinGroup, and ends when all who were seen joining have
their assignment; a sign in between begins another. Where the sign doesn't show the cause it is inferred from
what was: a member silent for longer than its session, a join that waits, a coordinator that moved. Rules: a
first JoinGroup that is merely given a member id (KIP-394) is not a join; frames are taken in any order.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import islice
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.embedded import open_embedded
from coordwire.enums import ErrorCode
from coordwire.groups.group import Group, Member, Rebalance, Seen, Why, changed, given, subscribe
from coordwire.groups.joining import Joining
from coordwire.groups.timeline_events import Cause, Leaving

__all__ = ["ClassicGroup"]

GIVES_MEMBER_ID = 4
"""The version from which JoinGroup gives a dynamic member its id before it lets it in."""

FIRST_GENERATION = 1
MOST_WAITING = 10_000

MOST_LOOKED_AT = 100
"""So many joins that wait are looked at for one that would be the cause of a rebalance."""


class ClassicGroup(Group):
    """One classic group. place: where a frame was seen; asked: where the request that it answers was."""

    def __init__(self, group: str) -> None:
        super().__init__(group, "classic")
        self._waiting = Joining(MOST_WAITING)
        self._sessions: list[tuple[int, str]] = []  # a heap: when they are over at the earliest, whose
        self._watched: set[str] = set()
        self._moved_coordinator = False
        self._known_from_start = False

    # --- joining ---

    def join_request(self, entry: FrameEntry, message: Any, place: Seen, host: str | None) -> None:
        member = _member(entry, message, host)
        self._waiting.add(place, member)
        self._seen(message.member_id, place)
        if message.member_id or message.group_instance_id or (entry.api_version or 0) < GIVES_MEMBER_ID:
            self._joins(member, place)

    def _joins(self, member: Member, place: Seen) -> None:
        """A member that asks to be let in, and is not merely given an id."""
        rebalance = self._disturbed(self._why(member), place)
        if member.member_id:
            rebalance.join(member.member_id, place.time_ns)

    def join_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        member = self._waiting.pop(asked)
        if message.error_code:
            if message.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self.refused(message.error_code, request.member_id, place)
            return
        if member is None:
            member = Member(request.member_id, instance_id=request.group_instance_id)
        tentative = not member.member_id
        static = self.of_instance(member.instance_id)
        member.member_id = message.member_id
        generation = message.generation_id
        rebalance = self.rebalance
        if rebalance is None and generation == self.generation:
            # The generation holds: a late answer, or a static member that is back.
            self._let_in(member, static, place)
            return
        if rebalance is not None and rebalance.generation not in (None, generation):
            self.end("superseded", place)
            rebalance = None
        if rebalance is None:
            rebalance = self.begin(self._why(member), asked)
        if tentative or member.member_id not in rebalance.joined:
            rebalance.join(member.member_id, asked.time_ns)
            if rebalance.why.member_id == member.client_id:
                rebalance.why = rebalance.why._replace(member_id=member.member_id)
        self._let_in(member, static, place)
        if rebalance.generation is None and generation == self.generation and not message.members:
            self.end("not_needed", place)
            return
        self._new_generation(message, place)

    def _new_generation(self, message: Any, place: Seen) -> None:
        rebalance = self.rebalance
        assert rebalance is not None
        if rebalance.generation is None:
            rebalance.generation, rebalance.joined_ns = message.generation_id, place.time_ns
            self._moved_coordinator = False
            self.unassign()
        rebalance.protocol = self.protocol = message.protocol_name or rebalance.protocol
        rebalance.leader = self.leader = message.leader or rebalance.leader
        self.generation = message.generation_id
        self.members[message.member_id].generation = message.generation_id
        if message.members:
            before = rebalance.named
            rebalance.name(tuple(one.member_id for one in message.members))
            self._drop_missing(before, place)
        self._sure_of_first(rebalance)

    def _sure_of_first(self, rebalance: Rebalance) -> None:
        """Whether whoever came first was the first indeed."""
        who = rebalance.why.member_id
        if rebalance.why.cause != "first_member" or not rebalance.why.inferred or not rebalance.members:
            return
        if rebalance.generation is not None and rebalance.generation <= FIRST_GENERATION:
            rebalance.why = Why("first_member", who, detail=f"generation {rebalance.generation}")
        elif rebalance.unjoined:
            detail = "others were in, whose joining isn't in the input"
            rebalance.why = Why("new_member", who, inferred=True, detail=detail)

    def _drop_missing(self, before: frozenset[str], place: Seen) -> None:
        """Members that the new generation has no more. before: those that it was said to have already; all
        others of the members have joined since."""
        rebalance = self.rebalance
        assert rebalance is not None
        named, members = rebalance.named, self.members
        gone = (one for one in before or members if one not in named and one not in rebalance.joined)
        for one in sorted((one for one in gone if one in members), key=lambda one: members[one].serial):
            silent = self.members[one].silent_at(place.time_ns)
            how: Leaving = "session_timeout" if silent else "not_rejoined"
            self.remove(one, place, how, inferred=True)
            if rebalance.why.cause == "unknown":
                cause: Cause = "session_timeout" if silent else "member_removed"
                rebalance.why = Why(cause, one, inferred=True, detail="it isn't in the new generation")

    def _let_in(self, member: Member, static: Member | None, place: Seen) -> None:
        old = self.members.get(member.member_id)
        if old is not None:
            old.topics, old.owned = member.topics or old.topics, member.owned
            old.protocols = member.protocols or old.protocols
            old.last_seen_ns = place.time_ns
            return
        if static is not None:
            del self.members[static.member_id]
        member.last_seen_ns = place.time_ns
        self.add(member, place, rejoined=static is not None)
        self._watch(member)

    def _why(self, member: Member) -> Why:
        """The cause that a member's joining shows."""
        old = self.members.get(member.member_id)
        who = member.member_id or member.client_id
        static = self.of_instance(member.instance_id)
        if self._moved_coordinator and old is not None:
            self._moved_coordinator = False
            return Why("coordinator_moved", who, inferred=True, detail="it joins again after NOT_COORDINATOR")
        if old is None and static is not None:
            return Why("static_member_returned", who, detail=f"as {member.instance_id}")
        if old is None and not self.members:
            seen = self._known_from_start
            return Why("first_member", who, inferred=not seen, detail="the group was empty" if seen else "")
        if old is None:
            return Why("new_member", who)
        if member.topics != old.topics:
            return Why("subscription_changed", who, detail=changed(old.topics, member.topics))
        if old.owned and not old.owned <= (member.owned or frozenset()):
            return Why("partitions_revoked", who, detail="it owns less than when it joined before")
        if who == self.leader:
            return Why("leader_rejoined", who, detail="its metadata may have changed")
        return Why("member_rejoined", who)

    def unreadable(self, asked: Seen, error_code: int, member_id: str, place: Seen) -> None:
        """The answer to any of its requests couldn't be read whole, but perhaps its error code."""
        self._waiting.pop(asked)
        if error_code:
            self.refused(error_code, member_id, place)

    # --- the assignment ---

    def sync_request(self, message: Any, place: Seen) -> None:
        self._seen(message.member_id, place)
        if not message.assignments or message.generation_id != self.generation:
            return
        opened = open_embedded(message)
        for index, share in enumerate(message.assignments):
            partitions = given(opened.get(f"assignments[{index}].assignment"))
            member = self.members.get(share.member_id)
            if partitions is not None and member is not None:
                self.assign(member, partitions)

    def sync_response(self, request: Any, message: Any, place: Seen) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            return
        self._seen(request.member_id, place)
        partitions = given(open_embedded(message).get("assignment"))
        member = self.members.get(request.member_id)
        if partitions is not None and member is not None:
            self.assign(member, partitions)
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
        # One whose id nobody has told it yet may be among those who are named.
        return not (rebalance.unjoined and self._waiting.has_nameless(rebalance.began.time_ns or 0))

    # --- living and leaving ---

    def alive(self, request: Any, error_code: int, place: Seen) -> None:
        """A heartbeat's answer, or that of a commit."""
        if error_code:
            self.refused(error_code, request.member_id, place)
        else:
            self._seen(request.member_id, place)

    def leave_response(self, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            return
        refused = {(one.member_id, one.group_instance_id) for one in message.members if one.error_code}
        for one in [request, *request.members]:
            instance_id = getattr(one, "group_instance_id", None)
            static = self.of_instance(instance_id)
            name = one.member_id or (static.member_id if static else "")
            if name and (one.member_id, instance_id) not in refused:
                reason = getattr(one, "reason", None)
                self.remove(name, asked, "left", reason=reason)
                self._known_from_start = True
                self._gone(Why("member_left", name, detail=reason or "LeaveGroup"), asked)

    def refused(self, error_code: int, member_id: str, place: Seen) -> None:
        """What an error code says of the group."""
        member = self.members.get(member_id)
        if error_code == ErrorCode.NOT_COORDINATOR:
            self._moved_coordinator = True
        elif error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._seen(member_id, place)
            self._told_to_rejoin(member_id, place)
        elif member is not None and error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            silent = member.silent_at(place.time_ns)
            self.remove(member_id, place, "session_timeout" if silent else "removed", inferred=True)
            cause: Cause = "session_timeout" if silent else "member_removed"
            self._gone(Why(cause, member_id, inferred=True, detail="UNKNOWN_MEMBER_ID"), place)
        elif member is not None and error_code == ErrorCode.FENCED_INSTANCE_ID:
            self.remove(member_id, place, "fenced")
            self._gone(Why("member_fenced", member_id, detail="FENCED_INSTANCE_ID"), place)

    def _gone(self, why: Why, place: Seen) -> None:
        """A member is out."""
        if self.members:
            self._disturbed(why, place)
        else:
            self.end("empty", place)

    def _disturbed(self, why: Why, place: Seen) -> Rebalance:
        """A sign that the members must join again: another rebalance, if this one has its generation."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is not None:
            self.end("superseded", place)
        return self.begin(why, place)

    def _told_to_rejoin(self, member_id: str, place: Seen) -> None:
        """REBALANCE_IN_PROGRESS: the sign of a rebalance whose cause may not have been seen."""
        if self.rebalance is not None and self.rebalance.generation is None:
            return
        for asked, waiting in islice(self._waiting.items(), MOST_LOOKED_AT):
            if waiting.member_id not in self.members:
                who = waiting.member_id or waiting.client_id
                detail = "REBALANCE_IN_PROGRESS while its JoinGroup waits"
                self._disturbed(Why("new_member", who, inferred=True, detail=detail), place).began = asked
                return
        self._disturbed(self._why_told(place), place)

    def _why_told(self, place: Seen) -> Why:
        told = "REBALANCE_IN_PROGRESS"
        member = self._silent(place.time_ns)
        if member is not None:
            detail = f"{told}; it was silent for longer than its session timeout"
            return Why("session_timeout", member.member_id, inferred=True, detail=detail)
        return Why("unknown", inferred=True, detail=f"{told}, and nothing seen that would cause it")

    def _silent(self, time_ns: int | None) -> Member | None:
        """The member whose session was over first, if one's was by then."""
        sessions = self._sessions
        while time_ns is not None and sessions and sessions[0][0] < time_ns:
            over_ns, name = heappop(sessions)
            self._watched.discard(name)
            member = self.members.get(name)
            if member is not None:
                self._watch(member)
                if member.over_ns == over_ns:
                    return member
        return None

    def _watch(self, member: Member) -> None:
        """Note when a member's session is over; it is noted again once that has come."""
        over_ns = member.over_ns
        if over_ns is not None and member.member_id not in self._watched:
            self._watched.add(member.member_id)
            heappush(self._sessions, (over_ns, member.member_id))

    def _seen(self, member_id: str, place: Seen) -> None:
        member = self.members.get(member_id)
        if member is not None:
            member.last_seen_ns = place.time_ns

    def finish(self, place: Seen) -> None:
        """The input is at its end; who must have timed out by then is out."""
        if self.rebalance is None:
            for one in [one for one in self.members.values() if one.silent_at(place.time_ns)]:
                self.remove(one.member_id, place, "session_timeout", inferred=True)
        self.end("unfinished", place)


def _member(entry: FrameEntry, message: Any, host: str | None) -> Member:
    """A member as its JoinGroup describes it."""
    member = Member(
        message.member_id, entry.client_id, host, message.group_instance_id,
        protocols=tuple(one.name for one in message.protocols),
        session_timeout_ms=message.session_timeout_ms,
    )  # fmt: skip
    subscribe(member, open_embedded(message).get("protocols[0].metadata"))
    return member
