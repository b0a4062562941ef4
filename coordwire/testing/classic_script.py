"""The members of a classic group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Strategy: one change at a time, and each ends with the group stable, all members in one generation. Rules:
members learn of a rebalance by their heartbeats; the leader assigns the partitions in turn.
"""

from __future__ import annotations

from dataclasses import dataclass

from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.testing.group_script import GroupScript, Recorder
from coordwire.versions import ApiKey

__all__ = ["ClassicScript"]

PREFIX = b"\0\0"
"""The version of the consumer protocol before a subscription or an assignment: 0."""

SESSION_MS, REBALANCE_MS = 45_000, 300_000


@dataclass(slots=True)
class _Member:
    """connection: its number. member_id: "" until it has one."""

    client_id: str
    connection: int
    member_id: str = ""
    leads: bool = False
    partitions: tuple[int, ...] = ()


class ClassicScript(GroupScript):
    """One group."""

    kind = "classic"
    apis = (
        ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT,
    )  # fmt: skip

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, group_id, topic, partitions)
        self._members: list[_Member] = []
        subscription = ConsumerProtocolSubscription(topics=[topic])
        self._metadata = PREFIX + subscription.encode(version=0)

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def generation(self) -> int:
        return int(self.recorder.group(self.group_id).generation)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.partitions for member in self._members}

    def join(self) -> None:
        number = len(self.joiners)
        member = _Member(f"client-{number}", number)
        self._members.append(member)
        self._join(member)
        self._rebalance(self._members[:-1])
        self.joiners.append(member.member_id)

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        request = LeaveGroupRequest(group_id=self.group_id)
        if self.recorder.version(ApiKey.LEAVE_GROUP) >= 3:
            request.members = [MemberIdentity(member_id=member.member_id)]
        else:
            request.member_id = member.member_id
        self.recorder.ask(member.connection, member.client_id, request, lambda response: None)
        self._rebalance(self._members)

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)])

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, self.generation,
                     member.partitions)  # fmt: skip

    # --- a rebalance ---

    def _rebalance(self, older_members: list[_Member]) -> None:
        """The members that are in learn of it and join too; then all get their assignment."""
        for member in older_members:
            self._heartbeat(member)
        for member in self._members:
            self._sync(member)

    def _heartbeat(self, member: _Member) -> None:
        def answered(response: HeartbeatResponse) -> None:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._join(member)

        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=member.member_id
        )
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _join(self, member: _Member) -> None:
        def answered(response: JoinGroupResponse) -> None:
            member.member_id = response.member_id
            member.leads = response.leader == response.member_id
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._join(member)

        request = JoinGroupRequest(
            group_id=self.group_id, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=member.member_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self._metadata)],
        )  # fmt: skip
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _sync(self, member: _Member) -> None:
        def answered(response: SyncGroupResponse) -> None:
            assignment = ConsumerProtocolAssignment.decode(response.assignment[len(PREFIX) :], version=0)
            topics = assignment.assigned_partitions
            member.partitions = tuple(number for topic in topics for number in topic.partitions)

        named = self.recorder.version(ApiKey.SYNC_GROUP) >= 5
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=member.member_id,
            protocol_type="consumer" if named else None, protocol_name="range" if named else None,
            assignments=self._assignments() if member.leads else [],
        )  # fmt: skip
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _assignments(self) -> list[SyncGroupRequestAssignment]:
        rows = []
        for number, member in enumerate(self._members):
            partitions = list(range(number, self.partitions, len(self._members)))
            owned = ConsumerProtocolAssignmentTopicPartition(topic=self.topic, partitions=partitions)
            assignment = ConsumerProtocolAssignment(assigned_partitions=[owned] if partitions else [])
            data = PREFIX + assignment.encode(version=0)
            rows.append(SyncGroupRequestAssignment(member_id=member.member_id, assignment=data))
        return rows
