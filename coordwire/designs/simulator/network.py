"""Nodes, and links between them: ordered bytes with a latency, until one side closes or the link breaks.

    link.send            arrives after the latency, never before what was sent earlier
    cut A B              bytes wait, as TCP sends them again, and arrive after the cut; nothing connects
    drop A B             links break at once: what is on its way is lost, both sides notice
    crash A              the process is gone, its links are closed; a restart has the disk alone
    freeze A             the process does nothing; what happened meanwhile comes when it goes on

Rules: a link's listener is the side that a capture shows: requests when they arrive, answers when they leave.
A frozen node's bytes arrive in a capture while the process does not read them yet. A node's
process is a machine without socket and clock, which acts only inside its calls, through its node and its
links; what it wants to remember after a crash it keeps in `node.disk`. Randomness comes from `node.random`
alone, so that a seed gives a run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Literal

from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import Event, RequestReceived
from coordwire.designs.simulator.tap import TapRecord
from coordwire.errors import counted

if TYPE_CHECKING:
    from coordwire.designs.simulator.world import World


class Process:
    """One process, from its start to its crash. Every method may be left out.

    >>> from coordwire.designs.simulator import Process, World
    >>> class Beacon(Process):
    ...     def start(self, node):
    ...         super().start(node)
    ...         node.set_timer("light", node.now + 500)
    ...     def on_timer(self, key):
    ...         print(key, self.node.now)
    >>> world = World()
    >>> node = world.add("tower", Beacon, at=1_000)
    >>> world.run(2_000)
    light 1500
    True
    >>> node.process
    <Beacon on tower>
    """

    node: SimulatedNode
    keeps_no_offsets = False
    """Whether its design says nothing of where offsets are kept: `MessageFlow` keeps them."""

    def __repr__(self) -> str:
        node = getattr(self, "node", None)
        return f"<{type(self).__name__} {'not started' if node is None else f'on {node.name}'}>"

    def start(self, node: SimulatedNode) -> None:
        """The process begins on its node."""
        self.node = node

    def on_accept(self, link: Link) -> None:
        """Another node connected to this one: a process that reads messages sets `link.connection`."""

    def on_open(self, link: Link) -> None:
        """A link that this process asked for is open."""

    def on_bytes(self, link: Link, data: bytes) -> None:
        """Bytes came; by default they go to the link's connection, and its events to `on_event`."""
        connection = link.connection
        if connection is not None:
            connection.receive_data(data)
            for event in connection.events():
                self.on_event(link, event)

    def on_event(self, link: Link, event: Event) -> None:
        """The link's connection read a message, or could not."""

    def on_close(self, link: Link) -> None:
        """The other side closed the link, it was lost, or it could not be opened."""

    def on_timer(self, key: str) -> None:
        """A timer of this process is due."""

    def positions(self) -> Mapping[tuple[str, str, int], int]:
        """The partitions (group, topic, number) that it fetches now, each with the next offset."""
        return {}

    def consumed(self, partition: tuple[str, str, int], offset: int) -> None:
        """Its application has consumed a partition up to before this offset."""

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """A fault of the plan that only this process can carry out."""


_FIRST_PORT = 32_768
_PORTS = 28_000


