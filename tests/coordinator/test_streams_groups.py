"""Streams groups by themselves: the order of Java's queue, the costs of topologies and of assignments."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    RequestContext,
    Shard,
    StreamsGroupConfig,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.streams.sticky_assignor import JavaQueue
from coordwire.enums import ErrorCode, StreamsGroupStatus
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.streams_group_heartbeat import CopartitionGroup, Subtopology, TopicInfo, Topology

CONTEXT = RequestContext(client_id="till", client_host="/192.0.2.7", new_id=lambda: "")
QUICK = StreamsGroupConfig(assignment_interval_ms=0, initial_rebalance_delay_ms=0)


def shard_with(topics: dict[str, int], config: StreamsGroupConfig = QUICK, **arguments: Any) -> Shard:
    shard = Shard(now=1_000, config=CoordinatorConfig(streams=config), **arguments)
    images = [TopicImage(UUID(int=number), *topic) for number, topic in enumerate(topics.items(), 1)]
    shard.set_topics(TopicsImage(images), now=shard.now)
    shard.load([], now=shard.now)
    return shard


def join(topology: Topology, member_id: str = "m-1") -> StreamsGroupHeartbeatRequest:
    return StreamsGroupHeartbeatRequest(
        group_id="words", member_id=member_id, process_id=f"process of {member_id}",
        rebalance_timeout_ms=60_000, topology=topology, active_tasks=[], standby_tasks=[], warmup_tasks=[],
    )  # fmt: skip


def ask(shard: Shard, request: StreamsGroupHeartbeatRequest) -> Answer:
    ticket = shard.handle(request, version=0, now=1_000, context=CONTEXT)
    (answer,) = [effect for effect in settled(shard) if effect.ticket == ticket]
    return answer


def settled(shard: Shard) -> list[Answer]:
    answers = []
    for effect in shard.effects():
        if isinstance(effect, Append):
            shard.appended(effect.number, now=shard.now)
        elif isinstance(effect, Answer):
            answers.append(effect)
    return answers


def response_of(answer: Answer) -> StreamsGroupHeartbeatResponse:
    assert isinstance(answer.response, StreamsGroupHeartbeatResponse)
    return answer.response


# --- what an application sees ---


def test_internal_topics_are_asked_for_and_tasks_follow_them() -> None:
    reads = Subtopology(subtopology_id="0", source_topics=["lines"], repartition_sink_topics=["by-word"])
    counts = Subtopology(
        subtopology_id="1",
        repartition_source_topics=[TopicInfo(name="by-word")],
        state_changelog_topics=[TopicInfo(name="counts")],
    )
    topology = Topology(epoch=1, subtopologies=[reads, counts])
    shard = shard_with({"lines": 3})
    answer = ask(shard, join(topology))
    assert {topic.name: topic.partitions for topic in answer.topics_to_create} == {"by-word": 3, "counts": 3}
    (status,) = response_of(answer).status or []
    assert status.status_code == StreamsGroupStatus.MISSING_INTERNAL_TOPICS
    assert status.status_detail == "Internal topics are missing: counts, by-word"
    assert response_of(answer).active_tasks == []

    names = {"lines": 3, "by-word": 3, "counts": 3}
    shard.set_topics(
        TopicsImage([TopicImage(UUID(int=number), *topic) for number, topic in enumerate(names.items(), 1)]),
        now=shard.now,
    )
    beat = StreamsGroupHeartbeatRequest(group_id="words", member_id="m-1", member_epoch=2)
    answer = ask(shard, beat)
    assert answer.topics_to_create == ()
    tasks = {part.subtopology_id: part.partitions for part in response_of(answer).active_tasks or []}
    assert tasks == {"0": [0, 1, 2], "1": [0, 1, 2]}


def test_a_topology_that_loops_is_refused() -> None:
    part = Subtopology(
        subtopology_id="0",
        repartition_source_topics=[TopicInfo(name="loop")],
        repartition_sink_topics=["loop"],
    )
    response = response_of(ask(shard_with({}), join(Topology(epoch=1, subtopologies=[part]))))
    assert response.error_code == ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert response.error_message is not None
    assert "There may be loops" in response.error_message


# --- Java's queue ---


def test_equal_elements_leave_the_queue_in_javas_order() -> None:
    """As java.util.PriorityQueue gives them (Java 17)."""
    queue = JavaQueue(lambda element: element[0], [(1, name) for name in "abcdef"])
    assert [queue.poll()[1] for _ in range(6)] == list("afedcb")
    assert not queue


# --- costs ---

Sized = Callable[[int], Topology]


def _chain(size: int) -> Topology:
    """Subtopologies each of which reads what the one after it writes: the worst order for passes."""
    parts = [
        Subtopology(
            subtopology_id=f"{number:06}",
            source_topics=["lines"] if number == size - 1 else [],
            repartition_source_topics=[TopicInfo(name=f"t-{number}")] if number < size - 1 else [],
            repartition_sink_topics=[f"t-{number - 1}"] if number else [],
        )
        for number in range(size)
    ]
    return Topology(epoch=1, subtopologies=parts)


def _copartitioned(size: int) -> Topology:
    """One group of many topics, and as many groups of one."""
    topics = [TopicInfo(name=f"t-{number}", partitions=3) for number in range(size)]
    groups = [CopartitionGroup(repartition_source_topics=[number]) for number in range(size)]
    groups.append(CopartitionGroup(repartition_source_topics=list(range(size))))
    part = Subtopology(
        subtopology_id="0", source_topics=["lines"], repartition_source_topics=topics,
        copartition_groups=groups,
    )  # fmt: skip
    return Topology(epoch=1, subtopologies=[part])


def _sinks(size: int) -> Topology:
    """One subtopology that writes many topics, which another reads with as many changelogs."""
    topics = [TopicInfo(name=f"t-{number}") for number in range(size)]
    stores = [TopicInfo(name=f"c-{number}") for number in range(size)]
    writes = Subtopology(
        subtopology_id="0", source_topics=["lines"], repartition_sink_topics=[topic.name for topic in topics]
    )
    reads = Subtopology(subtopology_id="1", repartition_source_topics=topics, state_changelog_topics=stores)
    return Topology(epoch=1, subtopologies=[writes, reads])


def _calls(action: Callable[[], object]) -> int:
    """How many Python calls an action makes."""
    counter = itertools.count()
    sys.setprofile(lambda frame, event, argument: next(counter) if event != "return" else None)
    try:
        action()
    finally:
        sys.setprofile(None)
    return next(counter)


@pytest.mark.growth
@pytest.mark.parametrize("topology", [_chain, _copartitioned, _sinks])
def test_a_topology_costs_in_proportion_to_its_size(topology: Sized) -> None:
    costs = []
    for size in (200, 400, 800):
        request = join(topology(size))
        shard = shard_with({"lines": 3})
        costs.append(_calls(lambda shard=shard, request=request: ask(shard, request)))  # type: ignore[misc]
    assert costs[2] < 2.6 * costs[1] < 2.6 * 2.6 * costs[0]


@pytest.mark.growth
def test_an_assignment_costs_in_proportion_to_tasks_and_members() -> None:
    part = Subtopology(subtopology_id="0", source_topics=["lines"])
    topology = Topology(epoch=1, subtopologies=[part])
    costs = []
    for size in (50, 100, 200):
        shard = shard_with({"lines": 4 * size})
        for number in range(size):
            ask(shard, join(topology, f"m-{number}"))
        costs.append(_calls(lambda shard=shard: ask(shard, join(topology, "the last"))))  # type: ignore[misc]
    assert costs[2] < 2.6 * costs[1] < 2.6 * 2.6 * costs[0]


def test_a_session_of_another_kind_of_group_ends_with_the_group() -> None:
    """A streams member's join fails; a consumer group's member of the same id has a session of its own."""
    shard = shard_with({"lines": 1})
    part = Subtopology(subtopology_id="0", source_topics=["lines"])
    shard.handle(join(Topology(epoch=1, subtopologies=[part])), version=0, now=1_000, context=CONTEXT)
    for effect in shard.effects():
        if isinstance(effect, Append):
            shard.failed(effect.number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=shard.now)
    request = ConsumerGroupHeartbeatRequest(
        group_id="words", member_id="m-1", rebalance_timeout_ms=60_000, subscribed_topic_names=["lines"],
        topic_partitions=[],
    )  # fmt: skip
    shard.handle(request, version=1, now=2_000, context=CONTEXT)
    settled(shard)
    assert not shard.groups["words"].is_empty
    shard.advance(60_000)
    settled(shard)
    assert shard.groups["words"].is_empty
