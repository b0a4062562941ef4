"""A group whose coordinator assigns (KIP-848, share groups, streams groups), by its heartbeats.

Strategy: a heartbeat with epoch 0 joins, one below 0 leaves; an answer may bring a new epoch and a new
assignment, which the member has taken up once it reports to own just that. `modern_rebalances` has what
begins and ends a rebalance, `modern_epochs` whose doing an epoch is, `modern_silence` who is out. Rules: a
null field means "as before"; members of a share group don't say what they own, so that theirs counts as
taken up at once; of a streams group's tasks, which take the place of partitions, only the active ones count.
Topics go by their ids, which are named when they are reported.
"""

from __future__ import annotations

from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import changed, has_pattern, wanted_topics
from coordwire.timeline.from_wire.modern_epochs import ModernEpochs
from coordwire.timeline.from_wire.modern_rebalances import ASSIGNMENT_INTERVAL_NS, JOIN
from coordwire.timeline.group import MOVED, UNAVAILABLE
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Why
from coordwire.timeline.rebalance_cause import of_first_heartbeat

__all__ = ["ModernGroup"]

GONE = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}
STAYS = {*UNAVAILABLE, ErrorCode.FENCED_MEMBER_EPOCH}
"""What a member is refused with that stays a member."""

LEAVE_FOR_NOW = -2


