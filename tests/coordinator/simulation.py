"""Seeded simulations with checkers: `python -m tests.coordinator.simulation SEED COUNT`.

Strategy: two groups on two nodes, of a kind, size and configuration by the seed; then a plan of faults, slow
and failed writes, changed topics, members that leave and subscribe anew; then quiet, in which all must
converge. Every shard is watched by every checker. Prints steps, processor time, and what was violated.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from random import Random

from coordwire.codec import Message
from coordwire.coordinator import ConsumerGroupConfig, CoordinatorConfig
from coordwire.designs.simulator import PlannedFault, World, random_faults
from coordwire.designs.simulator.kafka import (
    ClassicClient,
    Cluster,
    ConsumerClient,
    GroupClient,
    GroupClientConfig,
)
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from tests.coordinator.invariants import CHECKERS, Violation, WatchedShard
from tests.coordinator.invariants.clients import OwnersOfClients, check_converged

_TOPICS = {"orders": 6, "payments": 4, "audit": 1}
_BEGIN, _END, _QUIET = 10_000, 130_000, 260_000
_KINDS = ["classic", "cooperative", "consumer", "mixed"]
_TOGETHER = 5
"""Of so many seeds, one has a log that takes all that waits at once, as `Cluster` has it by default."""


class Simulation:
    """One run. `run` raises `Violation`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(f"simulation/{seed}")
        self.world = World(seed=seed, latency=self.random.choice([(1, 5), (1, 40)]))
        interval = self.random.choice([0, 1_000, 5_000])
        config = CoordinatorConfig(
            initial_rebalance_delay_ms=self.random.choice([0, 3_000]),
            consumer=ConsumerGroupConfig(
                session_timeout_ms=12_000, heartbeat_interval_ms=3_000, assignment_interval_ms=interval
            ),
            offsets_retention_ms=self.random.choice([20_000, 10_000_000]),
            offsets_retention_check_interval_ms=5_000,
        )
        together = None if seed % _TOGETHER == 3 else 1  # more appends wait when a fault comes
        self.cluster = Cluster(
            self.world, topics=_TOPICS, config=config, new_shard=_watched, most_together=together
        )
        OwnersOfClients(self.world, self.cluster)
        self.members: list[str] = []
        for group, kind in enumerate(self.random.sample(_KINDS, 2)):
            self._add_group(f"group-{group}", kind)
        self._perturb()

    def _add_group(self, group_id: str, kind: str) -> None:
        static = self.random.random() < 0.35
        topics = tuple(sorted(self.random.sample(list(_TOPICS), self.random.randint(1, 3))))
        rebalance = self.random.choice([6_000, 20_000])
        regex = "or.*|pay.*" if kind == "consumer" and self.random.random() < 0.25 else None
        for _ in range(self.random.randint(2, 5)):
            number = len(self.members) + 1
            name = f"consumer-{number}"
            new = kind == "consumer" or (kind == "mixed" and number % 2)
            config = GroupClientConfig(
                group_id=group_id, topics=("orders", "payments") if regex else topics, regex=regex,
                client_id=f"till-{number}", instance_id=f"i-{number}" if static else None,
                session_timeout_ms=10_000, rebalance_timeout_ms=rebalance, cooperative=kind == "cooperative",
                assignor=self.random.choice([None, "range", "uniform"]) if new else None,
                metadata_interval_ms=8_000, commit_interval_ms=self.random.choice([2_000, 7_000]),
                stubborn=bool(new) and self.random.random() < 0.1,
                versions=self._versions(static, bool(new), regex),
            )  # fmt: skip
            make: type[GroupClient] = ConsumerClient if new else ClassicClient
            self.world.add(name, partial(make, config), at=self.random.randrange(1, _END // 2))
            self.members.append(name)

    def _versions(self, static: bool, new: bool, regex: str | None) -> dict[type[Message], int]:
        random = self.random
        if new:
            version = random.choice([0, 1, 1])  # version 0 has no patterns
            return {ConsumerGroupHeartbeatRequest: version if regex is None else 1, OffsetCommitRequest: 9}
        return {
            JoinGroupRequest: random.randint(5 if static else 1, 9),
            SyncGroupRequest: random.randint(3 if static else 0, 5),
            HeartbeatRequest: random.randint(3 if static else 0, 4), LeaveGroupRequest: random.randint(0, 5),
            OffsetCommitRequest: random.randint(7 if static else 2, 9),
        }  # fmt: skip

    def _perturb(self) -> None:
        random, world, cluster = self.random, self.world, self.cluster
        count = random.randint(4, 14)
        plan = random_faults(self.seed, members=len(self.members), begin=_BEGIN, end=_END, count=count)
        for _ in range(random.randint(0, 4)):
            kind, words = random.choice(
                [("leave", ()), ("subscribe", ("orders",)), ("subscribe", ("audit", "orders"))]
            )
            target = random.choice(self.members)
            plan.append(PlannedFault(random.randrange(_BEGIN, _END), kind, (target,), words))
        world.plan(fault for fault in plan if fault.kind != "expire")
        for _ in range(random.randint(0, 3)):
            at = random.randrange(_BEGIN, _END)
            error = random.choice([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT])
            world.clock.at(at, self._set_write_error, error)
            world.clock.at(at + random.randrange(50, 3_000), self._set_write_error, None)
        for _ in range(random.randint(0, 2)):
            at = random.randrange(_BEGIN, _END)
            world.clock.at(at, self._set_slow, random.choice([300, 3_000, 7_000]))
            world.clock.at(at + random.randrange(500, 10_000), self._set_slow, 0)
        for _ in range(random.randint(0, 2)):
            change = random.choice([{"orders": 7}, {"payments": 0}, {"payments": 5}, {"audit": 2}])
            world.clock.at(random.randrange(_BEGIN, _END), cluster.change_topics, change)
        for _ in range(random.randint(0, 2)):
            world.clock.at(random.randrange(_BEGIN, _END), self._elect, random.choice(cluster.names))
        # Every node is up in the quiet time; whom nothing restarts, stays away.
        for name in cluster.names:
            world.clock.at(_END + 60_000, world.nodes[name].boot)

    def _set_write_error(self, error: ErrorCode | None) -> None:
        self.cluster.write_error = error

    def _set_slow(self, milliseconds: int) -> None:
        self.cluster.slow_ms = milliseconds

    def _elect(self, name: str) -> None:
        node = self.world.nodes[name]
        if node.is_up and not node.is_frozen:
            self.cluster.elect(name)

    def run(self) -> None:
        self.world.run(_QUIET)
        if not any(isinstance(node.process, GroupClient) and node.process.config.stubborn
                   for node in self.world.nodes.values()):  # fmt: skip
            check_converged(self.world, self.cluster)


def _watched(now: int, config: CoordinatorConfig) -> WatchedShard:
    return WatchedShard(CHECKERS, now=now, config=config)


def simulate(seed: int) -> tuple[int, Violation | None]:
    """Steps, and what was violated."""
    simulation = Simulation(seed)
    try:
        simulation.run()
    except Violation as violation:
        return simulation.world.steps, violation
    return simulation.world.steps, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    options = parser.parse_args()
    began, steps, wrong = time.process_time(), 0, 0
    for seed in range(options.seed, options.seed + options.count):
        step_count, violation = simulate(seed)
        steps += step_count
        if violation is not None:
            wrong += 1
            print(f"seed {seed}: {violation}", flush=True)
    seconds = time.process_time() - began
    print(
        f"{options.count} simulations, {steps:,} steps, {seconds:.0f} s of processor time: {wrong} violations"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
