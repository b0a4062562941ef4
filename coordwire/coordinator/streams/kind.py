"""Streams groups as a shard has them beside other kinds: listing, commits, expiry, replay of records,
descriptions, and requests: checks that need no group, and the forms of answers.

Members commit and fetch in their epochs. A commit of an older epoch counts while the member has had the task
of the partition since that epoch or longer. StreamsGroupDescribe gives a streams group as of the last durable
write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.epoch_groups import (
    check_version,
    committing_member,
    described_groups,
    fetching_member,
    find_recorded,
    refused_heartbeat,
    replay_assignment_epoch,
    replay_leaving,
)
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.model.streams_group import (
    LEFT_STREAMS,
    NO_DESCRIPTION,
    NO_OFFSETS,
    NO_OWNED_TASKS,
    NO_TARGET_TASKS,
    OwnedTasks,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
    UserEndpoint,
    listed_tasks,
)
from coordwire.coordinator.model.streams_topology import ConfiguredTopology, StreamsTopology
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.state import GroupCommit, GroupKind, PartitionCheck, State
from coordwire.coordinator.streams import sessions
from coordwire.coordinator.streams.heartbeat import (
    steady_heartbeat,
    streams_group_heartbeat,
    validate_streams_heartbeat,
)
from coordwire.coordinator.streams.records import streams_tombstones
from coordwire.coordinator.streams.sticky_assignor import STICKY
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode, StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from coordwire.messages.streams_group_records import StreamsGroupCurrentMemberAssignmentValueTaskIds
from coordwire.messages.streams_group_records import TopicInfo as RecordedTopic

STREAMS_KEYS: tuple[type[Message], ...] = (
    StreamsGroupMetadataKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTopologyKey,
)


class StreamsKind(GroupKind[StreamsGroupModel]):
    """Groups of KIP-1071's protocol."""

    name = StreamsGroupModel.kind
    record_keys = STREAMS_KEYS

    def replay(self, state: State, key: object, value: object) -> None:
        replay_streams_group(state, key, value)

    def resume(self, state: State, group: StreamsGroupModel) -> None:
        """Begin members' sessions again, and their time to give up tasks."""
        for member in group.members.values():
            sessions.begin_session(state, group.group_id, member.member_id)
            if member.state is StreamsMemberState.UNREVOKED_TASKS:
                sessions.limit_revocation(state, group.group_id, member)

    def list_entry(self, group: StreamsGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=self.name, group_state=group.committed_state().value,
            group_type=self.name,
        )  # fmt: skip

    def state_filter(self, state: str) -> str:
        return "not_ready" if state == "NotReady" else super().state_filter(state)

    def tombstones(self, state: State, group: StreamsGroupModel) -> list[LogRecord]:
        sessions.cancel_initial_delay(state, group.group_id)
        return streams_tombstones(group)

    def subscribes_to_any(self, group: StreamsGroupModel, names: Iterable[str]) -> bool:
        return group.subscribes_to_any(names)

    def refresh(self, group: StreamsGroupModel) -> None:
        group.refresh.request()

    # --- offsets ---

    def validate_commit(
        self, state: State, group: StreamsGroupModel, commit: GroupCommit
    ) -> PartitionCheck | None:
        epoch = commit.generation
        member = committing_member(group, commit)
        if member is None:
            return None
        check_version(commit)
        if not member.is_placed:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if epoch == member.epoch:
            return None
        if epoch > member.epoch or group.topology is None:
            raise _stale()
        return _check_of_older_epoch(group.topology, member, epoch)

    def validate_fetch(
        self, group: StreamsGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        member = fetching_member(group, member_id, epoch, stable=stable)
        if member is None:
            return
        if not member.is_placed:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        if member.epoch != epoch:
            raise _stale()

    def retention_start(self, group: StreamsGroupModel, committed: CommittedOffset) -> int:
        return committed.committed_at


def _stale() -> OperationRefused:
    return OperationRefused(ErrorCode.STALE_MEMBER_EPOCH)


def _check_of_older_epoch(topology: StreamsTopology, member: StreamsMember, epoch: int) -> PartitionCheck:
    no_tasks: Mapping[int, int] = {}

    def check(topic: str, topic_id: UUID, partition: int) -> None:
        part_id = topology.sources.get(topic)
        if part_id is None:
            raise _stale()
        since = member.tasks.active.get(part_id, no_tasks).get(partition)
        if since is None:
            since = member.revoking.active.get(part_id, no_tasks).get(partition)
        if since is None or epoch < since:
            raise _stale()

    return check


# --- replay ---


_STATES = frozenset(StreamsMemberState)


def replay_streams_group(state: State, key: object, value: object) -> None:
    """Replay a record with one of `STREAMS_KEYS`."""
    group = find_recorded(state, key, value, StreamsGroupModel)
    if group is None:
        return
    if state.rules.streams_topologies_are_validated_by_records:
        group.begin_unvalidated()
    match key, value:
        case StreamsGroupMetadataKey(), StreamsGroupMetadataValue() as content:
            configs = {config.key: config.value for config in content.last_assignment_configs or ()}
            epochs = content.stored_description_topology_epoch, content.failed_description_topology_epoch
            group.set_epoch(
                content.epoch,
                content.metadata_hash,
                content.validated_topology_epoch,
                configs,
                epochs if state.rules.streams_members_report_more else NO_DESCRIPTION,
            )
        case StreamsGroupMetadataKey(group_id=group_id), None:
            if group.members or group.assignment_epoch != -1:
                raise contradiction()
            state.groups.pop(group_id)
        case StreamsGroupTopologyKey(), (StreamsGroupTopologyValue() | None) as content:
            group.set_topology(None if content is None else StreamsTopology(content))
        case StreamsGroupMemberMetadataKey(member_id=member_id), (
            StreamsGroupMemberMetadataValue() | None
        ) as content:
            _replay_member(group, member_id, content)
        case StreamsGroupTargetAssignmentMetadataKey(), (
            StreamsGroupTargetAssignmentMetadataValue() | None
        ) as content:
            replay_assignment_epoch(group, content)
        case StreamsGroupTargetAssignmentMemberKey(member_id=member_id), (
            StreamsGroupTargetAssignmentMemberValue() | None
        ) as content:
            if content is None:
                group.targets.pop(member_id)
            else:
                group.targets[member_id] = TargetTasks(
                    listed_tasks(content.active_tasks),
                    listed_tasks(content.standby_tasks),
                    listed_tasks(content.warmup_tasks),
                )
        case StreamsGroupCurrentMemberAssignmentKey(member_id=member_id), (
            StreamsGroupCurrentMemberAssignmentValue() | None
        ) as content:
            _replay_owned(group, member_id, content)


def _unknown(member_id: str) -> StreamsMember:
    """A member of which no record came yet."""
    return StreamsMember(member_id, is_described=False, is_placed=False)


def _replay_member(
    group: StreamsGroupModel, member_id: str, value: StreamsGroupMemberMetadataValue | None
) -> None:
    if value is None:
        replay_leaving(group, member_id)
        return
    endpoint = value.user_endpoint
    tags = HashMap.of((tag.key, tag.value) for tag in value.client_tags)
    group.put_member(
        replace(
            group.members.get(member_id) or _unknown(member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port),
            client_tags=tags.in_order(),
            is_described=True,
        )
    )


def _replay_owned(
    group: StreamsGroupModel, member_id: str, value: StreamsGroupCurrentMemberAssignmentValue | None
) -> None:
    member = group.members.get(member_id)
    if value is None:
        if member is not None:
            group.put_member(
                replace(
                    member,
                    epoch=LEFT_STREAMS,
                    previous_epoch=LEFT_STREAMS,
                    tasks=NO_OWNED_TASKS,
                    revoking=NO_OWNED_TASKS,
                )
            )
        return
    epoch = value.member_epoch
    group.put_member(
        replace(
            member or _unknown(member_id),
            epoch=epoch,
            previous_epoch=value.previous_member_epoch,
            state=_state(value.state),
            tasks=OwnedTasks(
                _active(value.active_tasks, epoch),
                listed_tasks(value.standby_tasks),
                listed_tasks(value.warmup_tasks),
            ),
            revoking=OwnedTasks(
                _active(value.active_tasks_pending_revocation, epoch),
                listed_tasks(value.standby_tasks_pending_revocation),
                listed_tasks(value.warmup_tasks_pending_revocation),
            ),
            is_placed=True,
        )
    )


def _state(number: int) -> StreamsMemberState:
    """A member's state; one that only a newer coordinator has is unknown."""
    return StreamsMemberState(number) if number in _STATES else StreamsMemberState.UNKNOWN


def _active(
    parts: list[StreamsGroupCurrentMemberAssignmentValueTaskIds], epoch: int
) -> dict[str, dict[int, int]]:
    """Active tasks, each with its epoch; that of the member where the record has none."""
    tasks = {}
    for part in parts:
        epochs = part.assignment_epochs
        if epochs is None or len(epochs) != len(part.partitions):
            epochs = [epoch] * len(part.partitions)
        tasks[part.subtopology_id] = HashMap.of(zip(part.partitions, epochs, strict=True)).in_order()
    return tasks


# --- descriptions ---


def _described(state: State, group: StreamsGroupModel) -> DescribedGroup:
    """Describe a group. Raises `OperationRefused` for one of which the log has only a part."""
    facts = group.facts.committed
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.committed_state().value,
        group_epoch=facts.epoch,
        assignment_epoch=facts.assignment_epoch,
        assignor_name=STICKY if state.rules.streams_members_report_more else None,
        topology=_topology(group),
        members=[
            _member(group, member, group.targets.committed(member_id) or NO_TARGET_TASKS)
            for member_id, member in group.members.committed_items()
        ],
    )


