"""Events of consumer, share and streams groups, whose coordinator assigns: durable records, to events.

Strategy: the records of one append are one thing that happened. A member that they bring in, take out or
change is why the group's epoch rises with them; if there is none, the coordinator itself is. The group is
steady when each member has come to the newest target. Rules: the only state is that of durable records; a
member that left for now keeps its place, and no rebalance waits for it. The active tasks of a streams group
take the place of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from coordwire.codec.primitives import uuid_text
from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.consumer_group import LEFT_FOR_NOW, MemberState
from coordwire.coordinator.timeline.classic_groups import Rebalances, UnderWay
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMetadataKey,
    ShareGroupTargetAssignmentMetadataKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
)
from coordwire.timeline.events import (
    Cause,
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    Kind,
    Leaving,
    MemberJoined,
    MemberLeft,
    TopicPartition,
)

_MEMBER_KEYS: Final[dict[type[Any], Kind]] = {
    ConsumerGroupMemberMetadataKey: "consumer",
    ShareGroupMemberMetadataKey: "share",
    StreamsGroupMemberMetadataKey: "streams",
}
_EPOCH_KEYS: Final[dict[type[Any], Kind]] = {
    ConsumerGroupMetadataKey: "consumer",
    ShareGroupMetadataKey: "share",
    StreamsGroupMetadataKey: "streams",
}
_TARGET_KEYS: Final[dict[type[Any], Kind]] = {
    ConsumerGroupTargetAssignmentMetadataKey: "consumer",
    ShareGroupTargetAssignmentMetadataKey: "share",
    StreamsGroupTargetAssignmentMetadataKey: "streams",
}
_ASSIGNMENT_KEYS: Final[dict[type[Any], Kind]] = {
    ConsumerGroupCurrentMemberAssignmentKey: "consumer",
    ShareGroupCurrentMemberAssignmentKey: "share",
    StreamsGroupCurrentMemberAssignmentKey: "streams",
}
CONVERTED: Final = ("classic", "consumer")
"""The kinds of groups that become another, and then keep their offsets."""

_KINDS = _MEMBER_KEYS | _EPOCH_KEYS | _TARGET_KEYS | _ASSIGNMENT_KEYS
"""All records that count; in a compacted log a group may begin with any of them."""

_CAUSES: dict[Leaving, Cause] = {
    "left": "member_left",
    "session_timeout": "session_timeout",
    "fenced": "member_fenced",
}


@dataclass(slots=True)
class _Member:
    """A member by its records. owned: as they say it."""

    member_id: str
    metadata: Any
    epoch: int = 0
    stable: bool = True
    owned: Sequence[tuple[UUID | str, list[int]]] = ()

    @property
    def wants(self) -> tuple[tuple[str, ...], str]:
        """Topics, and the pattern of topics; a streams group has them, not its members."""
        metadata = self.metadata
        return (
            tuple(sorted(getattr(metadata, "subscribed_topic_names", ()))),
            getattr(metadata, "subscribed_topic_regex", None) or "",
        )

    @property
    def instance_id(self) -> str | None:
        return getattr(self.metadata, "instance_id", None)

    @property
    def classic(self) -> Any:
        """What it joined with, as a member of a classic group; None for one that does not."""
        return getattr(self.metadata, "classic_member_metadata", None)


@dataclass(slots=True)
class _Group:
    """A group by its records. late: who has not come to the target; trigger: what will raise the epoch."""

    kind: Kind
    epoch: int = 1
    assignment_epoch: int = 1
    members: dict[str, _Member] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    trigger: tuple[Cause, str | None] | None = None

    def note(self, member: _Member) -> None:
        """Count a member as it is now."""
        is_settled = member.epoch == LEFT_FOR_NOW or (member.stable and member.epoch == self.assignment_epoch)
        (self.late.discard if is_settled else self.late.add)(member.member_id)


@dataclass(slots=True)
class _Change:
    """What the records of one append do to one group."""

    joined: dict[str, _Member] = field(default_factory=dict)
    former: dict[str, _Member] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    away: list[_Member] = field(default_factory=list)
    epoch: int | None = None
    assigned: bool = False
    ended: bool = False
    moved: bool = False
    was_classic: bool = False
    classic: bool = False


class ModernGroups:
    """Of all groups whose coordinator assigns. topics: gives the topics by their ids."""

    def __init__(
        self,
        report: Callable[[GroupEvent], None],
        rebalances: Rebalances,
        topics: Callable[[], TopicsImage],
    ) -> None:
        self._report = report
        self._rebalances = rebalances
        self._topics = topics
        self._groups: dict[str, _Group] = {}

    def load(self, record: LogRecord) -> None:
        """A record from before: what it says is so, and nothing happens."""
        changes: dict[str, _Change] = {}
        self._take_up(record, changes)
        for group_id, change in changes.items():
            group = self._groups.get(group_id)
            if group is None:
                continue
            if change.ended or change.classic:
                del self._groups[group_id]
            else:
                self._recount(group, change)

    def loaded(self, now: int) -> None:
        """Those were all records from before: what is under way by them began for an unknown reason."""
        for group_id, group in self._groups.items():
            if group.members and (group.late or group.epoch > group.assignment_epoch):
                detail = "it was under way when the coordinator loaded the group"
                before = group.assignment_epoch - 1
                rebalance = self._rebalances.begin(group_id, now, group.kind, "unknown", None, before, detail)
                if group.epoch == group.assignment_epoch:
                    rebalance.generation, rebalance.joined = group.assignment_epoch, now

    def records(self, now: int, records: Iterable[LogRecord], because: AppendCause) -> None:
        """The records of one append are durable; those of commits are another's."""
        changes: dict[str, _Change] = {}
        cleared: set[str] = set()
        for record in records:
            if not isinstance(record.key, OffsetCommitKey):
                self._take_up(record, changes)
            elif record.value is None:
                cleared.add(record.key.group)
        for group_id, change in changes.items():
            group = self._groups.get(group_id)
            self._tell(now, group_id, change, because)
            over = (change.ended or change.was_classic) and not change.classic and change.epoch is None
            if over and (group_id in cleared or (group is not None and group.kind not in CONVERTED)):
                self._report(GroupDeleted(**self._rebalances.place(group_id, now)))

    # --- records ---

    def _take_up(self, record: LogRecord, changes: dict[str, _Change]) -> None:
        key: Any = record.key
        value: Any = record.value
        if isinstance(key, GroupMetadataKey):
            change = changes.setdefault(key.group, _Change())
            if value is None:
                change.was_classic = True
            else:
                change.classic = True
            return
        group_id = getattr(key, "group_id", None)
        if group_id is None or isinstance(value, bytes):
            return
        change = changes.setdefault(group_id, _Change())
        group = self._groups.get(group_id)
        if group is None:
            kind = _KINDS.get(type(key))
            if value is None or kind is None:
                return
            group = self._groups[group_id] = _Group(kind)
        if type(key) in _MEMBER_KEYS:
            _read_metadata(group, change, key.member_id, value)
        elif type(key) in _ASSIGNMENT_KEYS:
            _owns(group, change, key.member_id, value)
        elif type(key) in _EPOCH_KEYS:
            if value is None:
                change.ended = True
            else:
                group.epoch = change.epoch = value.epoch
        elif type(key) in _TARGET_KEYS and value is not None:
            group.assignment_epoch = value.assignment_epoch
            change.assigned = True

    @staticmethod
    def _recount(group: _Group, change: _Change) -> None:
        if change.assigned:
            for member in group.members.values():
                group.note(member)

    # --- events ---

    def _tell(self, now: int, group_id: str, change: _Change, because: AppendCause) -> None:
        group = self._groups.get(group_id)
        if group is None:
            return
        if change.classic or change.ended:
            # Its end as a group of its kind; what goes on as a classic group is that one's story.
            del self._groups[group_id]
            if not change.classic:
                self._rebalances.end(group_id, now, "empty")
            return
        before = 0
        if change.was_classic:
            before = self._converts(now, group_id, group, change)
        self._recount(group, change)
        for member in change.away:
            self._report_departure(now, group_id, member, "left_for_now", None)
        for member in change.former.values():
            heir = _heir(member, change)
            if heir is None:
                self._report_departure(now, group_id, member, because.leaving, because.reason)
            elif member.epoch != LEFT_FOR_NOW:
                self._report_departure(now, group_id, member, "fenced", None)
        for member in change.joined.values():
            self._joined(now, group_id, group.kind, member, rejoined=_predecessor(member, change) is not None)
        trigger = _trigger_of(group, change, because)
        if change.epoch is not None and change.epoch > before:
            self._raised(now, group_id, group, trigger or group.trigger or ("assignment_changed", None))
            group.trigger = None
        elif trigger is not None and trigger[0] != "static_member_returned":
            group.trigger = trigger  # a pattern that is not resolved yet will raise the epoch
        self._settle(now, group_id, group, change)

    def _converts(self, now: int, group_id: str, group: _Group, change: _Change) -> int:
        """A classic group goes on as this one; gives the epoch that it goes on with."""
        new = [member for member in change.joined.values() if member.classic is None]
        self._rebalances.end(group_id, now, "superseded")
        self._report(
            GroupConverted(
                **self._rebalances.place(group_id, now), kind_before="classic", kind=group.kind,
                member_id=new[0].member_id if new else None,
            )
        )  # fmt: skip
        members = (*change.joined.values(), *change.former.values())
        old = [member for member in members if member.classic is not None]
        change.joined = {member.member_id: member for member in new}
        change.changed = []
        return max((member.epoch for member in old), default=0)

    def _raised(self, now: int, group_id: str, group: _Group, trigger: tuple[Cause, str | None]) -> None:
        """The group's epoch rose."""
        rebalance = self._rebalances.get(group_id)
        if rebalance is not None and rebalance.joined is None and rebalance.kind == group.kind:
            return  # no target was computed since it began: the next is for both
        self._rebalances.end(group_id, now, "superseded")
        self._rebalances.begin(group_id, now, group.kind, *trigger, group.epoch - 1)

    def _settle(self, now: int, group_id: str, group: _Group, change: _Change) -> None:
        rebalance = self._rebalances.get(group_id)
        if rebalance is None:
            return
        if not group.members:
            rebalance.generation = group.epoch
            self._rebalances.end(group_id, now, "empty")
            return
        if change.assigned:
            rebalance.generation, rebalance.joined = group.assignment_epoch, now
        if rebalance.joined is not None and not group.late and group.epoch == group.assignment_epoch:
            self._steady(now, group_id, group, rebalance)

    def _steady(self, now: int, group_id: str, group: _Group, rebalance: UnderWay) -> None:
        rebalance.members = tuple(group.members)
        assigned = {name: self._named(member.owned) for name, member in group.members.items()}
        self._rebalances.end(group_id, now, "steady", assigned)

    def _named(self, owned: Iterable[tuple[UUID | str, list[int]]]) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(self._name(topic_id), number) for topic_id, numbers in owned for number in numbers
        )

    def _name(self, topic_id: UUID | str) -> str:
        """topic_id: of a topic; or a subtopology's, which is its name."""
        if isinstance(topic_id, str):
            return topic_id
        topic = self._topics().find_id(topic_id)
        return uuid_text(topic_id) if topic is None else topic.name

    def _joined(self, now: int, group_id: str, kind: Kind, member: _Member, *, rejoined: bool) -> None:
        names, regex = member.wants
        classic = member.classic
        self._report(
            MemberJoined(
                **self._rebalances.place(group_id, now), kind=kind, member_id=member.member_id,
                client_id=member.metadata.client_id, host=member.metadata.client_host.removeprefix("/"),
                instance_id=member.instance_id, topics=(*names, *([f"/{regex}/"] if regex else ())),
                protocols=() if classic is None else _protocol_names(classic),
                session_timeout_ms=None if classic is None else classic.session_timeout_ms, rejoined=rejoined,
            )
        )  # fmt: skip

    def _report_departure(
        self, now: int, group_id: str, member: _Member, departure: Leaving, reason: str | None
    ) -> None:
        self._report(
            MemberLeft(
                **self._rebalances.place(group_id, now), member_id=member.member_id,
                client_id=member.metadata.client_id, instance_id=member.instance_id, how=departure,
                reason=reason,
            )
        )  # fmt: skip


