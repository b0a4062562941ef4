"""Classic groups as a shard has them beside other kinds: records, listing, commits, expiry.

DescribeGroups: a classic group as of the last durable write.
"""

from __future__ import annotations

from typing import Any

from coordwire.coordinator.classic.rebalance import keep_alive, prepare_rebalance
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, GroupState
from coordwire.coordinator.model.offsets import CommittedOffset
from coordwire.coordinator.records import classic_tombstone
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import GroupCommit, GroupKind, State
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import GroupMetadataKey, GroupMetadataValue, JoinGroupResponse, SyncGroupResponse
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.list_groups import ListedGroup


class ClassicKind(GroupKind[ClassicGroupModel]):
    """Groups of the classic protocol, and those that a commit made."""

    name = ClassicGroupModel.kind
    record_keys = (GroupMetadataKey,)

    def replay(self, state: State, key: GroupMetadataKey, value: Any) -> None:
        if value is None:
            state.groups.pop(key.group)
        elif isinstance(value, GroupMetadataValue):
            state.groups[key.group] = _classic_group(state, key.group, value)

    def resume(self, state: State, group: ClassicGroupModel) -> None:
        for member in group.members.values():
            keep_alive(state, group, member)
        if len(group.members) > state.config.group_max_size:
            prepare_rebalance(state, group)

    def give_up(self, state: State, group: ClassicGroupModel) -> None:
        error = int(ErrorCode.NOT_COORDINATOR)
        before = group.state
        group.enter(GroupState.DEAD, state.now)
        for member in group.members.values():
            if before is GroupState.PREPARING_REBALANCE:
                group.answer_join(member, JoinGroupResponse(member_id=member.member_id, error_code=error))
            else:
                group.answer_sync(member, SyncGroupResponse(error_code=error))

    def list_entry(self, group: ClassicGroupModel) -> ListedGroup:
        return ListedGroup(
            group_id=group.group_id, protocol_type=group.protocol_type or "", group_state=group.state.value,
            group_type=self.name,
        )  # fmt: skip

    def tombstones(self, state: State, group: ClassicGroupModel) -> list[LogRecord]:
        return [classic_tombstone(group.group_id)]

    # --- offsets ---

    def validate_commit(self, state: State, group: ClassicGroupModel, commit: GroupCommit) -> None:
        """Refuse a commit of another member; in a transaction, members may be anonymous, and need not wait.

        Any other commit renews the member's session.
        """
        if group.state is GroupState.DEAD:
            raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if commit.generation < 0 and group.state is GroupState.EMPTY:
            return  # of an operator, or of a consumer without a membership
        if commit.generation >= 0 or commit.member_id or commit.instance_id is not None:
            group.validate_member(commit.member_id, commit.instance_id)
            if commit.generation != group.generation:
                raise OperationRefused(ErrorCode.ILLEGAL_GENERATION)
        elif not commit.transactional and group.state is not GroupState.EMPTY:
            raise OperationRefused(ErrorCode.UNKNOWN_MEMBER_ID)
        if commit.transactional:
            return
        if group.state is GroupState.COMPLETING_REBALANCE:
            raise OperationRefused(ErrorCode.REBALANCE_IN_PROGRESS)
        if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            keep_alive(state, group, group.members[commit.member_id])

    def validate_fetch(
        self, group: ClassicGroupModel, member_id: str | None, epoch: int, *, stable: bool
    ) -> None:
        if group.is_dead:
            raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND)

    def validate_deletion_of_offsets(self, group: ClassicGroupModel) -> None:
        if group.is_dead:
            raise OperationRefused(ErrorCode.GROUP_ID_NOT_FOUND)
        if not group.is_empty and not group.is_consumer:
            raise OperationRefused(ErrorCode.NON_EMPTY_GROUP)

    def retention_start(self, group: ClassicGroupModel, committed: CommittedOffset) -> int | None:
        """When a typed group became empty, else the commit; of members, only if their topics are known."""
        if group.protocol_type is None:
            return committed.committed_at
        if group.state is GroupState.EMPTY:
            return committed.committed_at if group.state_since is None else group.state_since
        is_known = group.is_consumer and group.topics is not None and group.state is GroupState.STABLE
        return committed.committed_at if is_known else None


def _classic_group(state: State, group_id: str, value: GroupMetadataValue) -> ClassicGroupModel:
    """The group of a record; its members support the one protocol that the record names."""
    since = value.current_state_timestamp
    group = ClassicGroupModel(
        group_id,
        None if since == -1 else since,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
    )
    for member in value.members:
        rebalance = member.rebalance_timeout
        group.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout_ms=member.session_timeout if rebalance == -1 else rebalance,
                session_timeout_ms=member.session_timeout,
                protocol_type=value.protocol_type,
                protocols=((value.protocol or "", member.subscription),),
                assignment=member.assignment,
            )
        )
    group.topics = group.computed_topics(impossible_is_malformed=state.rules.impossible_lengths_are_malformed)
    return group


# --- DescribeGroups ---


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
        members=[_classic_member(member, group if stable else None) for member in group.members.values()],
    )


def _classic_member(member: ClassicMember, stable: ClassicGroupModel | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id, group_instance_id=member.instance_id, client_id=member.client_id,
        client_host=member.client_host, member_assignment=member.assignment,
        member_metadata=member.metadata(stable.protocol) if stable else b"",
    )  # fmt: skip
