"""The contract of `Shard`: misuse is refused or answered, and nothing waits that the caller can't see."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest

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
from coordwire.enums import ErrorCode
from coordwire.errors import EncodeError
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    ListGroupsRequest,
    SyncGroupRequest,
)
from coordwire.records import batches
from tests.coordinator.histories import Replayer
from tests.coordinator.recorded_histories import FURTHER, read_histories
from tests.coordinator.settings import settings
from tests.coordinator.test_shard import Bench, commit, join, stable_group

CONFIG = CoordinatorConfig(consumer=ConsumerGroupConfig(assignment_interval_ms=0))


def _context(new_id: Any = lambda: str(UUID(int=5, version=4))) -> RequestContext:
    return RequestContext(client_id="till", client_host="/127.0.0.1", new_id=new_id)


def _beat(member_id: str = "m", epoch: int = 0) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id="g", member_id=member_id, member_epoch=epoch, rebalance_timeout_ms=5_000,
        subscribed_topic_names=["orders"], topic_partitions=[],
    )  # fmt: skip


def _started(**arguments: Any) -> Shard:
    shard = Shard(config=CONFIG, **arguments)
    shard.set_topics(TopicsImage([TopicImage(UUID(int=7), "orders", 2)]), now=shard.now)
    shard.load([], now=shard.now)
    return shard


def _answer(shard: Shard, request: Any, version: int, now: int = 0, **context: Any) -> Any:
    ticket = shard.handle(request, version=version, now=now, context=_context(**context))
    answer = None
    for effect in shard.effects():
        if isinstance(effect, Append):
            shard.appended(effect.number, now=shard.now)
        elif isinstance(effect, Answer) and effect.ticket == ticket:
            answer = effect.response
    return answer


# --- refused ---


def test_a_version_that_a_request_does_not_have_is_refused() -> None:
    bench = Bench()
    with pytest.raises(EncodeError, match="HeartbeatRequest has no version 99: it has 0 to 4"):
        bench.send(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 99)
    with pytest.raises(EncodeError, match="no version -1"):
        bench.send(ListGroupsRequest(), -1)
    assert list(bench.shard.effects()) == []


@pytest.mark.parametrize("number", [0, -1, 999])
def test_an_append_that_was_never_made_is_refused(number: int) -> None:
    bench = Bench()
    bench.send(commit(5), 8)
    with pytest.raises(ValueError, match=f"expected an append from 1 to 1, got {number}"):
        bench.shard.appended(number, now=bench.now)
    with pytest.raises(ValueError, match=f"expected an append from 1 to 1, got {number}"):
        bench.shard.failed(number, 1, now=bench.now)
    assert bench.answers == {}
    bench.confirm()
    assert len(bench.answers) == 1


def test_an_append_of_an_earlier_term_is_ignored() -> None:
    bench = Bench()
    bench.send(commit(5), 8)
    (append,) = bench.appends
    bench.shard.load([], now=bench.now)
    ticket = bench.send(commit(6), 8)
    bench.shard.appended(append.number, now=bench.now)
    bench.take()
    assert ticket not in bench.answers


# --- answered ---


def test_a_load_answers_the_parked_requests_of_a_shard_that_has_the_partition() -> None:
    bench = Bench()
    stable_group(bench)
    parked = bench.send(join(), 3)
    waiting = bench.send(commit(6), 8)
    bench.shard.load(bench.log, now=bench.now)
    bench.take()
    assert bench.answers[parked].error_code == ErrorCode.NOT_COORDINATOR
    assert bench.answers[waiting].topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def _fails(*_: Any) -> Any:
    raise RuntimeError("out of order")


def test_an_assignor_that_raises_is_answered() -> None:
    broken = True

    def assign(spec: GroupSpec) -> Any:
        return _fails() if broken else {member_id: {} for member_id in spec.members}

    shard = _started(assignors={"consumer": {"uniform": assign}})
    answer = _answer(shard, _beat(), 1)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert answer.error_message == "Failed to compute a new target assignment for epoch 2: out of order"
    assert shard.groups == {}
    broken = False
    assert _answer(shard, _beat(), 1).error_code == 0


@pytest.mark.parametrize(
    ("request_", "version"),
    [(join(), 3), (join(), 9), (ConsumerGroupHeartbeatRequest(group_id="g", rebalance_timeout_ms=5), 0)],
)
def test_a_source_of_ids_that_raises_is_answered(request_: Any, version: int) -> None:
    request = deepcopy(request_)
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        request.subscribed_topic_names, request.topic_partitions = ["orders"], []
    shard = _started()
    assert _answer(shard, request, version, new_id=_fails).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert shard.groups == {}
    assert _answer(shard, ListGroupsRequest(), 5).groups == []


# --- the request stays as it is ---


def test_no_request_is_changed() -> None:
    class Unchanging(Shard):
        def handle(self, request: Any, **arguments: Any) -> int:
            handed.append((request, deepcopy(request)))
            return super().handle(request, **arguments)

    handed: list[tuple[Any, Any]] = []
    for seed, steps, release in list(read_histories(FURTHER))[:4]:
        replayer = Replayer(settings(seed, release), Unchanging)
        for _, step in steps:
            replayer.run(step)
    versions = {type(request).__name__ for request, _ in handed}
    assert {"JoinGroupRequest", "OffsetCommitRequest", "OffsetFetchRequest", "LeaveGroupRequest"} <= versions
    assert all(request == before for request, before in handed)
    bench = Bench()
    old = JoinGroupRequest(
        group_id="payments", session_timeout_ms=10_000, protocol_type="consumer", protocols=join().protocols
    )
    bench.send(old, 0)
    assert old.rebalance_timeout_ms == -1


# --- time ---


def test_a_request_brings_the_time_and_the_effects_of_timers() -> None:
    """The join phase ends by a timer; its answers come out with the request that brought the time."""
    bench = Bench()
    first = bench.ask(join(), 9)
    ticket = bench.send(join(first.member_id), 9)
    bench.confirm()
    assert ticket not in bench.answers
    bench.now = 3_000
    other = bench.send(ListGroupsRequest(), 5)
    assert isinstance(bench.answers[ticket], JoinGroupResponse)
    assert bench.answers[ticket].generation_id == 1
    assert bench.answers[other].groups[0].group_state == "CompletingRebalance"
    sync = SyncGroupRequest(group_id="payments", generation_id=1, member_id=first.member_id)
    assert bench.ask(sync, 0).error_code == 0


def test_after_the_effects_nothing_is_due() -> None:
    """Two members expire at different times; each end appends, and the request sees both."""
    shard = _started()
    assert _answer(shard, _beat("a"), 1).error_code == 0
    assert _answer(shard, _beat("b"), 1, now=1_000).error_code == 0
    late = 500_000
    ticket = shard.handle(ListGroupsRequest(), version=5, now=late, context=_context())
    kinds = []
    for effect in shard.effects():
        if isinstance(effect, Append):
            shard.appended(effect.number, now=shard.now)
            kinds.append("append")
        elif isinstance(effect, Answer) and effect.ticket == ticket:
            kinds.append("answer")
            assert effect.response.groups[0].group_state == "Empty"  # type: ignore[attr-defined]
    assert kinds == ["append", "append", "answer"]
    deadline = shard.next_deadline()
    assert deadline is not None
    assert deadline > late


def test_a_timer_sees_that_the_append_before_it_failed() -> None:
    shard = _started()
    for number, member_id in enumerate("ab"):
        _answer(shard, _beat(member_id), 1, now=number)
    shard.advance(100_000)
    failures = 0
    for effect in shard.effects():
        if isinstance(effect, Append):
            failures += 1
            assert len(shard.groups["g"].members) == 1
            shard.failed(effect.number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=shard.now)
            assert len(shard.groups["g"].members) == 2
        if failures > 10:
            break
    assert failures > 2  # each is tried again


def test_calls_without_the_effects_between_run_everything_in_order() -> None:
    shard = _started()
    for number, member_id in enumerate("ab"):
        _answer(shard, _beat(member_id), 1, now=number)
    first = shard.handle(ListGroupsRequest(), version=5, now=500_000, context=_context())
    second = shard.handle(ListGroupsRequest(), version=5, now=500_000, context=_context())
    effects = list(shard.effects())
    appends = [effect for effect in effects if isinstance(effect, Append)]
    answers = [effect for effect in effects if isinstance(effect, Answer)]
    assert len(appends) == 2
    assert [answer.ticket for answer in answers] == [first, second]


def test_time_does_not_go_back() -> None:
    bench = Bench()
    bench.advance(5_000)
    bench.now = 1_000
    first = bench.ask(join(), 9)
    bench.send(join(first.member_id), 9)
    assert min(bench.shard.deadlines().values()) >= 5_000


# --- the batch of an append ---


def test_an_append_gives_its_record_batch() -> None:
    bench = Bench()
    bench.send(commit(5), 8)
    (append,) = bench.appends
    (batch,) = batches(append.batch(timestamp=77))
    assert (batch.base_offset, batch.transactional, batch.is_control) == (append.base_offset, False, False)
    assert [(record.key, record.value) for record in batch] == append.encoded()
    assert [record.timestamp for record in batch] == [77]
    bench.confirm()
    bench.shard.complete_transaction(9, 1, committed=True, coordinator_epoch=3, now=80)
    bench.take()
    (batch,) = batches(bench.appends[0].batch(timestamp=80, base_offset=12))
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch) == (12, 9, 1)
    assert batch.transactional
    assert batch.is_control
