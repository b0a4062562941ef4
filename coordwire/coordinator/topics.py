"""The cluster's topics as a coordinator sees them, and the hash by which it notices that they changed.

An image is an input, replaced as a whole. The hash is KIP-1101's. Of a topic: a magic byte, its id, name and
number of partitions, and each partition's racks. Of a group: its topics' hashes in the order of their names;
0 where no topic exists. Integers are little-endian; a string is its UTF-16 code units, then their number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Mapping
from functools import lru_cache
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.coordinator.xxh3 import xxh3_64
from coordwire.errors import counted

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics that coordinators keep their state in."""

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_LONGEST_NAME = 249


def bad_name(name: str) -> str | None:
    """The reason for which Kafka does not allow a topic's name; None if it does."""
    if not name:
        problem = "the empty string is not allowed"
    elif name in (".", ".."):
        problem = f"'{name}' is not allowed"
    elif len(name) > _LONGEST_NAME:
        problem = f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    elif _NAME.fullmatch(name) is None:
        problem = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {problem}"


# --- the image ---

NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and the number of its partitions.

    racks: of each partition's replicas, as far as their brokers' racks are known.
    """

    id: UUID
    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class TopicsImage:
    """An image of all topics, by name and by id.

    version: of the cluster's metadata; where it is not given, a shard counts its images.

        >>> from uuid import UUID
        >>> from coordwire.coordinator import TopicImage, TopicsImage
        >>> topics = TopicsImage([TopicImage(UUID(int=7), "orders", 2)])
        >>> topics.changed({"payments": TopicImage(UUID(int=8), "payments", 4)})
        <TopicsImage: 2 topics>
        >>> topics.find("orders").partitions
        2
    """

    def __init__(self, topics: Iterable[TopicImage] = (), *, version: int | None = None) -> None:
        self.version = version
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}
        self._base: object = None
        self._delta: tuple[list[TopicImage], list[TopicImage]] = [], []
        self._token = object()

    def __repr__(self) -> str:
        return f"<TopicsImage: {counted(len(self._by_name), 'topic')}>"

    def changed(self, topics: Mapping[str, TopicImage | None], *, version: int | None = None) -> TopicsImage:
        """The next image, in which these names mean other topics, or none.

        The differences from this one are known then without a look at the topics that stay.
        """
        image = TopicsImage(version=version)
        image._by_name, image._by_id = self._by_name.copy(), self._by_id.copy()
        before = []
        for name in topics:
            known = image._by_name.get(name)
            if known is not None:
                before.append(known)
                del image._by_id[known.id]
        for name, topic in topics.items():
            if topic is None:
                image._by_name.pop(name, None)
            else:
                image._by_name[name] = image._by_id[topic.id] = topic
        image._base = self._token
        image._delta = before, [topic for topic in topics.values() if topic is not None]
        return image

    def _compared(self, newer: TopicsImage) -> tuple[Iterable[TopicImage], Iterable[TopicImage]]:
        """Topics of either image that include all differences."""
        if newer._base is self._token:
            return newer._delta
        return self._by_id.values(), newer._by_id.values()

    @property
    def names(self) -> list[str]:
        return list(self._by_name)

    def find(self, name: str) -> TopicImage | None:
        return self._by_name.get(name)

    def find_id(self, topic_id: UUID) -> TopicImage | None:
        return self._by_id.get(topic_id)

    def has(self, name: str, partition: int) -> bool:
        topic = self._by_name.get(name)
        return topic is not None and 0 <= partition < topic.partitions

    def missing_from(self, newer: TopicsImage) -> list[TopicImage]:
        """The topics that a newer image no longer has under their id."""
        return [topic for topic in self._compared(newer)[0] if topic.id not in newer._by_id]

    def new_in(self, newer: TopicsImage) -> list[TopicImage]:
        """The topics of a newer image whose id this one does not have."""
        return [topic for topic in self._compared(newer)[1] if topic.id not in self._by_id]

    def changed_names(self, newer: TopicsImage) -> set[str]:
        """The names of topics that came, went or grew."""
        before, after = map(set, self._compared(newer))
        return {topic.name for topic in before ^ after}


# --- the hash ---

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
    topics = [topic for topic in map(image.find, names) if topic is not None]
    if not topics:
        return 0
    topics.sort(key=lambda topic: topic.name.encode("utf-16-be", "surrogatepass"))
    hashed = xxh3_64(struct.pack(f"<{len(topics)}Q", *map(topic_hash, topics)))
    return hashed - (1 << 64) if hashed >> 63 else hashed
