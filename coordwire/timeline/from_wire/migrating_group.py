"""A consumer group that may have classic members too (KIP-848's migration), and how groups convert.

Strategy: a classic member of such a group is a member that reports by other requests: JoinGroup gives it the
group's epoch, SyncGroup its assignment, Heartbeat keeps its session alive. A classic group becomes a consumer
group with the first heartbeat of KIP-848 that its coordinator accepts, and a classic group again when no
member of the newer protocol is left. Rules: a conversion is an event and takes everything along: members,
what they have, the rebalance under way. Classic members name topics, the others' messages have topics' ids: a
consumer group counts in ids, as far as they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.enums import ErrorCode
from coordwire.timeline.consumer_data import assignment_of, changed, id_text
from coordwire.timeline.events import GroupConverted, TopicPartition
from coordwire.timeline.evidence import Seen, is_before
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.classic_requests import PendingJoins, joining_member, leavers
from coordwire.timeline.from_wire.group_frames import place_of
from coordwire.timeline.from_wire.member_death import KnownTimeouts, Sessions
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.from_wire.modern_state import FAR_NS, give_up_by_ns
from coordwire.timeline.group import MOVED, Group
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.rebalance import Trigger
from coordwire.timeline.rebalance_cause import of_first_heartbeat
from coordwire.timeline.stalls import RESUMES_NS

__all__ = ["ConsumerGroup", "to_classic", "to_classic_unseen", "to_consumer"]

MOST_WAITING = 10_000


class ConsumerGroup(ModernGroup):
    """A group of KIP-848. id_of: the text of a topic's id by its name. The methods for classic members are
    named as those of `ClassicGroup`."""

    def __init__(
        self, group: str, name_of: Callable[[str], str], id_of: Callable[[str], str], known: KnownTimeouts
    ) -> None:
        super().__init__(group, "consumer", name_of, known)
        self.id_of = id_of
        self.waiting = PendingJoins(MOST_WAITING)
        self._own_sessions = Sessions(self.members, self.clocks.quiet_until_ns)
        self._awaited = Sessions(self.members, self._awaited_until_ns)
        self._native: set[str] = set()
        self.since: Seen | None = None  # when it became one, if it was a classic group
        self.converts: tuple[Trigger, Seen] | None = None  # why only classic members are left, and since when

    def drop_member(self, member_id: str) -> None:
        super().drop_member(member_id)
        self._native.discard(member_id)

    def add(self, member: Member, place: Seen, *, rejoined: bool = False, was_in: bool = False) -> None:
        super().add(member, place, rejoined=rejoined, was_in=was_in)
        if not member.classic:
            self._native.add(member.member_id)

    def is_older(self, place: Seen) -> bool:
        """Whether something was seen before this became a consumer group: after a lost packet, answers come
        late."""
        return self.since is not None and is_before(place, self.since)

    @property
    def is_classic(self) -> bool:
        """Whether all of its members are."""
        return bool(self.members) and not self._native

    def would_convert(self, member: Member) -> bool:
        return self._native == {member.member_id} and len(self.members) > 1

    def watch(self, member: Member) -> None:
        (self._own_sessions if member.session_timeout_ms else self.sessions).watch(member)

    def expire(self, place: Seen, *, at_end: bool = False) -> None:
        while self.converts is None and (first := self.over(place, at_end=at_end)) is not None:
            self.died(first, place, "")

    def over(self, place: Seen, *, at_end: bool = False, waits: bool = False) -> Member | None:
        first = super().over(place, at_end=at_end, waits=waits)
        if not (self._own_sessions.heap or self._awaited.heap):
            return first  # it has no classic members
        for own in (self._own_sessions.first(), self._awaited.first()):
            if own is None or self.over_since_ns(own) > (place.time_ns or 0):
                continue
            if not waits and self.clocks.is_answered_soon(own, place):
                continue
            if first is None or self.over_since_ns(own) < self.over_since_ns(first):
                first = own
        return first

    def over_since_ns(self, member: Member) -> int:
        until_ns = self.clocks.quiet_until_ns(member) if member.session_timeout_ms else None
        until_ns = until_ns or super().over_since_ns(member)
        return min(until_ns, self._awaited_until_ns(member) or until_ns)

    def _awaited_until_ns(self, member: Member) -> int | None:
        """By when a classic member must have joined again, or asked for its assignment; a move takes its
        timer back."""
        if not member.classic or (member.revokes_ns or 0) <= self.clocks.available_ns:
            return None
        return give_up_by_ns(member)

    def _is_over_at(self, member: Member, place: Seen) -> bool:
        """Whether a classic member must be out by then; the request that shows it does not count."""
        until_ns = self._awaited_until_ns(member)
        return self.clocks.silent_at(member, place.time_ns) or (until_ns or FAR_NS) < (place.time_ns or 0)

    def _awaits(self, member: Member, place: Seen) -> None:
        """A classic member shall join again, or ask for its assignment, from now on."""
        member.revokes_ns = place.time_ns
        self._awaited.watch(member)

    def died(
        self, member: Member, place: Seen, sign: str, sign_place: Seen | None = None, *, refused: bool = False
    ) -> None:
        until_ns = self._awaited_until_ns(member)
        if until_ns is None or until_ns > min(self.over_since_ns(member), place.time_ns or 0):
            super().died(member, place, sign, sign_place, refused=refused)
            return
        moment = place.at(until_ns)
        detail = "it didn't join again in time"
        trigger = self.goes(member.member_id, moment, "not_rejoined", detail, inferred=True)
        self.departed(trigger, moment, place)

    def departed(self, trigger: Trigger, moment: Seen, place: Seen) -> None:
        super().departed(trigger, moment, place)
        if self.is_classic and self.converts is None:
            self.converts = trigger, moment

    def asks_offsets(self, client_id: str | None, topics: Iterable[Any]) -> None:
        """A client asks for the group's committed offsets of these topics' partitions: as a rule, of those
        that are new to its member."""
        unseen = self.causes.unseen
        if unseen is None:
            return
        names = [name for name in unseen.assigned if name in self.members and name not in unseen.new]
        askers = [name for name in names if self.members[name].client_id == client_id]
        if len(askers) == 1:
            unseen.asks_offsets(askers[0], (
                TopicPartition(self.id_of(topic.name) if topic.name else id_text(topic.topic_id), number)
                for topic in topics
                for number in topic.partition_indexes
                if topic.name or hasattr(topic, "topic_id")
            ))  # fmt: skip

    # --- classic members ---

    def join_request(self, entry: FrameEntry, message: Any, place: Seen, host: str | None) -> None:
        self.waiting.add(place, joining_member(entry, message, host))

    def join_response(
        self, request: Any, message: Any, request_entry: FrameEntry, place: Seen, host: str | None
    ) -> None:
        request_place = place_of(request_entry)
        joining = self.waiting.pop(request_place)
        if self.is_older(place):
            return
        if message.error_code:
            if message.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self.refused(message.error_code, request.member_id, place)
            return
        if joining is None:
            joining = joining_member(request_entry, request, host)
        joining.member_id = message.member_id
        member = self.members.get(message.member_id)
        if member is None:
            static = self.members.of_instance(joining.instance_id)
            trigger = of_first_heartbeat(self, joining, None, static)
            if static is not None:
                self.members.drop(static.member_id)
                self.inherits(joining, static, place)
            if static is not None and static.topics and static.topics != joining.topics:
                self.raise_alone(trigger, request_place)
            self.disturbed(trigger, request_place).join(joining.member_id, request_place.time_ns)
            member = joining
            self.add(member, place, rejoined=static is not None)
            if static is not None and message.generation_id <= 0 and self.is_classic:
                self.converts = self.converts or (
                    trigger,
                    request_place,
                )  # it is in no epoch, but shall join again
        else:
            topics, member.topics = member.topics, joining.topics or member.topics
            if topics and topics != member.topics:
                trigger = Trigger(
                    "subscription_changed", member.member_id, detail=changed(topics, member.topics)
                )
                self.disturbed(trigger, request_place)
        owned = joining.owned
        if owned is not None:
            self.consumption.keeps(member.member_id, self._by_id(owned), request_place.time_ns)
        self._alive(member, place)
        self._awaits(member, place)
        self.in_epoch(member, message.generation_id, place, request_place)
        if member.assigned is None:
            self.assign(member, frozenset())
        member.owned = None  # SyncGroup brings its assignment
        self.takes_up(member, False, place)

    def sync_request(self, message: Any, place: Seen) -> None:
        """The coordinator assigns: what a member says in it has no effect."""

    def sync_response(
        self, request: Any, message: Any, request_entry: FrameEntry, place: Seen, host: str | None
    ) -> None:
        if message.error_code:
            self.refused(message.error_code, request.member_id, place)
            return
        member = self.members.get(request.member_id)
        partitions = assignment_of(message, message.protocol_type)
        if member is None or partitions is None:
            return
        self._alive(member, place)
        partitions = self._by_id(partitions)
        if partitions != member.assigned:
            self.gives(member, partitions, place)
        else:
            self.consumption.has(member.member_id, partitions, place.time_ns)
        member.owned = member.assigned
        self.takes_up(member, True, place)

    def alive(
        self,
        request: Any,
        error_code: int,
        generation: int,
        request_entry: FrameEntry,
        place: Seen,
        host: str | None,
    ) -> None:
        """A heartbeat's answer, or that of a commit. generation: the epoch that its member is in."""
        if error_code:
            self.refused(error_code, request.member_id, place)
            return
        member = self.members.get(request.member_id)
        if member is None:
            self.is_accepted_late(request.member_id, place)
        elif member.classic:
            self._alive(member, place)

    def leave_request(self, message: Any, asking: FrameEntry, place: Seen) -> None:
        """It counts once it is answered."""

    def leave_response(
        self, request: Any, asking: FrameEntry, message: Any, place: Seen, request_place: Seen
    ) -> None:
        if message.error_code:
            return
        for name, reason, departure in leavers(self, asking, request, message):
            trigger = self.goes(name, request_place, departure, reason or "LeaveGroup", reason=reason)
            self.departed(trigger, request_place, place)

    def refused(self, error_code: int, member_id: str, place: Seen) -> None:
        """What an error code says of a classic member."""
        member = self.members.get(member_id)
        if error_code in MOVED:
            self.clocks.unavailable(place)
        if error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.is_told_unknown(member_id, place)
        if member is None:
            return
        if not member.classic:
            self.refuse_heartbeat(error_code, member_id, place)
            return
        if error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._alive(member, place)
            if member.revokes_ns is None:
                self._awaits(member, place)
        elif error_code == ErrorCode.UNKNOWN_MEMBER_ID and self._is_over_at(member, place):
            self.died(member, place, "UNKNOWN_MEMBER_ID", sign_place=place, refused=True)
        elif error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            fenced = error_code == ErrorCode.FENCED_INSTANCE_ID
            trigger = self.goes(member_id, place, "fenced" if fenced else "removed", inferred=not fenced)
            self.departed(trigger, place, place)

    def unreadable(self, request_place: Seen, error_code: int, member_id: str, place: Seen) -> None:
        """The answer to any of its requests couldn't be read whole, but perhaps its error code."""
        self.waiting.pop(request_place)
        if error_code:
            self.refused(error_code, member_id, place)

    def refused_elsewhere(self, request_place: Seen, member_id: str) -> None:
        """A broker that is not the coordinator refused a request of a classic member."""
        self.waiting.pop(request_place)

    def _alive(self, member: Member, place: Seen) -> None:
        member.last_seen_ns, member.unread = place.time_ns, None
        self.watch(member)
        self.expire(place)

    def _by_id(self, partitions: Owned) -> Owned:
        return frozenset(
            TopicPartition(self.id_of(partition.topic), partition.partition) for partition in partitions
        )


