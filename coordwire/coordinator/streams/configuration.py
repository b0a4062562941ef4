"""The set-up of a topology with the cluster's topics: partition counts of internal topics, missing topics.

Strategy: source topics must exist. A repartition topic without a count of its own has as many partitions as
the largest source topic of the subtopology that writes it; those that are read together have equally many. A
changelog topic has as many as its subtopology has tasks. Counts of repartition topics are computed in the
passes that Apache Kafka makes over all subtopologies, but a pass looks only at those for which a count became
known, so that the work is linear in the topology.

Rules: an inconsistent topology is refused as Apache Kafka refuses it, in its order; missing topics and counts
that do not fit are a `TopologyProblem`, not an error.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import TypeVar

from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_topology import (
    ConfiguredSubtopology,
    ConfiguredTopology,
    StreamsTopology,
    TopologyProblem,
)
from coordwire.coordinator.refusal import OperationRefused, contradiction
from coordwire.coordinator.topics import TopicsImage, bad_name
from coordwire.enums import ErrorCode, StreamsGroupStatus
from coordwire.messages.streams_group_records import Subtopology, TopicInfo

T = TypeVar("T")


def configure_topology(topology: StreamsTopology, image: TopicsImage) -> ConfiguredTopology:
    """Set up a topology. Raises `OperationRefused` for one that contradicts itself."""
    groups = {part.subtopology_id: _copartition_groups(part) for part in topology.subtopologies.values()}
    try:
        _find_missing_sources(topology, image)
        counts = _PartitionCounts(topology, image)
        counts.share(groups)
        counts.decide_changelogs()
        parts = {part.subtopology_id: _configured(part, counts) for part in topology.subtopologies.values()}
        parts = {part_id: parts[part_id] for part_id in sorted(parts)}
        missing = _missing_internal_topics(parts, topology, image)
    except _DoesNotFit as problem:
        return ConfiguredTopology(
            topology.epoch, None, problem=TopologyProblem(problem.status, problem.detail)
        )
    if not missing:
        return ConfiguredTopology(topology.epoch, parts)
    detail = f"Internal topics are missing: {_summary([topic.name for topic in missing])}"
    return ConfiguredTopology(
        topology.epoch, parts, missing, TopologyProblem(StreamsGroupStatus.MISSING_INTERNAL_TOPICS, detail)
    )


class _DoesNotFit(Exception):
    """The cluster's topics don't fit the topology."""

    def __init__(self, status: StreamsGroupStatus, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


def _invalid(message: str) -> OperationRefused:
    return OperationRefused(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


_SHOWN = 3


def _summary(names: list[str]) -> str:
    suffix = f" and {len(names) - _SHOWN} additional topics" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + suffix


def _copartition_groups(part: Subtopology) -> list[list[str]]:
    """The topics of each group, each once."""
    return [
        list(
            HashSet.of(
                [
                    *(_at(part.source_topics, index) for index in group.source_topics),
                    *(
                        _at(part.repartition_source_topics, index).name
                        for index in group.repartition_source_topics
                    ),
                ]
            )
        )
        for group in part.copartition_groups
    ]


def _at(items: list[T], index: int) -> T:
    if not 0 <= index < len(items):
        raise contradiction()
    return items[index]


def _find_missing_sources(topology: StreamsTopology, image: TopicsImage) -> None:
    missing = {
        topic
        for part in topology.subtopologies.values()
        for topic in part.source_topics
        if image.find(topic) is None
    }
    if missing:
        detail = f"Source topics {_summary(sorted(missing))} are missing."
        raise _DoesNotFit(StreamsGroupStatus.MISSING_SOURCE_TOPICS, detail)


# --- partition counts ---


class _PartitionCounts:
    """The partition counts of topics: those of topics that exist, and those that are decided for others."""

    def __init__(self, topology: StreamsTopology, image: TopicsImage) -> None:
        self._parts = list(topology.subtopologies.values())
        self._image = image
        self.decided: dict[str, int] = {}
        self._decide_repartition_topics()
        sources = [topic for part in self._parts for topic in part.repartition_source_topics]
        self._fixed = {topic.name for topic in sources if topic.partitions != 0}
        self._flexible = {topic.name for topic in sources if topic.partitions == 0}
        self._fixed_counts: set[int] | None = None

    def of(self, topic: str) -> int:
        existing = self._image.find(topic)
        count = self.decided.get(topic) if existing is None else existing.partitions
        if count is None:
            raise contradiction()
        return count

    def of_sources(self, part: Subtopology) -> int | None:
        """The largest count of a subtopology's source topics."""
        topics = [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
        return max(map(self.of, topics), default=None)

    # --- repartition topics ---

    def _decide_repartition_topics(self) -> None:
        counts = {
            topic.name: topic.partitions
            for part in self._parts
            for topic in part.repartition_source_topics
            if topic.partitions != 0
        }
        readers: dict[str, list[int]] = {}
        for number, part in enumerate(self._parts):
            for topic in part.repartition_source_topics:
                readers.setdefault(topic.name, []).append(number)
        # Subtopologies with a source whose count is known, by the pass that comes to them.
        due = [
            (0, number)
            for number, part in enumerate(self._parts)
            if part.source_topics or any(topic.name in counts for topic in part.repartition_source_topics)
        ]
        looked_at = {number for _, number in due}
        heapq.heapify(due)
        while due:
            turn, number = heapq.heappop(due)
            part = self._parts[number]
            new = [topic for topic in part.repartition_sink_topics if topic not in counts]
            if not new:
                continue
            known = [counts[topic.name] for topic in part.repartition_source_topics if topic.name in counts]
            topics = map(self._image.find, part.source_topics)
            known += [topic.partitions for topic in topics if topic is not None]
            counts.update(dict.fromkeys(new, max(known)))
            for reader in (reader for topic in new for reader in readers.get(topic, ())):
                if reader not in looked_at:
                    looked_at.add(reader)
                    heapq.heappush(due, (turn if reader > number else turn + 1, reader))
        parts = self._parts
        if any(topic not in counts for part in parts for topic in part.repartition_sink_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics. There may be loops in "
                "the topology that cannot be resolved."
            )
        if any(topic.name not in counts for part in parts for topic in part.repartition_source_topics):
            raise _invalid(
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic."
            )
        self.decided.update(counts)

    # --- topics that are read together ---

    def share(self, groups: Mapping[str, list[list[str]]]) -> None:
        """Give the repartition topics of each group equally many partitions."""
        for of_part in groups.values():
            for topics in of_part:
                if topics:
                    self._share(topics)

    def _share(self, topics: list[str]) -> None:
        repartition = HashMap.of(
            (topic, self.of(topic)) for topic in topics if topic in self._fixed or topic in self._flexible
        ).in_order()
        external = {topic: self.of(topic) for topic in topics if topic not in repartition}
        if external:
            count = _common_count(external.values(), external)
        elif self._fixed:
            if self._fixed_counts is None:
                self._fixed_counts = {self.of(topic) for topic in self._fixed}
            count = _common_count(self._fixed_counts, repartition)
        else:
            count = max(0, *repartition.values())
            if not count:
                names = f"[{', '.join(repartition)}]"
                raise _invalid(f"All topics in the copartition group had undefined partition number: {names}")
        for topic, known in repartition.items():
            self.decided[topic] = count
            if topic in self._fixed and known != count:
                detail = (
                    f"Number of partitions [{known}] of repartition topic [{topic}] doesn't "
                    f"match number of partitions [{count}] of the source topic."
                )
                raise _DoesNotFit(StreamsGroupStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)

    # --- changelog topics ---

    def decide_changelogs(self) -> None:
        decided: dict[str, int] = {}
        for part in self._parts:
            count = self.of_sources(part)
            if count is None:
                raise _invalid(f"No source topics found for subtopology {part.subtopology_id}")
            decided.update((topic.name, count) for topic in part.state_changelog_topics)
        self.decided.update(decided)


def _common_count(counts: Iterable[int], topics: Mapping[str, int]) -> int:
    """The count that all have."""
    distinct = set(counts)
    if len(distinct) == 1:
        return distinct.pop()
    text = ", ".join(f"{topic}={topics[topic]}" for topic in sorted(topics))
    detail = f"Following topics do not have the same number of partitions: [{{{text}}}]"
    raise _DoesNotFit(StreamsGroupStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)


# --- the result ---


def _configured(part: Subtopology, counts: _PartitionCounts) -> ConfiguredSubtopology:
    tasks = counts.of_sources(part)
    if tasks is None:
        raise contradiction()
    repartition_sources = _internal_topics(part.repartition_source_topics, counts)
    changelogs = _internal_topics(part.state_changelog_topics, counts)
    if tasks <= 0:
        raise contradiction()
    return ConfiguredSubtopology(
        tasks, tuple(HashSet.copy_of(part.source_topics)), repartition_sources,
        tuple(sorted(set(part.repartition_sink_topics))), changelogs,
    )  # fmt: skip


def _internal_topics(topics: Iterable[TopicInfo], counts: _PartitionCounts) -> dict[str, InternalTopic]:
    configured: HashMap[str, InternalTopic] = HashMap()
    for topic in topics:
        name = topic.name
        partitions = topic.partitions or counts.decided.get(name)
        if partitions is None:
            raise contradiction()
        configs = HashMap.of((config.key, config.value) for config in topic.topic_configs)
        if len(configs) < len(topic.topic_configs):
            raise contradiction()
        _validate_name(name)
        if partitions < 1 or name in configured:
            raise contradiction()
        configured[name] = InternalTopic(name, partitions, topic.replication_factor, configs.in_order())
    return configured.in_order()


def _validate_name(name: str) -> None:
    problem = bad_name(name)
    if problem is not None:
        raise OperationRefused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _missing_internal_topics(
    parts: Mapping[str, ConfiguredSubtopology], topology: StreamsTopology, image: TopicsImage
) -> tuple[InternalTopic, ...]:
    """The internal topics that do not exist; the others must have the right number of partitions."""
    needed: HashMap[str, InternalTopic] = HashMap()
    for part in parts.values():
        needed.update(part.repartition_sources)
        needed.update(part.changelogs)
    for name in topology.required_topics:
        existing = image.find(name)
        expected = None if existing is None else needed.pop(name)
        if existing is not None and expected is not None and existing.partitions != expected.partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: expected {expected.partitions}, "
                f"found {existing.partitions}"
            )
            raise _DoesNotFit(StreamsGroupStatus.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return tuple(needed.values())
