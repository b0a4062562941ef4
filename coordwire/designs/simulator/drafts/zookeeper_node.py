"""ZooKeeper as a process: the tree, and a link for each session; the messages between processes and it.

Strategy: a client's first message names its session, or none; events of a session without a link wait for its
next one, as ZooKeeper's clients set their watches again. Rules: a session ends when it was not heard for its
time; its link is closed then, and the next first message gets a new session. The tree is on disk. What many
clients read of nodes that have not changed since is one reply for all of them, the same bytes; their watches
are set for each.

Messages are one JSON text each, our own form:

    ["hello", session, timeout]  ["session", session]  ["alive"]  ["end"]  ["event", session, kind, path]
    ["ask", count, [operation...]]                      ["reply", count, [outcome...]]

ZooKeeper's real protocol is not of interest here; what counts is that each message takes its time, and is
lost or late as the others. A reply answers the oldest request of its link, so that requests have no
number; a message keeps what it says beside its bytes, so that it is not decoded, and what many clients ask is
the same bytes, encoded once. Node data is written as Latin-1, byte for byte.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from coordwire.designs.drafts.actions import Noted
from coordwire.designs.drafts.zookeeper_assignment import RecentValues
from coordwire.designs.drafts.zookeeper_operations import (
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
from coordwire.designs.drafts.zookeeper_tree import ZooKeeperTree
from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.dialects.zookeeper import Topic

ZOOKEEPER_PORT = 2181
_EXPIRY = "expiry"
_ASK = b'["ask"'
_MANY, _KEPT = 16, 4
"""Reads of so many nodes are kept with their reply, and so many of them."""


@dataclass(frozen=True, slots=True)
class _Reads:
    """Many reads, and the reply to them as long as no node of theirs changes."""

    operations: tuple[Operation, ...]
    watching: tuple[Operation, ...]
    paths: frozenset[str]
    reply: bytes


class ZooKeeperProcess(Process):
    """ZooKeeper. topics: what it has at first, partitions and their replicas.

    on_note: called with the time, the node's name and which client's session has expired. counts: operations,
    events and sessions that ended, since the start."""

    def __init__(
        self,
        topics: Mapping[str, Mapping[int, list[int]]],
        on_note: Callable[[int, str, Noted], None] | None = None,
    ) -> None:
        self._topics = topics
        self._on_note = on_note
        self._links: dict[int, Link] = {}
        self._waiting: dict[int, deque[WatchEvent]] = {}
        self._reads: dict[int, _Reads] = {}
        self.counts = {"operations": 0, "events": 0, "expired": 0}

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        self.tree: ZooKeeperTree = node.disk.setdefault("tree", ZooKeeperTree())
        self.tree.changed = self._drop_reads
        self._clients: dict[int, str] = node.disk.setdefault("clients", {})
        for session in self.tree.sessions():
            self.tree.renew(session, node.now)
        self._admin = self.tree.open_session(1 << 60, node.now)
        for path in ("/brokers", "/brokers/topics"):
            self.tree.apply(self._admin, CreateNode(path), node.now)
        for name, partitions in self._topics.items():
            self.set_topic(name, partitions)
        self._schedule()

    def set_topic(self, name: str, partitions: Mapping[int, list[int]]) -> None:
        """Create a topic, or change its partitions."""
        data = Topic(partitions=dict(partitions)).build()
        if not self.tree.apply(self._admin, CreateNode(Topic.path(name), data), self.node.now).ok:
            self.tree.apply(self._admin, SetData(Topic.path(name), data), self.node.now)
        self._send_events()

    # --- clients ---

    def on_bytes(self, link: Link, data: bytes) -> None:
        kind, *words = ["ask"] if data.startswith(_ASK) else from_wire(data)
        now = self.node.now
        self._expire()
        if kind == "hello":
            self._welcome(link, *words)
            return
        session = link.context
        if session is None or not self.tree.renew(session, now):
            link.close()
        elif kind == "ask":
            operations = asked_operations(data)
            self.counts["operations"] += len(operations)
            reply = self._reply(session, operations)
            self._send_events()
            link.send(reply)
        elif kind == "end":
            self.tree.close_session(session)
            self._links.pop(session, None)
            self._send_events()
            link.close()
        self._schedule()

    def _reply(self, session: int, operations: tuple[Operation, ...]) -> bytes:
        """Carry out a request; its reply."""
        now = self.node.now
        reading = self._reads.get(id(operations))
        if reading is not None:
            for watch in reading.watching:
                self.tree.apply(session, watch, now)
            return reading.reply
        reply = reply_bytes(tuple([self.tree.apply(session, operation, now) for operation in operations]))
        if len(operations) >= _MANY and all(isinstance(operation, GetData) for operation in operations):
            if len(self._reads) >= _KEPT:
                del self._reads[next(iter(self._reads))]
            self._reads[id(operations)] = _Reads(
                operations,
                tuple(
                    operation
                    for operation in operations
                    if isinstance(operation, GetData) and operation.watch
                ),
                frozenset(operation.path for operation in operations if isinstance(operation, GetData)),
                reply,
            )
        return reply

    def _drop_reads(self, path: str) -> None:
        """A node has changed: its data, its children, or whether it is there."""
        for key, reads in list(self._reads.items()):
            if path in reads.paths:
                del self._reads[key]

    def _welcome(self, link: Link, session: int, timeout_ms: int) -> None:
        if not (session and self.tree.renew(session, self.node.now)):
            session = self.tree.open_session(timeout_ms, self.node.now)
        old = self._links.get(session)
        if old is not None and old is not link:
            old.context = None
            old.close()
        link.context = session
        self._clients[session] = link.peer
        self._links[session] = link
        link.send(to_wire("session", session))
        for event in self._waiting.pop(session, ()):
            link.send(to_wire("event", *event_words(event)))
        self._schedule()

    def on_close(self, link: Link) -> None:
        if link.context is not None and self._links.get(link.context) is link:
            del self._links[link.context]

    # --- sessions ---

    def on_timer(self, key: str) -> None:
        self._expire()
        self._schedule()

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """`topic NAME PARTITIONS`: a topic has this many partitions now."""
        if kind == "topic" and len(words) == 2 and words[1].isdecimal():
            self.set_topic(words[0], {number: [1] for number in range(int(words[1]))})

    def end_session(self, session: int) -> None:
        """A fault: the session is over, whatever its client does."""
        self.tree.close_session(session)
        self._ended(session)
        self._send_events()

    def _expire(self) -> None:
        for session in self.tree.expire(self.node.now):
            self._ended(session)
        self._send_events()

    def _ended(self, session: int) -> None:
        self.counts["expired"] += 1
        self._waiting.pop(session, None)
        client = self._clients.pop(session, None)
        if client is not None and self._on_note is not None:
            self._on_note(self.node.now, self.node.name, Noted("SessionExpired", client))
        link = self._links.pop(session, None)
        if link is not None:
            link.context = None
            link.close()

    def _schedule(self) -> None:
        due = self.tree.next_expiry()
        if due is not None:
            self.node.set_timer(_EXPIRY, due)

    def _send_events(self) -> None:
        for event in self.tree.events():
            self.counts["events"] += 1
            link = self._links.get(event.session)
            if link is None:
                self._waiting.setdefault(event.session, deque()).append(event)
            else:
                link.send(to_wire("event", *event_words(event)))


# --- zookeeper wire ---


_KINDS = (CreateNode, DeleteNode, SetData, GetData, NodeExists, GetChildren, CheckVersion)


def to_wire(*words: Any) -> bytes:
    """A message."""
    return _json(words).encode()


_json = json.JSONEncoder(separators=(",", ":")).encode


def from_wire(data: bytes) -> list[Any]:
    """A message's words."""
    words: list[Any] = json.loads(data)
    return words


