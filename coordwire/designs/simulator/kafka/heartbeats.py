"""What members of today's groups say in their heartbeats, and what the answers assign, by the kind of group.

Strategy: `ConsumerClient` is the one model of a member whose coordinator assigns; a `Heartbeats` has what
differs. Rules: a streams group has one subtopology, whose tasks are the partitions that its topics have when
a task is assigned; a member of a share group reports nothing and commits nothing, as others may read its
partitions too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds,
    Subtopology,
    Topology,
)

if TYPE_CHECKING:
    from coordwire.designs.simulator.kafka.group_client import GroupClientConfig, OwnedPartition

ID_FROM_CLIENT = 1
"""The first version of ConsumerGroupHeartbeat in which a member makes its id itself."""

_SUBTOPOLOGY = "0"


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat has to say. topics: that the member subscribes to, with their ids as far as they are
    known; joins: it is not in; is_whole: everything is said; owned: None where nothing new is."""

    config: GroupClientConfig
    member_id: str
    epoch: int
    version: int
    topics: Sequence[str]
    topic_ids: Mapping[str, UUID]
    joins: bool = False
    is_whole: bool = False
    owned: Sequence[OwnedPartition] | None = None


@dataclass(frozen=True, slots=True)
class Heartbeats:
    """One kind of group. request: makes a heartbeat; assignment: what an answer assigns, None for what was
    before; named: the same by names of topics, from their ids and their partitions' numbers, None where these
    are not known yet; commits: whether members commit offsets."""

    kind: type[Message]
    version: int
    request: Callable[[Beat], Message]
    assignment: Callable[[Any], Any]
    named: Callable[[Any, Mapping[str, UUID], Mapping[str, int]], list[OwnedPartition] | None]
    commits: bool = True


# --- KIP-848 ---


def _consumer_request(beat: Beat) -> ConsumerGroupHeartbeatRequest:
    config = beat.config
    request = ConsumerGroupHeartbeatRequest(
        group_id=config.group_id, member_id=beat.member_id, member_epoch=beat.epoch,
        instance_id=config.instance_id,
    )  # fmt: skip
    if beat.joins or beat.is_whole:
        request.rebalance_timeout_ms = config.rebalance_timeout_ms
        request.subscribed_topic_names = sorted(beat.topics) if config.regex is None else []
        if beat.version >= ID_FROM_CLIENT:
            request.subscribed_topic_regex = config.regex
        request.server_assignor = config.assignor
    if beat.joins:
        request.topic_partitions = []
    elif beat.owned is not None:
        request.topic_partitions = [
            ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=beat.topic_ids[topic], partitions=numbers)
            for topic, numbers in _by_topic(beat.owned).items()
        ]
    return request


def _by_topic(partitions: Iterable[OwnedPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _partitions(response: Any) -> Any:
    return None if response.assignment is None else response.assignment.topic_partitions


def _named_partitions(
    assigned: Any, topic_ids: Mapping[str, UUID], _partitions: Mapping[str, int]
) -> list[OwnedPartition] | None:
    names = {topic_id: name for name, topic_id in topic_ids.items()}
    if any(topic.topic_id not in names for topic in assigned):
        return None
    return [(names[topic.topic_id], index) for topic in assigned for index in topic.partitions]


CONSUMER = Heartbeats(
    ConsumerGroupHeartbeatRequest, 1, _consumer_request, _partitions, _named_partitions
)  # fmt: skip

# --- KIP-932 ---


def _share_request(beat: Beat) -> ShareGroupHeartbeatRequest:
    request = ShareGroupHeartbeatRequest(
        group_id=beat.config.group_id, member_id=beat.member_id, member_epoch=beat.epoch
    )
    if beat.joins or beat.is_whole:
        request.subscribed_topic_names = sorted(beat.topics)
    return request


SHARE = Heartbeats(
    ShareGroupHeartbeatRequest, 1, _share_request, _partitions, _named_partitions, commits=False
)  # fmt: skip

# --- KIP-1071 ---


def _streams_request(beat: Beat) -> StreamsGroupHeartbeatRequest:
    config = beat.config
    request = StreamsGroupHeartbeatRequest(
        group_id=config.group_id, member_id=beat.member_id, member_epoch=beat.epoch,
        instance_id=config.instance_id,
    )  # fmt: skip
    if beat.joins or beat.is_whole:
        request.rebalance_timeout_ms = config.rebalance_timeout_ms
        request.process_id = beat.member_id
    if beat.joins:
        part = Subtopology(subtopology_id=_SUBTOPOLOGY, source_topics=sorted(beat.topics))
        request.topology = Topology(epoch=0, subtopologies=[part])
    owned = [] if beat.joins else beat.owned
    if owned is not None:
        tasks = sorted({partition for _, partition in owned})
        request.active_tasks = (
            [StreamsGroupHeartbeatRequestTaskIds(subtopology_id=_SUBTOPOLOGY, partitions=tasks)]
            if tasks
            else []
        )
        request.standby_tasks, request.warmup_tasks = [], []
    return request


def _named_tasks(
    assigned: Any, _topic_ids: Mapping[str, UUID], partitions: Mapping[str, int]
) -> list[OwnedPartition] | None:
    tasks = [index for part in assigned for index in part.partitions]
    if tasks and max(tasks) >= max(partitions.values(), default=0):
        return None
    return [(topic, index) for topic in sorted(partitions) for index in tasks if index < partitions[topic]]


STREAMS = Heartbeats(
    StreamsGroupHeartbeatRequest, 1, _streams_request, lambda response: response.active_tasks, _named_tasks
)  # fmt: skip

HEARTBEATS: Mapping[str, Heartbeats] = {"consumer": CONSUMER, "share": SHARE, "streams": STREAMS}
"""By the kind of group."""
