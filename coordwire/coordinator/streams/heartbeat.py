"""StreamsGroupHeartbeat (KIP-1071): the one request by which members join, stay, change and leave.

Strategy: the request updates the member, and sets up the topology where that or its topics changed; both may
raise the group's epoch. The target is computed again if its epoch is smaller; the member is reconciled with
the target. What is wrong with the group goes into the answer as statuses, not as an error.

Rules: patterns of topics are refused, as by Apache Kafka, which has none of them yet; static members,
reported offsets and warm-up tasks by the releases that have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from coordwire.codec.declarations import positional
from coordwire.coordinator.config import StreamsGroupConfig
from coordwire.coordinator.effects import RequestContext
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.members import find_member, find_static_member
from coordwire.coordinator.model.streams_group import (
    LEFT_FOR_NOW,
    NO_OFFSETS,
    ReportedOffsets,
    ReportedTasks,
    StreamsGroupModel,
    StreamsMember,
    TargetTasks,
    listed_tasks,
)
from coordwire.coordinator.model.streams_topology import (
    ConfiguredTopology,
    StreamsTopology,
    topology_value,
)
from coordwire.coordinator.records import classic_tombstone
from coordwire.coordinator.refusal import VISIBLE, OperationRefused, contradiction, fits, is_blank
from coordwire.coordinator.snapshots import Snapshots
from coordwire.coordinator.state import Outcome, Result, State
from coordwire.coordinator.streams import sessions
from coordwire.coordinator.streams.configuration import configure_topology
from coordwire.coordinator.streams.endpoints import endpoints_of_group
from coordwire.coordinator.streams.members import (
    NO_TIMEOUT,
    member_before,
    refuse_if_full,
    rejoins_in_place,
    updated_member,
)
from coordwire.coordinator.streams.reconciliation import (
    STANDBY_REPLICAS,
    StreamsTarget,
    begin_initial_delay,
    reconciled,
    refine,
    update_target,
)
from coordwire.coordinator.streams.records import epoch_record, member_record, owned_record, topology_record
from coordwire.coordinator.streams.sessions import SESSION_TIMER, initial_delay_key
from coordwire.enums import ErrorCode, StreamsGroupStatus, StreamsMemberState
from coordwire.logs import LogRecord
from coordwire.messages import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse
from coordwire.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatResponseTaskIds,
    TaskOffset,
    Topology,
)

_LEFT = -1
_NOT_VALIDATED = -1
_STALE = "The member's topology epoch %d is be" + "hind the group's topology epoch %d."

# --- requests that are invalid whatever the group is like ---


def validate_streams_heartbeat(state: State, request: StreamsGroupHeartbeatRequest, version: int) -> None:
    """Raise `OperationRefused` for a request that is invalid whatever the group is like."""
    topology = request.topology
    if not state.rules.streams_members_report_more:
        _refuse_more(request)
    if topology is not None and any(part.source_topic_regex for part in topology.subtopologies):
        raise _invalid("Regular expressions for source topics are not supported yet.")
    if is_blank(request.member_id):
        raise _invalid("MemberId can't be empty.")
    if is_blank(request.group_id):
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and is_blank(request.instance_id):
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and is_blank(request.rack_id):
        raise _invalid("RackId can't be empty.")
    epoch = request.member_epoch
    if epoch == 0:
        _validate_join(request)
    elif epoch == LEFT_FOR_NOW:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_NOW:
        raise _invalid(f"MemberEpoch is {epoch}, but must be greater than or equal to -2.")
    reported = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if None in reported and any(tasks is not None for tasks in reported):
        raise _invalid("If one task-type is non-null, all must be non-null.")
    if epoch != 0 and topology is not None:
        raise _invalid("Topology can only be provided when (re-)joining.")


def _refuse_more(request: StreamsGroupHeartbeatRequest) -> None:
    if request.instance_id is not None:
        raise _invalid("Static membership is not yet supported.")
    if request.task_offsets is not None:
        raise _invalid("TaskOffsets are not supported yet.")
    if request.task_end_offsets is not None:
        raise _invalid("TaskEndOffsets are not supported yet.")
    if request.warmup_tasks:
        raise _invalid("WarmupTasks are not supported yet.")


def _validate_join(request: StreamsGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == NO_TIMEOUT:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            raise _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise _invalid("Topology must be non-null when (re-)joining.")
    for part in request.topology.subtopologies:
        for topic in part.state_changelog_topics:
            if topic.partitions != 0:
                raise OperationRefused(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


def _invalid(message: str) -> OperationRefused:
    return OperationRefused(ErrorCode.INVALID_REQUEST, message)


# --- the heartbeat ---


def streams_group_heartbeat(
    state: State, request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> Outcome:
    group_id, member_id = request.group_id, request.member_id
    if request.member_epoch in (_LEFT, LEFT_FOR_NOW):
        return _leave(state, request)
    config = state.config.of_streams_group(group_id)
    records: list[LogRecord] = []
    statuses: list[Status] = []
    group = _find_or_make(state, request, records)
    replaced = _replaced(group, request)
    old = member_before(group, request, records)
    new = updated_member(state, old, request, context)
    changed = new is not old and new != old
    if changed:
        if not new.is_described:
            raise contradiction()
        records.append(member_record(group_id, new))
    topology = _topology(group, request.topology, records)
    known = group.topology
    if known is not None and new.topology_epoch < known.epoch:
        detail = _STALE % (new.topology_epoch, known.epoch)
        statuses.append(Status(status_code=StreamsGroupStatus.STALE_TOPOLOGY, status_detail=detail))
    configured, metadata_hash = _configure(state, group, topology)
    validated = _NOT_VALIDATED
    if configured.is_ready:
        validated = topology.epoch
        for reported in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
            if reported:
                _validate_tasks(configured, reported)
    if request.task_offsets is not None or request.task_end_offsets is not None:
        _take_offsets(group, request)
    replicas = config.num_standby_replicas
    configs = _assignment_configs(state, config)
    facts = group.facts.value
    epoch = facts.epoch
    is_due = (
        (changed and not rejoins_in_place(request, old, new))
        or metadata_hash != facts.metadata_hash
        or known is None
        or validated != facts.validated_topology_epoch
        or configs != facts.assignment_configs
    )
    refines = not is_due and state.rules.streams_targets_are_refined and refine(group, new)
    if is_due or refines:
        epoch += 1
        descriptions = facts.description_epochs
        records.append(epoch_record(group_id, epoch, metadata_hash, validated, configs, descriptions))
        group.refresh.complete(state.now, epoch)
    if group.is_empty:
        begin_initial_delay(state, group_id)
    target = update_target(state, group, epoch, new, configured, replicas, records, statuses, refines=refines)
    if not new.is_reconciled_to(target.epoch):
        new = _reconcile(state, group, new, target, request, records)
    if request.member_epoch == 0:
        sessions.begin_session(state, group_id, member_id)
    else:
        sessions.keep_alive(state, group_id, member_id, config.session_timeout_ms)
    if request.shutdown_application:
        group.request_shutdown(member_id)
    response = StreamsGroupHeartbeatResponse(
        member_id=member_id, member_epoch=new.epoch, heartbeat_interval_ms=config.heartbeat_interval_ms
    )
    if state.rules.streams_members_report_more:
        response.task_offset_interval_ms = config.task_offset_interval_ms
        response.acceptable_recovery_lag = config.acceptable_recovery_lag
    joins, has_other_tasks = request.member_epoch == 0, new.tasks is not old.tasks and new.tasks != old.tasks
    if joins or has_other_tasks:
        response.active_tasks = _task_ids(new.tasks.active)
        response.standby_tasks = _task_ids(new.tasks.standby)
        response.warmup_tasks = _task_ids(new.tasks.warmup)
    _renew_endpoint(state, group, old, new, joins=joins, has_other_tasks=has_other_tasks, replaced=replaced)
    if group.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = endpoints_of_group(state, group, new, replaced)
    if group_id in state.groups:
        response.endpoint_information_epoch = group.endpoint_epoch
    problem = configured.problem
    if problem is not None:
        statuses.append(Status(status_code=problem.status, status_detail=problem.detail))
    if group.shutdown_member is not None:
        detail = (
            f"Streams group member {group.shutdown_member} encountered a fatal error and requested a "
            "shutdown for the entire application."
        )
        statuses.append(Status(status_code=StreamsGroupStatus.SHUTDOWN_APPLICATION, status_detail=detail))
    response.status = statuses
    if statuses and not all(fits(status.status_detail) for status in statuses):
        response = StreamsGroupHeartbeatResponse(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))
    if records or configured.to_create:
        return Result(records, response, topics_to_create=configured.to_create)
    return response


def _replaced(group: StreamsGroupModel, request: StreamsGroupHeartbeatRequest) -> str | None:
    """The id of the member that a static one takes the place of."""
    known = None if request.instance_id is None else group.static_members.get(request.instance_id)
    return None if known == request.member_id else known


def _take_offsets(group: StreamsGroupModel, request: StreamsGroupHeartbeatRequest) -> None:
    """Keep what the member says of its tasks' offsets; no record has it."""
    known, known_ends = group.task_offsets.get(request.member_id, NO_OFFSETS)
    offsets, ends = request.task_offsets, request.task_end_offsets
    group.task_offsets[request.member_id] = ReportedOffsets(
        known if offsets is None else _by_task(offsets), known_ends if ends is None else _by_task(ends)
    )


