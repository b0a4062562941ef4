"""What consumer groups promise by themselves; that they equal Kafka's is for the histories."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    ConsumerGroupConfig,
    CoordinatorConfig,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.assignors import GroupSpec
from coordwire.coordinator.model.assignment import Target
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.testing import strategies
from tests.growth import work

ORDERS = UUID(int=7)
IMAGE = TopicsImage([TopicImage(ORDERS, "orders", 4)])
NO_WAIT = CoordinatorConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=0))


class Bench:
    """A shard whose appends are durable at once, unless the test says otherwise."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0
        self.shard = Shard(**{"config": NO_WAIT, **settings})
        self.shard.set_topics(IMAGE, now=self.now)
        self.shard.load([], now=self.now)
        self.answers: dict[int, Any] = {}
        self.log: list[LogRecord] = []
        self.failure = 0
        self._ids = itertools.count()

    def take(self) -> None:
        for effect in self.shard.effects():
            if isinstance(effect, Answer):
                self.answers[effect.ticket] = effect.response
                continue
            assert isinstance(effect, Append)
            if self.failure:
                self.shard.failed(effect.number, self.failure, now=self.now)
            else:
                self.log += effect.records
                self.shard.appended(effect.number, now=self.now)

    def ask(self, request: Message, version: int) -> Any:
        context = RequestContext(
            client_id="till", client_host="/127.0.0.1", new_id=lambda: str(UUID(int=next(self._ids)))
        )
        ticket = self.shard.handle(request, version=version, now=self.now, context=context)
        self.take()
        return self.answers.get(ticket)

    def group(self, group_id: str = "g") -> ConsumerGroupModel:
        group = self.shard.groups[group_id]
        assert isinstance(group, ConsumerGroupModel)
        return group

    def join(self, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, rebalance_timeout_ms=10_000, topic_partitions=[],
            subscribed_topic_names=["orders"],
        )  # fmt: skip
        for name, value in fields.items():
            setattr(request, name, value)
        response: ConsumerGroupHeartbeatResponse = self.ask(request, 1)
        return response

    def beat(
        self, member_id: str, epoch: int, owned: list[int] | None = None, group_id: str = "g"
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
        if owned is not None:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=ORDERS, partitions=owned)
            ]
        response: ConsumerGroupHeartbeatResponse = self.ask(request, 1)
        return response

    def advance(self, now: int) -> None:
        self.now = now
        self.shard.advance(now)
        self.take()


def given_to(response: ConsumerGroupHeartbeatResponse) -> list[int] | None:
    if response.assignment is None:
        return None
    return [partition for topic in response.assignment.topic_partitions for partition in topic.partitions]


def test_a_partition_moves_when_its_owner_has_given_it_up() -> None:
    bench = Bench()
    assert given_to(bench.join("a")) == [0, 1, 2, 3]
    second = bench.join("b")
    assert given_to(second) == []
    answer = bench.beat("a", 2, [0, 1, 2, 3])
    assert given_to(answer) == [0, 1]
    assert given_to(bench.beat("b", second.member_epoch, [])) is None
    assert bench.beat("a", 2).member_epoch == 2  # without a list it proves nothing
    assert bench.beat("a", 2, [0, 1]).member_epoch == 3
    assert given_to(bench.beat("b", second.member_epoch, [])) == [2, 3]


def test_a_lost_answer_does_no_harm() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    first = bench.beat("a", 2, [0, 1, 2, 3])
    repeated = bench.beat("a", 2, [0, 1, 2, 3])
    assert (repeated.error_code, repeated.member_epoch) == (0, first.member_epoch)
    later = bench.beat("a", 2, [0, 1])
    assert later.member_epoch == 3
    assert bench.beat("a", 2, [0, 1]).member_epoch == 3
    assert bench.beat("a", 2, [0, 1, 2]).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_failed_append_leaves_no_trace() -> None:
    bench = Bench()
    bench.join("a")
    before = bench.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    bench.failure = int(ErrorCode.NOT_ENOUGH_REPLICAS)
    refused = [
        bench.join("b"),
        bench.join("a", subscribed_topic_names=["orders", "more"]),
        bench.join("a", subscribed_topic_regex="o.*"),
        bench.beat("a", -1),
    ]
    assert {response.error_code for response in refused} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    bench.failure = 0
    assert bench.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1) == before
    assert bench.group().owners.items() == [((ORDERS, partition), 2) for partition in range(4)]
    assert bench.beat("a", 2).error_code == 0


