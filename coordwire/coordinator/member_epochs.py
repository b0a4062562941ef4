"""Who commits and fetches the offsets of a group whose members have epochs: consumer and streams groups.

Rules: an operator names no member and a negative epoch, and may commit while the group is empty. Members need
a version of OffsetCommit that knows STALE_MEMBER_EPOCH.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.snapshots import TimelineHashMap
from coordwire.coordinator.state import GroupCommit
from coordwire.enums import ErrorCode

__all__ = ["check_version", "committing_member", "fetching_member"]

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
