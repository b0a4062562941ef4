"""What groups whose members have epochs have in common: who commits and fetches the offsets of consumer and
streams groups; the replay of groups, of members that leave, and of the target's epoch; descriptions.

Rules: an operator names no member and a negative epoch, and may commit while the group is empty. Members need
a version of OffsetCommit that knows STALE_MEMBER_EPOCH. The group of a record may replace a classic group
that only has offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from coordwire.codec import Message
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import LEFT, ConsumerGroupModel
from coordwire.coordinator.model.share_group import ShareGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.refusal import OperationRefused, contradiction, fits, writable_refusal
from coordwire.coordinator.snapshots import TimelineHashMap
from coordwire.coordinator.state import GroupCommit, State
from coordwire.coordinator.writes import IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupTargetAssignmentMetadataValue,
    ShareGroupTargetAssignmentMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)

M = TypeVar("M")

_KNOWS_STALE_EPOCHS = 9
"""The first version of OffsetCommit that such members may use."""


class _Group(Protocol[M]):
    members: TimelineHashMap[str, M]

    @property
    def is_empty(self) -> bool: ...


def committing_member(group: _Group[M], commit: GroupCommit) -> M | None:
    """The member that commits; None for an operator, and for a producer that names no member.

    Raises `OperationRefused` for an unknown member.
    """
    epoch = commit.generation
    if epoch < 0 and group.is_empty:
        return None
    anonymous = not commit.member_id and commit.instance_id is None
    if commit.transactional and epoch == -1 and anonymous:
        return None
    member = group.members.get(commit.member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


def check_version(commit: GroupCommit) -> None:
    """Refuse a member's commit in a version that has no answer for an old epoch."""
    if not commit.transactional and commit.version < _KNOWS_STALE_EPOCHS:
        raise OperationRefused(ErrorCode.UNSUPPORTED_VERSION)


def fetching_member(group: _Group[M], member_id: str | None, epoch: int, *, stable: bool) -> M | None:
    """The member that fetches; None for an operator. stable: whether changes count that are not durable yet.

    Raises `OperationRefused` for an unknown member, and for an epoch without a member.
    """
    if member_id is None:
        if epoch < 0:
            return None
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    members = group.members
    member = members.get(member_id) if stable else members.committed(member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    return member


# --- replay ---


G = TypeVar("G", ConsumerGroupModel, StreamsGroupModel)


def find_or_make(state: State, group_id: str, model: type[G]) -> G:
    """The group of a record with a value. Raises `OperationRefused` for a group of another kind."""
    group = state.groups.get(group_id)
    if isinstance(group, model):
        return group
    if group is not None and not (isinstance(group, ClassicGroupModel) and group.is_simple):
        raise contradiction()
    group = model(group_id, state.snapshots)
    state.groups[group_id] = group
    return group


def find_recorded(state: State, key: object, value: object, model: type[G]) -> G | None:
    """The group of a record; None for a tombstone in a group that there is not.

    Raises `OperationRefused` for a group of another kind.
    """
    group_id: str = getattr(key, "group_id", "")
    return None if value is None and group_id not in state.groups else find_or_make(state, group_id, model)


def replay_assignment_epoch(
    group: ConsumerGroupModel | ShareGroupModel | StreamsGroupModel,
    value: ConsumerGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | None,
) -> None:
    """Replay the epoch of a group's target, which ends after the members' targets."""
    if value is not None:
        group.set_assignment(value.assignment_epoch, value.assignment_timestamp)
    elif group.targets:
        raise contradiction()
    else:
        group.clear_assignment()


def replay_leaving(group: ConsumerGroupModel | ShareGroupModel | StreamsGroupModel, member_id: str) -> None:
    """Replay the tombstone of a member, which ends after its partitions and its target."""
    member = group.members.get(member_id)
    if member is None:
        return
    if member.epoch != LEFT or member_id in group.targets:
        raise contradiction()
    group.remove_member(member_id)


# --- descriptions ---


D = TypeVar("D", ConsumerGroupModel, ShareGroupModel, StreamsGroupModel)


def described_groups(
    call: IncomingRequest,
    model: type[D],
    form: Callable[..., Any],
    describe: Callable[[State, D], Any],
    refusal: str | None = None,
) -> list[Any]:
    """The groups that a request names, as of the last durable write; those without a name come first.

    form: of one group in the response; describe: gives that of a group of this model, or raises
    `OperationRefused`, so that all are refused; refusal: the text where the shard has no service.
    """

    def described(group_id: str) -> Any:
        group = call.state.groups.committed(group_id)
        if isinstance(group, model):
            return describe(call.state, group)
        problem = "not found" if group is None else f"is not a {model.kind} group"
        return refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")

    def refused(group_id: str, error: int, message: str | None = None) -> Any:
        return form(group_id=group_id, error_code=int(error), error_message=message)

    group_ids = call.request.group_ids
    unnamed = [refused("", ErrorCode.INVALID_GROUP_ID) for group_id in group_ids if not group_id]
    names = [group_id for group_id in group_ids if group_id]
    if call.error:
        groups = [refused(group_id, call.error, refusal) for group_id in names]
    else:
        try:
            groups = [described(group_id) for group_id in names]
        except OperationRefused as error:
            groups = [refused(group_id, error.code) for group_id in names]
    if not all(fits(group.error_message) for group in groups):
        return [refused(group_id, ErrorCode.UNKNOWN_SERVER_ERROR) for group_id in group_ids]
    return unnamed + groups


def refused_heartbeat(response: Callable[..., Message], error: int, message: str | None) -> Message:
    """The response to a refused heartbeat."""
    error, message = writable_refusal(error, message)
    return response(error_code=error, error_message=message)
