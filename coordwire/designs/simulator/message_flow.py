"""Messages in the simulation: fetches, and how often each message was delivered.

    flow = MessageFlow(world, groups=["group"], topics={"orders": 6}, brokers=2)
    world.run(60_000)
    flow.deliveries(until=50_000).twice

Strategy: leaders store messages (`partition_logs`); a consumer that is up fetches what it owns at each poll,
from the leaders that it reaches, into the queue of its stream, and consumes at the next poll what waits
there. The queue is cleared, unread, when it owns something else. Rules: a consumer that does not reach the
leader of a partition counts as no reader of it in `World.ownership`. One whose offset is beyond the end of a
log goes on at its end ("largest", Kafka 0.8's default). The flow draws nothing from the world's randomness.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.consumer_streams import ConsumerFetcherManager, MessageStream
from coordwire.designs.simulator.partition_logs import FlowPartition, LeaderLog, PartitionLogs
from coordwire.designs.simulator.world import World

POLL_MS, COMMIT_MS = 100, 5_000


@dataclass(frozen=True, slots=True)
class Deliveries:
    """stored: messages that the leaders have, for each group. twice: deliveries of a message beyond its
    first. never: messages that were not delivered. skipped: those of them after which a later one of their
    partition was delivered, so that no consumer will ask for them. disordered: deliveries by one consumer,
    without a new start, that were not the next message of their partition. lost: messages that crashes of
    leaders took, which stored and the others leave out; lost_unread: those that were not delivered before."""

    stored: int
    twice: int
    never: int
    skipped: int
    disordered: int
    lost: int = 0
    lost_unread: int = 0


@dataclass(slots=True)
class _Consumer:
    """What a consumer's process fetches; another one after each start of the process."""

    process: Any
    fetchers: ConsumerFetcherManager
    stream: MessageStream
    last: dict[FlowPartition, int]
    """The last offset that was delivered since the partition was begun."""
    crashes: dict[FlowPartition, int]
    """How many crashes of its leader there had been when a partition was fetched last."""


