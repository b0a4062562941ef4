"""The base of all machines of the drafts: inputs in, actions out, and procedures that wait in between.

    machine.start()
    for action in machine.actions(): ...           do it, in order
    machine.received(connection, event)            an event of that connection's `Connection`
    machine.next_deadline(); machine.advance(now)  time is an input

`MachineHost` has a machine with its connections, each a `Connection` in the machine's dialect, so that all is
bytes; every action but `Send` is passed on.

Strategy: the documents describe numbered steps that wait for ZooKeeper, for answers, or for a time. Each such
list is a generator here, a `Procedure`: it yields operations for ZooKeeper and gets their outcomes, or a
`Wait` and gets whether it was woken before its time. One procedure runs under one name; starting it again
ends the one before. Rules: nothing that comes in raises; a machine is used by one thread. A message
that cannot be encoded ends its connection and is noted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    RequestReceived,
    ResponseReceived,
)
from coordwire.coordinator.timers import TimerKey, Timers
from coordwire.designs.drafts.actions import (
    Action,
    AskOffsetManager,
    AskZooKeeper,
    Connect,
    Disconnect,
    EndSession,
    FetchersStarted,
    FetchersStopped,
    Noted,
    OpenSession,
    Send,
)
from coordwire.designs.drafts.zookeeper_operations import (
    Operation,
    OperationOutcome,
    WatchEvent,
    ZooKeeperError,
)
from coordwire.dialects import Dialect
from coordwire.dialects.connection import ConnectionDialect
from coordwire.errors import EncodeError


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until `Machine.wake`, at most until this time (ms); None: without a limit."""

    until: int | None = None


Step: TypeAlias = Operation | tuple[Operation, ...] | Wait
Steps: TypeAlias = Generator[Any, Any, Any]
"""A part of a procedure: it yields a `Step` and gets an `OperationOutcome`, a tuple of them, or a bool."""
Procedure: TypeAlias = Generator[Any, Any, None]


