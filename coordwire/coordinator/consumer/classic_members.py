"""Members that use the classic protocol in a consumer group, while its clients are upgraded one by one.

JoinGroup takes the member a step towards its target; its epoch is the generation. SyncGroup fetches its
assignment from the coordinator. Heartbeat asks it to join again when the next step is due, for which it has
its rebalance time-out. The coordinator assigns: there is no leader.
"""

from __future__ import annotations

from dataclasses import replace

from coordwire.coordinator.classic.requests import leaving_members
from coordwire.coordinator.config import MigrationPolicy
from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.consumer.downgrade import downgrade, downgrades_when_replaced
from coordwire.coordinator.consumer.heartbeat import new_member_id
from coordwire.coordinator.consumer.members import (
    joining_static_member,
    record_member,
    refuse_if_full,
)
from coordwire.coordinator.consumer.patterns import PatternChange, update_pattern
from coordwire.coordinator.consumer.reconciliation import reconcile
from coordwire.coordinator.consumer.sessions import remove_members
from coordwire.coordinator.consumer.target import current_target, refresh_epoch, update_target
from coordwire.coordinator.effects import Reply, RequestContext, client_id_of
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.listener import AppendCause
from coordwire.coordinator.model.classic_group import CONSUMER_PROTOCOL_TYPE
from coordwire.coordinator.model.consumer_group import (
    ClassicSide,
    ConsumerGroupModel,
    ConsumerMember,
    MemberState,
)
from coordwire.coordinator.model.embedded_protocol import (
    ImpossibleLength,
    MalformedProtocol,
    Subscription,
    read_subscription,
    written_assignment,
)
from coordwire.coordinator.model.members import find_member, find_static_member, static_member
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Outcome, Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.leave_group import MemberIdentity, MemberResponse

_KNOWN_ID_REQUIRED = 4


def join_classic(
    state: State,
    group: ConsumerGroupModel,
    request: JoinGroupRequest,
    version: int,
    context: RequestContext,
    reply: Reply,
) -> Result:
    if (
        state.rules.migration_policy_binds_classic_members
        and state.config.migration_policy is MigrationPolicy.DISABLED
    ):
        raise OperationRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    unknown = not request.member_id
    member_id = request.member_id or new_member_id(state.rules, context)
    instance_id = request.group_instance_id
    refuse_if_full(state, group, member_id, instance_id)
    if not group.supports(request.protocol_type, [protocol.name for protocol in request.protocols]):
        raise OperationRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if unknown and instance_id is None and version >= _KNOWN_ID_REQUIRED:
        error = int(ErrorCode.MEMBER_ID_REQUIRED)
        reply.send(JoinGroupResponse(member_id=member_id, error_code=error))
        return NOTHING
    records: list[LogRecord] = []
    if instance_id is None:
        old = group.members.get(member_id) or ConsumerMember(member_id)
    elif unknown:
        old = joining_static_member(group, member_id, instance_id, records, classic=True)
    else:
        old = find_static_member(group, member_id, instance_id)
    replaced = static_member(group, instance_id)
    downgrades = replaced is not None and downgrades_when_replaced(state, group, replaced)
    subscription = _subscription(state, request)
    new = _updated(old, request, context, subscription)
    renamed = record_member(group, old, new, records)
    pattern = update_pattern(state, group, old, new, records)
    changed = renamed or pattern is not PatternChange.NONE
    epoch, homogeneous = refresh_epoch(state, group, old, new, records, changed=changed)
    reported = subscription.reported(state.topics)
    if downgrades:
        stale = group.assignment_epoch < epoch
        if not stale:
            target = current_target(group, new)
            new = reconcile(state, group, new, target, reported, records, subscription_changed=changed)
        downgrade(state, group, records, joining=new, rebalance=stale)
    else:
        target = update_target(state, group, epoch, old, new, homogeneous, records)
        new = reconcile(state, group, new, target, reported, records, subscription_changed=changed)
    assert new.classic is not None
    response = JoinGroupResponse(
        member_id=new.member_id, generation_id=new.epoch, protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=new.classic.protocols[0][0],
    )  # fmt: skip

    def appended(error: int) -> None:
        if error:
            return
        sessions.unlimit_join(state, group.group_id, response.member_id)
        if not downgrades:
            # The member has its rebalance time-out to fetch its assignment.
            sessions.keep_alive(state, group.group_id, response.member_id, request.session_timeout_ms)
            sessions.limit_sync(state, group.group_id, response.member_id, request.rebalance_timeout_ms)
        reply.send(response)

    return Result(records, on_append=appended, replay=not downgrades)


