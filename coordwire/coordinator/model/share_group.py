"""A share group (KIP-932): members, epochs, targets, and the partitions whose state is initialized.

Rules: everything is under the shard's snapshots but the time of the refresh, as with consumer groups. Members
share partitions, so that none waits for another: a member is at its target when it has its epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, TypeAlias
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import NO_TARGET, Target
from coordwire.coordinator.model.group import MetadataRefresh, group_repr
from coordwire.coordinator.snapshots import Snapshots, SnapshotValue, TimelineHashMap

_NO_ASSIGNMENT = -1
LEFT = -1


class ShareGroupState(Enum):
    """A group's state, by the name that ShareGroupDescribe gives it."""

    EMPTY = "Empty"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member. epoch: of the target that it has; previous_epoch: the epoch before that.

    topics: names, sorted. named: the names in the order of the member's request, until the log has them.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: int = 0
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    assigned: Target = field(default_factory=lambda: NO_TARGET)
    named: tuple[str, ...] = field(default=(), compare=False)


class InitializedTopic(NamedTuple):
    """A topic's partitions whose state is, or is being, initialized. at: when, in milliseconds since 1970."""

    name: str
    partitions: HashSet[int]
    at: int


InitializedTopics: TypeAlias = HashMap[UUID, InitializedTopic]
"""Topics by id. Never changed, and neither are the sets in them."""


@dataclass(frozen=True, slots=True)
class PartitionStates:
    """The topics of a group by what the share coordinator has of them. deleting: the ids of topics."""

    initializing: InitializedTopics = field(default_factory=HashMap)
    initialized: InitializedTopics = field(default_factory=HashMap)
    deleting: HashSet[UUID] = field(default_factory=HashSet)


class _Facts(NamedTuple):
    """The single values of a group; as with consumer groups."""

    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assigned_at: int = 0
    homogeneous: bool = True


class ShareGroupModel:
    """The state of one group. states: of its partitions, None before the first."""

    kind: ClassVar[str] = "share"
    becomes_classic: ClassVar[bool] = False

    __slots__ = (
        "_facts", "_settled", "_states", "group_id", "members", "refresh", "targets",
        "topics",
    )  # fmt: skip

    __repr__ = group_repr

    def __init__(self, group_id: str, snapshots: Snapshots) -> None:
        self.group_id = group_id
        self.members: TimelineHashMap[str, ShareMember] = TimelineHashMap(snapshots)
        self.targets: TimelineHashMap[str, Target] = TimelineHashMap(snapshots)
        self.topics: TimelineHashMap[str, int] = TimelineHashMap(snapshots)
        self._facts: SnapshotValue[_Facts] = SnapshotValue(snapshots, _Facts())
        self._states: SnapshotValue[PartitionStates | None] = SnapshotValue(snapshots, None)
        self.refresh = MetadataRefresh()
        self._settled: tuple[PartitionStates | None, object, int | None] = (None, None, None)

    # --- facts ---

    @property
    def epoch(self) -> int:
        return self._facts.value.epoch

    @property
    def metadata_hash(self) -> int:
        return self._facts.value.metadata_hash

    @property
    def assignment_epoch(self) -> int:
        return self._facts.value.assignment_epoch

    @property
    def assigned_at(self) -> int:
        return self._facts.value.assigned_at

    @property
    def homogeneous(self) -> bool:
        """Whether all members subscribed to the same topics when one last changed."""
        return self._facts.value.homogeneous

    @property
    def committed_epochs(self) -> tuple[int, int]:
        """The group's epoch and that of its target as of the last durable write."""
        facts = self._facts.committed
        return facts.epoch, facts.assignment_epoch

    @property
    def states(self) -> PartitionStates | None:
        return self._states.value

    def _set(self, **facts: Any) -> None:
        self._facts.set(self._facts.value._replace(**facts))

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self._set(epoch=epoch, metadata_hash=metadata_hash)

    def set_assignment(self, epoch: int, assigned_at: int) -> None:
        self._set(assignment_epoch=epoch, assigned_at=assigned_at)

    def clear_assignment(self) -> None:
        self.set_assignment(_NO_ASSIGNMENT, 0)

    def set_states(self, states: PartitionStates | None) -> None:
        self._states.set(states)

    # --- properties ---

    @property
    def is_dead(self) -> bool:
        return False

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    @property
    def state(self) -> ShareGroupState:
        return ShareGroupState.EMPTY if self.is_empty else ShareGroupState.STABLE

    @property
    def committed_state(self) -> ShareGroupState:
        """The state as of the last durable write."""
        return ShareGroupState.STABLE if self.members.committed_items() else ShareGroupState.EMPTY

    def is_subscribed(self, topic: str) -> bool:
        return False

    def target(self, member_id: str) -> Target:
        target = self.targets.get(member_id)
        return NO_TARGET if target is None else target

    # --- heartbeats that change nothing ---

    def settle(self, topics: object, until: int | None) -> None:
        """Nothing is to be assigned or initialized with these topics, until a time; None for no limit."""
        self._settled = self._states.value, topics, until

    def is_settled(self, member: ShareMember, topics: object, now: int) -> bool:
        """Whether a heartbeat without news of this member changes nothing.

        What members subscribe to and what they are assigned changes with the group's epochs alone.
        """
        facts = self._facts.value
        states, settled_topics, until = self._settled
        return (
            member.epoch == facts.assignment_epoch >= facts.epoch
            and states is self._states.value
            and settled_topics is topics
            and (until is None or now < until)
        )

    # --- changes, by records ---

    def put_member(self, new: ShareMember) -> None:
        old = self.members.get(new.member_id)
        self.members[new.member_id] = new
        if old is not None:
            self._count(old.topics, -1)
        self._count(new.topics, 1)  # topics that stay go to another place in the table
        self._update_homogeneous()

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id)
        if old is not None:
            self._count(old.topics, -1)
            self._update_homogeneous()

    def _count(self, names: Iterable[str], by: int) -> None:
        for name in HashSet.copy_of(names):
            count = (self.topics.get(name) or 0) + by
            if count > 0:
                self.topics[name] = count
            else:
                self.topics.pop(name)

    def counts_after(self, old: ShareMember | None, new: ShareMember | None) -> dict[str, int]:
        """The subscribers of each topic after a change of a member."""
        counts = dict(self.topics.items())
        for member, by in ((old, -1), (new, 1)):
            for name in () if member is None else member.topics:
                counts[name] = counts.get(name, 0) + by
                if counts[name] <= 0:
                    del counts[name]
        return counts

    def _update_homogeneous(self) -> None:
        homogeneous = is_homogeneous(self.topics.values_view(), len(self.members))
        if homogeneous is not self.homogeneous:
            self._set(homogeneous=homogeneous)


def is_homogeneous(counts: Iterable[int], members: int) -> bool:
    """Whether all members subscribe to the same topics, as far as the counts of each show that."""
    return all(count == members for count in counts)
