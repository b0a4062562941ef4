"""A cluster as records of `__cluster_metadata`, for restarts and Apache's tools: its topics, and the facts of
`fact_records`.

Strategy: `MetadataWriter` gives the records for what has changed of a topic since the last that were
written; `read` puts a log's records together. Rules: what could not be written is given again. Of a log that
Apache Kafka wrote, records of other types say nothing here. A partition's leader epoch is its first one and
one more for each change that names a leader, as Kafka counts it: a broker that went on below it would write
batches that clients of the next one take for truncated.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordwire.broker.cluster.fact_records import fact_of
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.codec import Message
from coordwire.logs import LogRecord
from coordwire.messages import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)

_TYPES: dict[type[Message], tuple[int, int]] = {
    TopicRecord: (2, 0),
    PartitionRecord: (3, 1),
    PartitionChangeRecord: (5, 1),
    ConfigRecord: (4, 0),
    RemoveTopicRecord: (9, 0),
    UserScramCredentialRecord: (11, 0),
    FeatureLevelRecord: (12, 0),
    ClientQuotaRecord: (14, 0),
    ProducerIdsRecord: (15, 0),
    AccessControlEntryRecord: (18, 0),
    RemoveAccessControlEntryRecord: (19, 0),
    RemoveUserScramCredentialRecord: (22, 0),
}
"""The record type and the version that is written."""

_TOPIC_RESOURCE = 2
_BLOCK = 1_000
"""So many producer ids are taken at once, as a Kafka broker does."""


_MOST_CHANGES = 100
"""So many new epochs have a record each, as Kafka's controller writes them; a damaged log can have 2**31."""

_NO_LEADER_CHANGE = -2


@dataclass(frozen=True, slots=True)
class KnownPartition:
    """A partition. leader: the last one that it had."""

    replicas: list[int]
    leader: int
    leader_epoch: int = 0


@dataclass(slots=True)
class KnownTopic:
    """A topic; its partitions by index."""

    name: str
    id: UUID
    partitions: dict[int, KnownPartition] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class MetadataImage:
    """The content of a log. facts: the last record about each fact; next_producer_id: ids from there on are
    free."""

    topics: dict[UUID, KnownTopic] = field(default_factory=dict)
    facts: dict[Hashable, Message] = field(default_factory=dict)
    next_producer_id: int = 0


def first_records(levels: Mapping[str, int]) -> list[LogRecord]:
    """The first records of a new log, so that Apache Kafka goes on with it: the levels of the features."""
    return [log_record(FeatureLevelRecord(name=name, feature_level=level)) for name, level in levels.items()]


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
                topic.partitions[found.partition_id] = KnownPartition(
                    list(found.replicas), found.leader, found.leader_epoch
                )
            case PartitionChangeRecord() as change if change.topic_id in image.topics:
                topic = image.topics[change.topic_id]
                known = topic.partitions.get(change.partition_id)
                if known is not None:
                    topic.partitions[change.partition_id] = KnownPartition(
                        known.replicas if change.replicas is None else list(change.replicas),
                        known.leader if change.leader < 0 else change.leader,
                        known.leader_epoch + (change.leader != _NO_LEADER_CHANGE),
                    )
            case ConfigRecord(resource_type=2, resource_name=owner, name=name, value=value):
                if value is None:
                    settings.get(owner, {}).pop(name, None)
                else:
                    settings.setdefault(owner, {})[name] = value
            case RemoveTopicRecord(topic_id=topic_id):
                removed = image.topics.pop(topic_id, None)
                if removed is not None:
                    settings.pop(removed.name, None)
            case ProducerIdsRecord(next_producer_id=following):
                image.next_producer_id = following
            case Message() as message if (fact := fact_of(message)) is not None:
                image.facts[fact] = message
    for topic in image.topics.values():
        topic.settings = settings.get(topic.name, {})
    return image


