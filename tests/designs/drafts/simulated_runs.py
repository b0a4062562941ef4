"""The invariants D1 to D10 over runs of the simulator, with its processes, links and faults.

    python -m tests.designs.drafts.simulated_runs                       100,000 steps of each design
    python -m tests.designs.drafts.simulated_runs --steps 5000 --after 1000 draft-2      from seed 1001 on

Strategy: each run has a random fault plan by its number; what its machines send, receive, do and note becomes
the history that the checkers read. A process has the name of its consumer id, which is new at each start.
Consumers read on all the time, every second one without auto-commit. Rules: no process is frozen, as neither
draft 2 nor draft 3 claims anything then; a step is an event of the world: bytes that arrive, or a timer.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from coordwire.designs.drafts.actions import (
    AskZooKeeper,
    Disconnect,
    DraftPartition,
    FetchersStarted,
    FetchersStopped,
    Noted,
    Send,
)
from coordwire.designs.drafts.zookeeper_operations import CreateNode, GetData, OperationOutcome, SetData
from coordwire.designs.simulator import World, random_faults
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS, DraftRun, add_design
from coordwire.designs.simulator.drafts.machine_process import MachineProcess
from coordwire.designs.simulator.network import Link
from coordwire.designs.simulator.runs import RunObserver
from coordwire.dialects.zookeeper import Owner
from tests.designs.drafts.checkers import check, d10_owners_are_ranges, watch
from tests.designs.drafts.cluster import Elected, Entry, Sent, Written

GROUP, TOPIC, PARTITIONS = "group", "orders", 8
MEMBERS, COORDINATORS = 5, 3
END_MS = 200_000
"""The last fault is before 120 s; some last for a minute."""

SLOW_MS = 305
"""The longest that a message takes, where a fault makes links slow."""

WATCHED_STEPS = 40


@dataclass(slots=True)
class SimulatedNodeState:
    """A process as the checkers see it."""

    name: str
    machine: Any
    session: int


@dataclass
class SimulatedCluster:
    """A run as the checkers see it: what `tests.designs.drafts.worlds.World` has, of it what they use."""

    run: DraftRun
    draft: int
    observer: RunObserver
    history: list[Entry] = field(default_factory=list)
    configs: dict[str, Any] = field(default_factory=dict)
    broker_settings: dict[str, Any] = field(default_factory=dict)
    latency: tuple[int, int] = (1, SLOW_MS)
    topic_changes: int = 1
    broken: list[str] = field(default_factory=list)
    openers: dict[int, str] = field(default_factory=dict)
    """By a link's number, the process that opened it: what it sent may arrive when its node runs another."""

    @property
    def world(self) -> World:
        return self.run.world

    @property
    def tree(self) -> Any:
        return self.run.zookeeper.tree

    @property
    def nodes(self) -> dict[str, SimulatedNodeState]:
        return {
            name: SimulatedNodeState(name, process.machine, process.session)
            for name, node in self.world.nodes.items()
            if isinstance(process := node.process, MachineProcess)
        }

    def overlaps(self) -> dict[Any, int]:
        result: dict[Any, int] = {}
        for spell in self.observer.spells:
            if spell.owners:
                result[spell.partition] = result.get(spell.partition, 0) + spell.ended - spell.began
        return result

    def read(self, path: str) -> bytes | None:
        outcome: OperationOutcome = self.tree.apply(self.run.zookeeper._admin, GetData(path), self.world.now)
        return outcome.data if outcome.ok else None

    def owner(self, topic: str, partition: str) -> str | None:
        names = self.world.ownership.owners((GROUP, topic, int(partition)))
        return self.name(names[0]) if names else None

    def name(self, node: str) -> str:
        """A process's name in the history."""
        return f"{node}.{self.world.nodes[node].boots}" if node.startswith("consumer-") else node

    def peer(self, link: Link) -> str:
        """The process at the other end of a link."""
        return self.openers.get(link.number, "") if link.is_listener else self.name(link.peer)

    def note(self, node: str, what: object, peer: str = "") -> None:
        self.history.append(Entry(self.world.now, self.name(node), what, peer))

    def listen(self, process: MachineProcess, node: str) -> None:
        """Let what a machine receives and does become entries."""
        make, accept = process._make, process.on_accept

        def accepted(link: Link) -> None:
            self.openers[link.number] = self.name(link.peer)
            accept(link)

        def made(where: Any) -> Any:
            machine: Any = make(where)
            receive, do = machine.received, machine.do
            if node.startswith("consumer-") and int(node[-1]) % 2 and hasattr(machine.config, "auto_commit"):
                machine.config = replace(machine.config, auto_commit=False)

            def received(connection: int, event: Any) -> None:
                frame, link = getattr(event, "frame", None), process._links.get(connection)
                if frame is not None and link is not None:
                    sender, receiver = self.peer(link), self.name(node)
                    self.history.append(Entry(self.world.now, sender, frame.message, receiver))
                receive(connection, event)

            def done(action: Any) -> None:
                match action:
                    case FetchersStarted():
                        self.note(node, action)
                        self._claimed(node, machine, action)
                    case Noted(name="Elected"):
                        self.note(node, action)
                        self.note(node, Elected(self._known()))
                    case FetchersStopped() | Noted():
                        self.note(node, action)
                    case Send(connection=number, message=message) if number in process._links:
                        self.note(node, Sent(message), self.peer(process._links[number]))
                    case Disconnect(connection=number) if number in process._links:
                        self.note(node, action, self.peer(process._links[number]))
                    case AskZooKeeper(operations=operations):
                        for operation in operations:
                            if isinstance(operation, SetData | CreateNode) and operation.path.startswith(
                                "/consumers/"
                            ):
                                self.note(node, Written(operation.path, operation.data))
                do(action)

            machine.received, machine.do = received, done
            if node.startswith("consumer-"):
                self.configs[self.name(node)] = machine.config
            return machine

        process._make = made
        process.on_accept = accepted  # type: ignore[method-assign]

    def _known(self) -> frozenset[str]:
        """The consumers that own something, as ZooKeeper has it."""
        above = f"/consumers/{GROUP}/owners/"
        result = {self.read(path) for path in self.tree.paths() if path.startswith(f"{above}{TOPIC}/")}
        return frozenset(Owner.parse(data).thread_id.rpartition("-")[0] for data in result if data)

    def _claimed(self, node: str, machine: Any, started: FetchersStarted) -> None:
        """D10: the ZooKeeper consumer has its nodes when it begins to read, unless its session is over."""
        if self.draft or machine.session not in self.tree.sessions():
            return
        for partition in started.partitions:
            data = self.read(Owner.path(GROUP, *partition))
            if data is None or data.decode().rpartition("-")[0] != self.name(node):
                self.broken.append(
                    f"D10: {node} reads {partition} whose owner is {data!r} at {self.world.now}"
                )

    def consume(self) -> None:
        """Every consumer has read something of all that it owns."""
        for name, node in self.nodes.items():
            if name.startswith("consumer-") and node.machine.fetching:
                for one, offset in list(node.machine.owned.items()):
                    node.machine.consumed(DraftPartition(*one), offset + 1)


