"""ZooKeeper's requests and answers as values: operations, outcomes, errors and events.

Rules: an outcome is a value too, nothing is raised; names are ZooKeeper's own (its error NONODE is NO_NODE).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TypeAlias

ANY_VERSION = -1


class ZooKeeperError(IntEnum):
    """ZooKeeper's error codes, those that a tree can give."""

    OK = 0
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112


class EventKind(Enum):
    """The kinds of events that a watch reports."""

    CREATED = "NodeCreated"
    DELETED = "NodeDeleted"
    DATA_CHANGED = "NodeDataChanged"
    CHILDREN_CHANGED = "NodeChildrenChanged"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """A watch of a session fired."""

    session: int
    kind: EventKind
    path: str


@dataclass(frozen=True, slots=True)
class NodeStat:
    """The statistics of a node: the transactions and times (ms) of its creation and of its data's
    last change, the versions of its data and of its children, and the session that an ephemeral node
    belongs to (0: none)."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int


@dataclass(frozen=True, slots=True)
class OperationOutcome:
    """The result of an operation. path: the node's, with its number for a sequential one; outcomes: of a
    transaction's operations, in their order."""

    error: ZooKeeperError = ZooKeeperError.OK
    path: str = ""
    data: bytes = b""
    children: tuple[str, ...] = ()
    stat: NodeStat | None = None
    outcomes: tuple[OperationOutcome, ...] = ()

    @property
    def ok(self) -> bool:
        return self.error is ZooKeeperError.OK


@dataclass(frozen=True, slots=True)
class CreateNode:
    """Make a node. sequential: append a number of ten digits, which rises with each child of the parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Remove a node without children, if it has this version (-1: any)."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class SetData:
    """Replace a node's data, if it has this version (-1: any): compare and set."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class GetData:
    """Read a node. watch: for the next change of its data, or its end; none is set where there is no node."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class NodeExists:
    """Ask whether there is a node. watch: for its creation, the next change of its data, or its end."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """The names of a node's children, sorted. watch: for the next child that comes or goes, or its end."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Fail unless a node is there and has this version (-1: any)."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Transaction:
    """Several creations, deletions, changes and checks: all of them or none (ZooKeeper's multi)."""

    operations: tuple[CreateNode | DeleteNode | SetData | CheckVersion, ...]


Operation: TypeAlias = (
    CreateNode | DeleteNode | SetData | GetData | NodeExists | GetChildren | CheckVersion | Transaction
)
