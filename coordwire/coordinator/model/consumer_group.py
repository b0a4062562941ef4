"""A consumer group (KIP-848): members, epochs, targets, and the counts that follow from its members.

Rules: everything is under the shard's snapshots, so that a failed append takes back all of it, and readers
see what is durable; `refresh` alone isn't, and asks once more at worst. A partition belongs to the member at
whose epoch it is entered in `owners`; it is free when it is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from uuid import UUID

from coordwire.coordinator.hash_order import capacity_for, copied_capacity, in_hash_order, in_timeline_order
from coordwire.coordinator.model.assignment import NO_TARGET, Owned, Target
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.model.consumer_states import ConsumerGroupState, MemberState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.snapshots import SnapshotDict, Snapshots
from coordwire.enums import ErrorCode

__all__ = ["ConsumerGroupModel", "ResolvedPattern", "Subscribers"]

K = TypeVar("K")

_REFRESH_INTERVAL_MS = (1 << 31) - 1
_FIRST_EPOCH = 1
_FIRST_ASSIGNMENT_EPOCH = 1
_NO_ASSIGNMENT = -1


class Subscribers(NamedTuple):
    """Of a topic: members that name it, and patterns that match it."""

    by_name: int = 0
    by_regex: int = 0


@dataclass(frozen=True, slots=True)
class ResolvedPattern:
    """The topics that match a pattern, sorted. version: of the topics' image that was searched."""

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0


