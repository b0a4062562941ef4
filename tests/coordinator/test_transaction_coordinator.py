"""A transaction coordinator over many partitions: outcomes are those of one shard, views those of all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

import pytest

from coordwire.coordinator import ShardStatus, partition_of
from coordwire.coordinator.transactions import (
    MarkersToWrite,
    TransactionAppend,
    TransactionConfig,
    TransactionCoordinator,
    TransactionOutcome,
    TransactionShard,
)
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord, decode_log_record
from coordwire.messages import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

NOW = 1_700_000_000_000
PARTITIONS = 7
NAMES = [f"till-{number}" for number in range(12)]
A, B = ("orders", 0), ("orders", 1)


class Server:
    """What stands around a coordinator: a log a partition, and the markers."""

    def __init__(self, partitions: int = PARTITIONS, *, loads: bool = True) -> None:
        self.logs: dict[int, list[LogRecord]] = {index: [] for index in range(partitions)}
        self.outcomes: dict[int, TransactionOutcome] = {}
        self.markers: list[MarkersToWrite] = []
        self.error = 0
        ids = count(1_000)
        self.coordinator = TransactionCoordinator(
            partitions=partitions, new_producer_id=lambda: next(ids), now=NOW
        )
        for index in range(partitions if loads else 0):
            self.coordinator.load(index, [], coordinator_epoch=3)

    def drain(self) -> None:
        for effect in self.coordinator.effects():
            if isinstance(effect, TransactionOutcome):
                assert effect.ticket not in self.outcomes
                self.outcomes[effect.ticket] = effect
            elif isinstance(effect, TransactionAppend):
                self.write(effect)
            else:
                self.markers.append(effect)
                self.coordinator.marked(effect.partition, effect.number, dict.fromkeys(effect.places, 0))

    def write(self, append: TransactionAppend) -> None:
        if self.error:
            self.coordinator.failed(append.partition, append.number, self.error)
            return
        for key, value in append.encoded():
            self.logs[append.partition].append(decode_log_record("transaction_state", key, value))
        self.coordinator.appended(append.partition, append.number)

    def outcome(self, ticket: int) -> TransactionOutcome:
        self.drain()
        return self.outcomes.pop(ticket)

    def init(self, name: str) -> TransactionOutcome:
        return self.outcome(self.coordinator.init_producer_id(name, 60_000))

    def begin(self, name: str) -> TransactionOutcome:
        """A producer with an open transaction."""
        producer = self.init(name)
        ticket = self.coordinator.add_partitions(
            name, producer.producer_id, producer.producer_epoch, frozenset({A, B})
        )
        assert self.outcome(ticket).error_code == 0
        return producer

    def listed(self, **filters: object) -> ListTransactionsResponse:
        listing = self.coordinator.list_transactions(ListTransactionsRequest(**filters))  # type: ignore[arg-type]
        while not listing.is_done:
            listing.advance(50)
        return listing.response

    def names(self, **filters: object) -> list[str]:
        return [state.transactional_id for state in self.listed(**filters).transaction_states]


# --- which partition ---


def test_an_id_is_in_the_partition_of_its_hash() -> None:
    server = Server()
    for name in NAMES:
        server.begin(name)
    for index, records in server.logs.items():
        assert {record.key.transactional_id for record in records} == {  # type: ignore[union-attr]
            name for name in NAMES if partition_of(name, PARTITIONS) == index
        }
    assert sorted(server.coordinator.ids) == sorted(NAMES)
    assert all(server.coordinator.partition_of(name) == partition_of(name, PARTITIONS) for name in NAMES)
    with pytest.raises(ValueError, match="expected a partition from 0 to 6, got 7"):
        server.coordinator.load(PARTITIONS, [])


def test_what_is_not_there_is_not_coordinated() -> None:
    server = Server(loads=False)
    coordinator, name = server.coordinator, NAMES[0]
    index = coordinator.partition_of(name)
    assert server.init(name).error_code == ErrorCode.NOT_COORDINATOR
    assert coordinator.status(index) is ShardStatus.ABSENT
    coordinator.begin_loading(index)
    assert coordinator.status(index) is ShardStatus.LOADING
    assert server.init(name).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert server.listed().error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.load(index, [])
    assert server.init(name).error_code == 0
    coordinator.begin_loading(index)  # it has the partition already
    assert coordinator.status(index) is ShardStatus.ACTIVE
    coordinator.unload(index)
    coordinator.unload(index + 1)  # it never had that one
    assert server.init(name).error_code == ErrorCode.NOT_COORDINATOR
    assert server.names() == []


def test_a_partition_that_goes_takes_what_waits_with_it_and_no_more() -> None:
    server = Server()
    coordinator = server.coordinator
    first = NAMES[0]
    other = next(name for name in NAMES if partition_of(name, PARTITIONS) != partition_of(first, PARTITIONS))
    tickets = [coordinator.init_producer_id(name, 60_000) for name in (first, other)]
    appends = [effect for effect in coordinator.effects() if isinstance(effect, TransactionAppend)]
    assert {append.partition for append in appends} == {
        coordinator.partition_of(name) for name in (first, other)
    }
    coordinator.unload(coordinator.partition_of(first))
    for append in appends:
        server.write(append)
    server.drain()
    codes = [server.outcomes[ticket].error_code for ticket in tickets]
    assert codes == [ErrorCode.NOT_COORDINATOR, 0]


def test_a_new_coordinator_goes_on_with_the_logs() -> None:
    server = Server()
    producers = {name: server.begin(name) for name in NAMES}
    other = Server(loads=False)
    for index, records in server.logs.items():
        other.coordinator.load(index, records, coordinator_epoch=4)
    other.drain()
    for name, producer in producers.items():
        ticket = other.coordinator.end(name, producer.producer_id, producer.producer_epoch, committed=True)
        assert other.outcome(ticket).error_code == 0
    assert {marker.transactional_id for marker in other.markers} == set(NAMES)
    assert {marker.coordinator_epoch for marker in other.markers} == {4}
    assert all(
        marker.partition == partition_of(marker.transactional_id, PARTITIONS) for marker in other.markers
    )


# --- views ---


def test_a_description_has_the_ids_of_several_partitions_in_order() -> None:
    server = Server()
    for name in NAMES[:4]:
        server.begin(name)
    gone = server.coordinator.partition_of(NAMES[2])
    server.coordinator.unload(gone)
    names = [NAMES[3], "nobody", NAMES[2], "", NAMES[0], NAMES[3]]
    request = DescribeTransactionsRequest(transactional_ids=names)
    states = server.coordinator.describe_transactions(request).transaction_states
    assert [state.transactional_id for state in states] == names

    def code(name: str) -> int:
        if partition_of(name, PARTITIONS) == gone:
            return int(ErrorCode.NOT_COORDINATOR)
        if not name:
            return int(ErrorCode.INVALID_REQUEST)
        return 0 if name in NAMES else int(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)

    assert [state.error_code for state in states] == [code(name) for name in names]
    (topic,) = states[0].topics
    assert (states[0].transaction_state, topic.topic, topic.partitions) == ("Ongoing", "orders", [0, 1])
    assert server.coordinator.partitions_of(request) == list(
        dict.fromkeys(partition_of(name, PARTITIONS) for name in names)
    )


def test_a_list_has_the_ids_of_all_partitions() -> None:
    server = Server()
    for name in NAMES[:5]:
        server.begin(name)
    for name in NAMES[5:]:
        server.init(name)
    assert sorted(server.names()) == sorted(NAMES)
    assert sorted(server.names(state_filters=["Ongoing"])) == sorted(NAMES[:5])
    assert server.names(state_filters=["Odd"]) == []
    assert server.listed(state_filters=["Odd", "Empty"]).unknown_state_filters == ["Odd"]
    assert sorted(server.names(transactional_id_pattern="till-1.*")) == ["till-1", "till-10", "till-11"]
    producer = server.coordinator.ids["till-3"].facts.producer_id
    assert server.names(producer_id_filters=[producer]) == ["till-3"]
    refused = server.listed(transactional_id_pattern="(")
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert server.names(duration_filter=10_000, state_filters=["Ongoing"]) == []
    server.coordinator.advance(NOW + 10_001)
    assert sorted(server.names(duration_filter=10_000, state_filters=["Ongoing"])) == sorted(NAMES[:5])


# --- time ---


def test_time_is_the_same_in_all_partitions() -> None:
    server = Server()
    for name in NAMES[:4]:
        server.begin(name)
    deadline = server.coordinator.next_deadline()
    assert deadline is not None
    server.coordinator.advance(NOW + 60_000)
    server.drain()
    assert server.markers == []
    server.coordinator.advance(NOW + 75_000)
    server.drain()
    assert {(marker.transactional_id, marker.committed) for marker in server.markers} == {
        (name, False) for name in NAMES[:4]
    }


# --- one shard ---


def _operations(seed: int) -> Iterator[Callable[[TransactionShard | TransactionCoordinator], int]]:
    chooser = random.Random(seed)
    for _ in range(200):
        name, producer, epoch = (
            chooser.choice(["", *NAMES[:5]]),
            1_000 + chooser.randrange(7),
            chooser.randrange(3),
        )
        places = frozenset(chooser.sample([A, B, ("payments", 2)], chooser.randint(1, 3)))
        committed = chooser.random() < 0.5
        version = chooser.choice([0, 2])

        def init(target: TransactionShard | TransactionCoordinator, name: str = name) -> int:
            return target.init_producer_id(name, 60_000)

        def add(
            target: TransactionShard | TransactionCoordinator, name: str = name, producer: int = producer,
            epoch: int = epoch, places: frozenset[tuple[str, int]] = places, version: int = version,
        ) -> int:  # fmt: skip
            return target.add_partitions(name, producer, epoch, places, version=version)

        def verify(
            target: TransactionShard | TransactionCoordinator, name: str = name, producer: int = producer,
            epoch: int = epoch, places: frozenset[tuple[str, int]] = places,
        ) -> int:  # fmt: skip
            return target.verify_partitions(name, producer, epoch, places)

        def end(
            target: TransactionShard | TransactionCoordinator, name: str = name, producer: int = producer,
            epoch: int = epoch, committed: bool = committed, version: int = version,
        ) -> int:  # fmt: skip
            return target.end(name, producer, epoch, committed=committed, version=version)

        yield chooser.choices([init, add, verify, end], [2, 4, 1, 3])[0]


@pytest.mark.parametrize("partitions", [1, PARTITIONS])
@pytest.mark.parametrize("seed", range(3))
def test_outcomes_are_those_of_one_shard(seed: int, partitions: int) -> None:
    many = Server(partitions)
    ids = count(1_000)
    shard = TransactionShard(new_producer_id=lambda: next(ids), now=NOW, config=TransactionConfig())
    shard.load([], coordinator_epoch=3)
    codes = set()
    for number, operation in enumerate(_operations(seed)):
        now = NOW + number * 2_000
        many.error = int(ErrorCode.NOT_ENOUGH_REPLICAS) if number % 17 == 0 else 0
        shard.advance(now)
        many.coordinator.advance(now)
        ticket = operation(shard)
        outcomes = {}
        for effect in shard.effects():
            if isinstance(effect, TransactionOutcome):
                outcomes[effect.ticket] = effect
            elif isinstance(effect, MarkersToWrite):
                shard.marked(effect.number, dict.fromkeys(effect.places, 0))
            elif many.error:
                shard.failed(effect.number, many.error)
            else:
                shard.appended(effect.number)
        one, outcome = outcomes[ticket], many.outcome(operation(many.coordinator))
        codes.add(one.error_code)
        assert (outcome.error_code, outcome.producer_id, outcome.producer_epoch, outcome.places) == (
            one.error_code, one.producer_id, one.producer_epoch, one.places,
        )  # fmt: skip
        assert {name: entry.facts for name, entry in many.coordinator.ids.items()} == {
            name: entry.facts for name, entry in shard.ids.items()
        }
    assert len(codes) >= 4