class ModernGroup(ModernEpochs):
    """One such group. place: where a frame was seen; asked: where the request that it answers was."""

    def heartbeat(
        self, entry: FrameEntry, request: Any, message: Any, place: Seen, asked: Seen, host: str | None
    ) -> None:
        """A heartbeat's answer with its request."""
        member_id = request.member_id or message.member_id or ""
        if message.error_code:
            self._refused(message.error_code, member_id, place)
            self.expire(place)
            return
        if request.member_epoch < JOIN:
            if not self._is_settled(asked):
                self.expire(asked)  # else the next epoch shows who is out
            self._leaves(request, member_id, place, asked)
            return
        self.timeout.heartbeat_interval(message.heartbeat_interval_ms)
        member = self.members.get(member_id)
        if member is not None:
            self.alive_at(member, asked, place)
        self.expire_before(request, message, asked)
        if member is None and request.member_epoch == JOIN:
            self._released(request, message, asked)
        if member is None or (request.member_epoch == JOIN and member.generation != JOIN):
            member = self._joins(member, member_id, entry, request, message, asked, host, place)
        topics = wanted_topics(request, member.topics)
        if topics is not None and topics != member.topics:
            why = Why("subscription_changed", member_id, detail=changed(member.topics, topics))
            member.topics = topics
            self.disturbed(why, asked)
        member.away = False
        self._reconcile(member, request, message, place, asked)

    def goes_on(self, member: Member, epoch: int, interval_ms: int, place: Seen, asked: Seen) -> None:
        """`heartbeat` of a member that asks for nothing, and is given nothing but this epoch."""
        self.timeout.heartbeat_interval(interval_ms)
        self.alive_at(member, asked, place)
        if self.over(asked) is not None:
            self._expire_or_doubt(self._is_settled(asked) and epoch == self.generation, asked)
        member.away = False
        if self.generation is not None and epoch <= self.generation:
            member.generation = epoch
        else:
            self.in_epoch(member, epoch, place, asked)
        self.takes_up(member, False, place)

    def _joins(
        self, old: Member | None, member_id: str, entry: FrameEntry, request: Any, message: Any,
        asked: Seen, host: str | None, place: Seen,
    ) -> Member:  # fmt: skip
        instance_id = getattr(request, "instance_id", None)
        static = self.members.of_instance(instance_id)
        before = old or static
        topics = wanted_topics(request, () if before is None else before.topics)
        member = Member(member_id, entry.client_id, host, instance_id, topics or ())
        member.last_seen_ns = place.time_ns
        member.rebalance_timeout_ms = getattr(request, "rebalance_timeout_ms", None)
        if old is None and request.member_epoch != JOIN:
            member.generation = request.member_epoch  # it was in before the input began
        else:
            since_ns = (asked.time_ns or 0) - self._raised_ns
            again = not self.members and message.member_epoch < (self.generation or 0)
            if again and since_ns > ASSIGNMENT_INTERVAL_NS:  # else it is that of a target from before
                self.generation = None  # the group was deleted, and is a new one
            why = of_first_heartbeat(self, member, old, static)
            if old is not None:
                self.consumption.ends(member_id, asked.time_ns)
            if static is not None and static.away and not static.assigned:
                self._close_even()  # the others didn't wait for what it had
            if static is not None:
                self.members.drop(static.member_id)
                self.inherits(member, static, asked)
            other = static is not None and member.topics != static.topics
            if other and static is not None and static.topics:
                self._raises_alone(why, asked)
            rebalance = self.disturbed(why, asked)
            rebalance.join(member_id, asked.time_ns)
            another = rebalance.joined_ns is not None and rebalance.why.member_id != member_id
            pattern = has_pattern(member.topics)
            new = why.cause in ("first_member", "new_member")
            if (new and (another or pattern)) or (other and pattern):
                self._owes(why, asked)
        known = old is not None or static is not None or request.member_epoch != JOIN
        self.add(member, place, rejoined=known)
        self.watch(member)
        return member

    def _released(self, request: Any, message: Any, asked: Seen) -> None:
        """A static member that had not left is out if another joins in its name and raises the epoch."""
        static = self.members.of_instance(getattr(request, "instance_id", None))
        known = self.generation is not None and self.kind == "consumer"
        if static is None or static.away or static.classic or not known:
            return
        if message.member_epoch <= (self.generation or 0) + max(self._raises, self._departures) + 1:
            return  # it may have left for now, which is missing
        detail = f"another joins as {static.instance_id}"
        if self.timeout.is_replaced(self.quiet(static, asked)):
            self.died(static, asked, detail, shown=asked)
            return
        self.remove(static.member_id, asked, "removed", inferred=True)
        self.departed(Why("member_removed", static.member_id, inferred=True, detail=detail), asked, asked)

    def _leaves(self, request: Any, member_id: str, place: Seen, asked: Seen) -> None:
        if request.member_epoch == LEAVE_FOR_NOW:
            self.remove(member_id, asked, "left_for_now")  # its partitions wait for it: no rebalance
            self.progress.leaves(member_id)
            return
        self.remove(member_id, asked, "left")
        self.departed(Why("member_left", member_id), asked, place)

    def _refused(self, error_code: int, member_id: str, place: Seen) -> None:
        member = self.members.get(member_id)
        if error_code in MOVED:
            self._expire_or_doubt(True, place)  # whether it moved before or afterwards isn't known
            self.unavailable(place)
        if member is not None and error_code in STAYS:
            member.last_seen_ns = place.time_ns
            if error_code == ErrorCode.FENCED_MEMBER_EPOCH:
                self.consumption.ends(member_id, place.time_ns)  # it gives up all and joins again
        if error_code not in GONE or member is None:
            return
        silence_ns = self.silence(member, place)
        if error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            self.remove(member_id, place, "fenced")
            self.departed(Why("member_fenced", member_id), place, place)
        elif self.timeout.explains(silence_ns):
            self.died(member, place, "UNKNOWN_MEMBER_ID", shown=place, refused=True)
        else:
            self.remove(member_id, place, "removed", inferred=True)
            why = Why("member_removed", member_id, inferred=True, detail="UNKNOWN_MEMBER_ID")
            self.departed(why, place, place)

    def _reconcile(self, member: Member, request: Any, message: Any, place: Seen, asked: Seen) -> None:
        reported, given = self._partitions(request), self._partitions(message)
        if given is not None and given != member.assigned:
            self._replaced(member, given, place)
        self.in_epoch(member, message.member_epoch, place, asked)
        if reported is not None:
            member.owned = reported
            if reported <= (member.assigned or frozenset()):
                member.revokes_ns = None  # it gave up what it had to; this answer may give it more
        if given is not None and given != member.assigned:
            if member.revokes_ns is None and not (member.assigned or frozenset()) <= given:
                member.revokes_ns = place.time_ns
            self.gives(member, given, place)
        self.takes_up(member, given is not None or reported is not None, place)

    def gives(self, member: Member, partitions: Owned, place: Seen) -> None:
        """A member has another assignment."""
        if self.rebalance is None and member.assigned is not None:
            detail = "its coordinator gave it another assignment"
            why = Why("assignment_changed", member.member_id, inferred=True, detail=detail)
            self.disturbed(why, place).joined_ns = place.time_ns
        if self._given_ns is None:
            self._given_ns = place.time_ns
        self.assign(member, partitions)
        self.consumption.has(member.member_id, partitions, place.time_ns)

    def takes_up(self, member: Member, anew: bool, place: Seen) -> None:
        """A member was heard. anew: what it has or shall have may have changed."""
        if (anew and member.owned == member.assigned) or self.kind == "share":
            member.owned = member.assigned  # so that they need not be compared again
            member.revokes_ns = None
        if self.members.get(member.member_id) is member:
            self.progress.note(member)
        self.settle(member.member_id, place)

    def _awaits_owners(self) -> bool:
        """Whether partitions are without an owner whose topics members subscribe to."""
        wanted = {topic for member in self.members.values() for topic in member.topics}
        patterns = any(topic.startswith("/") for topic in wanted)
        return any(patterns or self.name_of(one.topic) in wanted for one in self.progress.lost)

    def finish(self, place: Seen) -> None:
        """The input is at its end."""
        self.expire(place, at_end=True)
        even = self.progress.even_since
        renewed = self.rebalance is not None and self.rebalance.joined_ns is not None
        if even is not None and renewed and not self._awaits_owners():
            self.close("steady", even)
        if self.rebalance is not None and self.progress.is_empty:
            self.close("empty", place.at(self.rebalance.began.time_ns))  # those that left for now apart
        self.close("unfinished", place)
