"""Arbitrary requests against a live shard: nothing raises, refusals change nothing, memory is bounded.

Strategy: requests of every type and version with random values, mixed with values that a shard knows (group,
member and topic names), so that they get past the first check. Rules: objects are counted, never bytes or
time; growth is compared for n, 2n and 4n requests.
"""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.codec import Field, Message
from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.refusal import error_text
from coordwire.coordinator.requests import REQUESTS
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteShareGroupOffsetsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.testing.message_strategies import messages, versions_of
from tests.filled_requests import KEEP, Path, filled

ORDERS = TopicImage(UUID(int=7), "orders", 3)
CONFIG = CoordinatorConfig(group_max_size=5, consumer_group_max_size=5, offset_metadata_max_size=16)
CLASSES = sorted(REQUESTS, key=lambda cls: cls.__name__)
SUBSCRIPTION = b"\0\0\0\0\0\1\0\6orders\xff\xff\xff\xff"

TEXTS = st.one_of(
    st.sampled_from(["", " ", "g", "c", "m", "orders", "till-0", "consumer", "range", "uniform", "o.*", "("]),
    st.text(max_size=8),
    st.just("y" * 32_767),
)
NUMBERS = st.sampled_from([-(2**31), -3, -2, -1, 0, 1, 2, 3, 6_000, 45_000, 2**31 - 1])
BYTES = st.sampled_from([b"", b"\0", SUBSCRIPTION, b"\0\1\x7f\xff\xff\xff", SUBSCRIPTION[:-2], b"\xff" * 9])


class Bench:
    """A shard whose appends are durable at once; each answer is written and read in its version."""

    def __init__(self) -> None:
        self.shard = Shard(config=CONFIG)
        self.shard.set_topics(TopicsImage([ORDERS]), now=self.shard.now)
        self.shard.load([], now=self.shard.now)
        self.now = 0
        self._ids = itertools.count(1)
        self._requests: dict[int, tuple[type[Message], int]] = {}

    def send(self, request: Any, version: int, client_id: str | None = "till") -> list[Any]:
        number = next(self._ids)
        context = RequestContext(
            client_id=client_id, client_host="/127.0.0.1", new_id=lambda: str(UUID(int=number, version=4))
        )
        # The ticket is known before an answer comes: tickets count from 1.
        self._requests[number] = type(request).response_class, version
        assert self.shard.handle(request, version=version, now=self.now, context=context) == number
        return self.drain()

    def drain(self) -> list[Any]:
        responses: list[Any] = []
        for effect in self.shard.effects():
            if isinstance(effect, Append):
                effect.encoded()
                self.shard.appended(effect.number, now=self.shard.now)
            elif isinstance(effect, Answer):
                cls, version = self._requests.pop(effect.ticket)
                assert type(effect.response) is cls
                data = effect.response.encode(version=version)
                assert cls.decode(data, version=version).encode(version=version) == data
                responses.append(effect.response)
        return responses

    def advance(self, by: int) -> list[Any]:
        self.now += by
        self.shard.advance(self.now)
        return self.drain()

    def sizes(self) -> dict[str, int]:
        """What a client could make grow."""
        state, writes = self.shard._state, self.shard._writes
        groups = state.groups.values()
        classic = [group for group in groups if isinstance(group, ClassicGroupModel)]
        return {
            "groups": len(groups),
            "members": sum(len(group.members) for group in groups),
            "pending": sum(len(group.pending_joins) for group in classic),
            "offsets": sum(len(offsets) for offsets in state.offsets.groups.values()),
            "timers": len(state.timers),
            "timers' places": len(state.timers.heap),
            "waiting": len(writes._waiting) + len(writes.pending) + len(writes._queue),
            "changes kept": sum(len(changed) for _, changed in state.snapshots._changed),
            "unanswered": len(self._requests),
        }


def started() -> Bench:
    """With a stable classic group "g" and a consumer group "c" of a member "m"."""
    bench = Bench()
    ((answer,)) = bench.send(join("g"), 4)
    bench.send(join("g", answer.member_id), 4)
    (answer,) = bench.advance(3_000)
    bench.send(SyncGroupRequest(group_id="g", generation_id=1, member_id=answer.member_id), 3)
    consumer = ConsumerGroupHeartbeatRequest(
        group_id="c", member_id="m", rebalance_timeout_ms=9_000, subscribed_topic_names=["orders"],
        topic_partitions=[],
    )  # fmt: skip
    assert bench.send(consumer, 1)[0].member_epoch == 2
    return bench


