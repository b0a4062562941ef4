"""Which partitions of which topics: targets, and what members own with the epochs in which they got it.

Rules: a mapping's order is that in which Apache Kafka's hash tables have it, because records and answers
list partitions in that order, and the uniform assignor takes them away in it. Mappings are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias
from uuid import UUID

from coordwire.coordinator.hash_order import (
    MIN_CAPACITY,
    capacity_for,
    copied_set_capacity,
    partitions_in_order,
    topics_in_order,
)

__all__ = [
    "NOTHING_OWNED",
    "NO_TARGET",
    "Owned",
    "Reported",
    "Target",
    "TopicPartitions",
    "owned_from_lists",
    "same_target",
    "target_from_lists",
]

Target: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Partitions by topic."""

Owned: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""By topic and partition, the epoch in which the member got it."""

NO_TARGET: Target = {}
NOTHING_OWNED: Owned = {}
"""What a member owns to whom nothing was ever assigned."""


class TopicPartitions(Protocol):
    """Partitions of a topic, as messages and records list them."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> list[int]: ...


Reported: TypeAlias = Iterable[TopicPartitions] | None
"""The partitions that a member reports as its own; None where it reports nothing."""


def target_from_lists(topics: Iterable[TopicPartitions]) -> Target:
    """A target as a record lists it."""
    found = {
        topic.topic_id: tuple(
            partitions_in_order(dict.fromkeys(topic.partitions), copied_set_capacity(len(topic.partitions)))
        )
        for topic in topics
    }
    return topics_in_order(found, capacity_for(len(found)))


def same_target(one: Target, other: Target) -> bool:
    """Whether these are the same partitions, in whatever order."""
    return one.keys() == other.keys() and all(
        partitions == other[topic] or set(partitions) == set(other[topic])
        for topic, partitions in one.items()
    )


def owned_from_lists(topics: Iterable[tuple[UUID, list[int], list[int] | None]], epoch: int) -> Owned:
    """What a record lists: topics, partitions, and the epoch of each.

    epoch: for records of a Kafka before 4.3, which have none. A static member that left has epoch -2, in
    which it can't have got a partition.
    """
    found = {}
    for topic_id, partitions, epochs in topics:
        if epochs is None or len(epochs) != len(partitions):
            epochs = [max(epoch, 0)] * len(partitions)
        by_partition = dict(zip(partitions, epochs, strict=True))
        order = partitions_in_order(by_partition, capacity_for(len(by_partition), MIN_CAPACITY))
        found[topic_id] = {partition: by_partition[partition] for partition in order}
    return topics_in_order(found, capacity_for(len(found)))
