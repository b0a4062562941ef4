"""A coordinator over many partitions: answers are those of one shard, divided and put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    Effect,
    GroupCoordinator,
    RequestContext,
    Shard,
    ShardStatus,
    StateRequest,
    TopicImage,
    TopicsImage,
    TransactionCompleted,
    partition_of,
)
from coordwire.enums import ErrorCode
from coordwire.errors import EncodeError
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    InitializeShareGroupStateResponse,
    ListGroupsRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupStatePartitionMetadataKey,
    find_message,
)
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from tests.coordinator.generator import history
from tests.coordinator.histories import Outcome, Replayer
from tests.coordinator.recorded_histories import FURTHER, checksum, read_histories
from tests.coordinator.settings import settings
from tests.coordinator.test_shard import commit, join
from tests.growth import work
from tests.shares.kept_histories import GROUPS

PARTITIONS = 7
CONTEXT = RequestContext(client_id="till", client_host="/127.0.0.1", new_id=lambda: "id")


class OneOfMany:
    """A coordinator with the face of a shard, whose log is that of all partitions."""

    def __init__(self, *, now: int, config: CoordinatorConfig, partitions: int = 1) -> None:
        self.many = GroupCoordinator(partitions=partitions, now=now, config=config)
        self._numbers: dict[int, tuple[int, int]] = {}
        self._asking: dict[int, int] = {}
        self._appends = self._end = self._until = 0
        self.set_topics = self.many.set_topics
        self.set_group_config = self.many.set_group_config
        self.handle, self.answer = self.many.handle, self.many.answer

    @property
    def topics(self) -> TopicsImage:
        return self.many.topics

    @property
    def now(self) -> int:
        return self.many._now

    def advance(self, now: int) -> None:
        self._until = now

    @property
    def _effects(self) -> Iterable[Effect]:
        return self.many._outbox.effects

    def load(self, records: Iterable[Any], *, end_offset: int | None = None, now: int) -> None:
        entries = list(records)
        self._end = end_offset or len(entries)
        for partition in range(self.many.partitions):
            self.many.load(partition, entries, end_offset=end_offset, now=now)

    def unload(self, *, now: int) -> None:
        for partition in range(self.many.partitions):
            self.many.unload(partition, now=now)

    def begin_loading(self) -> None:
        for partition in range(self.many.partitions):
            self.many.begin_loading(partition)

    def effects(self) -> Iterator[Effect]:
        """The effects of each moment up to the time of `advance`, in which appends have their outcome."""
        yield from self._effects_now()
        while self._until > self.now:
            self.many.advance(min(self.many.next_deadline() or self._until, self._until))
            yield from self._effects_now()

    def _effects_now(self) -> Iterator[Effect]:
        for effect in self.many.effects():
            if isinstance(effect, StateRequest):
                self._asking[effect.number] = effect.partition
            if not isinstance(effect, Append):
                yield effect
                continue
            if self.many.partitions > 1:
                self._appends += 1
                renumbered = _renumbered(effect, self._appends, self._end)
                self._end = renumbered.end_offset
            else:
                renumbered = effect
            self._numbers[renumbered.number] = effect.partition, effect.number
            yield renumbered

    def appended(self, number: int, *, now: int) -> None:
        self.many.appended(*self._numbers[number], now=now)

    def failed(self, number: int, error: int, *, now: int) -> None:
        self.many.failed(*self._numbers[number], error, now=now)

    def persisted(self, number: int, *answer: Any, **more: Any) -> None:
        self.many.persisted(self._asking.pop(number), number, *answer, **more)

    def complete_transaction(self, producer_id: int, producer_epoch: int, **arguments: Any) -> int:
        return self.many.complete_transaction(0, producer_id, producer_epoch, **arguments)

    def deadlines(self) -> dict[str, int]:
        shards = self.many._shards.values()
        return {key: due for shard in shards for key, due in shard.deadlines().items()}


def _renumbered(append: Append, number: int, base_offset: int) -> Append:
    return Append(
        number=number, base_offset=base_offset, records=append.records, producer_id=append.producer_id,
        producer_epoch=append.producer_epoch, marker=append.marker,
    )  # fmt: skip


def _many(partitions: int) -> Any:
    return lambda **arguments: OneOfMany(partitions=partitions, **arguments)


def test_one_partition_answers_as_kafka_does() -> None:
    for seed, steps, release in list(read_histories(FURTHER))[:12]:
        replayer = Replayer(settings(seed, release), _many(1))
        for number, (expected, step) in enumerate(steps):
            outcome = replayer.run(step)
            assert checksum(outcome.sorted(replayer.requests)) == expected, f"history {seed}, step {number}"


def test_one_partition_asks_share_coordinators_as_kafka_does() -> None:
    asked = 0
    for seed, steps, release in list(read_histories(GROUPS))[:12]:
        replayer = Replayer(settings(seed, release), _many(1))
        for number, (expected, step) in enumerate(steps):
            outcome = replayer.run(step)
            assert checksum(outcome.sorted(replayer.requests)) == expected, f"history {seed}, step {number}"
            asked += step.startswith("persisted ")
    assert asked > 20


_OF_ONE_LOG = ("fail", "hold", "commit", "load", "begin-load", "unload", "end")
"""Steps about the log, of which each partition has one of its own."""


_STREAMS = ("88", "89")
"""Streams groups keep what a topology needs in memory; a failure of any group of their log takes it back."""


def _couples(step: str) -> bool:
    """Whether groups of one log see something of each other by this step."""
    command, *words = step.split(" ")
    return command in _OF_ONE_LOG or (command == "request" and words[1] in _STREAMS)


def test_many_partitions_answer_as_one_does() -> None:
    used = 0
    for seed in range(700_000, 700_012):
        steps = [step for step in history(seed, 150).steps if not _couples(step)]
        one, many = Replayer(settings(seed)), Replayer(settings(seed), _many(PARTITIONS))
        for number, step in enumerate(steps):
            outcomes = [_unordered(replayer.run(step), replayer) for replayer in (one, many)]
            assert outcomes[0] == outcomes[1], f"history {seed}, step {number}: {step}"
        names = one.shard.groups.keys()
        assert names == many.shard.many.groups.keys()  # type: ignore[attr-defined]
        used += len({partition_of(name, PARTITIONS) for name in names})
    assert used > 20


def _unordered(outcome: Outcome, replayer: Replayer) -> Outcome:
    """The outcome without the order of groups, which are in partitions, and of records."""
    outcome = outcome.sorted(replayer.requests)
    for ticket, data in outcome.answers.items():
        api, version = replayer.requests[ticket]
        response: Any = find_message(api, "response").decode(data, version=version)
        if hasattr(response, "groups"):
            response.groups.sort(key=lambda group: group.group_id)
            outcome.answers[ticket] = response.encode(version=version)
    return replace(outcome, records=sorted(outcome.records, key=repr))


# --- partitions ---


def test_a_group_is_in_the_partition_of_javas_hash() -> None:
    """What Kafka's Utils.abs(groupId.hashCode()) % 50 says."""
    assert [partition_of(name, 50) for name in ("", "payments", "a", "polygenelubricants")] == [0, 13, 47, 0]
    assert [partition_of(name, 50) for name in ("my-group", "orders-group")] == [12, 17]  # negative hashes


