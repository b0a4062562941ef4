"""ConsumerGroupHeartbeat (KIP-848): the one request by which members join, stay, change and leave.

Strategy: three steps, each of which adds records. The request updates the member, which may raise the group's
epoch; the target is computed again if its epoch is smaller; the member is reconciled with the target.
"""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from coordwire.codec.declarations import positional
from coordwire.codec.primitives import uuid_text
from coordwire.coordinator.consumer import sessions
from coordwire.coordinator.consumer.members import (
    joining_static_member,
    record_member,
    refuse_if_full,
    validate_epoch,
)
from coordwire.coordinator.consumer.patterns import PatternChange, resolution_is_due, update_pattern
from coordwire.coordinator.consumer.reconciliation import reconcile
from coordwire.coordinator.consumer.sessions import leave_consumer_group
from coordwire.coordinator.consumer.target import refresh_epoch, update_target
from coordwire.coordinator.consumer.upgrade import find_or_make_consumer_group
from coordwire.coordinator.effects import RequestContext, client_id_of, new_id
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.consumer_group import LEFT, LEFT_FOR_NOW, ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.members import find_member, find_static_member
from coordwire.coordinator.refusal import VISIBLE, OperationRefused, is_blank
from coordwire.coordinator.releases import ReleaseRules
from coordwire.coordinator.state import Outcome, Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from coordwire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)

_NO_TIMEOUT = -1
_ID_FROM_CLIENT = 1
"""The first version in which the client chooses the member id."""

_TRIES = 32


