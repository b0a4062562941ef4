"""`ClusterMoves`: leaders and coordinators move, nodes go down and come back, logs lose records.

    broker.moves.leader("orders", 0, to=2)
    broker.moves.coordinator(group="g", to=3)
    broker.moves.stop_node(2)                 `await` it in the broker's own loop
    broker.moves.truncate("orders", 0, 5)
    broker.moves.clean("orders")
    broker.moves.fail_log_dir(2)

Strategy: what a controller would decide is done to the cluster's state at once, in the broker's own loop,
whichever thread asks. Rules: every move begins a new leader epoch, and what waited for the old leader is
answered. A node that is down is not in Metadata; a partition without a replica elsewhere has no leader until
it is back, and its records are there then.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.facts import ClusterNode, LogDirState
from coordwire.broker.cluster.log_cleaning import clean_all, clean_topic
from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.broker.injection.waits import Settled, Waits

T = TypeVar("T")

_TIMEOUT = 10.0


class _MovedBroker(Protocol):
    """The broker, as far as moves need it."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    async def listen(self, number: int) -> None:
        """Let a node listen, on the port that it had."""

    async def end_node(self, number: int) -> None:
        """End a node's listener and its connections."""

    def handled(self) -> None:
        """Deadlines may have changed."""


class ClusterMoves:
    """The moves of one broker, from any thread."""

    def __init__(self, broker: _MovedBroker, waits: Waits) -> None:
        self._broker = broker
        self._waits = waits
        self._down: dict[int, ClusterNode] = {}

    # --- leaders, coordinators ---

    def leader(self, topic: str, partition: int, *, to: int) -> int:
        """Let another node lead a partition; the new leader epoch. Raises `LookupError`."""

        def move() -> int:
            entry = self._partition(topic, partition)
            self._lead(entry, to)
            return entry.leader_epoch

        return self._run(move)

    def coordinator(self, *, to: int, group: str | None = None, transactional_id: str | None = None) -> None:
        """Let another node coordinate a group or a transactional id, and what shares its partition."""
        self._run(lambda: self._lead(self._coordinated(group, transactional_id), to))

    def coordinator_of(self, *, group: str | None = None, transactional_id: str | None = None) -> int:
        """The node that coordinates a group or a transactional id; -1 for none."""
        return self._run(lambda: self._coordinated(group, transactional_id).leader)

    def leader_of(self, topic: str, partition: int) -> int:
        """The node that leads a partition; -1 for none."""
        return self._run(lambda: self._partition(topic, partition).leader)

    def _coordinated(self, group: str | None, transactional_id: str | None) -> ClusterPartition:
        """The partition of the coordinator's log in which it is."""
        if (group is None) == (transactional_id is None):
            raise TypeError("expected a group or a transactional id")
        cluster = self._broker.cluster
        if group is not None:
            return cluster.offsets_topic().partitions[cluster.groups.partition_of(group)]
        coordinators = cluster.transactions
        return cluster.transactions_topic().partitions[coordinators.partition_of(transactional_id or "")]

    def _lead(self, partition: ClusterPartition, node: int) -> None:
        cluster = self._broker.cluster
        if node not in cluster.nodes:
            known = ", ".join(map(str, sorted(cluster.nodes)))
            raise LookupError(f"expected a node that is up ({known}), got {node}")
        if node not in partition.replicas:
            partition.replicas = [
                node if replica == partition.leader else replica for replica in partition.replicas
            ]
        cluster.replication.move_leader(partition, node)
        cluster.replication.topic_changed(cluster.topics[partition.topic])

    def _partition(self, topic: str, index: int) -> ClusterPartition:
        entry = self._broker.cluster.partition(topic, index)
        if entry is None:
            raise LookupError(f"expected a partition of the cluster, got {topic}-{index}")
        return entry

    # --- records ---

    def truncate(self, topic: str, partition: int, offset: int) -> int:
        """Let a partition lose its records from an offset on, as where a replica leads that lacked them.

        Whole batches go; gives where the log ends then. Raises `LookupError`, `OSError`.
        """

        def cut() -> int:
            entry = self._partition(topic, partition)
            start = entry.log.start_offset
            entry.log.truncate(offset)
            if entry.log.start_offset != start:
                self._broker.cluster.logs.started(entry)
            self._broker.cluster.replication.begin_epoch(entry)
            return entry.log.end_offset

        return self._run(cut)

    def clean(self, topic: str | None = None) -> None:
        """Do now what a topic's retention and compaction ask for; None for all topics.

        Raises `LookupError`, and `ValueError` for a topic that is to be compacted and is on disk.
        """

        def clean() -> None:
            cluster = self._broker.cluster
            if topic is None:
                clean_all(cluster)
                return
            entry = self._partition(topic, 0)
            known = cluster.topics[topic]
            if "compact" in known.settings.items("cleanup.policy") and not entry.log.can_compact:
                raise ValueError(f"{topic} is on disk, where it cannot be compacted: only in memory")
            clean_topic(cluster, known)

        self._run(clean)

    # --- log directories ---

    def fail_log_dir(self, node: int) -> None:
        """Let a node's log directory go offline, as a disk that fails. Raises `LookupError`.

        Its partitions get KAFKA_STORAGE_ERROR there; replicas on other nodes lead them, if there are any.
        """
        self._set_log_dir(node, LogDirState.OFFLINE)

    def fill_log_dir(self, node: int) -> None:
        """Let a node's log directory be full: the next append fails and takes it offline.

        Raises `LookupError`.
        """
        self._set_log_dir(node, LogDirState.FULL)

    def restore_log_dir(self, node: int) -> None:
        """Let a node's log directory be online, with what it had. Raises `LookupError`."""
        self._set_log_dir(node, LogDirState.ONLINE)

    def _set_log_dir(self, node: int, state: LogDirState) -> None:
        def change() -> None:
            cluster = self._broker.cluster
            known = cluster.nodes.get(node)
            if known is None:
                raise LookupError(f"expected a node that is up, got {node}")
            known.log_dir = state
            cluster.replication.nodes_changed()

        self._run(change)

    # --- nodes ---

    def stop_node(self, node: int) -> Settled[None]:
        """Stop a node: its connections end, other replicas lead its partitions. Raises `LookupError`."""

        async def stop() -> None:
            cluster = self._broker.cluster
            if node not in cluster.nodes:
                raise LookupError(f"expected a node that is up, got {node}")
            removed = self._down[node] = cluster.nodes.pop(node)
            cluster.fetch_sessions[node].clear()
            await self._broker.end_node(removed.id)
            cluster.replication.nodes_changed()

        return self._settle(stop, f"node {node} to be down")

    def start_node(self, node: int) -> Settled[None]:
        """Start a node that was stopped, on the port that it had. Raises `LookupError`, `OSError`."""

        async def start() -> None:
            cluster = self._broker.cluster
            if node not in self._down:
                raise LookupError(f"expected a node that is down, got {node}")
            back = self._down[node]
            await self._broker.listen(node)
            del self._down[node]
            cluster.nodes[node] = back
            for number in sorted(cluster.nodes):  # in their order, as Metadata lists them
                cluster.nodes[number] = cluster.nodes.pop(number)
            cluster.replication.nodes_changed()

        return self._settle(start, f"node {node} to be up")

    def forget_nodes(self) -> None:
        """Forget which nodes are down."""
        self._down.clear()

    # --- where it runs ---

    def _run(self, action: Callable[[], T]) -> T:
        """Do something in the broker's loop, and wait for it."""
        loop = self._broker.loop

        def run() -> T:
            try:
                return action()
            finally:
                self._broker.handled()

        if _running_loop() is loop:
            return run()

        async def in_loop() -> T:
            return run()

        return asyncio.run_coroutine_threadsafe(in_loop(), loop).result(_TIMEOUT)

    def _settle(self, make: Callable[[], Awaitable[None]], condition: str) -> Settled[None]:
        """Done when the call returns; to be awaited in the broker's own loop."""

        async def run() -> None:
            try:
                await make()
            finally:
                self._broker.handled()

        loop = self._broker.loop
        future: concurrent.futures.Future[None] = asyncio.run_coroutine_threadsafe(run(), loop)
        if _running_loop() is loop:
            return self._waits.settle(future, _TIMEOUT, condition)
        return Settled(future, _TIMEOUT, condition).block()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