class Bench:
    """A coordinator that has some partitions."""

    def __init__(self, *partitions: int) -> None:
        self.coordinator = GroupCoordinator(partitions=PARTITIONS)
        for partition in partitions:
            self.coordinator.load(partition, [], now=0)
        self.appends: list[Append] = []
        self.answers: dict[int, Any] = {}
        self.ended: dict[int, int] = {}
        self.state_requests: list[StateRequest] = []

    def ask(self, request: Any, version: int, *, confirms: bool = True, now: int = 0) -> Any:
        ticket = self.coordinator.handle(request, version=version, now=now, context=CONTEXT)
        self.take(confirms=confirms)
        return self.answers.get(ticket)

    def take(self, *, confirms: bool = True) -> None:
        for effect in self.coordinator.effects():
            if isinstance(effect, Append):
                self.appends.append(effect)
                if confirms:
                    self.coordinator.appended(effect.partition, effect.number, now=0)
            elif isinstance(effect, Answer):
                self.answers[effect.ticket] = effect.response
            elif isinstance(effect, StateRequest):
                self.state_requests.append(effect)
            else:
                assert isinstance(effect, TransactionCompleted)
                self.ended[effect.ticket] = effect.error_code


NAMES = [f"group-{number}" for number in range(20)]
PLACES = {name: partition_of(name, PARTITIONS) for name in NAMES}