def operation_count(data: bytes) -> int:
    """How many operations an "ask" has, or outcomes a "reply": its second word, read without the rest."""
    begin = data.index(b",") + 1
    return int(data[begin : data.index(b",", begin)])


def operation_words(operation: Operation) -> list[Any]:
    """An operation: its number, and its fields."""
    match operation:
        case Transaction():
            return [-1, *map(operation_words, operation.operations)]
        case CreateNode():
            fields = [operation.path, _text(operation.data), operation.ephemeral, operation.sequential]
        case SetData():
            fields = [operation.path, _text(operation.data), operation.version]
        case DeleteNode() | CheckVersion():
            fields = [operation.path, operation.version]
        case GetData() | NodeExists() | GetChildren():
            fields = [operation.path, operation.watch]
    return [_KINDS.index(type(operation)), *fields]


def operation_from(words: list[Any]) -> Operation:
    number, *fields = words
    if number == -1:
        return Transaction(tuple(map(operation_from, fields)))  # type: ignore[arg-type]
    kind: Any = _KINDS[number]
    if kind in (CreateNode, SetData):
        fields[1] = fields[1].encode("latin-1")
    operation: Operation = kind(*fields)
    return operation


def outcome_words(outcome: OperationOutcome) -> list[Any]:
    """An outcome's fields."""
    stat = outcome.stat
    fields = None if stat is None else [getattr(stat, name) for name in NodeStat.__slots__]
    return [
        int(outcome.error), outcome.path, _text(outcome.data), list(outcome.children), fields,
        [outcome_words(part) for part in outcome.outcomes],
    ]  # fmt: skip


