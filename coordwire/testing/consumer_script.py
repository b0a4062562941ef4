"""The members of a KIP-848 group: ConsumerGroupHeartbeat alone.

Strategy: one change at a time; then members send heartbeats in turn until each has its target, and has
confirmed that. Rules: as Kafka's own clients: what was given up, and what was taken, is in the next
heartbeat; the member chooses its id since version 1.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.coordinator.model.consumer_group import ConsumerGroupState
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.testing.group_script import TOPIC_ID, GroupScript, Recorder
from coordwire.versions import ApiKey

__all__ = ["ConsumerScript"]

JOIN, LEAVE = 0, -1
"""Epochs by which a member joins and leaves."""

REBALANCE_MS = 300_000


@dataclass(slots=True)
class _Member:
    """connection: its number; owned: what it has, sorted; reports: its next heartbeat says so."""

    member_id: str
    client_id: str
    connection: int
    epoch: int = JOIN
    owned: tuple[int, ...] = ()
    reports: bool = False


class ConsumerScript(GroupScript):
    """One group."""

    kind = "consumer"
    apis = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.METADATA, ApiKey.OFFSET_COMMIT)

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, group_id, topic, partitions)
        self._members: list[_Member] = []

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def generation(self) -> int:
        return int(self.recorder.group(self.group_id).epoch)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.owned for member in self._members}

    def join(self) -> None:
        number = len(self.joiners)
        member_id = urlsafe_b64encode(UUID(int=(number + 1) << 64 | 0x4848).bytes).decode().rstrip("=")
        has_own_id = self.recorder.version(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= 1
        member = _Member(member_id if has_own_id else "", f"client-{number}", number)
        self._metadata(member)
        self._heartbeat(
            member, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )  # fmt: skip
        self.joiners.append(member.member_id)
        self._members.append(member)
        self._reconcile()

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        member.epoch, member.reports = LEAVE, False
        self._heartbeat(member)
        self._reconcile()

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)])

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, member.epoch, member.owned)

    def _reconcile(self) -> None:
        """Bring the group to a stable state."""
        while self._members and not self._is_stable():
            for member in self._members:
                self._heartbeat(member)

    def _is_stable(self) -> bool:
        is_stable = self.recorder.group(self.group_id).state is ConsumerGroupState.STABLE
        return is_stable and not any(member.reports for member in self._members)

    def _heartbeat(self, member: _Member, **fields: Any) -> None:
        def answered(response: ConsumerGroupHeartbeatResponse) -> None:
            member.member_id = response.member_id or member.member_id
            member.epoch = response.member_epoch
            if response.assignment is not None:
                topics = response.assignment.topic_partitions
                member.owned = tuple(sorted(number for topic in topics for number in topic.partitions))
                member.reports = True

        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=member.member_id, member_epoch=member.epoch, **fields
        )
        if member.reports:
            topic = ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=TOPIC_ID, partitions=list(member.owned)
            )
            request.topic_partitions, member.reports = [topic] if member.owned else [], False
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _metadata(self, member: _Member) -> None:
        """The member asks for the topic, whose id heartbeats use."""
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=1, leader_epoch=0, replica_nodes=[1],
                                      isr_nodes=[1])
            for number in range(self.partitions)
        ]  # fmt: skip
        self.recorder.exchange(
            member.connection, member.client_id,
            MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)]),
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="10.0.0.2", port=9092)], controller_id=1,
                topics=[MetadataResponseTopic(name=self.topic, topic_id=TOPIC_ID, partitions=partitions)],
            ),
        )  # fmt: skip