class MetadataWriter:
    """The records to write next, after those that were `written`."""

    def __init__(self, image: MetadataImage) -> None:
        self._topics = image.topics
        self._producer_ids = image.next_producer_id

    def topic(self, topic: ClusterTopic) -> list[LogRecord]:
        """The records for a topic that is new, has grown or has other settings."""
        messages: list[Message] = []
        known = self._topics.get(topic.id)
        if known is None:
            known = KnownTopic(topic.name, topic.id)
            messages.append(TopicRecord(name=topic.name, topic_id=topic.id))
        for partition in topic.partitions[: len(known.partitions)]:
            messages += _changed(known, partition)
        for partition in topic.partitions[len(known.partitions) :]:
            messages.append(_partition(topic.id, partition))
        own = topic.settings.own
        for name in known.settings.keys() | own.keys():
            if known.settings.get(name) != own.get(name):
                messages.append(
                    ConfigRecord(
                        resource_type=_TOPIC_RESOURCE,
                        resource_name=topic.name,
                        name=name,
                        value=own.get(name),
                    )
                )
        return [log_record(message) for message in messages]

    def written(self, topic: ClusterTopic) -> None:
        """The records for a topic as it is now are in the log."""
        known = self._topics.setdefault(topic.id, KnownTopic(topic.name, topic.id))
        for partition in topic.partitions:
            before = known.partitions.get(partition.index)
            known.partitions[partition.index] = _known(before, partition)
        known.settings = dict(topic.settings.own)

    def partition(self, topic: ClusterTopic, partition: ClusterPartition) -> list[LogRecord]:
        """The records for a partition that was written before."""
        return [log_record(message) for message in _changed(self._topics[topic.id], partition)]

    def partition_written(self, topic: ClusterTopic, partition: ClusterPartition) -> None:
        """The records for a partition as it is now are in the log."""
        known = self._topics[topic.id].partitions
        known[partition.index] = _known(known[partition.index], partition)

    def knows(self, topic: ClusterTopic) -> bool:
        """Whether records for a topic are in the log."""
        return topic.id in self._topics

    def removed(self, topic: ClusterTopic) -> list[LogRecord]:
        """The record for a topic that was deleted."""
        self._topics.pop(topic.id, None)
        return [log_record(RemoveTopicRecord(topic_id=topic.id))]

    def producer_ids(self, node: int, following: int) -> list[LogRecord]:
        """The record for another block of producer ids, if one is needed."""
        if following <= self._producer_ids:
            return []
        return [log_record(ProducerIdsRecord(broker_id=node, next_producer_id=_block_end(following)))]

    def producer_ids_written(self, following: int) -> None:
        """The record that this id needs, if it needs one, is in the log."""
        if following > self._producer_ids:
            self._producer_ids = _block_end(following)


def _block_end(following: int) -> int:
    return -(-following // _BLOCK) * _BLOCK


def _partition(topic_id: UUID, partition: ClusterPartition) -> PartitionRecord:
    """The record that has all of a partition."""
    replicas = list(partition.replicas)
    return PartitionRecord(
        partition_id=partition.index,
        topic_id=topic_id,
        replicas=replicas,
        isr=list(partition.isr),
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=0,
        directories=[UUID(int=0)] * len(replicas),
    )


def _known(before: KnownPartition | None, partition: ClusterPartition) -> KnownPartition:
    """A partition as its records say that it is; one without a leader keeps the last that it had."""
    leader = before.leader if before is not None and partition.leader < 0 else partition.leader
    return KnownPartition(list(partition.replicas), leader, partition.leader_epoch)


def _changed(
    known: KnownTopic, partition: ClusterPartition
) -> Iterator[PartitionRecord | PartitionChangeRecord]:
    """The records for what changed of a partition."""
    before = known.partitions[partition.index]
    now = _known(before, partition)
    if now.leader_epoch - before.leader_epoch > _MOST_CHANGES:
        yield _partition(known.id, partition)
    else:
        yield from _changes(known.id, partition, before, now)


def _changes(
    topic_id: UUID, partition: ClusterPartition, before: KnownPartition, now: KnownPartition
) -> Iterator[PartitionChangeRecord]:
    """The records for a partition that has other replicas, or whose leader began so many new epochs."""
    new_epochs = max(now.leader_epoch - before.leader_epoch, int(now.leader != before.leader))
    for number in range(max(new_epochs, int(now.replicas != before.replicas))):
        change = PartitionChangeRecord(partition_id=partition.index, topic_id=topic_id)
        if not number and now.replicas != before.replicas:
            change.replicas = change.isr = now.replicas
            change.directories = [UUID(int=0)] * len(now.replicas)
        if number < new_epochs:
            change.leader = partition.leader
        yield change


def log_record(message: Message) -> LogRecord:
    """A record of the cluster's metadata."""
    number, version = _TYPES[type(message)]
    return LogRecord(log="metadata", type=number, key=None, value=message, version=version, frame_version=1)
