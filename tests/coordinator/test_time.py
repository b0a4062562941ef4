"""The time of a coordinator: each call brings it for all partitions, and nothing is due after the effects."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from coordwire.coordinator import (
    Answer,
    Append,
    ConsumerGroupConfig,
    Effect,
    GroupCoordinator,
    RequestContext,
    Shard,
    ShareGroupConfig,
    StateRequest,
    TopicImage,
    TopicsImage,
    partition_of,
)
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    InitializeShareGroupStateResponse,
    ShareGroupHeartbeatRequest,
)
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult

CONTEXT = RequestContext(client_id="till", client_host="/192.0.2.7", new_id=lambda: "id")
PARTITIONS = 2
SHARE, OTHER = (
    next(name for name in ("g", "h", "i", "j") if partition_of(name, PARTITIONS) == partition)
    for partition in range(PARTITIONS)
)
"""A group of each partition."""
ORDERS, AUDIT = TopicImage(UUID(int=7), "orders", 1), TopicImage(UUID(int=8), "audit", 1)
LOST = int(ErrorCode.NOT_ENOUGH_REPLICAS)


class Server:
    """A coordinator whose appends are durable at once, unless the test takes the effects itself."""

    def __init__(self) -> None:
        self.coordinator = GroupCoordinator(partitions=PARTITIONS)
        self.coordinator.set_topics(TopicsImage([ORDERS, AUDIT]), now=1_000)
        for partition in range(PARTITIONS):
            self.coordinator.load(partition, [], now=1_000)
        self.state_requests: list[StateRequest] = []
        self.answers: list[Any] = []

    def drain(self, now: int) -> list[Effect]:
        effects = []
        for effect in self.coordinator.effects():
            effects.append(effect)
            if isinstance(effect, Append):
                self.coordinator.appended(effect.partition, effect.number, now=now)
            elif isinstance(effect, StateRequest):
                self.state_requests.append(effect)
            elif isinstance(effect, Answer):
                self.answers.append(effect.response)
        return effects

    def ask(self, request: Any, version: int, now: int) -> Any:
        self.coordinator.handle(request, version=version, now=now, context=CONTEXT)
        self.drain(now)
        return self.answers[-1]

    def beat(self, now: int, epoch: int = 0, topics: list[str] | None = None) -> int:
        request = ShareGroupHeartbeatRequest(
            group_id=SHARE, member_id="m", member_epoch=epoch, subscribed_topic_names=topics
        )
        answer = self.ask(request, 1, now)
        assert answer.error_code == 0
        return int(answer.member_epoch)

    def beat_other(self, now: int) -> None:
        """A request for the other partition."""
        self.ask(HeartbeatRequest(group_id=OTHER, generation_id=1, member_id="z"), 4, now)

    def deadlines(self) -> list[dict[str, int]]:
        return [shard.deadlines() for shard in self.coordinator._shards.values()]


def initialized(request: Any) -> InitializeShareGroupStateResponse:
    return InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic_id=topic.topic_id, partitions=[PartitionResult(partition=0) for _ in topic.partitions]
            )
            for topic in request.topics
        ]
    )


# --- each call brings the time ---


def _busy() -> tuple[Server, Append, StateRequest]:
    """A server with an append and a share coordinator's answer on their way, at 1,100 ms."""
    server = Server()
    epoch = server.beat(1_000, 0, ["orders"])
    (state_request,) = server.state_requests
    joining = ConsumerGroupHeartbeatRequest(
        group_id=OTHER, member_id="n", rebalance_timeout_ms=5_000, subscribed_topic_names=["orders"],
        topic_partitions=[],
    )  # fmt: skip
    assert server.ask(joining, 1, 1_000).error_code == 0
    server.beat(1_050, epoch)
    request = ShareGroupHeartbeatRequest(group_id=SHARE, member_id="o", subscribed_topic_names=["audit"])
    server.coordinator.handle(request, version=1, now=1_100, context=CONTEXT)
    (append,) = (effect for effect in server.coordinator.effects() if isinstance(effect, Append))
    return server, append, state_request