# --- topologies ---


def _topology(group: StreamsGroupModel) -> Topology:
    """The topology with the cluster's topics if it is ready, else as the members describe it."""
    configured, topology = group.configured.committed, group.topology_value.committed
    if configured is not None and configured.is_ready:
        return _configured_topology(configured)
    if topology is None:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return _described_topology(topology)


def _configured_topology(configured: ConfiguredTopology) -> Topology:
    assert configured.subtopologies is not None
    return Topology(
        epoch=configured.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=part_id,
                source_topics=sorted(part.source_topics),
                repartition_sink_topics=list(part.repartition_sinks),
                repartition_source_topics=_configured_topics(part.repartition_sources.values()),
                state_changelog_topics=_configured_topics(part.changelogs.values()),
            )
            for part_id, part in configured.subtopologies.items()
        ],
    )


def _configured_topics(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=key, value=value) for key, value in topic.configs.items()],
        )
        for topic in sorted(topics, key=attrgetter("name"))
    ]


def _described_topology(topology: StreamsTopology) -> Topology:
    parts = topology.subtopologies
    return Topology(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=part_id,
                source_topics=sorted(parts[part_id].source_topics),
                repartition_sink_topics=sorted(parts[part_id].repartition_sink_topics),
                repartition_source_topics=_described_topics(parts[part_id].repartition_source_topics),
                state_changelog_topics=_described_topics(parts[part_id].state_changelog_topics),
            )
            for part_id in sorted(parts)
        ],
    )


