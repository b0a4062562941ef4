"""A machine with its connections: each has a `Connection` in the machine's dialect, so that all is bytes.

Strategy: the host turns `Send` into the bytes of its connection, and received bytes into events; it passes on
every other action. Rules: a message that cannot be encoded ends its connection and is noted: nothing raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from coordwire.connection import Connection
from coordwire.designs.dialects import Dialect
from coordwire.designs.dialects.connection import ConnectionDialect
from coordwire.designs.drafts.actions import (
    AskOffsetManager,
    AskZooKeeper,
    Connect,
    Disconnect,
    EndSession,
    FetchersStarted,
    FetchersStopped,
    Noted,
    Send,
)
from coordwire.designs.drafts.machine import Machine
from coordwire.errors import EncodeError

__all__ = ["HostAction", "MachineHost", "SendBytes"]


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
