"""Where a cluster's logs are, and what of it outlives a restart; the place that is memory."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from typing import Protocol

from coordwire._dataclasses import dataclass
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.storage import MemoryStorage
from coordwire.codec import Message


class LogPlace(Protocol):
    """Where logs are, and what of the cluster outlives a restart. All may raise `OSError`."""

    def create(self, topic: ClusterTopic, index: int, leader: int) -> PartitionLog:
        """A new log."""

    def started(self, *partitions: ClusterPartition) -> None:
        """Logs begin at other offsets."""

    def topic_changed(self, topic: ClusterTopic) -> None:
        """A topic is new, has more partitions, other settings, leaders or leader epochs."""

    def partition_changed(self, topic: ClusterTopic, partition: ClusterPartition) -> None:
        """A partition that was there has other replicas, another leader or a new epoch."""

    def growth_undone(self, topic: ClusterTopic, count: int) -> None:
        """A topic that failed to grow has these partitions as before; 0: it was not made."""

    def topic_removed(self, topic: ClusterTopic) -> None:
        """A topic was deleted."""

    def facts_changed(self, records: Sequence[Message]) -> None:
        """Facts change as these records say (`fact_records`)."""

    def producer_ids(self, following: int) -> None:
        """Ids below this one are used up."""

    def leader_moved(self, partition: ClusterPartition, old: int) -> None:
        """Another node leads a partition than before."""

    def directory(self, node: int) -> LogDirectory:
        """Where a node keeps its logs."""

    @property
    def metadata_end(self) -> int:
        """The end of the log of the cluster's metadata."""

    def close(self, topics: Iterable[ClusterTopic]) -> None:
        """The cluster ends, with these topics."""


@dataclass(frozen=True, slots=True)
class LogDirectory:
    """A folder with logs. exists: false for logs in memory, whose folder has a name only."""

    name: str
    exists: bool = False

    def space(self) -> tuple[int, int]:
        """The bytes of its file system, and those that are free; -1 if there is none. Raises `OSError`."""
        if not self.exists:
            return -1, -1
        usage = shutil.disk_usage(self.name)
        return usage.total, usage.free


class MemoryLogs:
    """Logs in memory; nothing outlives the cluster."""

    def create(self, topic: ClusterTopic, index: int, leader: int) -> PartitionLog:
        return PartitionLog(storage=MemoryStorage(topic.segment_rules()))

    def started(self, *partitions: ClusterPartition) -> None:
        pass

    def topic_changed(self, topic: ClusterTopic) -> None:
        pass

    def partition_changed(self, topic: ClusterTopic, partition: ClusterPartition) -> None:
        pass

    def growth_undone(self, topic: ClusterTopic, count: int) -> None:
        pass

    def topic_removed(self, topic: ClusterTopic) -> None:
        pass

    def facts_changed(self, records: Sequence[Message]) -> None:
        pass

    def producer_ids(self, following: int) -> None:
        pass

    def leader_moved(self, partition: ClusterPartition, old: int) -> None:
        pass

    def directory(self, node: int) -> LogDirectory:
        return LogDirectory(f"/memory/node-{node}")

    @property
    def metadata_end(self) -> int:
        return 0

    def close(self, topics: Iterable[ClusterTopic]) -> None:
        pass