def _protocol_names(metadata: Any) -> tuple[str, ...]:
    return tuple(protocol.name for protocol in metadata.supported_protocols)


def _read_metadata(group: _Group, change: _Change, member_id: str, value: Any) -> None:
    known = group.members.get(member_id)
    if value is None:
        if known is not None:
            del group.members[member_id]
            group.late.discard(member_id)
            if change.joined.pop(member_id, None) is None or change.was_classic:
                change.former[member_id] = known
        return
    if known is None:
        group.members[member_id] = change.joined[member_id] = _Member(member_id, value)
        group.note(group.members[member_id])
        return
    before = known.wants
    known.metadata = value
    if known.wants != before and member_id not in change.joined:
        change.changed.append(member_id)


def _owns(group: _Group, change: _Change, member_id: str, value: Any) -> None:
    member = group.members.get(member_id)
    if member is None or value is None:
        return  # a tombstone comes just before the member's own
    if value.member_epoch == LEFT_FOR_NOW and member.epoch != LEFT_FOR_NOW:
        change.away.append(member)
    member.epoch = value.member_epoch
    is_streams = group.kind == "streams"
    member.stable = value.state == (StreamsMemberState if is_streams else MemberState).STABLE.value
    if is_streams:
        member.owned = [(task.subtopology_id, task.partitions) for task in value.active_tasks]
    else:
        member.owned = [(topic.topic_id, topic.partitions) for topic in value.assigned_partitions]
    group.note(member)


def _heir(member: _Member, change: _Change) -> _Member | None:
    """The member that takes a static member's place."""
    instance_id = member.instance_id
    if instance_id is None:
        return None
    return next((heir for heir in change.joined.values() if heir.instance_id == instance_id), None)


def _predecessor(member: _Member, change: _Change) -> _Member | None:
    instance_id = member.instance_id
    if instance_id is None:
        return None
    return next(
        (predecessor for predecessor in change.former.values() if predecessor.instance_id == instance_id),
        None,
    )


def _trigger_of(group: _Group, change: _Change, because: AppendCause) -> tuple[Cause, str | None] | None:
    """The cause of an append and the member that caused it, if a member did."""
    for member in change.joined.values():
        if _predecessor(member, change) is not None:
            return "static_member_returned", member.member_id
        first = len(group.members) == len(change.joined)
        return "first_member" if first else "new_member", member.member_id
    for name in change.former:
        return _CAUSES.get(because.leaving, "member_removed"), name
    for name in change.changed:
        return "subscription_changed", name
    return None
