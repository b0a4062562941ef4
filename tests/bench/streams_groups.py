"""`python -m tests.bench.streams_groups` measures streams groups and share groups in the coordinator.

Prints the time of a steady heartbeat of both beside a consumer group's, in rounds that alternate, and the
time in which a streams group's target of 1,000 members is computed, with and without standby tasks. Rules:
the processor's time; the fastest round.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    ConsumerGroupConfig,
    CoordinatorConfig,
    RequestContext,
    Shard,
    ShareGroupConfig,
    StateRequest,
    StreamsGroupConfig,
    TopicImage,
    TopicsImage,
)
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    InitializeShareGroupStateResponse,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult
from coordwire.messages.streams_group_heartbeat import Subtopology, TopicInfo, Topology

_CONTEXT = RequestContext(client_id="till", client_host="/192.0.2.7", new_id=lambda: "")
_MEMBERS = 8
_TURNS = 20_000
_ROUNDS = 7


def _shard(members: int, tasks: int, replicas: int, delay_ms: int = 10**9) -> Shard:
    """A shard with one consumer group, and one streams group whose tasks have state."""
    config = CoordinatorConfig(
        consumer=ConsumerGroupConfig(assignment_interval_ms=0),
        share=ShareGroupConfig(assignment_interval_ms=0),
        streams=StreamsGroupConfig(
            assignment_interval_ms=0, initial_rebalance_delay_ms=delay_ms, num_standby_replicas=replicas
        ),
    )
    shard = Shard(now=1_000, config=config)
    names = ["lines", "counts"]
    shard.set_topics(
        TopicsImage([TopicImage(UUID(int=1 + n), name, tasks) for n, name in enumerate(names)]), now=1_000
    )
    shard.load([], now=1_000)
    part = Subtopology(
        subtopology_id="0", source_topics=["lines"], state_changelog_topics=[TopicInfo(name="counts")]
    )
    for number in range(members):
        request = StreamsGroupHeartbeatRequest(
            group_id="streams", member_id=f"member-{number}", process_id=f"process-{number // 4}",
            rebalance_timeout_ms=60_000, topology=Topology(epoch=1, subtopologies=[part]), active_tasks=[],
            standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        _ask(shard, request, 0)
    return shard


def _ask(shard: Shard, request: Message, version: int) -> Any:
    shard.handle(request, version=version, now=1_000, context=_CONTEXT)
    return _settle(shard)


def _settle(shard: Shard) -> Any:
    """Do what the shard asks for; the last answer."""
    answer: Any = None
    for effect in shard.effects():
        if isinstance(effect, Append):
            shard.appended(effect.number, now=1_000)
        elif isinstance(effect, Answer):
            answer = effect.response
        elif isinstance(effect, StateRequest):
            shard.persisted(effect.number, _initialized(effect.request), now=1_000)
    return answer


def _initialized(request: Any) -> InitializeShareGroupStateResponse:
    results = [
        InitializeStateResult(
            topic_id=topic.topic_id,
            partitions=[PartitionResult(partition=part.partition) for part in topic.partitions],
        )
        for topic in request.topics
    ]
    return InitializeShareGroupStateResponse(results=results)


def _share_heartbeat(shard: Shard) -> ShareGroupHeartbeatRequest:
    """The heartbeat of a share group's member that has its assignment."""
    join = ShareGroupHeartbeatRequest(group_id="shares", member_id="s", subscribed_topic_names=["lines"])
    answer = _ask(shard, join, 1)
    shard.advance(1_000)  # asks for the partitions' state
    _settle(shard)
    for _ in range(2):
        beat = ShareGroupHeartbeatRequest(group_id="shares", member_id="s", member_epoch=answer.member_epoch)
        answer = _ask(shard, beat, 1)
    assert answer.member_epoch == beat.member_epoch == 3, "the member has not come to its target"
    return beat


def _target_seconds(members: int, tasks: int, replicas: int) -> float:
    """The time of the heartbeat in which a group without a target gets one, sessions aside."""
    from coordwire.coordinator.streams.reconciliation import _compute

    shard = _shard(members, tasks, replicas)
    state = shard._state
    group = state.groups["streams"]
    configured = group.configured.value  # type: ignore[attr-defined]
    if configured is None:
        _ask(shard, StreamsGroupHeartbeatRequest(group_id="streams", member_id="member-0", member_epoch=1), 0)
        configured = group.configured.value  # type: ignore[attr-defined]
    best = float("inf")
    for _ in range(3):
        began = process_time()
        _compute(state, group, group.epoch, None, configured, replicas, [])  # type: ignore[arg-type,attr-defined]
        best = min(best, process_time() - began)
    return best


def _best_of_each(actions: list[Callable[[], object]]) -> list[float]:
    best = [float("inf")] * len(actions)
    for _ in range(_ROUNDS):
        for number, action in enumerate(actions):
            began = process_time()
            for _ in range(_TURNS):
                action()
            best[number] = min(best[number], (process_time() - began) / _TURNS)
    return best


def main() -> None:
    shard = _shard(1, _MEMBERS, 0, delay_ms=0)
    _ask(shard, ConsumerGroupHeartbeatRequest(
        group_id="consumers", member_id="c", rebalance_timeout_ms=60_000, subscribed_topic_names=["lines"],
        topic_partitions=[],
    ), 1)  # fmt: skip
    consumer = ConsumerGroupHeartbeatRequest(group_id="consumers", member_id="c", member_epoch=2)
    streams = StreamsGroupHeartbeatRequest(group_id="streams", member_id="member-0", member_epoch=2)
    share = _share_heartbeat(shard)
    of_consumer, of_streams, of_share = _best_of_each(
        [
            lambda: _ask(shard, consumer, 1),
            lambda: _ask(shard, streams, 0),
            lambda: _ask(shard, share, 1),
        ]
    )
    print(f"a heartbeat of a consumer group: {of_consumer * 1e6:.2f} µs")
    for kind, seconds in (("streams", of_streams), ("share", of_share)):
        print(f"of a {kind} group: {seconds * 1e6:.2f} µs, {seconds / of_consumer:.2f} of a consumer group's")
    for replicas in (0, 1, 2):
        seconds = _target_seconds(1_000, 10_000, replicas)
        print(f"a target of 1,000 members, 10,000 tasks, {replicas} standby replicas: {seconds * 1e3:.0f} ms")


if __name__ == "__main__":
    main()
