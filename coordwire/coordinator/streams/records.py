"""The records of streams groups; `replay` reads them.

type  key            value
17    group          the group's epoch, the hash of its topics' metadata, the epoch of the topology that fits
19    group, member  the member, as its requests describe it
20    group          the target's epoch, and when it was computed
21    group, member  the member's target
22    group, member  the tasks that the member has, and those that it has to give up
23    group          the topology
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.model.streams_group import (
    NO_DESCRIPTION,
    ActiveTasks,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
    Tasks,
)
from coordwire.logs import LogRecord
from coordwire.messages import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
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
from coordwire.messages.streams_group_records import (
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
    StreamsGroupTargetAssignmentMemberValueTaskIds,
)


def _record(record_type: int, key: Message, value: Message | None) -> LogRecord:
    version = None if value is None else 0
    return LogRecord(log="consumer_offsets", type=record_type, key=key, value=value, version=version)


def epoch_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    configs: Mapping[str, str],
    description_epochs: tuple[int, int] = NO_DESCRIPTION,
) -> LogRecord:
    stored, failed = description_epochs
    value = StreamsGroupMetadataValue(
        epoch=epoch, metadata_hash=metadata_hash, validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            LastAssignmentConfig(key=key, value=configs[key]) for key in sorted(configs)
        ],
        stored_description_topology_epoch=stored, failed_description_topology_epoch=failed,
    )  # fmt: skip
    return _record(17, StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, topology: StreamsGroupTopologyValue) -> LogRecord:
    return _record(23, StreamsGroupTopologyKey(group_id=group_id), topology)


def member_record(group_id: str, member: StreamsMember) -> LogRecord:
    endpoint = None
    if member.endpoint is not None:
        endpoint = Endpoint(host=member.endpoint.host, port=member.endpoint.port)
    tags = member.client_tags
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id, rack_id=member.rack_id, client_id=member.client_id,
        client_host=member.client_host, rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id, user_endpoint=endpoint,
        client_tags=[KeyValue(key=key, value=tags[key]) for key in sorted(tags)],
    )  # fmt: skip
    return _record(19, StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def assignment_epoch_record(group_id: str, epoch: int, assigned_at: int) -> LogRecord:
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=assigned_at
    )
    return _record(20, StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, target: TargetTasks) -> LogRecord:
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_ids(target.active),
        standby_tasks=_target_ids(target.standby),
        warmup_tasks=_target_ids(target.warmup),
    )
    return _record(21, StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def _target_ids(tasks: Tasks) -> list[StreamsGroupTargetAssignmentMemberValueTaskIds]:
    return [
        StreamsGroupTargetAssignmentMemberValueTaskIds(
            subtopology_id=part_id, partitions=sorted(tasks[part_id])
        )
        for part_id in sorted(tasks)
    ]


def owned_record(group_id: str, member: StreamsMember) -> LogRecord:
    tasks, revoking = member.tasks, member.revoking
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch, previous_member_epoch=member.previous_epoch, state=member.state.value,
        active_tasks=_active_ids(tasks.active), standby_tasks=_ids(tasks.standby),
        warmup_tasks=_ids(tasks.warmup), active_tasks_pending_revocation=_active_ids(revoking.active),
        standby_tasks_pending_revocation=_ids(revoking.standby),
        warmup_tasks_pending_revocation=_ids(revoking.warmup),
    )  # fmt: skip
    return _record(
        22, StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value
    )


def _active_ids(tasks: ActiveTasks) -> list[StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    entries = []
    for part_id in sorted(tasks):
        epochs = tasks[part_id]
        partitions = sorted(epochs)
        entries.append(
            StreamsGroupCurrentMemberAssignmentValueTaskIds(
                subtopology_id=part_id,
                partitions=partitions,
                assignment_epochs=[epochs[partition] for partition in partitions],
            )
        )
    return entries


def _ids(tasks: Tasks) -> list[StreamsGroupCurrentMemberAssignmentValueTaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValueTaskIds(
            subtopology_id=part_id, partitions=sorted(tasks[part_id])
        )
        for part_id in sorted(tasks)
    ]


def _owned_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(22, StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def _target_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(21, StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def _member_tombstone(group_id: str, member_id: str) -> LogRecord:
    return _record(19, StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def member_tombstones(group_id: str, member_id: str) -> list[LogRecord]:
    """The end of a member, in an order of which no prefix leaves tasks without their owner."""
    return [
        _owned_tombstone(group_id, member_id),
        _target_tombstone(group_id, member_id),
        _member_tombstone(group_id, member_id),
    ]


def streams_tombstones(group: StreamsGroupModel) -> list[LogRecord]:
    """The end of a group without members."""
    group_id = group.group_id
    return [
        _record(20, StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        _record(17, StreamsGroupMetadataKey(group_id=group_id), None),
        _record(23, StreamsGroupTopologyKey(group_id=group_id), None),
    ]
