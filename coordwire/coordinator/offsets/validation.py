"""The validation of commits and fetches of offsets in a consumer group.

Members may commit and fetch in their epochs (KIP-848). A commit of an older epoch counts while the
member has owned the partition since that epoch or longer (KIP-1251). A member of the classic protocol gets
ILLEGAL_GENERATION where others get STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode

__all__ = ["validate_consumer_commit", "validate_consumer_fetch", "validate_older_epoch"]


_KNOWS_STALE_EPOCHS = 9
"""The first version of OffsetCommit that KIP-848's members may use."""


def _stale(member: ConsumerMember) -> OperationRefused:
    return OperationRefused(
        ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    )


def validate_consumer_commit(
    group: ConsumerGroupModel, member_id: str, epoch: int, version: int = _KNOWS_STALE_EPOCHS
) -> ConsumerMember | None:
    """Return a member in an older epoch, where `validate_older_epoch` decides for each partition.

    version: of OffsetCommit; TxnOffsetCommit needs none.
    """
    if epoch < 0 and group.is_empty:
        return None
    member = group.members.get(member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.classic is None and version < _KNOWS_STALE_EPOCHS:
        raise OperationRefused(ErrorCode.UNSUPPORTED_VERSION)
    if epoch > member.epoch:
        raise _stale(member)
    return None if epoch == member.epoch else member


def validate_older_epoch(member: ConsumerMember, topic_id: UUID, partition: int, epoch: int) -> None:
    unowned: Mapping[int, int] = {}
    since = member.owned.get(topic_id, unowned).get(partition)
    if since is None:
        since = member.revoking.get(topic_id, unowned).get(partition)
    if since is None or epoch < since:
        raise _stale(member)


def validate_consumer_fetch(
    group: ConsumerGroupModel, member_id: str | None, epoch: int, *, stable: bool
) -> None:
    """Refuse a fetch. stable: whether pending changes count. An operator fetches without a member id."""
    if member_id is None:
        if epoch < 0:
            return
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    members = group.members
    member = members.get(member_id) if stable else members.committed(member_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != epoch:
        raise _stale(member)
