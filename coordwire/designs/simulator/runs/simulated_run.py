"""A run of one design from its start to its figures; fault plans that a seed draws, the same for each
design.

Rules: a seed, a design, its sizes and a plan give one run, byte for byte; what observes it takes no part in
it. A capture leaves out ZooKeeper's messages, which are of no dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, BinaryIO

from coordwire.designs.simulator.drafts.zookeeper_capture import ZooKeeperTap
from coordwire.designs.simulator.message_flow import MessageFlow
from coordwire.designs.simulator.runs.every_design import (
    METADATA_MS,
    SESSION_MS,
    DesignRun,
    add_design,
    group_names,
)
from coordwire.designs.simulator.runs.run_measures import RunMeasures, RunObserver, TrafficCount, measure
from coordwire.designs.simulator.tap import PcapWriter, TapRecord
from coordwire.designs.simulator.world import Latency, World
from coordwire.testing.fault_plans import PlannedFault

_STARTS_MS = 10_000
_APART_MS = 500
_ONE_BY_ONE = 100
_REPORT_MS = 100
_EACH_REBALANCES = frozenset({"zookeeper", "draft-1", "draft-2-overview", "draft-2"})
"""Designs in which each consumer that starts makes all rebalance at once."""
_LAST_QUIET_MS = 40_000


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A run that is over."""

    run: DesignRun
    observer: RunObserver
    traffic: TrafficCount
    measures: RunMeasures


def simulate(
    design: str,
    *,
    members: int = 3,
    partitions: int = 6,
    coordinators: int = 2,
    seed: int = 1,
    plan: Iterable[PlannedFault] = (),
    duration_ms: int = 60_000,
    session_ms: int = SESSION_MS,
    metadata_ms: int = METADATA_MS,
    latency: Latency = (1, 5),
    groups: int = 1,
    subsets: int = 1,
    client: Mapping[str, Any] | None = None,
    messages: bool = False,
    flow: Mapping[str, Any] | None = None,
    pcap: BinaryIO | None = None,
    prepare: Callable[[DesignRun], None] | None = None,
    on_time: Callable[[int], None] | None = None,
) -> SimulatedRun:
    """Run a design. Consumers start within ten seconds, at most half a second apart. More than 100 start at
    once in a design in which each of them makes all that came before it rebalance at once; in the others
    these learn of it in their next ping or heartbeat, so that several that start share a rebalance.

    latency: as for `World`. groups, subsets, client: as for `add_design`.
    messages: let them flow, and count how often each is delivered; flow: settings of `MessageFlow` for that.
    pcap: where the capture is written. prepare: called before time begins; on_time: with the time, as it goes
    by. Raises `KeyError` for an unknown design.
    """
    traffic = TrafficCount(session_ms)
    capture = None if pcap is None else ZooKeeperTap(PcapWriter(pcap))

    def tap(record: TapRecord) -> None:
        traffic(record)
        if capture is not None:
            capture(record)

    world = World(seed=seed, tap=tap, latency=latency)
    at_once = members > _ONE_BY_ONE and design in _EACH_REBALANCES
    run = add_design(
        world, design, members=members, partitions=partitions, coordinators=coordinators,
        session_ms=session_ms, metadata_ms=metadata_ms, groups=groups, subsets=subsets,
        client=client,
        apart_ms=0 if at_once else min(_APART_MS, _STARTS_MS // members),
    )  # fmt: skip
    if messages:
        MessageFlow(
            world, groups=group_names(groups), topics={"orders": partitions}, brokers=coordinators,
            **(flow or {}),
        )  # fmt: skip
    observer = RunObserver(world, run.identify)
    world.plan(plan)
    if prepare is not None:
        prepare(run)
    for until in (*range(_REPORT_MS, duration_ms, _REPORT_MS), duration_ms):
        world.run(until)
        if on_time is not None:
            on_time(until)
    observer.finish()
    return SimulatedRun(run, observer, traffic, measure(run, observer, traffic))


def comparable_faults(seed: int, *, members: int, duration_ms: int = 120_000) -> list[PlannedFault]:
    """A random plan that means the same to each design: a consumer that is cut off reaches no node at all, as
    the consumers of one design talk to ZooKeeper alone. The last part of the time is left to recover."""
    end = max(duration_ms - _LAST_QUIET_MS, 20_000)
    return [
        replace(
            fault, targets=tuple("*" if target == "coordinator-*" else target for target in fault.targets)
        )
        for fault in random_faults(seed, members=members, end=end)
    ]


# --- faults ---


def random_faults(
    seed: int, *, members: int, coordinators: int = 2, begin: int = 10_000, end: int = 120_000, count: int = 8
) -> list[PlannedFault]:
    """A plan by a seed: crashes, freezes, cuts and drops of consumers and coordinators."""
    random = Random(f"faults/{seed}")
    plan = []
    for _ in range(count):
        at = random.randrange(begin, end, 100)
        consumer = f"consumer-{random.randint(1, members)}"
        coordinator = f"coordinator-{random.randint(1, coordinators)}"
        short, long = random.randrange(500, 8_000, 100), random.randrange(8_000, 60_000, 1_000)
        plan.append(
            random.choice([
                PlannedFault(at, "crash", (consumer,), duration=random.choice([short, long, None])),
                PlannedFault(at, "crash", (coordinator,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (consumer,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (coordinator,), duration=short),
                PlannedFault(at, "cut", (consumer, "coordinator-*"), duration=random.choice([short, long])),
                PlannedFault(at, "drop", (consumer, "coordinator-*")),
                PlannedFault(at, "drop", ("consumer-*", coordinator)),
                PlannedFault(at, "slow", (consumer, "*"), ("300ms",), duration=long),
                PlannedFault(at, "expire", (consumer,)),
            ])
        )  # fmt: skip
    return sorted(plan, key=lambda fault: fault.at)
