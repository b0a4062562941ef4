"""The hash of the topics that a group subscribes to (KIP-1101): when it changes, partitions may have to move.

Of a topic: a magic byte, its id, name and number of partitions, and each partition's racks. Of a group: its
topics' hashes in the order of their names; 0 where no topic exists. Integers are little-endian, a string is
its UTF-16 code units and then their number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache

from coordwire.coordinator.topics import TopicImage, TopicsImage
from coordwire.coordinator.xxh3 import xxh3_64

__all__ = ["group_hash", "topic_hash"]

_MAGIC = b"\0"
_LOW_HALF = (1 << 64) - 1


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + struct.pack("<i", len(units) // 2)


@lru_cache(maxsize=1 << 12)
def topic_hash(topic: TopicImage) -> int:
    """The hash of one topic, unsigned."""
    parts = [
        _MAGIC,
        struct.pack("<QQ", topic.id.int >> 64, topic.id.int & _LOW_HALF),
        _string(topic.name),
        struct.pack("<i", topic.partitions),
    ]
    for index in range(topic.partitions):
        parts.append(struct.pack("<i", index))
        for rack in sorted(topic.racks[index]) if index < len(topic.racks) else ():
            parts += [struct.pack("<i", len(rack)), _string(rack)]
    return xxh3_64(b"".join(parts))


def group_hash(image: TopicsImage, names: Iterable[str]) -> int:
    """The hash of these topics as an int64, as records have it."""
    found = [topic for topic in map(image.find, names) if topic is not None]
    if not found:
        return 0
    found.sort(key=lambda topic: topic.name.encode("utf-16-be", "surrogatepass"))
    hashed = xxh3_64(struct.pack(f"<{len(found)}Q", *map(topic_hash, found)))
    return hashed - (1 << 64) if hashed >> 63 else hashed