def test_the_answer_of_share_coordinators_is_for_the_group_that_asked() -> None:
    bench = Bench(*range(PARTITIONS))
    coordinator = bench.coordinator
    topic = TopicImage(UUID(int=7), "orders", 1)
    coordinator.set_topics(TopicsImage([topic]), now=0)
    first, second = NAMES[0], next(name for name in NAMES if PLACES[name] != PLACES[NAMES[0]])
    for name in (first, second):
        joining = ShareGroupHeartbeatRequest(
            group_id=name, member_id="m", member_epoch=0, subscribed_topic_names=["orders"]
        )
        assert bench.ask(joining, 1).error_code == 0
    coordinator.advance(0)
    bench.take()
    asked = {effect.partition: effect for effect in bench.state_requests}
    assert asked.keys() == {PLACES[first], PLACES[second]}
    assert {effect.number for effect in asked.values()} == {1}
    bench.appends.clear()
    answer = InitializeShareGroupStateResponse(
        results=[InitializeStateResult(topic_id=topic.id, partitions=[PartitionResult(partition=0)])]
    )
    coordinator.persisted(PLACES[second], 1, answer, now=0)
    bench.take()
    keys = [record.key for append in bench.appends for record in append.records]
    assert keys == [ShareGroupStatePartitionMetadataKey(group_id=second)]
    assert [append.partition for append in bench.appends] == [PLACES[second]]


