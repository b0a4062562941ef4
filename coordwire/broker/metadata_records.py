"""What a cluster knows of its topics, as records of `__cluster_metadata`, for restarts and Apache's tools.

Strategy: `Writer` gives the records for what has changed since it was last asked; `read` puts a log's records
together. Rules: of a log that Apache Kafka wrote, records of other types say nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordwire.broker.cluster_topics import ClusterTopic
from coordwire.codec import Message
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = ["KnownTopic", "MetadataImage", "MetadataWriter", "first_records", "read"]

_TYPES: dict[type[Message], tuple[int, int]] = {
    TopicRecord: (2, 0),
    PartitionRecord: (3, 1),
    PartitionChangeRecord: (5, 1),
    ConfigRecord: (4, 0),
    RemoveTopicRecord: (9, 0),
    FeatureLevelRecord: (12, 0),
    ProducerIdsRecord: (15, 0),
}
"""The record type and the version that is written."""

_TOPIC_RESOURCE = 2
_BLOCK = 1_000
"""So many producer ids are taken at once, as a Kafka broker does."""


@dataclass(slots=True)
class KnownTopic:
    """A topic. partitions: each one's replicas and leader, by index."""

    name: str
    id: UUID
    partitions: dict[int, tuple[list[int], int]] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MetadataImage:
    """What a log says. next_producer_id: ids from there on are free."""

    topics: dict[UUID, KnownTopic] = field(default_factory=dict)
    next_producer_id: int = 0


def first_records(levels: Mapping[str, int]) -> list[LogRecord]:
    """What a new log begins with, so that Apache Kafka goes on with it: the levels of the features."""
    return [_record(FeatureLevelRecord(name=name, feature_level=level)) for name, level in levels.items()]


def read(records: Iterable[LogRecord]) -> MetadataImage:
    """The state after these records."""
    image = MetadataImage()
    settings: dict[str, dict[str, str]] = {}
    for record in records:
        match record.value:
            case TopicRecord(name=name, topic_id=topic_id):
                image.topics[topic_id] = KnownTopic(name, topic_id)
            case PartitionRecord() as found if found.topic_id in image.topics:
                topic = image.topics[found.topic_id]
                topic.partitions[found.partition_id] = (list(found.replicas), found.leader)
            case PartitionChangeRecord() as change if change.topic_id in image.topics:
                topic = image.topics[change.topic_id]
                known = topic.partitions.get(change.partition_id)
                if known is not None:
                    replicas = known[0] if change.replicas is None else list(change.replicas)
                    leader = known[1] if change.leader < 0 else change.leader
                    topic.partitions[change.partition_id] = (replicas, leader)
            case ConfigRecord(resource_type=2, resource_name=owner, name=name, value=value):
                if value is None:
                    settings.get(owner, {}).pop(name, None)
                else:
                    settings.setdefault(owner, {})[name] = value
            case RemoveTopicRecord(topic_id=topic_id):
                gone = image.topics.pop(topic_id, None)
                if gone is not None:
                    settings.pop(gone.name, None)
            case ProducerIdsRecord(next_producer_id=following):
                image.next_producer_id = following
    for topic in image.topics.values():
        topic.settings = settings.get(topic.name, {})
    return image


class MetadataWriter:
    """What was written so far, and what is to be written next."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = image.topics
        self._producer_ids = image.next_producer_id

    def topic(self, topic: ClusterTopic) -> list[LogRecord]:
        """The records for a topic that is new, has grown or has other settings."""
        messages: list[Message] = []
        known = self._topics.get(topic.id)
        if known is None:
            known = self._topics[topic.id] = KnownTopic(topic.name, topic.id)
            messages.append(TopicRecord(name=topic.name, topic_id=topic.id))
        for partition in topic.partitions[: len(known.partitions)]:
            replicas, leader = list(partition.replicas), partition.leader
            before = known.partitions[partition.index]
            if before != (replicas, leader):
                known.partitions[partition.index] = (replicas, leader)
                change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic.id)
                if replicas != before[0]:
                    change.replicas = change.isr = replicas
                    change.directories = [UUID(int=0)] * len(replicas)
                if leader != before[1]:
                    change.leader = leader
                messages.append(change)
        for partition in topic.partitions[len(known.partitions) :]:
            replicas = list(partition.replicas)
            known.partitions[partition.index] = (replicas, partition.leader)
            messages.append(
                PartitionRecord(
                    partition_id=partition.index,
                    topic_id=topic.id,
                    replicas=replicas,
                    isr=replicas,
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=0,
                    directories=[UUID(int=0)] * len(replicas),
                )
            )
        now = dict(topic.settings.own)
        for name in known.settings.keys() | now.keys():
            if known.settings.get(name) != now.get(name):
                messages.append(
                    ConfigRecord(
                        resource_type=_TOPIC_RESOURCE,
                        resource_name=topic.name,
                        name=name,
                        value=now.get(name),
                    )
                )
        known.settings = now
        return [_record(message) for message in messages]

    def removed(self, topic: ClusterTopic) -> list[LogRecord]:
        """The record for a topic that is gone."""
        self._topics.pop(topic.id, None)
        return [_record(RemoveTopicRecord(topic_id=topic.id))]

    def producer_ids(self, node: int, following: int) -> list[LogRecord]:
        """The record for another block of producer ids, if one is needed."""
        if following <= self._producer_ids:
            return []
        self._producer_ids = -(-following // _BLOCK) * _BLOCK
        return [_record(ProducerIdsRecord(broker_id=node, next_producer_id=self._producer_ids))]


def _record(message: Message) -> LogRecord:
    number, version = _TYPES[type(message)]
    return LogRecord(log="metadata", type=number, key=None, value=message, version=version, frame_version=1)
