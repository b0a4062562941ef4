"""The member of a streams heartbeat: a known one, a new one, or a static one that returns.

A static member that returns takes over its predecessor's target and tasks, at epoch 0, once the predecessor
has left for now (-2). Rules: static members are there from the release on that has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from coordwire.coordinator.effects import RequestContext, client_id_of
from coordwire.coordinator.hash_tables import HashMap
from coordwire.coordinator.model.members import (
    fenced_epoch,
    find_member,
    find_static_member,
    static_member,
    unreleased,
)
from coordwire.coordinator.model.streams_group import (
    LEFT_FOR_NOW,
    StreamsGroupModel,
    StreamsMember,
    UserEndpoint,
)
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.state import State
from coordwire.coordinator.streams.records import (
    member_record,
    member_tombstones,
    owned_record,
    target_record,
)
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import StreamsGroupHeartbeatRequest
from coordwire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequestTaskIds

NO_TIMEOUT = -1
"""The rebalance time-out of a heartbeat that does not change it."""

Reported = list[StreamsGroupHeartbeatRequestTaskIds] | None


def refuse_if_full(state: State, group: StreamsGroupModel, request: StreamsGroupHeartbeatRequest) -> None:
    limit = state.config.streams_group_max_size
    if len(group.members) < limit:
        return
    returns = request.instance_id is not None and request.instance_id in group.static_members
    if state.rules.static_members_return_to_full_groups and (returns or request.member_id in group.members):
        return
    raise OperationRefused(
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        f"The streams group has reached its maximum capacity of {limit} members.",
    )


def member_before(
    group: StreamsGroupModel, request: StreamsGroupHeartbeatRequest, records: list[LogRecord]
) -> StreamsMember:
    """The member as it was before this heartbeat; adds the records of one that takes another's place."""
    epoch, instance_id = request.member_epoch, request.instance_id
    if instance_id is not None:
        known = static_member(group, instance_id)
        if known is not None and known.member_id != request.member_id:
            group.rename_in_refined(known.member_id, request.member_id)
        if epoch == 0 and known is not None:
            return _returning_member(group, request.member_id, known, records)
    if epoch == 0:
        return group.members.get(request.member_id) or StreamsMember(request.member_id)
    if instance_id is None:
        member = find_member(group, request.member_id)
    else:
        member = find_static_member(group, request.member_id, instance_id)
    if not member.is_placed:
        raise contradiction()
    if epoch == member.epoch:
        return member
    if member.epoch > epoch == member.previous_epoch and _is_part(request, member):
        return member  # the answer with the new epoch may have been lost
    raise fenced_epoch("streams", epoch, member.epoch)


def _returning_member(
    group: StreamsGroupModel, member_id: str, known: StreamsMember, records: list[LogRecord]
) -> StreamsMember:
    if not known.is_placed:
        raise contradiction()
    if known.epoch != LEFT_FOR_NOW:
        raise unreleased(member_id, known.instance_id, known)
    new = replace(known, member_id=member_id, epoch=0, previous_epoch=0)
    group_id = group.group_id
    records += member_tombstones(group_id, known.member_id)
    records.append(member_record(group_id, new))
    records.append(target_record(group_id, member_id, group.target(known.member_id)))
    records.append(owned_record(group_id, new))
    return new


def _is_part(request: StreamsGroupHeartbeatRequest, member: StreamsMember) -> bool:
    """Whether the member owns nothing but its tasks."""
    tasks = member.tasks
    return (
        _is_in(request.active_tasks, tasks.active)
        and _is_in(request.standby_tasks, tasks.standby)
        and _is_in(request.warmup_tasks, tasks.warmup)
    )


def _is_in(reported: Reported, tasks: Mapping[str, Iterable[int]]) -> bool:
    if reported is None:
        return False
    for part in reported:
        known = tasks.get(part.subtopology_id)
        if known is None or not all(partition in known for partition in part.partitions):
            return False
    return True


def updated_member(
    state: State, member: StreamsMember, request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsMember:
    """Update the member; fields that the request leaves out stay."""
    topology, endpoint, tags = request.topology, request.user_endpoint, request.client_tags
    client_id = client_id_of(context)
    if (
        topology is None
        and endpoint is None
        and tags is None
        and request.rack_id is None
        and request.process_id is None
        and request.rebalance_timeout_ms == NO_TIMEOUT
        and request.instance_id in (None, member.instance_id)
        and client_id == member.client_id
        and context.client_host == member.client_host
    ):
        return member
    client_tags = member.client_tags
    if tags is not None:
        by_key = HashMap.of((tag.key, tag.value) for tag in tags)
        if len(by_key) < len(tags):
            raise contradiction()
        client_tags = by_key.in_order()
    user_endpoint = None if endpoint is None else UserEndpoint(endpoint.host, endpoint.port)
    keeps_endpoint = request.member_epoch != 0 or not state.rules.streams_joins_end_endpoints
    if endpoint is None and keeps_endpoint:
        user_endpoint = member.endpoint
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        topology_epoch=member.topology_epoch if topology is None else topology.epoch,
        client_id=client_id,
        client_host=context.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        client_tags=client_tags,
        endpoint=user_endpoint,
    )


def rejoins_in_place(request: StreamsGroupHeartbeatRequest, old: StreamsMember, new: StreamsMember) -> bool:
    """Whether what changed of a static member is nothing that an assignment depends on."""
    return request.instance_id is not None and (
        old.topology_epoch, old.rack_id, old.client_tags, old.process_id
    ) == (new.topology_epoch, new.rack_id, new.client_tags, new.process_id)  # fmt: skip