class Machine:
    """One process of a system: a consumer, or a broker with its coordinator."""

    def __init__(self, *, now: int = 0) -> None:
        self.now = now
        self._actions: deque[Action] = deque()
        self._timers: Timers[None] = Timers()
        self._procedures: dict[TimerKey, Procedure] = {}
        self._clients: dict[TimerKey, int] = {}
        """The ZooKeeper client of each procedure that has another than the first."""
        self._procedure_by_ask: dict[int, tuple[TimerKey, Procedure, bool]] = {}
        self._asks = 0
        self._executing: list[Procedure] = []
        self._connections = 0
        self.session = 0
        """The number of its ZooKeeper session; of its first client's if it has several."""

    # --- outputs ---

    def actions(self) -> Iterator[Action]:
        """What is to be done, each once, in order."""
        while self._actions:
            yield self._actions.popleft()

    def do(self, action: Action) -> None:
        self._actions.append(action)

    def note(self, name: str, text: str = "") -> None:
        self.do(Noted(name, text))

    def connect(self, host: str, port: int) -> int:
        """Ask for a connection; its number is positive, those of accepted ones are negative."""
        self._connections += 1
        self.do(Connect(self._connections, host, port))
        return self._connections

    def send(
        self,
        connection: int,
        message: Message,
        answers: RequestReceived | None = None,
        *,
        version: int | None = None,
    ) -> None:
        self.do(Send(connection, message, answers, version))

    def disconnect(self, connection: int) -> None:
        self.do(Disconnect(connection))

    # --- inputs; machines override the on_ methods ---

    def start(self, session: int = 0) -> None:
        """The process begins. session: its ZooKeeper session, if it uses one."""
        self.session = session
        self.on_start()

    def on_start(self) -> None:
        """What a machine does first."""

    def opened(self, connection: int) -> None:
        """A connection that it asked for is open."""

    def closed(self, connection: int) -> None:
        """A connection was refused, was closed by the peer, or broke."""

    def received(self, connection: int, event: Event) -> None:
        """What a connection's `Connection` gave."""
        match event:
            case RequestReceived():
                self.on_request(connection, event)
            case ResponseReceived():
                self.on_response(connection, event)
            case ConnectionClosed():
                pass  # `closed` reports it
            case ConnectionFailed():
                self._refused(connection, event.error.reason)
            case _:
                error = getattr(event, "error", None)
                self._refused(connection, getattr(error, "reason", type(event).__name__))

    def _refused(self, connection: int, reason: str) -> None:
        """A frame that cannot be read: the connection is not usable any longer."""
        self.note("MalformedFrame", reason)
        self.disconnect(connection)
        self.closed(connection)

    def on_request(self, connection: int, event: RequestReceived) -> None:
        self._out_of_state(connection, event.request)

    def on_response(self, connection: int, event: ResponseReceived[Any]) -> None:
        self._out_of_state(connection, event.response)

    def _out_of_state(self, connection: int, message: Message) -> None:
        """A message that its sender must not send now."""
        self.note("UnexpectedMessage", type(message).__name__)
        self.disconnect(connection)
        self.closed(connection)

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        deadline = self._timers.next_deadline()
        return deadline if deadline is None or deadline < _NEVER else None

    def advance(self, now: int) -> None:
        """Time has come to this point; what is due runs, each at its own time."""
        while (deadline := self._timers.next_deadline()) is not None and deadline <= now:
            self.now = max(self.now, deadline)
            self._timers.pop()()
        self.now = max(self.now, now)

    def at(self, key: TimerKey, time: int, action: Callable[[], None]) -> None:
        self._timers.set(key, time, action)

    def after(self, key: TimerKey, delay: int, action: Callable[[], None]) -> None:
        self._timers.set(key, self.now + max(delay, 0), action)

    def cancel_timer(self, key: TimerKey) -> None:
        self._timers.cancel(key)

    # --- procedures ---

    def run(self, key: TimerKey, procedure: Procedure, *, client: int = 0) -> None:
        """Start a procedure under a name; one that runs under it ends. client: the ZooKeeper client that it
        asks."""
        self.end(key)
        if client:
            self._clients[key] = client
        self._procedures[key] = procedure
        self._resume(key, procedure, None)

    def runs(self, key: TimerKey) -> bool:
        return key in self._procedures

    def end(self, key: TimerKey) -> None:
        """End a procedure where it waits."""
        procedure = self._procedures.pop(key, None)
        self._clients.pop(key, None)
        self._timers.cancel(_wait_key(key))
        if procedure is not None and procedure not in self._executing:  # it stops at its next step
            procedure.close()

    def end_all(self, client: int | None = None) -> None:
        """End all procedures; client: those that ask this ZooKeeper client."""
        for key in list(self._procedures):
            if client is None or self._clients.get(key, 0) == client:
                self.end(key)

    def wake(self, key: TimerKey) -> None:
        """End a procedure's `Wait` before its time; nothing if that is not what it waits for."""
        procedure = self._procedures.get(key)
        if procedure is not None and self._timers.is_set(_wait_key(key)):
            self._timers.cancel(_wait_key(key))
            self._resume(key, procedure, True)

    def _resume(self, key: TimerKey, procedure: Procedure, value: object) -> None:
        self._executing.append(procedure)
        try:
            step = procedure.send(value)
        except StopIteration:
            if self._procedures.get(key) is procedure:
                del self._procedures[key]
                self._clients.pop(key, None)
            return
        finally:
            self._executing.remove(procedure)
        if self._procedures.get(key) is not procedure:
            procedure.close()  # it ended itself, by what it did in this step
        elif isinstance(step, Wait):
            until = _NEVER if step.until is None else step.until
            self._timers.set(_wait_key(key), until, lambda: self._resume(key, procedure, False))
        else:
            self._asks += 1
            several = isinstance(step, tuple)
            self._procedure_by_ask[self._asks] = key, procedure, several
            self.do(AskZooKeeper(self._asks, step if several else (step,), self._clients.get(key, 0)))

    # --- ZooKeeper ---

    def zookeeper_reply(self, number: int, outcomes: tuple[OperationOutcome, ...]) -> None:
        """The outcomes of an `AskZooKeeper`."""
        key, procedure, several = self._procedure_by_ask.pop(number, ("", None, False))
        if procedure is None or self._procedures.get(key) is not procedure:
            return
        if outcomes and outcomes[-1].error is ZooKeeperError.SESSION_EXPIRED:
            self.end(key)  # `session_expired` follows
        else:
            self._resume(key, procedure, outcomes if several else outcomes[0])

    def zookeeper_event(self, event: WatchEvent) -> None:
        """A watch of this machine's session fired."""

    def session_opened(self, session: int, client: int) -> None:
        """The session of a client that an `OpenSession` asked for."""

    def session_expired(self, session: int, client: int = 0) -> None:
        """ZooKeeper has ended a client's session, and this is the new one (the documents'
        handleNewSession)."""
        for number, (key, _, _) in list(self._procedure_by_ask.items()):
            if self._clients.get(key, 0) == client:
                del self._procedure_by_ask[number]
        self.end_all(client)
        if client:
            self.session_opened(session, client)
        else:
            self.session = session
            self.on_new_session()

    def on_new_session(self) -> None:
        """What a machine does first in a new session."""


