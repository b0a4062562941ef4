"""A consumer group (KIP-848) and its members: their states, epochs, targets, and the counts that follow from
its members.

Rules: everything is under the shard's snapshots, so that a failed append takes back all of it, and readers
see what is durable; the time of the refresh alone is not, which costs one refresh more at worst. A partition
belongs to the member whose epoch `owners` has for it; it is free without an epoch there.
A member is a value: the contents of its requests, and its partitions. It is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeVar
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.assignment import NO_TARGET, NOTHING_OWNED, Owned, Target
from coordwire.coordinator.model.classic_group import Protocols
from coordwire.coordinator.model.group import MetadataRefresh, group_repr
from coordwire.coordinator.model.patterns import ResolvedPattern
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.snapshots import Snapshots, SnapshotValue, TimelineHashMap
from coordwire.enums import ErrorCode

# --- states ---


class ConsumerGroupState(Enum):
    """A group's state, by the name that ConsumerGroupDescribe gives it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class MemberState(Enum):
    """The progress of a member towards its target, by the number in records."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127

    @classmethod
    def of(cls, number: int) -> MemberState:
        """The state of a record, which a newer Kafka may have written."""
        return cls(number) if number in (0, 1, 2) else cls.UNKNOWN


# --- the member ---

LEFT = -1
LEFT_FOR_NOW = -2
"""The epochs of a member that left, and of a static one that left for now."""


@dataclass(frozen=True, slots=True)
class ClassicSide:
    """The JoinGroup of a member that uses the classic protocol in a consumer group."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """A member.

    epoch: of the target that it has reached; previous_epoch: the epoch before that. topics: names, sorted.
    named: the names in the order of the member's request, until the log has them. regex: a pattern, empty or
    None without one. owned: with the epoch in which each partition was assigned. revoking: partitions that
    it has to give up and has not yet. classic: None where it uses KIP-848.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    regex: str | None = ""
    assignor: str | None = None
    owned: Owned = field(default_factory=lambda: NOTHING_OWNED)
    revoking: Owned = field(default_factory=lambda: NOTHING_OWNED)
    classic: ClassicSide | None = None
    named: tuple[str, ...] = field(default=(), compare=False)

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch


# --- the group ---

K = TypeVar("K")

_NO_ASSIGNMENT = -1
_STABLE = MemberState.STABLE


class Subscribers(NamedTuple):
    """The numbers of members that name a topic, and of patterns that match it."""

    by_name: int = 0
    by_regex: int = 0


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """The single values of a group.

    assignment_epoch: of the target; assigned_at: when that was computed, 0 where it is not known.
    classic_members: how many members use the classic protocol. has_partition_metadata: whether the log has a
    record of the kind that Kafka 4.0 wrote. homogeneous: whether all members subscribed to the same topics
    when one last changed.
    """

    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assigned_at: int = 0
    classic_members: int = 0
    has_partition_metadata: bool = False
    homogeneous: bool = True


_NEW = GroupFacts()