def _described_topics(topics: Iterable[RecordedTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=[KeyValue(key=config.key, value=config.value) for config in topic.topic_configs],
        )
        for topic in sorted(topics, key=attrgetter("name"))
    ]


# --- members ---


def _member(group: StreamsGroupModel, member: StreamsMember, target: TargetTasks) -> Member:
    if not (member.is_described and member.is_placed):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    endpoint = None
    if member.endpoint is not None:
        endpoint = Endpoint(host=member.endpoint.host, port=member.endpoint.port)
    tasks, reported = member.tasks, group.task_offsets.get(member.member_id, NO_OFFSETS)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        task_offsets=_offsets(reported.offsets),
        task_end_offsets=_offsets(reported.end_offsets),
        member_epoch=member.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=endpoint,
        client_tags=[KeyValue(key=key, value=value) for key, value in member.client_tags.items()],
        assignment=_assignment(tasks.active, tasks.standby, tasks.warmup),
        target_assignment=_assignment(target.active, target.standby, target.warmup),
    )


def _offsets(offsets: Mapping[tuple[str, int], int]) -> list[TaskOffset]:
    return [
        TaskOffset(subtopology_id=part_id, partition=partition, offset=offset)
        for (part_id, partition), offset in sorted(offsets.items())
    ]


def _assignment(
    active: Mapping[str, Iterable[int]],
    standby: Mapping[str, Iterable[int]],
    warmup: Mapping[str, Iterable[int]],
) -> Assignment:
    return Assignment(active_tasks=_ids(active), standby_tasks=_ids(standby), warmup_tasks=_ids(warmup))


def _ids(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=part_id, partitions=sorted(tasks[part_id])) for part_id in sorted(tasks)]


# --- handlers ---


_NOT_STORED = 1
"""The status of a topology's description that no plugin of the broker's keeps."""


def _describe_groups(call: IncomingRequest) -> None:
    groups = described_groups(call, StreamsGroupModel, DescribedGroup, _described)
    if call.state.rules.streams_members_report_more and call.request.include_topology_description:
        for group in groups:
            group.topology_description_status = 0 if group.error_code else _NOT_STORED
    call.reply.send(StreamsGroupDescribeResponse(groups=groups))


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    StreamsGroupHeartbeatRequest: ImmediateRequest(
        validate_streams_heartbeat,
        streams_group_heartbeat,
        partial(refused_heartbeat, StreamsGroupHeartbeatResponse),
        steady_heartbeat,
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    StreamsGroupDescribeRequest: _describe_groups,
}