def test_a_silent_member_is_out_as_soon_as_the_log_takes_it() -> None:
    bench = Bench()
    bench.join("a")
    bench.failure = int(ErrorCode.NOT_ENOUGH_REPLICAS)
    bench.advance(45_000)
    assert list(bench.group().members) == ["a"]
    bench.failure = 0
    bench.advance(45_500)
    assert list(bench.group().members) == []


def test_another_shard_goes_on_from_the_log_compacted_or_not() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.join("c", subscribed_topic_regex="o.*")
    bench.beat("a", 2, [0, 1])
    bench.beat("b", -1)
    newest = {repr(record.key): record for record in bench.log}
    for log in (bench.log, list(newest.values())):
        other = Bench()
        other.shard.load(log, now=other.now)
        request = ConsumerGroupDescribeRequest(group_ids=["g"])
        expected, actual = (other_bench.ask(request, 1).groups[0] for other_bench in (bench, other))
        for group in (expected, actual):
            group.members.sort(key=lambda member: member.member_id)
        assert actual == expected
        assert sorted(other.group().owners.items()) == sorted(bench.group().owners.items())


def test_a_log_that_contradicts_itself_is_refused() -> None:
    bench = Bench()
    bench.join("a")
    end = [record for record in bench.log if record.type == 3][-1]
    end.value = end.version = None
    other_bench = Bench()
    with pytest.raises(Malformed, match="contradicts those before it"):
        other_bench.shard.load([*bench.log, end], now=other_bench.now)
    assert other_bench.beat("a", 2).error_code == ErrorCode.NOT_COORDINATOR


def test_a_test_says_who_gets_what() -> None:
    targets: dict[str, Target] = {"a": {ORDERS: (3,)}, "b": {ORDERS: (0, 1, 2)}}
    config = CoordinatorConfig(
        consumer_assignors=("fixed",), consumer=ConsumerGroupConfig(assignment_interval_ms=0)
    )

    def fixed(spec: GroupSpec) -> dict[str, Target]:
        return {member_id: targets[member_id] for member_id in spec.members}

    bench = Bench(config=config, assignors={"consumer": {"fixed": fixed}})
    assert given_to(bench.join("a")) == [3]
    assert given_to(bench.join("b")) == [0, 1, 2]


def test_no_member_can_stop_anothers_timer() -> None:
    """A client chooses its ids; two pairs of group and member may look the same once they are joined."""
    bench = Bench()
    bench.join("b-c", group_id="a")
    bench.advance(40_000)
    bench.join("c", group_id="a-b")
    bench.beat("c", -1, group_id="a-b")
    bench.advance(45_000)
    assert list(bench.group("a").members) == []


def test_a_pattern_is_resolved_after_the_heartbeat_and_again_for_new_topics() -> None:
    bench = Bench()
    bench.join("a", subscribed_topic_names=None, subscribed_topic_regex="ord.*|more")
    assert bench.group().resolved.items()[0][1].topics == ("orders",)
    assert given_to(bench.beat("a", 1, [])) == [0, 1, 2, 3]
    bench.shard.set_topics(
        TopicsImage([TopicImage(ORDERS, "orders", 4), TopicImage(UUID(int=8), "more", 1)]), now=bench.now
    )
    bench.advance(11_000)
    bench.beat("a", 2)
    assert bench.group().resolved.items()[0][1].topics == ("more", "orders")


def slow_pattern(count: int) -> str:
    """Legal, and slow for every name: the whole of it is tried at each character."""
    return f"(?:[^{''.join(chr(0x4E00 + number) for number in range(count))}]?){{900}}"


def test_patterns_can_be_resolved_in_turns() -> None:
    """As Kafka's executor does: only the end of a resolution is an operation."""
    topics = [TopicImage(UUID(int=100 + number), f"orders-{number:04}", 1) for number in range(300)]
    bench = Bench(resolves_in_turns=True)
    bench.shard.set_topics(TopicsImage(topics), now=bench.now)
    bench.join("a", subscribed_topic_names=None, subscribed_topic_regex=slow_pattern(500))
    assert bench.shard.has_work
    assert bench.group().resolved.items() == []
    written = len(bench.log)
    turns = 0
    while bench.shard.has_work:
        turns += 1
        if turns < 5:  # a turn is bounded, but for one character of a name
            assert work(lambda: bench.shard.work(100, now=bench.now)) < 100_000
        else:
            bench.shard.work(100, now=bench.now)
        if bench.shard.has_work:
            bench.take()
            assert len(bench.log) == written  # nothing is written before the end
            if turns == 10:
                bench.shard.set_topics(
                    TopicsImage(topics[:200]), now=bench.now
                )  # what it reads is what was there
                assert bench.join("b").error_code == 0  # another request is handled between
                assert bench.beat("a", 1, []).error_code == 0  # and does not begin it again
                written = len(bench.log)
    bench.take()
    assert turns > 20
    ((pattern, resolved),) = bench.group().resolved.items()
    assert pattern == slow_pattern(500)
    assert resolved.topics == tuple(topic.name for topic in topics)