def simulated_run(design: str, seed: int, *, end_ms: int = END_MS) -> SimulatedCluster:
    """One run to its end, which leaves time to recover. Raises `AssertionError` if an invariant breaks."""
    world = World(seed=seed)
    run = add_design(
        world, design, members=MEMBERS, partitions={TOPIC: PARTITIONS}, coordinators=COORDINATORS, group=GROUP
    )
    draft = int(design[6]) if design != "zookeeper" else 0
    cluster = SimulatedCluster(run, draft, RunObserver(world))
    for node in world.nodes.values():
        if node.name != "zookeeper":
            node._factory = _listening(cluster, node.name, node._factory)
    faults = random_faults(seed, members=MEMBERS, coordinators=COORDINATORS, count=12)
    world.plan(fault for fault in faults if fault.kind != "freeze")
    while not world.run(end_ms, steps=WATCHED_STEPS):
        result = watch(cast(Any, cluster))
        assert result == [], (seed, world.now, result)
        cluster.consume()
    cluster.observer.finish()
    result = check(cast(Any, cluster)) + cluster.broken
    if design == "zookeeper":
        result += d10_owners_are_ranges(cast(Any, cluster), GROUP, TOPIC, PARTITIONS)
    assert result == [], (seed, result)
    if design != "draft-1":  # there a consumer that reaches no broker gives up for good
        owned = [len(world.ownership.owners((GROUP, TOPIC, number))) for number in range(PARTITIONS)]
        assert owned == [1] * PARTITIONS, (seed, owned)
    return cluster


def _listening(
    cluster: SimulatedCluster, name: str, factory: Callable[[], Any]
) -> Callable[[], MachineProcess]:
    def made() -> MachineProcess:
        process = factory()
        assert isinstance(process, MachineProcess)
        cluster.listen(process, name)
        return process

    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Check D1 to D10 over runs of the simulator.")
    parser.add_argument("designs", nargs="*", default=list(DRAFT_DESIGNS))
    parser.add_argument("--steps", type=int, default=100_000, help="of each design, at least (100,000)")
    parser.add_argument("--after", type=int, default=0, help="the seed before the first one (0)")
    options = parser.parse_args()
    for design in options.designs:
        steps = entries = 0
        seed = options.after
        while steps < options.steps:
            seed += 1
            cluster = simulated_run(design, seed)
            steps += cluster.world.steps
            entries += len(cluster.history)
        print(f"{design}: {seed - options.after} runs, {steps:,} steps, {entries:,} entries, nothing broken")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
