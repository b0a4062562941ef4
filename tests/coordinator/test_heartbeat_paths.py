"""The fast path of heartbeats and the slow path give the same answers, records and deadlines.

Strategy: two shards run a kept history, one of them without the fast path. After each step both take a
heartbeat of a member of some group: a steady one, or one in which a field or two differ.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from coordwire.codec import Message
from coordwire.coordinator import RequestContext, Shard, ShardStatus
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.requests import STEADY
from coordwire.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest
from coordwire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.coordinator.histories import Replayer, request_step
from tests.coordinator.recorded_histories import read_histories
from tests.coordinator.settings import settings

_TICKETS = 1_000_000
"""More than a history has."""


class _SlowShard(Shard):
    """A shard without the fast path."""

    def _enter(self, status: ShardStatus) -> None:
        super()._enter(status)
        self._steady = {}


class _CountingShard(Shard):
    """A shard that counts the answers of the fast path by the type of request."""

    def __init__(self, **inputs: Any) -> None:
        self.answered: Counter[type[Message]] = Counter()
        super().__init__(**inputs)

    def _enter(self, status: ShardStatus) -> None:
        super()._enter(status)
        self._steady = {kind: self._counting(kind) for kind in self._steady}

    def _counting(self, kind: type[Message]) -> Any:
        def steady(state: Any, request: Any, context: RequestContext) -> Message | None:
            response = STEADY[kind](state, request, context)
            self.answered[kind] += response is not None
            return response

        return steady


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
}
"""Other values of the fields of heartbeats."""


def _heartbeats(coin: random.Random, shard: Shard) -> Iterator[tuple[Message, int, str | None]]:
    """A heartbeat of one member of each group, its version and its client's id."""
    for group_id, group in shard.groups.items():
        if not isinstance(group, ClassicGroupModel | ConsumerGroupModel) or not len(group.members):
            continue
        member_id = coin.choice(sorted(group.members))
        member: Any = group.members.get(member_id)
        request: Message
        if isinstance(group, ClassicGroupModel):
            request = HeartbeatRequest(
                group_id=group_id, member_id=member_id, generation_id=group.generation,
                group_instance_id=member.instance_id,
            )  # fmt: skip
            version = coin.choice([3, 4])
        else:
            request = ConsumerGroupHeartbeatRequest(
                group_id=group_id, member_id=member_id, member_epoch=member.epoch,
                instance_id=coin.choice([None, member.instance_id]),
                topic_partitions=coin.choice([None, _owned(member)]),
            )  # fmt: skip
            version = coin.choice([0, 1])
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


def _compare(seed: int, steps: list[tuple[int, str]]) -> Counter[type[Message]]:
    """Run a history on both shards, and return how many heartbeats took the fast path."""
    coin = random.Random(seed)
    fast, slow = Replayer(settings(seed), _CountingShard), Replayer(settings(seed), _SlowShard)
    tickets = count(_TICKETS)
    for _, step in steps:
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
    "share", [pytest.param(40, id="some"), pytest.param(4, id="many", marks=pytest.mark.long)]
)
def test_the_fast_path_changes_nothing(share: int) -> None:
    answered: Counter[type[Message]] = Counter()
    for index, (seed, steps) in enumerate(read_histories()):
        if index % share == 0:
            answered += _compare(seed, steps)
    assert answered.keys() == STEADY.keys()
    assert min(answered.values()) >= 25
