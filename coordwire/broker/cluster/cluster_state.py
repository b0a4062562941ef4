"""The state of a cluster without sockets: its facts, replication and coordinators, and changes of topics.

Strategy: replication and coordinators take the facts and functions of the cluster; they do not import it. All
nodes share this object, as they are in one process. Rules: no I/O but that of the logs. Handlers decide what
clients may do.
"""

from __future__ import annotations

import errno
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID, uuid4

from coordwire.broker.cluster.dead_letters import DeadLetterQueues
from coordwire.broker.cluster.fact_records import apply
from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.group_coordinators import GroupCoordinators
from coordwire.broker.cluster.log_places import LogPlace
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.share_partitions import SharePartitions
from coordwire.broker.cluster.share_state_coordinators import ShareStateCoordinators
from coordwire.broker.cluster.topics import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    ClusterPartition,
    ClusterTopic,
    metric_name,
)
from coordwire.broker.cluster.transaction_coordinators import TransactionCoordinators
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.codec import Message
from coordwire.coordinator.timers import Timers, earlier
from coordwire.errors import counted

_log = logging.getLogger("coordwire.broker")


class ClusterState(ClusterFacts):
    """A cluster: its facts, and what changes them.

    >>> from coordwire.broker import ClusterState
    >>> cluster = ClusterState(clock=lambda: 0)
    >>> topic = cluster.create_topic("orders", 6)
    >>> cluster
    <ClusterState: 1 node, 1 topic>
    """

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
        super().__init__(
            clock=clock, config=config, nodes=nodes, new_uuid=new_uuid, logs=logs, cluster_id=cluster_id
        )
        self.replication = Replication(self, self._reload)
        self.share_states = ShareStateCoordinators(self, self.replication, self.share_state_topic)
        self.share_partitions = SharePartitions(
            self, self.share_states, DeadLetterQueues(self, self.replication, self.create_topic)
        )
        self.groups = GroupCoordinators(self, self.replication, self.offsets_topic, self.share_states.ask)
        self.transactions = TransactionCoordinators(
            self, self.replication, self.groups, self.transactions_topic
        )
        self._batches = 0
        """How many `topics_changing` are open."""
        self._placed = 0

    def __repr__(self) -> str:
        topics = counted(len(self.topics), "topic")
        return f"<ClusterState: {counted(len(self.nodes), 'node')}, {topics}>"

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next, in milliseconds since 1970."""
        return earlier(
            earlier(self.timers.next_deadline(), self.groups.next_deadline()),
            self.transactions.next_deadline(),
        )

    def advance(self) -> None:
        """Run what is due."""
        now = self.clock()
        while (due := self.timers.next_deadline()) is not None and due <= now:
            self.timers.pop()()
        self.groups.advance(now)
        self.transactions.advance(now)

    # --- facts ---

    def change(self, records: Sequence[Message]) -> None:
        """Change facts as records say (`fact_records`), for good. Raises `OSError`."""
        self.logs.facts_changed(records)
        apply(self, records)

    # --- topics ---

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
        with self._growing(topic):
            self._grow(topic, partitions, replication_factor, assignments)
            self._name(topic)
            self.replication.topic_changed(topic)
            self.logs.topic_changed(topic)
        self._topic_changed(topic)
        return topic

    def add_topic(self, topic: ClusterTopic) -> None:
        """Add a topic that the logs have."""
        self._name(topic)
        self.replication.topic_changed(topic)
        self._topic_changed(topic)

    def _name(self, topic: ClusterTopic) -> None:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.id] = topic
        self.names_by_metric.setdefault(metric_name(topic.name), {})[topic.name] = None

    def _unname(self, topic: ClusterTopic) -> None:
        del self.topics[topic.name], self.topics_by_id[topic.id]
        alike = self.names_by_metric[metric_name(topic.name)]
        del alike[topic.name]
        if not alike:
            del self.names_by_metric[metric_name(topic.name)]

    @contextmanager
    def _growing(self, topic: ClusterTopic) -> Iterator[None]:
        """A topic grows, or has the partitions of before; one that had none is not there."""
        count = len(topic.partitions)
        try:
            yield
        except OSError:
            self.logs.growth_undone(topic, count)
            for partition in topic.partitions[count:]:
                partition.log.delete()
            del topic.partitions[count:]
            if not count and topic.id in self.topics_by_id:
                self._unname(topic)
            raise

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
            leader = next((node for node in replicas if self.is_online(node)), None)
            if leader is None:
                raise OSError(errno.EIO, f"{topic.name}-{index} has no replica with a log directory")
            log = self.logs.create(topic, index, leader)
            topic.partitions.append(ClusterPartition(topic.name, index, replicas, leader, log))

    def _places(self, factor: int) -> list[int]:
        """The nodes in the order in which they get replicas: from rack to rack, those that are online."""
        nodes = sorted(self.nodes)
        online = [node for node in nodes if self.is_online(node)]
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
        """Grow a topic to `count` partitions. Raises `OSError`."""
        factor = len(topic.partitions[0].replicas)
        known = [partition.replicas for partition in topic.partitions]
        with self._growing(topic):
            self._grow(topic, count, factor, [*known, *assignments] if assignments else None)
            self.replication.topic_changed(topic)
            self.logs.topic_changed(topic)
        self._topic_changed(topic)

    def delete_topic(self, topic: ClusterTopic) -> None:
        """Delete a topic; with an internal one goes what its coordinators know. Raises `OSError`."""
        if topic.name == OFFSETS_TOPIC:
            self.groups.delete()
        for partition in topic.partitions if topic.is_internal else ():
            self._unload(partition)
        self._unname(topic)
        for partition in topic.partitions:
            partition.log.delete()
            self.share_partitions.forget(partition)
        self._topic_changed(topic)
        self.logs.topic_removed(topic)

    @contextmanager
    def topics_changing(self) -> Iterator[None]:
        """Let groups see all changes inside as one, as they see what a Kafka controller writes at once."""
        self._batches += 1
        try:
            yield
        finally:
            self._batches -= 1
            self._update_groups()

    def _topic_changed(self, topic: ClusterTopic) -> None:
        self.changed_topics[topic.name] = None
        self._update_groups()

    def _update_groups(self) -> None:
        """Give groups the topics as they are now."""
        if self.changed_topics and not self._batches:
            self.groups.set_topics()
            self.share_states.set_topics()

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

    def share_state_topic(self) -> ClusterTopic:
        """The topic that share groups' positions are kept in; made when it is first needed, as Kafka does."""
        topic = self.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            topic = self.create_topic(
                SHARE_STATE_TOPIC,
                self.config.share_state_partitions,
                replication_factor=min(3, len(self.nodes)),
                settings={
                    "cleanup.policy": "delete",
                    "compression.type": "producer",
                    "retention.ms": "-1",
                    "segment.bytes": "104857600",
                },
            )
        return topic

    def _reload(self, partition: ClusterPartition) -> None:
        """Load the coordinators of a partition again."""
        self.share_partitions.forget(partition)
        if partition.topic == OFFSETS_TOPIC:
            self.groups.unload(partition.index)
        elif partition.topic == TRANSACTIONS_TOPIC:
            self.transactions.reload(partition.index)
        elif partition.topic == SHARE_STATE_TOPIC:
            self.share_states.unload(partition.index)

    def _unload(self, partition: ClusterPartition) -> None:
        """Have no node coordinate a partition."""
        if partition.topic == TRANSACTIONS_TOPIC:
            self.transactions.unload(partition.index)
        elif partition.topic == SHARE_STATE_TOPIC:
            self.share_states.unload(partition.index)

    # --- the end ---

    def close(self) -> None:
        """Drop what waits, and close the logs."""
        self.timers = Timers()
        self.groups.close()
        self.transactions.close()
        self.share_partitions.close()
        self.share_states.close()
        for topic in self.topics.values():
            for partition in topic.partitions:
                partition.log.close()
        self.logs.close(self.topics.values())
