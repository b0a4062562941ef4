"""The requests of streams groups: checks that need no group, and the forms of answers.

StreamsGroupDescribe: a streams group as of the last durable write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter

from coordwire.codec import Message
from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.model.streams_group import (
    NO_TARGET_TASKS,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
)
from coordwire.coordinator.model.streams_topology import ConfiguredTopology, StreamsTopology
from coordwire.coordinator.refusal import OperationRefused, fits, writable_refusal
from coordwire.coordinator.state import State
from coordwire.coordinator.streams.heartbeat import (
    steady_heartbeat,
    streams_group_heartbeat,
    validate_streams_heartbeat,
)
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.streams_group_describe import (
    Assignment,
    DescribedGroup,
    Endpoint,
    KeyValue,
    Member,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from coordwire.messages.streams_group_records import TopicInfo as RecordedTopic

__all__ = ["HANDLERS", "IMMEDIATE"]


def describe_streams_group(state: State, group_id: str) -> DescribedGroup:
    """Describe a group. Raises `OperationRefused` for one of which the log has only a part."""
    group = state.groups.committed(group_id)
    if not isinstance(group, StreamsGroupModel):
        problem = "not found" if group is None else "is not a streams group"
        error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        return DescribedGroup(
            group_id=group_id, error_code=error, error_message=f"Group {group_id} {problem}."
        )
    facts = group.facts.committed
    return DescribedGroup(
        group_id=group_id,
        group_state=group.committed_state().value,
        group_epoch=facts.epoch,
        assignment_epoch=facts.assignment_epoch,
        topology=_topology(group),
        members=[
            _member(member, group.targets.committed(member_id) or NO_TARGET_TASKS)
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


def _member(member: StreamsMember, target: TargetTasks) -> Member:
    if not (member.is_described and member.is_placed):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    endpoint = None
    if member.endpoint is not None:
        endpoint = Endpoint(host=member.endpoint.host, port=member.endpoint.port)
    tasks = member.tasks
    return Member(
        member_id=member.member_id,
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


def _assignment(
    active: Mapping[str, Iterable[int]],
    standby: Mapping[str, Iterable[int]],
    warmup: Mapping[str, Iterable[int]],
) -> Assignment:
    return Assignment(active_tasks=_ids(active), standby_tasks=_ids(standby), warmup_tasks=_ids(warmup))


def _ids(tasks: Mapping[str, Iterable[int]]) -> list[TaskIds]:
    return [TaskIds(subtopology_id=part_id, partitions=sorted(tasks[part_id])) for part_id in sorted(tasks)]


# --- handlers ---


_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)
_UNKNOWN_SERVER_ERROR = int(ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused_streams_heartbeat(error: int, message: str | None) -> StreamsGroupHeartbeatResponse:
    error, message = writable_refusal(error, message)
    return StreamsGroupHeartbeatResponse(error_code=error, error_message=message)


def _describe_streams_groups(call: IncomingRequest) -> None:
    empty = [
        DescribedGroup(group_id="", error_code=_INVALID_GROUP_ID)
        for group_id in call.request.group_ids
        if not group_id
    ]
    names = [group_id for group_id in call.request.group_ids if group_id]
    if call.error:
        groups = _refused(names, call.error)
    else:
        try:
            groups = [describe_streams_group(call.state, group_id) for group_id in names]
        except OperationRefused as refusal:
            groups = _refused(names, int(refusal.code))
    groups = empty + groups
    if not all(fits(group.error_message) for group in groups):
        groups = _refused(call.request.group_ids, _UNKNOWN_SERVER_ERROR)
    call.reply.send(StreamsGroupDescribeResponse(groups=groups))


def _refused(group_ids: list[str], error: int) -> list[DescribedGroup]:
    return [DescribedGroup(group_id=group_id, error_code=error) for group_id in group_ids]


IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    StreamsGroupHeartbeatRequest: ImmediateRequest(
        validate_streams_heartbeat, streams_group_heartbeat, _refused_streams_heartbeat, steady_heartbeat
    ),
}

HANDLERS: Mapping[type[Message], Handler] = {
    StreamsGroupDescribeRequest: _describe_streams_groups,
}
