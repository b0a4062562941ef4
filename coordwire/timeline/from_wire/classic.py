"""A classic group, by JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Strategy: a rebalance begins with its first sign (`classic_signs`), has its generation with the first answer
to a JoinGroup (`classic_joins`), and ends when all who were seen joining have their assignment, which is
here; a sign in between begins another. `classic_silence` infers who is out. Rules: what a connection sends
after a JoinGroup takes effect after that one's answer. Frames may come in any order.
"""

from __future__ import annotations

from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import assignment_of
from coordwire.timeline.from_wire.classic_joins import ClassicJoins
from coordwire.timeline.from_wire.classic_state import MOST_REPLAYED, NEAR_NS
from coordwire.timeline.from_wire.classic_timers import Departures
from coordwire.timeline.from_wire.group_frames import place_of
from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Rebalance, Why

__all__ = ["ClassicGroup"]


class ClassicGroup(ClassicJoins):
    """One classic group. place: where a frame was seen; asked: where the request that it answers was."""

    # --- the assignment ---

    def sync_request(self, message: Any, place: Seen) -> None:
        member = self.members.get(message.member_id)
        if member is not None and not self.quiet_at(member, place.time_ns):
            member.parked = True
            formed = self._formed
            if formed is not None and formed.generation == message.generation_id:
                over_ns = formed.over_ns(formed.joined_ns)
                if over_ns is None or place.time_ns is None or place.time_ns <= over_ns:
                    formed.syncing.add(member.member_id)
        self._causes.pop(self._asked.pop(message.member_id, place), None)  # its JoinGroup was answered
        if not message.assignments or message.generation_id != self.generation:
            return
        if self._formed is not None and not self._formed.led:
            self._formed.led = True
            self._resume(self._formed, place)  # as the leader's assignments are there, all are answered
        for share in message.assignments:
            partitions = assignment_of(share, message.protocol_type)
            member = self.members.get(share.member_id)
            if partitions is not None and member is not None:
                self.assign(member, partitions)

    def sync_response(
        self, request: Any, message: Any, asked: FrameEntry, place: Seen, host: str | None
    ) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            if message.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._unwritten(request.generation_id, place)
            return
        partitions = assignment_of(message, message.protocol_type)
        known = self.members.get(request.member_id)
        steady = self.rebalance is None or self.rebalance.is_stable_at(place_of(asked))
        heard_ns = None if known is None or not steady else known.last_seen_ns
        member = self._known(request, request.generation_id, asked, place, host)
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
            self.waiting.forget_before(rebalance.joined_ns or 0)
            if rebalance.named or len(self.members) <= MOST_REPLAYED:
                self._written = (
                    rebalance.generation,
                    {name: (one, one.topics, one.owned) for name, one in self.members.items()},
                )
            while self._causes and (next(iter(self._causes)).time_ns or 0) < self._answered_ns - NEAR_NS:
                self._causes.popitem(last=False)  # a generation was formed since
            self.end("steady", place)

    def _unwritten(self, generation: int, place: Seen) -> None:
        """The assignments of a generation could not be written: all must join again."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation == generation:
            self._disturbed(Why("unknown", detail="the assignments could not be written"), place)

    def _complete(self, rebalance: Rebalance) -> bool:
        """Whether all of the generation who were seen joining have their assignment."""
        if rebalance.unsynced_named if rebalance.named else rebalance.unsynced:
            return False
        # One whose id isn't known yet may be among those who are named.
        return not (rebalance.unjoined and self.waiting.has_nameless(rebalance.began.time_ns or 0))

    # --- living, and the end ---

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
        self.stays(member, generation, place)
        return member

    def stays(self, member: Member, generation: int, place: Seen) -> None:
        """A member's request was accepted, which is in that generation."""
        self._seen(member, place)
        if self.generation is not None and generation > self.generation:
            self._formed_unseen(generation, place)

    def _formed_unseen(self, generation: int, place: Seen) -> None:
        """A member is in this later generation, and the answers to JoinGroups are missing: the rebalance
        under way is over, and who has what isn't known."""
        rebalance = self._begin_with_joins() or self.rebalance
        self.generation, self._since_ns = generation, place.time_ns or 0
        self.unassign()
        if rebalance is not None:
            rebalance.generation = generation
            self.end("steady", place)

    def finish(self, place: Seen) -> None:
        """The input is at its end; who must have timed out by then is out."""
        self.let_in_listed(at_end=True)
        self._begin_with_joins()
        self._drop_unlisted(place)
        gone = self._departures(place.time_ns)
        self._end_led(gone, place)
        waiting = set() if self.rebalance is None or len(gone) == len(self.members) else self.rebalance.joined
        for name, (when_ns, how) in gone.items():
            if name not in waiting and (self.quiet_ns(self.members[name]) or 0) <= when_ns:
                self.remove(name, place.at(when_ns), how, inferred=True)
        self.end("unfinished", place)

    def _end_led(self, gone: Departures, place: Seen) -> None:
        """If only members are without their assignments that are out, the others are steady since they have
        theirs."""
        rebalance = self.rebalance
        if rebalance is None or not rebalance.led or rebalance.synced_ns is None:
            return
        if not any(one in self.members and one not in gone for one in rebalance.unsynced_named):
            self.end("steady", place.at(rebalance.synced_ns))
