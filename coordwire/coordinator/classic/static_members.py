"""A static member comes back without its id: the new id takes the old one's place (KIP-345, KIP-814).

In a stable group whose protocol stays the same no other member notices: the answer has the current
generation, as soon as the new id is durable. A leader older than version 9 would compute an assignment, so it
is given the id of its predecessor as the leader's; from version 9 the answer says to skip that.
"""

from __future__ import annotations

from coordwire.coordinator.classic.rebalancing import (
    complete_if_all_joined,
    keep_alive,
    prepare_rebalance,
    rebalance_or_complete,
)
from coordwire.coordinator.classic.records import group_metadata
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_member import Protocols
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.reply import Reply
from coordwire.coordinator.state import Result, State
from coordwire.enums import ErrorCode
from coordwire.messages import JoinGroupRequest, JoinGroupResponse

__all__ = ["replace_static_member"]

_SKIPS_ASSIGNMENT = 9


def replace_static_member(
    state: State,
    group: ClassicGroupModel,
    request: JoinGroupRequest,
    version: int,
    old_id: str,
    new_id: str,
    protocols: Protocols,
    reply: Reply,
) -> Result:
    instance_id = request.group_instance_id
    assert instance_id is not None
    leader = group.leader
    member = group.replace_static(instance_id, old_id, new_id)
    keep_alive(state, group, member)
    before = member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    group.update(member, protocols, request.rebalance_timeout_ms, request.session_timeout_ms, reply)

    def tell() -> None:
        state.listener.member_joined(state.now, group, member, old_id)

    if group.state in (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE):
        tell()
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The leader may have been given the old id to assign to.
        return prepare_rebalance(state, group)
    if group.state in (GroupState.EMPTY, GroupState.DEAD):
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    if group.state is GroupState.PREPARING_REBALANCE:
        return complete_if_all_joined(state, group)
    if (group.protocol or "") != group.selected_protocol():
        tell()
        return rebalance_or_complete(state, group)

    def appended(error: int) -> None:
        if error:
            group.update(member, *before, None)
            if new_id not in group.members:
                return  # it left meanwhile; the request is answered with the error alone
            old = group.replace_static(instance_id, new_id, old_id)
            keep_alive(state, group, old)
            reply.send(
                JoinGroupResponse(
                    generation_id=group.generation, protocol_name=group.protocol,
                    protocol_type=group.protocol_type, leader=leader or "", error_code=translated(error),
                )
            )  # fmt: skip
            return
        tell()
        leads = version >= _SKIPS_ASSIGNMENT and group.is_leader(new_id)
        if leads and group.state in (GroupState.PREPARING_REBALANCE, GroupState.DEAD):
            return  # another generation is on its way, in which it will be
        group.answer_join(
            member,
            JoinGroupResponse(
                members=group.joined_members() if leads else [], member_id=new_id,
                generation_id=group.generation, protocol_name=group.protocol,
                protocol_type=group.protocol_type, skip_assignment=leads,
                leader=(group.leader if version >= _SKIPS_ASSIGNMENT else leader) or "",
            ),
        )  # fmt: skip

    assignments = {other.member_id: other.assignment for other in group.members.values()}
    return Result([group_metadata(group, assignments)], on_append=appended, replay=False)