class SimulatedNode:
    """A host with one process. disk: what survives a crash. boots: how often the process was started.

    >>> from coordwire.designs.simulator import Process, World, parse_faults
    >>> world = World()
    >>> node = world.add("server", Process)
    >>> world.plan(parse_faults("1s crash server for 2s; 5s freeze server for 1s"))
    >>> for time in (500, 1_500, 5_500, 9_000):
    ...     world.run(time) and print(time, node)
    500 <SimulatedNode server: up, 0 links>
    1500 <SimulatedNode server: down, 0 links>
    5500 <SimulatedNode server: frozen, 0 links>
    9000 <SimulatedNode server: up, 0 links>
    >>> node.boots, node.started_at
    (2, [0, 3000])
    """

    def __init__(
        self, world: World, name: str, number: int, factory: Callable[[], Process], port: int
    ) -> None:
        self.world = world
        self.name = name
        self.host = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        self.port = port
        self.disk: dict[str, Any] = {}
        self.random = Random(f"{world.seed}/{name}")
        self.process: Process | None = None
        self.boots = 0
        self.started_at: list[int] = []
        self.links: dict[int, Link] = {}
        self._clock = world.clock
        self._factory = factory
        self._ports = 0
        self._timers: dict[str, int] = {}
        self._queued: dict[str, int] = {}
        self._frozen = False
        self._missed: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()

    def __repr__(self) -> str:
        state = "frozen" if self._frozen else "up" if self.is_up else "down"
        return f"<SimulatedNode {self.name}: {state}, {counted(len(self.links), 'link')}>"

    # --- what a process asks for ---

    @property
    def now(self) -> int:
        return self._clock.now

    def connect(self, name: str, *, connection: Connection | None = None) -> Link:
        """A link to another node: `on_open` comes when it is open, `on_close` if it can't be."""
        self._ports += 1
        link = Link(self, f"{self.host}:{_FIRST_PORT + self._ports % _PORTS}", connection)
        self.links[id(link)] = link
        self.world.open(link, name)
        return link

    def set_timer(self, key: str, at: int) -> None:
        """Call `on_timer` with this key at a time, in place of what the key was set for before."""
        self._timers[key] = at
        queued = self._queued.get(key)
        if queued is None or at < queued:
            self._queue(key, at)

    def cancel_timer(self, key: str) -> None:
        self._timers.pop(key, None)

    # --- what happens to it ---

    @property
    def is_up(self) -> bool:
        return self.process is not None

    @property
    def is_frozen(self) -> bool:
        return self._frozen

    def boot(self) -> None:
        """Start the process, unless it runs."""
        if self.process is None:
            self.boots += 1
            self.started_at.append(self._clock.now)
            self.process = self._factory()
            self.process.start(self)

    def crash(self) -> None:
        self.process = None
        self._timers.clear()
        self._queued.clear()
        self._missed.clear()
        self._frozen = False
        self.world.ownership.release_all(self.name)
        self.world.ownership.resume(self.name)
        for link in list(self.links.values()):
            link.close()

    def freeze(self) -> None:
        self._frozen = self.process is not None
        if self._frozen:
            self.world.ownership.suspend(self.name)

    def thaw(self) -> None:
        self._frozen = False
        self.world.ownership.resume(self.name)
        while self._missed and not self._frozen:
            action, arguments = self._missed.popleft()
            action(*arguments)

    def call(self, action: Callable[..., None], *arguments: Any) -> None:
        """Let something happen to the process: now, or when it goes on after it was frozen."""
        if self._frozen:
            self._missed.append((action, arguments))
        else:
            action(*arguments)

    def _queue(self, key: str, at: int) -> None:
        self._queued[key] = at
        self._clock.at(at, self._fire, key, at)

    def _fire(self, key: str, at: int) -> None:
        if self._queued.get(key) != at:
            return
        if self._frozen:
            self.call(self._fire, key, at)
            return
        del self._queued[key]
        due = self._timers.get(key)
        if due is None:
            return
        if due > self._clock.now:
            self._queue(key, due)
            return
        del self._timers[key]
        if self.process is not None:
            self.process.on_timer(key)