def _by_task(offsets: list[TaskOffset]) -> dict[tuple[str, int], int]:
    by_task: dict[tuple[str, int], int] = {}
    for reported in offsets:
        task = reported.subtopology_id, reported.partition
        if task in by_task:
            raise _invalid(
                f"Task offsets contain a duplicate entry for subtopology {task[0]} and partition {task[1]}."
            )
        by_task[task] = reported.offset
    return by_task


def _renew_endpoint(
    state: State,
    group: StreamsGroupModel,
    old: StreamsMember,
    new: StreamsMember,
    *,
    joins: bool,
    has_other_tasks: bool,
    replaced: str | None,
) -> None:
    """Let what is known of the member's endpoint end, and the epoch of the endpoints rise."""
    by_endpoint = state.rules.streams_endpoint_epochs_follow_endpoints
    changed = by_endpoint and old.endpoint != new.endpoint
    if joins or has_other_tasks or changed or replaced is not None:
        group.endpoints.pop(new.member_id, None)
        if replaced is not None:
            group.endpoints.pop(replaced, None)
    serves_others = new.endpoint is not None and (has_other_tasks or (joins and not by_endpoint))
    if changed or serves_others:
        group.endpoint_epoch += 1


def _assignment_configs(state: State, config: StreamsGroupConfig) -> Mapping[str, str]:
    knows_tags = state.rules.streams_members_report_more
    return _configs(config.num_standby_replicas, config.rack_aware_assignment_tags if knows_tags else ())