def to_consumer(
    old: ClassicGroup, name_of: Callable[[str], str], id_of: Callable[[str], str], known: KnownTimeouts,
    member_id: str, request_place: Seen, place: Seen,
) -> ConsumerGroup:  # fmt: skip
    """The consumer group that a classic group becomes. place: of the answer that shows it; what waited for it
    was read then."""
    old.over_by(request_place)
    new = ConsumerGroup(old.group, name_of, id_of, known)
    waited_ns = (place.time_ns or 0) - (request_place.time_ns or 0)
    _carry_over(old, new, id_of, place if waited_ns >= RESUMES_NS else request_place)
    new.waiting, new.since = old.waiting, request_place
    for member in new.members.values():
        member.owned = member.assigned
        new.progress.note(member)
        new.watch(member)
    new.report(
        GroupConverted, request_place, kind_before=old.kind, kind=new.kind, member_id=member_id or None
    )
    return new


def to_classic(
    old: ConsumerGroup, member_id: str | None, place: Seen, *, inferred: bool = True
) -> ClassicGroup:
    """The classic group that a consumer group becomes. inferred: from its members, without an answer."""
    rebalance = old.rebalance
    cause_member = None if rebalance is None else old.members.get(rebalance.trigger.member_id or "")
    rebalances = (
        cause_member is not None and (cause_member.generation or 0) <= 0
    )  # it was given no generation yet
    static = rebalance is not None and rebalance.trigger.cause == "static_member_returned"
    if rebalance is not None and static and rebalance.joined_ns is None and not rebalances:
        old.end("not_needed", place)  # its member has what its predecessor had
    if old.converts is not None:
        trigger, place = old.converts
        if old.rebalance is not None and old.rebalance.trigger != trigger:
            old.close("superseded", place)  # the classic group begins one of its own
    new = ClassicGroup(old.group)
    _carry_over(old, new, old.name_of, place)
    new.awaits(old.waiting)
    if old.converts is not None:
        new.begin(trigger, place)
    for member in new.members.values():
        member.owned = member.revokes_ns = None  # its next JoinGroup says it, in the names of topics
    if new.rebalance is not None and new.rebalance.joined_ns is not None:
        new.rebalance.generation = new.generation
        new.rebalance.members = tuple(new.members)
    new.adopt()
    new.report(
        GroupConverted, place, kind_before=old.kind, kind=new.kind, member_id=member_id, inferred=inferred
    )
    return new


