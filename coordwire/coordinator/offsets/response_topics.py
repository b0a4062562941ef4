"""The topics of an answer, found by their key: what does not exist comes first, the rest after it.

Rules: what a request names twice is in the answer twice, as in Apache Kafka's, unless something does not
exist: then topics come together. An answer costs no more than its partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["AnsweredTopics"]


class _Topic(Protocol):
    """A topic of a response, of any type of request."""

    @property
    def partitions(self) -> list[Any]: ...


T = TypeVar("T", bound=_Topic)


class AnsweredTopics(Generic[T]):
    """key: what a topic is known by; empty: makes the same topic without partitions."""

    def __init__(self, key: Callable[[T], Hashable], empty: Callable[[T], T]) -> None:
        self._key = key
        self._empty = empty
        self._found: dict[Hashable, T] = {}

    def add(self, topic: T) -> None:
        """Add a topic, or its partitions to those that are known."""
        self._found.setdefault(self._key(topic), self._empty(topic)).partitions.extend(topic.partitions)

    def merged(self, others: Iterable[T]) -> list[T]:
        """All of these with those of the others, which are given as they are where nothing was added."""
        if not self._found:
            return list(others)
        both = AnsweredTopics(self._key, self._empty)
        for topic in (*self._found.values(), *others):
            both.add(topic)
        return list(both._found.values())