@lru_cache(maxsize=64)
def _configs(standby_replicas: int, tags: tuple[str, ...]) -> Mapping[str, str]:
    own = {STANDBY_REPLICAS: str(standby_replicas)}
    return own | {"rack.aware.assignment.tags": ",".join(tags)} if tags else own


_earlier_steady_response = positional(
    StreamsGroupHeartbeatResponse, "member_id", "member_epoch", "heartbeat_interval_ms",
    "endpoint_information_epoch",
)  # fmt: skip
_steady_response = positional(
    StreamsGroupHeartbeatResponse, "member_id", "member_epoch", "heartbeat_interval_ms",
    "endpoint_information_epoch", "task_offset_interval_ms", "acceptable_recovery_lag",
)  # fmt: skip


def steady_heartbeat(
    state: State, request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsGroupHeartbeatResponse | None:
    """Answer a settled member that reports nothing new, in a group without a problem to report; None for
    all others, of whom `streams_group_heartbeat` decides.
    """
    group_id, member_id, epoch = request.group_id, request.member_id, request.member_epoch
    group = state.groups.get(group_id)
    if epoch <= 0 or type(group) is not StreamsGroupModel:
        return None
    configs, timers = state.config, state.timers
    config = configs.streams_groups.get(group_id, configs.streams)
    member = group.members.get(member_id)
    if (
        member is None
        or member.epoch != epoch
        or request.endpoint_information_epoch != group.endpoint_epoch
        or request.rebalance_timeout_ms != NO_TIMEOUT
        or request.topology is not None
        or request.active_tasks is not None
        or request.standby_tasks is not None
        or request.warmup_tasks is not None
        or request.process_id is not None
        or request.user_endpoint is not None
        or request.client_tags is not None
        or request.instance_id is not None
        or request.rack_id is not None
        or request.task_offsets is not None
        or request.task_end_offsets is not None
        or request.shutdown_application
        or context.client_id != member.client_id
        or context.client_host != member.client_host
        or member_id < VISIBLE
        or not group.is_settled(member, state.topics, _assignment_configs(state, config))
        or timers.is_set(initial_delay_key(group_id))
        or not timers.renew((SESSION_TIMER, group_id, member_id), state.now + config.session_timeout_ms)
    ):
        return None
    interval_ms, endpoint_epoch = config.heartbeat_interval_ms, group.endpoint_epoch
    if not state.rules.streams_members_report_more:
        return _earlier_steady_response(member_id, epoch, interval_ms, endpoint_epoch)
    return _steady_response(
        member_id, epoch, interval_ms, endpoint_epoch, config.task_offset_interval_ms,
        config.acceptable_recovery_lag,
    )  # fmt: skip


def _leave(state: State, request: StreamsGroupHeartbeatRequest) -> Result:
    group = _existing(state, request.group_id, f"Group {request.group_id} not found.")
    if request.shutdown_application:
        group.request_shutdown(request.member_id)
    if request.instance_id is None:
        member = find_member(group, request.member_id)
    else:
        member = find_static_member(group, request.member_id, request.instance_id)
    response = StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    if request.member_epoch == LEFT_FOR_NOW:
        return sessions.leave_for_now(group, member, response)
    return sessions.remove_member(state, group, member, response)


# --- the group and the member ---


def _existing(state: State, group_id: str, missing: str) -> StreamsGroupModel:
    group = state.groups.get(group_id)
    if group is None:
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, missing)
    if not isinstance(group, StreamsGroupModel):
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")
    return group


