"""A simulated world: one clock, its nodes and the network between them, and the faults of a plan.

    world = World(seed=7)
    world.add("coordinator-1", make_coordinator)
    world.add("consumer-1", make_consumer)
    world.plan(parse_faults("10s crash coordinator-1 for 5s"))
    world.run(until=60_000)

Rules: a seed gives one run, byte for byte. Nothing here knows what the processes say to each other.

The virtual clock: a queue of callbacks by time. Those of one time run in the order in which they came.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.designs.simulator.ownership import Ownership
from coordwire.designs.simulator.tap import TapRecord
from coordwire.errors import counted
from coordwire.testing.fault_plans import (
    FaultEnd,
    Paths,
    PlannedFault,
    are_between,
    parse_time,
)

if TYPE_CHECKING:
    from coordwire.designs.simulator.message_flow import MessageFlow
    from coordwire.designs.simulator.sent_messages import SentMessages

Latency: TypeAlias = tuple[int, int] | Callable[[Callable[[], float]], int]
"""Of one way, in milliseconds: the least and the greatest, or what makes it of a source of numbers from 0 to
1."""


class Clock:
    """Time in milliseconds. steps: how many events have happened."""

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.steps = 0
        self._number = 0
        self._queue: list[tuple[int, int, Callable[..., None], Any]] = []

    def at(self, time: int, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen at a time; one that is past means now."""
        self._number += 1
        now = self.now
        heapq.heappush(self._queue, (time if time > now else now, self._number, action, arguments))

    def run(self, until: int, *, steps: int | None = None) -> bool:
        """Let time go by up to a moment, this included; False if `steps` events did not reach it."""
        queue, pop = self._queue, heapq.heappop
        remaining = -1 if steps is None else steps
        while queue and queue[0][0] <= until:
            if not remaining:
                return False
            remaining -= 1
            self.now, _, action, arguments = pop(queue)
            self.steps += 1
            action(*arguments)
        self.now = max(self.now, until)
        return True


# --- the world ---


_CONNECT_TIMEOUT_MS = 10_000


