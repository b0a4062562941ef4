"""The online conversion of a consumer group without members of KIP-848 to a classic group.

Members keep their ids and sessions; their targets become their assignments, and the group's epoch becomes its
generation. They are asked to join again where the targets are not for the members that remain.
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
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.embedded_protocol import MalformedProtocol, written_assignment
from coordwire.coordinator.model.members import static_member
from coordwire.coordinator.records import classic_group_record, consumer_tombstones
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord


def downgrades_without(state: State, group: ConsumerGroupModel, removed: Collection[ConsumerMember]) -> bool:
    """Whether the group becomes classic without these members."""
    remaining = len(group.members) - len(removed)
    remaining_classic = group.classic_members - sum(member.classic is not None for member in removed)
    return remaining_classic == remaining and remaining > 0 and _allowed(state, remaining)


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
    removed: Collection[str] = (),
    leaving: Leaving = "left",
    joining: ConsumerMember | None = None,
    rebalance: bool,
) -> None:
    """Replace a consumer group by a classic one, and add the records of that.

    removed: the ids of members that leave, in the way that `leaving` names. joining: a static member that
    replaces another, in records that were made before.
    """
    replaced = None
    renamed: dict[str, str] = {}
    if joining is not None:
        replaced = static_member(group, joining.instance_id)
        assert replaced is not None
        renamed = {replaced.member_id: joining.member_id}
    records += consumer_tombstones(group, renamed)
    members = [
        member
        for member in group.members.values()
        if member.member_id not in removed
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
    classic.topics = classic.computed_topics(
        impossible_is_malformed=state.rules.impossible_lengths_are_malformed
    )
    for classic_member in classic.members.values():
        target_id = classic_member.member_id
        if replaced is not None and joining is not None and target_id == joining.member_id:
            target_id = replaced.member_id
        try:
            classic_member.assignment = written_assignment(
                group.target(target_id), state.topics, classic_member.metadata(classic.protocol)
            )
        except MalformedProtocol as error:
            raise OperationRefused(
                ErrorCode.GROUP_ID_NOT_FOUND,
                f"Cannot downgrade the classic group {group.group_id}: {error.reason}.",
            ) from None
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    records.append(classic_group_record(classic, assignments))
    state.groups[group.group_id] = classic
    former = state.former_topics.get(group.group_id) or frozenset()
    state.former_topics[group.group_id] = former.union(group.topics)
    _report(state, group, classic, removed, leaving, joining, replaced)
    for classic_member in classic.members.values():
        keep_alive(state, classic, classic_member)
    if rebalance:
        prepare_rebalance(state, classic)


def _report(
    state: State,
    group: ConsumerGroupModel,
    classic: ClassicGroupModel,
    removed: Collection[str],
    leaving: Leaving,
    joining: ConsumerMember | None,
    replaced: ConsumerMember | None,
) -> None:
    """Report the conversion to the shard's listener."""
    cause = joining.member_id if joining is not None else next(iter(removed), None)
    leavers = [member for name in removed if (member := group.members.get(name)) is not None]
    state.listener.became_classic(state.now, classic, cause, leavers, leaving)
    if joining is not None and replaced is not None:
        classic_member = classic.members[joining.member_id]
        state.listener.member_joined(state.now, classic, classic_member, replaced.member_id)