def to_classic_unseen(old: ConsumerGroup, request_place: Seen) -> ClassicGroup:
    """The classic group that a consumer group has become, as a JoinGroup's answer with a leader shows: the
    sessions of its members of KIP-848 are over. request_place: where that JoinGroup was seen."""
    native = [member for member in old.members.values() if not member.classic]
    heard_ns = max((old.clocks.quiet_ns(member) or 0 for member in native), default=0)
    waiting = [
        (place, member)
        for place, member in old.waiting.items()
        if (member.member_id or member.instance_id) and (place.time_ns or 0) >= heard_ns
    ]  # what was asked before was answered before
    first = min((place for place, _ in waiting), key=lambda place: place.time_ns or 0, default=request_place)
    for member in native:
        old.died(member, first, "the group is a classic one")
    new = to_classic(old, None, first, inferred=False)
    for place, joining in waiting:
        new.asks_to_join(joining, place)
    return new


def _carry_over(old: Group, new: Group, topic: Callable[[str], str], place: Seen) -> None:
    """What a group has stays, under the protocol that it goes on with; an empty group begins again, and so do
    sessions. topic: what that protocol calls a topic."""

    def renamed(partitions: Owned) -> Owned:
        return frozenset(
            TopicPartition(topic(partition.topic), partition.partition) for partition in partitions
        )

    new.pending = old.pending
    clocks, before = new.clocks, old.clocks
    clocks.stalls, clocks.stall, clocks.reported = before.stalls, before.stall, before.reported
    new.unanswered = old.unanswered
    new.coordinator, new.brokers, new.asked_broker = old.coordinator, old.brokers, old.asked_broker
    new.outage, new.back = old.outage, old.back
    new.generation = old.generation if old.members else None
    new.rebalance = old.rebalance
    new.settled = {name: renamed(partitions) for name, partitions in old.settled.items()}
    new.consumption = old.consumption.renamed(topic)
    for name, member in old.members.items():
        new.members[name] = member
        member.parked = False  # what waited is answered that it must join again
        if member.last_seen_ns is not None and place.time_ns is not None:
            member.last_seen_ns = max(member.last_seen_ns, place.time_ns)
        new.assign(member, None if member.assigned is None else renamed(member.assigned))