class ConsumerGroupModel:
    """The state of one group."""

    kind: ClassVar[str] = "consumer"
    becomes_classic: ClassVar[bool] = True

    __slots__ = (
        "_last_resolved", "assignors", "facts", "group_id", "members", "owners", "patterns", "protocols",
        "refresh", "resolved", "static_members", "targets", "topics",
    )  # fmt: skip

    __repr__ = group_repr

    def __init__(self, group_id: str, snapshots: Snapshots) -> None:
        self.group_id = group_id
        self.members: TimelineHashMap[str, ConsumerMember] = TimelineHashMap(snapshots)
        self.static_members: TimelineHashMap[str, str] = TimelineHashMap(snapshots)
        self.targets: TimelineHashMap[str, Target] = TimelineHashMap(snapshots)
        self.owners: TimelineHashMap[tuple[UUID, int], int] = TimelineHashMap(snapshots)
        self.topics: TimelineHashMap[str, Subscribers] = TimelineHashMap(snapshots)
        self.patterns: TimelineHashMap[str, int] = TimelineHashMap(snapshots)
        self.resolved: TimelineHashMap[str, ResolvedPattern] = TimelineHashMap(snapshots)
        self.assignors: TimelineHashMap[str, int] = TimelineHashMap(snapshots)
        self.protocols: TimelineHashMap[str, int] = TimelineHashMap(snapshots)
        self.facts: SnapshotValue[GroupFacts] = SnapshotValue(snapshots, _NEW)
        self.refresh = MetadataRefresh()
        self._last_resolved: tuple[int, ResolvedPattern | None] = (0, None)

    # --- facts ---

    @property
    def epoch(self) -> int:
        return self.facts.value.epoch

    @property
    def metadata_hash(self) -> int:
        return self.facts.value.metadata_hash

    @property
    def assignment_epoch(self) -> int:
        return self.facts.value.assignment_epoch

    @property
    def assigned_at(self) -> int:
        return self.facts.value.assigned_at

    @property
    def classic_members(self) -> int:
        return self.facts.value.classic_members

    @property
    def has_partition_metadata(self) -> bool:
        return self.facts.value.has_partition_metadata

    @property
    def homogeneous(self) -> bool:
        return self.facts.value.homogeneous

    def _set(self, **facts: Any) -> None:
        self.facts.set(replace(self.facts.value, **facts))

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self._set(epoch=epoch, metadata_hash=metadata_hash)

    def set_assignment(self, epoch: int, assigned_at: int) -> None:
        self._set(assignment_epoch=epoch, assigned_at=assigned_at)

    def clear_assignment(self) -> None:
        self.set_assignment(_NO_ASSIGNMENT, 0)

    def set_partition_metadata(self, present: bool) -> None:
        self._set(has_partition_metadata=present)

    # --- properties ---

    @property
    def is_dead(self) -> bool:
        return False

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerGroupState:
        return _state(self.members.values_view(), self.epoch, self.assignment_epoch)

    def committed_facts(self) -> tuple[ConsumerGroupState, int, int, str | None]:
        """State, epoch, assignment epoch and most preferred assignor, as of the last durable write."""
        facts = self.facts.committed
        members = [member for _, member in self.members.committed_items()]
        counts = dict(self.assignors.committed_items())
        state = _state(members, facts.epoch, facts.assignment_epoch)
        return state, facts.epoch, facts.assignment_epoch, _most(counts)

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topics

    def subscribes_to_any(self, topics: Iterable[str]) -> bool:
        return not self.topics.keys_view().isdisjoint(topics)

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id) or NO_TARGET

    def is_free(self, topic_id: UUID, partition: int) -> bool:
        owner = self.owners.get((topic_id, partition))
        return owner is None or owner == -1

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether another member still owns a partition of the member's target."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        unowned: Mapping[int, int] = {}
        return any(
            partition not in member.owned.get(topic_id, unowned) and not self.is_free(topic_id, partition)
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    @property
    def last_resolved(self) -> ResolvedPattern | None:
        """The pattern that Apache Kafka finds first; its time is that of the last resolution of all."""
        changes, pattern = self._last_resolved
        if changes != self.resolved.changes:
            pattern = next(iter(self.resolved.values()), None)
            self._last_resolved = self.resolved.changes, pattern
        return pattern

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a classic member may join with these protocols."""
        return protocol_type == "consumer" and any(
            (self.protocols.get(name) or 0) == self.classic_members for name in names
        )

    @property
    def most_preferred(self) -> str | None:
        """The assignor that most members prefer."""
        return _most(dict(self.assignors.items()))

    def preferred_assignor(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """The assignor that most members prefer after a change of one; a tie goes by Java's HashMap."""
        if old.assignor is new.assignor is None and not self.assignors:
            return None
        counts = HashMap.copy_of(self.assignors)
        for member, by in ((old, -1), (new, 1)):
            if member.assignor is not None:
                counts.compute(member.assignor, lambda count, by=by: max((count or 0) + by, 0) or None)  # type: ignore[misc]
        return _most(counts.in_order())

    def is_settled(self, member: ConsumerMember, now: int) -> bool:
        """Whether a member has reached the group's newest target, and no other target is due."""
        facts = self.facts.value
        return (
            member.epoch == facts.assignment_epoch >= facts.epoch >= self.refresh.epoch
            and member.state is _STABLE
            and now < self.refresh.at
        )

    # --- future subscriptions ---

    def topics_after(
        self, old: Iterable[ConsumerMember], new: ConsumerMember | None, dropped_patterns: Iterable[str]
    ) -> dict[str, Subscribers]:
        """Subscribers by topic after members are replaced or removed."""
        topics = dict(self.topics.items())
        for member in old:
            _count_all(topics, member.topics, by_name=-1)
        if new is not None:
            _count_all(topics, new.topics, by_name=1)
        for regex in dropped_patterns:
            resolved = self.resolved.get(regex)
            if resolved is not None:
                _count_all(topics, resolved.topics, by_regex=-1)
        return topics

    # --- changes, by records ---

    def put_member(self, new: ConsumerMember, *, frees_instance_id: bool = False) -> None:
        """frees_instance_id: whether one that the member had before it took another is free then."""
        old = self.members.get(new.member_id)
        self.members[new.member_id] = new
        if frees_instance_id and old is not None and old.instance_id is not None:
            self.static_members.pop(old.instance_id)
        if old is None or old.topics != new.topics or old.regex != new.regex:
            self._count_subscriptions(old, new)
        self._own(old, new)
        self._count_preferences(old, new)
        if new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id
        self._update_homogeneous()

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id)
        if old is None:
            return
        self._count_subscriptions(old, None)
        self._own(old, None)
        self._count_preferences(old, None)
        if old.instance_id is not None:
            self.static_members.pop(old.instance_id)
        self._update_homogeneous()

    def put_target(self, member_id: str, target: Target) -> None:
        self.targets[member_id] = target

    def put_resolved(self, regex: str, resolved: ResolvedPattern | None) -> None:
        old = self.resolved.pop(regex)
        if old is not None:
            self._count_topics(old.topics, by_regex=-1)
        if resolved is not None:
            self.resolved[regex] = resolved
            self._count_topics(resolved.topics, by_regex=1)

    def _count_topics(self, names: Iterable[str], by_name: int = 0, by_regex: int = 0) -> None:
        for name in names:
            subscribers = _counted(self.topics.get(name), by_name, by_regex)
            if subscribers is None:
                self.topics.pop(name)
            else:
                self.topics[name] = subscribers

    def _count_subscriptions(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        if old is not None:
            self._count_topics(old.topics, by_name=-1)
            if old.regex:
                _count(self.patterns, old.regex, -1)
        if new is not None:
            self._count_topics(new.topics, by_name=1)
            if new.regex:
                _count(self.patterns, new.regex, 1)

    def _count_preferences(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        before = None if old is None else old.assignor
        after = None if new is None else new.assignor
        if before != after:
            if before is not None:
                _count(self.assignors, before, -1)
            if after is not None:
                _count(self.assignors, after, 1)
        was = None if old is None else old.classic
        will = None if new is None else new.classic
        if was is will:
            return
        for side, by in ((was, -1), (will, 1)):
            if side is not None:
                self._set(classic_members=self.classic_members + by)
                for name, _ in side.protocols:
                    _count(self.protocols, name, by)

    def _update_homogeneous(self) -> None:
        homogeneous = self.is_homogeneous(
            self.patterns.values_view(), self.topics.values_view(), len(self.members)
        )
        if homogeneous is not self.homogeneous:
            self._set(homogeneous=homogeneous)

    @staticmethod
    def is_homogeneous(patterns: Iterable[int], topics: Iterable[Subscribers], members: int) -> bool:
        """Whether all members subscribe to the same topics, as far as the counts of each show that."""
        by_pattern = next(iter(patterns), None)
        if by_pattern is None:
            return all(count.by_name == members for count in topics)
        return by_pattern == members and all(count == (0, 1) for count in topics)

    def _own(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        if (
            old is not None
            and new is not None
            and old.epoch == new.epoch
            and old.owned is new.owned
            and old.revoking is new.revoking
        ):
            return
        if old is not None:
            self._release(old.owned, old.epoch)
            self._release(old.revoking, old.epoch)
        if new is not None:
            self._claim(new.owned, new.epoch)
            self._claim(new.revoking, new.epoch)

    def _release(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            for partition in partitions:
                if self.owners.get((topic_id, partition)) == epoch:
                    self.owners.pop((topic_id, partition))

    def _claim(self, owned: Owned, epoch: int) -> None:
        for topic_id, partitions in owned.items():
            for partition in partitions:
                known = self.owners.get((topic_id, partition))
                if known is not None and known >= epoch:
                    # Two members can't own a partition; another coordinator wrote such records.
                    raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
                self.owners[topic_id, partition] = epoch


def _state(members: Iterable[ConsumerMember], epoch: int, assignment_epoch: int) -> ConsumerGroupState:
    members = list(members)
    if not members:
        return ConsumerGroupState.EMPTY
    if epoch > assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(member.is_reconciled_to(assignment_epoch) for member in members):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING


def _most(counts: Mapping[str, int]) -> str | None:
    """The name with the greatest count; a tie goes to the first."""
    return max((name for name in counts if counts[name] > 0), key=counts.__getitem__, default=None)


def _count(counts: TimelineHashMap[str, int], name: str, by: int) -> None:
    count = (counts.get(name) or 0) + by
    if count > 0:
        counts[name] = count
    else:
        counts.pop(name)


def _counted(known: Subscribers | None, by_name: int, by_regex: int) -> Subscribers | None:
    names, regexes = known or Subscribers()
    if by_name < 0 or by_regex < 0:
        is_last = known is None or known == (-by_name, -by_regex)
        return None if is_last else Subscribers(names + by_name, regexes + by_regex)
    return Subscribers(names + by_name, regexes + by_regex)


def _count_all(
    topics: dict[str, Subscribers], names: Iterable[str], by_name: int = 0, by_regex: int = 0
) -> None:
    for name in names:
        subscribers = _counted(topics.get(name), by_name, by_regex)
        if subscribers is None:
            topics.pop(name, None)
        else:
            topics[name] = subscribers