CALLS: dict[str, Callable[[GroupCoordinator, Append, StateRequest, int], object]] = {
    "appended": lambda c, append, state_request, now: c.appended(0, append.number, now=now),
    "failed": lambda c, append, state_request, now: c.failed(0, append.number, LOST, now=now),
    "persisted": lambda c, append, state_request, now: c.persisted(
        0, state_request.number, initialized(state_request.request), now=now
    ),
    "persisted with an error": lambda c, append, state_request, now: c.persisted(
        0, state_request.number, None, LOST, now=now
    ),
    "set_topics": lambda c, append, state_request, now: c.set_topics(TopicsImage([AUDIT]), now=now),
    "set_group_config": lambda c, append, state_request, now: c.set_group_config(
        SHARE, ShareGroupConfig(session_timeout_ms=1), now=now
    ),
    "unload": lambda c, append, state_request, now: c.unload(0, now=now),
    "load": lambda c, append, state_request, now: c.load(0, [], now=now),
    "complete_transaction": lambda c, append, state_request, now: c.complete_transaction(
        0, 9, 1, committed=True, now=now
    ),
    "work": lambda c, append, state_request, now: c.work(1, now=now),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("now", [1_100, 3_000, 20_000, 46_010, 46_070, 400_000])
def test_a_call_is_the_same_with_and_without_an_advance_before_it(name: str, now: int) -> None:
    outcomes = []
    for advances in (False, True):
        server, append, state_request = _busy()
        if advances:
            server.coordinator.advance(now)
        CALLS[name](server.coordinator, append, state_request, now)
        effects = server.drain(now)
        due = server.coordinator.next_deadline()
        assert due is None or due > now
        later = []
        for time in (now + 499, now + 500, now + 30_000, now + 100_000):
            server.coordinator.advance(time)
            later.append(repr(server.drain(time)))
        outcomes.append((sorted(map(repr, effects)), server.deadlines(), later))
    assert outcomes[0] == outcomes[1]


def test_an_earlier_time_is_that_of_the_latest_call_whatever_partition_it_was_for() -> None:
    server = Server()
    server.beat_other(20_000)
    server.beat(1_000, 0, ["orders"])
    assert server.deadlines()[0][f"session-timeout-{SHARE}-m"] == 65_000


def test_a_write_that_failed_is_tried_again_after_the_time_of_its_failure() -> None:
    server = Server()
    server.beat(1_000, 0, ["orders"])
    server.coordinator.advance(46_000)
    (append,) = (effect for effect in server.coordinator.effects() if isinstance(effect, Append))
    server.beat_other(49_000)
    server.coordinator.failed(0, append.number, LOST, now=49_000)
    assert server.deadlines()[0][f"session-timeout-{SHARE}-m"] == 49_500


def test_a_write_that_fails_while_effects_are_taken_is_tried_again_later_and_not_at_once() -> None:
    server = Server()
    server.beat(1_000, 0, ["orders"])
    server.coordinator.advance(80_000)  # long after the session
    tries = 0
    for effect in server.coordinator.effects():
        if isinstance(effect, Append):
            tries += 1
            server.coordinator.failed(0, effect.number, LOST, now=80_000)
    assert tries == 1
    assert server.deadlines()[0][f"session-timeout-{SHARE}-m"] == 80_500


def test_a_heartbeat_in_time_counts_though_an_outcome_before_it_comes_late() -> None:
    """The first member's end is written while the second one's heartbeat waits, beyond its session's end."""
    shard = Shard(now=1_000)
    shard.set_topics(TopicsImage([ORDERS]), now=1_000)
    shard.load([], now=1_000)

    def beat(member_id: str, now: int, epoch: int = 0, late_ms: int = 0) -> int:
        request = ShareGroupHeartbeatRequest(
            group_id=SHARE, member_id=member_id, member_epoch=epoch,
            subscribed_topic_names=None if epoch else ["orders"],
        )  # fmt: skip
        ticket, answer = shard.handle(request, version=1, now=now, context=CONTEXT), None
        for effect in shard.effects():
            if isinstance(effect, Append):
                shard.appended(effect.number, now=now + late_ms)
            elif isinstance(effect, Answer) and effect.ticket == ticket:
                answer = effect.response
        assert answer is not None
        assert answer.error_code == 0  # type: ignore[attr-defined]
        return int(answer.member_epoch)  # type: ignore[attr-defined]

    beat("a", 1_000)
    epoch = beat("b", 1_010)
    assert beat("b", 46_000, epoch, late_ms=50) > epoch
    assert shard.deadlines() == {f"session-timeout-{SHARE}-b": 91_050, "expire-group-metadata": 601_000}


def test_states_that_were_persisted_count_from_the_time_of_the_answer() -> None:
    server = Server()
    epoch = server.beat(1_000, 0, ["orders"])
    epoch = server.beat(1_100, epoch, ["orders", "audit"])
    server.beat_other(20_000)
    first = server.state_requests[0]
    server.coordinator.persisted(0, first.number, initialized(first.request), now=20_000)
    server.drain(20_000)
    count = len(server.state_requests)
    server.beat(31_500, epoch)
    later = [
        topic.topic_id for state_request in server.state_requests[count:] for topic in _topics(state_request)
    ]
    assert ORDERS.id not in later


def _topics(state_request: StateRequest) -> Iterator[Any]:
    request: Any = state_request.request
    return iter(request.topics)


# --- nothing is due after the effects ---


def test_what_is_due_at_once_is_among_the_effects() -> None:
    server = Server()
    server.beat(1_000, 0, ["orders"])
    assert [type(state_request) for state_request in server.state_requests] == [StateRequest]
    assert list(server.coordinator.effects()) == []
    due = server.coordinator.next_deadline()
    assert due is not None
    assert due > 1_000


def test_a_request_of_one_partition_brings_the_time_of_all() -> None:
    server = Server()
    server.beat(1_000, 0, ["orders"])
    server.beat_other(60_000)
    group: Any = server.coordinator.groups[SHARE]
    assert group.is_empty


@pytest.mark.parametrize("face", [Shard, GroupCoordinator])
@pytest.mark.parametrize(
    "call",
    ["appended", "failed", "persisted", "set_topics", "set_group_config", "unload", "load", "work",
     "complete_transaction", "handle"],
)  # fmt: skip
def test_the_time_is_required(face: type, call: str) -> None:
    now = inspect.signature(getattr(face, call)).parameters["now"]
    assert now.kind is inspect.Parameter.KEYWORD_ONLY
    assert now.default is inspect.Parameter.empty


def test_a_configuration_counts_from_its_time_on() -> None:
    """Members whose sessions ended before it are gone."""
    server = Server()
    joining = ConsumerGroupHeartbeatRequest(
        group_id=SHARE, member_id="n", rebalance_timeout_ms=5_000, subscribed_topic_names=["orders"],
        topic_partitions=[],
    )  # fmt: skip
    assert server.ask(joining, 1, 1_000).error_code == 0
    server.coordinator.set_group_config(SHARE, ConsumerGroupConfig(session_timeout_ms=1), now=50_000)
    server.drain(50_000)
    group: Any = server.coordinator.groups[SHARE]
    assert group.is_empty
