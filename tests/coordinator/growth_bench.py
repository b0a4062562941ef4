"""A shard with n of something: members, topics, groups, offsets, in whose midst a request is counted.

Rules: appends are durable at once; share coordinators do what they are asked for; no clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
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
from coordwire.coordinator.share_state.requests import OPERATIONS
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.streams_group_heartbeat import (
    Subtopology,
    Topology,
)
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic

WIDE = TopicImage(UUID(int=7), "wide", 1_000)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\4wide\xff\xff\xff\xff"

WIDE_PARTS = [Subtopology(subtopology_id="0", source_topics=["wide"])]


class GrowthBench:
    """A shard whose appends are durable at once, with n topics and one of 1,000 partitions. Share
    coordinators do what it asks for."""

    def __init__(self, n: int, **arguments: Any) -> None:
        self.n = n
        consumer = ConsumerGroupConfig(assignment_interval_ms=0)
        streams = StreamsGroupConfig(assignment_interval_ms=0, initial_rebalance_delay_ms=0)
        share = ShareGroupConfig(assignment_interval_ms=0)
        self.shard = Shard(
            config=CoordinatorConfig(
                consumer=consumer, streams=streams, share=share, new_member_join_timeout_ms=10**9
            ),
            **arguments,
        )
        self.topics = [TopicImage(UUID(int=1_000 + number), self.name("t", number), 2) for number in range(n)]
        self.shard.set_topics(TopicsImage([WIDE, *self.topics]), now=self.shard.now)
        self.shard.load([], now=self.shard.now)
        self.now = 0
        self._ids = itertools.count(1)

    def name(self, kind: str, number: int) -> str:
        """All of one length, and none of another bench's, since hashes of names are cached."""
        return f"{kind}{self.n:03}{number:04}"

    def send(self, request: Any, version: int) -> list[Any]:
        number = next(self._ids)
        context = RequestContext(
            client_id="c",
            client_host="/127.0.0.1",
            new_id=lambda: str(UUID(int=number << 64 | self.n, version=4)),
        )
        self.shard.handle(request, version=version, now=self.now, context=context)
        return self.drain()

    def drain(self) -> list[Any]:
        responses: list[Any] = []
        for effect in self.shard.effects():
            if isinstance(effect, Append):
                effect.encoded()
                self.shard.appended(effect.number, now=self.shard.now)
            elif isinstance(effect, Answer):
                responses.append(effect.response)
            elif isinstance(effect, StateRequest):
                self.shard.persisted(effect.number, _successful(effect.request), now=self.shard.now)
        return responses

    def advance(self, by: int) -> list[Any]:
        self.now += by
        self.shard.advance(self.now)
        return self.drain()

    # --- requests ---

    def beat(self, number: int, topics: list[str], **fields: Any) -> Any:
        """A member of the consumer group, which joins."""
        request = ConsumerGroupHeartbeatRequest(
            group_id="cg", member_id=self.name("m", number), rebalance_timeout_ms=60_000,
            subscribed_topic_names=topics, topic_partitions=[],
        )  # fmt: skip
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def streams_beat(
        self, number: int, parts: list[Subtopology] | None, **fields: Any
    ) -> StreamsGroupHeartbeatRequest:
        """A member of the streams group, which joins with these parts of a topology."""
        request = StreamsGroupHeartbeatRequest(
            group_id="sg", member_id=self.name("m", number), process_id=self.name("p", number),
            rebalance_timeout_ms=60_000, active_tasks=[], standby_tasks=[], warmup_tasks=[],
            topology=None if parts is None else Topology(epoch=1, subtopologies=parts),
        )  # fmt: skip
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def share_beat(self, number: int, topics: list[str] | None, **fields: Any) -> ShareGroupHeartbeatRequest:
        """A member of the share group, which joins."""
        request = ShareGroupHeartbeatRequest(
            group_id="shg", member_id=self.name("m", number), subscribed_topic_names=topics
        )
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def join(self, number: int, **fields: Any) -> JoinGroupRequest:
        """A static member of the classic group."""
        request = JoinGroupRequest(
            group_id="jg", session_timeout_ms=300_000, rebalance_timeout_ms=300_000, protocol_type="consumer",
            group_instance_id=self.name("i", number),
            protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
        )  # fmt: skip
        for field, value in fields.items():
            setattr(request, field, value)
        return request

    def commit(self, group_id: str, topics: list[str], partitions: int = 1) -> OffsetCommitRequest:
        parts = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
            for index in range(partitions)
        ]
        return OffsetCommitRequest(
            group_id=group_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=parts) for name in topics],
        )

    def commit_in_transaction(self, producer_id: int, topics: list[str]) -> TxnOffsetCommitRequest:
        parts = [TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
        return TxnOffsetCommitRequest(
            group_id="g", transactional_id="x", producer_id=producer_id, producer_epoch=0,
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name in topics],
        )  # fmt: skip

    # --- states ---

    @property
    def names(self) -> list[str]:
        return [topic.name for topic in self.topics]

    def members(self, topics: Callable[[int], list[str]] = lambda number: ["wide"]) -> Any:
        """n members of the consumer group; the last one's answer."""
        answer = None
        for number in range(self.n):
            (answer,) = self.send(self.beat(number, topics(number)), 1)
        return answer

    def streams_members(self) -> Any:
        """n members of the streams group; the last one's answer."""
        answer = None
        for number in range(self.n):
            (answer,) = self.send(self.streams_beat(number, WIDE_PARTS), 0)
        return answer

    def share_members(self, topics: Callable[[int], list[str]] = lambda number: ["wide"]) -> Any:
        """n members of the share group, whose partitions have states and are assigned; the last one's
        answer."""
        for number in range(self.n):
            self.send(self.share_beat(number, topics(number)), 1)
        self.advance(1)
        answer = None
        for number in range(self.n):
            (answer,) = self.send(self.share_beat(number, topics(number)), 1)
        return answer

    def share_positions(self) -> None:
        """An empty share group that has states of n topics."""
        self.send(self.share_beat(0, self.names), 1)
        self.advance(1)
        self.send(self.share_beat(0, None, member_epoch=-1), 1)

    def joined(self) -> list[Any]:
        """n members of the classic group in one generation, with their answers; the leader is the first."""
        for number in range(self.n):
            self.send(self.join(number), 9)
        responses = self.advance(10_000)
        assert len(responses) == self.n
        return sorted(responses, key=lambda answer: answer.member_id != answer.leader)

    def stable(self) -> list[Any]:
        """The same, and each has its assignment."""
        joined = self.joined()
        for answer in reversed(joined):
            self.send(self.sync(answer, joined), 5)
        return joined

    def sync(self, answer: Any, joined: list[Any]) -> SyncGroupRequest:
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"a") for member in joined
        ]
        return SyncGroupRequest(
            group_id="jg", generation_id=1, member_id=answer.member_id, protocol_type="consumer",
            protocol_name="range", assignments=assignments if answer.member_id == answer.leader else [],
        )  # fmt: skip

    def committed(self) -> None:
        """n groups with an offset, and one with an offset of each of n topics."""
        for number in range(self.n):
            self.send(self.commit(self.name("g", number), ["wide"]), 8)
        self.send(self.commit("g", self.names), 8)


def _successful(request: Any) -> Message:
    """What share coordinators answer that did all of a request."""
    operation = OPERATIONS[type(request)]
    return operation.response(
        results=[
            operation.result(
                topic_id=topic.topic_id,
                partitions=[
                    operation.partition_result(partition=partition.partition)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
