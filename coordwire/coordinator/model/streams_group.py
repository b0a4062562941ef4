"""A streams group (KIP-1071): members, epochs, targets, topology, and the owners of tasks.

Rules: facts, members, targets, topology and owners are under the shard's snapshots. As in Apache Kafka, some
of it is not, and stays when a failed append takes back the rest: the request to shut the application down,
the epoch of endpoints and what is known of each, the time of the refresh, and the processes of a standby task
once it had one.

A member of a streams group (KIP-1071), as its requests and its records describe it.

Rules: a member that a cut log has a part of only lacks `is_described` (its metadata) or `is_placed` (its
tasks); no heartbeat of it succeeds, as in Apache Kafka.

The tasks of streams groups: a task is one partition number of a subtopology.

Rules: mappings and sets are never changed. A subtopology's place in a mapping is that in which Apache Kafka's
hash tables have it, because answers list subtopologies in that order; records and descriptions sort them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.coordinator.model.group import MetadataRefresh, group_repr
from coordwire.coordinator.model.streams_topology import ConfiguredTopology, StreamsTopology
from coordwire.coordinator.snapshots import Snapshots, SnapshotValue, TimelineHashMap
from coordwire.coordinator.topics import TopicsImage, group_hash
from coordwire.enums import StreamsMemberState
from coordwire.messages.streams_group_heartbeat import EndpointToPartitions

_NO_ASSIGNMENT = -1
NO_DESCRIPTION = (-1, -1)
_STABLE = StreamsMemberState.STABLE

Task = tuple[str, int]


@dataclass(frozen=True, slots=True)
class StreamsFacts:
    """The single values of a group.

    validated_topology_epoch: of the topology whose topics fit; -1 where they don't. assignment_epoch: of the
    target; assigned_at: when that was computed, 0 where it is not known. assignment_configs: the settings
    with which. description_epochs: of the topologies whose description a plugin of the broker's stored last,
    and failed to store; only a log has them.
    """

    epoch: int = 1
    metadata_hash: int = 0
    validated_topology_epoch: int = 0
    assignment_epoch: int = 1
    assigned_at: int = 0
    assignment_configs: Mapping[str, str] = field(default_factory=dict)
    description_epochs: tuple[int, int] = NO_DESCRIPTION


_NEW = StreamsFacts()
_UNVALIDATED = StreamsFacts(validated_topology_epoch=-1)
_UNREFINED: tuple[int, Mapping[str, TargetTasks]] = (-1, {})


class StreamsGroupModel:
    """The state of one group."""

    __slots__ = (
        "_hash", "_settled", "active_owners", "configured", "endpoint_epoch", "endpoints", "facts",
        "group_id", "members", "refined", "refresh", "shutdown_member", "standby_owners", "static_members",
        "targets", "task_offsets", "topology_value", "warmup_owners",
    )  # fmt: skip

    kind: ClassVar[str] = "streams"
    becomes_classic: ClassVar[bool] = True

    __repr__ = group_repr

    def __init__(self, group_id: str, snapshots: Snapshots) -> None:
        self.group_id = group_id
        self.members: TimelineHashMap[str, StreamsMember] = TimelineHashMap(snapshots)
        self.static_members: TimelineHashMap[str, str] = TimelineHashMap(snapshots)
        self.refined: SnapshotValue[tuple[int, Mapping[str, TargetTasks]]] = SnapshotValue(
            snapshots, _UNREFINED
        )
        self.task_offsets: dict[str, ReportedOffsets] = {}
        self.targets: TimelineHashMap[str, TargetTasks] = TimelineHashMap(snapshots)
        self.facts: SnapshotValue[StreamsFacts] = SnapshotValue(snapshots, _NEW)
        self.topology_value: SnapshotValue[StreamsTopology | None] = SnapshotValue(snapshots, None)
        self.configured: SnapshotValue[ConfiguredTopology | None] = SnapshotValue(snapshots, None)
        self.active_owners: TimelineHashMap[Task, str] = TimelineHashMap(snapshots)
        self.standby_owners: TimelineHashMap[Task, set[str]] = TimelineHashMap(snapshots)
        self.warmup_owners: TimelineHashMap[Task, set[str]] = TimelineHashMap(snapshots)
        self.refresh = MetadataRefresh()
        self.shutdown_member: str | None = None
        self.endpoint_epoch = 0
        self.endpoints: dict[str, EndpointToPartitions] = {}
        self._hash: tuple[TopicsImage, StreamsTopology, int] | None = None
        self._settled: tuple[object, ...] = ()

    # --- facts ---

    @property
    def epoch(self) -> int:
        return self.facts.value.epoch

    @property
    def metadata_hash(self) -> int:
        return self.facts.value.metadata_hash

    @property
    def validated_topology_epoch(self) -> int:
        return self.facts.value.validated_topology_epoch

    @property
    def assignment_epoch(self) -> int:
        return self.facts.value.assignment_epoch

    @property
    def assigned_at(self) -> int:
        return self.facts.value.assigned_at

    @property
    def assignment_configs(self) -> Mapping[str, str]:
        return self.facts.value.assignment_configs

    @property
    def topology(self) -> StreamsTopology | None:
        return self.topology_value.value

    @property
    def state(self) -> StreamsGroupState:
        return _state(self.members.values_view(), self.facts.value, self.topology)

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    @property
    def is_dead(self) -> bool:
        return False

    def committed_state(self) -> StreamsGroupState:
        """The state as of the last durable write."""
        members = [member for _, member in self.members.committed_items()]
        return _state(members, self.facts.committed, self.topology_value.committed)

    def target(self, member_id: str) -> TargetTasks:
        return self.targets.get(member_id) or NO_TARGET_TASKS

    def is_subscribed(self, topic: str) -> bool:
        """Whether a group with members reads this topic."""
        return not self.is_empty and self.topology is not None and topic in self.topology.sources

    def subscribes_to_any(self, topics: Iterable[str]) -> bool:
        return self.topology is not None and not self.topology.needs.isdisjoint(topics)

    def hash_of_topics(self, topics: TopicsImage, topology: StreamsTopology) -> int:
        """The hash of the metadata of the topics that a topology needs."""
        known = self._hash
        if known is None or known[0] is not topics or known[1] is not topology:
            known = self._hash = topics, topology, group_hash(topics, topology.required_topics)
        return known[2]

    # --- heartbeats that change nothing ---

    def is_settled(self, member: StreamsMember, topics: TopicsImage, configs: Mapping[str, str]) -> bool:
        """Whether a heartbeat without news of this member changes nothing, and has nothing to report.

        configs: the settings with which a target would be computed.
        """
        facts = self.facts.value
        marks = facts, topics, configs
        if marks != self._settled:
            if not self._is_ready(topics, configs):
                return False
            self._settled = marks
        return (
            member.epoch == facts.assignment_epoch
            and member.topology_epoch >= facts.validated_topology_epoch
            and member.state is _STABLE
            and self.shutdown_member is None
        )

    def _is_ready(self, topics: TopicsImage, configs: Mapping[str, str]) -> bool:
        """Whether the target is the newest, and computed from the topology and the topics that there are."""
        facts, configured = self.facts.value, self.configured.value
        if configured is None:
            return False
        assert self.topology is not None  # which was configured
        return (
            facts.assignment_epoch >= facts.epoch
            and facts.validated_topology_epoch == configured.epoch  # which is ready then
            and facts.assignment_configs == configs
            and facts.metadata_hash == self.hash_of_topics(topics, self.topology)
        )

    # --- changes that no record has ---

    def configure(self, configured: ConfiguredTopology) -> None:
        self.configured.set(configured)
        self.endpoints.clear()

    def rename_in_refined(self, old_id: str, new_id: str) -> None:
        """Give a member its predecessor's part of the refined target."""
        epoch, targets = self.refined.value
        if old_id in targets:
            renamed = {key: tasks for key, tasks in targets.items() if key != old_id}
            self.refined.set((epoch, renamed | {new_id: targets[old_id]}))

    def request_shutdown(self, member_id: str) -> None:
        """The first member that asks for it is the one that is reported to others."""
        if self.shutdown_member is None:
            self.shutdown_member = member_id

    def _look_for_members(self) -> None:
        if self.is_empty:
            self.shutdown_member = None

    # --- changes, by records ---

    def _set(self, **changes: Any) -> None:
        self.facts.set(replace(self.facts.value, **changes))
        self._look_for_members()

    def set_epoch(
        self,
        epoch: int,
        metadata_hash: int,
        validated_topology_epoch: int,
        configs: Mapping[str, str],
        description_epochs: tuple[int, int] = NO_DESCRIPTION,
    ) -> None:
        self._set(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_topology_epoch,
            assignment_configs=configs,
            description_epochs=description_epochs,
        )

    def begin_unvalidated(self) -> None:
        """A group that is new has no valid topology, until a record of its epoch says so."""
        if self.facts.value is _NEW:
            self.facts.set(_UNVALIDATED)

    def set_assignment(self, epoch: int, assigned_at: int) -> None:
        self._set(assignment_epoch=epoch, assigned_at=assigned_at)

    def clear_assignment(self) -> None:
        self.set_assignment(_NO_ASSIGNMENT, 0)

    def set_topology(self, topology: StreamsTopology | None) -> None:
        self.topology_value.set(topology)
        self._look_for_members()

    def put_member(self, new: StreamsMember) -> None:
        old = self.members.get(new.member_id)
        self.members[new.member_id] = new
        if old is not None:
            self._release(old)
            if old.instance_id is not None:
                self.static_members.pop(old.instance_id)
        if new.instance_id is not None:
            self.static_members[new.instance_id] = new.member_id
        self._claim(new)
        self.endpoints.pop(new.member_id, None)

    def remove_member(self, member_id: str) -> None:
        old = self.members.pop(member_id)
        if old is not None:
            self._release(old)
            if old.instance_id is not None:
                self.static_members.pop(old.instance_id)
        self.task_offsets.pop(member_id, None)
        self._look_for_members()
        self.endpoints.pop(member_id, None)

    def _release(self, member: StreamsMember) -> None:
        if not member.is_described:
            return
        for tasks in (member.tasks, member.revoking):
            for part, partitions in tasks.active.items():
                for partition in partitions:
                    if self.active_owners.get((part, partition)) == member.process_id:
                        self.active_owners.pop((part, partition))
            for owners, ids in ((self.standby_owners, tasks.standby), (self.warmup_owners, tasks.warmup)):
                for task in _tasks_of(ids):
                    processes = owners.get(task)
                    if processes is not None:
                        processes.discard(member.process_id)

    def _claim(self, member: StreamsMember) -> None:
        if not member.is_described:
            return
        for tasks in (member.tasks, member.revoking):
            for part, partitions in tasks.active.items():
                for partition in partitions:
                    self.active_owners[part, partition] = member.process_id
            for owners, ids in ((self.standby_owners, tasks.standby), (self.warmup_owners, tasks.warmup)):
                for task in _tasks_of(ids):
                    processes = owners.get(task)
                    if processes is None:
                        processes = owners[task] = set()
                    processes.add(member.process_id)


