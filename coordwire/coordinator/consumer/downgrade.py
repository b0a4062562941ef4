"""A consumer group becomes a classic one, online: its last member that uses KIP-848 is gone.

Members keep their ids, sessions, and what their target says as their assignment; the group's epoch becomes
its generation. They are asked to join again where the assignment is not for the members that remain.
"""

from __future__ import annotations

from collections.abc import Collection

from coordwire.coordinator.classic.rebalance import keep_alive, prepare_rebalance
from coordwire.coordinator.listener import Leaving
from coordwire.coordinator.model.classic_group import (
    CONSUMER_PROTOCOL_TYPE,
    ClassicGroupModel,
    ClassicMember,
    GroupState,
)
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.model.embedded_protocol import MalformedProtocol, written_assignment
from coordwire.coordinator.records import classic_group_record, consumer_tombstones
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord

__all__ = ["downgrade", "downgrades_when_replaced", "downgrades_without"]


def downgrades_without(state: State, group: ConsumerGroupModel, gone: Collection[ConsumerMember]) -> bool:
    """Whether the group becomes classic when these members are gone."""
    left = len(group.members) - len(gone)
    classic_left = group.classic_members - sum(member.classic is not None for member in gone)
    return classic_left == left and left > 0 and _allowed(state, left)


def downgrades_when_replaced(state: State, group: ConsumerGroupModel, replaced: ConsumerMember) -> bool:
    """Whether the group becomes classic when a classic member takes this one's place."""
    size = len(group.members)
    return group.classic_members == size - 1 and replaced.classic is None and _allowed(state, size)


def _allowed(state: State, size: int) -> bool:
    return state.config.migration_policy.downgrades and size <= state.config.group_max_size


def downgrade(
    state: State,
    group: ConsumerGroupModel,
    records: list[LogRecord],
    *,
    gone: Collection[str] = (),
    leaving: Leaving = "left",
    joining: ConsumerMember | None = None,
    rebalance: bool,
) -> None:
    """Put a classic group in the place of a consumer group, and make the records for that.

    gone: who is no longer in it, and how they went. joining: a static member that replaces one, in records
    that were made before.
    """
    replaced = None
    renamed: dict[str, str] = {}
    if joining is not None:
        replaced = group.static_member(joining.instance_id)
        assert replaced is not None
        renamed = {replaced.member_id: joining.member_id}
    records += consumer_tombstones(group, renamed)
    members = [
        member
        for member in group.members_in_order()
        if member.member_id not in gone
        and (joining is None or member.instance_id is None or member.instance_id != joining.instance_id)
    ]
    if joining is not None:
        members.append(joining)
    classic = ClassicGroupModel(
        group.group_id, state.now, state=GroupState.STABLE, generation=group.epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
    )  # fmt: skip
    for member in members:
        assert member.classic is not None
        classic.add(
            ClassicMember(
                member.member_id, member.instance_id, member.client_id, member.client_host,
                member.rebalance_timeout_ms, member.classic.session_timeout_ms, CONSUMER_PROTOCOL_TYPE,
                member.classic.protocols,
            )
        )  # fmt: skip
    classic.protocol = classic.selected_protocol()
    classic.topics = classic.computed_topics()
    for one in classic.members.values():
        of = one.member_id
        if replaced is not None and joining is not None and of == joining.member_id:
            of = replaced.member_id
        try:
            one.assignment = written_assignment(
                group.target(of), state.topics, one.metadata(classic.protocol)
            )
        except MalformedProtocol as error:
            raise OperationRefused(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: {error.reason}.",
            ) from None
    assignments = {one.member_id: one.assignment for one in classic.members.values()}
    records.append(classic_group_record(classic, assignments))
    state.groups[group.group_id] = classic
    _report(state, group, classic, gone, leaving, joining, replaced)
    for one in classic.members_in_order():
        keep_alive(state, classic, one)
    if rebalance:
        prepare_rebalance(state, classic)


def _report(
    state: State,
    group: ConsumerGroupModel,
    classic: ClassicGroupModel,
    gone: Collection[str],
    leaving: Leaving,
    joining: ConsumerMember | None,
    replaced: ConsumerMember | None,
) -> None:
    """Report the conversion to the shard's listener."""
    cause = joining.member_id if joining is not None else next(iter(gone), None)
    left = [member for name in gone if (member := group.members.get(name)) is not None]
    state.listener.became_classic(state.now, classic, cause, left, leaving)
    if joining is not None and replaced is not None:
        taken = classic.members[joining.member_id]
        state.listener.member_joined(state.now, classic, taken, replaced.member_id)