def _subscription(state: State, request: JoinGroupRequest) -> Subscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except (MalformedProtocol, ImpossibleLength):
        is_inconsistent = state.rules.malformed_subscriptions_are_inconsistent
        error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if is_inconsistent else ErrorCode.UNKNOWN_SERVER_ERROR
        raise OperationRefused(error) from None


def _updated(
    member: ConsumerMember, request: JoinGroupRequest, context: RequestContext, subscription: Subscription
) -> ConsumerMember:
    timeout_ms = request.rebalance_timeout_ms
    instance_id = request.group_instance_id
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topics=tuple(sorted(set(subscription.topics))),
        named=tuple(subscription.topics),
        regex="",
        client_id=client_id_of(context),
        client_host=context.client_host,
        classic=ClassicSide(
            request.session_timeout_ms,
            tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        ),
    )


def _validated(
    group: ConsumerGroupModel, member_id: str, instance_id: str | None, epoch: int
) -> ConsumerMember:
    if instance_id is None:
        member = find_member(group, member_id)
    else:
        member = find_static_member(group, member_id, instance_id)
    if member.classic is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != epoch:
        raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
    return member


def sync_classic(state: State, group: ConsumerGroupModel, request: SyncGroupRequest, reply: Reply) -> Result:
    member = _validated(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    name, metadata = member.classic.protocols[0]
    expected = ((request.protocol_type, CONSUMER_PROTOCOL_TYPE), (request.protocol_name, name))
    if any(requested is not None and requested != known for requested, known in expected):
        raise OperationRefused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        # There is a new target. A member that gives up partitions joined for it already.
        sessions.limit_join(state, group.group_id, member)
        raise OperationRefused(ErrorCode.REBALANCE_IN_PROGRESS)
    session_timeout_ms = member.classic.session_timeout_ms

    def appended(error: int) -> None:
        if error:
            return
        sessions.unlimit_sync(state, group.group_id, member.member_id)
        sessions.keep_alive(state, group.group_id, member.member_id, session_timeout_ms)
        owned = HashMap.of(
            (topic, list(HashSet.of(partitions))) for topic, partitions in member.owned.items()
        )
        try:
            assignment = written_assignment(owned.in_order(), state.topics, metadata)
        except MalformedProtocol:
            # Apache Kafka fails here too, and never answers: the member joins again after its time-out.
            return
        reply.send(
            SyncGroupResponse(
                protocol_type=request.protocol_type, protocol_name=request.protocol_name,
                assignment=assignment,
            )
        )  # fmt: skip

    return Result(on_append=appended, replay=False)


def heartbeat_classic(state: State, group: ConsumerGroupModel, request: HeartbeatRequest) -> Outcome:
    member = _validated(group, request.member_id, request.group_instance_id, request.generation_id)
    assert member.classic is not None
    sessions.keep_alive(state, group.group_id, member.member_id, member.classic.session_timeout_ms)
    rejoins = (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_partitions(member))
    )
    if rejoins:
        sessions.limit_join(state, group.group_id, member)
    error = int(ErrorCode.REBALANCE_IN_PROGRESS) if rejoins else 0
    return HeartbeatResponse(error_code=error)


def leave_classic(
    state: State, group: ConsumerGroupModel, request: LeaveGroupRequest, version: int
) -> Result:
    leaving: dict[str, ConsumerMember] = {}
    response = LeaveGroupResponse()
    for identity in leaving_members(request, version):
        error = 0
        try:
            member = _leaving(group, identity)
            leaving[member.member_id] = member
        except OperationRefused as refusal:
            error = refusal.code
        response.members.append(
            MemberResponse(
                member_id=identity.member_id, group_instance_id=identity.group_instance_id,
                error_code=int(error),
            )
        )  # fmt: skip
    reason = next((member.reason for member in request.members if member.reason is not None), None)
    return remove_members(state, group, list(leaving.values()), response, AppendCause(reason=reason))


def _leaving(group: ConsumerGroupModel, identity: MemberIdentity) -> ConsumerMember:
    """Find the member, which an operator may name by its instance id alone."""
    if identity.group_instance_id is None:
        return find_member(group, identity.member_id)
    if not identity.member_id:
        member = static_member(group, identity.group_instance_id)
        if member is None:
            raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        return member
    return find_static_member(group, identity.member_id, identity.group_instance_id)
