"""Members of a group with epochs, of whatever kind: who has an id or an instance id, and what is refused."""

from __future__ import annotations

from typing import Protocol, TypeVar

from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode


class _Member(Protocol):
    @property
    def member_id(self) -> str: ...


M_co = TypeVar("M_co", covariant=True)
M = TypeVar("M", bound=_Member)


class _Table(Protocol[M_co]):
    def get(self, key: str, /) -> M_co | None: ...


class _Group(Protocol[M_co]):
    @property
    def group_id(self) -> str: ...

    @property
    def members(self) -> _Table[M_co]: ...


class _GroupWithInstances(_Group[M_co], Protocol[M_co]):
    @property
    def static_members(self) -> _Table[str]: ...


def find_member(group: _Group[M], member_id: str) -> M:
    """The member with this id. Raises `OperationRefused`."""
    member = group.members.get(member_id)
    if member is None:
        raise OperationRefused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}."
        )
    return member


def static_member(group: _GroupWithInstances[M], instance_id: str | None) -> M | None:
    """The member with an instance id, None if there is none.

    Raises `OperationRefused` where the group has the instance id without its member: a log may lack that;
    and Kafka 4.3 keeps one that a member had before it took another, for as long as the group lives.
    """
    member_id = None if instance_id is None else group.static_members.get(instance_id)
    return None if member_id is None else find_member(group, member_id)


def find_static_member(group: _GroupWithInstances[M], member_id: str, instance_id: str) -> M:
    """The member with this instance id. Raises `OperationRefused`, for another member id too."""
    member = static_member(group, instance_id)
    if member is None:
        raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise OperationRefused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def unreleased(member_id: str, instance_id: str | None, owner: _Member) -> OperationRefused:
    """The refusal of a static member whose predecessor has not left."""
    return OperationRefused(
        ErrorCode.UNRELEASED_INSTANCE_ID,
        f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
        f"instance id is owned by {owner.member_id} member.",
    )


def fenced_epoch(kind: str, epoch: int, known: int) -> OperationRefused:
    """The refusal of a member in another epoch than the known one. kind: of its group."""
    return OperationRefused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The {kind} group member has a {'greater' if epoch > known else 'smaller'} member epoch ({epoch}) "
        f"than the one known by the group coordinator ({known}). The member must abandon all its partitions "
        "and rejoin.",
    )
