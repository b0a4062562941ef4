"""The partitions of a simulation: leaders, messages, and what the crash of a machine takes of them.

Strategy: producers send one message to each partition in an interval; what comes while it has no leader
waits, and is stored when it has one. A leader forces its log to the disk after a number of messages, or a
time, as Kafka's log does (`flush.messages`, `flush.ms`); a crash takes what was not forced, and later
messages get the same offsets. Rules: partition p is led by the broker `coordinator-(p mod brokers + 1)`.
Without replicas that stays so, and while it is down, none leads. With them another broker that is up leads
once the leader has been down for `failover_ms`; replicas have all that was stored, and the old leader does
not come back by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from coordwire.designs.simulator.world import World

INTERVAL_MS = 100


class FlowPartition(NamedTuple):
    """A partition as ownership has it: of a group."""

    group: str
    topic: str
    number: int


@dataclass(slots=True)
class LeaderLog:
    """A partition at its leader, and what a group has got of it.

    times: when each message was stored; counts: how often it was delivered. sent: messages that its leaders
    have taken. synced: so many messages are on the disk; since: when the first of the others was stored.
    lost, lost_unread: messages that crashes took, and those of them that were not delivered before.
    crashes: how often; cut: where the log ended after the last of them. boots: how often the leader's process
    had started when it was looked at last.
    """

    leader: int
    boots: int = 0
    times: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    sent: int = 0
    synced: int = 0
    since: int = 0
    lost: int = 0
    lost_unread: int = 0
    crashes: int = 0
    cut: int = 0

    @property
    def end(self) -> int:
        """The next offset."""
        return len(self.times)

    def store(self, count: int, now: int) -> None:
        if self.synced == self.end:
            self.since = now
        self.times += [now] * count
        self.counts += [0] * count
        self.sent += count

    def deliver(self, offset: int, crashes: int) -> None:
        """A message was delivered. crashes: how many there had been when it was fetched."""
        if crashes == self.crashes or offset < self.cut:
            self.counts[offset] += 1
        else:
            self.lost_unread -= 1  # it was fetched before the crash that took it

    def truncate(self) -> None:
        """The leader's machine has crashed: what was not forced to the disk is gone."""
        cut_counts = self.counts[self.synced :]
        self.lost += len(cut_counts)
        self.lost_unread += cut_counts.count(0)
        self.crashes, self.cut = self.crashes + 1, self.synced
        del self.times[self.synced :], self.counts[self.synced :]


class PartitionLogs:
    """All partitions of a world's groups.

    interval_ms: between two messages of a partition. flush_messages, flush_ms: after how many messages, and
    after what time, a log is forced to the disk; None for both: each message at once. failover_ms: how long a
    leader is down before another broker leads; None for partitions without replicas. on_move: called after
    leaders have moved.
    """

    def __init__(
        self,
        world: World,
        *,
        groups: Iterable[str],
        topics: Mapping[str, int],
        brokers: int,
        interval_ms: int = INTERVAL_MS,
        flush_messages: int | None = None,
        flush_ms: int | None = None,
        failover_ms: int | None = None,
        on_move: Callable[[], None] = lambda: None,
    ) -> None:
        self._world = world
        self._names = [f"coordinator-{number}" for number in range(1, brokers + 1)]
        self.logs = {
            FlowPartition(group, topic, number): LeaderLog(number % brokers)
            for group in groups
            for topic, count in topics.items()
            for number in range(count)
        }
        self._interval_ms, self._failover_ms = interval_ms, failover_ms
        self._flush_messages, self._flush_ms = flush_messages, flush_ms
        self._on_move = on_move
        self._down_since: dict[str, int] = {}
        world.clock.at(world.now + interval_ms, self._produce)

    def leader(self, partition: FlowPartition) -> str:
        """The name of the node that leads a partition when it is up; also of one without messages."""
        log = self.logs.get(partition)
        return self._names[partition.number % len(self._names) if log is None else log.leader]

    def is_up(self, name: str) -> bool:
        node = self._world.nodes.get(name)
        return node is not None and node.is_up and not node.is_frozen

    # --- inside ---

    def _produce(self) -> None:
        now = self._world.now
        self._note_crashes()
        if self._failover_ms is not None:
            self._move_leaders(now)
        due = now // self._interval_ms
        for log in self.logs.values():
            if log.sent < due and self.is_up(self._names[log.leader]):
                log.store(due - log.sent, now)
                self._flush(log, now)
        self._world.clock.at(now + self._interval_ms, self._produce)

    def _flush(self, log: LeaderLog, now: int) -> None:
        messages, time_ms = self._flush_messages, self._flush_ms
        is_due = messages is not None and log.end - log.synced >= messages
        is_late = time_ms is not None and now - log.since >= time_ms
        if is_due or is_late or messages is time_ms is None:
            log.synced = log.end

    def _note_crashes(self) -> None:
        """A leader that has started again has what was on its disk."""
        boots = {
            name: node.boots for name in self._names if (node := self._world.nodes.get(name)) is not None
        }
        for log in self.logs.values():
            started = boots.get(self._names[log.leader], 0)
            if started != log.boots:
                if log.boots:
                    log.truncate()
                log.boots = started

    def _move_leaders(self, now: int) -> None:
        assert self._failover_ms is not None
        for name in self._names:
            if self.is_up(name):
                self._down_since.pop(name, None)
            else:
                self._down_since.setdefault(name, now)
        absent = {name for name, since in self._down_since.items() if now - since >= self._failover_ms}
        has_moved = False
        for log in self.logs.values():
            if self._names[log.leader] not in absent:
                continue
            order = [(log.leader + step) % len(self._names) for step in range(1, len(self._names))]
            following = next((number for number in order if self.is_up(self._names[number])), None)
            if following is not None:
                log.leader, log.synced = following, log.end
                log.boots = self._world.nodes[self._names[following]].boots
                has_moved = True
        if has_moved:
            self._on_move()