class Link:
    """One end of a link.

    number: the same for both ends; 0 until it is open. peer: the other node's name. address: of this end;
    `peer_address` of the other. connection: what reads its bytes, None where the process does that itself.
    context: whatever the process wants to keep with it.

    >>> from coordwire.designs.simulator import Process, World
    >>> class Echo(Process):
    ...     def on_bytes(self, link, data):
    ...         link.send(data)
    >>> class Caller(Process):
    ...     def on_open(self, link):
    ...         link.send(b"hello")
    ...     def on_bytes(self, link, data):
    ...         print(self.node.now, data)
    >>> world = World(latency=(2, 2))
    >>> _ = world.add("server", Echo)
    >>> client = world.add("client", Caller)
    >>> world.run(0)
    True
    >>> link = client.connect("server")
    >>> link
    <Link client to server: not open>
    >>> world.run(100)
    8 b'hello'
    True
    >>> link
    <Link client to server: open>
    """

    __slots__ = (
        "_last", "address", "blocked", "connection", "context", "is_listener", "is_open", "node", "number",
        "peer", "peer_address", "peer_link",
    )  # fmt: skip

    def __init__(self, node: SimulatedNode, address: str, connection: Connection | None = None) -> None:
        self.node = node
        self.address = address
        self.connection = connection
        self.context: Any = None
        self.number = 0
        self.peer = ""
        self.peer_address = ""
        self.is_open = False
        self.is_listener = False
        self.peer_link: Link | None = None
        self.blocked: deque[bytes | None] = deque()
        self._last = 0

    def __repr__(self) -> str:
        return f"<Link {self.node.name} to {self.peer}: {'open' if self.is_open else 'not open'}>"

    def send_message(
        self, message: Message, *, version: int | None = None, request: RequestReceived | None = None
    ) -> None:
        """Send a message by the link's connection, by `Connection.send`; nothing once it is closed."""
        if self.is_open:
            assert self.connection is not None
            self.send(self.connection.send(message, version=version, request=request))

    def send(self, data: bytes) -> None:
        """Send bytes; nothing once the link is closed."""
        if self.is_open:
            self._transmit(data)

    def close(self) -> None:
        """Close this end; the other reads what was sent before, and then the end."""
        if self.is_open:
            self._transmit(None)
        self._end()

    def break_off(self) -> None:
        """The link is lost: both ends notice, what is on its way is not delivered."""
        for end in (self, self.peer_link):
            if end is not None and end.is_open:
                end._lost()

    def not_before(self, time: int) -> None:
        """What this end sends arrives at this time at the earliest."""
        self._last = max(self._last, time)

    def release(self) -> None:
        """The nodes can reach each other again: what waited goes on."""
        while self.blocked:
            self._arrive(self.blocked.popleft())

    # --- inside ---

    def _transmit(self, data: bytes | None) -> None:
        world, peer_link = self.node.world, self.peer_link
        if peer_link is None:
            return
        if self.is_listener and world.tap is not None:
            self._show(world.tap, data, to_client=True)
        if world.sent is not None and data is not None:
            world.sent.send(self, data)
        if self.blocked or world.is_cut(self.node.name, peer_link.node.name):
            self.blocked.append(data)
            world.blocked_links[id(self)] = self
            return
        self._arrive(data)

    def _arrive(self, data: bytes | None) -> None:
        world, peer_link = self.node.world, self.peer_link
        assert peer_link is not None
        at = world.clock.now + world.latency(self.node.name, peer_link.node.name)
        if at < self._last:
            at = self._last
        self._last = at
        world.clock.at(at, peer_link._deliver, data)

    def _deliver(self, data: bytes | None) -> None:
        if not self.is_open:
            return
        tap, sent = self.node.world.tap, self.node.world.sent
        if self.is_listener and tap is not None:
            self._show(tap, data, to_client=False)
        if sent is not None and data is not None and self.peer_link is not None:
            sent.arrive(self.peer_link)
        self.node.call(self._read, data)

    def _read(self, data: bytes | None) -> None:
        process = self.node.process
        if not self.is_open or process is None:
            return
        if data is None:
            self._end()
            process.on_close(self)
        else:
            process.on_bytes(self, data)

    def _lost(self) -> None:
        process = self.node.process
        tap = self.node.world.tap
        if self.is_listener and tap is not None:
            self._show(tap, None, to_client=True)
        self._end()
        if process is not None:
            self.node.call(process.on_close, self)

    def _end(self) -> None:
        self.is_open = False
        self.node.links.pop(id(self), None)
        if self.connection is not None:
            self.connection.close()

    def _show(self, tap: Callable[[TapRecord], None], data: bytes | None, *, to_client: bool) -> None:
        kind: Literal["data", "close"] = "close" if data is None else "data"
        number, client, server = self.number, self.peer_address, self.address
        tap(TapRecord(self.node.now, number, client, server, to_client, kind, data or b""))