def outcome_from(words: list[Any]) -> OperationOutcome:
    error, path, data, children, stat, outcomes = words
    return OperationOutcome(
        ZooKeeperError(error), path, data.encode("latin-1"), tuple(children),
        None if stat is None else NodeStat(*stat), tuple(map(outcome_from, outcomes)),
    )  # fmt: skip


def event_words(event: WatchEvent) -> list[Any]:
    """A watch event's fields."""
    return [event.session, event.kind.value, event.path]


def event_from(words: list[Any]) -> WatchEvent:
    return WatchEvent(words[0], EventKind(words[1]), words[2])


def _text(data: bytes) -> str:
    return data.decode("latin-1")


# --- requests and replies ---

_ASKED, _RECENT = 16, 16_384


class _Message(bytes):
    """An "ask" or a "reply", with the operations or the outcomes that its bytes say."""

    values: tuple[Any, ...]


def _message(kind: str, values: tuple[Any, ...], texts: Iterable[str]) -> _Message:
    message = _Message(f'["{kind}",{len(values)},[{",".join(texts)}]]'.encode())
    message.values = values
    return message


def _ask(operations: tuple[Operation, ...]) -> bytes:
    return _message("ask", operations, map(_operation_text, operations))


def reply_bytes(outcomes: tuple[OperationOutcome, ...]) -> bytes:
    """A reply."""
    return _message("reply", outcomes, map(_outcome_text, outcomes))


@lru_cache(_RECENT)
def _operation_text(operation: Operation) -> str:
    """An operation in JSON; many clients ask for the same."""
    return _json(operation_words(operation))


@lru_cache(_RECENT)
def _outcome_text(outcome: OperationOutcome) -> str:
    """An outcome in JSON; of all reads of a node that does not change it is the same."""
    return _json(outcome_words(outcome))


ask_bytes = RecentValues(_ask, _ASKED)
"""A request for these operations."""


def asked_operations(data: bytes) -> tuple[Operation, ...]:
    """The operations of a request."""
    if isinstance(data, _Message):
        return data.values
    return tuple(map(operation_from, from_wire(data)[2]))


def replied_outcomes(data: bytes) -> tuple[OperationOutcome, ...]:
    """The outcomes of a reply."""
    if isinstance(data, _Message):
        return data.values
    return tuple(map(outcome_from, from_wire(data)[2]))
