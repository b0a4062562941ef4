"""ShareGroupHeartbeat (KIP-932): the one request by which members join, stay and leave.

Strategy: as with consumer groups, the request updates the member, which may raise the group's epoch; the
target is computed again if its epoch is smaller; the member takes its target as it is, since partitions are
shared. What the share coordinator has to initialize is entered with the same write, and asked for after it is
durable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

from coordwire.codec.declarations import positional
from coordwire.coordinator.assignors import GroupSpec, MemberSpec, computed_targets
from coordwire.coordinator.effects import RequestContext, client_id_of
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.assignment import NO_TARGET, Target, same_target
from coordwire.coordinator.model.members import fenced_epoch, find_member
from coordwire.coordinator.model.share_group import LEFT, ShareGroupModel, ShareMember, is_homogeneous
from coordwire.coordinator.refusal import VISIBLE, OperationRefused, is_blank
from coordwire.coordinator.share.partition_states import (
    add_initializing,
    has_unassigned,
    initialization,
    initialize_request,
    work_on_initialization,
)
from coordwire.coordinator.share.records import (
    assignment_epoch_record,
    assignment_record,
    epoch_record,
    member_record,
    member_tombstones,
    target_record,
)
from coordwire.coordinator.share.simple_assignor import SIMPLE, simple_assignor
from coordwire.coordinator.snapshots import Snapshots
from coordwire.coordinator.state import NOTHING, Outcome, Result, State
from coordwire.coordinator.topics import group_hash
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    InitializeShareGroupStateRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages.share_group_heartbeat import Assignment, TopicPartitions

_SESSION = "session-timeout"
_STABLE = 0


def validate_heartbeat(state: State, request: ShareGroupHeartbeatRequest, version: int) -> None:
    """Raise `OperationRefused` for a request that is invalid whatever the group is like."""
    for name, text in (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("RackId", request.rack_id),
    ):
        if text is not None and is_blank(text):
            raise OperationRefused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0:
        if not request.subscribed_topic_names:
            raise OperationRefused(
                ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request."
            )
    elif request.member_epoch < LEFT:
        raise OperationRefused(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def find_share_group(state: State, group_id: str) -> ShareGroupModel:
    """The group as it is now. Raises `OperationRefused`."""
    group = state.groups.get(group_id)
    if isinstance(group, ShareGroupModel):
        return group
    problem = "not found" if group is None else "is not a share group"
    raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")


def share_group_heartbeat(
    state: State, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> Outcome:
    group_id, epoch = request.group_id, request.member_epoch
    if epoch == LEFT:
        return _leave(state, find_share_group(state, group_id), request)
    group = _group(state, group_id, join=epoch == 0)
    old = _member(state, group, request)
    config = state.config.of_share_group(group_id)
    new = _updated(old, request, context)
    records: list[LogRecord] = []
    to_initialize = None
    if new is not old or not group.is_settled(old, state.topics, state.now):
        new, to_initialize = _advanced(state, group, old, new, records)
    keep_alive(state, group_id, new.member_id, config.session_timeout_ms)
    response = ShareGroupHeartbeatResponse(
        member_id=new.member_id, member_epoch=new.epoch, heartbeat_interval_ms=config.heartbeat_interval_ms
    )
    is_full = epoch == 0 or request.subscribed_topic_names is not None
    if is_full or (new is not old and not same_target(old.assigned, new.assigned)):
        response.assignment = _assignment(new.assigned)
    if not records:
        return response
    return Result(records, response, None if to_initialize is None else _after_append(state, to_initialize))


_steady_response = positional(
    ShareGroupHeartbeatResponse, "member_id", "member_epoch", "heartbeat_interval_ms"
)


def steady_heartbeat(
    state: State, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse | None:
    """Answer a settled member that reports nothing new; None for all others, of whom
    `share_group_heartbeat` decides.
    """
    group_id, member_id, epoch = request.group_id, request.member_id, request.member_epoch
    group = state.groups.get(group_id)
    if epoch <= 0 or type(group) is not ShareGroupModel:
        return None
    member = group.members.get(member_id)
    if (
        member is None
        or member.epoch != epoch
        or request.subscribed_topic_names is not None
        or request.rack_id is not None
        or context.client_id != member.client_id
        or context.client_host != member.client_host
        or member_id < VISIBLE
        or not group.is_settled(member, state.topics, state.now)
    ):
        return None
    configs = state.config
    config = configs.share_groups.get(group_id, configs.share)
    if not state.timers.renew((_SESSION, group_id, member_id), state.now + config.session_timeout_ms):
        return None
    return _steady_response(member_id, epoch, config.heartbeat_interval_ms)


def _group(state: State, group_id: str, *, join: bool) -> ShareGroupModel:
    group = state.groups.get(group_id)
    if group is None:
        if not join:
            raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
        return ShareGroupModel(group_id, Snapshots())
    return find_share_group(state, group_id)


def _member(state: State, group: ShareGroupModel, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member as it was before this heartbeat."""
    member_id, epoch = request.member_id, request.member_epoch
    member = group.members.get(member_id)
    limit = state.config.share_group_max_size
    if member is None and len(group.members) >= limit:
        raise OperationRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The share group has reached its maximum capacity of {limit} members.",
        )
    if member is None and not epoch:
        return ShareMember(member_id)
    member = find_member(group, member_id)
    if epoch and epoch > member.epoch:
        raise fenced_epoch("share", epoch, member.epoch)
    if epoch and epoch < member.epoch and epoch != member.previous_epoch:
        raise OperationRefused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}), and it does not match the previous member epoch "
            f"({member.previous_epoch}). The member must abandon all its partitions and rejoin.",
        )
    return member


