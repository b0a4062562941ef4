"""A machine of the drafts as a process: its connections are links, its ZooKeeper session one more.

Strategy: every input is followed by the machine's actions; its next deadline is one timer of the node. The
session is kept by a message each third of its time; a link that is lost is opened again, and what was asked
is sent again. Rules: a new session number means that the old session is over. What a consumer owns is entered
in `World.ownership` as (group, topic, number).

The socket server's processors of a broker: each reads and writes its connections' messages one by one.

Source: the first draft's fields ("an acceptor and a list of processors, and for each processor it contain a
request queue") and its second open problem: pools have a size that is given before, and more consumers are
more work for each thread. Strategy: a connection has one processor, in turn; a message is done when its
processor has had the time for all that came before. Rules: time is counted in microseconds, as a message
takes less than the simulation's millisecond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coordwire.designs.drafts.actions import (
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
from coordwire.designs.simulator.drafts.zookeeper_node import (
    ask_bytes,
    event_from,
    from_wire,
    replied_outcomes,
    to_wire,
)
from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.designs.simulator.partition_logs import FlowPartition
from coordwire.dialects import Dialect


class ProcessorPool:
    """size: how many processors. message_us: of each message. busy_us: the time that all have worked.
    longest_wait_ms: of a message for its processor."""

    def __init__(self, size: int, message_us: int) -> None:
        self.busy_us = 0
        self.longest_wait_ms = 0
        self._message_us = message_us
        self._free_us = [0] * max(size, 1)

    def finish(self, connection: int, now: int) -> int:
        """When a message of a connection that comes, or is to be sent, now is done; in milliseconds."""
        number = abs(connection) % len(self._free_us)
        begin = max(now * 1000, self._free_us[number])
        end = self._free_us[number] = begin + self._message_us
        self.busy_us += self._message_us
        self.longest_wait_ms = max(self.longest_wait_ms, begin // 1000 - now)
        return -(-end // 1000)


# --- the process ---


_DEADLINE, _KEEP_ALIVE, _RECONNECT = "deadline", "keep-alive", "reconnect"
_RECONNECT_MS = 200
_REPLY = b'["reply"'


@dataclass(slots=True, eq=False)
class _ZooKeeperClient:
    """A ZooKeeper client of a machine. session: 0 before the first one. link: None while it is not connected;
    is_welcome: whether it has its session over this link. requests: those without an answer, by their
    numbers."""

    number: int
    session: int = 0
    link: Link | None = None
    is_welcome: bool = False
    requests: dict[int, bytes] = field(default_factory=dict)


class MachineProcess(Process):
    """One machine. make: the machine, with the time of its start and a seeded `Random`.

    session_ms: of its ZooKeeper session, None if it has none. group: whose partitions it owns. on_note:
    called with the time, the node's name and each line of its log. pool: what reads and writes the messages
    of the connections that it accepts; None where that takes no time.
    """

    def __init__(
        self,
        make: Callable[[SimulatedNode], Machine],
        dialect: Dialect,
        *,
        session_ms: int | None = None,
        group: str = "",
        on_note: Callable[[int, str, Noted], None] | None = None,
        pool: ProcessorPool | None = None,
    ) -> None:
        self.pool = pool
        self._make = make
        self._dialect = dialect
        self._session_ms = session_ms
        self._group = group
        self._on_note = on_note
        self._links: dict[int, Link] = {}
        self._clients: dict[int, _ZooKeeperClient] = {}
        self.keeps_no_offsets = dialect is Dialect.DRAFT_3

    @property
    def session(self) -> int:
        """The ZooKeeper session of its first client; 0 before it has one."""
        client = self._clients.get(0)
        return 0 if client is None else client.session

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        self.machine: Any = self._make(node)
        self.host = MachineHost(self.machine, self._dialect, client_id=node.name)
        if self._session_ms is None:
            self.machine.start()
            self._carry_out()
        else:
            self._open_session(0)

    # --- what the machine does ---

    def _carry_out(self) -> None:
        node, world = self.node, self.node.world
        for action in self.host.actions():
            match action:
                case SendBytes(connection=number, data=data):
                    if self.pool is not None and number < 0:
                        self._links[number].not_before(self.pool.finish(number, node.now))
                    self._links[number].send(data)
                case Connect(connection=number, host=name):
                    link = self._links[number] = node.connect(name)
                    link.context = number
                case Disconnect(connection=number):
                    self._links.pop(number).close()
                case AskZooKeeper(number=number, operations=operations, client=client_number):
                    client = self._clients.get(client_number)
                    if client is None:  # its session was ended: there is no answer
                        continue
                    data = client.requests[number] = ask_bytes(operations)
                    if client.is_welcome and client.link is not None:
                        client.link.send(data)
                case OpenSession(client=client_number):
                    self._open_session(client_number)
                case FetchersStarted(partitions=partitions):
                    for partition in partitions:
                        world.ownership.take(node.name, self._partition(partition))
                        self._find_offset(partition)
                case FetchersStopped(partitions=partitions):
                    for partition in partitions:
                        world.ownership.release(node.name, self._partition(partition))
                case EndSession(client=client_number):
                    ended = self._clients.get(client_number)
                    if ended is not None and ended.link is not None:
                        ended.link.send(to_wire("end"))
                        del self._clients[client_number]
                        self._session_ms = self._session_ms if self._clients else None
                case Noted() if self._on_note is not None:
                    self._on_note(node.now, node.name, action)
        deadline = self.machine.next_deadline()
        if deadline is None:
            node.cancel_timer(_DEADLINE)
        else:
            node.set_timer(_DEADLINE, deadline)

    def _partition(self, partition: DraftPartition) -> tuple[str, str, int]:
        return self._group, partition.topic, int(partition.partition.rpartition("-")[2])

    # --- messages ---

    def positions(self) -> dict[tuple[str, str, int], int]:
        if not getattr(self.machine, "fetching", False):
            return {}
        return {self._partition(name): offset for name, offset in self.machine.owned.items()}

    def consumed(self, partition: tuple[str, str, int], offset: int) -> None:
        for name in self.machine.owned:
            if self._partition(name) == partition:
                self.machine.consumed(name, offset)
                break

    def _find_offset(self, partition: DraftPartition) -> None:
        """A design that does not say where offsets are: at least where the group's others came to."""
        messages = self.node.world.messages
        if self.keeps_no_offsets and messages is not None:
            offset = messages.offsets.get(FlowPartition(*self._partition(partition)), 0)
            self.machine.consumed(partition, max(offset, self.machine.owned.get(partition, 0)))

    # --- links ---

    def on_accept(self, link: Link) -> None:
        number = link.context = self.host.accept()
        self._links[number] = link

    def on_open(self, link: Link) -> None:
        client = self._client_of(link)
        if client is not None:
            assert self._session_ms is not None
            link.send(to_wire("hello", client.session, self._session_ms))
            return
        self.machine.advance(self.node.now)
        self.host.opened(link.context)
        self._carry_out()

    def on_bytes(self, link: Link, data: bytes) -> None:
        if self.pool is None or self._client_of(link) is not None or not link.is_listener:
            self._read(link, data)
            return
        at = self.pool.finish(link.context, self.node.now)
        self.node.world.clock.at(at, self._read_later, link, data)

    def _read_later(self, link: Link, data: bytes) -> None:
        """A processor has had the time for a message."""
        if self.node.process is self:
            self.node.call(self._read, link, data)

    def _read(self, link: Link, data: bytes) -> None:
        self.machine.advance(self.node.now)
        client = self._client_of(link)
        if client is not None:
            if data.startswith(_REPLY):
                self._on_reply(client, data)
            else:
                self._on_zookeeper(client, *from_wire(data))
        elif self._links.get(link.context) is link:
            self.host.receive(link.context, data)
        self._carry_out()

    def on_close(self, link: Link) -> None:
        self.machine.advance(self.node.now)
        client = self._client_of(link)
        if client is not None:
            client.link, client.is_welcome = None, False
            self.node.cancel_timer(_timer(_KEEP_ALIVE, client))
            if self._session_ms is not None:
                self.node.set_timer(_timer(_RECONNECT, client), self.node.now + _RECONNECT_MS)
        elif self._links.get(link.context) is link:
            del self._links[link.context]
            self.host.closed(link.context)
        self._carry_out()

    def on_timer(self, key: str) -> None:
        kind, _, number = key.partition(" ")
        client = self._clients.get(int(number or 0))
        if kind == _DEADLINE:
            self.machine.advance(self.node.now)
            self._carry_out()
        elif client is not None and kind == _RECONNECT:
            client.link = self.node.connect("zookeeper")
        elif client is not None:
            self._keep_alive(client)

    # --- ZooKeeper ---

    def _open_session(self, number: int) -> None:
        client = self._clients[number] = _ZooKeeperClient(number)
        client.link = self.node.connect("zookeeper")

    def _client_of(self, link: Link) -> _ZooKeeperClient | None:
        return next((client for client in self._clients.values() if client.link is link), None)

    def _keep_alive(self, client: _ZooKeeperClient) -> None:
        if client.link is not None and self._session_ms is not None:
            client.link.send(to_wire("alive"))
            self.node.set_timer(_timer(_KEEP_ALIVE, client), self.node.now + self._session_ms // 3)

    def _on_reply(self, client: _ZooKeeperClient, data: bytes) -> None:
        """The outcomes of the oldest request."""
        number = next(iter(client.requests), None)
        if number is not None:
            del client.requests[number]
            self.machine.zookeeper_reply(number, replied_outcomes(data))

    def _on_zookeeper(self, client: _ZooKeeperClient, kind: str, *words: Any) -> None:
        match kind:
            case "session":
                before, client.session = client.session, words[0]
                client.is_welcome = True
                self._keep_alive(client)
                if not before and client.number:
                    self.machine.session_opened(client.session, client.number)
                elif not before:
                    self.machine.start(client.session)
                elif before != client.session:
                    client.requests.clear()
                    self.machine.session_expired(client.session, client.number)
                else:
                    assert client.link is not None
                    for data in client.requests.values():
                        client.link.send(data)
            case "event":
                event = event_from(list(words))
                if event.session == client.session:
                    self.machine.zookeeper_event(event)

    # --- faults ---

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """`expire`: its ZooKeeper sessions are over at once; `leave`: the application closes the consumer."""
        self.machine.advance(self.node.now)
        zookeeper: Any = self.node.world.nodes["zookeeper"].process
        if kind == "expire" and zookeeper is not None:
            for session in [client.session for client in self._clients.values() if client.session]:
                zookeeper.end_session(session)
        elif kind == "leave":
            leave = getattr(self.machine, "shut_down", None) or getattr(self.machine, "close", None)
            if leave is not None:
                leave()
        self._carry_out()


def _timer(kind: str, client: _ZooKeeperClient) -> str:
    """The name of a client's timer."""
    return f"{kind} {client.number}" if client.number else kind