def _find_or_make(
    state: State, request: StreamsGroupHeartbeatRequest, records: list[LogRecord]
) -> StreamsGroupModel:
    """Find the group of a heartbeat; one that joins may create it, also in place of an empty classic group.

    A new group is outside of the shard's state until its records are replayed.
    """
    group_id = request.group_id
    if request.member_epoch != 0:
        return _existing(state, group_id, f"Streams group {group_id} not found.")
    known = state.groups.get(group_id)
    if isinstance(known, ClassicGroupModel) and known.is_empty:
        records.append(classic_tombstone(group_id))
        known = None
    group = StreamsGroupModel(group_id, Snapshots()) if known is None else _existing(state, group_id, "")
    refuse_if_full(state, group, request)
    return group


# --- the topology ---


def _topology(
    group: StreamsGroupModel, requested: Topology | None, records: list[LogRecord]
) -> StreamsTopology:
    """The group's topology: the first that a member brings. Others must be the same, or older."""
    known = group.topology
    if requested is None:
        if known is None:
            raise contradiction()
        return known
    topology = StreamsTopology(topology_value(requested))
    if known is None:
        records.append(topology_record(group.group_id, topology.value))
        return topology
    if known.epoch <= topology.epoch and known != topology:
        raise _invalid("Topology updates are not supported yet.")
    return known


def _configure(
    state: State, group: StreamsGroupModel, topology: StreamsTopology
) -> tuple[ConfiguredTopology, int]:
    """The topology with the cluster's topics, and the hash of their metadata."""
    configured, metadata_hash = group.configured.value, group.metadata_hash
    is_new = group.topology is None
    if not is_new and configured is not None and not group.refresh.is_due(state.now, group.epoch):
        return configured, metadata_hash
    metadata_hash = group.hash_of_topics(state.topics, topology)
    if is_new or configured is None or metadata_hash != group.metadata_hash:
        configured = configure_topology(topology, state.topics)
        group.configure(configured)
    return configured, metadata_hash


def _validate_tasks(
    configured: ConfiguredTopology, reported: list[StreamsGroupHeartbeatRequestTaskIds]
) -> None:
    """Refuse tasks that the topology does not have."""
    parts = configured.subtopologies
    assert parts is not None
    for tasks in reported:
        part_id = tasks.subtopology_id
        part = parts.get(part_id)
        if part is None:
            raise _invalid(f"Subtopology {part_id} does not exist in the topology.")
        for partition in tasks.partitions:
            if not 0 <= partition < part.tasks:
                raise _invalid(
                    f"Task {partition} for subtopology {part_id} is invalid. Number of tasks for this "
                    f"subtopology: {part.tasks}"
                )


# --- tasks ---


def _reconcile(
    state: State,
    group: StreamsGroupModel,
    member: StreamsMember,
    target: StreamsTarget,
    request: StreamsGroupHeartbeatRequest,
    records: list[LogRecord],
) -> StreamsMember:
    reported = _reported(request)
    if not member.is_placed:
        raise contradiction()
    step = reconciled(state.rules, group, member, target.epoch, target.tasks, reported)
    if step is not member and step != member:
        records.append(owned_record(group.group_id, step))
        if step.state is StreamsMemberState.UNREVOKED_TASKS:
            sessions.limit_revocation(state, group.group_id, step)
        else:
            sessions.unlimit_revocation(state, group.group_id, step.member_id)
    return step


def _reported(request: StreamsGroupHeartbeatRequest) -> ReportedTasks:
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return None
    tasks = TargetTasks(listed_tasks(active), listed_tasks(standby), listed_tasks(warmup))
    if (len(tasks.active), len(tasks.standby), len(tasks.warmup)) != (len(active), len(standby), len(warmup)):
        raise contradiction()  # a subtopology is there twice
    return tasks


def _task_ids(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupHeartbeatResponseTaskIds]:
    return [
        StreamsGroupHeartbeatResponseTaskIds(subtopology_id=part_id, partitions=sorted(ids))
        for part_id, ids in HashMap.of(tasks).items()
    ]
