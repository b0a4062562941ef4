"""A classic group's coordinator and its members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.

Strategy: one change at a time, and each ends with the group stable, all members in one generation. Rules: as
Kafka's own: since version 4 a member gets its id first (MEMBER_ID_REQUIRED); members learn of a rebalance by
their heartbeats; the leader gets the members and assigns; when its last member leaves, a group enters its
next generation.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.leave_group import MemberIdentity, MemberResponse
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.testing.group_script import ConversationFrame, GroupScript, Recorder
from coordwire.versions import ApiKey

__all__ = ["ClassicScript"]

PREFIX = b"\0\0"
"""The version of the consumer protocol before a subscription or an assignment: 0."""

ID_REQUIRED = 4
"""The version of JoinGroup since which a member gets its id before it joins."""

SESSION_MS, REBALANCE_MS = 45_000, 300_000


@dataclass(slots=True)
class _Member:
    """connection: its number."""

    member_id: str
    client_id: str
    connection: int
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

    def join(self) -> None:
        number = len(self.joiners)
        client_id = f"client-{number}"
        member = _Member(f"{client_id}-{UUID(int=number + 1)}", client_id, number)
        version = self.recorder.version(ApiKey.JOIN_GROUP)
        if version >= ID_REQUIRED:
            self.recorder.exchange(
                number, client_id, self._join_request(""),
                JoinGroupResponse(
                    error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=member.member_id,
                    protocol_name=None if version >= 7 else "",
                ),
            )  # fmt: skip
        join_frame = self._ask(member, self._join_request(member.member_id if version >= ID_REQUIRED else ""))
        self.joiners.append(member.member_id)
        self._members.append(member)
        self._rebalance(member, join_frame)

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        if self.recorder.version(ApiKey.LEAVE_GROUP) >= 3:
            request = LeaveGroupRequest(
                group_id=self.group_id, members=[MemberIdentity(member_id=member.member_id)]
            )
            leaver = MemberResponse(member_id=member.member_id, group_instance_id=None)
            response = LeaveGroupResponse(members=[leaver])
        else:
            request = LeaveGroupRequest(group_id=self.group_id, member_id=member.member_id)
            response = LeaveGroupResponse()
        self.recorder.exchange(member.connection, member.client_id, request, response)
        if self._members:
            self._rebalance()
        else:
            self.generation += 1

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)], 0)

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, self.generation,
                     member.partitions)  # fmt: skip

    @property
    def size(self) -> int:
        return len(self._members)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.partitions for member in self._members}

    # --- a rebalance ---

    def _rebalance(self, new: _Member | None = None, join_frame: ConversationFrame | None = None) -> None:
        """All members join again, and get their assignment. join_frame: the new member's JoinGroup."""
        waiting: list[tuple[_Member, ConversationFrame]] = [(new, join_frame)] if new and join_frame else []
        for member in self._members:
            if member is not new:
                self._heartbeat(member, ErrorCode.REBALANCE_IN_PROGRESS)
                waiting.append((member, self._ask(member, self._join_request(member.member_id))))
        self.generation += 1
        for member, frame in waiting:
            self.recorder.answer(frame, self._join_response(member))
        waiting = [(member, self._ask(member, self._sync_request(member))) for member in self._members]
        for number, (member, frame) in enumerate(waiting):
            member.partitions = tuple(range(number, self.partitions, len(waiting)))
            self.recorder.answer(frame, self._sync_response(member))

    def _ask(self, member: _Member, request: JoinGroupRequest | SyncGroupRequest) -> ConversationFrame:
        return self.recorder.ask(member.connection, member.client_id, request)

    def _heartbeat(self, member: _Member, error_code: int) -> None:
        self.recorder.exchange(
            member.connection, member.client_id,
            HeartbeatRequest(
                group_id=self.group_id, generation_id=self.generation, member_id=member.member_id
            ),
            HeartbeatResponse(error_code=error_code),
        )  # fmt: skip

    def _join_request(self, member_id: str) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id=self.group_id, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=member_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self._metadata)],
        )  # fmt: skip

    def _join_response(self, member: _Member) -> JoinGroupResponse:
        leader = self._members[0]
        members = self._members if member is leader else []
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_type="consumer" if self.recorder.version(ApiKey.JOIN_GROUP) >= 7 else None,
            protocol_name="range", leader=leader.member_id, member_id=member.member_id,
            members=[
                JoinGroupResponseMember(member_id=peer.member_id, metadata=self._metadata) for peer in members
            ],
        )  # fmt: skip

    def _sync_request(self, member: _Member) -> SyncGroupRequest:
        named = self.recorder.version(ApiKey.SYNC_GROUP) >= 5
        count = len(self._members)
        return SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=member.member_id,
            protocol_type="consumer" if named else None, protocol_name="range" if named else None,
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=peer.member_id,
                    assignment=self._assignment(range(number, self.partitions, count)),
                )
                for number, peer in enumerate(self._members)
                if member is self._members[0]
            ],
        )  # fmt: skip

    def _sync_response(self, member: _Member) -> SyncGroupResponse:
        named = self.recorder.version(ApiKey.SYNC_GROUP) >= 5
        return SyncGroupResponse(
            protocol_type="consumer" if named else None, protocol_name="range" if named else None,
            assignment=self._assignment(member.partitions),
        )  # fmt: skip

    def _assignment(self, partitions: range | tuple[int, ...]) -> bytes:
        owned = ConsumerProtocolAssignmentTopicPartition(topic=self.topic, partitions=list(partitions))
        topics = [owned] if partitions else []
        return PREFIX + ConsumerProtocolAssignment(assigned_partitions=topics).encode(version=0)
