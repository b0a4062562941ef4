"""The topology of a streams group as its members describe it, and as it is set up with the cluster's topics.

Rules: a topology has the structs of its record, which are never changed. Its subtopologies are in the order
of Java's HashMap, because the partition counts of repartition topics may depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire._dataclasses import dataclass
from coordwire.coordinator.effects import InternalTopic
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.messages import StreamsGroupTopologyValue
from coordwire.messages.streams_group_heartbeat import Topology as RequestedTopology
from coordwire.messages.streams_group_records import (
    CopartitionGroup,
    Subtopology,
    TopicConfig,
    TopicInfo,
)


def topology_value(topology: RequestedTopology) -> StreamsGroupTopologyValue:
    """The record's value of a request's topology."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=list(part.source_topics),
                source_topic_regex=list(part.source_topic_regex),
                repartition_sink_topics=list(part.repartition_sink_topics),
                repartition_source_topics=[_topic_info(topic) for topic in part.repartition_source_topics],
                state_changelog_topics=[_topic_info(topic) for topic in part.state_changelog_topics],
                copartition_groups=[
                    CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in part.copartition_groups
                ],
            )
            for part in topology.subtopologies
        ],
    )


def _topic_info(topic: object) -> TopicInfo:
    return TopicInfo(
        name=topic.name,  # type: ignore[attr-defined]
        partitions=topic.partitions,  # type: ignore[attr-defined]
        replication_factor=topic.replication_factor,  # type: ignore[attr-defined]
        topic_configs=[
            TopicConfig(key=config.key, value=config.value)
            for config in topic.topic_configs  # type: ignore[attr-defined]
        ],
    )


class StreamsTopology:
    """A topology. Raises `OperationRefused` for one that Apache Kafka can't hold.

    value: as records have it. subtopologies: by id. needs, required_topics: the topics that it reads or
    keeps, the latter in the order of Java's HashSet. sources: for each topic that it reads, the subtopology
    that does (the last of several).
    """

    __slots__ = ("epoch", "needs", "required_topics", "sources", "subtopologies", "value")

    def __init__(self, value: StreamsGroupTopologyValue) -> None:
        by_id = HashMap.of((part.subtopology_id, part) for part in value.subtopologies)
        if len(by_id) < len(value.subtopologies) or value.epoch < 0:
            raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
        self.value = value
        self.epoch = value.epoch
        self.subtopologies = by_id.in_order()
        self.sources: dict[str, str] = {}
        required: list[str] = []
        for part in self.subtopologies.values():
            read = [*part.source_topics, *(topic.name for topic in part.repartition_source_topics)]
            self.sources.update(dict.fromkeys(read, part.subtopology_id))
            required += read
            required += [topic.name for topic in part.state_changelog_topics]
        self.needs = frozenset(required)
        self.required_topics = list(HashSet.of(required))

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, StreamsTopology):
            return NotImplemented
        # Kafka's record has a third part, who reads each topic: where two do, it is the last in the order of
        # its HashMap, in which ids of one bucket are as they came.
        same_parts = self.epoch == value.epoch and self.subtopologies == value.subtopologies
        return same_parts and self.sources == value.sources

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """tasks: their number, which is that of the partitions of its largest source topic. source_topics: in the
    order of Java's HashSet. repartition_sinks: sorted."""

    tasks: int
    source_topics: tuple[str, ...]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: tuple[str, ...]
    changelogs: Mapping[str, InternalTopic]


@dataclass(frozen=True, slots=True)
class TopologyProblem:
    """The reason for which a topology is not ready. status: a code of the heartbeat's answer."""

    status: int
    detail: str


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """A topology with the cluster's topics.

    subtopologies: by id, sorted; None where source topics are missing, or partitions don't fit. to_create:
    the internal topics that do not exist yet, in the order of Java's HashMap.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    to_create: tuple[InternalTopic, ...] = ()
    problem: TopologyProblem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None
