"""A cluster's logs on disk, and what a restart needs beside them.

Strategy: one data folder a node (the folder itself with one node, node-1, node-2, … in it with several), each
as a Kafka broker's: a folder a partition, checkpoints, `meta.properties`. Topics, their settings and the
producer ids that are used up are records of `__cluster_metadata`, in the first node's folder. A partition is
kept by the node that leads it. Rule: a folder whose metadata contradict the arguments is refused.

Flushes are as `flush.messages` and `flush.ms` of a topic say: after each append, records that are not on the
disk yet are counted; the first of them starts a timer. So a machine that crashes loses fewer than
`flush.messages` records of a partition, and none that is older than `flush.ms`. What they rest on is flushed
before them: topics, settings, ids of producers; facts, as ACLs, are flushed at once. A producer whose records
cannot be flushed gets an error. An end in order flushes all. By default both are unbounded, as in Kafka: the
system decides when it writes. Kafka's own broker looks at `flush.ms` every `log.flush.scheduler.interval.ms`,
which is unbounded too unless it is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.fact_records import apply
from coordwire.broker.cluster.log_places import LogDirectory
from coordwire.broker.cluster.metadata_records import (
    KnownPartition,
    KnownTopic,
    MetadataImage,
    MetadataWriter,
    first_records,
    log_record,
    read,
)
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.data_folder import DataFolder, DataFolderError, sync_folder
from coordwire.broker.log.disk_loading import Unsynced, create_log, load_log, read_topic_id, write_topic_id
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.retention import SegmentRules
from coordwire.broker.log.validation import RefusedRecords
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.settings.released_versions import Feature, features_of
from coordwire.broker.settings.settings import BadSetting
from coordwire.codec import Message
from coordwire.codec.primitives import uuid_text
from coordwire.coordinator.timers import Timers
from coordwire.errors import CoordwireError
from coordwire.logs import LogRecord, encode_log_record, open_log_record
from coordwire.messages import FeatureLevelRecord
from coordwire.records import Record, encode_batch

UNBOUNDED = (1 << 63) - 1
_LISTENER, _RECOVERY = "log-flush", "recovery-point"


class LogFlushes:
    """The flushes of a cluster's logs. timers, clock: the cluster's; metadata: the log that the others
    rest on."""

    def __init__(self, timers: Timers[Any], clock: Callable[[], int], metadata: PartitionLog) -> None:
        self._metadata = metadata
        self._timers = timers
        self._clock = clock

    def watch(self, topic: ClusterTopic, index: int, log: PartitionLog) -> None:
        """Flush the log of a partition as its topic's settings say from now on."""
        key = _key(topic, index)

        def flush() -> None:
            if self._metadata.synced_offset < self._metadata.end_offset:
                self._metadata.sync()
            log.sync()

        def flush_late() -> None:
            with suppress(RefusedRecords):  # the log's directory is offline from now on
                flush()

        def changed(size: int) -> None:
            if not size:
                return
            if log.end_offset - log.synced_offset >= topic.flush_messages:
                self._timers.cancel(key)
                flush()
            elif topic.flush_ms < UNBOUNDED and not self._timers.is_set(key):
                self._timers.set(key, self._clock() + topic.flush_ms, flush_late)

        log.listeners[_LISTENER] = changed

    def settings_changed(self, topic: ClusterTopic) -> None:
        """Flush what the topic's settings want flushed by now, with the settings as they are now."""
        for partition in topic.partitions:
            self._timers.cancel(_key(topic, partition.index))
            changed = partition.log.listeners.get(_LISTENER)
            if changed is not None and partition.log.end_offset > partition.log.synced_offset:
                with suppress(RefusedRecords):
                    changed(1)

    def removed(self, topic: ClusterTopic, first: int = 0) -> None:
        """The partitions of a topic are no more, from this one on."""
        for partition in topic.partitions[first:]:
            self._timers.cancel(_key(topic, partition.index))


def _key(topic: ClusterTopic, index: int) -> tuple[str, ...]:
    return (_LISTENER, topic.name, str(index))


METADATA_TOPIC = "__cluster_metadata"
_METADATA_ID = UUID(int=1)
_MOST_ABSENT = 10_000
"""The most partitions that may be missing in a folder: as many as one request makes."""