def test_partitions_that_it_does_not_have_answer_not_coordinator() -> None:
    bench = Bench(0, 1, 2)
    coordinator = bench.coordinator
    described = bench.ask(DescribeGroupsRequest(groups=NAMES), 6).groups
    errors = {group.group_id: group.error_code for group in described}
    absent = int(ErrorCode.NOT_COORDINATOR)
    assert errors == {
        name: int(ErrorCode.GROUP_ID_NOT_FOUND) if PLACES[name] < 3 else absent for name in NAMES
    }
    assert {PLACES[group.group_id]: None for group in described}.keys() == set(PLACES.values())
    deleted = bench.ask(DeleteGroupsRequest(groups_names=NAMES), 2).results
    assert [result.error_code == absent for result in deleted] == [
        PLACES[result.group_id] > 2 for result in deleted
    ]
    consumers = bench.ask(ConsumerGroupDescribeRequest(group_ids=NAMES), 1).groups
    assert {group.group_id for group in consumers if group.error_code == absent} == {
        name for name in NAMES if PLACES[name] > 2
    }
    fetched = bench.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in NAMES]), 9
    )
    assert {group.group_id: group.error_code for group in fetched.groups} == {
        name: 0 if PLACES[name] < 3 else absent for name in NAMES
    }
    beat = HeartbeatRequest(group_id=next(name for name in NAMES if PLACES[name] == 5), member_id="m")
    assert bench.ask(beat, 4).error_code == absent
    assert coordinator.status(5) is ShardStatus.ABSENT
    coordinator.begin_loading(5)
    assert coordinator.status(5) is ShardStatus.LOADING
    assert bench.ask(ListGroupsRequest(), 5).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.load(5, [], now=0)
    assert bench.ask(beat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_without_a_group_are_answered() -> None:
    bench = Bench()
    assert bench.ask(ListGroupsRequest(), 5).groups == []
    assert bench.ask(DescribeGroupsRequest(), 6).groups == []
    assert bench.ask(DeleteGroupsRequest(), 2).results == []
    assert bench.ask(OffsetFetchRequest(groups=[]), 9).groups == []
    with pytest.raises(TypeError, match="expected a request to a group coordinator, got MetadataRequest"):
        bench.ask(MetadataRequest(), 9)
    with pytest.raises(ValueError, match="expected a partition from 0 to 6, got 7"):
        bench.coordinator.load(PARTITIONS, [], now=0)


def test_a_partition_that_moves_away_answers_what_waits_and_no_other_does() -> None:
    bench = Bench(*range(PARTITIONS))
    tickets = {}
    for name in NAMES[:6]:
        request = join()
        request.group_id = name
        tickets[name] = bench.coordinator.handle(request, version=3, now=0, context=CONTEXT)
    bench.take()
    gone = PLACES[NAMES[0]]
    bench.coordinator.unload(gone, now=0)
    bench.take()
    answered = {name for name, ticket in tickets.items() if ticket in bench.answers}
    assert answered == {name for name in NAMES[:6] if PLACES[name] == gone}
    assert {bench.answers[tickets[name]].error_code for name in answered} == {ErrorCode.NOT_COORDINATOR}
    groups = bench.ask(ListGroupsRequest(), 5).groups
    assert {group.group_id for group in groups} == set(NAMES[:6]) - answered
    bench.coordinator.advance(3_000)
    bench.take()
    assert all(ticket in bench.answers for ticket in tickets.values())


def test_an_append_of_an_earlier_term_confirms_nothing() -> None:
    bench = Bench(*range(PARTITIONS))
    request = join()
    bench.ask(request, 3, confirms=False)
    (append,) = bench.appends
    bench.coordinator.load(append.partition, [], now=0)
    bench.take()
    ticket = bench.coordinator.handle(join(), version=3, now=0, context=CONTEXT)
    bench.take(confirms=False)
    assert len(bench.appends) == 2
    bench.coordinator.appended(append.partition, append.number, now=0)
    assert bench.appends[1].number > append.number
    bench.take(confirms=False)
    assert ticket not in bench.answers


def test_a_transaction_ends_in_its_partition() -> None:
    bench = Bench(3)
    ticket = bench.coordinator.complete_transaction(3, 9, 1, committed=True, now=0)
    other_ticket = bench.coordinator.complete_transaction(4, 9, 1, committed=True, now=0)
    bench.take()
    assert bench.ended == {ticket: 0, other_ticket: ErrorCode.NOT_COORDINATOR}
    assert [append.partition for append in bench.appends] == [3]


def test_the_next_deadline_is_never_late() -> None:
    bench = Bench(*range(PARTITIONS))
    shards = bench.coordinator._shards.values()
    for number, name in enumerate(NAMES):
        request = join()
        request.group_id = name
        bench.ask(request, 3, now=number * 700)
        exact = min(due for shard in shards if (due := shard.next_deadline()) is not None)
        stated = bench.coordinator.next_deadline()
        assert stated is not None
        assert number * 700 < stated <= exact
    bench.coordinator.advance(60_000)
    bench.take()
    exact = min(due for shard in shards if (due := shard.next_deadline()) is not None)
    stated = bench.coordinator.next_deadline()
    assert stated is not None
    while stated < exact:  # that of a write that did not take as long
        bench.coordinator.advance(stated)
        stated, before = bench.coordinator.next_deadline() or exact, stated
        assert stated > before
    assert stated == exact


def test_a_request_sees_the_timers_that_its_time_brings() -> None:
    """Each partition's members expire with the request that lists their groups, before it."""
    bench = Bench(*range(PARTITIONS))
    for name in NAMES[:6]:
        beat = ConsumerGroupHeartbeatRequest(
            group_id=name, member_id="m", rebalance_timeout_ms=5_000, subscribed_topic_names=["orders"],
            topic_partitions=[],
        )  # fmt: skip
        assert bench.ask(beat, 1).error_code == 0
    groups = bench.ask(ListGroupsRequest(), 5, now=100_000).groups
    assert {group.group_state for group in groups} == {"Empty"}
    assert {append.partition for append in bench.appends} == {PLACES[name] for name in NAMES[:6]}


def test_a_version_that_a_request_does_not_have_is_refused() -> None:
    bench = Bench(0)
    for request in (DescribeGroupsRequest(), HeartbeatRequest(group_id="g"), ListGroupsRequest()):
        with pytest.raises(EncodeError, match="has no version 99"):
            bench.ask(request, 99)


def test_a_heartbeat_costs_the_same_whatever_other_partitions_have() -> None:
    def cost(partitions: int) -> int:
        coordinator = GroupCoordinator(partitions=partitions)
        for partition in range(partitions):
            coordinator.load(partition, [], now=0)
        beat = HeartbeatRequest(group_id="payments", member_id="m", generation_id=1)

        def ask() -> None:
            for _ in range(50):
                coordinator.handle(beat, version=4, now=5, context=CONTEXT)
                list(coordinator.effects())

        ask()
        return work(ask)

    assert cost(200) <= cost(2) + 10


def test_a_shard_is_what_a_coordinator_of_one_partition_is() -> None:
    shard, group_coordinator = Shard(), GroupCoordinator(partitions=1)
    shard.load([], now=0)
    group_coordinator.load(0, [], now=0)
    for request, version in ((join(), 3), (commit(5), 8)):
        shard.handle(request, version=version, now=0, context=CONTEXT)
        group_coordinator.handle(request, version=version, now=0, context=CONTEXT)
        assert list(shard.effects()) == list(group_coordinator.effects())
