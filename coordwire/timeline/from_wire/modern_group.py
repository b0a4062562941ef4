"""A group whose coordinator assigns (KIP-848, share groups, streams groups), by its heartbeats.

Strategy: a heartbeat with epoch 0 joins, one below 0 leaves; an answer may bring a new epoch and a new
assignment, which the member has taken up once it reports to own just that. An answer with the epoch that
there was, when a removal would have raised it, shows that all are in: the coordinator has moved unseen, and
their sessions began again. `modern_state` has what follows from heartbeats.

Rules: a null field means "as before". Members of a share group do not report what they own, so that their
assignments count as taken up at once. Of a streams group's tasks, which take the place of partitions, only
the active ones count as held; a member is late until it has reported its standby tasks, too. Topics go by
their ids, which are named when they are reported.
"""

from __future__ import annotations

from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode, StreamsGroupStatus
from coordwire.timeline.consumer_data import changed, has_pattern, id_text, owned, wanted_topics
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.epoch_causes import ASSIGNMENT_INTERVAL_NS
from coordwire.timeline.from_wire.modern_state import LATE_NS, ModernState, give_up_by_ns
from coordwire.timeline.group import MOVED, UNAVAILABLE
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.rebalance import Trigger
from coordwire.timeline.rebalance_cause import of_first_heartbeat

__all__ = ["ModernGroup"]

JOIN = 0

GONE = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}

STAYS = {*UNAVAILABLE, ErrorCode.FENCED_MEMBER_EPOCH}
"""What a member is refused with that stays a member."""

LEAVE_FOR_NOW = -2


