"""The topics of an answer by their key: missing topics and partitions come first.

Rules: a topic that a request names twice is in the answer twice, as in Apache Kafka's, unless a topic or
partition is missing: then the partitions of each topic are merged. An answer costs no more than its
partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["ResponseTopics"]


class _Topic(Protocol):
    """A topic of a response, of any type of request."""

    @property
    def partitions(self) -> list[Any]: ...


T = TypeVar("T", bound=_Topic)


class ResponseTopics(Generic[T]):
    """Topics by key. key: gives the key of a topic; empty: copies a topic without its partitions."""

    def __init__(self, key: Callable[[T], Hashable], empty: Callable[[T], T]) -> None:
        self._key = key
        self._empty = empty
        self._topics: dict[Hashable, T] = {}

    def add(self, topic: T) -> None:
        """Add a topic, or its partitions to the known topic."""
        self._topics.setdefault(self._key(topic), self._empty(topic)).partitions.extend(topic.partitions)

    def merged(self, topics: Iterable[T]) -> list[T]:
        """All added topics with these, which stay as they are where nothing was added."""
        if not self._topics:
            return list(topics)
        merged = ResponseTopics(self._key, self._empty)
        for topic in (*self._topics.values(), *topics):
            merged.add(topic)
        return list(merged._topics.values())