class ConsumerGroupModel:
    """The state of one group. Its facts: epochs and the like, by name."""

    def __init__(self, group_id: str, snapshots: Snapshots) -> None:
        self.group_id = group_id
        self.members: SnapshotDict[str, ConsumerMember] = SnapshotDict(snapshots)
        self.static_members: SnapshotDict[str, str] = SnapshotDict(snapshots)
        self.targets: SnapshotDict[str, Target] = SnapshotDict(snapshots)
        self.owners: SnapshotDict[tuple[UUID, int], int] = SnapshotDict(snapshots)
        self.topics: SnapshotDict[str, Subscribers] = SnapshotDict(snapshots)
        self.patterns: SnapshotDict[str, int] = SnapshotDict(snapshots)
        self.resolved: SnapshotDict[str, ResolvedPattern] = SnapshotDict(snapshots)
        self.assignors: SnapshotDict[str, int] = SnapshotDict(snapshots)
        self.protocols: SnapshotDict[str, int] = SnapshotDict(snapshots)
        self._facts: SnapshotDict[str, int] = SnapshotDict(snapshots)
        self.refresh_at = 0
        self.refresh_epoch = 0

    # --- facts ---

    def _fact(self, name: str, default: int = 0) -> int:
        found = self._facts.get(name)
        return default if found is None else found

    @property
    def epoch(self) -> int:
        return self._fact("epoch", _FIRST_EPOCH)

    @property
    def metadata_hash(self) -> int:
        return self._fact("metadata_hash")

    @property
    def assignment_epoch(self) -> int:
        return self._fact("assignment_epoch", _FIRST_ASSIGNMENT_EPOCH)

    @property
    def assigned_at(self) -> int:
        """When the target was computed; 0 where that is not known."""
        return self._fact("assigned_at")

    @property
    def classic_members(self) -> int:
        """How many members use the classic protocol."""
        return self._fact("classic_members")

    @property
    def has_partition_metadata(self) -> bool:
        """Whether the log has a record of the kind that Kafka 4.0 wrote."""
        return bool(self._fact("partition_metadata"))

    @property
    def homogeneous(self) -> bool:
        """Whether all members subscribed to the same topics when one last changed."""
        return bool(self._fact("homogeneous", 1))

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self._facts["epoch"] = epoch
        self._facts["metadata_hash"] = metadata_hash

    def set_assignment(self, epoch: int, assigned_at: int) -> None:
        self._facts["assignment_epoch"] = epoch
        self._facts["assigned_at"] = assigned_at

    def clear_assignment(self) -> None:
        self.set_assignment(_NO_ASSIGNMENT, 0)

    def set_partition_metadata(self, present: bool) -> None:
        self._facts["partition_metadata"] = int(present)

    # --- what it is like ---

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def state(self) -> ConsumerGroupState:
        return _state(self.members.values(), self.epoch, self.assignment_epoch)

    def committed_facts(self) -> tuple[ConsumerGroupState, int, int, str | None]:
        """As of the last durable write: state, epoch, assignment epoch, the assignor most members prefer."""
        facts = self._facts
        epoch, assignment_epoch = facts.committed("epoch"), facts.committed("assignment_epoch")
        epoch = _FIRST_EPOCH if epoch is None else epoch
        assignment_epoch = _FIRST_ASSIGNMENT_EPOCH if assignment_epoch is None else assignment_epoch
        members = [member for _, member in self.members.committed_items()]
        counts = dict(self.assignors.committed_items())
        ordered = in_timeline_order(counts, len(counts))
        return _state(members, epoch, assignment_epoch), epoch, assignment_epoch, _most(ordered, counts)

    def members_in_order(self) -> list[ConsumerMember]:
        found = []
        for member_id in in_timeline_order(self.members, self.members.peak):
            member = self.members.get(member_id)
            assert member is not None
            found.append(member)
        return found

    def is_subscribed(self, topic: str) -> bool:
        return topic in self.topics

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def target(self, member_id: str) -> Target:
        return self.targets.get(member_id) or NO_TARGET

    def is_free(self, topic_id: UUID, partition: int) -> bool:
        owner = self.owners.get((topic_id, partition))
        return owner is None or owner == -1

    def waits_for_partitions(self, member: ConsumerMember) -> bool:
        """Whether a partition of the member's target still is another member's."""
        if member.state is not MemberState.UNRELEASED_PARTITIONS:
            return False
        nothing: Mapping[int, int] = {}
        return any(
            partition not in member.owned.get(topic_id, nothing) and not self.is_free(topic_id, partition)
            for topic_id, partitions in self.target(member.member_id).items()
            for partition in partitions
        )

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a classic member may join with these protocols."""
        return protocol_type == "consumer" and any(
            (self.protocols.get(name) or 0) == self.classic_members for name in names
        )

    def preferred_assignor(self, old: ConsumerMember, new: ConsumerMember) -> str | None:
        """The assignor that most members will prefer when one changes; a tie goes by Java's HashMap."""
        ordered = in_timeline_order(self.assignors, self.assignors.peak)
        counts = {name: self.assignors.get(name) or 0 for name in ordered}
        capacity = copied_capacity(len(counts))
        for member, by in ((old, -1), (new, 1)):
            name = member.assignor
            if name in counts:
                counts[name] += by
                if not counts[name]:
                    del counts[name]
            elif name is not None and by > 0:
                capacity = capacity_for(len(counts), capacity)
                counts = {name: 1, **counts}  # Java's compute adds before the other keys of a bucket
        return _most(in_hash_order(counts, capacity), counts)

    # --- the metadata's refresh ---

    def refresh_due(self, now: int) -> bool:
        return now >= self.refresh_at or self.epoch < self.refresh_epoch

    def refreshed(self, now: int, epoch: int) -> None:
        self.refresh_at, self.refresh_epoch = now + _REFRESH_INTERVAL_MS, epoch

    def request_refresh(self) -> None:
        self.refresh_at = self.refresh_epoch = 0

    # --- subscriptions as they will be ---

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

    def put_member(self, new: ConsumerMember) -> None:
        old = self.members.get(new.member_id)
        self.members[new.member_id] = new
        if old is None or old.topics != new.topics or old.regex != new.regex:
            self._count_subscriptions(old, new)
        self._own(old, new)
        self._count_preferences(old, new)
        if new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id
        self._note_type()

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id)
        if old is None:
            return
        self._count_subscriptions(old, None)
        self._own(old, None)
        self._count_preferences(old, None)
        if old.instance_id is not None:
            self.static_members.pop(old.instance_id)
        self._note_type()

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
            found = _counted(self.topics.get(name), by_name, by_regex)
            if found is None:
                self.topics.pop(name)
            else:
                self.topics[name] = found

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
                self._facts["classic_members"] = self.classic_members + by
                for name, _ in side.protocols:
                    _count(self.protocols, name, by)

    def _note_type(self) -> None:
        found = self.is_homogeneous(self.patterns.items(), dict(self.topics.items()), len(self.members))
        if found is not self.homogeneous:
            self._facts["homogeneous"] = int(found)

    @staticmethod
    def is_homogeneous(
        patterns: Iterable[tuple[str, int]], topics: Mapping[str, Subscribers], members: int
    ) -> bool:
        """Whether all members subscribe to the same topics, as far as counts show that."""
        by_pattern = [count for _, count in patterns]
        if not by_pattern:
            return all(count.by_name == members for count in topics.values())
        return by_pattern[0] == members and all(count == (0, 1) for count in topics.values())

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
                    # Two members can't own it; the records that say so are another's.
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


def _most(names: Iterable[str], counts: Mapping[str, int]) -> str | None:
    return max((name for name in names if counts[name] > 0), key=lambda name: counts[name], default=None)


def _count(counts: SnapshotDict[str, int], name: str, by: int) -> None:
    found = (counts.get(name) or 0) + by
    if found > 0:
        counts[name] = found
    else:
        counts.pop(name)


def _counted(known: Subscribers | None, by_name: int, by_regex: int) -> Subscribers | None:
    names, regexes = known or Subscribers()
    if by_name < 0 or by_regex < 0:
        gone = known is None or known == (-by_name, -by_regex)
        return None if gone else Subscribers(names + by_name, regexes + by_regex)
    return Subscribers(names + by_name, regexes + by_regex)


def _count_all(
    topics: dict[str, Subscribers], names: Iterable[str], by_name: int = 0, by_regex: int = 0
) -> None:
    for name in names:
        found = _counted(topics.get(name), by_name, by_regex)
        if found is None:
            topics.pop(name, None)
        else:
            topics[name] = found