class ModernGroup(ModernState):
    """One. place: where a frame was seen; request_place: where the request that it answers was."""

    # --- heartbeats ---

    def _partitions(self, message: Any) -> Owned | None:
        """What its member owns, by a heartbeat, or its answer that it shall own; None for no change."""
        if self.kind == "streams":
            tasks = message.active_tasks
            return None if tasks is None else owned((task.subtopology_id, task.partitions) for task in tasks)
        assignment = getattr(message, "assignment", message)
        topics = None if assignment is None else getattr(assignment, "topic_partitions", None)
        if topics is None:
            return None
        return owned((id_text(task.topic_id), task.partitions) for task in topics)

    def expire_before(self, request: Any, message: Any, asked_place: Seen, place: Seen) -> None:
        """`expire`, unless the answer to a heartbeat shows that all are in: its epoch is as it was."""
        request_place = self.read_place(asked_place, place)
        first = self.over(request_place, waits=True)
        if first is None and not self._doubted and not self._out_or_moved:
            return
        epoch, member = self.generation or 0, self.members.get(request.member_id or message.member_id or "")
        settled = self._is_settled(request_place)
        if member is None:
            static = self.members.of_instance(getattr(request, "instance_id", None)) is not None
            plain = request.member_epoch == JOIN and not has_pattern(wanted_topics(request) or ())
            epoch += self.causes.departures if static else self.causes.departures + 1  # its own doing
            is_same_epoch = plain and message.member_epoch == epoch
            settled |= self.causes.only_departed(self.rebalance)
            if plain and settled and not static:
                self._out_before(message.member_epoch - epoch, request_place)
        else:
            is_same_epoch = (
                request.member_epoch == epoch == message.member_epoch and self._partitions(message) is None
            )
        if first is not None:
            all_in = is_same_epoch and settled and not self.would_convert(first)
            self._expire_or_doubt(all_in, request_place, asked_place)

    def heartbeat(
        self,
        entry: FrameEntry,
        request: Any,
        message: Any,
        place: Seen,
        request_place: Seen,
        host: str | None,
    ) -> None:
        """A heartbeat's answer with its request."""
        member_id = request.member_id or message.member_id or ""
        if message.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.is_told_unknown(member_id, place)
        is_old = not message.error_code and message.member_epoch < (self.generation or 0)  # comes late, then
        if self.is_past(member_id, request_place if request.member_epoch < JOIN or is_old else place):
            return
        if request.member_epoch < JOIN:
            self._leaving.pop(member_id, None)
        if message.error_code:
            self.refuse_heartbeat(message.error_code, member_id, place)
            if not self.is_away:
                self.expire(place)
            return
        if request.member_epoch < JOIN:
            if not self._is_settled(request_place):
                self.expire(request_place)  # else the next epoch shows who is out
            self._leaves(request, member_id, place, request_place)
            return
        self.timeout.heartbeat_interval(message.heartbeat_interval_ms)
        self.is_delayed = self.kind == "streams" and _is_delayed(message)
        member = self.members.get(member_id)
        if member is not None:
            self.alive_at(member, request_place, place)
        self.expire_before(request, message, request_place, place)
        if member is None and request.member_epoch == JOIN:
            self._released(request, message, self.read_place(request_place, place))
        if member is None or (request.member_epoch == JOIN and member.generation != JOIN):
            member = self._joins(member, member_id, entry, request, message, request_place, host, place)
        topics = wanted_topics(request, member.topics)
        if topics is not None and topics != member.topics:
            trigger = Trigger("subscription_changed", member_id, detail=changed(member.topics, topics))
            member.topics = topics
            self.disturbed(trigger, request_place)
        member.away = False
        self._reconcile(member, request, message, place, request_place)

    def _joins(
        self, old: Member | None, member_id: str, entry: FrameEntry, request: Any, message: Any,
        request_place: Seen, host: str | None, place: Seen,
    ) -> Member:  # fmt: skip
        instance_id = getattr(request, "instance_id", None)
        static = self.members.of_instance(instance_id)
        before = old or static
        topics = wanted_topics(request, () if before is None else before.topics)
        member = Member(member_id, entry.client_id, host, instance_id, topics or ())
        member.last_seen_ns = place.time_ns
        assignor = getattr(request, "server_assignor", None)
        member.protocols = (assignor,) if assignor else () if before is None else before.protocols
        member.rebalance_timeout_ms = getattr(request, "rebalance_timeout_ms", None)
        if old is None and request.member_epoch != JOIN:
            member.generation = request.member_epoch  # it was in before the input began
            if self.generation is None and not self.members:
                self._in_before_ns = request_place.time_ns or 0
        else:
            since_ns = (request_place.time_ns or 0) - self.causes.raised_ns
            starts_over = not self.members and message.member_epoch < (self.generation or 0)
            if starts_over and since_ns > ASSIGNMENT_INTERVAL_NS:  # else it is that of a target from before
                self.generation = None  # the group was deleted, and is a new one
            trigger = of_first_heartbeat(self, member, old, static)
            if trigger.cause == "first_member" and trigger.inferred and self.holes.count:
                detail = "it joins; the capture lacks packets, in which others may have joined before"
                trigger = Trigger("unknown", inferred=True, detail=detail)
            if old is not None:
                self.consumption.ends(member_id, request_place.time_ns)
            if static is not None and static.away and not static.assigned:
                self._close_even()  # the others didn't wait for what it had
            if static is not None:
                self.members.drop(static.member_id)
                self.inherits(member, static, place)
            has_other_topics = static is not None and member.topics != static.topics
            if has_other_topics and static is not None and static.topics:
                self.raise_alone(trigger, request_place)
            trigger, joined_place = self.in_order(trigger, request_place)
            rebalance = self.disturbed(trigger, joined_place)
            rebalance.join(member_id, request_place.time_ns)
            another = rebalance.joined_ns is not None and rebalance.trigger.member_id != trigger.member_id
            pattern = has_pattern(member.topics)
            new = trigger.cause in ("first_member", "new_member")
            if (new and (another or pattern)) or (has_other_topics and pattern):
                self.causes.owe(trigger, joined_place)
        comes = old is not None or request.member_epoch == JOIN or self.has_gone(member_id)
        known = old is not None or static is not None or request.member_epoch != JOIN
        self.add(member, place, rejoined=known, was_in=not comes)
        self.watch(member)
        return member

    def _released(self, request: Any, message: Any, request_place: Seen) -> None:
        """A static member that had not left is out if another joins in its name and raises the epoch."""
        static = self.members.of_instance(getattr(request, "instance_id", None))
        known = self.generation is not None and self.kind == "consumer"
        if static is None or static.away or static.classic or not known:
            return
        if (
            message.member_epoch
            <= (self.generation or 0) + max(self.causes.raises, self.causes.departures) + 1
        ):
            return  # it may have left for now, which is missing
        detail = f"another joins as {static.instance_id}"
        if self.is_replaced(static, request_place):
            self.died(static, request_place, detail, sign_place=request_place)
            return
        trigger = self.goes(static.member_id, request_place, "removed", detail, inferred=True)
        self.departed(trigger, request_place, request_place)

    def asks_to_leave(self, member_id: str, epoch: int, place: Seen) -> None:
        """A member sent its last heartbeat, whose answer may be missing or come late."""
        member = self.members.get(member_id)
        if member is not None:
            self._leaving[member_id] = place, epoch == LEAVE_FOR_NOW
            member.unread = member.unread or place

    def stays(self, member_id: str) -> None:
        """A broker that is not the coordinator refused a member's last heartbeat."""
        self._leaving.pop(member_id, None)

    def _leaves(self, request: Any, member_id: str, place: Seen, request_place: Seen) -> None:
        if request.member_epoch == LEAVE_FOR_NOW:
            self.remove(member_id, request_place, "left_for_now")  # its partitions wait for it: no rebalance
            self.progress.leaves(member_id)
            return
        self.departed(self.goes(member_id, request_place, "left"), request_place, place)

    def refuse_heartbeat(self, error_code: int, member_id: str, place: Seen) -> None:
        member = self.members.get(member_id)
        if error_code in MOVED:
            if not self.is_away:
                self._expire_or_doubt(True, place, place)  # whether it moved before or afterwards isn't known
            self.clocks.unavailable(place)
        if member is not None and error_code in STAYS:
            member.last_seen_ns, member.unread = place.time_ns, None
            if error_code == ErrorCode.FENCED_MEMBER_EPOCH:
                self.consumption.ends(member_id, place.time_ns)  # it gives up all and joins again
        if error_code not in GONE or member is None:
            return
        silence_ns = self.silence(member, place)
        if error_code != ErrorCode.UNKNOWN_MEMBER_ID:
            self.departed(self.goes(member_id, place, "fenced"), place, place)
        elif self.timeout.explains(silence_ns + LATE_NS) or self.clocks.over_before_move_ns(
            member, self.session_ns(member)
        ):
            self.died(member, place, "UNKNOWN_MEMBER_ID", sign_place=place, refused=True)
        elif give_up_by_ns(member) <= (place.time_ns or 0):
            self._removed_stubborn(member, place)
        else:
            trigger = self.goes(member_id, place, "removed", "UNKNOWN_MEMBER_ID", inferred=True)
            self.departed(trigger, place, place)

    def _reconcile(
        self, member: Member, request: Any, message: Any, place: Seen, request_place: Seen
    ) -> None:
        reported, assigned = self._partitions(request), self._partitions(message)
        if assigned is not None and assigned != member.assigned:
            self._replaced(member, assigned, place)
        self.in_epoch(member, message.member_epoch, place, request_place)
        if reported is not None:
            if self.causes.unseen is not None:
                self.causes.unseen.reports(member.member_id, reported)
            member.owned = reported
            standby = _standby_tasks(request)
            member.standby_changed &= standby != member.standby
            if reported <= (member.assigned or frozenset()) and standby <= member.standby:
                member.revokes_ns = None  # it gave up what it had to; this answer may give it more
        if assigned is not None and self.kind == "streams":
            self.gives_standby(member, _standby_tasks(message), place)
        if assigned is not None and assigned != member.assigned:
            if member.revokes_ns is None and not (member.assigned or frozenset()) <= assigned:
                member.revokes_ns = place.time_ns
            self.gives(member, assigned, place)
        elif assigned is not None:
            self.consumption.has(member.member_id, assigned, place.time_ns)  # a static member's heir
        self.takes_up(member, assigned is not None or reported is not None, place)


def _standby_tasks(message: Any) -> Owned:
    """The standby tasks that a member of a streams group reports or is given, always with its active ones."""
    tasks = getattr(message, "standby_tasks", None) or ()
    return owned((task.subtopology_id, task.partitions) for task in tasks)


def _is_delayed(message: Any) -> bool:
    """Whether a streams group's coordinator waits for members, or for its interval, before it assigns."""
    return any(status.status_code == StreamsGroupStatus.ASSIGNMENT_DELAYED for status in message.status or ())
