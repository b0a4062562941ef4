"""A small world for the machines: ZooKeeper, processes, and the network between them, in memory.

Everything that one process sends another is bytes. Each direction of a connection keeps its order; `latency`
draws each message's delay. What happened is in `history`, one entry for each message, log line and change of
ownership, for the checkers.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from coordwire.codec import Message
from coordwire.designs.drafts.actions import (
    AskOffsetManager,
    AskZooKeeper,
    Connect,
    Disconnect,
    DraftPartition,
    EndSession,
    FetchersStarted,
    FetchersStopped,
    Noted,
    OpenSession,
)
from coordwire.designs.drafts.machine import Machine, MachineHost, SendBytes
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    GetData,
    NodeStat,
    OperationOutcome,
    SetData,
    ZooKeeperError,
)
from coordwire.designs.drafts.zookeeper_tree import ZooKeeperTree
from coordwire.dialects import Dialect
from coordwire.dialects.zookeeper import Topic


class Entry(NamedTuple):
    """Something that happened. what: a message that was sent, or an action."""

    time: int
    name: str
    what: Any
    peer: str = ""


class Sent(NamedTuple):
    """A message that leaves its sender; the same one is an entry again when it arrives."""

    message: Message


class Written(NamedTuple):
    """A node that a process asks ZooKeeper to write."""

    path: str
    data: bytes


class Elected(NamedTuple):
    """A broker was elected. owners: the consumers that own something then, as ZooKeeper has it."""

    owners: frozenset[str]


@dataclass(eq=False)
class Node:
    """A process. zookeeper: whether it reaches ZooKeeper. others: the sessions of its further clients."""

    name: str
    host: MachineHost
    session: int = 0
    session_ms: int = 6_000
    zookeeper: bool = True
    alive: bool = True
    frozen: bool = False
    held: deque[AskZooKeeper] = field(default_factory=deque)
    others: dict[int, int] = field(default_factory=dict)

    @property
    def sessions(self) -> dict[int, int]:
        """The session of each of its ZooKeeper clients."""
        return {0: self.session, **self.others}

    @property
    def machine(self) -> Any:
        return self.host.machine


@dataclass(eq=False)
class Line:
    """A connection: its ends, (name, number) of the client and of the server."""

    ends: list[tuple[str, int]]
    due: list[int] = field(default_factory=lambda: [0, 0])
    held: list[list[Callable[[], None]]] = field(default_factory=lambda: [[], []])
    open: bool = True


class Cluster:
    """All processes, and their time in ms. random: None for messages that take no time."""

    def __init__(self, *, seed: int | None = None, latency: tuple[int, int] = (0, 0)) -> None:
        self.random = Random(seed)
        self.latency = latency
        self.now = 0
        self.tree = ZooKeeperTree()
        self.nodes: dict[str, Node] = {}
        self.history: list[Entry] = []
        self.owners: dict[DraftPartition, set[str]] = {}
        self.overlap: dict[DraftPartition, int] = {}
        self.blocked: set[tuple[str, str]] = set()
        self._lines: dict[tuple[str, int], tuple[Line, int]] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._zookeeper_due: dict[str, int] = {}
        self.topic_changes = 0
        self.admin = self.tree.open_session(1 << 60, 0)
        """A session of nobody's: a test's own."""
        self.offset_manager: Callable[[Message, int], Message | tuple[int, Message] | None] | None = None

    # --- what a test sets up ---

    def topic(self, name: str, partitions: dict[int, list[int]]) -> None:
        self.topic_changes += 1
        data = Topic(partitions=partitions).build()
        for path in ("/brokers", "/brokers/topics"):
            self.tree.apply(self.admin, CreateNode(path), self.now)
        if not self.tree.apply(self.admin, CreateNode(Topic.path(name), data), self.now).ok:
            self.tree.apply(self.admin, SetData(Topic.path(name), data), self.now)
        self.deliver_events()

    def add(
        self, name: str, machine: Machine, dialect: Dialect = Dialect.DRAFT_1, *, session_ms: int = 6_000
    ) -> Any:
        """Start a process."""
        node = self.nodes[name] = Node(name, MachineHost(machine, dialect), session_ms=session_ms)
        machine.now = self.now
        node.session = self.tree.open_session(session_ms, self.now)
        machine.start(node.session)
        self._drain(node)
        return machine

    # --- faults ---

    def crash(self, name: str) -> None:
        """End a process at once: its connections close, its session stays until it expires."""
        node = self.nodes.pop(name)
        node.alive = False
        for number in list(node.host.connections):
            self._close(name, number)
        for partition in list(self.owners):
            self._disown(partition, name)

    def cut(self, one: str, other: str) -> None:
        """Hold all that two processes send each other."""
        self.blocked |= {(one, other), (other, one)}

    def heal(self, one: str, other: str) -> None:
        """Deliver what was held."""
        self.blocked -= {(one, other), (other, one)}
        for line in list(dict.fromkeys(line for line, _ in self._lines.values())):
            if {name for name, _ in line.ends} == {one, other}:
                for side in (0, 1):  # an end that was closed meanwhile has its close to deliver
                    held, line.held[side] = line.held[side], []
                    for action in held:
                        self._carry(line, side, action)

    def cut_zookeeper(self, name: str) -> None:
        self.nodes[name].zookeeper = False

    def heal_zookeeper(self, name: str) -> None:
        node = self.nodes[name]
        node.zookeeper = True
        self.reach_zookeeper(node)
        while node.zookeeper and node.held:
            self._ask(node, node.held.popleft())

    def freeze(self, name: str) -> None:
        """Stop a process's clock and ears; its fetchers are part of it, and stop too, unseen."""
        self.nodes[name].frozen = True
        self.nodes[name].zookeeper = False

    def thaw(self, name: str) -> None:
        node = self.nodes[name]
        node.frozen = False
        node.machine.advance(self.now)
        self._drain(node)
        self.heal_zookeeper(name)

    # --- time ---

    def run(self, ms: int) -> None:
        """Let this time pass."""
        until = self.now + ms
        while True:
            due = self._queue[0][0] if self._queue else until + 1
            deadlines = [
                deadline for node in self.nodes.values()
                if not node.frozen and (deadline := node.machine.next_deadline()) is not None
            ]  # fmt: skip
            for node in self.nodes.values():
                if node.zookeeper:
                    for session in node.sessions.values():
                        self.tree.renew(session, self.now)
            alive = self.now + 1_000  # clients ping ZooKeeper that often
            expiry = self.tree.next_expiry()
            step = min([due, *deadlines, until + 1 if expiry is None else expiry])
            if step > alive:
                self.now = min(alive, until)
                if self.now < until:
                    continue
            if step > until:
                break
            self.now = max(self.now, step)
            self.tree.expire(self.now)
            self.deliver_events()
            if due <= self.now:
                heapq.heappop(self._queue)[2]()
                continue
            for node in list(self.nodes.values()):
                if not node.frozen and self.nodes.get(node.name) is node:
                    node.machine.advance(self.now)
                    self._drain(node)
        self.now = until
        for node in self.nodes.values():
            if not node.frozen:
                node.machine.advance(self.now)
                self._drain(node)

    def _at(self, time: int, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (time, self._number, action))

    def _delay(self) -> int:
        return self.random.randint(*self.latency)

    # --- what machines do ---

    def drain(self, name: str) -> None:
        """Take what a test made a machine do."""
        self._drain(self.nodes[name])

    def _drain(self, node: Node) -> None:
        for action in node.host.actions():
            match action:
                case Connect():
                    self._connect(node, action)
                case SendBytes(connection=number, data=data):
                    self._send(node.name, number, data)
                case Disconnect(connection=number):
                    self._close(node.name, number)
                case AskZooKeeper():
                    self._ask(node, action)
                case AskOffsetManager():
                    self._ask_offset_manager(node, action)
                case OpenSession(client=client):
                    node.others[client] = self.tree.open_session(node.session_ms, self.now)
                    session = node.others[client]
                    self._reply(
                        node, session,
                        lambda session=session, client=client: node.machine.session_opened(session, client),  # type: ignore[misc]
                    )  # fmt: skip
                case EndSession(client=client):
                    self.tree.close_session(node.sessions[client])
                    self.deliver_events()
                case FetchersStarted(partitions=partitions):
                    self._note(node.name, action)
                    for partition in partitions:
                        self._own(partition, node.name)
                case FetchersStopped(partitions=partitions):
                    self._note(node.name, action)
                    for partition in partitions:
                        self._disown(partition, node.name)
                case Noted():
                    self._note(node.name, action)

    def _note(self, name: str, what: object, peer: str = "") -> None:
        self.history.append(Entry(self.now, name, what, peer))

    def _own(self, partition: DraftPartition, name: str) -> None:
        self.owners.setdefault(partition, set()).add(name)
        if len(self.owners[partition]) == 2:
            self.overlap[partition] = self.overlap.get(partition, 0) - self.now
            self._note(name, Noted("Overlap", f"{partition}: {sorted(self.owners[partition])}"))

    def _disown(self, partition: DraftPartition, name: str) -> None:
        owners = self.owners[partition]
        if name in owners and len(owners) == 2:
            self.overlap[partition] += self.now
        owners.discard(name)

    def overlaps(self) -> dict[DraftPartition, int]:
        """For how long each partition had two owners, up to now."""
        return {
            one: total + (self.now if len(self.owners[one]) > 1 else 0) for one, total in self.overlap.items()
        }

    def owner(self, topic: str, partition: str) -> str | None:
        """The owner of a partition; of several, one."""
        return min(self.owners.get(DraftPartition(topic, partition), ()), default=None)

    # --- connections ---

    def _connect(self, node: Node, action: Connect) -> None:
        server = self.nodes.get(action.host)
        line = Line([(node.name, action.connection), (action.host, 0)])
        self._lines[node.name, action.connection] = line, 0
        if server is None:
            self._carry(line, 1, lambda: self._closed(line, 0))
            return

        def arrive() -> None:
            if not server.alive:
                self._carry(line, 1, lambda: self._closed(line, 0))
                return
            line.ends[1] = server.name, server.host.accept()
            self._lines[line.ends[1]] = line, 1
            self._carry(line, 1, lambda: self._to(line, 0, lambda node, number: node.host.opened(number)))

        self._carry(line, 0, arrive)

    def _send(self, name: str, number: int, data: bytes) -> None:
        result = self._lines.get((name, number))
        if result is not None:
            line, side = result
            self._carry(
                line, side,
                lambda: self._to(line, 1 - side, lambda node, number: self._received(node, number, data)),
            )  # fmt: skip

    def _received(self, node: Node, number: int, data: bytes) -> None:
        peer = self.peer(node.name, number)
        receive = node.machine.received

        def seen(connection: int, event: Any) -> None:
            frame = getattr(event, "frame", None)
            if frame is not None:
                self._note(peer, frame.message, node.name)
            receive(connection, event)

        node.machine.received = seen
        node.host.receive(number, data)
        node.machine.received = receive

    def peer(self, name: str, number: int) -> str:
        line, side = self._lines[name, number]
        return line.ends[1 - side][0]

    def _close(self, name: str, number: int) -> None:
        result = self._lines.pop((name, number), None)
        if result is not None:
            line, side = result
            self._carry(line, side, lambda: self._closed(line, 1 - side))

    def _closed(self, line: Line, side: int) -> None:
        self._to(line, side, lambda node, number: node.host.closed(number))
        self._lines.pop(line.ends[side], None)

    def _to(self, line: Line, side: int, action: Callable[[Node, int], None]) -> None:
        """Let something happen at one end of a connection, unless that has closed."""
        name, number = line.ends[side]
        node = self.nodes.get(name)
        if node is None or (name, number) not in self._lines:
            return
        if node.frozen:
            self._at(self.now + 50, lambda: self._to(line, side, action))
            return
        node.machine.advance(self.now)
        action(node, number)
        self._drain(node)

    def _carry(self, line: Line, side: int, action: Callable[[], None]) -> None:
        """Bring something from one end to the other, after all that went before it."""
        if (line.ends[side][0], line.ends[1 - side][0]) in self.blocked:
            line.held[side].append(action)
            return
        line.due[side] = max(self.now + self._delay(), line.due[side])

        def arrive() -> None:
            if (line.ends[side][0], line.ends[1 - side][0]) in self.blocked:
                line.held[side].append(action)
            else:
                action()

        self._at(line.due[side], arrive)

    # --- ZooKeeper ---

    def _ask(self, node: Node, action: AskZooKeeper) -> None:
        if not node.zookeeper:
            node.held.append(action)
            return
        due = max(self.now + self._delay(), self._zookeeper_due.get(node.name, 0))
        self._zookeeper_due[node.name] = due
        session = node.sessions[action.client]

        def run() -> None:
            if not node.alive:
                return
            if not node.zookeeper:
                node.held.append(action)
                return
            outcomes = tuple(self.tree.apply(session, operation, self.now) for operation in action.operations)
            self.deliver_events()
            self._reply(node, session, lambda: node.machine.zookeeper_reply(action.number, outcomes))
            if any(outcome.error is ZooKeeperError.SESSION_EXPIRED for outcome in outcomes):
                self.reach_zookeeper(node)

        self._at(due, run)

    def _ask_offset_manager(self, node: Node, action: AskOffsetManager) -> None:
        """offset_manager: gives the answer to a request at a time, or after how many ms and the answer; None
        for one that is lost."""

        def arrive() -> None:
            manager = self.offset_manager
            response = None if manager is None else manager(action.request, self.now)
            if isinstance(response, tuple):
                later, answer = response
                self._at(self.now + later, lambda: reply(answer))
            else:
                reply(response)

        def reply(response: Message | None) -> None:
            if response is not None and node.alive:
                self._reply(
                    node, node.session, lambda: node.machine.offset_manager_reply(action.number, response)
                )

        self._at(self.now + self._delay(), arrive)

    def _reply(self, node: Node, session: int, action: Callable[[], None]) -> None:
        due = max(self.now + self._delay(), self._zookeeper_due.get(node.name, 0))
        self._zookeeper_due[node.name] = due

        def run() -> None:
            if node.alive and session in node.sessions.values():
                if not node.zookeeper:
                    self._at(self.now + 50, run)
                    return
                node.machine.advance(self.now)
                action()
                self._drain(node)

        self._at(due, run)

    def deliver_events(self) -> None:
        """What watches see of what was done in the tree."""
        sessions = {session: node for node in self.nodes.values() for session in node.sessions.values()}
        for event in self.tree.events():
            node = sessions.get(event.session)
            if node is not None:
                self._reply(
                    node, event.session,
                    lambda node=node, event=event: node.machine.zookeeper_event(event),  # type: ignore[misc]
                )  # fmt: skip

    def reach_zookeeper(self, node: Node) -> None:
        """The clients are heard again, if their sessions live; else they get new ones."""
        for client, session in node.sessions.items():
            if not node.alive or self.tree.renew(session, self.now):
                continue
            node.held = deque(action for action in node.held if action.client != client)
            new = self.tree.open_session(node.session_ms, self.now)
            if client:
                node.others[client] = new
            else:
                node.session = new
            node.machine.advance(self.now)
            node.machine.session_expired(new, client)
            self._note(node.name, Noted("SessionExpired"))
            self._drain(node)

    # --- for tests ---

    def stat(self, path: str) -> NodeStat:
        """A node's stat: whose session it ends with, and its version."""
        outcome = self.tree.apply(self.admin, GetData(path), self.now)
        assert outcome.stat is not None, path
        return outcome.stat

    def read(self, path: str) -> bytes | None:
        """What a node has now."""
        outcome: OperationOutcome = self.tree.apply(self.admin, GetData(path), self.now)
        return outcome.data if outcome.ok else None

    def sent(self, kind: type[Message], *, to: str | None = None) -> list[Entry]:
        """The messages of a class that have arrived."""
        return [
            entry
            for entry in self.history
            if isinstance(entry.what, kind) and (to is None or entry.peer == to)
        ]  # fmt: skip

    def noted(self, name: str) -> list[Entry]:
        return [entry for entry in self.history if isinstance(entry.what, Noted) and entry.what.name == name]