def _updated(
    member: ShareMember, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareMember:
    """Update the member; fields that the request leaves out stay."""
    names, rack_id = request.subscribed_topic_names, request.rack_id
    client_id = client_id_of(context)
    if (
        (rack_id is None or rack_id == member.rack_id)
        and client_id == member.client_id
        and context.client_host == member.client_host
        and (names is None or tuple(sorted(set(names))) == member.topics)
    ):
        return member
    return replace(
        member,
        rack_id=member.rack_id if rack_id is None else rack_id,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        named=member.named if names is None else tuple(names),
        client_id=client_id,
        client_host=context.client_host,
    )


# --- the three steps ---


def _advanced(
    state: State,
    group: ShareGroupModel,
    old: ShareMember,
    new: ShareMember,
    records: list[LogRecord],
) -> tuple[ShareMember, InitializeShareGroupStateRequest | None]:
    """Take the three steps, and return the member after them, and what is to be initialized."""
    group_id = group.group_id
    joins = new.member_id not in group.members
    if new != old:
        records.append(member_record(group_id, new))
    bumps = new.topics != old.topics
    if not bumps and group.assignment_epoch >= group.epoch:
        bumps = has_unassigned(group, joins=joins)
    epoch, homogeneous = group.epoch, group.homogeneous
    names: Iterable[str] | None = None
    if bumps or group.refresh.is_due(state.now, group.epoch):
        names = subscribed_after(group, old, new)
        counts = group.counts_after(old, new)
        metadata_hash = group_hash(state.topics, counts)
        homogeneous = is_homogeneous(counts.values(), len(group.members) + joins)
        bumps = bumps or metadata_hash != group.metadata_hash
        if bumps:
            epoch += 1
            records.append(epoch_record(group_id, epoch, metadata_hash))
        group.refresh.complete(state.now, epoch)
    target_epoch, target = _updated_target(state, group, epoch, new, homogeneous, records)
    if bumps or not (new.state == _STABLE and new.epoch == target_epoch):
        new = _reconciled(state, new, target_epoch, target, records, group_id, changed=bumps)
    missing, due = initialization(state, group, group.topics if names is None else names)
    if not len(missing):
        if not records:
            group.settle(state.topics, due)
        return new, None
    add_initializing(state, group, missing, records)
    topics = (
        (topic_id, [(partition, _start_offset(state, group, topic_id)) for partition in topic.partitions])
        for topic_id, topic in missing.items()
    )
    return new, initialize_request(group_id, epoch, topics)


def _start_offset(state: State, group: ShareGroupModel, topic_id: UUID) -> int:
    """Where a new partition begins; -1 for what the group's settings say."""
    states = group.states
    if states is None or not state.rules.new_share_partitions_start_at_zero:
        return -1
    return 0 if topic_id in states.initialized or topic_id in states.initializing else -1


def subscribed_after(group: ShareGroupModel, old: ShareMember, new: ShareMember) -> HashMap[str, int]:
    """The subscribed topics after a change of a member, in the order of a copy of Apache Kafka's table."""
    table = HashMap.copy_of(group.topics)
    for member, by in ((old, -1), (new, 1)):
        for name in HashSet.copy_of(member.named or member.topics):
            table.compute(name, lambda count, by=by: max((count or 0) + by, 0) or None)  # type: ignore[misc]
    return table


def _updated_target(
    state: State,
    group: ShareGroupModel,
    epoch: int,
    new: ShareMember,
    homogeneous: bool,
    records: list[LogRecord],
) -> tuple[int, Target]:
    """The member's target with its epoch; computes a new one if the group's epoch has risen."""
    interval = state.config.of_share_group(group.group_id).assignment_interval_ms
    waits = group.assigned_at and interval and state.now < group.assigned_at + interval
    if group.assignment_epoch >= epoch or waits:
        return group.assignment_epoch, group.target(new.member_id)
    spec = _spec(state, group, new, homogeneous)
    assignor = state.assignors.get("share", {}).get(SIMPLE) or simple_assignor
    targets = computed_targets(group.group_id, epoch, SIMPLE, lambda: assignor(spec))
    for member_id in spec.members:
        target = targets.get(member_id, NO_TARGET)
        known = group.targets.get(member_id)
        if known is None or not same_target(known, target):
            records.append(target_record(group.group_id, member_id, target))
    records.append(assignment_epoch_record(group.group_id, epoch, state.now))
    return epoch, targets.get(new.member_id, NO_TARGET)


def _spec(state: State, group: ShareGroupModel, new: ShareMember, homogeneous: bool) -> GroupSpec:
    """The input of the assignor: the group with the new member."""
    image = state.topics
    specs: dict[str, MemberSpec] = {}
    counts: dict[UUID, int] = {}
    known: dict[tuple[str, ...], tuple[UUID, ...]] = {}
    for member_id in HashSet.of(group.members.keys_with(new.member_id)):
        member = new if member_id == new.member_id else group.members[member_id]
        subscription = member.named or member.topics
        topics = known.get(subscription)
        if topics is None:
            images = [
                topic for name in HashSet.copy_of(subscription) if (topic := image.find(name)) is not None
            ]
            topics = known[subscription] = tuple(topic.id for topic in images)
            counts.update((topic.id, topic.partitions) for topic in images)
        specs[member_id] = MemberSpec(None, topics, len(member.topics), group.target(member_id))
    initialized = () if group.states is None else group.states.initialized.items()
    assignable = {topic_id: topic.partitions for topic_id, topic in initialized}
    return GroupSpec(specs, homogeneous, counts, assignable=assignable)


def _reconciled(
    state: State,
    member: ShareMember,
    target_epoch: int,
    target: Target,
    records: list[LogRecord],
    group_id: str,
    *,
    changed: bool,
) -> ShareMember:
    """The member at its target, as far as it subscribes to the topics."""
    if member.epoch == target_epoch and not changed:
        return member
    assigned = _subscribed_part(state, member, target)
    if member.epoch != target_epoch:
        reconciled = replace(
            member, state=_STABLE, assigned=assigned, epoch=target_epoch, previous_epoch=member.epoch
        )
    else:
        reconciled = replace(member, assigned=assigned)
    if (
        reconciled.epoch != member.epoch
        or reconciled.state != member.state
        or not same_target(reconciled.assigned, member.assigned)
    ):
        records.append(assignment_record(group_id, reconciled))
    return reconciled  # which may have the same partitions in another order


def _subscribed_part(state: State, member: ShareMember, target: Target) -> Target:
    names = set(member.topics)
    image = state.topics

    def is_subscribed(topic_id: UUID) -> bool:
        topic = image.find_id(topic_id)
        return topic is not None and topic.name in names

    if all(map(is_subscribed, target)):
        return target
    copy = HashMap.copy_of(target)
    copy.retain(is_subscribed)
    return copy.in_order()


def _assignment(assigned: Target) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )


