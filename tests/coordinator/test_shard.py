"""What a shard promises by itself: effects, durability, failed appends, load and unload."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest

from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    Effect,
    GroupApis,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
    TransactionCompleted,
)
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.coordinator.hash_tables import HashSet
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ShareFetchRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics

ORDERS = TopicImage(UUID(int=7), "orders", 3)


class Bench:
    """A shard with a log that does what the test says."""

    def __init__(self, config: CoordinatorConfig | None = None) -> None:
        self.now = 0
        self.shard = Shard(config=config)
        self.apis = GroupApis(self.shard, TOPIC_GUARDS)
        self.shard.set_topics(TopicsImage([ORDERS]), now=self.now)
        self.shard.load([], now=self.now)
        self.answers: dict[int, Any] = {}
        self.ended: dict[int, int] = {}
        self.appends: list[Append] = []
        self.log: list[LogRecord] = []
        self._ids = itertools.count()

    def send(self, request: Message, version: int) -> int:
        context = RequestContext(
            client_id="till", client_host="/127.0.0.1", new_id=lambda: f"id-{next(self._ids)}"
        )
        ticket = self.apis.handle(request, version=version, now=self.now, context=context)
        self.take()
        return ticket

    def take(self) -> None:
        for effect in self.apis.effects():
            self.take_one(effect)

    def take_one(self, effect: Effect) -> None:
        if isinstance(effect, Answer):
            self.answers[effect.ticket] = effect.response
        elif isinstance(effect, Append):
            self.appends.append(effect)
        elif isinstance(effect, TransactionCompleted):
            self.ended[effect.ticket] = effect.error_code

    def confirm(self) -> None:
        while self.appends:
            append = self.appends.pop(0)
            self.log += append.records
            self.shard.appended(append.number, now=self.now)
            self.take()

    def ask(self, request: Message, version: int) -> Any:
        ticket = self.send(request, version)
        self.confirm()
        return self.answers[ticket]

    def advance(self, now: int) -> None:
        self.now = now
        self.shard.advance(now)
        for effect in self.shard.effects():
            self.take_one(effect)
            self.confirm()


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="payments", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id=member_id,
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )  # fmt: skip


def commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(group_id="simple", topics=[topic])


def committed(bench: Bench, *, stable: bool = False) -> dict[int, int]:
    group = OffsetFetchRequestGroup(group_id="simple", topics=None)
    answer = bench.ask(OffsetFetchRequest(groups=[group], require_stable=stable), 8).groups[0]
    return {
        partition.partition_index: partition.committed_offset
        for topic in answer.topics
        for partition in topic.partitions
    }


def test_an_answer_waits_until_its_records_are_durable() -> None:
    bench = Bench()
    ticket = bench.send(commit(5), 8)
    assert ticket not in bench.answers
    assert committed_now(bench) == {}
    bench.confirm()
    assert bench.answers[ticket].topics[0].partitions[0].error_code == 0
    assert committed(bench) == {1: 5}
    tickets = [bench.send(commit(offset), 8) for offset in (6, 7, 8)]
    for number, append in enumerate(list(bench.appends)):
        assert [ticket in bench.answers for ticket in tickets] == [one < number for one in range(3)]
        bench.shard.appended(append.number, now=bench.now)
        bench.take()
    assert all(ticket in bench.answers for ticket in tickets)


def committed_now(bench: Bench) -> dict[int, int]:
    """What is read while an append is on its way."""
    group = OffsetFetchRequestGroup(group_id="simple", topics=None)
    ticket = bench.send(OffsetFetchRequest(groups=[group]), 8)
    topics = bench.answers[ticket].groups[0].topics
    return {
        partition.partition_index: partition.committed_offset
        for topic in topics
        for partition in topic.partitions
    }


def test_a_failed_append_takes_back_what_was_built_on_it() -> None:
    bench = Bench()
    bench.ask(commit(1), 8)
    first, second = bench.send(commit(2), 8), bench.send(commit(3), 8)
    bench.shard.failed(bench.appends[0].number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=bench.now)
    bench.take()
    bench.appends.clear()
    codes = [bench.answers[ticket].topics[0].partitions[0].error_code for ticket in (first, second)]
    assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert committed(bench) == committed(bench, stable=True) == {1: 1}
    assert bench.ask(commit(4), 8).topics[0].partitions[0].error_code == 0
    assert committed(bench) == {1: 4}


def stable_group(bench: Bench) -> str:
    """A group of one member, with its assignment."""
    ticket = bench.send(join(), 3)
    bench.confirm()
    bench.advance(3_000)
    member_id: str = bench.answers[ticket].member_id
    sync = SyncGroupRequest(group_id="payments", generation_id=1, member_id=member_id)
    assert bench.ask(sync, 3).error_code == 0
    return member_id


def beat(bench: Bench, member_id: str) -> int:
    request = HeartbeatRequest(group_id="payments", generation_id=1, member_id=member_id)
    error_code: int = bench.ask(request, 3).error_code
    return error_code


@pytest.mark.parametrize("failure", ["fails", "is too late"])
def test_a_static_member_may_be_gone_when_its_replacement_fails(failure: str) -> None:
    bench = Bench()

    def joins() -> JoinGroupRequest:
        request = join()
        request.group_instance_id = "till"
        return request

    ticket = bench.send(joins(), 9)
    bench.confirm()
    bench.advance(3_000)
    member_id = bench.answers[ticket].member_id
    sync = SyncGroupRequest(
        group_id="payments", generation_id=1, member_id=member_id, group_instance_id="till"
    )
    sync.protocol_type, sync.protocol_name = "consumer", "range"
    assert bench.ask(sync, 5).error_code == 0
    ticket = bench.send(joins(), 9)
    leaving = LeaveGroupRequest(
        group_id="payments", members=[MemberIdentity(member_id="", group_instance_id="till")]
    )
    bench.send(leaving, 5)
    assert not bench.shard.groups["payments"].members
    if failure == "fails":
        bench.shard.failed(bench.appends[0].number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=bench.now)
    else:
        bench.now = 9_000
        bench.shard.advance(9_000)
    bench.take()
    assert bench.answers[ticket].error_code in (
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    )


def test_topics_have_the_ids_of_the_time_of_the_answer() -> None:
    bench = Bench()
    bench.ask(commit(5), 8)
    bench.send(commit(6), 8)
    group = OffsetFetchRequestGroup(group_id="simple", topics=None)
    ticket = bench.send(OffsetFetchRequest(groups=[group], require_stable=True), 10)
    bench.shard.set_topics(TopicsImage([]), now=bench.now)
    bench.take()
    bench.confirm()
    assert bench.answers[ticket].groups[0].topics == []


def test_a_refused_group_keeps_its_error_where_others_wait_too_long() -> None:
    bench = Bench()
    joining = ConsumerGroupHeartbeatRequest(
        group_id="new", member_id="m", rebalance_timeout_ms=9, subscribed_topic_names=["orders"]
    )
    joining.topic_partitions = []
    assert bench.ask(joining, 1).error_code == 0
    bench.send(commit(6), 8)
    waiting = OffsetFetchRequestGroup(group_id="simple", topics=None)
    refused = OffsetFetchRequestGroup(group_id="new", member_id="nobody", member_epoch=1, topics=None)
    ticket = bench.send(OffsetFetchRequest(groups=[waiting, refused], require_stable=True), 9)
    bench.shard.advance(6_000)
    bench.take()
    errors = [group.error_code for group in bench.answers[ticket].groups]
    assert errors == [ErrorCode.NOT_COORDINATOR, ErrorCode.UNKNOWN_MEMBER_ID]


def test_time_limits_of_writes_leave_nothing_behind() -> None:
    bench = Bench()
    ticket = bench.send(commit(5), 8)
    for second in range(1, 9 * 60):  # before the first look for what has expired
        bench.shard.advance(second * 1_000)
    bench.take()
    assert bench.answers[ticket].topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert len(bench.shard._writes._waiting) == 1


def test_another_shard_goes_on_from_the_log() -> None:
    bench = Bench()
    member_id = stable_group(bench)
    for offset in (7, 9):  # the last one counts, here and there
        bench.ask(commit(offset), 8)
        assert committed(bench) == {1: offset}
    last = commit(9)
    (partition,) = last.topics[0].partitions
    partition.committed_leader_epoch, partition.committed_metadata = 4, "from the application"
    bench.ask(last, 8)
    other_bench = Bench()
    other_bench.shard.load(bench.log, now=other_bench.now)
    assert beat(other_bench, member_id) == 0
    assert committed(other_bench) == {1: 9}
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])]
    group = OffsetFetchRequestGroup(group_id="simple", topics=topics)
    (answer,) = other_bench.ask(OffsetFetchRequest(groups=[group]), 8).groups
    assert [
        (one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code)
        for one in answer.topics[0].partitions
    ] == [(0, -1, -1, "", 0), (1, 9, 4, "from the application", 0)]


def test_a_silent_member_is_out_and_an_old_timer_never_fires_after_a_reload() -> None:
    bench = Bench()
    member_id = stable_group(bench)
    bench.advance(12_000)
    log = list(bench.log)
    bench.shard.unload(now=bench.now)
    assert beat(bench, member_id) == ErrorCode.NOT_COORDINATOR
    bench.shard.load(log, now=bench.now)
    bench.advance(13_500)
    assert beat(bench, member_id) == 0
    bench.advance(23_499)
    assert bench.shard.groups["payments"].members
    bench.advance(23_500)
    assert not bench.shard.groups["payments"].members


def test_loading_is_told_to_all_but_heartbeats() -> None:
    shard = Shard()
    shard.begin_loading()
    context = RequestContext(client_id="till", client_host="/127.0.0.1", new_id=lambda: "id")
    shard.handle(
        HeartbeatRequest(group_id="payments", generation_id=1, member_id="m"),
        version=3,
        now=0,
        context=context,
    )
    shard.handle(join(), version=3, now=0, context=context)
    codes = [effect.response.error_code for effect in shard.effects() if isinstance(effect, Answer)]  # type: ignore[attr-defined]
    assert codes == [0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_request_that_is_not_a_coordinators_is_the_callers_mistake() -> None:
    bench = Bench()
    with pytest.raises(TypeError, match="expected a request to a group coordinator, got"):
        bench.send(ShareFetchRequest(), 1)


def test_leaders_are_elected_in_javas_order_of_strings() -> None:
    """What Java 17 says of a HashMap with these keys: 16 of them, so that its table grew once."""
    keys = [*(f"till-{number}" for number in range(14)), "ü", "😀"]
    expected = ["8", "9", "4", "5", "6", "7", "0", "10", "1", "2", "3", "😀", "13", "12", "11", "ü"]
    assert [key.removeprefix("till-") for key in HashSet.of(keys)] == expected
