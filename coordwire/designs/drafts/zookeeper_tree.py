"""ZooKeeper as a value: nodes, sessions and watches, without network, disk or clock.

    tree = ZooKeeperTree()
    session = tree.open_session(timeout_ms=6000, now=0)
    outcome = tree.apply(session, CreateNode("/consumers", b""), now=1)
    tree.expire(now); tree.next_expiry(); tree.events()

Strategy: one table of nodes by path, each with the names of its children; a transaction notes how to undo
each of its steps. Sessions and watches have tables of their own. Rules: an operation never raises, it gives
an outcome; every operation of a session renews it; a watch fires once, and events leave in the order of the
changes. Two trees are equal if their nodes, sessions and watches are; `copy` is independent of the original.
Source: ZooKeeper's Programmer's Guide.

The watches of sessions on nodes; each watch fires once.

Strategy: two tables, as ZooKeeper has them: watches on a node's data and existence, and on its children. A
session watches a node's data once, however often it asks. Rules: a node's end fires both, as one event for a
session that has both; sessions come in the order in which they asked.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from coordwire.designs.drafts.zookeeper_operations import (
    ANY_VERSION,
    CheckVersion,
    CreateNode,
    DeleteNode,
    EventKind,
    GetChildren,
    GetData,
    NodeExists,
    NodeStat,
    Operation,
    OperationOutcome,
    SetData,
    Transaction,
    WatchEvent,
    ZooKeeperError,
)

_Table = dict[str, dict[int, None]]


class Watches:
    """The watches of all sessions."""

    def __init__(self) -> None:
        self._data: _Table = {}
        self._children: _Table = {}
        self._of_session: dict[int, set[tuple[bool, str]]] = {}

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Watches):
            return NotImplemented
        return self._data == value._data and self._children == value._children

    __hash__ = None  # type: ignore[assignment]

    def add_data(self, session: int, path: str) -> None:
        self._add(self._data, session, path)

    def add_children(self, session: int, path: str) -> None:
        self._add(self._children, session, path)

    def _add(self, table: _Table, session: int, path: str) -> None:
        table.setdefault(path, {})[session] = None
        self._of_session.setdefault(session, set()).add((table is self._children, path))

    def fire(self, kind: EventKind, path: str) -> list[int]:
        """The sessions that an event goes to, and whose watches are used up by it."""
        if kind is EventKind.CHILDREN_CHANGED:
            return list(self._take(self._children, path))
        sessions = self._take(self._data, path)
        if kind is EventKind.DELETED:
            sessions |= self._take(self._children, path)
        return list(sessions)

    def _take(self, table: _Table, path: str) -> dict[int, None]:
        sessions = table.pop(path, {})
        for session in sessions:
            self._of_session[session].discard((table is self._children, path))
        return sessions

    def remove_session(self, session: int) -> None:
        for children, path in self._of_session.pop(session, set()):
            table = self._children if children else self._data
            table[path].pop(session)
            if not table[path]:
                del table[path]


# --- nodes ---


_ROOT = "/"


@dataclass(slots=True)
class _Node:
    """A node. created: how many children it ever had, which numbers sequential ones."""

    data: bytes
    czxid: int
    ctime: int
    owner: int = 0
    mzxid: int = 0
    mtime: int = 0
    version: int = 0
    cversion: int = 0
    created: int = 0
    children: set[str] = field(default_factory=set)
    sorted_children: tuple[str, ...] | None = field(default=None, compare=False)
    """The children sorted, as they were read last; None once they have changed."""
    reading: OperationOutcome | None = field(default=None, compare=False)
    """What the last read of the data gave; None once anything of it has changed."""

    def listing(self) -> tuple[str, ...]:
        if self.sorted_children is None:
            self.sorted_children = tuple(sorted(self.children))
        return self.sorted_children

    def add(self, child: str) -> None:
        self.children.add(child)
        self.sorted_children = self.reading = None

    def remove(self, child: str) -> None:
        self.children.remove(child)
        self.sorted_children = self.reading = None


@dataclass(slots=True)
class _Session:
    """A client's session. nodes: its ephemeral ones."""

    timeout_ms: int
    deadline: int
    nodes: set[str] = field(default_factory=set)


class _Refused(Exception):
    def __init__(self, error: ZooKeeperError) -> None:
        self.error = error


