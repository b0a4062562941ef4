"""Replicas: which are in sync, who leads, how far records are committed; log directories that fail.

Strategy: what Kafka's controller and leaders decide together is worked out again for each partition when a
node, a log directory or a setting has changed. As all nodes share a partition's log, a replica that comes
back is in sync at once. Rules: a leader is a replica in sync, unless the topic allows others; without one,
the last leader stays in sync. With fewer replicas in sync than `min.insync.replicas` asks for, at most as
many as there are, the high watermark stays. A node has one log directory, and goes on without it; a Kafka
broker that has no other ends then.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable

from coordwire.broker.cluster.facts import ClusterFacts, LogDirState
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.effects import Append
from coordwire.coordinator.transactions.effects import TransactionAppend
from coordwire.enums import ErrorCode

_log = logging.getLogger("coordwire.broker")


class Replication:
    """The replicas of a cluster's partitions. reload: is called with each that has a new leader or epoch."""

    def __init__(self, facts: ClusterFacts, reload: Callable[[ClusterPartition], None]) -> None:
        self._facts = facts
        self._reload = reload

    # --- replicas ---

    def online(self, partition: ClusterPartition) -> list[int]:
        """The replicas of a partition that are online."""
        return [node for node in partition.replicas if self._facts.is_online(node)]

    def read_replica(self, partition: ClusterPartition, rack: str, offset: int) -> int | None:
        """The follower that a consumer in a rack is to read an offset from (KIP-392); None for the leader."""
        facts, log = self._facts, partition.log
        if not (rack and facts.config.is_rack_aware and log.start_offset <= offset <= log.end_offset):
            return None
        near = [node for node in partition.isr if facts.nodes[node].rack == rack]
        return None if not near or partition.leader in near else max(near)

    def check_in_sync(self, partition: ClusterPartition) -> None:
        """Raise `RefusedRecords` if too few replicas are in sync for records that all of them confirm."""
        minimum = self._facts.topics[partition.topic].min_in_sync(partition)
        if len(partition.isr) < minimum:
            raise RefusedRecords(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{partition.topic}-{partition.index} has {len(partition.isr)} replicas in sync"
                f" ({', '.join(map(str, partition.isr))}), and min.insync.replicas asks for {minimum}",
            )

    def append(self, partition: ClusterPartition, effect: Append | TransactionAppend) -> int:
        """Append a coordinator's records to its log; the error code, 0 for none."""
        try:
            self.check_in_sync(partition)
            partition.log.append_own(effect.batch(timestamp=self._facts.clock(), base_offset=0))
        except RefusedRecords as refusal:
            return refusal.code
        return 0

    # --- what has changed ---

    def nodes_changed(self) -> None:
        """Work out all partitions again: nodes or log directories have changed."""
        for topic in list(self._facts.topics.values()):
            self.topic_changed(topic)

    def topic_changed(self, topic: ClusterTopic) -> None:
        """Work out a topic that is new or has other partitions, replicas or settings."""
        for partition in topic.partitions:
            self.partition_changed(topic, partition)

    def partition_changed(self, topic: ClusterTopic, partition: ClusterPartition) -> None:
        """Work out a partition's leader, its replicas in sync and its high watermark."""
        if partition.log.watch is None:
            partition.log.watch = _LogDirWatch(self, partition)
        online = self.online(partition)
        if partition.leader not in online:
            candidates = [node for node in online if node in partition.isr]
            if not candidates and topic.settings["unclean.leader.election.enable"] == "true":
                candidates = online
            self._elect(partition, candidates)
        if partition.leader >= 0:
            partition.isr = online
            partition.log.hold(len(online) < topic.min_in_sync(partition))

    def _elect(self, partition: ClusterPartition, candidates: list[int]) -> None:
        """Let the first candidate lead; without candidates the partition has no leader."""
        try:
            if candidates:
                self.move_leader(partition, candidates[0])
                return
        except OSError:
            _log.exception("%s-%d cannot be led by node %d", partition.topic, partition.index, candidates[0])
        if partition.leader >= 0:
            partition.isr = [partition.leader]
            partition.leader = -1
            try:
                self.begin_epoch(partition)
            except OSError:
                _log.exception("the new epoch of %s-%d cannot be stored", partition.topic, partition.index)

    # --- leaders ---

    def move_leader(self, partition: ClusterPartition, node: int) -> None:
        """Another node leads a partition from now on, in a new epoch. Raises `OSError`.

        What is parked there is answered; coordinators of the partition are loaded again by the new leader.
        """
        old = partition.leader
        if node == old:
            return
        partition.leader = node
        try:
            self._facts.logs.leader_moved(partition, old)
            partition.log.lead(partition.leader_epoch + 1)
            self._facts.logs.partition_changed(self._facts.topics[partition.topic], partition)
        except OSError:
            partition.leader = old
            raise
        self._reload(partition)

    def begin_epoch(self, partition: ClusterPartition) -> None:
        """The same leader begins a new epoch, or none does. Raises `OSError`."""
        partition.log.lead(partition.leader_epoch + 1)
        self._facts.logs.partition_changed(self._facts.topics[partition.topic], partition)
        self._reload(partition)

    # --- log directories ---

    def log_dir_failed(self, node: int) -> None:
        """A node's log directory cannot be used. Requests are refused at once; others lead soon."""
        known = self._facts.nodes.get(node)
        if known is not None and known.log_dir is not LogDirState.OFFLINE:
            known.log_dir = LogDirState.OFFLINE
            _log.warning("the log directory of node %d is offline", node)
            self._facts.timers.set(f"log-dir-{node}", self._facts.clock(), self.nodes_changed)

    def check_space(self, partition: ClusterPartition) -> None:
        """Raise `OSError` if the leader's log directory is full or offline; full ones of followers fail."""
        nodes = self._facts.nodes
        for replica in partition.replicas:
            node = nodes.get(replica)
            if node is None or node.log_dir is LogDirState.ONLINE:
                continue
            if replica == partition.leader:
                code = errno.ENOSPC if node.log_dir is LogDirState.FULL else errno.EIO
                raise OSError(code, os.strerror(code), f"the log directory of node {replica}")
            self.log_dir_failed(replica)


class _LogDirWatch:
    """Handle what a log reports of the place that keeps it."""

    def __init__(self, replication: Replication, partition: ClusterPartition) -> None:
        self._replication = replication
        self._partition = partition

    def before_append(self) -> None:
        self._replication.check_space(self._partition)

    def failed(self) -> None:
        self._replication.log_dir_failed(self._partition.leader)
