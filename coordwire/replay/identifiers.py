"""Ids and epochs that a cluster gives again, and what they are in a replay.

Strategy: a captured answer and the one that the cluster gives now are walked side by side; where both have an
id, the captured one means the new one from then on, in all further requests. Which fields are ids is known by
their entities in the schemas, and by Kafka's names of epochs. Rules: what was never learned stays as it is;
epochs belong to what they count: a generation to its group, a producer's epoch to its producer id. Record
batches get the producer's id and epoch too, with a new checksum. The epoch of a leader, by which a client
says what it knows of the cluster, is left out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.codec import Field, Message, Struct
from coordwire.codec.walk import entity_values, fields_of
from coordwire.errors import CoordwireError
from coordwire.records import RecordBatch, backend, batches
from coordwire.records.batch import CRC_AT, CRC_FROM, HEADER

MOST = 1_000_000
"""Ids that are remembered; the oldest are forgotten."""

MOST_CHARACTERS = 64 << 20
"""Of the texts among them."""

_GENERATIONS = frozenset({"generation_id", "generation_id_or_member_epoch", "member_epoch"})
_SESSIONS = frozenset({"session_id"})
_LEADER_EPOCHS = frozenset({"current_leader_epoch"})


def kind_of(field: Field) -> str | None:
    """What a field's values are ids of, of those that a cluster gives again; None for all others."""
    if field.struct is not None:
        return None
    if field.entity in ("member_id", "producer_id"):
        return field.entity
    if field.type == "uuid" and field.name in ("topic_id", "topic_ids"):
        return "topic_id"
    if field.name in _GENERATIONS:
        return "generation"
    if field.name == "producer_epoch":
        return "producer_epoch"
    return "session" if field.name in _SESSIONS else None


class Identifiers:
    """What captured ids and epochs are now."""

    def __init__(self) -> None:
        self._now: OrderedDict[tuple[Any, ...], Any] = OrderedDict()
        self._characters = 0

    def __len__(self) -> int:
        return len(self._now)

    # --- learning ---

    def learn(self, request: Message, captured: Message, answered: Message, version: int) -> None:
        """Remember the ids of two answers to one request."""
        for own, answered_part, field, kind, scope in _pairs(
            captured, answered, version, _group(request), None
        ):
            before, now = getattr(own, field.name), getattr(answered_part, field.name)
            for captured_id, current_id in (
                zip(before or (), now or (), strict=False) if field.array else ((before, now),)
            ):
                if captured_id is not None and current_id is not None and _is_id(captured_id):
                    key = kind, scope, captured_id
                    self._characters += _characters(current_id) - _characters(self._now.get(key))
                    self._now[key] = current_id
        while len(self._now) > MOST or self._characters > MOST_CHARACTERS:
            _, forgotten = self._now.popitem(last=False)
            self._characters -= _characters(forgotten)

    def current(self, kind: str, scope: Any, captured: Any) -> Any:
        """What a captured id or epoch is now."""
        return self._now.get((kind, scope, captured), captured)

    # --- requests ---

    def update(self, request: Message, version: int) -> None:
        """Put the current ids and epochs in a captured request."""
        self._update(request, version, _group(request), None)

    def _update(self, value: Any, version: int, group: Any, producer: Any) -> None:
        group, producer = _scopes(value, version, group, producer)
        for field in fields_of(value, version):
            content = getattr(value, field.name)
            if content is None:
                continue
            kind = kind_of(field)
            if field.struct is not None:
                for element in content if field.array else (content,):
                    self._update(element, version, group, producer)
            elif kind is not None:
                scope = _scope(kind, group, producer)
                current: Any = (
                    [self.current(kind, scope, element) for element in content]
                    if field.array
                    else self.current(kind, scope, content)
                )
                setattr(value, field.name, current)
            elif field.name in _LEADER_EPOCHS:
                setattr(value, field.name, -1)
            elif field.type == "records":
                setattr(value, field.name, self._records(content))

    def _records(self, data: bytes) -> bytes:
        """A record set with the current producer ids and epochs; as it is where it cannot be read."""
        parts: list[bytes] = []
        try:
            records = batches(data)
            for batch in records:
                parts.append(self._batch(batch))
            parts.append(bytes(records.remainder))
        except CoordwireError:
            return data
        return b"".join(parts)

    def _batch(self, batch: RecordBatch) -> bytes:
        raw = bytes(batch.raw)
        if batch.magic < 2 or batch.producer_id < 0:
            return raw
        values = list(HEADER.unpack_from(raw))
        producer_id, epoch = values[9], values[10]
        values[9] = self.current("producer_id", None, producer_id)
        values[10] = self.current("producer_epoch", producer_id, epoch)
        changed = bytearray(HEADER.pack(*values)) + raw[HEADER.size :]
        changed[CRC_AT:CRC_FROM] = backend.crc32c(bytes(changed[CRC_FROM:])).to_bytes(4, "big")
        return bytes(changed)