def join(group_id: str, member_id: str = "", session_timeout_ms: int = 30_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group_id, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=60_000,
        member_id=member_id, protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )  # fmt: skip


def _replaced(draw: st.DrawFn, value: Any) -> Any:
    """The same with what a coordinator knows, here and there, and lists that say the same twice."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return draw(NUMBERS) if -(2**31) <= value < 2**31 else value
    if isinstance(value, str):
        return draw(TEXTS)
    if isinstance(value, bytes):
        return draw(st.one_of(BYTES, st.just(value)))
    if isinstance(value, list):
        items = [_replaced(draw, item) for item in value[:3]]
        return items * draw(st.sampled_from([1, 1, 2]))
    if hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            if name != "tags":
                setattr(value, name, _replaced(draw, getattr(value, name)))
    return value


CLIENTS = st.sampled_from(["till", "till", "", None, "c" * 32_767])


@st.composite
def hostile_requests(draw: st.DrawFn) -> tuple[bytes, type[Message], int]:
    """As bytes, so that what a version can't say is not in it."""
    cls = draw(st.sampled_from(CLASSES))
    version = draw(versions_of(cls))
    request = draw(messages(cls, version=version, unknown_tags=False))
    if draw(st.booleans()):
        altered = _replaced(draw, cls.decode(request.encode(version=version), version=version))
        try:
            return altered.encode(version=version), cls, version
        except Exception:
            pass  # a number that the field has no room for
    return request.encode(version=version), cls, version


STEPS = st.lists(st.one_of(st.tuples(hostile_requests(), CLIENTS), st.integers(0, 700_000)), max_size=8)


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(STEPS)
def test_nothing_that_a_client_sends_raises(steps: list[Any]) -> None:
    bench = started()
    for step in steps:
        if isinstance(step, int):
            bench.advance(step)
            continue
        (data, cls, version), client_id = step
        bench.send(cls.decode(data, version=version), version, client_id)
        sizes = bench.sizes()
        assert sizes["waiting"] == 0
        assert sizes["members"] <= 5 * sizes["groups"]
        assert sizes["timers' places"] <= 2 * sizes["timers"] + 65


def hostile_round(bench: Bench, number: int) -> None:
    """Requests that are all refused, or answered without a trace; each round has other names."""
    name = f"x{number}"
    refused: list[tuple[Any, int]] = [
        (join("g", name), 5),
        (join("", name), 5),
        (join(name, session_timeout_ms=1), 5),
        (join(name, name), 5),
        (SyncGroupRequest(group_id="g", generation_id=1, member_id=name), 3),
        (SyncGroupRequest(group_id=name, generation_id=1, member_id=name), 3),
        (HeartbeatRequest(group_id=name, generation_id=1, member_id=name), 4),
        (HeartbeatRequest(group_id="g", generation_id=1, member_id=name), 4),
        (LeaveGroupRequest(group_id=name, member_id=name), 0),
        (DescribeGroupsRequest(groups=[name]), 5),
        (consumer("c", name, member_epoch=7), 1),
        (consumer(name, name, member_epoch=7), 1),
        (consumer(name, name, subscribed_topic_regex="(" * 9), 1),
        (consumer(name, name, server_assignor=name), 1),
        (consumer(name, name, member_epoch=-1), 1),
        (commit(name, generation=3), 8),
        (commit("g", generation=1, member_id=name), 8),
        (commit("g", metadata="y" * 17), 8),
    ]
    for request, version in refused:
        bench.send(request, version)


