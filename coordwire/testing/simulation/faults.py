"""The faults of a simulated world: their plan as text, how a seed draws them, and how they are inflicted.

    10s crash orders-1 for 5s              its process is gone, its connections are reset; it starts again
    12s crash broker-2 for 10s             a node stops; other replicas lead
    20s freeze orders-2 for 40s            it does nothing; a node of the broker answers nothing
    30s cut orders-1 broker-* for 8s       no bytes either way
    35s block broker-* orders-1 for 8s     no bytes from the first to the second
    40s drop orders-* broker-1             their connections are reset
    45s half-open orders-1 broker-* 100s   their connections lose all that is sent; so long it is sent again
    50s slow orders-1 * 200ms for 10s      latency on top of the usual
    55s skew orders-1 -30s for 60s         its clock is slow; 30s: it is fast
    60s coordinate broker-3 GROUP          the node coordinates a group from now on
    65s lead broker-1 TOPIC 0              the node leads a partition from now on
    70s fill broker-2 for 20s              its disk is full
    75s fail broker-2 for 20s              its disk fails
    80s inject broker-* OffsetCommit error=NOT_COORDINATOR times=2      a rule of coordwire.broker.injection
    90s stop orders-* for 20s              each in turn gets SIGTERM, and starts again when it has ended
    95s stop orders-1 22 for 20s           the same after 22 more awaits of its own code
    0ms load orders 10ms 4; 20s busy * 25 for 10s       the load, which is in load.py

Strategy: the language is that of `fault_plans`, with rules of the broker's faults after `inject`. A seed
draws how many faults there are and when; what each is it draws when the time has come, among what is there
then. What happened is a plan again, which gives the same run. Rules: every drawn fault has an end. Names are
those of processes, and `broker-N` for nodes; patterns may have `*`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING

from coordwire.broker.injection import FaultHandle, FaultyRule, parse_fault
from coordwire.broker.injection.lawful_rules import LAWFUL_RULES
from coordwire.codec.names import suggestion
from coordwire.errors import Malformed
from coordwire.testing.fault_plans import (
    FAULT_KINDS,
    FaultEnd,
    PlannedFault,
    parse_faults,
    parse_time,
)
from coordwire.testing.simulation.checkers import Violation
from coordwire.testing.simulation.load import LOADS, Load

if TYPE_CHECKING:
    from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["KINDS", "DrawnFaults", "FaultDriver", "meaning_of", "parse_plan"]

KINDS = {
    "network": ("cut", "block", "drop", "half-open", "slow"),
    "processes": ("crash", "freeze", "skew", "stop"),
    "brokers": ("crash-node", "freeze-node", "coordinate", "lead", "fill", "fail"),
    "requests": ("inject",),
    "load": LOADS,
}
"""What a seed draws, by the groups' names."""

_OF_NODES = ("coordinate", "lead", "fill", "fail", "inject")

_RESENT = "100s", 7 / 8
"""How long a system sends again what a half-open connection loses, in so many of the drawn ones; in others
as long as Linux does. RFC 1122 has it as the least."""

_LEAST = 2.0
"""Seconds that a drawn fault may have at least."""

_MEANINGS = {
    "block": "no bytes to the second",
    "drop": "connections are reset",
    "half-open": "what is sent is lost, without an error",
    "skew": "its clock is wrong",
    "coordinate": "the group's coordinator moves there",
    "lead": "the partition's leader moves there",
    "fill": "its disk is full",
    "fail": "its disk fails",
}


def meaning_of(fault: PlannedFault) -> str:
    """What a fault is, where its name does not say it."""
    if fault.kind == "load":
        count = fault.words[1] if len(fault.words) > 1 else "1"
        return f"world.load: {count} at once, every {fault.words[0]} or so"
    if fault.kind == "busy":
        return f"databases, world.slow: {fault.words[0]} times slower"
    if fault.kind == "stop" and fault.words:
        return f"SIGTERM after {fault.words[0]} more awaits"
    return _MEANINGS.get(fault.kind, "")