def validate_heartbeat(state: State, request: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Raise `OperationRefused` for a request that is invalid whatever the group is like."""
    epoch = request.member_epoch
    has_own_id = version >= _ID_FROM_CLIENT or epoch > 0 or epoch == LEFT
    if has_own_id and request.member_id < VISIBLE and is_blank(request.member_id):
        raise _invalid("MemberId can't be empty.")
    if request.group_id < VISIBLE and is_blank(request.group_id):
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and is_blank(request.instance_id):
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and is_blank(request.rack_id):
        raise _invalid("RackId can't be empty.")
    if epoch == 0:
        if request.rebalance_timeout_ms == _NO_TIMEOUT:
            raise _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            raise _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            raise _invalid(
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
            )
    elif epoch == LEFT_FOR_NOW:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif epoch < LEFT_FOR_NOW:
        raise _invalid("MemberEpoch is invalid.")
    assignor = request.server_assignor
    if assignor is not None and assignor not in state.config.consumer_assignors:
        known = HashSet.of(state.config.consumer_assignors)
        raise OperationRefused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {assignor} is not supported. Supported assignors: {', '.join(known)}.",
        )


def _invalid(message: str) -> OperationRefused:
    return OperationRefused(ErrorCode.INVALID_REQUEST, message)


def new_member_id(rules: ReleaseRules, context: RequestContext) -> str:
    """Make a member id as Apache Kafka does: a UUID in base64 without a hyphen, or a first one."""
    for _ in range(_TRIES):
        member_id = uuid_text(UUID(new_id(context)))
        if "-" not in (member_id if rules.member_ids_have_no_hyphens else member_id[0]):
            break
    return member_id


def consumer_group_heartbeat(
    state: State, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> Outcome:
    group_id, member_id, epoch = request.group_id, request.member_id, request.member_epoch
    if epoch < 0:
        return leave_consumer_group(_existing(state, group_id), request, state)
    records: list[LogRecord] = []
    known = state.groups.get(group_id)
    if isinstance(known, ConsumerGroupModel):
        group = known
    else:
        group = find_or_make_consumer_group(state, group_id, records, join=epoch == 0)
    old = group.members.get(member_id)
    if old is None or old.epoch != epoch or request.instance_id is not None:
        refuse_if_full(state, group, member_id, request.instance_id)
        member_id = member_id or new_member_id(state.rules, context)
        old = _member(group, member_id, request, records)
    new = _updated(old, request, context)
    if (
        new is not old
        or not group.is_settled(old, state.now)
        or (group.patterns.peak and resolution_is_due(state, group, len(group.patterns), is_new=False))
        or (group.assignors.peak > 1 and _changes_vote(state, group, old, new))
    ):
        new = _advanced(state, group, old, new, request, records)
    config = state.config.of_consumer_group(group_id)
    keep_alive = sessions.begin_session if epoch == 0 else sessions.keep_alive
    keep_alive(state, group_id, member_id, config.session_timeout_ms)
    response = ConsumerGroupHeartbeatResponse(
        member_id=new.member_id, member_epoch=new.epoch, heartbeat_interval_ms=config.heartbeat_interval_ms
    )
    has_all_fields = (  # as after an error
        request.rebalance_timeout_ms != _NO_TIMEOUT
        and request.topic_partitions is not None
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
    )
    if epoch == 0 or has_all_fields or (new.owned is not old.owned and new.owned != old.owned):
        response.assignment = Assignment(
            topic_partitions=[
                ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic, partitions=list(partitions))
                for topic, partitions in new.owned.items()
            ]
        )
    return Result(records, response) if records else response


_steady_response = positional(
    ConsumerGroupHeartbeatResponse, "member_id", "member_epoch", "heartbeat_interval_ms"
)


def steady_heartbeat(
    state: State, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | None:
    """Answer a settled dynamic member that reports nothing new; None for all others, of whom
    `consumer_group_heartbeat` decides.
    """
    group_id, member_id, epoch = request.group_id, request.member_id, request.member_epoch
    group = state.groups.get(group_id)
    if epoch <= 0 or type(group) is not ConsumerGroupModel or group.patterns.peak or group.assignors.peak > 1:
        return None
    member = group.members.get(member_id)
    if (
        member is None
        or member.epoch != epoch
        or request.rebalance_timeout_ms != _NO_TIMEOUT
        or request.subscribed_topic_names is not None
        or request.subscribed_topic_regex is not None
        or request.instance_id is not None
        or request.rack_id is not None
        or request.server_assignor is not None
        or member.classic is not None
        or context.client_id != member.client_id
        or context.client_host != member.client_host
        or group_id < VISIBLE
        or member_id < VISIBLE
        or not group.is_settled(member, state.now)
    ):
        return None
    configs = state.config
    config = configs.consumer_groups.get(group_id, configs.consumer)
    if not state.timers.renew(
        (sessions.SESSION_TIMER, group_id, member_id), state.now + config.session_timeout_ms
    ):
        return None
    return _steady_response(member_id, epoch, config.heartbeat_interval_ms)


def _advanced(
    state: State,
    group: ConsumerGroupModel,
    old: ConsumerMember,
    new: ConsumerMember,
    request: ConsumerGroupHeartbeatRequest,
    records: list[LogRecord],
) -> ConsumerMember:
    """Take the three steps, and return the member after them."""
    renamed = record_member(group, old, new, records)
    pattern = update_pattern(state, group, old, new, records)
    changed = renamed or pattern is not PatternChange.NONE
    # A new pattern raises the epoch when it is resolved.
    raises = renamed or pattern is PatternChange.RESOLVED or _changes_vote(state, group, old, new)
    epoch, homogeneous = refresh_epoch(state, group, old, new, records, changed=raises)
    target = update_target(state, group, epoch, old, new, homogeneous, records)
    reported = request.topic_partitions
    return reconcile(state, group, new, target, reported, records, subscription_changed=changed)


def _changes_vote(state: State, group: ConsumerGroupModel, old: ConsumerMember, new: ConsumerMember) -> bool:
    """Whether a member's preference gives the group another assignor, which raises the epoch.

    Apache Kafka asks two tables, whose orders may differ: while votes tie, each heartbeat may raise it.
    """
    if not state.rules.votes_for_assignors_raise_epochs:
        return False
    default = state.config.consumer_assignors[0]
    return (group.most_preferred or default) != (group.preferred_assignor(old, new) or default)


def _existing(state: State, group_id: str) -> ConsumerGroupModel:
    group = state.groups.get(group_id)
    if group is None:
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroupModel):
        raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group


def _member(
    group: ConsumerGroupModel,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
    records: list[LogRecord],
) -> ConsumerMember:
    """The member as it was before this heartbeat."""
    joins = request.member_epoch == 0
    if request.instance_id is not None and joins:
        return joining_static_member(group, member_id, request.instance_id, records, classic=False)
    if request.instance_id is not None:
        member = find_static_member(group, member_id, request.instance_id)
    elif joins:
        return group.members.get(member_id) or ConsumerMember(member_id)
    else:
        member = find_member(group, member_id)
    validate_epoch(member, request.member_epoch, request.topic_partitions)
    return member


def _updated(
    member: ConsumerMember, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerMember:
    """Update the member; fields that the request leaves out stay."""
    names, regex = request.subscribed_topic_names, request.subscribed_topic_regex
    if (
        names is None
        and regex is None
        and request.rack_id is None
        and request.server_assignor is None
        and request.rebalance_timeout_ms == _NO_TIMEOUT
        and request.instance_id == member.instance_id
        and client_id_of(context) == member.client_id
        and context.client_host == member.client_host
        and member.classic is None
    ):
        return member
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=member.instance_id if request.instance_id is None else request.instance_id,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == _NO_TIMEOUT else timeout_ms,
        assignor=member.assignor if request.server_assignor is None else request.server_assignor,
        topics=member.topics if names is None else tuple(sorted(set(names))),
        named=member.named if names is None else tuple(names),
        regex=member.regex if regex is None else regex,
        client_id=client_id_of(context),
        client_host=context.client_host,
        classic=None,
    )
