"""Commits and fetches of offsets in a random history, and what operators ask: right ones and wrong ones."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.releases import ReleaseRules
from coordwire.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.coordinator.histories import Replayer

_GROUPS = ["g", "h", "offsets-only"]
_DAY = 86_400_000


class OffsetOperations:
    """A part of the generator."""

    random: random.Random
    topic_names: list[str]
    most_partitions: int
    replayer: Replayer
    rules: ReleaseRules

    # --- what the rest of the generator has ---

    def _send(self, message: Message, version: int) -> int:
        raise NotImplementedError

    def _chance(self, share: float) -> bool:
        raise NotImplementedError

    def _spoil(self, request: Any) -> None:
        raise NotImplementedError

    def _classic_member(self) -> tuple[str, str, str | None, int] | None:
        """A client's group, member id, instance id and generation."""
        raise NotImplementedError

    # --- offsets ---

    def _partitions(self) -> list[int]:
        return self.random.sample(range(self.most_partitions), self.random.randint(1, 2))

    def _topic_id(self, name: str) -> UUID:
        for topic in self.replayer.topics.values():
            if topic.name == name:
                return topic.id
        return UUID(int=self.random.getrandbits(128))

    def _commit(self) -> None:
        version = self.random.randint(2, 10)
        client = self._classic_member()
        request = OffsetCommitRequest(group_id=self.random.choice(_GROUPS))
        if client is not None and self._chance(0.7):
            request.group_id, request.member_id, instance_id, generation = client
            request.generation_id_or_member_epoch = generation
            if version >= 7:
                request.group_instance_id = instance_id
        if version <= 4 and self._chance(0.2):
            request.retention_time_ms = self.random.choice([1_000, _DAY])
        for name in self.random.sample([*self.topic_names, "missing"], self.random.randint(1, 2)):
            topic = OffsetCommitRequestTopic(name=name)
            if version >= 10:
                topic.name, topic.topic_id = "", self._topic_id(name)
            for index in self._partitions():
                partition = OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=self.random.randint(0, 100),
                    committed_metadata=self.random.choices(["", "ok", None, "much too long"], [5, 5, 1, 1])[
                        0
                    ],
                )
                if version >= 6:
                    partition.committed_leader_epoch = self.random.choice([-1, 0, 5])
                topic.partitions.append(partition)
            request.topics.append(topic)
        self._spoil(request)
        self._send(request, version)

    def _fetch(self) -> None:
        version = self.random.randint(1, 10)
        request = OffsetFetchRequest()
        all_topics = version >= 2 and self._chance(0.4)
        if version >= 7:
            request.require_stable = self._chance(0.5)
        if version < 8:
            request.group_id = self.random.choice([*_GROUPS, "nowhere"])
            request.topics = None if all_topics else [
                OffsetFetchRequestTopic(name=name, partition_indexes=self._partitions())
                for name in self.random.sample(self.topic_names, self.random.randint(1, 2))
            ]  # fmt: skip
        else:
            for group_id in self.random.sample([*_GROUPS, "nowhere"], self.random.randint(1, 2)):
                topics = []
                for name in self.random.sample([*self.topic_names, "missing"], self.random.randint(1, 2)):
                    topic = OffsetFetchRequestTopics(name=name, partition_indexes=self._partitions())
                    if version >= 10:
                        topic.name, topic.topic_id = "", self._topic_id(name)
                    topics.append(topic)
                request.groups.append(
                    OffsetFetchRequestGroup(group_id=group_id, topics=None if all_topics else topics)
                )
        self._send(request, version)

    def _delete_offsets(self) -> None:
        request = OffsetDeleteRequest(group_id=self.random.choice([*_GROUPS, "nowhere", ""]))
        for name in self.random.sample([*self.topic_names, "missing"], self.random.randint(1, 2)):
            partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in self._partitions()]
            request.topics.append(OffsetDeleteRequestTopic(name=name, partitions=partitions))
        self._send(request, 0)

    # --- groups as a whole ---

    def _some_groups(self) -> list[str]:
        return self.random.sample([*_GROUPS, "nowhere"], self.random.randint(1, 3))

    def _describe(self) -> None:
        self._send(DescribeGroupsRequest(groups=self._some_groups()), self.random.randint(0, 6))

    def _list(self) -> None:
        version = self.random.randint(0, 5)
        request = ListGroupsRequest()
        if version >= 4 and self._chance(0.6):
            states = ["Empty", "stable", "PreparingRebalance", "Dead", "no-state"]
            request.states_filter = self.random.sample(states, 2)
        if version >= 5 and self._chance(0.6):
            request.types_filter = self.random.sample(["classic", "CONSUMER", "Classic"], 1)
        self._send(request, version)

    def _delete_groups(self) -> None:
        newest = 3 if self.rules.streams_members_report_more else 2
        self._send(DeleteGroupsRequest(groups_names=self._some_groups()), self.random.randint(0, newest))
