"""Timelines of recorded traffic are linear in its frames, whatever their order and whatever they say.

Each script makes one kind of state as large as it can, then touches it with frames that cost little.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from coordwire.capture.entries import ConnectionEnd, Entry, FrameEntry
from coordwire.codec import Message
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.join_group import JoinGroupResponseMember
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.share_group_heartbeat import Assignment as ShareAssignment
from coordwire.messages.share_group_heartbeat import TopicPartitions
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds,
    StreamsGroupHeartbeatResponseTaskIds,
)
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.timeline import lag
from coordwire.timeline.events import LagMeasured, MemberJoined
from coordwire.timeline.evidence import MemberName
from coordwire.timeline.from_wire import commits, group_table
from coordwire.timeline.from_wire.connection_ends import ConnectionEnds
from coordwire.timeline.from_wire.timeline import timeline
from tests.growth import assert_linear
from tests.timeline.script import Script, assignment, only
from tests.timeline.test_modern import beat

REBALANCE_IN_PROGRESS = 27
ORDERS = UUID(int=7)


def call(script: Script, request: Message, answer: Message, client: str = "c") -> None:
    script.answer(script.ask(request, client), answer)


def join_answer(
    script: Script, asked: Any, generation: int, name: str, *named: str, leader: str = ""
) -> None:
    script.answer(asked, JoinGroupResponse(
        generation_id=generation, protocol_type="consumer", protocol_name="range", leader=leader,
        member_id=name, members=[JoinGroupResponseMember(member_id=one) for one in named],
    ))  # fmt: skip


def synced(script: Script, generation: int, name: str, *partitions: int) -> None:
    call(
        script, SyncGroupRequest(group_id=script.group, generation_id=generation, member_id=name),
        SyncGroupResponse(assignment=assignment({"t": list(partitions)})),
    )  # fmt: skip


# --- classic groups


def one_rebalance(n: int) -> list[Entry | ConnectionEnd]:
    """All join, in a generation that isn't the group's first, and the leader is answered first."""
    script = Script()
    asked = [script.join(f"c{k}") for k in range(n)]
    names = [f"c{k}-id" for k in range(n)]
    join_answer(script, asked[0], 5, names[0], *names, leader=names[0])
    for one, name in zip(asked[1:], names[1:], strict=True):
        join_answer(script, one, 5, name, leader=names[0])
    for k, name in enumerate(names):
        synced(script, 5, name, k)
    return script.entries


def members(script: Script, n: int) -> None:
    """So many members of generation 1, each with a partition."""
    for k in range(n):
        join_answer(script, script.join(f"c{k}", instance=f"i{k}"), 1, f"c{k}-id")
    for k in range(n):
        synced(script, 1, f"c{k}-id", k)


def generations(n: int) -> list[Entry | ConnectionEnd]:
    """One of many members takes the group from one generation to the next."""
    script = Script()
    members(script, n)
    for k in range(n):
        join_answer(script, script.join("c0"), 2 + k, "c0-id")
        synced(script, 2 + k, "c0-id", 0)
    return script.entries


def joins_that_wait(n: int) -> list[Entry | ConnectionEnd]:
    """Members' JoinGroups wait while one of them goes from generation to generation."""
    script = Script()
    members(script, n)
    for k in range(n):
        script.join(f"c{k}")
    for k in range(n):
        script.heartbeat("c0", 1, REBALANCE_IN_PROGRESS)
        join_answer(script, script.join("c0"), 2 + k, "c0-id")
        synced(script, 2 + k, "c0-id", 0)
    return script.entries


def nobody_has_a_name(n: int) -> list[Entry | ConnectionEnd]:
    """JoinGroups without a member id wait, members that were named never join, and one syncs repeatedly."""
    script = Script()
    first = script.join("c0")
    for k in range(n):
        script.join(f"w{k}", member="")
    join_answer(script, first, 5, "c0-id", "c0-id", *(f"x{k}" for k in range(n)), leader="c0-id")
    for _ in range(n):
        synced(script, 5, "c0-id", 0)
    return script.entries