@dataclass(frozen=True, slots=True)
class DrawnFaults:
    """Faults that a seed draws. kinds: of `KINDS`; until: seconds, when all of them are over; most: how many
    there are at most."""

    kinds: tuple[str, ...] = tuple(KINDS)
    until: float = 60.0
    most: int = 8

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                hint = suggestion(kind, KINDS)
                raise ValueError(f"expected kinds of faults out of {', '.join(KINDS)}, got {kind!r}{hint}")
        if not 5 <= self.until < float("inf"):
            raise ValueError(f"expected at least 5 s with faults, got {self.until}")
        if self.most < 1:
            raise ValueError(f"expected at least 1 fault, got {self.most}")


def parse_plan(text: str) -> list[PlannedFault]:
    """The plan that a text means. Raises `Malformed`."""
    plan = parse_faults(text)
    for fault in plan:
        if fault.kind not in FAULT_KINDS:
            raise Malformed(f"expected one of {', '.join(FAULT_KINDS)}, got {fault.kind!r} in {str(fault)!r}")
        if fault.kind == "inject":
            try:
                parse_fault(" ".join(fault.words))
            except FaultyRule as error:
                raise Malformed(f"{error} in {str(fault)!r}") from None
    return plan


class FaultDriver:
    """The faults of one world, and its load. inflicted: those that happened, as a plan."""

    def __init__(
        self, world: SimulatedWorld, faults: Iterable[PlannedFault] | DrawnFaults, seed: int
    ) -> None:
        self._world = world
        self._random = Random(f"faults/{seed}")
        self.inflicted: list[PlannedFault] = []
        self._ends = 0.0
        self._stops = 0
        """How many `stop` are under way."""
        self._remaining = self._moved = 0
        """How many draws are to come, and how many of these have come early."""
        self._over: asyncio.Future[None] = world.loop.create_future()
        self._open: dict[int, FaultEnd] = {}
        self._opened = 0
        until = faults.until if isinstance(faults, DrawnFaults) and "load" in faults.kinds else None
        planned = () if isinstance(faults, DrawnFaults) else tuple(faults)
        self.load = Load(seed, planned, until, world.loop.time, self._happened)
        if isinstance(faults, DrawnFaults):
            self._draws = faults
            self._kinds = [kind for group in faults.kinds for kind in KINDS[group] if kind not in LOADS]
            last = int((faults.until - _LEAST) * 1000)
            self._ends = faults.until
            self._remaining = self._random.randint(1, faults.most) if self._kinds else 0
            for _ in range(self._remaining):
                world.loop.call_exactly(self._random.randrange(500, last) / 1000, self._draw_when_due)
        for fault in planned:
            self._ends = max(self._ends, (fault.at + (fault.duration or 0)) / 1000)
            if fault.kind not in LOADS:
                world.loop.call_exactly(fault.at / 1000, self._inflict, fault)

    @property
    def ends(self) -> float:
        """When the last fault is over, in seconds; later than now while a process takes its time to stop, or
        waits for an answer over a half-open connection."""
        if self._stops or self._world.network.is_asked_in_vain:
            self._ends = max(self._ends, self._world.loop.now + 1)
        return self._ends

    def finish(self) -> None:
        """All faults are over."""
        if not self._over.done():
            self._over.set_result(None)
        for end in list(self._open.values()):
            end()

    def check(self) -> None:
        """Raises `Violation` for a fault that happened to a name which nothing in this world has had."""
        world = self._world
        nodes = [f"broker-{number}" for number in world.nodes]
        processes = [service.name for service in world.services("*")]
        for fault in (*self.inflicted, *self.load.unmet):
            if fault.kind in _OF_NODES:
                names = nodes
            elif fault.kind == "load":
                names = sorted(self.load.names)
            elif fault.kind == "busy":
                names = [*processes, "test", *world.databases]
            elif fault.kind in ("skew", "stop"):
                names = processes
            elif fault.kind in ("crash", "freeze"):
                names = processes + nodes
            else:
                names = list(world.network.machines)
            for target in fault.targets:
                if not any(fnmatchcase(name, target) for name in names):
                    expected = ", ".join(names) or "a process"
                    raise Violation("Plan", f"expected one of {expected}, got {target!r} in {str(fault)!r}")

    # --- what a seed draws ---

    def _draw_when_due(self) -> None:
        self._remaining -= 1
        if self._moved:
            self._moved -= 1
        else:
            self._draw()

    def _draw_early(self, delay: float) -> None:
        """Let one of the later draws come so many seconds from now: what goes wrong while a process starts
        needs two faults at a time."""
        at = self._world.loop.now + delay
        if self._remaining > self._moved and at < self._draws.until - _LEAST:
            self._moved += 1
            self._world.loop.call_exactly(at, self._draw)

    def _draw(self) -> None:
        random, world = self._random, self._world
        now = round(world.loop.now * 1000)
        last = int(self._draws.until * 1000)
        duration = min(random.choice((300, 2_000, 8_000, 20_000, 45_000)), max(last - now, 100))
        kind = random.choice(self._kinds)
        nodes = [f"broker-{number}" for number in world.nodes]
        process = random.choice(world.clients)
        node = random.choice([*nodes, "broker-*"])
        if world.databases and kind in KINDS["network"] and random.random() < 0.5:
            node = random.choice(world.databases)
        rule = random.choice(LAWFUL_RULES)
        times = random.randint(1, 3)
        targets: tuple[str, ...] = (process,)
        words: tuple[str, ...] = ()
        lasts = True
        match kind:
            case "cut" | "half-open" | "drop":
                targets, lasts = (process, node), kind == "cut"
                if kind == "half-open" and random.random() < _RESENT[1]:
                    words = (_RESENT[0],)
            case "block":
                targets = (process, node) if random.random() < 0.5 else (node, process)
            case "slow":
                targets, words = (process, "*"), (random.choice(("50ms", "400ms", "3s")),)
            case "skew":
                words = (random.choice(("-1h", "-30s", "30s", "1h")),)
            case "stop":
                targets = (process if random.random() < 0.7 else "*",)
                words = random.choice(((), (str(int(2 ** (8 * random.random()))),)))
            case "crash-node" | "freeze-node" | "fill" | "fail":
                targets = (random.choice(nodes),)
                kind = {"crash-node": "crash", "freeze-node": "freeze"}.get(kind, kind)
            case "coordinate":
                groups = sorted(world.observed.groups)
                targets, lasts = (random.choice(nodes),), False
                words = (random.choice(groups),) if groups else ()
            case "lead":
                places = world.partitions()
                targets, lasts = (random.choice(nodes),), False
                if places:
                    topic, index = random.choice(places)
                    words = (topic, str(index))
            case "inject":
                targets, words = ("broker-*",), (*rule.split(), f"times={times}")
        if kind in ("coordinate", "lead") and not words:
            return
        if kind in ("crash", "freeze", "skew", "stop") and process == "test":
            return  # the test itself is not a process that can fail
        if kind in ("crash", "stop") and targets[0] not in nodes and random.random() < 0.5:
            self._draw_early(duration / 1000)
        self._inflict(PlannedFault(now, kind, targets, words, duration if lasts else None))

    # --- what happens ---

    def _inflict(self, fault: PlannedFault) -> None:
        world = self._world
        self._happened(fault)
        ends = self._begin(fault)
        if fault.kind == "stop":
            self._world.loop.create_task(self._stop(fault), name=str(fault), context=Context())
            return
        if fault.duration is None:
            if fault.kind == "inject":
                self._keep(ends)
            return
        for end in ends:
            key = self._keep([end])
            world.loop.call_exactly(world.loop.now + fault.duration / 1000, self._end, key)

    def _happened(self, fault: PlannedFault) -> None:
        self.inflicted.append(fault)
        self._world.happened("fault", str(fault))

    def _keep(self, ends: list[FaultEnd]) -> int:
        for end in ends:
            self._opened += 1
            self._open[self._opened] = end
        return self._opened

    def _end(self, key: int) -> None:
        end = self._open.pop(key, None)
        if end is not None:
            self._world.trace("fault over", "")
            end()

    def _begin(self, fault: PlannedFault) -> list[FaultEnd]:
        """Let a fault begin; what ends it."""
        network, first = self._world.network, fault.targets[0]
        match fault.kind:
            case "cut" | "block":
                return [network.paths.cut(first, fault.targets[1], is_both_ways=fault.kind == "cut")]
            case "drop":
                network.drop(first, fault.targets[1])
                network.drop(fault.targets[1], first)
                return []
            case "half-open":
                resent_ms = parse_time(fault.words[0]) if fault.words else None
                for ends in ((first, fault.targets[1]), (fault.targets[1], first)):
                    network.silence(*ends, None if resent_ms is None else resent_ms / 1000)
                return []
            case "slow":
                extra_ms = parse_time(fault.words[0])
                assert extra_ms is not None
                return [network.paths.slow(first, fault.targets[1], extra_ms)]
            case "inject":
                return self._inject(fault)
        return [*self._of_processes(fault), *self._of_nodes(fault)]

    def _of_processes(self, fault: PlannedFault) -> list[FaultEnd]:
        ends: list[FaultEnd] = []
        for service in self._world.services(fault.targets[0]):
            if fault.kind == "crash":
                ends.append(service.crash())
            elif fault.kind == "freeze":
                ends.append(service.freeze())
            elif fault.kind == "skew":
                skew_ms = parse_time(fault.words[0].removeprefix("-"))
                assert skew_ms is not None
                sign = -1 if fault.words[0].startswith("-") else 1
                ends.append(service.skew(sign * skew_ms / 1000))
        return ends

    async def _stop(self, fault: PlannedFault) -> None:
        """Stop processes one after the other, each for its part of the time, and start each again."""
        world = self._world
        services = world.services(fault.targets[0])
        part = (fault.duration or 0) / 1000 / max(len(services), 1)
        awaits = int(fault.words[0]) if fault.words else 0
        self._stops += 1
        try:
            for service in services:
                end = world.loop.now + part
                if awaits:
                    await asyncio.wait([service.awaits(awaits), self._over], timeout=part or None,
                                       return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
                await service.stop()
                if fault.duration is not None:
                    await asyncio.wait([self._over], timeout=max(end - world.loop.now, 0))
                    service.boot()
        except Violation as violation:
            world.fail(violation)
        finally:
            self._stops -= 1

    def _of_nodes(self, fault: PlannedFault) -> list[FaultEnd]:
        ends: list[FaultEnd] = []
        moves, network = self._world.kafka.moves, self._world.network
        for number in self._world.nodes:
            name = f"broker-{number}"
            if not fnmatchcase(name, fault.targets[0]):
                continue
            with suppress(LookupError):  # a node that is down already, a partition that is not there
                match fault.kind:
                    case "crash":
                        moves.stop_node(number).awaited = True
                        ends.append(self._starting(number))
                    case "freeze":
                        ends.append(network.freeze(network.machines[name]))
                    case "coordinate":
                        moves.coordinator(group=fault.words[0], to=number)
                    case "lead":
                        moves.leader(fault.words[0], int(fault.words[1]), to=number)
                    case "fill":
                        moves.fill_log_dir(number)
                        ends.append(self._restoring(number))
                    case "fail":
                        moves.fail_log_dir(number)
                        ends.append(self._restoring(number))
        return ends

    def _starting(self, number: int) -> FaultEnd:
        def start() -> None:
            self._world.kafka.moves.start_node(number).awaited = True

        return start

    def _restoring(self, number: int) -> FaultEnd:
        def restore() -> None:
            with suppress(LookupError):
                self._world.kafka.moves.restore_log_dir(number)

        return restore

    def _inject(self, fault: PlannedFault) -> list[FaultEnd]:
        rule = replace(parse_fault(" ".join(fault.words)), optional=True)
        faults = self._world.kafka.faults
        target = fault.targets[0]
        nodes = [number for number in self._world.nodes
                 if fnmatchcase(f"broker-{number}", target)]  # fmt: skip
        rules = [rule] if target in ("*", "broker-*") else [replace(rule, node=node) for node in nodes]
        return [_removing(faults.add(rule)) for rule in rules]


def _removing(handle: FaultHandle) -> FaultEnd:
    return handle.remove
