"""DescribeGroups: a classic group as of the last durable write."""

from __future__ import annotations

from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, GroupState
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember

__all__ = ["describe_group"]

_SAYS_NOT_FOUND = 6


def describe_group(state: State, group_id: str, version: int) -> DescribedGroup:
    group = state.groups.committed(group_id)
    if not isinstance(group, ClassicGroupModel):
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= _SAYS_NOT_FOUND:
            dead.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            problem = "not found" if group is None else "is not a classic group"
            dead.error_message = f"Group {group_id} {problem}."
        return dead
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_classic_member(member, group if stable else None) for member in group.members_in_order()],
    )


def _classic_member(member: ClassicMember, stable: ClassicGroupModel | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id, group_instance_id=member.instance_id, client_id=member.client_id,
        client_host=member.client_host, member_assignment=member.assignment,
        member_metadata=member.metadata(stable.protocol) if stable else b"",
    )  # fmt: skip
