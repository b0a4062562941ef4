"""The records of a classic group: its metadata as of a generation, and its end."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.classic_member import ClassicMember
from coordwire.coordinator.model.classic_states import GroupState
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import GroupMetadataKey, GroupMetadataValue
from coordwire.messages.classic_group_records import MemberMetadata

__all__ = ["empty_group", "group_from_record", "group_metadata", "group_tombstone"]

_TYPE = 2
_VERSION = 3


def group_metadata(group: ClassicGroupModel, assignments: Mapping[str, bytes]) -> LogRecord:
    """A group with all members, each of which has an assignment here."""
    members = []
    for member in group.members_in_order():
        if group.protocol is None:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        members.append(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(group.protocol),
                assignment=assignments[member.member_id],
            )
        )
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "", generation=group.generation, protocol=group.protocol,
        leader=group.leader, current_state_timestamp=_since(group), members=members,
    )  # fmt: skip
    return _record(group.group_id, value)


def empty_group(group: ClassicGroupModel) -> LogRecord:
    """A group that has just been made, so that the log knows of it."""
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=_since(group),
        members=[],
    )  # fmt: skip
    return _record(group.group_id, value)


def group_tombstone(group_id: str) -> LogRecord:
    return LogRecord(log="consumer_offsets", type=_TYPE, key=GroupMetadataKey(group=group_id))


def _record(group_id: str, value: GroupMetadataValue) -> LogRecord:
    key = GroupMetadataKey(group=group_id)
    return LogRecord(log="consumer_offsets", type=_TYPE, key=key, value=value, version=_VERSION)


def _since(group: ClassicGroupModel) -> int:
    return -1 if group.state_since is None else group.state_since


def group_from_record(group_id: str, value: GroupMetadataValue) -> ClassicGroupModel:
    """The group that a record says; its members support the one protocol that the record names."""
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
    group.topics = group.computed_topics()
    return group