class MessageFlow:
    """Messages in a world, from its creation on. Each group reads all of them.

    poll_ms: between two fetches of a consumer. commit_ms: between the commits of consumers whose design has
    no place for offsets, which this keeps for them. The other arguments are those of `PartitionLogs`.
    """

    def __init__(
        self,
        world: World,
        *,
        groups: Iterable[str],
        topics: Mapping[str, int],
        brokers: int,
        poll_ms: int = POLL_MS,
        commit_ms: int = COMMIT_MS,
        **settings: Any,
    ) -> None:
        self.world = world
        self._partitions = PartitionLogs(
            world,
            groups=groups,
            topics=topics,
            brokers=brokers,
            on_move=world.ownership.check_reach,
            **settings,
        )
        self.offsets: dict[FlowPartition, int] = {}
        """Offsets that are kept for designs without a place for them."""
        self._poll_ms, self._commit_ms = poll_ms, commit_ms
        self._consumers: dict[str, _Consumer] = {}
        self._disordered = 0
        world.messages = self
        world.ownership.reaches = self.reaches
        world.on_reach = world.ownership.check_reach
        world.clock.at(world.now + poll_ms, self._poll)
        world.clock.at(world.now + commit_ms, self._commit)

    @property
    def logs(self) -> Mapping[FlowPartition, LeaderLog]:
        return self._partitions.logs

    def leader(self, partition: FlowPartition) -> str:
        """The name of the node that leads a partition when it is up."""
        return self._partitions.leader(partition)

    def reaches(self, owner: str, partition: Hashable) -> bool:
        """Whether the network lets a consumer fetch a partition; yes for one that has no leader now."""
        return not isinstance(partition, tuple) or not self.world.is_cut(
            owner, self.leader(FlowPartition(*partition))
        )

    def deliveries(self, until: int | None = None) -> Deliveries:
        """The deliveries of the messages that were stored until a time (now)."""
        limit = self.world.now if until is None else until
        stored = twice = never = skipped = lost = lost_unread = 0
        for log in self.logs.values():
            counts = [count for time, count in zip(log.times, log.counts, strict=True) if time <= limit]
            last = max((offset for offset, count in enumerate(log.counts) if count), default=-1)
            stored += len(counts)
            twice += sum(max(count - 1, 0) for count in counts)
            never += counts.count(0)
            skipped += sum(not count for count in log.counts[: last + 1])
            lost, lost_unread = lost + log.lost, lost_unread + log.lost_unread
        return Deliveries(stored, twice, never, skipped, self._disordered, lost, lost_unread)

    # --- inside ---

    def _poll(self) -> None:
        for name, node in self.world.nodes.items():
            process = node.process
            if process is not None and not node.is_frozen and hasattr(process, "positions"):
                self._poll_consumer(name, process)
        self.world.clock.at(self.world.now + self._poll_ms, self._poll)

    def _poll_consumer(self, name: str, process: Any) -> None:
        consumer = self._consumers.get(name)
        if consumer is None or consumer.process is not process:
            consumer = _Consumer(process, ConsumerFetcherManager(), MessageStream(1 << 30), {}, {})
            self._consumers[name] = consumer
        positions = {
            DraftPartition("/".join(partition[:2]), str(partition[2])): (FlowPartition(*partition), offset)
            for partition, offset in process.positions().items()
            if partition in self.logs
        }
        fetchers = consumer.fetchers
        if {key: progress.consumed for key, progress in fetchers.partitions.items()} != {
            key: max(offset, 0) for key, (_, offset) in positions.items()
        }:
            self._begin(consumer, positions)
        self._consume(consumer, positions)
        for key in list(fetchers.without_leader):
            leader = self.leader(positions[key][0])
            if self._partitions.is_up(leader) and not self.world.is_cut(name, leader):
                fetchers.leader_found(key, leader)
        for leader, keys in list(fetchers.fetchers.items()):
            if not self._partitions.is_up(leader) or self.world.is_cut(name, leader):
                fetchers.failed(leader)
                continue
            fetchers.failed(leader, {key for key in keys if self.leader(positions[key][0]) != leader})
            for key in sorted(fetchers.fetchers.get(leader, ())):
                place = positions[key][0]
                log = self.logs[place]
                if fetchers.partitions[key].fetched > log.end:
                    process.consumed(place, log.end)
                elif fetchers.fetched(key, log.end, consumer.stream):
                    consumer.crashes[place] = log.crashes

    def _begin(
        self, consumer: _Consumer, positions: Mapping[DraftPartition, tuple[FlowPartition, int]]
    ) -> None:
        """The consumer owns other partitions, or has begun them again: its queues are cleared."""
        consumer.stream.clear()
        before = {key: progress.consumed for key, progress in consumer.fetchers.partitions.items()}
        offsets = {}
        for key, (partition, offset) in positions.items():
            offsets[key] = max(offset, 0)
            if before.get(key) != offsets[key]:
                consumer.last.pop(partition, None)
        consumer.fetchers.start(offsets)

    def _consume(
        self, consumer: _Consumer, positions: Mapping[DraftPartition, tuple[FlowPartition, int]]
    ) -> None:
        """The application takes what waits in its streams."""
        ends: dict[DraftPartition, int] = {}
        while (message := consumer.stream.take()) is not None:
            key, offset = message
            partition = positions[key][0]
            self.logs[partition].deliver(offset, consumer.crashes[partition])
            if consumer.last.get(partition, offset - 1) != offset - 1:
                self._disordered += 1
            consumer.last[partition] = offset
            ends[key] = offset + 1
        for key, end in ends.items():
            consumer.fetchers.consumed(key, end)
            consumer.process.consumed(positions[key][0], end)

    def _commit(self) -> None:
        """Commit for consumers that have no other place: what they have consumed by now."""
        for name, node in self.world.nodes.items():
            process = node.process
            if process is not None and not node.is_frozen and getattr(process, "keeps_no_offsets", False):
                for partition, offset in process.positions().items():
                    place = FlowPartition(*partition)
                    if place in self.logs and not self.world.is_cut(name, self.leader(place)):
                        self.offsets[place] = offset
        self.world.clock.at(self.world.now + self._commit_ms, self._commit)
