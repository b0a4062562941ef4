"""The transaction coordinator without a broker: each status against each request, fencing, time, restarts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from coordwire.coordinator.transactions import (
    MarkersToWrite,
    TransactionalId,
    TransactionAppend,
    TransactionConfig,
    TransactionFacts,
    TransactionOutcome,
    TransactionShard,
)
from coordwire.coordinator.transactions.log import record_of
from coordwire.coordinator.transactions.transactional_id import BEFORE, NO_TIMEOUT
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.errors import Malformed
from coordwire.logs import LogRecord, decode_log_record

S, E = TransactionStatus, ErrorCode
NOW = 1_700_000_000_000
A, B = ("orders", 0), ("orders", 1)
TIMEOUT = 60_000


class Bench:
    """A shard, the log that it writes, and markers that wait to be written."""

    def __init__(self, *, log: list[LogRecord] | None = None, epoch: int = 0, **config: Any) -> None:
        self.log = [] if log is None else log
        self.first_id = 1_000
        self.shard = TransactionShard(
            now=NOW, config=TransactionConfig(**config), new_producer_id=self.new_producer_id
        )
        self.markers: list[MarkersToWrite] = []
        self.outcomes: dict[int, TransactionOutcome] = {}
        self.error = 0
        self.holding = False
        self.pending: list[TransactionAppend] = []
        self.shard.load(self.log, coordinator_epoch=epoch)
        self.drain()

    def new_producer_id(self) -> int:
        if self.first_id < 0:
            raise OSError("no space left")
        self.first_id += 1
        return self.first_id

    def drain(self) -> None:
        for effect in self.shard.effects():
            if isinstance(effect, TransactionOutcome):
                assert effect.ticket not in self.outcomes
                self.outcomes[effect.ticket] = effect
            elif isinstance(effect, MarkersToWrite):
                self.markers.append(effect)
            elif self.holding:
                self.pending.append(effect)
            else:
                self.write(effect)

    def write(self, append: TransactionAppend) -> None:
        if self.error:
            self.shard.failed(append.number, self.error)
            return
        for key, value in append.encoded():
            self.log.append(decode_log_record("transaction_state", key, value))
        self.shard.appended(append.number)

    def outcome(self, ticket: int) -> TransactionOutcome:
        self.drain()
        return self.outcomes.pop(ticket)

    def init(self, name: str = "t", timeout: int = TIMEOUT, **options: Any) -> TransactionOutcome:
        return self.outcome(self.shard.init_producer_id(name, timeout, **options))

    def add(self, owner: TransactionOutcome, *places: tuple[str, int], version: int = 0) -> int:
        ticket = self.shard.add_partitions(
            "t", owner.producer_id, owner.producer_epoch, frozenset(places), version=version
        )
        return self.outcome(ticket).error_code

    def end(self, owner: TransactionOutcome, committed: bool = True, version: int = 0) -> TransactionOutcome:
        return self.outcome(
            self.shard.end("t", owner.producer_id, owner.producer_epoch, committed=committed, version=version)
        )

    def mark(self, error: int = 0) -> MarkersToWrite:
        """Write the markers that wait."""
        (markers,) = self.markers
        self.markers.clear()
        self.shard.marked(markers.number, dict.fromkeys(markers.places, error))
        self.drain()
        return markers

    def advance(self, milliseconds: int) -> None:
        self.shard.advance(self.shard.now + milliseconds)
        self.drain()

    @property
    def facts(self) -> TransactionFacts:
        return self.shard.facts("t")

    def status(self) -> TransactionStatus:
        return self.facts.status

    @property
    def statuses(self) -> list[TransactionStatus]:
        """What the log says, in order."""
        values: list[Any] = [record.value for record in self.log]
        return [S(value.transaction_status) for value in values if value is not None]


def in_status(status: TransactionStatus, *, epoch: int = 5, version: int = 0) -> Bench:
    """An id that is in a status, by its log; markers are not written."""
    facts = TransactionFacts(
        producer_id=7, producer_epoch=epoch, timeout_ms=TIMEOUT, update_time=NOW, status=status,
        version=version,
        places=frozenset({A}) if status in (S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT) else frozenset(),
        start_time=NOW if status is not S.EMPTY else -1,
    )  # fmt: skip
    return Bench(log=[record_of("t", facts, 2)])


def producer(epoch: int = 5, producer_id: int = 7) -> TransactionOutcome:
    return TransactionOutcome(ticket=0, producer_id=producer_id, producer_epoch=epoch)


ME, OLD = producer(), producer(4)
OPERATIONS: dict[str, Callable[[Bench], int]] = {
    "init": lambda bench: bench.init().error_code,
    "add": lambda bench: bench.add(ME, B),
    "add, old epoch": lambda bench: bench.add(OLD, B),
    "add, other id": lambda bench: bench.add(producer(5, 8), B),
    "commit": lambda bench: bench.end(ME).error_code,
    "abort": lambda bench: bench.end(ME, False).error_code,
    "commit, old epoch": lambda bench: bench.end(OLD).error_code,
    "commit v2": lambda bench: bench.end(ME, version=2).error_code,
    "abort v2": lambda bench: bench.end(ME, False, version=2).error_code,
    "commit v2, retried": lambda bench: bench.end(OLD, version=2).error_code,
    "abort v2, retried": lambda bench: bench.end(OLD, False, version=2).error_code,
}
BUSY, FENCED, INVALID = E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED, E.INVALID_TXN_STATE
MAPPING = E.INVALID_PRODUCER_ID_MAPPING
TABLE: dict[str, tuple[int, int, int, int]] = {
    # Empty, Ongoing, CompleteCommit, CompleteAbort
    "init": (0, BUSY, 0, 0),
    "add": (0, 0, 0, 0),
    "add, old epoch": (FENCED, FENCED, FENCED, FENCED),
    "add, other id": (MAPPING, MAPPING, MAPPING, MAPPING),
    "commit": (INVALID, 0, 0, INVALID),
    "abort": (INVALID, 0, INVALID, 0),
    "commit, old epoch": (FENCED, FENCED, FENCED, FENCED),
    "commit v2": (INVALID, 0, INVALID, INVALID),
    "abort v2": (0, 0, 0, 0),
    "commit v2, retried": (FENCED, FENCED, 0, INVALID),
    "abort v2, retried": (FENCED, FENCED, INVALID, 0),
}
"""What each request is answered with, in each status where none is under way."""


@pytest.mark.parametrize("operation", TABLE)
def test_each_status_answers_each_request_as_kafka_does(operation: str) -> None:
    for status, expected in zip(
        (S.EMPTY, S.ONGOING, S.COMPLETE_COMMIT, S.COMPLETE_ABORT), TABLE[operation], strict=True
    ):
        assert OPERATIONS[operation](in_status(status)) == expected, status


PREPARED: dict[str, tuple[int, int]] = {
    # PrepareCommit, PrepareAbort: while the markers are written, the id has a change under way
    "init": (BUSY, BUSY),
    "add": (BUSY, BUSY),
    "commit": (BUSY, BUSY),
    "abort": (BUSY, BUSY),
    "commit, old epoch": (FENCED, FENCED),
    "commit v2": (BUSY, BUSY),
    "commit v2, retried": (BUSY, BUSY),
    "abort v2, retried": (BUSY, BUSY),
}


@pytest.mark.parametrize("operation", PREPARED)
def test_what_is_prepared_is_busy_until_the_markers_are_written(operation: str) -> None:
    for status, expected in zip((S.PREPARE_COMMIT, S.PREPARE_ABORT), PREPARED[operation], strict=True):
        bench = in_status(status)
        assert OPERATIONS[operation](bench) == expected
        marker = bench.mark()
        assert (marker.places, marker.committed) == (frozenset({A}), status is S.PREPARE_COMMIT)
        assert bench.status() in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
        assert bench.facts.places == frozenset()


def test_a_transaction_of_each_version() -> None:
    """With version 2 EndTxn gives the next epoch, which the markers have too."""
    for version, epoch in ((0, 0), (2, 1)):
        bench = Bench()
        owner = bench.init()
        assert (owner.producer_id, owner.producer_epoch) == (1_001, 0)
        assert bench.add(owner, A) == bench.add(owner, A, B) == bench.add(owner, B) == 0
        ended = bench.end(owner, version=version)
        assert (ended.producer_id, ended.producer_epoch) == ((1_001, 1) if version else (-1, -1))
        assert bench.status() is S.PREPARE_COMMIT
        marker = bench.mark()
        assert (marker.producer_id, marker.producer_epoch, marker.places) == (1_001, epoch, frozenset({A, B}))
        assert marker.transaction_version == version
        assert bench.statuses == [S.EMPTY, S.ONGOING, S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT]


def test_a_second_producer_fences_the_first() -> None:
    bench = Bench()
    old = bench.init()
    bench.add(old, A)
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS
    marker = bench.mark()
    assert (marker.producer_epoch, marker.committed) == (1, False)
    new = bench.init()
    assert (new.error_code, new.producer_id, new.producer_epoch) == (0, old.producer_id, 2)
    assert bench.add(old, A) == bench.end(old).error_code == E.PRODUCER_FENCED
    assert bench.end(old, version=2).error_code == E.PRODUCER_FENCED
    outcome = bench.init(expected=(old.producer_id, 0))
    assert outcome.error_code == E.PRODUCER_FENCED
    assert bench.init(expected=(old.producer_id + 1, 2)).error_code == E.PRODUCER_FENCED
    bumped = bench.init(expected=(new.producer_id, 2))
    assert bumped.producer_epoch == 3
    assert bench.init(expected=(new.producer_id, 2)).producer_epoch == 3  # the answer was lost


@pytest.mark.parametrize("version", [0, 2])
def test_when_the_epochs_are_used_up_the_producer_gets_another_id(version: int) -> None:
    bench = in_status(S.COMPLETE_COMMIT, epoch=32_766)
    assert bench.add(producer(32_766), A, version=version) == 0
    ended = bench.end(producer(32_766), version=version)
    marker = bench.mark()
    if version:
        assert (ended.producer_id, ended.producer_epoch) == (1_001, 0)
        assert (marker.producer_id, marker.producer_epoch) == (7, 32_767)
        assert bench.facts.previous_producer_id == 7
        retried = bench.end(producer(32_766), version=2)  # the answer was lost
        assert (retried.error_code, retried.producer_id, retried.producer_epoch) == (0, 1_001, 0)
    else:
        assert (marker.producer_id, marker.producer_epoch) == (7, 32_766)
        outcome = bench.init()
        assert (outcome.producer_id, outcome.producer_epoch) == (1_001, 0)
        assert bench.init(expected=(7, 32_766)).error_code == E.PRODUCER_FENCED


def test_a_transaction_that_is_over_its_time_is_aborted() -> None:
    bench = Bench(abort_interval_ms=10_000)
    owner = bench.init(timeout=15_000)
    bench.add(owner, A)
    bench.advance(10_000)
    assert bench.status() is S.ONGOING
    bench.advance(10_000)
    assert bench.status() is S.PREPARE_ABORT
    assert bench.mark().producer_epoch == 1
    assert bench.status() is S.COMPLETE_ABORT
    assert bench.end(owner).error_code == E.PRODUCER_FENCED


def test_an_abort_that_cannot_be_written_is_tried_again() -> None:
    for version in (0, 2):
        bench = Bench(version=version, abort_interval_ms=1_000)
        owner = bench.init(timeout=1_500)
        bench.add(owner, A)
        bench.error = E.NOT_ENOUGH_REPLICAS
        bench.advance(4_000)
        assert bench.status() is S.ONGOING
        bench.error = 0
        bench.advance(1_000)
        assert bench.mark().producer_epoch == 1  # one epoch, however often it was tried
        assert bench.status() is S.COMPLETE_ABORT


def test_ids_that_are_not_used_expire() -> None:
    bench = Bench(expiration_ms=10_000, expiration_interval_ms=4_000)
    bench.init()
    bench.init("other")
    bench.advance(8_000)
    assert bench.init("other").error_code == 0
    bench.advance(4_000)
    assert list(bench.shard.ids) == ["other"]
    assert bench.log[-1].value is None
    assert list(Bench(log=bench.log).shard.ids) == ["other"]
    bench.advance(100_000)
    assert not bench.shard.ids
    assert bench.shard.next_deadline() is None


@pytest.mark.parametrize(
    ("name", "timeout", "options", "error"),
    [
        ("", 1, {}, E.INVALID_REQUEST),
        ("t", 0, {}, E.INVALID_TRANSACTION_TIMEOUT),
        ("t", 900_001, {}, E.INVALID_TRANSACTION_TIMEOUT),
        ("t", 1, {"two_phase": True}, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ("t", 1, {"keep_prepared": True}, E.UNSUPPORTED_VERSION),
    ],
)
def test_what_init_producer_id_refuses(
    name: str, timeout: int, options: dict[str, bool], error: ErrorCode
) -> None:
    bench = Bench()
    assert bench.init(name, timeout, **options).error_code == error
    assert not bench.log


def test_a_transaction_that_another_system_ends_has_no_timeout() -> None:
    bench = Bench(two_phase_commit=True)
    owner = bench.init(two_phase=True)
    bench.add(owner, A)
    assert bench.facts.timeout_ms == NO_TIMEOUT
    bench.advance(1_000_000_000)
    assert bench.status() is S.ONGOING


def test_requests_get_a_reason_where_the_partition_is_not_there() -> None:
    bench = in_status(S.ONGOING)
    bench.shard.unload()
    assert bench.init().error_code == bench.add(ME, A) == bench.end(ME).error_code == E.NOT_COORDINATOR
    bench = Bench()
    assert bench.add(ME, A) == bench.end(ME).error_code == E.INVALID_PRODUCER_ID_MAPPING
    bench.first_id = -1
    assert bench.init().error_code == E.COORDINATOR_NOT_AVAILABLE


def test_an_append_under_way_keeps_the_id_busy_and_a_failed_one_changes_nothing() -> None:
    bench = in_status(S.ONGOING)
    bench.holding = True
    ticket = bench.shard.end("t", 7, 5, committed=True, version=0)
    bench.drain()
    assert ticket not in bench.outcomes
    assert bench.init().error_code == bench.add(ME, B) == E.CONCURRENT_TRANSACTIONS
    (append,) = bench.pending
    bench.shard.failed(append.number, E.NOT_LEADER_OR_FOLLOWER)
    bench.holding = False
    assert bench.outcome(ticket).error_code == E.NOT_COORDINATOR
    assert bench.status() is S.ONGOING
    assert bench.end(ME).error_code == 0
    bench.holding = True
    bench.mark()
    bench.shard.unload()
    bench.shard.appended(bench.pending[-1].number)  # too late
    assert not bench.shard.ids


def test_markers_that_fail_are_written_again_and_fenced_ones_are_not() -> None:
    bench = in_status(S.ONGOING)
    bench.add(ME, B)
    bench.end(ME)
    (markers,) = bench.markers
    bench.markers.clear()
    bench.shard.marked(markers.number, {A: 0, B: E.NOT_LEADER_OR_FOLLOWER})
    bench.advance(99)
    assert not bench.markers
    assert bench.facts.places == frozenset({B})
    bench.advance(1)
    assert bench.mark(E.TRANSACTION_COORDINATOR_FENCED).places == frozenset({B})
    bench.advance(100_000)
    assert not bench.markers
    assert bench.status() is S.PREPARE_COMMIT
    successor = Bench(log=bench.log, epoch=1)  # the next coordinator begins with all partitions
    assert successor.mark().places == frozenset({A, B})
    assert successor.facts.status is S.COMPLETE_COMMIT


def test_the_end_is_recorded_however_often_that_fails() -> None:
    bench = in_status(S.ONGOING)
    bench.end(ME)
    bench.error = E.NOT_ENOUGH_REPLICAS
    bench.mark()
    bench.advance(1_000)
    assert bench.status() is S.PREPARE_COMMIT
    bench.error = 0
    bench.advance(100)
    assert bench.status() is S.COMPLETE_COMMIT


def test_partitions_are_verified() -> None:
    bench = in_status(S.ONGOING)

    def verified(owner: TransactionOutcome) -> TransactionOutcome:
        return bench.outcome(
            bench.shard.verify_partitions("t", owner.producer_id, owner.producer_epoch, frozenset({A, B}))
        )

    assert verified(ME).places == {A: 0, B: E.TRANSACTION_ABORTABLE}
    assert verified(OLD).error_code == E.PRODUCER_FENCED
    assert verified(producer(5, 9)).error_code == E.INVALID_PRODUCER_ID_MAPPING
    bench.end(ME)
    assert verified(ME).error_code == E.CONCURRENT_TRANSACTIONS


def test_records_have_the_version_of_the_feature() -> None:
    for level, version in ((0, 0), (1, 1), (2, 1)):
        bench = Bench(version=level)
        bench.init()
        assert bench.log[0].version == version
        value: Any = bench.log[0].value
        assert value.transaction_partitions is None


def test_a_status_that_does_not_exist_is_refused() -> None:
    facts = TransactionFacts(producer_id=7, timeout_ms=1, update_time=NOW, status=S(9))
    with pytest.raises(Malformed, match="got 9"):
        Bench(log=[record_of("t", facts, 2)])


def test_changes_only_follow_where_kafka_lets_them() -> None:
    """The table of statuses, and an id that is asked for a change that it cannot have."""
    allowed: Iterator[tuple[TransactionStatus, TransactionStatus]] = (
        (before, after) for after, befores in BEFORE.items() for before in befores
    )
    assert len(list(allowed)) == 3 + 4 + 1 + 5 + 1 + 1 + 3 + 1
    entry = TransactionalId("t", TransactionFacts(producer_id=1, timeout_ms=1, update_time=0))
    with pytest.raises(AssertionError):
        entry.completed(0)
