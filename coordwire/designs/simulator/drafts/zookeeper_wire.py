"""The messages between processes and ZooKeeper in the simulation: one JSON text a message, our own form.

    ["hello", session, timeout]  ["session", session]  ["alive"]  ["end"]  ["event", session, kind, path]
    ["ask", count, [operation...]]                      ["reply", count, [outcome...]]

ZooKeeper's real protocol is not of interest here; what counts is that each message takes its time, and is
lost or late as the others. Strategy: a reply answers the oldest request of its link, so that requests have no
number; a message keeps what it says beside its bytes, so that it is not decoded, and what many clients ask is
the same bytes, encoded once. Rules: node data is written as Latin-1, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
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

_MANY, _RECENT = 16, 16_384


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


ask_bytes = RecentValues(_ask, _MANY)
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