def _tasks_of(tasks: Tasks) -> Iterable[Task]:
    return [(part, partition) for part, partitions in tasks.items() for partition in partitions]


def _state(
    members: Iterable[StreamsMember], facts: StreamsFacts, topology: StreamsTopology | None
) -> StreamsGroupState:
    members = list(members)
    if not members:
        return StreamsGroupState.EMPTY
    if topology is None or topology.epoch != facts.validated_topology_epoch:
        return StreamsGroupState.NOT_READY
    if facts.epoch > facts.assignment_epoch:
        return StreamsGroupState.ASSIGNING
    if all(member.is_reconciled_to(facts.assignment_epoch) for member in members):
        return StreamsGroupState.STABLE
    return StreamsGroupState.RECONCILING


# --- members and tasks ---


Tasks: TypeAlias = Mapping[str, frozenset[int]]
"""Partitions by subtopology."""

ActiveTasks: TypeAlias = Mapping[str, Mapping[int, int]]
"""By subtopology and partition, the epoch in which the member got the task."""

_NOTHING: frozenset[int] = frozenset()


class TaskIds(Protocol):
    """Tasks of a subtopology, as messages and records list them."""

    @property
    def subtopology_id(self) -> str: ...
    @property
    def partitions(self) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class TargetTasks:
    """The tasks that a member is to have, or reports as its own."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any(self, tasks: OwnedTasks) -> bool:
        """Whether one of the member's tasks is among these, in the same role."""
        return (
            any(not self.active.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.active.items())
            or any(
                not self.standby.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.standby.items()
            )
            or any(not self.warmup.get(part, _NOTHING).isdisjoint(ids) for part, ids in tasks.warmup.items())
        )