def the_leader_is_answered_again(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    asked = [script.join(f"c{k}") for k in range(n)]
    for k, one in enumerate(asked):
        join_answer(script, one, 5, f"c{k}-id")
    for _ in range(n):
        join_answer(script, asked[0], 5, "c0-id", "c0-id", leader="c0-id")
    return script.entries


def without_a_time(
    make: Callable[[int], list[Entry | ConnectionEnd]],
) -> Callable[[int], list[Entry | ConnectionEnd]]:
    def made(n: int) -> list[Entry | ConnectionEnd]:
        entries = make(n)
        for entry in entries:
            assert isinstance(entry, FrameEntry)
            entry.time_ns = None
        return entries

    made.__name__ = f"{make.__name__}_without_a_time"
    return made


def many_topics(n: int) -> list[Entry | ConnectionEnd]:
    """A member with many topics and partitions asks to join with few, and isn't answered."""
    script = Script()
    topics = [f"t{k}" for k in range(n)]
    joins = script.join("c0", *topics, owned={topic: [0] for topic in topics})
    join_answer(script, joins, 1, "c0-id")
    for _ in range(n):
        script.join("c0", "t")
        script.join("c0", *topics[:1], owned={"t0": [0]})
    return script.entries


# --- groups whose coordinator assigns


def heartbeats_of_one_with_many_partitions(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    beat(script, "m", 0, 1, owns=[], given=list(range(n)), topics=["orders"])
    beat(script, "m", 1, 1, owns=list(range(n)))
    for _ in range(n):
        beat(script, "m", 1, 1)
        beat(script, "m", -2, -2)
    return script.entries


def one_large_group(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for k in range(n):
        beat(script, f"m{k}", 0, 1, owns=[], given=[k], topics=["orders"], instance=f"i{k}")
    for k in range(n):
        beat(script, f"m{k}", 1, 1, owns=[k])
    return script.entries


def orphans(n: int) -> list[Entry | ConnectionEnd]:
    """A new member joins, a partition is given up, and nobody gets it."""
    script = Script()
    beat(script, "m", 0, 1, owns=[], given=list(range(n)), topics=["orders"])
    beat(script, "m", 1, 1, owns=list(range(n)))
    beat(script, "new", 0, 2, owns=[], given=[], topics=["orders"])
    beat(script, "m", 2, 2, owns=list(range(n - 1)), given=list(range(n - 1)))
    for _ in range(n):
        beat(script, "m", 2, 2)
    return script.entries


def of_share(script: Script, name: str, epoch: int, answer: int, *given: int) -> None:
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=name, member_epoch=epoch, rack_id=None, subscribed_topic_names=["t"],
    )  # fmt: skip
    share = ShareAssignment(topic_partitions=[TopicPartitions(topic_id=ORDERS, partitions=list(given))])
    call(script, request, ShareGroupHeartbeatResponse(
        error_message=None, member_id=name, member_epoch=answer, assignment=share if given else None,
    ))  # fmt: skip


def share_group(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for epoch in (0, 1):
        for k in range(n):
            of_share(script, f"m{k}", epoch, 1, k, k + 1)
    for k in range(n):
        of_share(script, f"m{k}", 1, 1)
    return script.entries


def of_streams(script: Script, name: str, epoch: int, answer: int, partition: int) -> None:
    there = StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=[partition])
    request = StreamsGroupHeartbeatRequest(
        group_id="g", member_id=name, member_epoch=epoch, instance_id=None, rack_id=None, topology=None,
        active_tasks=[there] if epoch else [], standby_tasks=None, warmup_tasks=None, process_id=None,
        user_endpoint=None, client_tags=None, task_offsets=None, task_end_offsets=None,
    )  # fmt: skip
    told = StreamsGroupHeartbeatResponseTaskIds(subtopology_id="0", partitions=[partition])
    call(script, request, StreamsGroupHeartbeatResponse(
        error_message=None, member_id=name, member_epoch=answer, active_tasks=[told], standby_tasks=[],
        warmup_tasks=[], status=None, partitions_by_user_endpoint=None,
    ))  # fmt: skip


def streams_group(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for epoch in (0, 1):
        for k in range(n):
            of_streams(script, f"m{k}", epoch, 1, k)
    return script.entries


# --- many groups, commits, transactions


def many_groups(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for k in range(n):
        script.group = f"g{k}"
        script.steady("c")
        response = FindCoordinatorResponse(error_message=None, node_id=1, host="h", port=1)
        request = script.ask(FindCoordinatorRequest(key=script.group), "c", 3)
        script.answer(request, response)
    return script.entries


def commit(script: Script, group: str, *partitions: int) -> None:
    parts = [
        OffsetCommitRequestPartition(partition_index=partition, committed_offset=1, committed_metadata=None)
        for partition in partitions
    ]
    request = OffsetCommitRequest(
        group_id=group, group_instance_id=None, topics=[OffsetCommitRequestTopic(name="t", partitions=parts)]
    )
    script.answer(script.ask(request, "c", 8), OffsetCommitResponse())


def commits_of_many_partitions(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    commit(script, "g", *range(n))
    for k in range(n):
        commit(script, "g", k)
    return script.entries


def ends(script: Script, partition: int, offset: int) -> None:
    part = PartitionData(partition_index=partition, high_watermark=offset, records=None)
    topic = FetchableTopicResponse(topic="t", partitions=[part])
    script.answer(script.ask(FetchRequest(), "c", 11), FetchResponse(responses=[topic]))


def many_groups_of_one_partition(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for k in range(n):
        commit(script, f"g{k}", 0)
    for k in range(n):
        script.now += 2
        ends(script, 0, 5 + k)
    return script.entries


def outages(n: int) -> list[Entry | ConnectionEnd]:
    """Of a group's coordinator, whose members are many, and say little."""
    script = Script()
    names = [f"c{k}" for k in range(n)]
    script.rebalance(1, {name: {"t": [k]} for k, name in enumerate(names)}, *map(script.join, names))
    script.close(*names)
    for _ in range(n):
        script.heartbeat("c0", 1)
        script.now += 3
        script.close("c0", sender="broker")
        script.now += 3
        script.heartbeat("c0", 1)
    return script.entries


def transactions(n: int) -> list[Entry | ConnectionEnd]:
    script = Script()
    for k in range(n):
        added = AddOffsetsToTxnRequest(transactional_id="x", group_id=f"g{k}")
        call(script, added, AddOffsetsToTxnResponse())
        part = TxnOffsetCommitRequestPartition(partition_index=k, committed_offset=1, committed_metadata=None)
        topic = TxnOffsetCommitRequestTopic(name="t", partitions=[part])
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id=f"g{k}", group_instance_id=None, topics=[topic]
        )
        call(script, request, TxnOffsetCommitResponse())
    for _ in range(n):
        refused = EndTxnResponse(error_code=51)
        call(script, EndTxnRequest(transactional_id="x", committed=True), refused)
    call(script, EndTxnRequest(transactional_id="x", committed=True), EndTxnResponse())
    return script.entries


def topics_that_change(n: int) -> list[Entry | ConnectionEnd]:
    """Topics come and go, one by one, beside a member that asks for many others."""
    script = Script()
    script.rebalance(1, {"a": {"t": [0]}}, script.join("a", *(f"other-{k}" for k in range(n)), "t"))
    for k in range(n):
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=f"gone-{k}")])
        call(script, request, DeleteTopicsResponse(responses=[DeletableTopicResult(name=f"gone-{k}")]))
    return script.entries


MADE = [
    one_rebalance, generations, joins_that_wait, nobody_has_a_name, the_leader_is_answered_again,
    without_a_time(joins_that_wait), without_a_time(nobody_has_a_name), many_topics,
    heartbeats_of_one_with_many_partitions, one_large_group, orphans, share_group, streams_group, many_groups,
    commits_of_many_partitions, many_groups_of_one_partition, transactions, outages, topics_that_change,
]  # fmt: skip


@pytest.mark.parametrize("make", MADE, ids=lambda make: make.__name__)
def test_growth(make: Callable[[int], list[Entry | ConnectionEnd]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(commits, "MOST_OF_ONE", 10)
    monkeypatch.setattr(group_table, "MOST_TOPICS_OF_ONE", 10)

    def read(entries: list[Entry | ConnectionEnd]) -> None:
        for _ in timeline(entries, ends=make is outages):
            pass

    assert_linear(make, read, 150)


def test_members_of_one_client_join_groups_of_their_own() -> None:
    def joined(n: int) -> list[MemberJoined]:
        return [
            MemberJoined(
                group=f"g{k}", time_ns=k, source="x", number=k, kind="classic", member_id="m", client_id="c",
                host="10.0.0.1:5",
            )
            for k in range(n)
        ]  # fmt: skip

    def read(events: list[MemberJoined]) -> None:
        ends = ConnectionEnds()
        for event in events:
            ends.see(event)
        assert not ends._shared.is_alone(MemberName("g0", "m"))

    assert_linear(joined, read, 1_000)


def test_all_groups_of_a_partition_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "MOST_AT_ONCE", 2)
    script = Script()
    for group in ("a", "b", "c"):
        commit(script, group, 0)
    for offset in (5, 6, 7):
        script.now += 2
        ends(script, 0, offset)
    told = [(event.group, event.end_offset) for event in only(script.events(), LagMeasured)]
    assert told == [("a", 5), ("b", 5), ("c", 6), ("a", 6), ("b", 7), ("c", 7)]
