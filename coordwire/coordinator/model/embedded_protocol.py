"""The bytes of classic consumers in JoinGroup and SyncGroup, as a coordinator reads and writes them.

A consumer group reads the rack and the owned partitions of a subscription too; a version newer than 3 is read
as 3, whose fields it begins with. A classic group reads the topics only, from the fields of version 0, which
come first in every version: int16 version, an array of strings, nullable bytes. All lengths are fixed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordwire.coordinator.hash_order import (
    capacity_for,
    copied_set_capacity,
    partitions_in_order,
    topics_in_order,
)
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode

__all__ = [
    "MalformedProtocol",
    "OwnedTopic",
    "Subscription",
    "read_assignment",
    "read_named_assignment",
    "read_subscription",
    "subscribed_topics",
    "written_assignment",
]


# --- for consumer groups ---

_NEWEST = 3
_OWNED, _GENERATION, _RACK = 1, 2, 3
_INT32 = 4


class MalformedProtocol(Exception):
    """Bytes that end early, or of a negative version: what Apache Kafka calls a schema error."""

    def __init__(self, reason: str = "Buffer underflow while parsing consumer protocol's header") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OwnedTopic:
    """Partitions of a topic that a member reports."""

    topic_id: UUID
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription. owned: by topic name."""

    topics: tuple[str, ...]
    rack_id: str | None
    owned: tuple[tuple[str, list[int]], ...]

    def reported(self, image: TopicsImage) -> list[OwnedTopic]:
        """What the member owns, of topics that exist."""
        return [
            OwnedTopic(topic.id, partitions)
            for name, partitions in self.owned
            if (topic := image.find(name)) is not None
        ]


def _impossible() -> OperationRefused:
    """A length that can't be: Apache Kafka fails, and says no more than that."""
    return OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


class _Reader:
    """Fixed-length encodings, as the embedded protocol has them in all versions."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.version = self._number(">h", 2)
        if self.version < 0:
            raise MalformedProtocol(f"Unsupported assignment version: {self.version}")
        self.version = min(self.version, _NEWEST)

    def _number(self, layout: str, size: int) -> int:
        if len(self._data) - self._at < size:
            raise MalformedProtocol
        (found,) = struct.unpack_from(layout, self._data, self._at)
        self._at += size
        number: int = found
        return number

    def int32(self) -> int:
        return self._number(">i", _INT32)

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise _impossible()
        self._at += size
        return self._data[self._at - size : self._at]

    def count(self) -> int:
        found = self.int32()
        if not 0 <= found <= len(self._data) - self._at:
            raise _impossible()
        return found

    def nullable_string(self) -> str | None:
        size = self._number(">h", 2)
        return None if size < 0 else self._bytes(size).decode("utf-8", "replace")

    def string(self) -> str:
        found = self.nullable_string()
        if found is None:
            raise _impossible()
        return found

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._bytes(size)

    def partitions_by_topic(self) -> tuple[tuple[str, list[int]], ...]:
        return tuple(
            (self.string(), [self.int32() for _ in range(self.count())]) for _ in range(self.count())
        )


def read_subscription(metadata: bytes) -> Subscription:
    """Raises `MalformedProtocol`, and `OperationRefused` for lengths that can't be."""
    reader = _Reader(metadata)
    topics = tuple(reader.string() for _ in range(reader.count()))
    reader.nullable_bytes()
    owned = reader.partitions_by_topic() if reader.version >= _OWNED else ()
    if reader.version >= _GENERATION:
        reader.int32()
    rack_id = reader.nullable_string() if reader.version >= _RACK else None
    return Subscription(topics, rack_id, owned)


def read_assignment(data: bytes, image: TopicsImage) -> tuple[Target, bool]:
    """A classic member's assignment, of topics that exist; whether it has data of a custom assignor."""
    reader = _Reader(data)
    found = {}
    for name, partitions in reader.partitions_by_topic():
        topic = image.find(name)
        if topic is not None:
            order = partitions_in_order(dict.fromkeys(partitions), copied_set_capacity(len(partitions)))
            found[topic.id] = tuple(order)
    return topics_in_order(found, capacity_for(len(found))), bool(reader.nullable_bytes())


def read_named_assignment(data: bytes) -> tuple[tuple[str, list[int]], ...]:
    """A classic member's assignment, of topics that exist or not. Raises as `read_subscription` does."""
    return _Reader(data).partitions_by_topic()


def written_assignment(target: Mapping[UUID, Iterable[int]], image: TopicsImage, metadata: bytes) -> bytes:
    """An assignment in the version of the member's subscription. Raises `MalformedProtocol`."""
    version = _Reader(metadata).version
    topics = [(topic, list(target[topic_id])) for topic_id in target if (topic := image.find_id(topic_id))]
    parts = [struct.pack(">hi", version, len(topics))]
    for topic, partitions in topics:
        name = topic.name.encode()
        parts.append(struct.pack(">h", len(name)) + name)
        parts.append(struct.pack(f">i{len(partitions)}i", len(partitions), *partitions))
    parts.append(struct.pack(">i", -1))
    return b"".join(parts)


# --- for classic groups ---

_VERSION_BYTES = 2


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of all members; None if one member's metadata ends early.

    Raises `OperationRefused` where Apache Kafka fails too: for a length that no subscription can have. The
    first member whose metadata can't be read decides.
    """
    found: set[str] = set()
    for data in metadata:
        try:
            found.update(_topics(data))
        except struct.error:
            return None
    return frozenset(found)


def _topics(data: bytes) -> list[str]:
    if len(data) < _VERSION_BYTES:
        raise struct.error
    (count,) = struct.unpack_from(">i", data, _VERSION_BYTES)
    position = _VERSION_BYTES + 4
    if not 0 <= count <= len(data) - position:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    found = []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", data, position)
        position += 2
        if not 0 <= size <= len(data) - position:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        found.append(data[position : position + size].decode("utf-8", "replace"))
        position += size
    (size,) = struct.unpack_from(">i", data, position)
    if size > len(data) - position - 4:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return found