_NEVER = 1 << 62


def _wait_key(key: TimerKey) -> TimerKey:
    return ("wait", key) if isinstance(key, str) else ("wait", *key)


@dataclass(frozen=True, slots=True)
class SendBytes:
    """Send these bytes over a connection."""

    connection: int
    data: bytes


HostAction: TypeAlias = (
    Connect
    | SendBytes
    | Disconnect
    | AskZooKeeper
    | AskOffsetManager
    | OpenSession
    | EndSession
    | FetchersStarted
    | FetchersStopped
    | Noted
)


class MachineHost:
    """One machine and the state of its connections. client_id: what its requests carry, in a dialect whose
    headers have it."""

    def __init__(self, machine: Machine, dialect: Dialect | str, *, client_id: str | None = None) -> None:
        self.machine = machine
        self.dialect = Dialect(dialect)
        self.connections: dict[int, Connection] = {}
        self._client_id = client_id
        self._accepted = 0

    def actions(self) -> Iterator[HostAction]:
        """What is to be done, each once, in order."""
        for action in self.machine.actions():
            match action:
                case Send():
                    yield from self._encode(action)
                case Disconnect():
                    if self.connections.pop(action.connection, None) is not None:
                        yield action
                case Connect():
                    self.connections[action.connection] = self._new("client")
                    yield action
                case _:
                    yield action

    def _encode(self, action: Send) -> Iterator[HostAction]:
        connection = self.connections.get(action.connection)
        if connection is None:
            return  # it closed meanwhile
        try:
            data = connection.send(action.message, version=action.version, request=action.answers)
        except EncodeError as error:
            yield Noted("UnsendableMessage", f"{type(action.message).__name__}: {error}")
            del self.connections[action.connection]
            yield Disconnect(action.connection)
            self.machine.closed(action.connection)
        else:
            yield SendBytes(action.connection, data)

    def _new(self, role: Literal["client", "server"]) -> Connection:
        return Connection(role, client_id=self._client_id, dialect=ConnectionDialect(self.dialect))

    def accept(self) -> int:
        """A peer has connected; gives the connection's number, which is negative."""
        self._accepted -= 1
        self.connections[self._accepted] = self._new("server")
        return self._accepted

    def opened(self, connection: int) -> None:
        if connection in self.connections:
            self.machine.opened(connection)

    def receive(self, connection: int, data: bytes) -> None:
        """Bytes from a peer."""
        peer = self.connections.get(connection)
        if peer is None:
            return
        peer.receive_data(data)
        for event in peer.events():
            self.machine.received(connection, event)

    def closed(self, connection: int) -> None:
        """The peer closed a connection, or it broke, or was refused."""
        if self.connections.pop(connection, None) is not None:
            self.machine.closed(connection)