class ZooKeeperTree:
    """All nodes, sessions and watches of one ZooKeeper. changed: called with each path whose node has
    changed, by itself or by its children; a copy has none."""

    def __init__(self) -> None:
        self.changed: Callable[[str], None] | None = None
        self._nodes = {_ROOT: _Node(b"", 0, 0)}
        self._sessions: dict[int, _Session] = {}
        self._deadlines: list[tuple[int, int]] = []  # a heap, out of date for renewed sessions
        self._watches = Watches()
        self._events: deque[WatchEvent] = deque()
        self._zxid = 0
        self._last_session = 0
        self._undo: list[Callable[[], object]] = []
        self._fired: list[tuple[EventKind, str]] = []

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, ZooKeeperTree):
            return NotImplemented
        return (
            self._nodes == value._nodes and self._sessions == value._sessions
            and self._watches == value._watches and self._events == value._events
            and self._zxid == value._zxid
        )  # fmt: skip

    __hash__ = None  # type: ignore[assignment]

    def copy(self) -> ZooKeeperTree:
        """The same tree, independent of this one."""
        changed, self.changed = self.changed, None
        try:
            return deepcopy(self)
        finally:
            self.changed = changed

    def paths(self) -> list[str]:
        """All nodes but the root, sorted."""
        return sorted(path for path in self._nodes if path != _ROOT)

    def events(self) -> Iterator[WatchEvent]:
        """What watches have fired, each once, in order."""
        while self._events:
            yield self._events.popleft()

    # --- sessions ---

    def open_session(self, timeout_ms: int, now: int) -> int:
        """A new session, which ends after this time without an operation. Its number is never used again."""
        self._last_session += 1
        self._sessions[self._last_session] = _Session(timeout_ms, now + timeout_ms)
        heapq.heappush(self._deadlines, (now + timeout_ms, self._last_session))
        return self._last_session

    def renew(self, session: int, now: int) -> bool:
        """Note that a session's client is alive; False if the session has ended."""
        self.expire(now)
        known = self._sessions.get(session)
        if known is None:
            return False
        known.deadline = now + known.timeout_ms
        return True

    def close_session(self, session: int) -> None:
        """End a session: its ephemeral nodes and its watches go."""
        known = self._sessions.pop(session, None)
        if known is None:
            return
        self._watches.remove_session(session)
        for path in sorted(known.nodes, key=lambda path: self._nodes[path].czxid):
            self._zxid += 1
            self._remove(path)
            self._commit()

    def sessions(self) -> tuple[int, ...]:
        """The sessions that live."""
        return tuple(self._sessions)

    def next_expiry(self) -> int | None:
        """When the next session ends unless its client is heard."""
        while self._deadlines:
            deadline, number = self._deadlines[0]
            known = self._sessions.get(number)
            if known is not None and known.deadline == deadline:
                return deadline
            heapq.heappop(self._deadlines)
            if known is not None:
                heapq.heappush(self._deadlines, (known.deadline, number))
        return None

    def expire(self, now: int) -> list[int]:
        """End the sessions whose time is over, the earliest first."""
        ended = []
        while (deadline := self.next_expiry()) is not None and deadline <= now:
            number = self._deadlines[0][1]
            self.close_session(number)
            ended.append(number)
        return ended

    # --- operations ---

    def apply(self, session: int, operation: Operation, now: int) -> OperationOutcome:
        """Run an operation of a session. Its events come before its outcome where both concern one change
        (`events`, then the outcome, is the order that a client sees)."""
        if not self.renew(session, now):
            return OperationOutcome(ZooKeeperError.SESSION_EXPIRED, getattr(operation, "path", ""))
        if isinstance(operation, Transaction):
            return self._transaction(session, operation, now)
        try:
            outcome = self._run(session, operation, now)
        except _Refused as refusal:
            self._undo.clear()
            missing = refusal.error is ZooKeeperError.NO_NODE
            if missing and isinstance(operation, NodeExists) and operation.watch:
                self._watches.add_data(session, operation.path)
            return OperationOutcome(refusal.error, operation.path)
        if self._fired:
            self._commit()
        return outcome

    def _transaction(self, session: int, transaction: Transaction, now: int) -> OperationOutcome:
        outcomes: list[OperationOutcome] = []
        for operation in transaction.operations:
            try:
                outcomes.append(self._run(session, operation, now))
            except _Refused as refusal:
                while self._undo:
                    self._undo.pop()()
                self._fired.clear()
                return _rolled_back(transaction, len(outcomes), refusal.error)
        self._commit()
        return OperationOutcome(outcomes=tuple(outcomes))

    def _run(self, session: int, operation: Operation, now: int) -> OperationOutcome:
        assert not isinstance(operation, Transaction)
        path = operation.path
        numbered = isinstance(operation, CreateNode) and operation.sequential
        if path not in self._nodes and not _valid(f"{path}0" if numbered else path):
            raise _Refused(ZooKeeperError.BAD_ARGUMENTS)
        match operation:
            case CreateNode():
                return self._create(session, operation, now)
            case DeleteNode():
                if path == _ROOT:
                    raise _Refused(ZooKeeperError.BAD_ARGUMENTS)
                if self._checked(path, operation.version).children:
                    raise _Refused(ZooKeeperError.NOT_EMPTY)
                self._zxid += 1
                self._remove(path)
                return OperationOutcome(path=path)
            case SetData():
                return self._set(operation, now)
            case GetData() | NodeExists():
                node = self._checked(path)
                if operation.watch:
                    self._watches.add_data(session, path)
                if isinstance(operation, NodeExists):
                    return OperationOutcome(path=path, stat=_stat(node))
                if node.reading is None:
                    node.reading = OperationOutcome(path=path, data=node.data, stat=_stat(node))
                return node.reading
            case GetChildren():
                node = self._checked(path)
                if operation.watch:
                    self._watches.add_children(session, path)
                return OperationOutcome(path=path, children=node.listing(), stat=_stat(node))
            case CheckVersion():
                return OperationOutcome(path=path, stat=_stat(self._checked(path, operation.version)))

    def _checked(self, path: str, version: int = ANY_VERSION) -> _Node:
        node = self._nodes.get(path)
        if node is None:
            raise _Refused(ZooKeeperError.NO_NODE)
        if version not in (ANY_VERSION, node.version):
            raise _Refused(ZooKeeperError.BAD_VERSION)
        return node

    def _create(self, session: int, operation: CreateNode, now: int) -> OperationOutcome:
        above, _, name = operation.path.rpartition("/")
        if not name and not operation.sequential:
            raise _Refused(ZooKeeperError.NODE_EXISTS)  # the root
        parent = self._nodes.get(above or _ROOT)
        if parent is None:
            raise _Refused(ZooKeeperError.NO_NODE)
        if operation.sequential:
            name = f"{name}{parent.created:010d}"
        path = f"{above}/{name}"
        if path in self._nodes:
            raise _Refused(ZooKeeperError.NODE_EXISTS)
        if parent.owner:
            raise _Refused(ZooKeeperError.NO_CHILDREN_FOR_EPHEMERALS)
        self._zxid += 1
        node = _Node(operation.data, self._zxid, now, mzxid=self._zxid, mtime=now)
        if operation.ephemeral:
            node.owner = session
            self._sessions[session].nodes.add(path)
        self._nodes[path] = node
        parent.add(name)
        parent.cversion += 1
        parent.created += 1
        self._undo.append(lambda: self._uncreate(path, parent, name))
        self._fired += ((EventKind.CREATED, path), (EventKind.CHILDREN_CHANGED, above or _ROOT))
        return OperationOutcome(path=path, stat=_stat(node))

    def _uncreate(self, path: str, parent: _Node, name: str) -> None:
        node = self._nodes.pop(path)
        if node.owner:
            self._sessions[node.owner].nodes.remove(path)
        parent.remove(name)
        parent.cversion -= 1
        parent.created -= 1
        self._zxid -= 1

    def _set(self, operation: SetData, now: int) -> OperationOutcome:
        node = self._checked(operation.path, operation.version)
        old = node.data, node.version, node.mzxid, node.mtime
        self._zxid += 1

        def undo() -> None:
            node.data, node.version, node.mzxid, node.mtime = old
            self._zxid -= 1

        self._undo.append(undo)
        node.data, node.version, node.mzxid, node.mtime = operation.data, node.version + 1, self._zxid, now
        node.reading = None
        self._fired.append((EventKind.DATA_CHANGED, operation.path))
        return OperationOutcome(path=operation.path, stat=_stat(node))

    def _remove(self, path: str) -> None:
        """Take out a node without children; the caller has counted the transaction."""
        above, _, name = path.rpartition("/")
        node, parent = self._nodes.pop(path), self._nodes[above or _ROOT]
        session = self._sessions.get(node.owner)
        if session is not None:
            session.nodes.remove(path)
        parent.remove(name)
        parent.cversion += 1

        def undo() -> None:
            self._nodes[path] = node
            parent.add(name)
            parent.cversion -= 1
            self._zxid -= 1
            if session is not None:
                session.nodes.add(path)

        self._undo.append(undo)
        self._fired += ((EventKind.DELETED, path), (EventKind.CHILDREN_CHANGED, above or _ROOT))

    def _commit(self) -> None:
        """What was done stays: its watches fire."""
        self._undo.clear()
        for kind, path in self._fired:
            if self.changed is not None:
                self.changed(path)
            for session in self._watches.fire(kind, path):
                self._events.append(WatchEvent(session, kind, path))
        self._fired.clear()


def _stat(node: _Node) -> NodeStat:
    return NodeStat(
        node.czxid, node.mzxid, node.ctime, node.mtime, node.version, node.cversion, node.owner,
        len(node.data), len(node.children),
    )  # fmt: skip


def _valid(path: str) -> bool:
    if path == _ROOT:
        return True
    parts = path.split("/")
    return path[:1] == "/" and all(part not in ("", ".", "..") and "\0" not in part for part in parts[1:])


def _rolled_back(transaction: Transaction, failed: int, error: ZooKeeperError) -> OperationOutcome:
    """As ZooKeeper reports it: no error before the one that failed, "not tried" after it."""
    outcomes = tuple(
        OperationOutcome(
            ZooKeeperError.OK if index < failed
            else error if index == failed
            else ZooKeeperError.RUNTIME_INCONSISTENCY,
            operation.path,
        )
        for index, operation in enumerate(transaction.operations)
    )  # fmt: skip
    return OperationOutcome(error, outcomes[failed].path, outcomes=outcomes)