def _after_append(state: State, request: InitializeShareGroupStateRequest) -> Callable[[int], None]:
    """Ask the share coordinators once the records are durable, as soon as the time is looked at."""

    def appended(error: int) -> None:
        if not error:
            state.set_timer(state.persister.next_key(), 0, ask)

    def ask() -> Result:
        state.persister.call(request, work_on_initialization(state, request))
        return NOTHING

    return appended


# --- sessions ---


def keep_alive(state: State, group_id: str, member_id: str, timeout_ms: int) -> None:
    """Restart a member's session."""
    key = (_SESSION, group_id, member_id)
    if state.timers.renew(key, state.now + timeout_ms):
        return

    def end() -> Result:
        group = state.groups.get(group_id)
        if not isinstance(group, ShareGroupModel) or member_id not in group.members:
            return NOTHING
        return _removed(state, group, group.members[member_id], None, AppendCause(leaving="session_timeout"))

    state.set_timer_with_retry(key, timeout_ms, end)


def _leave(state: State, group: ShareGroupModel, request: ShareGroupHeartbeatRequest) -> Result:
    member = find_member(group, request.member_id)
    response = ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    return _removed(state, group, member, response, AppendCause())


def _removed(
    state: State,
    group: ShareGroupModel,
    member: ShareMember,
    response: ShareGroupHeartbeatResponse | None,
    cause: AppendCause,
) -> Result:
    group_id = group.group_id
    records = member_tombstones(group_id, member.member_id)
    metadata_hash = group_hash(state.topics, group.counts_after(member, None))
    records.append(epoch_record(group_id, group.epoch + 1, metadata_hash))
    if state.rules.emptied_groups_are_assigned and len(group.members) == 1:
        records.append(assignment_epoch_record(group_id, assigned_at=0, epoch=group.epoch + 1))
    state.timers.cancel((_SESSION, group_id, member.member_id))
    return Result(records, response, cause=cause)