def test_groups_take_turns() -> None:
    bench = Bench(resolves_in_turns=True)
    bench.shard.set_topics(
        TopicsImage([TopicImage(UUID(int=number + 100), f"t{number}", 1) for number in range(100)]),
        now=bench.now,
    )
    for name, pattern in (("slow", slow_pattern(500)), ("fast", "t1.*")):
        bench.join("a", group_id=name, subscribed_topic_names=None, subscribed_topic_regex=pattern)
    for _ in range(4):
        bench.shard.work(2_000, now=bench.now)
        bench.take()
    assert len(bench.group("fast").resolved.items()[0][1].topics) == 11
    assert bench.shard.has_work
    assert bench.group("slow").resolved.items() == []


def test_a_shard_that_gives_up_its_partition_resolves_nothing_more() -> None:
    bench = Bench(resolves_in_turns=True)
    bench.join("a", subscribed_topic_names=None, subscribed_topic_regex="o.*")
    bench.shard.unload(now=bench.now)
    assert not bench.shard.has_work
    bench.shard.work(1_000, now=bench.now)
    bench.take()
    other_bench = Bench(resolves_in_turns=True)
    other_bench.join("a", subscribed_topic_names=None, subscribed_topic_regex="o.*")
    other_bench.beat("a", -1)  # the group is empty before the resolution ends
    while other_bench.shard.has_work:
        other_bench.shard.work(1_000, now=other_bench.now)
    other_bench.take()
    assert other_bench.group().resolved.items() == []


@pytest.mark.parametrize("in_turns", [False, True])
def test_turns_lead_to_what_one_call_leads_to(in_turns: bool) -> None:
    logs = []
    for resolves_in_turns in (False, in_turns):
        bench = Bench(resolves_in_turns=resolves_in_turns)
        for member, pattern in (("a", "ord.*"), ("b", "[a-z]+"), ("c", "ord.*")):
            bench.join(member, subscribed_topic_names=None, subscribed_topic_regex=pattern)
            while bench.shard.has_work:
                bench.shard.work(1, now=bench.now)
            bench.take()
            bench.advance(bench.shard._state.now + 11_000)
        logs.append(bench.log)
    assert logs[0] == logs[1]


def test_a_pattern_of_one_large_set_costs_one_heartbeat_little() -> None:
    """A pattern of 1.5 KB, whose set is repeated 900 times."""
    counts = []
    for count in (250, 500, 1_000):
        bench = Bench()
        counts.append(
            work(
                lambda bench=bench, count=count: bench.join(  # type: ignore[misc]
                    "a", subscribed_topic_names=None, subscribed_topic_regex=slow_pattern(count)
                )
            )
        )
    assert counts[2] < 2 * counts[0]


REQUESTS: dict[type[Message], int] = {
    ConsumerGroupHeartbeatRequest: 1,
    ConsumerGroupDescribeRequest: 1,
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_a_client_sends_is_answered(data: st.DataObject) -> None:
    bench = Bench()
    bench.join("a", instance_id="till-1")
    for cls in data.draw(st.lists(st.sampled_from(list(REQUESTS)), min_size=1, max_size=5)):
        version = REQUESTS[cls]
        request: Any = data.draw(strategies.messages(cls, version=version))
        for name, values in (
            ("group_id", ["g", ""]),
            ("member_id", ["a", "b", ""]),
            ("member_epoch", [0, 1, 2, -1, -2]),
            ("group_instance_id", [None, "till-1"]),
            ("protocol_type", ["consumer"]),
        ):
            if hasattr(request, name) and data.draw(st.booleans()):
                setattr(request, name, data.draw(st.sampled_from(values)))
        bench.ask(request, version)
    bench.advance(10_000_000)
    assert bench.beat("nobody", 1).error_code in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.GROUP_ID_NOT_FOUND,
    )
