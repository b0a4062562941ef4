"""Topics: names, ids, partitions with their leaders and logs, settings.

Rules: a name is one that Kafka allows. As all nodes are in one process, a partition has one log.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.retention import SegmentRules
from coordwire.broker.log.validation import AppendRules
from coordwire.broker.settings.settings import Settings
from coordwire.coordinator import partition_of
from coordwire.coordinator.topics import INTERNAL_TOPICS
from coordwire.records.compression import Codec

OFFSETS_TOPIC, TRANSACTIONS_TOPIC = "__consumer_offsets", "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
_CODECS: dict[str, Codec] = {
    "uncompressed": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd",
}  # fmt: skip


def metric_name(name: str) -> str:
    """The name of a topic in metrics: names that differ in '.' and '_' alone collide there."""
    return name.replace(".", "_")


@dataclass(slots=True, eq=False)
class ClusterPartition:
    """One partition. leader: the node's id, -1 for none; leader_epoch: one more each time it moves; isr: the
    replicas in sync, in their order."""

    topic: str
    index: int
    replicas: Sequence[int]
    leader: int
    log: PartitionLog
    isr: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.isr = self.isr or list(self.replicas)

    @property
    def leader_epoch(self) -> int:
        return self.log.epoch


class ClusterTopic:
    """One topic; its partitions in their order."""

    def __init__(self, name: str, topic_id: UUID, settings: Settings) -> None:
        self.name = name
        self.id = topic_id
        self.settings = settings
        self.partitions: list[ClusterPartition] = []
        self.rules = AppendRules()
        self.flush_messages = self.flush_ms = 0
        self.apply_settings()

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def partition(self, index: int) -> ClusterPartition | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    def min_in_sync(self, partition: ClusterPartition) -> int:
        """How many replicas must be in sync for records that all of them confirm."""
        return min(self.settings.number("min.insync.replicas"), len(partition.replicas))

    def partition_for(self, key: str) -> int:
        """The number of the partition in which coordinators keep a group or a transactional id."""
        return partition_of(key, len(self.partitions))

    def apply_settings(self) -> None:
        """Apply the settings as they are now."""
        settings = self.settings
        self.rules = AppendRules(
            max_message_bytes=settings.number("max.message.bytes"),
            append_time=settings["message.timestamp.type"] == "LogAppendTime",
            before_max_ms=settings.number("message.timestamp.before.max.ms"),
            after_max_ms=settings.number("message.timestamp.after.max.ms"),
            compacted="compact" in settings.items("cleanup.policy"),
            codec=_CODECS.get(settings["compression.type"]),
        )
        self.flush_messages, self.flush_ms = (settings.number(f"flush.{unit}") for unit in ("messages", "ms"))

    def segment_rules(self) -> SegmentRules:
        """The settings of the segments of a log of this topic."""
        settings = self.settings
        return SegmentRules(
            settings.number("segment.bytes"),
            settings.number("index.interval.bytes"),
            settings.number("segment.ms"),
        )
