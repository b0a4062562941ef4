"""The fast path of heartbeats and the slow path give the same answers, records and deadlines.

Strategy: two shards run a kept history, one of them without the fast path. After each step both take a
heartbeat of a member of some group: a steady one, or one in which a field or two differ.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordwire.codec import Message
from coordwire.coordinator import RequestContext, Shard
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember
from coordwire.coordinator.model.share_group import ShareGroupModel
from coordwire.coordinator.requests import STEADY
from coordwire.coordinator.writes import SteadyAnswer
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from coordwire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from coordwire.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequestEndpoint,
    Topology,
)
from tests.coordinator.histories import Replayer, request_step, state_answer
from tests.coordinator.oracle import RELEASE
from tests.coordinator.recorded_histories import HISTORIES, STREAMS, read_histories
from tests.coordinator.settings import settings
from tests.shares.kept_histories import GROUPS

_TICKETS = 1_000_000
"""More than a history has."""


class _SlowShard(Shard):
    """A shard without the fast path."""

    def __init__(self, **inputs: Any) -> None:
        super().__init__(**inputs)
        self._steady = {kind: dict.fromkeys(versions) for kind, versions in STEADY.items()}


class _CountingShard(Shard):
    """A shard that counts the answers of the fast path by the type of request."""

    def __init__(self, **inputs: Any) -> None:
        self.answered: Counter[type[Message]] = Counter()
        super().__init__(**inputs)
        self._steady = {
            kind: {version: self._counting(kind, steady) for version, steady in versions.items()}
            for kind, versions in STEADY.items()
        }

    def _counting(self, kind: type[Message], steady: SteadyAnswer | None) -> SteadyAnswer | None:
        def counting(state: Any, request: Any, context: RequestContext) -> Message | None:
            assert steady is not None
            response = steady(state, request, context)
            self.answered[kind] += response is not None
            return response

        return None if steady is None else counting


_VALUES: dict[str, list[Any]] = {
    "group_id": ["", " ", "g", "h", "unknown"],
    "generation_id": [-1, 0, 1, 2],
    "member_epoch": [-3, -2, -1, 0, 1, 2],
    "member_id": ["", " ", "unknown"],
    "group_instance_id": ["", "till-1", "till-2"],
    "instance_id": ["", "till-1", "till-2"],
    "rack_id": ["", "rack"],
    "rebalance_timeout_ms": [0, 5_000],
    "subscribed_topic_names": [[], ["orders"]],
    "subscribed_topic_regex": ["", "ord.*", "("],
    "server_assignor": ["range", "unknown"],
    "topic_partitions": [[]],
    "topology": [Topology(epoch=1)],
    "active_tasks": [[]],
    "standby_tasks": [[]],
    "warmup_tasks": [[]],
    "process_id": ["", "process"],
    "user_endpoint": [StreamsGroupHeartbeatRequestEndpoint(host="till", port=1)],
    "client_tags": [[], [KeyValue(key="zone", value="a")]],
    "task_offsets": [[]],
    "task_end_offsets": [[]],
    "shutdown_application": [True],
    "endpoint_information_epoch": [-1, 0, 1, 2],
}
"""Other values of the fields of heartbeats."""


def _heartbeat(coin: random.Random, group_id: str, group: Any, member: Any) -> tuple[Message, list[int]]:
    """The heartbeat of a member without news, and the versions that it may have."""
    if isinstance(group, ClassicGroupModel):
        return HeartbeatRequest(
            group_id=group_id, member_id=member.member_id, generation_id=group.generation,
            group_instance_id=member.instance_id,
        ), [3, 4]  # fmt: skip
    known = {"group_id": group_id, "member_id": member.member_id, "member_epoch": member.epoch}
    if isinstance(group, ConsumerGroupModel):
        return ConsumerGroupHeartbeatRequest(
            **known, instance_id=coin.choice([None, member.instance_id]),
            topic_partitions=coin.choice([None, _owned(member)]),
        ), [0, 1]  # fmt: skip
    if isinstance(group, ShareGroupModel):
        return ShareGroupHeartbeatRequest(**known), [1]
    return StreamsGroupHeartbeatRequest(
        **known, endpoint_information_epoch=group.endpoint_epoch, **coin.choice([{}, {}, _NO_TASKS])
    ), [0]


_NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def _heartbeats(coin: random.Random, shard: Shard) -> Iterator[tuple[Message, int, str | None]]:
    """A heartbeat of one member of each group, its version and its client's id."""
    for group_id, group in shard.groups.items():
        members: Any = getattr(group, "members", ())
        if not len(members):
            continue
        member: Any = members.get(coin.choice(sorted(members)))
        request, versions = _heartbeat(coin, group_id, group, member)
        version = coin.choice(versions)
        fields = [name for name in _VALUES if hasattr(request, name)]
        for name in coin.sample(fields, coin.choice([0, 0, 0, 1, 1, 2])):
            if (version, name) != (0, "subscribed_topic_regex"):
                setattr(request, name, coin.choice(_VALUES[name]))
        yield request, version, coin.choice([member.client_id] * 4 + ["other", None])


def _owned(member: ConsumerMember) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    """The partitions that the member owns, without those that it has to give up."""
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=list(partitions))
        for topic, partitions in member.owned.items()
    ]


def compare(seed: int, steps: list[tuple[int, str]], release: str = RELEASE) -> Counter[type[Message]]:
    """Run a history on both shards, and return how many heartbeats took the fast path."""
    coin = random.Random(seed)
    fast, slow = (Replayer(settings(seed, release), shard) for shard in (_CountingShard, _SlowShard))
    tickets = count(_TICKETS)
    for _, recorded_step in steps:
        step = state_answer(fast) if recorded_step.startswith("persisted") else recorded_step
        if step is None:
            continue
        assert fast.run(step) == slow.run(step)
        for request, version, client_id in _heartbeats(coin, fast.shard):
            number = next(tickets)
            beat = request_step(number, request, version, UUID(int=number).int, client_id)
            assert fast.run(beat) == slow.run(beat)
        assert fast.deadlines() == slow.deadlines()
        assert fast.shard.next_deadline() == slow.shard.next_deadline()
    assert isinstance(fast.shard, _CountingShard)
    return fast.shard.answered


@pytest.mark.parametrize(
    ("path", "kinds", "share"),
    [
        pytest.param(path, kinds, share, id=f"{name}-{path.stem}", marks=marks)
        for name, factor, marks in (("some", 1, ()), ("many", 8, pytest.mark.long))
        for path, kinds, share in (
            (HISTORIES, {HeartbeatRequest, ConsumerGroupHeartbeatRequest}, 40 / factor),
            (STREAMS, {StreamsGroupHeartbeatRequest}, 10 / factor),
            (GROUPS, {ShareGroupHeartbeatRequest}, 16 / factor),
        )
    ],
)
def test_the_fast_path_changes_nothing(path: Path, kinds: set[type[Message]], share: float) -> None:
    answered: Counter[type[Message]] = Counter()
    for index, (seed, steps, release) in enumerate(read_histories(path)):
        if index % share < 1:
            answered += compare(seed, steps, release)
    assert min(answered[kind] for kind in kinds) >= 10
