"""The state of a cluster without sockets: nodes, topics with their logs, settings, producer ids, groups.

Rules: no I/O but that of the logs, and no clock of its own: `clock` gives the time in milliseconds since
1970, `new_uuid` all that is random. What clients may do is decided in `coordwire.broker.handlers`; here it is
done. All nodes share this object, as they are in one process.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID, uuid4

from coordwire.broker.cluster.features import FeatureLevels
from coordwire.broker.cluster.fetch_sessions import FetchSessions
from coordwire.broker.cluster.group_coordinators import GroupCoordinators
from coordwire.broker.cluster.log_places import LogPlace, MemoryLogs
from coordwire.broker.cluster.nodes import ClusterNode
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import (
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    ClusterPartition,
    ClusterTopic,
    metric_name,
)
from coordwire.broker.cluster.transaction_coordinators import TransactionCoordinators
from coordwire.broker.log.data_folder import short_id
from coordwire.broker.security.scram_credentials import ScramCredentials
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.settings.settings import GROUP_SETTINGS, TOPIC_SETTINGS, Settings
from coordwire.coordinator import TopicImage, TopicsImage
from coordwire.coordinator.timers import Timers

__all__ = ["ClusterState"]

_log = logging.getLogger("coordwire.broker")


class ClusterState:
    """A cluster. nodes: by id; topics: by name. missing_libraries: why records were stored unread."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        config: BrokerConfig | None = None,
        nodes: Sequence[int] = (1,),
        new_uuid: Callable[[], UUID] = uuid4,
        logs: LogPlace | None = None,
        cluster_id: str | None = None,
    ) -> None:
        self.config = config or BrokerConfig()
        self.clock = clock
        self.new_uuid = new_uuid
        self.logs: LogPlace = logs or MemoryLogs()
        self.cluster_id = cluster_id or short_id(new_uuid())
        racks = dict(zip(nodes, self.config.racks, strict=False))
        self.nodes = {node: ClusterNode(node, rack=racks.get(node)) for node in nodes}
        self.topics: dict[str, ClusterTopic] = {}
        self.topics_by_id: dict[UUID, ClusterTopic] = {}
        self.group_settings: dict[str, Settings] = {}
        self.broker_settings: dict[str, dict[str, str]] = {}
        self.timers: Timers[None] = Timers()
        self.next_producer_id = 0
        self._image = TopicsImage(version=0)
        self._changed_topics: dict[str, None] = {}
        self._batches = 0
        self._alike: dict[str, dict[str, None]] = {}
        self._placed = 0
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.features = FeatureLevels()
        self.scram = ScramCredentials(self.config.users)
        self.authorizer = self.config.made_authorizer()
        self.fetch_sessions = {
            node: FetchSessions(self.config.fetch_sessions, self._session_id) for node in nodes
        }
        self.replication = Replication(self)
        self.groups = GroupCoordinators(self)
        self.transactions = TransactionCoordinators(self)
        self.missing_libraries: set[str] = set()

    def stored_unread(self, reason: str) -> None:
        """Records were stored that a codec's library is missing for; the first time, the log says so."""
        if reason not in self.missing_libraries:
            self.missing_libraries.add(reason)
            _log.warning("records are stored as they came, and not checked: %s", reason)

    def _session_id(self) -> int:
        return self.new_uuid().int & 0x7FFFFFFF

    @property
    def controller_id(self) -> int:
        return min(self.nodes)

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next, in milliseconds since 1970."""
        dues = (self.timers.next_deadline(), self.groups.next_deadline(), self.transactions.next_deadline())
        return min((due for due in dues if due is not None), default=None)

    def advance(self) -> None:
        """Run what is due."""
        now = self.clock()
        while (due := self.timers.next_deadline()) is not None and due <= now:
            self.timers.pop()()
        self.groups.advance(now)
        self.transactions.advance(now)

    # --- topics ---

    def partition(self, topic: str, index: int) -> ClusterPartition | None:
        found = self.topics.get(topic)
        return None if found is None else found.partition(index)

    def create_topic(
        self,
        name: str,
        partitions: int,
        *,
        replication_factor: int = 1,
        settings: Mapping[str, str] | None = None,
        assignments: Sequence[Sequence[int]] | None = None,
        topic_id: UUID | None = None,
    ) -> ClusterTopic:
        """Make a topic; the caller has checked that it may be. Raises `OSError`."""
        topic = ClusterTopic(name, topic_id or self.new_uuid(), self.topic_settings(settings))
        self._grow(topic, partitions, replication_factor, assignments)
        self.add_topic(topic)
        self.logs.topic_changed(topic)
        return topic

    def topic_settings(self, own: Mapping[str, str] | None = None) -> Settings:
        """Settings of a topic that has these of its own."""
        settings = Settings(TOPIC_SETTINGS, self.config.topic_defaults)
        settings.own.update(own or {})
        return settings

    def add_topic(self, topic: ClusterTopic) -> None:
        """Take up a topic with its logs."""
        self.topics[topic.name] = topic
        self.topics_by_id[topic.id] = topic
        self._alike.setdefault(metric_name(topic.name), {})[topic.name] = None
        self.replication.topic_changed(topic)
        self._topic_changed(topic)

    def topic_alike(self, name: str) -> str | None:
        """A topic that has the same name in metrics."""
        return next(iter(self._alike.get(metric_name(name), ())), None)

    def _grow(
        self, topic: ClusterTopic, count: int, factor: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        nodes = self._places(factor)
        for index in range(len(topic.partitions), count):
            if assignments:
                replicas = list(assignments[index])
            else:
                first = self._placed
                self._placed += 1
                replicas = [nodes[(first + step) % len(nodes)] for step in range(factor)]
            leader = next((node for node in replicas if self.replication.is_online(node)), None)
            if leader is None:
                raise OSError(errno.EIO, f"{topic.name}-{index} has no replica with a log directory")
            log = self.logs.create(topic, index, leader)
            topic.partitions.append(ClusterPartition(topic.name, index, replicas, leader, log))

    def _places(self, factor: int) -> list[int]:
        """The nodes in the order in which they get replicas: from rack to rack, those that are online."""
        nodes = sorted(self.nodes)
        online = [node for node in nodes if self.replication.is_online(node)]
        racks: Counter[str | None] = Counter()
        order: dict[int, int] = {}
        for node in nodes:
            rack = self.nodes[node].rack
            order[node] = racks[rack] if rack is not None else 0
            racks[rack] += 1
        return sorted(online if len(online) >= factor else nodes, key=order.__getitem__)

    def add_partitions(
        self, topic: ClusterTopic, count: int, assignments: Sequence[Sequence[int]] | None = None
    ) -> None:
        """Let a topic have so many partitions. Raises `OSError`."""
        factor = len(topic.partitions[0].replicas)
        known = [partition.replicas for partition in topic.partitions]
        self._grow(topic, count, factor, [*known, *assignments] if assignments else None)
        self.replication.topic_changed(topic)
        self._topic_changed(topic)
        self.logs.topic_changed(topic)

    def delete_topic(self, topic: ClusterTopic) -> None:
        del self.topics[topic.name], self.topics_by_id[topic.id]
        alike = self._alike[metric_name(topic.name)]
        del alike[topic.name]
        if not alike:
            del self._alike[metric_name(topic.name)]
        for partition in topic.partitions:
            partition.log.delete()
        self.logs.topic_removed(topic)
        self._topic_changed(topic)

    @contextmanager
    def topics_changing(self) -> Iterator[None]:
        """Whatever changes inside is one change for groups, as what a Kafka controller writes at once is."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
            self._update_groups()

    def _topic_changed(self, topic: ClusterTopic) -> None:
        self._changed_topics[topic.name] = None
        self._update_groups()

    def _update_groups(self) -> None:
        """Groups see the topics as they are now."""
        if self._changed_topics and not self._batches:
            self.groups.set_topics()

    def image(self) -> TopicsImage:
        """The topics, as coordinators see them; made from the image before by what has changed."""
        if self._changed_topics:
            known = map(self.topics.get, self._changed_topics)
            topics = {
                name: None if topic is None else TopicImage(topic.id, name, len(topic.partitions))
                for name, topic in zip(self._changed_topics, known, strict=True)
            }
            self._image = self._image.changed(topics, version=(self._image.version or 0) + len(topics))
            self._changed_topics.clear()
        return self._image

    def offsets_topic(self) -> ClusterTopic:
        """The topic that groups are kept in; made when it is first needed, as Kafka does."""
        topic = self.topics.get(OFFSETS_TOPIC)
        if topic is None:
            topic = self.create_topic(
                OFFSETS_TOPIC,
                self.config.offsets_partitions,
                replication_factor=min(3, len(self.nodes)),
                settings={
                    "cleanup.policy": "compact",
                    "compression.type": "producer",
                    "segment.bytes": "104857600",
                },
            )
        return topic

    def transactions_topic(self) -> ClusterTopic:
        """The topic that transactions are kept in; made when it is first needed, as Kafka does."""
        topic = self.topics.get(TRANSACTIONS_TOPIC)
        if topic is None:
            topic = self.create_topic(
                TRANSACTIONS_TOPIC,
                self.config.transactions_partitions,
                replication_factor=min(3, len(self.nodes)),
                settings={
                    "cleanup.policy": "compact",
                    "compression.type": "uncompressed",
                    "segment.bytes": "104857600",
                    "unclean.leader.election.enable": "false",
                },
            )
        return topic

    def move_leader(self, partition: ClusterPartition, node: int) -> None:
        """Another node leads a partition from now on, in a new epoch. Raises `OSError`.

        What is parked there is answered; coordinators of the partition are loaded anew by the new leader.
        """
        old = partition.leader
        if node == old:
            return
        partition.leader = node
        try:
            self.logs.leader_moved(partition, old)
            partition.log.lead(partition.leader_epoch + 1)
            self.logs.partition_changed(self.topics[partition.topic], partition)
        except OSError:
            partition.leader = old
            raise
        self._reload(partition)

    def begin_epoch(self, partition: ClusterPartition) -> None:
        """The same leader begins a new epoch, or none does. Raises `OSError`."""
        partition.log.lead(partition.leader_epoch + 1)
        self.logs.partition_changed(self.topics[partition.topic], partition)
        self._reload(partition)

    def _reload(self, partition: ClusterPartition) -> None:
        """Coordinators of the partition are loaded anew."""
        if partition.topic == OFFSETS_TOPIC:
            self.groups.unload(partition.index)
        elif partition.topic == TRANSACTIONS_TOPIC:
            self.transactions.reload(partition.index)

    # --- settings, ids ---

    def settings_of_group(self, group_id: str) -> Settings:
        """A group's settings, to read."""
        known = self.group_settings.get(group_id)
        if known is None:
            consumer = self.config.coordinator.consumer
            known = Settings(
                GROUP_SETTINGS,
                {
                    "consumer.assignment.interval.ms": str(consumer.assignment_interval_ms),
                    "consumer.heartbeat.interval.ms": str(consumer.heartbeat_interval_ms),
                    "consumer.session.timeout.ms": str(consumer.session_timeout_ms),
                },
            )
        return known

    def new_producer_id(self) -> int:
        """An id that no producer has had."""
        found = self.next_producer_id
        self.next_producer_id += 1
        self.logs.producer_ids(self.next_producer_id)
        return found

    def close(self) -> None:
        """End in order: the logs are closed."""
        self.timers = Timers()
        self.groups.close()
        self.transactions.close()
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.log.close()
        self.logs.close(self)
