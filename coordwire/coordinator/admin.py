"""DescribeGroups, ListGroups and DeleteGroups (KIP-1043 says which error where)."""

from __future__ import annotations

from coordwire.coordinator.either_group import is_dead, is_empty, tombstones
from coordwire.coordinator.model.classic_group import CONSUMER_PROTOCOL_TYPE, ClassicGroupModel
from coordwire.coordinator.model.classic_member import ClassicMember
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.model.committed_offsets import offset_tombstone
from coordwire.coordinator.state import Result, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import DeleteGroupsResponse, ListGroupsRequest, ListGroupsResponse
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.list_groups import ListedGroup

__all__ = ["delete_groups", "describe_group", "list_groups"]

_SAYS_NOT_FOUND = 6
_CLASSIC, _CONSUMER = "classic", "consumer"


def describe_group(state: State, group_id: str, version: int) -> DescribedGroup:
    group = state.groups.committed(group_id)
    if not isinstance(group, ClassicGroupModel):
        dead = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
        if version >= _SAYS_NOT_FOUND:
            dead.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            what = "not found" if group is None else "is not a classic group"
            dead.error_message = f"Group {group_id} {what}."
        return dead
    stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[_member(member, group if stable else None) for member in group.members_in_order()],
    )


def _member(member: ClassicMember, stable: ClassicGroupModel | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id, group_instance_id=member.instance_id, client_id=member.client_id,
        client_host=member.client_host, member_assignment=member.assignment,
        member_metadata=member.metadata(stable.protocol) if stable else b"",
    )  # fmt: skip


def list_groups(state: State, request: ListGroupsRequest) -> ListGroupsResponse:
    """Groups in one of the states and of one of the types, both in any case; all where none is given."""
    states = {wanted.lower().strip() for wanted in request.states_filter}
    types = {wanted.lower() for wanted in request.types_filter}
    response = ListGroupsResponse()
    for group_id, group in state.groups.committed_items():
        kind, status, protocol_type = _CONSUMER, "", CONSUMER_PROTOCOL_TYPE
        if isinstance(group, ClassicGroupModel):
            kind, status, protocol_type = _CLASSIC, group.state.value, group.protocol_type or ""
        else:
            status = group.committed_facts()[0].value
        if (states and status.lower() not in states) or (types and kind not in types):
            continue
        response.groups.append(
            ListedGroup(group_id=group_id, protocol_type=protocol_type, group_state=status, group_type=kind)
        )
    return response


def delete_groups(state: State, group_ids: list[str]) -> Result:
    """Delete groups that are empty, with their offsets."""
    response = DeleteGroupsResponse()
    records: list[LogRecord] = []
    for group_id in dict.fromkeys(group_ids):
        group = state.groups.get(group_id)
        error = 0
        if group is None or is_dead(group):
            error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        elif not is_empty(group):
            error = int(ErrorCode.NON_EMPTY_GROUP)
        else:
            offsets = state.offsets.groups.get(group_id)
            keys = [*([] if offsets is None else offsets), *state.pending_offsets.of_group(group_id)]
            keys = list(dict.fromkeys(keys))
            records += [offset_tombstone(group_id, topic, partition) for topic, partition in keys]
            records += tombstones(group)
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return Result(records, response)
