"""A machine's actions as values, and the partitions that they name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.zookeeper_operations import Operation


class DraftPartition(NamedTuple):
    """A partition as a design names it: by its number, or as "broker-partition" in drafts 1 and 2."""

    topic: str
    partition: str


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a connection; the answer is `opened`, or `closed` if it cannot be."""

    connection: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message over a connection. answers: the request, where it is a response. version: of a message
    that has two layouts, the second one."""

    connection: int
    message: Message
    answers: RequestReceived | None = None
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close a connection. Nothing more of it reaches the machine."""

    connection: int


@dataclass(frozen=True, slots=True)
class AskZooKeeper:
    """Send these operations in order; `zookeeper_reply` with this number gives their outcomes. client: the
    process's ZooKeeper client that sends them, 0 for its first."""

    number: int
    operations: tuple[Operation, ...]
    client: int = 0


@dataclass(frozen=True, slots=True)
class AskOffsetManager:
    """Send Kafka's own request to the offset manager of the group; `offset_manager_reply` with this number
    gives the answer, or None where there will be none. client_id: of the request's header."""

    number: int
    request: Message
    client_id: str = ""


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Open a session of one more ZooKeeper client; `session_opened` gives it."""

    client: int


@dataclass(frozen=True, slots=True)
class EndSession:
    """Close a client's ZooKeeper session: the process ends in an orderly way."""

    client: int = 0


@dataclass(frozen=True, slots=True)
class FetchersStarted:
    """The consumer reads these partitions from here on, and owns them. Each with where it begins. threads:
    which thread reads each of them, where the design has threads."""

    partitions: Mapping[DraftPartition, int]
    threads: Mapping[DraftPartition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FetchersStopped:
    """The consumer reads these partitions no more. Each with how far it came."""

    partitions: Mapping[DraftPartition, int]


@dataclass(frozen=True, slots=True)
class Noted:
    """An entry of a process's log. name: a class of events ("ConsumerRebalanceFailedException")."""

    name: str
    text: str = ""


Action: TypeAlias = (
    Connect
    | Send
    | Disconnect
    | AskZooKeeper
    | AskOffsetManager
    | OpenSession
    | EndSession
    | FetchersStarted
    | FetchersStopped
    | Noted
)
