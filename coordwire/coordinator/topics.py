"""The cluster's topics as a coordinator sees them: an input, replaced as a whole when something changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

__all__ = ["NO_TOPIC_ID", "TopicImage", "TopicsImage"]

NO_TOPIC_ID = UUID(int=0)


@dataclass(frozen=True, slots=True)
class TopicImage:
    """A topic and the number of its partitions."""

    id: UUID
    name: str
    partitions: int


class TopicsImage:
    """An image of all topics, by name and by id."""

    def __init__(self, topics: Iterable[TopicImage] = ()) -> None:
        self._by_name = {topic.name: topic for topic in topics}
        self._by_id = {topic.id: topic for topic in self._by_name.values()}

    def find(self, name: str) -> TopicImage | None:
        return self._by_name.get(name)

    def find_id(self, topic_id: UUID) -> TopicImage | None:
        return self._by_id.get(topic_id)

    def has(self, name: str, partition: int) -> bool:
        topic = self._by_name.get(name)
        return topic is not None and 0 <= partition < topic.partitions

    def missing_from(self, newer: TopicsImage) -> list[TopicImage]:
        """The topics that a newer image no longer has under their id."""
        return [topic for topic in self._by_id.values() if topic.id not in newer._by_id]