ReportedTasks: TypeAlias = TargetTasks | None
"""The tasks that a member reports as its own; None where it reports nothing."""


@dataclass(frozen=True, slots=True)
class OwnedTasks:
    """The tasks that a member has, or has to give up."""

    active: ActiveTasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)


NO_TARGET_TASKS = TargetTasks()
NO_OWNED_TASKS = OwnedTasks()


def listed_tasks(parts: Iterable[TaskIds]) -> dict[str, frozenset[int]]:
    """Tasks from a list; of a subtopology that is in it twice, the last."""
    return {part.subtopology_id: frozenset(part.partitions) for part in parts}


LEFT_STREAMS, LEFT_FOR_NOW = -1, -2
"""The epochs of a member that leaves, and of a static one that leaves for now."""


class ReportedOffsets(NamedTuple):
    """By task, the offsets that a member has restored, and the ends of their changelogs."""

    offsets: Mapping[tuple[str, int], int]
    end_offsets: Mapping[tuple[str, int], int]


NO_OFFSETS = ReportedOffsets({}, {})


class StreamsGroupState(Enum):
    """The states of a group; NOT_READY while its topology lacks topics, or they don't fit."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class UserEndpoint(NamedTuple):
    """Where a member serves interactive queries."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """rebalance_timeout_ms: to give up tasks. process_id: of the process, which may have several members.
    revoking: the tasks that it has to give up.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: StreamsMemberState = StreamsMemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: UserEndpoint | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    tasks: OwnedTasks = NO_OWNED_TASKS
    revoking: OwnedTasks = NO_OWNED_TASKS
    is_described: bool = True
    is_placed: bool = True

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.is_placed and self.state is StreamsMemberState.STABLE and self.epoch == assignment_epoch
