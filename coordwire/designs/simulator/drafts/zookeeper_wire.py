"""The messages between processes and ZooKeeper in the simulation: one JSON text a message, our own form.

    ["hello", session, timeout]  ["session", session]  ["alive"]  ["end"]  ["event", session, kind, path]
    ["ask", count, [operation...]]                      ["reply", count, [outcome...]]

ZooKeeper's real protocol is not of interest here; what counts is that each message takes its time, and is
lost or late as the others. Strategy: a reply answers the oldest request of its link, so that requests have no
number, and what many clients ask and get is the same bytes, encoded and decoded once. Rules: node data is
written as Latin-1, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

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

__all__ = [
    "ask_bytes",
    "asked_operations",
    "event_from",
    "event_words",
    "from_wire",
    "operation_count",
    "operation_from",
    "operation_words",
    "outcome_from",
    "outcome_words",
    "replied_outcomes",
    "reply_bytes",
    "to_wire",
]

_KINDS = (CreateNode, DeleteNode, SetData, GetData, NodeExists, GetChildren, CheckVersion)


def to_wire(*words: Any) -> bytes:
    """A message."""
    return json.dumps(words, separators=(",", ":")).encode()


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


# --- requests and replies, each once for all who send or get the same ---

_MANY, _LONG = 16, 1_000


def _ask(operations: tuple[Operation, ...]) -> bytes:
    return to_wire("ask", len(operations), list(map(operation_words, operations)))


def _parse_operations(data: bytes) -> tuple[Operation, ...]:
    return tuple(map(operation_from, from_wire(data)[2]))


def reply_bytes(outcomes: Sequence[OperationOutcome]) -> bytes:
    """A reply."""
    return to_wire("reply", len(outcomes), list(map(outcome_words, outcomes)))


def _replied(data: bytes) -> tuple[OperationOutcome, ...]:
    return tuple(map(outcome_from, from_wire(data)[2]))


ask_bytes = RecentValues(_ask, _MANY)
"""A request for these operations."""

asked_operations = RecentValues(_parse_operations, _LONG)
"""The operations of a request."""

replied_outcomes = RecentValues(_replied, _LONG)
"""The outcomes of a reply."""
