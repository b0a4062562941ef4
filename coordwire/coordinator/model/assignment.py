"""Assignments: targets, and the partitions that members own, with the epochs in which they got them.

Rules: a mapping's order is that in which Apache Kafka's hash tables have it, because records and answers
list partitions in that order, and the uniform assignor removes them in it. Mappings are never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeAlias
from uuid import UUID

from coordwire.coordinator.hash_tables import HashMap, HashSet

Target: TypeAlias = Mapping[UUID, tuple[int, ...]]
"""Partitions by topic."""

Owned: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""By topic and partition, the epoch in which the member got it."""

NO_TARGET: Target = {}
NOTHING_OWNED: Owned = {}
"""The partitions of a member that never had an assignment."""


class TopicPartitions(Protocol):
    """Partitions of a topic, as messages and records list them."""

    @property
    def topic_id(self) -> UUID: ...
    @property
    def partitions(self) -> list[int]: ...


Reported: TypeAlias = Iterable[TopicPartitions] | None
"""The partitions that a member reports as its own; None where it reports nothing."""


def target_from_lists(topics: Iterable[TopicPartitions]) -> Target:
    """The target that a record lists."""
    return HashMap.of(
        (topic.topic_id, tuple(HashSet.copy_of(topic.partitions))) for topic in topics
    ).in_order()


def same_target(first: Target, second: Target) -> bool:
    """Whether these are the same partitions, in any order."""
    return first.keys() == second.keys() and all(
        partitions == second[topic] or set(partitions) == set(second[topic])
        for topic, partitions in first.items()
    )


def owned_from_lists(topics: Iterable[tuple[UUID, list[int], list[int] | None]], epoch: int) -> Owned:
    """The partitions that a record lists by topic, each with its epoch.

    epoch: for records of a Kafka before 4.3, which have none. A static member that left has epoch -2, in
    which it can't have got a partition.
    """
    owned: HashMap[UUID, Mapping[int, int]] = HashMap()
    for topic_id, partitions, epochs in topics:
        if epochs is None or len(epochs) != len(partitions):
            epochs = [max(epoch, 0)] * len(partitions)
        owned[topic_id] = HashMap.of(zip(partitions, epochs, strict=True)).in_order()
    return owned.in_order()