def _characters(value: Any) -> int:
    return len(value) if isinstance(value, str) else 0


def _is_id(value: Any) -> bool:
    """Whether a value identifies something, and does not say that there is nothing."""
    if isinstance(value, UUID):
        return bool(value.int)
    return value >= 0 if isinstance(value, int) else bool(value)


def _group(message: Message) -> Any:
    return next(entity_values(message, "group_id"), None)


def _scopes(value: Any, version: int, group: Any, producer: Any) -> tuple[Any, Any]:
    """The group and the producer id that a struct itself names, or those around it."""
    for field in fields_of(value, version):
        if not field.array and field.entity == "group_id":
            group = getattr(value, field.name)
        elif not field.array and field.entity == "producer_id":
            producer = getattr(value, field.name)
    return group, producer


def _scope(kind: str, group: Any, producer: Any) -> Any:
    if kind == "generation":
        return group
    return producer if kind == "producer_epoch" else None


def _pairs(
    own: Any, answered_part: Any, version: int, group: Any, producer: Any
) -> Iterator[tuple[Any, Any, Field, str, Any]]:
    """The fields of ids in two messages side by side, with what their epochs belong to."""
    group, producer = _scopes(own, version, group, producer)
    for field in fields_of(own, version):
        kind = kind_of(field)
        if kind is not None:
            yield own, answered_part, field, kind, _scope(kind, group, producer)
        elif field.struct is not None:
            first, second = getattr(own, field.name), getattr(answered_part, field.name)
            if not field.array:
                first, second = ((first,), (second,)) if first and second else ((), ())
            for left_element, right_element in matched(first or (), second or (), version):
                yield from _pairs(left_element, right_element, version, group, producer)


def matched(first: Any, second: Any, version: int) -> Iterator[tuple[Struct, Struct]]:
    """The elements of two arrays that are about the same: by what names them, else by their places."""
    by_name = _named(first, version), _named(second, version)
    if by_name[0] is None or by_name[1] is None:
        yield from zip(first, second, strict=False)
        return
    for name, element in by_name[0].items():
        if name in by_name[1]:
            yield element, by_name[1][name]


_ENTITIES = frozenset({"topic_name", "group_id", "transactional_id"})
_NAMES = frozenset({"partition_index", "partition", "index", "partition_id", "name", "api_key", "key"})


def _named(elements: Any, version: int) -> dict[Any, Any] | None:
    """The elements of an array by what names them; None if that is not known of all of them."""
    named: dict[Any, Any] = {}
    for element in elements:
        single = [f for f in fields_of(element, version) if not f.array and f.struct is None]
        names = [f for f in single if f.entity in _ENTITIES or f.name in _NAMES]
        names = names or [f for f in single if f.entity == "broker_id"][:1]
        name = tuple(getattr(element, field.name) for field in names)
        if not name or name in named:
            return None
        named[name] = element
    return named
