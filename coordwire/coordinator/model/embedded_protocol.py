"""The bytes of classic consumers in JoinGroup and SyncGroup, as a coordinator reads and writes them.

A consumer group reads the rack and the owned partitions of a subscription too; a version newer than 3 is read
as 3, whose fields it begins with. A classic group reads the topics only, from the fields of version 0, which
come first in every version: int16 version, an array of strings, nullable bytes. All lengths are fixed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode

# --- for consumer groups ---

_NEWEST = 3
_OWNED, _GENERATION, _RACK = 1, 2, 3
_INT32 = 4


class MalformedProtocol(Exception):
    """The bytes end early or have a negative version: a schema error of Apache Kafka."""

    def __init__(self, reason: str = "Buffer underflow while parsing consumer protocol's header") -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OwnedTopic:
    """Partitions of a topic that a member reports as its own."""

    topic_id: UUID
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class Subscription:
    """A member's subscription. owned: by topic name."""

    topics: tuple[str, ...]
    rack_id: str | None
    owned: tuple[tuple[str, list[int]], ...]

    def reported(self, image: TopicsImage) -> list[OwnedTopic]:
        """The owned partitions of topics that exist."""
        return [
            OwnedTopic(topic.id, partitions)
            for name, partitions in self.owned
            if (topic := image.find(name)) is not None
        ]


class ImpossibleLength(OperationRefused):
    """A length that no protocol can have, of which Apache Kafka gives no details."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR)


class _Reader:
    """A reader of fixed-length encodings, which the embedded protocol has in all versions."""

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
        (value,) = struct.unpack_from(layout, self._data, self._at)
        self._at += size
        number: int = value
        return number

    def int32(self) -> int:
        return self._number(">i", _INT32)

    def _bytes(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise ImpossibleLength
        self._at += size
        return self._data[self._at - size : self._at]

    def count(self) -> int:
        count = self.int32()
        if not 0 <= count <= len(self._data) - self._at:
            raise ImpossibleLength
        return count

    def nullable_string(self) -> str | None:
        size = self._number(">h", 2)
        return None if size < 0 else self._bytes(size).decode("utf-8", "replace")

    def string(self) -> str:
        text = self.nullable_string()
        if text is None:
            raise ImpossibleLength
        return text

    def nullable_bytes(self) -> bytes | None:
        size = self.int32()
        return None if size < 0 else self._bytes(size)

    def partitions_by_topic(self) -> tuple[tuple[str, list[int]], ...]:
        return tuple(
            (self.string(), [self.int32() for _ in range(self.count())]) for _ in range(self.count())
        )


def read_subscription(metadata: bytes) -> Subscription:
    """Read a subscription. Raises `MalformedProtocol`, and `ImpossibleLength`."""
    reader = _Reader(metadata)
    topics = tuple(reader.string() for _ in range(reader.count()))
    reader.nullable_bytes()
    owned = reader.partitions_by_topic() if reader.version >= _OWNED else ()
    if reader.version >= _GENERATION:
        reader.int32()
    rack_id = reader.nullable_string() if reader.version >= _RACK else None
    return Subscription(topics, rack_id, owned)


def read_assignment(data: bytes, image: TopicsImage) -> tuple[Target, bool]:
    """Read the assignment of existing topics, and whether it has data of a custom assignor."""
    reader = _Reader(data)
    target: HashMap[UUID, tuple[int, ...]] = HashMap()
    for name, partitions in reader.partitions_by_topic():
        topic = image.find(name)
        if topic is not None:
            target[topic.id] = tuple(HashSet.copy_of(partitions))
    return target.in_order(), bool(reader.nullable_bytes())


def read_named_assignment(data: bytes) -> tuple[tuple[str, list[int]], ...]:
    """Read the assignment of any topics. Raises as `read_subscription` does."""
    return _Reader(data).partitions_by_topic()


def assignment_data(data: bytes) -> bytes | None:
    """Read what an assignor of its own added to an assignment. Raises as `read_subscription` does."""
    reader = _Reader(data)
    reader.partitions_by_topic()
    return reader.nullable_bytes()


def written_assignment(target: Mapping[UUID, Iterable[int]], image: TopicsImage, metadata: bytes) -> bytes:
    """Write an assignment in the version of the member's subscription. Raises `MalformedProtocol`."""
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


def subscribed_topics(metadata: Iterable[bytes], *, impossible_is_malformed: bool) -> frozenset[str] | None:
    """Read the topics of all members; None if one member's metadata ends early.

    Raises `ImpossibleLength` where Apache Kafka fails too, before its 4.4. The first member whose metadata
    can't be read decides.
    """
    topics: set[str] = set()
    for data in metadata:
        try:
            topics.update(_topics(data))
        except struct.error:
            return None
        except ImpossibleLength:
            if impossible_is_malformed:
                return None
            raise
    return frozenset(topics)


def _topics(data: bytes) -> list[str]:
    if len(data) < _VERSION_BYTES:
        raise struct.error
    (count,) = struct.unpack_from(">i", data, _VERSION_BYTES)
    position = _VERSION_BYTES + 4
    if not 0 <= count <= len(data) - position:
        raise ImpossibleLength
    topics = []
    for _ in range(count):
        (size,) = struct.unpack_from(">h", data, position)
        position += 2
        if not 0 <= size <= len(data) - position:
            raise ImpossibleLength
        topics.append(data[position : position + size].decode("utf-8", "replace"))
        position += size
    (size,) = struct.unpack_from(">i", data, position)
    if size > len(data) - position - 4:
        raise ImpossibleLength
    return topics
