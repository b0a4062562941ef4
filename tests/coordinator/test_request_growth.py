"""Every request that a coordinator takes: what one costs where there are n of something, for n, 2n, 4n.

Strategy: `CASES` names, by type of request, what there is n of: elements of the request, members, topics,
groups, producers; each makes a shard in that state and the request whose work is counted (`tests.growth`), up
to its records as bytes and its answer. Rules: a type of request without a case fails; no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from coordwire.codec import Message
from coordwire.coordinator import (
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.requests import REQUESTS
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequestTopic
from coordwire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequestTaskIds,
    Subtopology,
    TopicInfo,
)
from tests.coordinator.growth_bench import WIDE, WIDE_PARTS, GrowthBench
from tests.growth import Counter, assert_increments, assert_linear, counting

SIZES = (12, 24, 48)

Made = tuple[Any, int]
"""A request and its version."""

Case = Callable[[GrowthBench], Made]


def heartbeat_of_many_members(bench: GrowthBench) -> Made:
    last = bench.stable()[-1]
    return HeartbeatRequest(group_id="jg", generation_id=1, member_id=last.member_id), 4


def heartbeat_of_a_consumer_among_many(bench: GrowthBench) -> Made:
    last = bench.members()
    fields = {"member_epoch": last.member_epoch, "topic_partitions": None, "subscribed_topic_names": None}
    return bench.beat(bench.n - 1, [], **fields, rebalance_timeout_ms=-1), 1


def consumer_joins_many(bench: GrowthBench) -> Made:
    bench.members()
    return bench.beat(bench.n, ["wide"]), 1


def consumer_joins_many_of_other_topics(bench: GrowthBench) -> Made:
    bench.members(lambda number: [bench.topics[number].name])
    return bench.beat(bench.n, ["wide"]), 1


def consumer_joins_many_with_patterns(bench: GrowthBench) -> Made:
    for number in range(bench.n):
        regex = f"{bench.topics[number].name[:-1]}."
        bench.send(bench.beat(number, [], subscribed_topic_names=None, subscribed_topic_regex=regex), 1)
    return bench.beat(bench.n, ["wide"]), 1


def consumer_subscribes_to_many_topics(bench: GrowthBench) -> Made:
    return bench.beat(0, bench.names), 1


def consumer_subscribes_to_one_topic_many_times(bench: GrowthBench) -> Made:
    return bench.beat(0, ["wide"] * bench.n), 1


def consumer_gives_up_many_topics(bench: GrowthBench) -> Made:
    (answer,) = bench.send(bench.beat(0, bench.names), 1)
    owned = [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic.topic_id, partitions=topic.partitions)
        for topic in answer.assignment.topic_partitions
    ]
    return bench.beat(0, ["wide"], member_epoch=answer.member_epoch, topic_partitions=owned), 1


def consumer_has_many_partitions_and_another_joins(bench: GrowthBench) -> Made:
    """Then gives up half of them."""
    wide = TopicImage(UUID(int=9), "wider", 8 * bench.n)
    bench.shard.set_topics(TopicsImage([WIDE, wide, *bench.topics]), now=bench.shard.now)
    (answer,) = bench.send(bench.beat(0, ["wider"]), 1)
    bench.send(bench.beat(1, ["wider"]), 1)
    owned = [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=wide.id, partitions=list(range(8 * bench.n)))
    ]
    return bench.beat(0, ["wider"], member_epoch=answer.member_epoch, topic_partitions=owned), 1


def consumer_leaves_many(bench: GrowthBench) -> Made:
    bench.members()
    return bench.beat(0, [], member_epoch=-1), 1


def member_joins_many(bench: GrowthBench) -> Made:
    bench.stable()
    return bench.join(bench.n), 9


def member_joins_many_that_wait(bench: GrowthBench) -> Made:
    for number in range(bench.n):
        bench.send(bench.join(number), 9)
    return bench.join(bench.n), 9


def member_comes_back_to_many(bench: GrowthBench) -> Made:
    bench.stable()
    return bench.join(0), 9


def member_joins_with_many_protocols(bench: GrowthBench) -> Made:
    protocols = [
        JoinGroupRequestProtocol(name=bench.name("p", number), metadata=b"m") for number in range(bench.n)
    ]
    return bench.join(0, protocols=protocols), 9


def member_joins_with_one_protocol_many_times(bench: GrowthBench) -> Made:
    return bench.join(0, protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")] * bench.n), 9


def member_joins_with_large_metadata(bench: GrowthBench) -> Made:
    """A subscription to n topics."""
    topics = b"".join(b"\0\x0b" + name.encode().ljust(11) for name in bench.names)
    metadata = b"\0\0" + bench.n.to_bytes(4, "big") + topics + b"\xff\xff\xff\xff"
    return bench.join(0, protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)]), 9


def classic_member_joins_many_consumers(bench: GrowthBench) -> Made:
    bench.members()
    return bench.join(0, group_id="cg"), 9


def leader_brings_many_assignments(bench: GrowthBench) -> Made:
    joined = bench.joined()
    return bench.sync(joined[0], joined), 5


def member_waits_for_its_assignment_among_many(bench: GrowthBench) -> Made:
    joined = bench.joined()
    return bench.sync(joined[-1], joined), 5


def all_members_leave(bench: GrowthBench) -> Made:
    """In the order in which each of them is the leader when it goes."""
    bench.stable()
    group: Any = bench.shard.groups["jg"]
    followers = [member.member_id for member in group.members.values() if member.member_id != group.leader]
    leaving = [MemberIdentity(member_id=member) for member in (group.leader, *followers)]
    return LeaveGroupRequest(group_id="jg", members=leaving), 5


def one_member_leaves_many_times(bench: GrowthBench) -> Made:
    joined = bench.stable()
    leaving = [MemberIdentity(member_id=joined[0].member_id)] * bench.n
    return LeaveGroupRequest(group_id="jg", members=leaving), 5


def all_consumers_leave(bench: GrowthBench) -> Made:
    bench.members()
    leaving = [MemberIdentity(member_id=bench.name("m", number)) for number in range(bench.n)]
    return LeaveGroupRequest(group_id="cg", members=leaving), 5


def many_groups_described(bench: GrowthBench) -> Made:
    bench.committed()
    return DescribeGroupsRequest(groups=[bench.name("g", number) for number in range(bench.n)]), 6


def many_members_described(bench: GrowthBench) -> Made:
    bench.stable()
    return DescribeGroupsRequest(groups=["jg"]), 6


def many_groups_listed(bench: GrowthBench) -> Made:
    bench.committed()
    bench.members()
    return ListGroupsRequest(), 5


def many_states_listed(bench: GrowthBench) -> Made:
    bench.committed()
    return ListGroupsRequest(states_filter=[bench.name("s", number) for number in range(bench.n)]), 5


def many_consumers_described(bench: GrowthBench) -> Made:
    bench.members()
    return ConsumerGroupDescribeRequest(
        group_ids=["cg", *(bench.name("g", number) for number in range(bench.n))]
    ), 1


def many_topics_of_a_consumer_described(bench: GrowthBench) -> Made:
    bench.send(bench.beat(0, bench.names), 1)
    return ConsumerGroupDescribeRequest(group_ids=["cg"]), 1


def heartbeat_of_a_streams_member_among_many(bench: GrowthBench) -> Made:
    last = bench.streams_members()
    unchanged = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "process_id"))
    fields = {"member_epoch": last.member_epoch, "rebalance_timeout_ms": -1, **unchanged}
    return bench.streams_beat(bench.n - 1, None, **fields), 0


def streams_member_joins_many(bench: GrowthBench) -> Made:
    bench.streams_members()
    return bench.streams_beat(bench.n, WIDE_PARTS), 0


def streams_member_leaves_many(bench: GrowthBench) -> Made:
    bench.streams_members()
    return bench.streams_beat(0, None, member_epoch=-1), 0


def streams_member_gives_up_many_tasks(bench: GrowthBench) -> Made:
    """Half of them, as another has joined."""
    wide = TopicImage(UUID(int=9), "wider", 8 * bench.n)
    bench.shard.set_topics(TopicsImage([WIDE, wide, *bench.topics]), now=bench.shard.now)
    parts = [Subtopology(subtopology_id="0", source_topics=["wider"])]
    (answer,) = bench.send(bench.streams_beat(0, parts), 0)
    bench.send(bench.streams_beat(1, parts), 0)
    owned = [StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=list(range(8 * bench.n)))]
    return bench.streams_beat(0, None, member_epoch=answer.member_epoch, active_tasks=owned), 0


def topology_of_many_parts(bench: GrowthBench) -> Made:
    """Each with a topic, and with an internal topic that is missing."""
    parts = [
        Subtopology(
            subtopology_id=bench.name("s", number),
            source_topics=[topic.name],
            state_changelog_topics=[TopicInfo(name=bench.name("c", number))],
        )
        for number, topic in enumerate(bench.topics)
    ]
    return bench.streams_beat(0, parts), 0


def topology_of_one_topic_many_times(bench: GrowthBench) -> Made:
    return bench.streams_beat(0, [Subtopology(subtopology_id="0", source_topics=["wide"] * bench.n)]), 0


def many_streams_groups_described(bench: GrowthBench) -> Made:
    """One with n members, and n of another kind."""
    bench.streams_members()
    bench.committed()
    names = ["sg", *(bench.name("g", number) for number in range(bench.n))]
    return StreamsGroupDescribeRequest(group_ids=names), 0


def heartbeat_of_a_share_member_among_many(bench: GrowthBench) -> Made:
    last = bench.share_members()
    return bench.share_beat(bench.n - 1, None, member_epoch=last.member_epoch), 1


def share_member_joins_many(bench: GrowthBench) -> Made:
    bench.share_members()
    return bench.share_beat(bench.n, ["wide"]), 1


def share_member_joins_many_of_other_topics(bench: GrowthBench) -> Made:
    bench.share_members(lambda number: [bench.topics[number].name])
    return bench.share_beat(bench.n, ["wide"]), 1


def share_member_subscribes_to_many_topics(bench: GrowthBench) -> Made:
    return bench.share_beat(0, bench.names), 1


def share_member_subscribes_to_many_topics_that_have_states(bench: GrowthBench) -> Made:
    bench.share_positions()
    return bench.share_beat(0, bench.names), 1


def share_member_subscribes_to_one_topic_many_times(bench: GrowthBench) -> Made:
    return bench.share_beat(0, ["wide"] * bench.n), 1


def share_member_gives_up_many_topics(bench: GrowthBench) -> Made:
    bench.share_positions()
    (answer,) = bench.send(bench.share_beat(0, bench.names), 1)
    return bench.share_beat(0, ["wide"], member_epoch=answer.member_epoch), 1


def share_member_leaves_many(bench: GrowthBench) -> Made:
    bench.share_members()
    return bench.share_beat(0, None, member_epoch=-1), 1


def many_share_groups_described(bench: GrowthBench) -> Made:
    """One with n members, and n of another kind."""
    bench.share_members()
    bench.committed()
    names = ["shg", *(bench.name("g", number) for number in range(bench.n))]
    return ShareGroupDescribeRequest(group_ids=names), 1


def _altered(names: list[str], indexes: list[int]) -> Made:
    parts = [
        AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=1) for index in indexes
    ]
    topics = [AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=parts) for name in names]
    return AlterShareGroupOffsetsRequest(group_id="shg", topics=topics), 0


def many_share_offsets_altered(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _altered(bench.names, [0])


def share_offsets_of_one_topic_altered_many_times(bench: GrowthBench) -> Made:
    return _altered(["wide"] * bench.n, [0])


def share_offsets_of_many_partitions_altered(bench: GrowthBench) -> Made:
    return _altered(["wide"], list(range(bench.n)))


def one_share_offset_altered_many_times(bench: GrowthBench) -> Made:
    return _altered(["wide"], [0] * bench.n)


def many_share_offsets_deleted(bench: GrowthBench) -> Made:
    bench.share_positions()
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in bench.names]
    return DeleteShareGroupOffsetsRequest(group_id="shg", topics=topics), 0


def share_offsets_of_one_topic_deleted_many_times(bench: GrowthBench) -> Made:
    bench.share_positions()
    topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=bench.names[0])] * bench.n
    return DeleteShareGroupOffsetsRequest(group_id="shg", topics=topics), 0


def _described(groups: list[str], names: list[str] | None, indexes: list[int]) -> Made:
    topics = None
    if names is not None:
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=indexes) for name in names
        ]
    asked = [DescribeShareGroupOffsetsRequestGroup(group_id=group_id, topics=topics) for group_id in groups]
    return DescribeShareGroupOffsetsRequest(groups=asked), 1


def all_share_offsets_described(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _described(["shg"], None, [])


def share_offsets_of_many_topics_described(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _described(["shg"], bench.names, [0, 1])


def share_offsets_of_one_topic_described_many_times(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _described(["shg"], bench.names[:1] * bench.n, [0])


def one_share_offset_described_many_times(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _described(["shg"], bench.names[:1], [0] * bench.n)


def share_offsets_of_many_groups_described(bench: GrowthBench) -> Made:
    bench.committed()
    return _described([bench.name("g", number) for number in range(bench.n)], ["wide"], [0])


def share_offsets_of_one_group_described_many_times(bench: GrowthBench) -> Made:
    bench.share_positions()
    return _described(["shg"] * bench.n, bench.names[:1], [0])


def many_topics_committed(bench: GrowthBench) -> Made:
    bench.committed()
    return bench.commit("g", bench.names), 8


def many_partitions_committed(bench: GrowthBench) -> Made:
    bench.committed()
    return bench.commit("g", ["wide"], bench.n), 8


def one_topic_committed_many_times(bench: GrowthBench) -> Made:
    bench.committed()
    return bench.commit("g", ["wide"] * bench.n), 8


def many_topics_committed_in_a_transaction(bench: GrowthBench) -> Made:
    for producer_id in range(bench.n):
        bench.send(bench.commit_in_transaction(producer_id, ["wide"]), 5)
    return bench.commit_in_transaction(bench.n, bench.names), 5


def one_topic_committed_in_a_transaction_many_times(bench: GrowthBench) -> Made:
    return bench.commit_in_transaction(7, ["wide"] * bench.n), 5


def all_offsets_fetched(bench: GrowthBench) -> Made:
    bench.committed()
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 9


def many_groups_fetched(bench: GrowthBench) -> Made:
    bench.committed()
    topics = [OffsetFetchRequestTopics(name="wide", partition_indexes=[0])]
    groups = [
        OffsetFetchRequestGroup(group_id=bench.name("g", number), topics=topics) for number in range(bench.n)
    ]
    return OffsetFetchRequest(groups=groups), 9


def one_group_fetched_many_times(bench: GrowthBench) -> Made:
    bench.committed()
    topics = [OffsetFetchRequestTopics(name="wide", partition_indexes=[0])]
    return OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)] * bench.n, require_stable=True
    ), 9


def many_offsets_deleted(bench: GrowthBench) -> Made:
    bench.committed()
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name=name, partitions=partitions) for name in bench.names]
    return OffsetDeleteRequest(group_id="g", topics=topics), 0


def many_groups_deleted(bench: GrowthBench) -> Made:
    bench.committed()
    return DeleteGroupsRequest(groups_names=[bench.name("g", number) for number in range(bench.n)]), 2


def a_group_of_many_offsets_deleted(bench: GrowthBench) -> Made:
    bench.committed()
    return DeleteGroupsRequest(groups_names=["g"] * bench.n), 2


CASES: dict[type[Message], list[Case]] = {
    HeartbeatRequest: [heartbeat_of_many_members],
    ConsumerGroupHeartbeatRequest: [
        heartbeat_of_a_consumer_among_many,
        consumer_joins_many,
        consumer_joins_many_of_other_topics,
        consumer_joins_many_with_patterns,
        consumer_subscribes_to_many_topics,
        consumer_subscribes_to_one_topic_many_times,
        consumer_gives_up_many_topics,
        consumer_has_many_partitions_and_another_joins,
        consumer_leaves_many,
    ],
    JoinGroupRequest: [
        member_joins_many,
        member_joins_many_that_wait,
        member_comes_back_to_many,
        member_joins_with_many_protocols,
        member_joins_with_one_protocol_many_times,
        member_joins_with_large_metadata,
        classic_member_joins_many_consumers,
    ],
    SyncGroupRequest: [leader_brings_many_assignments, member_waits_for_its_assignment_among_many],
    LeaveGroupRequest: [all_members_leave, one_member_leaves_many_times, all_consumers_leave],
    DescribeGroupsRequest: [many_groups_described, many_members_described],
    ListGroupsRequest: [many_groups_listed, many_states_listed],
    ConsumerGroupDescribeRequest: [many_consumers_described, many_topics_of_a_consumer_described],
    StreamsGroupHeartbeatRequest: [
        heartbeat_of_a_streams_member_among_many,
        streams_member_joins_many,
        streams_member_leaves_many,
        streams_member_gives_up_many_tasks,
        topology_of_many_parts,
        topology_of_one_topic_many_times,
    ],
    StreamsGroupDescribeRequest: [many_streams_groups_described],
    ShareGroupHeartbeatRequest: [
        heartbeat_of_a_share_member_among_many,
        share_member_joins_many,
        share_member_joins_many_of_other_topics,
        share_member_subscribes_to_many_topics,
        share_member_subscribes_to_many_topics_that_have_states,
        share_member_subscribes_to_one_topic_many_times,
        share_member_gives_up_many_topics,
        share_member_leaves_many,
    ],
    ShareGroupDescribeRequest: [many_share_groups_described],
    AlterShareGroupOffsetsRequest: [
        many_share_offsets_altered,
        share_offsets_of_one_topic_altered_many_times,
        share_offsets_of_many_partitions_altered,
        one_share_offset_altered_many_times,
    ],
    DeleteShareGroupOffsetsRequest: [
        many_share_offsets_deleted,
        share_offsets_of_one_topic_deleted_many_times,
    ],
    DescribeShareGroupOffsetsRequest: [
        all_share_offsets_described,
        share_offsets_of_many_topics_described,
        share_offsets_of_one_topic_described_many_times,
        one_share_offset_described_many_times,
        share_offsets_of_many_groups_described,
        share_offsets_of_one_group_described_many_times,
    ],
    OffsetCommitRequest: [many_topics_committed, many_partitions_committed, one_topic_committed_many_times],
    TxnOffsetCommitRequest: [
        many_topics_committed_in_a_transaction,
        one_topic_committed_in_a_transaction_many_times,
    ],
    OffsetFetchRequest: [all_offsets_fetched, many_groups_fetched, one_group_fetched_many_times],
    OffsetDeleteRequest: [many_offsets_deleted],
    DeleteGroupsRequest: [many_groups_deleted, a_group_of_many_offsets_deleted],
}


MANY_TOPICS = 8
"""So many times n topics are needed before work that grows with their square is seen beside the rest."""

CASES_OF_TOPICS = {
    consumer_subscribes_to_many_topics, consumer_gives_up_many_topics, many_topics_of_a_consumer_described,
}  # fmt: skip


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    with counting() as counter:
        yield counter


@pytest.mark.parametrize(
    "case", [case for cases in CASES.values() for case in cases], ids=lambda case: case.__name__
)
def test_what_a_request_costs_grows_with_n(case: Case, counter: Counter) -> None:
    counts = []
    for size in (3, *SIZES):  # the first for what is made at first use
        bench = GrowthBench(size * MANY_TOPICS if case in CASES_OF_TOPICS else size)
        request, version = case(bench)
        sent = type(request).decode(request.encode(version=version), version=version)
        before = counter.count
        bench.send(sent, version)
        counts.append(counter.count - before)
    assert_increments(counts[1:], noise=100)


def test_every_request_is_here() -> None:
    assert CASES.keys() == REQUESTS.keys()
    assert all(CASES.values())


# --- all members send heartbeats ---


def _steady_share_members(n: int) -> tuple[GrowthBench, list[Made]]:
    bench = GrowthBench(n)
    bench.share_members()
    group: Any = bench.shard.groups["shg"]
    epoch = group.epoch
    beats: list[Made] = [(bench.share_beat(number, None, member_epoch=epoch), 1) for number in range(n)]
    for request, version in beats:
        bench.send(request, version)
    return bench, beats


def _steady_streams_members(n: int) -> tuple[GrowthBench, list[Made]]:
    bench = GrowthBench(n)
    bench.streams_members()
    group: Any = bench.shard.groups["sg"]
    unchanged = dict.fromkeys(("active_tasks", "standby_tasks", "warmup_tasks", "process_id"))
    for _ in range(3):  # they give up what they had as the first, and take what they have now
        for number in range(n):
            member = group.members[bench.name("m", number)]
            tasks = [
                StreamsGroupHeartbeatRequestTaskIds(subtopology_id=part_id, partitions=sorted(parts))
                for part_id, parts in member.tasks.active.items()
            ]
            fields = {"member_epoch": member.epoch, "active_tasks": tasks, "rebalance_timeout_ms": -1}
            bench.send(bench.streams_beat(number, None, **fields), 0)
            group = bench.shard.groups["sg"]
    epoch = group.epoch
    fields = {"member_epoch": epoch, "rebalance_timeout_ms": -1, **unchanged}
    return bench, [(bench.streams_beat(number, None, **fields), 0) for number in range(n)]


@pytest.mark.parametrize("make", [_steady_share_members, _steady_streams_members])
def test_a_round_of_heartbeats_is_linear_in_the_members(
    make: Callable[[int], tuple[GrowthBench, list[Made]]],
) -> None:
    def beat(case: tuple[GrowthBench, list[Made]]) -> None:
        bench, beats = case
        for request, version in beats:
            (answer,) = bench.send(request, version)
            assert answer.error_code == 0

    assert_linear(make, beat, 12)


def test_members_that_are_silent_at_once_leave_in_linear_work() -> None:
    """The end of each session, with its records, costs the same whatever the number of members is."""

    def silent(case: tuple[GrowthBench, list[Made]]) -> None:
        bench, _ = case
        bench.advance(100_000)
        group: Any = bench.shard.groups["shg"]
        assert group.is_empty

    assert_linear(_steady_share_members, silent, 12)