def consumer(group_id: str, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    known = {"rebalance_timeout_ms": 9_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, **{**known, **fields})


def commit(group_id: str, generation: int = -1, member_id: str = "", metadata: str = "") -> Any:
    partition = OffsetCommitRequestPartition(
        partition_index=1, committed_offset=5, committed_metadata=metadata
    )
    topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
    return OffsetCommitRequest(
        group_id=group_id, generation_id_or_member_epoch=generation, member_id=member_id, topics=[topic]
    )


def test_refused_requests_leave_nothing_behind() -> None:
    """Neither state nor timers: after n, 2n and 4n of them the shard is as it was."""
    bench = started()
    before, deadlines = bench.sizes(), bench.shard.deadlines()
    for count in (10, 20, 40):
        for number in range(count):
            hostile_round(bench, number + count)
        assert bench.sizes() == before
        assert bench.shard.deadlines() == deadlines


def test_ids_that_were_given_out_and_never_used_end_with_their_session() -> None:
    """MEMBER_ID_REQUIRED keeps an id for the session time-out that was asked for, which is limited."""
    bench = started()
    before = bench.sizes()
    for count in (10, 20, 40):
        for _ in range(count):
            (answer,) = bench.send(join("pool", session_timeout_ms=6_000), 5)
            assert answer.error_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.GROUP_MAX_SIZE_REACHED)
        # A limit of a group's size counts them too.
        assert bench.sizes()["pending"] <= max(count, CONFIG.group_max_size)
        bench.advance(6_000)
        after = bench.sizes()
        assert after["pending"] == before["pending"]
        assert after["timers' places"] <= 2 * after["timers"] + 65


def test_renewals_and_rejoins_leave_no_timer_behind() -> None:
    bench = started()
    sizes = []
    for count in (50, 100, 200):
        for _ in range(count):
            bench.send(consumer("c", "m", member_epoch=0), 1)
            bench.advance(1)
        sizes.append(bench.sizes())
    assert sizes[0] == sizes[1] == sizes[2]


def test_a_group_takes_no_more_members_than_it_may() -> None:
    bench = started()
    answers = [bench.send(consumer("c", f"m{number}"), 1)[0] for number in range(20)]
    assert {answer.error_code for answer in answers[4:]} == {ErrorCode.GROUP_MAX_SIZE_REACHED}
    assert len(bench.shard.groups["c"].members) == 5


def test_groups_of_commits_that_were_refused_end_at_the_next_check() -> None:
    """Apache Kafka makes a group for a commit before it looks at what is committed; here too."""
    bench = started()
    bench.send(LeaveGroupRequest(group_id="g", member_id=next(iter(bench.shard.groups["g"].members))), 0)
    for count in (10, 20, 40):
        for number in range(count):
            (answer,) = bench.send(commit(f"simple-{count}-{number}", metadata="y" * 17), 8)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_METADATA_TOO_LARGE
        assert bench.sizes()["groups"] >= count
        bench.advance(CONFIG.offsets_retention_check_interval_ms)
        after = bench.sizes()
        assert (after["groups"], after["offsets"], after["changes kept"]) == (0, 0, 0)


LONGEST = "y" * 32_767


def test_a_message_that_would_be_too_long_to_write_is_left_out() -> None:
    """As the limit of a string has it; Apache Kafka fails to write it, and answers so."""
    bench = started()
    for group_id, member_id in ((LONGEST, "m"), ("c", LONGEST), ("c", "\u4e00" * 10_922)):
        (answer,) = bench.send(consumer(group_id, member_id, member_epoch=7), 1)
        assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    (answer,) = bench.send(consumer("c", "n" * 9_000, member_epoch=7), 1)
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert "n" * 9_000 in answer.error_message
    for request, version in (
        (DescribeGroupsRequest(groups=[LONGEST, "g"]), 6),
        (ConsumerGroupDescribeRequest(group_ids=[LONGEST, "c"]), 1),
    ):
        (answer,) = bench.send(request, version)
        assert [group.error_code for group in answer.groups] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    (answer,) = bench.send(DeleteShareGroupOffsetsRequest(group_id=LONGEST, topics=[]), 0)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message == error_text(ErrorCode.UNKNOWN_SERVER_ERROR)