class World:
    """latency: of one way; a link's bytes arrive in order whatever it is. tap: sees what a capture would.
    sent: keeps what processes send each other. messages: those that consumers read, if any are simulated.
    paths: the faults of the network. on_reach: called when nodes can, or cannot, reach each other from now
    on.

    >>> from coordwire.designs.simulator import World, parse_faults
    >>> from coordwire.designs.simulator.runs import add_design
    >>> world = World(seed=7)
    >>> design = add_design(world, "consumer", members=2, partitions=4)
    >>> world.plan(parse_faults("15s crash consumer-2"))
    >>> world.run(30_000)
    True
    >>> world
    <World at 30,000 ms: 4 nodes, 1 fault>
    >>> world.ownership.owners(("group", "orders", 3))
    ['consumer-1']
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        latency: Latency = (1, 5),
        tap: Callable[[TapRecord], None] | None = None,
    ) -> None:
        self.seed = seed
        self.clock = Clock()
        self.tap = tap
        self.nodes: dict[str, SimulatedNode] = {}
        self.paths = Paths(self._reach_changed)
        self.ownership = Ownership(lambda: self.clock.now)
        self.faults: list[tuple[int, PlannedFault]] = []
        self.blocked_links: dict[int, Link] = {}
        self.messages: MessageFlow | None = None
        self.sent: SentMessages | None = None
        self.on_reach: Callable[[], None] | None = None
        self._draw = latency if callable(latency) else None
        self._least, most = (0, 0) if callable(latency) else latency
        self._spread = most - self._least + 1
        self._random = Random(f"{seed}/network").random
        self._links = 0

    def __repr__(self) -> str:
        faults = counted(len(self.faults), "fault")
        return f"<World at {self.now:,} ms: {counted(len(self.nodes), 'node')}, {faults}>"

    @property
    def now(self) -> int:
        return self.clock.now

    @property
    def steps(self) -> int:
        """How many events have happened: bytes that arrived, timers, and what processes had done later."""
        return self.clock.steps

    def add(
        self, name: str, factory: Callable[[], Process], *, port: int = 9092, at: int = 0
    ) -> SimulatedNode:
        """A node whose process starts at a time; `factory` makes it, also at each restart."""
        node = self.nodes[name] = SimulatedNode(self, name, len(self.nodes) + 1, factory, port)
        self.clock.at(at, node.boot)
        return node

    def run(self, until: int, *, steps: int | None = None) -> bool:
        """As `Clock.run`."""
        return self.clock.run(until, steps=steps)

    # --- the network ---

    def latency(self, sender: str, receiver: str) -> int:
        """How long bytes take now."""
        if self._draw is None:
            usual = self._least + int(self._random() * self._spread)
        else:
            usual = self._draw(self._random)
        return usual + self.paths.extra_ms(sender, receiver)

    def is_cut(self, sender: str, receiver: str) -> bool:
        return self.paths.is_cut(sender, receiver)

    def open(self, link: Link, name: str) -> None:
        """Open a link from its node to another, which learns of it after the latency."""
        link.peer = name
        self.clock.at(self.now + self.latency(link.node.name, name), self._reach, link, name)

    def _reach(self, link: Link, name: str) -> None:
        node, asker = self.nodes.get(name), link.node
        if asker.links.get(id(link)) is not link:
            return  # closed, or crashed, before it was open
        if self.is_cut(asker.name, name):
            self.clock.at(self.now + _CONNECT_TIMEOUT_MS, self._refuse, link)
            return
        if node is None or node.process is None:
            self.clock.at(self.now + self.latency(name, asker.name), self._refuse, link)
            return
        self._links += 1
        accepted = Link(node, f"{node.host}:{node.port}")
        accepted.number = link.number = self._links
        accepted.is_listener = True
        accepted.peer, accepted.peer_address = asker.name, link.address
        link.peer_address = accepted.address
        accepted.peer_link, link.peer_link = link, accepted
        accepted.is_open = True
        node.links[id(accepted)] = accepted
        if self.tap is not None:
            self.tap(TapRecord(self.now, link.number, link.address, accepted.address, False, "open", b""))
        at = self.now + self.latency(name, asker.name)
        accepted.not_before(at)
        self.clock.at(at, self._opened, link)
        node.call(node.process.on_accept, accepted)

    def _opened(self, link: Link) -> None:
        node = link.node
        if node.links.get(id(link)) is not link or node.process is None:
            if link.peer_link is not None and link.peer_link.is_open:
                link.peer_link.break_off()
            return
        if link.peer_link is None or not link.peer_link.is_open:
            self._refuse(link)
            return
        link.is_open = True
        node.call(node.process.on_open, link)

    def _refuse(self, link: Link) -> None:
        node = link.node
        if node.links.pop(id(link), None) is not link or node.process is None:
            return
        node.call(node.process.on_close, link)

    def _reach_changed(self) -> None:
        for key, link in list(self.blocked_links.items()):
            if link.peer_link is not None and not self.is_cut(link.node.name, link.peer_link.node.name):
                del self.blocked_links[key]
                link.release()
        if self.on_reach is not None:
            self.on_reach()

    # --- faults ---

    def plan(self, faults: Iterable[PlannedFault]) -> None:
        """Let faults happen; `World.faults` has those that have happened, with their times."""
        for fault in faults:
            self.clock.at(fault.at, self.inflict, fault)

    def inflict(self, fault: PlannedFault) -> None:
        """A fault happens now."""
        self.faults.append((self.now, fault))
        for end in self._begin(fault):
            if fault.duration is not None:
                self.clock.at(self.now + fault.duration, end)

    def _begin(self, fault: PlannedFault) -> Iterator[FaultEnd]:
        """Let a fault begin, for each of its nodes; what ends it there."""
        first, second = fault.targets[0], fault.targets[-1]
        match fault.kind:
            case "cut":
                yield self.paths.cut(first, second)
                return
            case "slow":
                extra_ms = parse_time(fault.words[0])
                assert extra_ms is not None
                yield self.paths.slow(first, second, extra_ms)
                return
            case "drop":
                self._drop(first, second)
                return
        for node in [node for name, node in self.nodes.items() if fnmatchcase(name, first)]:
            match fault.kind:
                case "crash":
                    node.crash()
                    yield node.boot
                case "freeze":
                    node.freeze()
                    yield node.thaw
                case _ if node.process is not None:
                    node.call(node.process.on_fault, fault.kind, fault.words)

    def _drop(self, first: str, second: str) -> None:
        for link in [link for node in self.nodes.values() for link in node.links.values()]:
            end, peer = link.node.name, link.peer
            if link.is_open and (
                are_between(end, peer, first, second) or are_between(peer, end, first, second)
            ):
                link.break_off()
