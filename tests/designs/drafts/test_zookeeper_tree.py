"""ZooKeeper's tree: each rule by an example, and all of them against a naive model."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.designs.drafts.zookeeper_operations import (
    CheckVersion,
    CreateNode,
    DeleteNode,
    EventKind,
    GetChildren,
    GetData,
    NodeExists,
    Operation,
    OperationOutcome,
    SetData,
    Transaction,
    WatchEvent,
    ZooKeeperError,
)
from coordwire.designs.drafts.zookeeper_tree import ZooKeeperTree

E = ZooKeeperError


def opened(timeout: int = 1_000) -> tuple[ZooKeeperTree, int]:
    tree = ZooKeeperTree()
    return tree, tree.open_session(timeout, 0)


def error(tree: ZooKeeperTree, session: int, operation: Operation) -> ZooKeeperError:
    return tree.apply(session, operation, 0).error


def test_errors_are_zookeepers() -> None:
    tree, session = opened()
    assert error(tree, session, GetData("/a")) is E.NO_NODE
    assert error(tree, session, CreateNode("/a/b")) is E.NO_NODE
    assert error(tree, session, CreateNode("/a")) is E.OK
    assert error(tree, session, CreateNode("/a")) is E.NODE_EXISTS
    assert error(tree, session, CreateNode("/")) is E.NODE_EXISTS
    assert error(tree, session, CreateNode("/a/b", ephemeral=True)) is E.OK
    assert error(tree, session, CreateNode("/a/b/c")) is E.NO_CHILDREN_FOR_EPHEMERALS
    assert error(tree, session, DeleteNode("/a")) is E.NOT_EMPTY
    assert error(tree, session, SetData("/a", b"", version=1)) is E.BAD_VERSION
    assert error(tree, session, DeleteNode("/a/b", version=1)) is E.BAD_VERSION
    assert error(tree, session, DeleteNode("/")) is E.BAD_ARGUMENTS
    for path in ("a", "", "/a/", "//", "/a/../b", "/a\0"):
        assert error(tree, session, CreateNode(path)) is E.BAD_ARGUMENTS
    assert error(tree, 99, GetData("/a")) is E.SESSION_EXPIRED


def test_compare_and_set() -> None:
    tree, session = opened()
    tree.apply(session, CreateNode("/a", b"0"), 0)
    outcome = tree.apply(session, SetData("/a", b"1", version=0), 7)
    assert outcome.stat is not None
    assert (outcome.stat.version, outcome.stat.ctime, outcome.stat.mtime) == (1, 0, 7)
    assert error(tree, session, SetData("/a", b"2", version=0)) is E.BAD_VERSION
    assert tree.apply(session, GetData("/a"), 0).data == b"1"


def test_reads_of_a_node_that_does_not_change_are_one_outcome() -> None:
    """So many consumers read so many registrations that none of them is made again."""
    tree, session = opened()
    read = GetData("/a")
    tree.apply(session, CreateNode("/a", b"0"), 0)
    outcome = tree.apply(session, read, 0)
    assert tree.apply(session, read, 1) is outcome
    for change in (SetData("/a", b"1"), CreateNode("/a/b"), DeleteNode("/a/b")):
        tree.apply(session, change, 2)
        before, outcome = outcome, tree.apply(session, read, 3)
        assert outcome != before
        assert outcome.stat == tree.apply(session, NodeExists("/a"), 3).stat
    tree.apply(session, Transaction((SetData("/a", b"2"), CreateNode("/a/c"), CheckVersion("/b"))), 4)
    assert tree.apply(session, read, 5) == outcome


def test_sequential_nodes_count_the_children_there_ever_were() -> None:
    tree, session = opened()
    names = [tree.apply(session, CreateNode("/n-", sequential=True), 0).path for _ in range(2)]
    assert names == ["/n-0000000000", "/n-0000000001"]
    tree.apply(session, DeleteNode(names[1]), 0)
    assert tree.apply(session, CreateNode("/", sequential=True), 0).path == "/0000000002"


def test_a_watch_fires_once() -> None:
    tree, session = opened()
    assert error(tree, session, NodeExists("/a", watch=True)) is E.NO_NODE
    assert error(tree, session, GetData("/a", watch=True)) is E.NO_NODE  # sets none
    tree.apply(session, GetChildren("/", watch=True), 0)
    tree.apply(session, CreateNode("/a"), 0)
    tree.apply(session, CreateNode("/b"), 0)
    tree.apply(session, SetData("/a", b"1"), 0)
    assert list(tree.events()) == [
        WatchEvent(session, EventKind.CREATED, "/a"),
        WatchEvent(session, EventKind.CHILDREN_CHANGED, "/"),
    ]
    tree.apply(session, GetData("/a", watch=True), 0)
    tree.apply(session, GetData("/a", watch=True), 0)
    tree.apply(session, GetChildren("/a", watch=True), 0)
    tree.apply(session, DeleteNode("/a"), 0)
    assert list(tree.events()) == [WatchEvent(session, EventKind.DELETED, "/a")]


def test_a_session_that_is_not_heard_takes_its_nodes_and_watches_with_it() -> None:
    tree, mine = opened(1_000)
    session = tree.open_session(5_000, 0)
    tree.apply(mine, CreateNode("/a", ephemeral=True), 100)
    tree.apply(mine, GetChildren("/", watch=True), 100)
    tree.apply(session, NodeExists("/a", watch=True), 100)
    assert tree.next_expiry() == 1_100
    assert tree.expire(1_099) == []
    assert tree.expire(1_100) == [mine]
    assert tree.paths() == []
    assert list(tree.events()) == [WatchEvent(session, EventKind.DELETED, "/a")]
    assert not tree.renew(mine, 1_100)
    another = tree.open_session(1_000, 1_100)
    assert another == session + 1
    third = tree.open_session(1_000, 1_100)
    assert tree.expire(2_100) == [another, third]  # all whose time is over


def test_a_transaction_does_all_or_nothing() -> None:
    tree, session = opened()
    tree.apply(session, CreateNode("/a", b"0"), 0)
    tree.apply(session, CreateNode("/e", ephemeral=True), 0)
    tree.apply(session, GetData("/a", watch=True), 0)
    before = tree.copy()
    failed = tree.apply(session, Transaction((
        SetData("/a", b"1"), CreateNode("/b", ephemeral=True), DeleteNode("/b"), DeleteNode("/e"),
        CheckVersion("/a", 5), CreateNode("/c"),
    )), 0)  # fmt: skip
    assert failed.error is E.BAD_VERSION
    assert [outcome.error for outcome in failed.outcomes] == [E.OK] * 4 + [
        E.BAD_VERSION,
        E.RUNTIME_INCONSISTENCY,
    ]
    assert tree == before
    assert list(tree.events()) == []
    result = tree.apply(session, Transaction((CheckVersion("/a", 0), SetData("/a", b"1"))), 0)
    assert result.ok
    assert list(tree.events()) == [WatchEvent(session, EventKind.DATA_CHANGED, "/a")]


def test_a_copy_is_independent() -> None:
    tree, session = opened()
    other = tree.copy()
    assert other == tree
    tree.apply(session, CreateNode("/a"), 0)
    assert other != tree
    assert other.paths() == []


# --- against a naive model ---


@dataclass
class Model:
    """ZooKeeper as one would write it down: nodes with (data, version, owner), and lists of watches."""

    nodes: dict[str, tuple[bytes, int, int]] = field(default_factory=dict)
    sessions: dict[int, int] = field(default_factory=dict)
    data_watches: set[tuple[int, str]] = field(default_factory=set)
    child_watches: set[tuple[int, str]] = field(default_factory=set)
    events: set[WatchEvent] = field(default_factory=set)

    def children(self, path: str) -> list[str]:
        above = "" if path == "/" else path
        return sorted(node[len(above) + 1 :] for node in self.nodes if node.rpartition("/")[0] == above)

    def fire(self, kind: EventKind, path: str) -> None:
        tables = {EventKind.CHILDREN_CHANGED: [self.child_watches], EventKind.DELETED: [
            self.data_watches, self.child_watches]}.get(kind, [self.data_watches])  # fmt: skip
        for table in tables:
            for session, watched in list(table):
                if watched == path:
                    table.discard((session, watched))
                    self.events.add(WatchEvent(session, kind, path))

    def delete(self, path: str) -> None:
        del self.nodes[path]
        self.fire(EventKind.DELETED, path)
        self.fire(EventKind.CHILDREN_CHANGED, path.rpartition("/")[0] or "/")

    def expire(self, now: int) -> None:
        for session in [one for one, deadline in self.sessions.items() if deadline <= now]:
            del self.sessions[session]
            self.data_watches = {data_watch for data_watch in self.data_watches if data_watch[0] != session}
            self.child_watches = {
                child_watch for child_watch in self.child_watches if child_watch[0] != session
            }
            for path in [one for one, node in self.nodes.items() if node[2] == session]:
                self.delete(path)

    def apply(self, session: int, operation: Operation, now: int) -> tuple[ZooKeeperError, object]:
        self.expire(now)
        if session not in self.sessions:
            return E.SESSION_EXPIRED, None
        self.sessions[session] = now + TIMEOUT
        assert not isinstance(operation, Transaction)
        path = operation.path
        above = path.rpartition("/")[0]
        node = self.nodes.get(path)
        match operation:
            case CreateNode():
                if above and above not in self.nodes:
                    return E.NO_NODE, None
                if node is not None:
                    return E.NODE_EXISTS, None
                if above and self.nodes[above][2]:
                    return E.NO_CHILDREN_FOR_EPHEMERALS, None
                self.nodes[path] = operation.data, 0, session if operation.ephemeral else 0
                self.fire(EventKind.CREATED, path)
                self.fire(EventKind.CHILDREN_CHANGED, above or "/")
                return E.OK, None
            case NodeExists():
                if operation.watch:
                    self.data_watches.add((session, path))
                return (E.NO_NODE if node is None else E.OK), None
        if node is None:
            return E.NO_NODE, None
        if getattr(operation, "version", -1) not in (-1, node[1]):
            return E.BAD_VERSION, None
        match operation:
            case DeleteNode():
                if self.children(path):
                    return E.NOT_EMPTY, None
                self.delete(path)
            case SetData():
                self.nodes[path] = operation.data, node[1] + 1, node[2]
                self.fire(EventKind.DATA_CHANGED, path)
            case GetData():
                if operation.watch:
                    self.data_watches.add((session, path))
                return E.OK, node[0]
            case GetChildren():
                if operation.watch:
                    self.child_watches.add((session, path))
                return E.OK, tuple(self.children(path))
        return E.OK, None


TIMEOUT = 30
paths = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/a/x/p"])
versions = st.sampled_from([-1, -1, 0, 1])
data = st.sampled_from([b"", b"1", b"2"])
operations = st.one_of(
    st.builds(CreateNode, paths, data, st.booleans()), st.builds(DeleteNode, paths, versions),
    st.builds(SetData, paths, data, versions), st.builds(GetData, paths, st.booleans()),
    st.builds(NodeExists, paths, st.booleans()), st.builds(GetChildren, paths, st.booleans()),
    st.builds(CheckVersion, paths, versions),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), operations, st.integers(0, 12)), max_size=40))
def test_the_tree_is_as_a_naive_model(steps: list[tuple[int, Operation, int]]) -> None:
    tree, model = ZooKeeperTree(), Model()
    for session in (1, 2, 3):
        assert tree.open_session(TIMEOUT, 0) == session
        model.sessions[session] = TIMEOUT
    now = 0
    for session, operation, pause in steps:
        now += pause
        outcome: OperationOutcome = tree.apply(session, operation, now)
        expected, value = model.apply(session, operation, now)
        assert outcome.error is expected
        if isinstance(operation, GetData) and outcome.ok:
            assert outcome.data == value
        if isinstance(operation, GetChildren) and outcome.ok:
            assert outcome.children == value
        assert tree.paths() == sorted(model.nodes)
        events = list(tree.events())
        assert set(events) == model.events
        assert len(events) == len(model.events)
        model.events.clear()
        assert set(tree.sessions()) == set(model.sessions)


@settings(max_examples=40, deadline=None)
@given(st.lists(operations, max_size=10), st.lists(operations, min_size=1, max_size=8))
def test_a_transaction_is_its_operations_or_nothing(first: list[Operation], then: list[Operation]) -> None:
    tree, session = opened()
    for operation in first:
        tree.apply(session, operation, 0)
    list(tree.events())
    parts = tuple(one for one in then if isinstance(one, CreateNode | DeleteNode | SetData | CheckVersion))
    before, single = tree.copy(), tree.copy()
    outcome = tree.apply(session, Transaction(parts), 0)
    each = []
    for part in parts:
        each.append(single.apply(session, part, 0).error)
        if each[-1] is not E.OK:
            break
    if outcome.ok:
        assert tree == single
    else:
        assert outcome.error is each[-1]
        assert tree == before