def with_longest_texts(cls: Any, version: int, group_id: str, epoch: int) -> Message:
    """A request about a group, with one element in each array, whose other texts are as long as can be."""

    def value(path: Path, field: Field, number: int) -> Any:
        if field.entity == "group_id" or path in (("groups",), ("group_ids",), ("groups_names",)):
            return group_id
        if field.type == "string":
            return LONGEST
        if field.name in ("member_epoch", "generation_id", "generation_id_or_member_epoch"):
            return epoch
        if field.name in ("session_timeout_ms", "rebalance_timeout_ms"):
            return 30_000
        return ORDERS.id if field.type == "uuid" else KEEP

    return filled(cls, version, (), [0], value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_requests_with_the_longest_texts_are_answered(cls: type[Message]) -> None:
    """In each version, with groups that there are and one whose id is as long: what is answered and appended
    can be written, which `Bench` does."""
    for version in cls.versions:
        bench = started()
        for group_id, epoch in itertools.product((LONGEST, "g", "c", "new"), (0, 7, -1)):
            bench.send(with_longest_texts(cls, version, group_id, epoch), version, LONGEST)


def test_a_member_id_that_would_be_too_long_to_write_is_an_error() -> None:
    """It is made of the client's id, which a request has room for, and a UUID."""
    bench = started()
    before = bench.sizes()
    (answer,) = bench.send(join("g2"), 5, LONGEST)
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_SERVER_ERROR, "")
    assert bench.send(join("g3"), 0, LONGEST) == []
    answers = bench.advance(120_000)
    assert [response.error_code for response in answers if isinstance(response, JoinGroupResponse)] == [
        ErrorCode.UNKNOWN_SERVER_ERROR
    ]
    bench.advance(CONFIG.offsets_retention_check_interval_ms)
    assert bench.sizes()["members"] <= before["members"]


def test_a_commits_time_to_live_wraps_as_64_bits_do() -> None:
    bench = started()
    bench.send(LeaveGroupRequest(group_id="g", member_id=next(iter(bench.shard.groups["g"].members))), 0)
    for version, retention in ((2, 2**63 - 1), (3, -(2**63)), (4, -5)):
        request = commit(f"lives-{version}")
        request.retention_time_ms = retention
        (answer,) = bench.send(request, version)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_an_empty_request_of_every_version_is_answered(cls: type[Message]) -> None:
    bench = started()
    for version in cls.versions:
        answers = bench.send(cls.decode(cls().encode(version=version), version=version), version)
        assert len(answers) == 1


def waiting_for_a_static_member(patience: int) -> tuple[Bench, str]:
    """A rebalance of a group that has nobody left but a static member, which has to join again, and its id.
    patience: its rebalance timeout, which says for how long it is awaited."""
    bench = Bench()
    static, other = join("g"), join("g")
    static.group_instance_id = "i"
    static.rebalance_timeout_ms, other.rebalance_timeout_ms = patience, 5_000
    bench.send(static, 5)
    bench.send(other, 3)
    named = {member.member_id: member for member in bench.advance(5_000)}
    (leader,) = (member for member in named.values() if member.members)
    ids = {member.group_instance_id: member.member_id for member in leader.members}
    for name in sorted(named, key=lambda name: name != leader.leader):
        bench.send(SyncGroupRequest(group_id="g", generation_id=1, member_id=name), 2)
    bench.send(LeaveGroupRequest(group_id="g", member_id=ids[None]), 2)
    return bench, ids["i"]


@pytest.mark.parametrize("patience", [0, -1, -32_768, 1, 5_000])
def test_a_static_member_that_is_awaited_for_no_time_may_come_back(patience: int) -> None:
    bench, member_id = waiting_for_a_static_member(patience)
    assert bench.advance(4_000) == []
    back = join("g", member_id)
    back.group_instance_id, back.rebalance_timeout_ms = "i", patience
    (answer,) = bench.send(back, 5)
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 2, member_id)


@pytest.mark.parametrize("patience", [0, -1, -32_768, 1, 5_000])
def test_a_static_member_that_is_awaited_for_no_time_may_be_gone(patience: int) -> None:
    bench, _ = waiting_for_a_static_member(patience)
    bench.advance(60_000)
    (described,) = bench.send(DescribeGroupsRequest(groups=["g"]), 0)
    assert (described.groups[0].group_state, described.groups[0].members) == ("Empty", [])


def test_no_time_is_the_least_that_a_group_waits() -> None:
    bench = started()
    (member_id,) = bench.shard.groups["g"].members
    request = join("g", member_id)
    request.rebalance_timeout_ms = -3
    answers = bench.send(request, 5)
    assert answers[0].generation_id == 2
    (described,) = bench.send(DescribeGroupsRequest(groups=["g"]), 0)
    assert described.groups[0].group_state == "Empty"  # the time for SyncGroup was over at once
