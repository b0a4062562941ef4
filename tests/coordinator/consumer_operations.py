"""What members of consumer groups do in a random history: mostly what KIP-848 asks for, some wrong."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.consumer_protocol import (
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscriptionTopicPartition,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.histories import Replayer

_GROUPS = ["g", "h"]
_INSTANCES = ["till-1", "till-2"]
_PATTERNS = ["o.*", "orders|audit", ".*", "pay[a-z]+", "(?i)AUDIT", "", "none", "(", "a**", "[a-", "a{1001}"]
_PATTERN_WEIGHTS = [9, 9, 9, 9, 4, 3, 3, 0.5, 0.5, 0.3, 0.3]

_NOBODY = "g", "nobody", None, 1

Owned = dict[UUID, list[int]]


@dataclass(slots=True)
class _Consumer:
    """What a member knows of itself. reported: the partitions that it has not yet given up."""

    group: str
    member_id: str
    instance_id: str | None
    epoch: int = 0
    previous: int = 0
    assigned: Owned = field(default_factory=dict)
    reported: Owned = field(default_factory=dict)


class ConsumerOperations:
    """A part of the generator."""

    random: random.Random
    topic_names: list[str]
    most_partitions: int
    most_members: int
    replayer: Replayer

    def begin_consumers(self) -> None:
        self._consumers: list[_Consumer] = []
        self._beats: dict[int, tuple[_Consumer, int]] = {}
        self._syncs: dict[int, int] = {}
        self._classic_owned: list[tuple[str, list[int]]] = []

    def consumer_kinds(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._join_consumer, 14), (self._beat, 44), (self._change, 6), (self._rejoin, 4),
            (self._leave_consumer, 6), (self._commit_consumer, 6), (self._fetch_consumer, 3),
            (self._describe_consumer, 3), (self._topics_change, 2), (self._configure, 0.7),
        ]  # fmt: skip

    # --- what the rest of the generator has ---

    def _send(self, message: Message, version: int) -> int:
        raise NotImplementedError

    def _step(self, step: str) -> None:
        raise NotImplementedError

    def _change_topics(self) -> None:
        raise NotImplementedError

    def _topic_id(self, name: str) -> UUID:
        raise NotImplementedError

    def _member(self) -> tuple[str, str, str | None, int] | None:
        """A client's group, member id, instance id and generation or epoch."""
        raise NotImplementedError

    def _classic_member(self) -> tuple[str, str, str | None, int] | None:
        raise NotImplementedError

    def _likely(self, share: float) -> bool:
        return self.random.random() < share

    # --- what clients are answered ---

    def note_sent(self, ticket: int, message: Message, version: int) -> None:
        if isinstance(message, SyncGroupRequest):
            self._syncs[ticket] = version

    def learn_consumer(self, ticket: int, data: bytes) -> None:
        if ticket in self._syncs:
            self._learn_sync(SyncGroupResponse.decode(data, version=self._syncs[ticket]))
        if ticket not in self._beats:
            return
        consumer, version = self._beats[ticket]
        response = ConsumerGroupHeartbeatResponse.decode(data, version=version)
        if response.error_code or response.member_id is None:
            return
        consumer.member_id = response.member_id
        if consumer.epoch != response.member_epoch:
            consumer.previous, consumer.epoch = consumer.epoch, response.member_epoch
        if response.assignment is not None:
            consumer.assigned = {
                partition.topic_id: list(partition.partitions)
                for partition in response.assignment.topic_partitions
            }
            for topic, partitions in consumer.assigned.items():
                known = consumer.reported.setdefault(topic, [])
                known += [partition for partition in partitions if partition not in known]
        self._consumers = [other for other in self._consumers if other is not consumer][
            -self.most_members - 3 :
        ]
        self._consumers.append(consumer)

    def _learn_sync(self, response: SyncGroupResponse) -> None:
        if len(response.assignment) > 6 and self._likely(0.7):
            try:
                assigned = ConsumerProtocolAssignment.decode(response.assignment[2:], version=0)
            except Exception:
                return
            self._classic_owned = [(topic.topic, topic.partitions) for topic in assigned.assigned_partitions]

    def full_subscription(self) -> bytes:
        """A classic member's subscription, with what some member was last assigned."""
        version = self.random.randint(0, 4)
        message = ConsumerProtocolSubscription(
            topics=self.random.sample(self.topic_names, self.random.choice([1, 2, 2, 3]))
        )
        known = min(version, 3)
        if known >= 1 and self._likely(0.6):
            message.owned_partitions = [
                ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=list(partitions))
                for topic, partitions in self._classic_owned
            ]
        if known >= 3 and self._likely(0.3):
            message.rack_id = self.random.choice(["r1", ""])
        return struct.pack(">h", version) + message.encode(version=known)

    def plausible_assignments(self, members: list[str]) -> list[SyncGroupRequestAssignment]:
        """What a leader assigns: each partition of each topic to one member."""
        assignments: dict[str, dict[str, list[int]]] = {member: {} for member in members}
        if members:
            for topic in self.replayer.topics.values():
                for partition in range(topic.partitions):
                    member = members[partition % len(members)]
                    if self._likely(0.03):
                        member = self.random.choice(members)
                        assignments[members[0]].setdefault(topic.name, []).append(partition)
                    assignments[member].setdefault(topic.name, []).append(partition)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=self._assignment(topics))
            for member, topics in assignments.items()
        ]

    def _assignment(self, topics: dict[str, list[int]]) -> bytes:
        message = ConsumerProtocolAssignment(
            assigned_partitions=[
                ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ]
        )
        if self._likely(0.02):
            message.user_data = b"own"
        version = self.random.choice([0, 1, 3])
        return struct.pack(">h", version) + message.encode(version=version)

    # --- heartbeats ---

    def _consumer(self) -> _Consumer | None:
        return self.random.choice(self._consumers) if self._consumers else None

    def _heartbeat_of(self, consumer: _Consumer, request: ConsumerGroupHeartbeatRequest) -> None:
        version = 1 if request.subscribed_topic_regex is not None else self.random.choice([0, 1, 1])
        if version == 1 and not request.member_id and self._likely(0.9):
            request.member_id = consumer.member_id = f"member-{self.random.getrandbits(20):x}"
        self._spoil_heartbeat(request)
        known = self._ticket + 1  # type: ignore[attr-defined]
        self._beats[known] = consumer, version
        self._send(request, version)

    def _spoil_heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> None:
        """Make a share of the requests wrong."""
        for share, name, values in (
            (0.01, "group_id", ["", " ", "nowhere", "offsets-only"]),
            (0.015, "member_id", ["", "nobody", "member-1"]),
            (0.03, "member_epoch", [0, 1, 2, 7, 99, -1, -2, -3]),
            (0.01, "instance_id", ["", "till-9", "till-1", "till-2"]),
            (0.02, "rack_id", ["", "r1", "r2"]),
            (0.01, "rebalance_timeout_ms", [-1, 1]),
            (0.01, "server_assignor", ["unknown", "uniform", "range"]),
            (0.01, "topic_partitions", [None, []]),
            (0.01, "subscribed_topic_names", [None, []]),
        ):
            if self._likely(share):
                setattr(request, name, self.random.choice(values))

    def _subscribe(self, request: ConsumerGroupHeartbeatRequest) -> None:
        way = self.random.random()
        if way < 0.72:
            names = self.random.choice([1, 2, 2, 3, 3, 3, 0])
            request.subscribed_topic_names = self.random.sample([*self.topic_names, "missing"], names)
        if way > 0.65:
            (request.subscribed_topic_regex,) = self.random.choices(_PATTERNS, _PATTERN_WEIGHTS)

    def _join_consumer(self) -> None:
        if len(self._consumers) >= self.most_members and self._likely(0.7):
            self._beat()
            return
        instance = self.random.choice(_INSTANCES) if self._likely(0.35) else None
        consumer = _Consumer(self.random.choice(_GROUPS), "", instance)
        request = ConsumerGroupHeartbeatRequest(
            group_id=consumer.group,
            instance_id=instance,
            rebalance_timeout_ms=self.random.choice([1_000, 10_000, 60_000]),
            topic_partitions=[],
        )
        if self._likely(0.3):
            request.server_assignor = self.random.choice(["uniform", "range"])
        self._subscribe(request)
        self._heartbeat_of(consumer, request)

    def _regular(self, consumer: _Consumer) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=consumer.group, member_id=consumer.member_id, member_epoch=consumer.epoch,
            instance_id=consumer.instance_id,
        )  # fmt: skip

    def _report(self, consumer: _Consumer) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
        return [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=list(partitions))
            for topic, partitions in consumer.reported.items()
            if partitions
        ]

    def _beat(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        request = self._regular(consumer)
        if self._likely(0.65):  # it gives up what it was told to
            consumer.reported = {topic: list(partitions) for topic, partitions in consumer.assigned.items()}
        if self._likely(0.7):
            request.topic_partitions = self._report(consumer)
        if self._likely(0.04):
            request.member_epoch = consumer.previous
        self._heartbeat_of(consumer, request)

    def _change(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        request = self._regular(consumer)
        self._subscribe(request)
        if self._likely(0.3):
            request.server_assignor = self.random.choice(["uniform", "range"])
        if self._likely(0.5):
            request.topic_partitions = self._report(consumer)
            if self._likely(0.5):
                request.rebalance_timeout_ms = self.random.choice([1_000, 30_000])
        self._heartbeat_of(consumer, request)

    def _rejoin(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        request = self._regular(consumer)
        request.member_epoch = 0
        request.rebalance_timeout_ms = 10_000
        request.topic_partitions = []
        if consumer.instance_id is not None and self._likely(0.6):
            request.member_id = ""
        consumer.assigned, consumer.reported = {}, {}
        self._subscribe(request)
        self._heartbeat_of(consumer, request)

    def _leave_consumer(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        request = self._regular(consumer)
        request.member_epoch = -1
        if consumer.instance_id is not None and self._likely(0.7):
            request.member_epoch = -2
        self._heartbeat_of(consumer, request)

    # --- offsets and looks at the group ---

    def _commit_consumer(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        version = self.random.choice([8, 9, 9, 10, 10])
        epoch = self.random.choice([consumer.epoch, consumer.epoch, consumer.epoch, consumer.previous, 1, 99])
        request = OffsetCommitRequest(
            group_id=consumer.group, member_id=consumer.member_id, generation_id_or_member_epoch=epoch
        )
        for name in self.random.sample(self.topic_names, self.random.randint(1, 2)):
            topic = OffsetCommitRequestTopic(name=name)
            if version >= 10:
                topic.name, topic.topic_id = "", self._topic_id(name)
            for index in self.random.sample(range(self.most_partitions), self.random.randint(1, 2)):
                topic.partitions.append(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=self.random.randint(0, 100)
                    )
                )
            request.topics.append(topic)
        self._send(request, version)

    def _fetch_consumer(self) -> None:
        consumer = self._consumer()
        if consumer is None:
            return
        epoch = self.random.choice([consumer.epoch, consumer.epoch, consumer.previous, 99, -1])
        topics = [
            OffsetFetchRequestTopics(name=self.random.choice(self.topic_names), partition_indexes=[0, 1])
        ]
        group = OffsetFetchRequestGroup(
            group_id=consumer.group, member_id=consumer.member_id, member_epoch=epoch,
            topics=None if self._likely(0.4) else topics,
        )  # fmt: skip
        if self._likely(0.2):
            group.member_id = None
        elif self._likely(0.4):  # a member of either protocol, which may be in another generation by now
            known = self._classic_member() if self._likely(0.7) else self._member()
            group.group_id, group.member_id, _, group.member_epoch = known or _NOBODY
            if self._likely(0.3):
                group.member_epoch += self.random.choice([-1, 1])
        self._send(OffsetFetchRequest(groups=[group], require_stable=self._likely(0.5)), 9)

    def _describe_consumer(self) -> None:
        groups = self.random.sample([*_GROUPS, "offsets-only", "nowhere", ""], self.random.randint(1, 3))
        self._send(ConsumerGroupDescribeRequest(group_ids=groups), self.random.randint(0, 1))

    def _configure(self) -> None:
        pairs = []
        if self._likely(0.7):
            pairs = [
                f"consumer.session.timeout.ms={self.random.choice([45_000, 50_000])}",
                f"consumer.heartbeat.interval.ms={self.random.choice([5_000, 7_000])}",
                f"consumer.assignment.interval.ms={self.random.choice([0, 2_000])}",
            ]
        self._step(" ".join(["config", self.random.choice(_GROUPS), *pairs]))

    def _topics_change(self) -> None:
        self._change_topics()
