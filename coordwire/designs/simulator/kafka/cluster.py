"""The state that the coordinator's nodes share: a replicated log, its leader, and the cluster's topics.

Strategy: the controller and the replication are facts, not messages: a node that does not answer the
controller for a while loses the partition to another, and a write of an older leader epoch is refused. Rules:
a write takes a while to be durable, and longer until its leader knows; a crash in between leaves records
without a confirmation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from coordwire.coordinator import CoordinatorConfig, Shard, StateRequest, TopicImage, TopicsImage
from coordwire.designs.simulator.kafka.coordinator_node import CoordinatorProcess
from coordwire.designs.simulator.world import World
from coordwire.enums import ErrorCode
from coordwire.messages import InitializeShareGroupStateRequest, InitializeShareGroupStateResponse
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult

_CHECK_MS = 500


class Cluster:
    """The nodes `coordinator-1` and so on, with one partition of `__consumer_offsets`.

    topics: partitions by name. write_ms: the least and the greatest time until a write is durable;
    most_together: how many appends of a shard one write takes, None for all that wait.
    load_ms: how long a new leader reads the log. failover_ms: how long a leader may be unreachable.
    new_shard: makes a shard, at each election of a node that has none; a test wraps it.
    """

    def __init__(
        self,
        world: World,
        *,
        coordinators: int = 2,
        topics: dict[str, int] | None = None,
        config: CoordinatorConfig | None = None,
        write_ms: tuple[int, int] = (1, 5),
        most_together: int | None = None,
        load_ms: int = 50,
        failover_ms: int = 2_000,
        new_shard: Callable[[int, CoordinatorConfig], Shard] | None = None,
    ) -> None:
        self.world = world
        self.config = config or CoordinatorConfig()
        self.write_ms = write_ms
        self.most_together = most_together
        self.load_ms = load_ms
        self.log: list[tuple[bytes, bytes | None]] = []
        self.leader = "coordinator-1"
        self.leader_epoch = 0
        self.loaded: list[tuple[int, str]] = []
        """When which node had read the log, and became the coordinator."""
        self.write_error: ErrorCode | None = None
        self.slow_ms = 0
        self._new_shard = new_shard or (lambda now, config: Shard(now=now, config=config))
        self._failover_ms = failover_ms
        self._away_since: int | None = None
        self._topic_numbers = 0
        self._images: dict[str, TopicImage] = {}
        self._version = 0
        self.topics = TopicsImage()
        self.change_topics(topics or {"orders": 6})
        self.names = [f"coordinator-{number}" for number in range(1, coordinators + 1)]
        for name in self.names:
            world.add(name, lambda: CoordinatorProcess(self))
        world.clock.at(_CHECK_MS, self._check)

    def new_shard(self, now: int) -> Shard:
        shard = self._new_shard(now, self.config)
        shard.set_topics(self.topics, now=now)
        return shard

    def process(self, name: str) -> CoordinatorProcess | None:
        """The process of a node, unless it is down."""
        process = self.world.nodes[name].process
        return process if isinstance(process, CoordinatorProcess) else None

    def number(self, name: str) -> int:
        """The broker id of a node."""
        return self.names.index(name) + 1

    # --- the log ---

    def append(self, epoch: int, records: Iterable[tuple[bytes, bytes | None]]) -> ErrorCode | None:
        """Make records durable, as one batch; an error if they can't be."""
        if epoch != self.leader_epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.write_error is not None:
            return self.write_error
        self.log += records
        return None

    def ask_share_coordinator(self, state_request: StateRequest, process: CoordinatorProcess) -> None:
        """What a share group wants initialized is durable after a while, as a write of the log."""
        request = state_request.request
        if not isinstance(request, InitializeShareGroupStateRequest):
            return
        response = InitializeShareGroupStateResponse(results=[
            InitializeStateResult(
                topic_id=topic.topic_id,
                partitions=[PartitionResult(partition=partition.partition) for partition in topic.partitions],
            )
            for topic in request.topics
        ])  # fmt: skip
        node = process.node
        takes = node.random.randint(*self.write_ms)
        self.world.clock.at(
            self.world.now + takes, node.call, process.persisted, state_request.number, response
        )

    # --- the controller ---

    def _check(self) -> None:
        world = self.world
        world.clock.at(world.now + _CHECK_MS, self._check)
        node = world.nodes[self.leader]
        if node.is_up and not node.is_frozen:
            self._away_since = None
            return
        if self._away_since is None:
            self._away_since = world.now
        if world.now - self._away_since >= self._failover_ms:
            self.hand_over(self.leader)

    def hand_over(self, name: str) -> None:
        """Another node leads the partition from now on, if this one did and another one is up to stay."""
        followers = [follower for follower in self.names if follower != name]
        ready = [follower for follower in followers if self._is_ready(follower)]
        if self.leader == name and ready:
            self.elect(ready[0])

    def _is_ready(self, name: str) -> bool:
        process = self.process(name)
        return process is not None and not process.is_closing and not self.world.nodes[name].is_frozen

    def elect(self, name: str) -> None:
        """Another node, or the same again, leads the partition from now on."""
        old, self.leader = self.leader, name
        self.leader_epoch += 1
        self._away_since = None
        for leader in dict.fromkeys((old, name)):
            process, node = self.process(leader), self.world.nodes[leader]
            if process is not None:
                node.call(process.on_leadership)

    # --- topics ---

    def set_partitions(self, name: str, partitions: int) -> None:
        """As `change_topics` for one topic, if it has another number of partitions."""
        known = self._images.get(name)
        if known is None or known.partitions != partitions:
            self.change_topics({name: partitions})

    def change_topics(self, changes: dict[str, int]) -> None:
        """Topics come, grow, or go (0 partitions)."""
        for name, partitions in changes.items():
            known = self._images.pop(name, None)
            if partitions:
                self._topic_numbers += known is None
                topic_id = UUID(int=(1 << 64) + self._topic_numbers) if known is None else known.id
                self._images[name] = TopicImage(topic_id, name, partitions)
        self._version += 1
        self.topics = TopicsImage(self._images.values(), version=self._version)
        for node in self.world.nodes.values():
            process = node.process
            if isinstance(process, CoordinatorProcess):
                node.call(process.on_topics)
