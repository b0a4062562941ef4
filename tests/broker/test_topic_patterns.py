"""Patterns of KIP-848 over many topics: their resolution lets other clients' requests through."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from coordwire.broker import Broker
from coordwire.coordinator import Shard
from coordwire.messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest, MetadataRequest
from coordwire.messages.metadata import MetadataRequestTopic
from tests.broker.peer import Peer, run

TOPICS = 20_000
SLOW = "(?:[^" + "".join(map(chr, range(0x4E00, 0x4E00 + 500))) + "]?){900}|.*(a|b|x){300}"


class Turns:
    """Counts the turns of all shards, and the greatest that one was asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.amounts: set[int] = set()
        self.shards: set[Shard] = set()
        original = Shard.work

        def work(shard: Shard, amount: int, *, now: int) -> None:
            self.count += 1
            self.amounts.add(amount)
            self.shards.add(shard)
            original(shard, amount, now=now)

        monkeypatch.setattr(Shard, "work", work)

    @property
    def left(self) -> bool:
        return any(shard.has_work for shard in self.shards)


def heartbeat(group_id: str, **given: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group_id, member_id="m" * 22, rebalance_timeout_ms=30_000, topic_partitions=[], **given
    )


def test_others_are_answered_while_a_slow_pattern_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t00007")])

    async def main() -> None:
        topics = {f"t{number:05}": 1 for number in range(TOPICS)}
        async with Broker(topics=topics) as broker, Peer(broker) as slow, Peer(broker) as other:
            await other.ask(heartbeat("warm", subscribed_topic_names=["t00001"]), 1)
            answer = await slow.ask(heartbeat("g", subscribed_topic_regex=SLOW), 1)
            assert answer.error_code == 0
            while not turns.count:  # the resolution has not begun
                await asyncio.sleep(0)
            between = []
            for _ in range(5):
                before = turns.count
                assert (await other.ask(request, 9)).topics[0].error_code == 0
                between.append(turns.count - before)
            assert turns.left  # it goes on all the while
            assert max(between) <= 3  # an answer takes the client's turn of the loop and the broker's
            assert len(turns.amounts) == 1

    run(main())
    assert turns.count


def test_a_resolution_ends_beside_other_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = Turns(monkeypatch)

    async def main() -> None:
        topics = {f"t{number:03}": 1 for number in range(500)}
        async with Broker(topics=topics) as broker, Peer(broker) as peer:
            first = await peer.ask(heartbeat("g", subscribed_topic_regex=SLOW), 1)
            for _ in range(1_000):
                await peer.ask(MetadataRequest(topics=[]), 9)
                if turns.count and not turns.left:
                    break
            assert turns.count > 5
            again = heartbeat("g", member_epoch=first.member_epoch)
            assert (await peer.ask(again, 1)).member_epoch == first.member_epoch + 1
            described = await peer.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
            (member,) = described.groups[0].members
            assert len(member.assignment.topic_partitions) == 501  # with `__consumer_offsets`

    run(main())
