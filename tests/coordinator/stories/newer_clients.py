"""Members of share groups and of streams groups, as clients of a coordinator.

Rules: as `ConsumerClient`, whose requests they replace. A member of a share group takes what it is given at
once and reports nothing; a process of a streams application reports its tasks, and all have one topology.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from coordwire.messages import ShareGroupHeartbeatRequest, StreamsGroupHeartbeatRequest
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestEndpoint,
    StreamsGroupHeartbeatRequestTaskIds,
    Subtopology,
    TopicInfo,
    Topology,
)
from tests.coordinator.stories.clients import ConsumerClient, Partition
from tests.coordinator.stories.world import names

_LEAVES = -1


class ShareClient(ConsumerClient):
    """A member of KIP-932."""

    def heartbeat(self, *, joins: bool) -> Any:
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch
        )
        if joins or self.says:
            request.subscribed_topic_names = list(self.topics)
        return request

    def leaving_heartbeat(self) -> Any:
        return ShareGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVES
        )

    def commit(self, generation: int, version: int) -> None:
        """A share group commits no offsets."""


def topology(topics: Sequence[str], *, stateful: bool) -> Topology:
    """A subtopology a topic, "0" of the first. stateful: each has an internal topic for its changes."""
    parts = [
        Subtopology(
            subtopology_id=str(number), source_topics=[topic],
            state_changelog_topics=[TopicInfo(name=f"{topic}-changelog")] if stateful else [],
        )
        for number, topic in enumerate(topics)
    ]  # fmt: skip
    return Topology(epoch=1, subtopologies=parts)


class StreamsClient(ConsumerClient):
    """A process of KIP-1071. topology: the application's; endpoint: whether it has one for queries."""

    version = 0
    reports_at_once = True  # its standby tasks have changed

    def __init__(self, *args: Any, topology: Topology, endpoint: bool, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.topology = topology
        self.endpoint = endpoint
        self._process_id = self.world.new_id()
        self._endpoint_epoch = -1
        self._standby: list[Any] = []

    def heartbeat(self, *, joins: bool) -> Any:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=self.epoch,
            endpoint_information_epoch=self._endpoint_epoch,
        )  # fmt: skip
        if joins:
            request.rebalance_timeout_ms, request.process_id = self.rebalance_ms, self._process_id
            request.topology = self.topology
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
            if self.endpoint:
                host = self.connection.address
                request.user_endpoint = StreamsGroupHeartbeatRequestEndpoint(host=host, port=7070)
        elif self.reports:
            request.active_tasks, request.warmup_tasks = _tasks(names(self.owned)), []
            request.standby_tasks = _tasks({part.subtopology_id: part.partitions for part in self._standby})
        return request

    def assigned(self, response: Any) -> frozenset[Partition] | None:
        self._endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is None:
            return None
        self._standby = response.standby_tasks
        return frozenset((part.subtopology_id, n) for part in response.active_tasks for n in part.partitions)

    def leaving_heartbeat(self) -> Any:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id, member_id=self.member_id, member_epoch=_LEAVES
        )

    def commit(self, generation: int, version: int) -> None:
        """Of the topics of its tasks: each subtopology reads one."""
        sources = {part.subtopology_id: part.source_topics[0] for part in self.topology.subtopologies}
        tasks, self._owned = self.owned, frozenset((sources[part], number) for part, number in self.owned)
        super().commit(generation, version)
        self._owned = tasks


def _tasks(partitions: dict[str, list[int]]) -> list[StreamsGroupHeartbeatRequestTaskIds]:
    return [
        StreamsGroupHeartbeatRequestTaskIds(subtopology_id=part, partitions=numbers)
        for part, numbers in partitions.items()
    ]
