"""A KIP-848 group's coordinator and its members: ConsumerGroupHeartbeat alone.

Strategy: one change at a time; then members give up partitions and confirm that, and after that each gets the
partitions of its target, until all are in the group's epoch. Rules: as Kafka's own: a partition has no new
owner before the old one has confirmed that it gave it up; a null assignment means no change; the member
chooses its id since version 1.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from coordwire.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.testing.group_script import GroupScript, Recorder
from coordwire.versions import ApiKey

__all__ = ["ConsumerScript"]

JOIN, LEAVE = 0, -1
"""Epochs by which a member joins and leaves."""

INTERVAL_MS, REBALANCE_MS = 5000, 300_000
TOPIC_ID = UUID("6b0b1b7e-3f52-4c43-9c3e-0d5a2f1c8e11")


@dataclass(slots=True)
class _Member:
    """connection: its number; owned: what it has, sorted."""

    member_id: str
    client_id: str
    connection: int
    epoch: int = JOIN
    owned: tuple[int, ...] = ()


class ConsumerScript(GroupScript):
    """One group."""

    kind = "consumer"
    apis = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.METADATA, ApiKey.OFFSET_COMMIT)

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, group_id, topic, partitions)
        self._members: list[_Member] = []

    def join(self) -> None:
        number = len(self.joiners)
        member_id = urlsafe_b64encode(UUID(int=(number + 1) << 64 | 0x4848).bytes).decode().rstrip("=")
        member = _Member(member_id, f"client-{number}", number)
        self._metadata(member)
        self.generation += 1
        target = self._target([*self._members, member])
        owned = {partition for peer in self._members for partition in peer.owned}
        member.owned = tuple(partition for partition in target[member_id] if partition not in owned)
        has_own_id = self.recorder.version(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= 1
        self.recorder.exchange(
            number, member.client_id,
            ConsumerGroupHeartbeatRequest(
                group_id=self.group_id, member_id=member_id if has_own_id else "", member_epoch=JOIN,
                rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=[self.topic], topic_partitions=[],
            ),
            self._response(member, self.generation, member.owned),
        )  # fmt: skip
        member.epoch = self.generation
        self.joiners.append(member_id)
        self._members.append(member)
        if member.owned:
            self._heartbeat(member, owned=member.owned)
        self._reconcile(target)

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        self.recorder.exchange(
            member.connection, member.client_id,
            ConsumerGroupHeartbeatRequest(
                group_id=self.group_id, member_id=member.member_id, member_epoch=LEAVE
            ),
            ConsumerGroupHeartbeatResponse(member_id=member.member_id, member_epoch=LEAVE),
        )  # fmt: skip
        self.generation += 1
        self._reconcile(self._target(self._members))

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)])

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, member.epoch, member.owned)

    @property
    def size(self) -> int:
        return len(self._members)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.owned for member in self._members}

    # --- reconciliation ---

    def _target(self, members: list[_Member]) -> dict[str, tuple[int, ...]]:
        """The partitions of each member: as even as possible, and members keep their partitions as far as
        that allows."""
        unassigned, target = list(range(self.partitions)), {}
        for number, member in enumerate(members):
            share = self.partitions // len(members) + (number < self.partitions % len(members))
            retained = [partition for partition in member.owned if partition in unassigned][:share]
            target[member.member_id] = retained
            unassigned = [partition for partition in unassigned if partition not in retained]
        for number, member in enumerate(members):
            share = self.partitions // len(members) + (number < self.partitions % len(members))
            missing = share - len(target[member.member_id])
            target[member.member_id] += unassigned[:missing]
            unassigned = unassigned[missing:]
        return {member_id: tuple(sorted(numbers)) for member_id, numbers in target.items()}

    def _reconcile(self, target: dict[str, tuple[int, ...]]) -> None:
        for member in self._members:
            retained = tuple(partition for partition in member.owned if partition in target[member.member_id])
            if retained != member.owned:
                self._heartbeat(member, assigned=retained)
                member.owned = retained
                self._heartbeat(member, owned=retained, epoch=self.generation)
        for member in self._members:
            assigned = target[member.member_id]
            if member.owned != assigned:
                self._heartbeat(member, assigned=assigned, epoch=self.generation)
                member.owned = assigned
                self._heartbeat(member, owned=assigned)
            elif member.epoch != self.generation:
                self._heartbeat(member, epoch=self.generation)

    def _heartbeat(
        self,
        member: _Member,
        *,
        owned: tuple[int, ...] | None = None,
        assigned: tuple[int, ...] | None = None,
        epoch: int | None = None,
    ) -> None:
        """owned: what the member reports; assigned: what it is given; epoch: the one it moves to."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=member.member_id, member_epoch=member.epoch
        )
        if owned is not None:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=TOPIC_ID, partitions=list(owned))
            ] if owned else []  # fmt: skip
        member.epoch = member.epoch if epoch is None else epoch
        response = self._response(member, member.epoch, assigned)
        self.recorder.exchange(member.connection, member.client_id, request, response)

    def _response(
        self, member: _Member, epoch: int, assigned: tuple[int, ...] | None
    ) -> ConsumerGroupHeartbeatResponse:
        response = ConsumerGroupHeartbeatResponse(
            member_id=member.member_id, member_epoch=epoch, heartbeat_interval_ms=INTERVAL_MS
        )
        if assigned is not None:
            topic = ConsumerGroupHeartbeatResponseTopicPartitions(
                topic_id=TOPIC_ID, partitions=list(assigned)
            )
            response.assignment = Assignment(topic_partitions=[topic] if assigned else [])
        return response

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