def open_cluster(
    path: Path, *, clock: Callable[[], int], config: BrokerConfig, nodes: Sequence[int]
) -> ClusterState:
    """A cluster whose logs are in a folder, new or as it was left. Raises `OSError`, `DataFolderError`."""
    logs = DiskLogs(path, nodes, clock, features_of(config.release))
    try:
        cluster = ClusterState(clock=clock, config=config, nodes=nodes, logs=logs, cluster_id=logs.cluster_id)
        logs.load(cluster)
        cluster.transactions.recover()
    except BaseException:
        logs.refuse()
        raise
    return cluster


class DiskLogs:
    """The place of a cluster's logs."""

    def __init__(
        self,
        path: Path,
        nodes: Sequence[int],
        clock: Callable[[], int],
        features: Mapping[str, Feature],
    ) -> None:
        """features: of a folder that is new."""
        self._clock = clock
        self._nodes = sorted(nodes)
        self.folders: dict[int, DataFolder] = {}
        self._opened: dict[PartitionLog, None] = {}
        self._cluster: ClusterState | None = None
        self._flushes: LogFlushes | None = None
        self._flushed: set[UUID] = set()
        """The topics that are flushed, as far as the disk has their settings."""
        self.cluster_id = uuid_text(uuid4())
        try:
            for node in self._nodes:
                place = path if len(self._nodes) == 1 else path / f"node-{node}"
                folder = self.folders[node] = DataFolder(place, cluster_id=self.cluster_id, node_id=node)
                self.cluster_id = folder.cluster_id
            self._metadata, image = self._open_metadata(features)
        except BaseException:
            self.refuse()
            raise
        self._image = image
        self._writer = MetadataWriter(image)

    def _open_metadata(self, features: Mapping[str, Feature]) -> tuple[PartitionLog, MetadataImage]:
        folder = self.folders[self._nodes[0]].path / f"{METADATA_TOPIC}-0"
        if not os.path.lexists(folder):
            log = create_log(folder, _METADATA_ID, SegmentRules())
        else:
            log = load_log(folder, SegmentRules(), unsynced=self._unsynced(self._nodes[0]))
        self._opened[log] = None
        if not log.end_offset:
            levels = {name: feature.level for name, feature in features.items() if feature.level}
            _write(log, first_records(levels), self._clock())
        image = read(_metadata(log))
        del self._opened[log]
        return log, image

    def _unsynced(self, node: int, name: str = "", index: int = 0, most: int = UNBOUNDED) -> Unsynced | None:
        """What a loss of power may have taken of a log, of which fewer than `most` records wait."""
        folder = self.folders[node]
        return None if folder.was_clean else Unsynced(folder.recovery.get((name, index), 0), most)

    # --- at the start ---

    def load(self, cluster: ClusterState) -> None:
        """Load all topics of the folder. Raises `OSError`, `DataFolderError`."""
        self._cluster = cluster
        self._flushes = LogFlushes(cluster.timers, self._clock, self._metadata)
        cluster.next_producer_id = self._image.next_producer_id
        self._load_facts(cluster)
        folders = {
            (name, index): folder
            for data in self.folders.values()
            for name, index, folder in data.partitions()
            if name != METADATA_TOPIC
        }
        topics = dict(self._image.topics)
        known = {topic.name for topic in topics.values()}
        numbers: dict[str, set[int]] = {}
        for name, index in folders:
            numbers.setdefault(name, set()).add(index)
        for name, topic_id in self._unnamed_topics(folders, known):
            topics[topic_id] = KnownTopic(name, topic_id)
        for known_topic in topics.values():
            topic = ClusterTopic(
                known_topic.name, known_topic.id, cluster.topic_settings(known_topic.settings)
            )
            present = numbers.get(known_topic.name, set()) | known_topic.partitions.keys()
            count = max(present, default=-1) + 1
            if count - len(present) > _MOST_ABSENT:
                raise DataFolderError(
                    f"{self.folders[self._nodes[0]].path}: {known_topic.name}-{count - 1} is there, and"
                    f" {count - len(present)} partitions before it are not, expected at most {_MOST_ABSENT}"
                )
            for index in range(count):
                first = self._nodes[0]
                known_partition = known_topic.partitions.get(index, KnownPartition([first], first))
                replicas, leader = known_partition.replicas, known_partition.leader
                if leader not in self.folders:
                    raise DataFolderError(
                        f"{topic.name}-{index} is led by node {leader}, expected one of {self._nodes}"
                    )
                log = self._log(topic, index, known_partition, folders.get((known_topic.name, index)))
                topic.partitions.append(ClusterPartition(topic.name, index, replicas, leader, log))
            cluster.add_topic(topic)
            if known_topic.id in self._image.topics:
                self.topic_changed(topic)  # a log may have newer epochs than the metadata say

    def _load_facts(self, cluster: ClusterState) -> None:
        facts = list(self._image.facts.values())
        supported, path = cluster.features.supported, self.folders[self._nodes[0]].path
        for fact in facts:
            if isinstance(fact, FeatureLevelRecord) and fact.feature_level:
                feature = supported.get(fact.name)
                if feature is None or fact.feature_level > feature.newest:
                    newest = "no such feature" if feature is None else f"at most level {feature.newest}"
                    raise DataFolderError(
                        f"{path} is of a cluster with level {fact.feature_level} of {fact.name},"
                        f" expected {newest}, as in Kafka {cluster.config.release}"
                    )
        try:
            apply(cluster, facts)
        except BadSetting as error:
            raise DataFolderError(f"{path}: {METADATA_TOPIC}: {error}") from None

    def _unnamed_topics(
        self, folders: dict[tuple[str, int], Path], known: set[str]
    ) -> Iterator[tuple[str, UUID]]:
        """Topics that have folders and that the metadata does not name."""
        for (name, _), folder in folders.items():
            if name not in known:
                known.add(name)
                yield name, self._topic_id(folder)

    def _topic_id(self, folder: Path) -> UUID:
        """The id of a topic that the metadata does not name; a new one where a loss of power took it."""
        try:
            return read_topic_id(folder) or uuid4()
        except DataFolderError:
            topic_id = uuid4()
            write_topic_id(folder, topic_id)
            return topic_id

    def _log(
        self, topic: ClusterTopic, index: int, known: KnownPartition, folder: Path | None
    ) -> PartitionLog:
        if folder is None:
            return self.create(topic, index, known.leader, known.leader_epoch)
        start = self.folders[known.leader].starts.get((topic.name, index), 0)
        unsynced = self._unsynced(known.leader, topic.name, index, topic.flush_messages)
        log = load_log(folder, topic.segment_rules(), start, known.leader_epoch, unsynced)
        return self._watched(topic, index, log)

    def _watched(self, topic: ClusterTopic, index: int, log: PartitionLog) -> PartitionLog:
        self._opened[log] = None
        assert self._flushes is not None
        self._flushes.watch(topic, index, log)

        def changed(size: int) -> None:
            if not size:  # it may have been truncated
                for folder in self.folders.values():
                    folder.lower_recovery((topic.name, index), log.end_offset)

        log.listeners[_RECOVERY] = changed
        changed(0)
        return log

    # --- as the cluster goes on ---

    def create(self, topic: ClusterTopic, index: int, leader: int, leader_epoch: int = 0) -> PartitionLog:
        folder = self.folders[leader].path / f"{topic.name}-{index}"
        log = create_log(folder, topic.id, topic.segment_rules(), leader_epoch)
        try:
            return self._watched(topic, index, log)
        except OSError:
            del self._opened[log]
            log.delete()
            raise

    def started(self, *partitions: ClusterPartition) -> None:
        assert self._cluster is not None
        for leader in {partition.leader for partition in partitions}:
            self.folders[leader].write_starts(
                {
                    (element.topic, element.index): element.log.start_offset
                    for topic in self._cluster.topics.values()
                    for element in topic.partitions
                    if element.leader == leader
                }
            )

    def topic_changed(self, topic: ClusterTopic) -> None:
        assert self._flushes is not None
        self._append(self._writer.topic(topic))
        self._writer.written(topic)
        self._flushes.settings_changed(topic)
        is_flushed = min(topic.flush_messages, topic.flush_ms) < UNBOUNDED
        if is_flushed or topic.id in self._flushed:
            self._sync()
        (self._flushed.add if is_flushed else self._flushed.discard)(topic.id)

    def partition_changed(self, topic: ClusterTopic, partition: ClusterPartition) -> None:
        self._append(self._writer.partition(topic, partition))
        self._writer.partition_written(topic, partition)

    def growth_undone(self, topic: ClusterTopic, count: int) -> None:
        self._forget(topic, count)
        if not count and self._writer.knows(topic):
            with suppress(OSError):
                self._append(self._writer.removed(topic))

    def _forget(self, topic: ClusterTopic, first: int = 0) -> None:
        """The partitions of a topic are not kept any more, from this one on."""
        for partition in topic.partitions[first:]:
            self._opened.pop(partition.log, None)
        if self._flushes is not None:
            self._flushes.removed(topic, first)

    def topic_removed(self, topic: ClusterTopic) -> None:
        self._forget(topic)
        self._append(self._writer.removed(topic))
        if topic.id in self._flushed:
            self._flushed.discard(topic.id)
            self._sync()
            for folder in self.folders.values():
                sync_folder(folder.path)

    def leader_moved(self, partition: ClusterPartition, old: int) -> None:
        partition.log.relocate(self.folders[partition.leader].path / f"{partition.topic}-{partition.index}")
        if partition.log.start_offset:
            self.started(partition)

    def directory(self, node: int) -> LogDirectory:
        return LogDirectory(str(self.folders[node].path.resolve()), exists=True)

    @property
    def metadata_end(self) -> int:
        return self._metadata.end_offset

    def facts_changed(self, records: Sequence[Message]) -> None:
        self._append([log_record(record) for record in records])
        self._sync()  # an ACL that was made must not be gone

    def producer_ids(self, following: int) -> None:
        self._append(self._writer.producer_ids(self._nodes[0], following))
        self._writer.producer_ids_written(following)

    def _append(self, records: list[LogRecord]) -> None:
        if not records:
            return
        _write(self._metadata, records, self._clock())

    def _sync(self) -> None:
        """Force the metadata to the disk. Raises `OSError`."""
        try:
            self._metadata.sync()
        except RefusedRecords as refusal:
            raise OSError(refusal.message) from None

    # --- at the end ---

    def close(self, topics: Iterable[ClusterTopic]) -> None:
        known = list(topics)
        self._metadata.close()
        for node, folder in self.folders.items():
            logs = {
                (partition.topic, partition.index): partition.log
                for topic in known
                for partition in topic.partitions
                if partition.leader == node
            }
            if all(log.synced_offset >= log.end_offset for log in (*logs.values(), self._metadata)):
                folder.close({place: log.end_offset for place, log in logs.items()})
            else:  # its disk has failed
                folder.abandon()

    def abandon(self) -> None:
        """Close all files as if the process had ended."""
        self._let_go()
        for folder in self.folders.values():
            folder.abandon()

    def refuse(self) -> None:
        """Close all files of a folder that cannot be used."""
        self._let_go()
        for folder in self.folders.values():
            folder.refuse()

    def _let_go(self) -> None:
        for log in self._opened:
            log.let_go()
        metadata = getattr(self, "_metadata", None)
        if metadata is not None:
            metadata.let_go()


def _write(log: PartitionLog, records: list[LogRecord], now: int) -> None:
    """Append records of the metadata. Raises `OSError`."""
    pairs = (encode_log_record(record) for record in records)
    data = encode_batch([Record(timestamp=now, key=key, value=value) for key, value in pairs], base_offset=0)
    try:
        log.append_own(data)
    except RefusedRecords as refusal:
        raise OSError(refusal.message) from None


def _metadata(log: PartitionLog) -> Iterator[LogRecord]:
    for batch in log.batches():
        if batch.is_control:
            continue
        try:
            for record in batch:
                entry = open_log_record(METADATA_TOPIC, record)
                if entry is not None:
                    yield entry
        except CoordwireError as error:
            raise DataFolderError(f"{METADATA_TOPIC}: {error}") from None
