"""Another coordinator goes on from a log: ours from Kafka's, Kafka's from ours, changed as time does."""

from __future__ import annotations

import random

import pytest

from tests.coordinator.failover import failover, in_the_order_of
from tests.coordinator.histories import Record, Replayer
from tests.coordinator.log_changes import CHANGES, Log
from tests.coordinator.oracle import oracle
from tests.coordinator.recorded_histories import FAILOVERS, checksum, read_histories
from tests.coordinator.settings import settings
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

FRESH = 5
"""Failovers that Kafka's own coordinator judges; `python -m tests.coordinator.failover` takes more."""


def test_kept_histories_go_on_from_kafkas_logs_as_kafka_did() -> None:
    count = 0
    for seed, steps, release in read_histories(FAILOVERS):
        count += 1
        assert any(step.startswith("load ") for _, step in steps)
        replayer = Replayer(settings(seed, release))
        for number, (expected, step) in enumerate(steps):
            outcome = replayer.run(step)
            assert checksum(outcome.sorted(replayer.requests)) == expected, f"failover {seed}, step {number}"
    assert count >= 60


@pytest.mark.maven
@pytest.mark.parametrize("seed", range(2_000_000, 2_000_000 + FRESH))
def test_kafka_goes_on_from_our_log_and_we_from_kafkas(seed: int) -> None:
    try:
        kafka = oracle()
    except Unavailable as error:
        give_up(error)
    difference, _ = failover(seed, 130).run(kafka)
    assert difference is None, str(difference)


def test_an_order_is_taken_over_where_the_records_are_the_same() -> None:
    first, second, third = (Record(bytes([number]), None) for number in range(3))
    other = 3, [(0, second), (1, first), (2, third)]
    assert in_the_order_of(other, (3, [(0, first), (1, second), (2, third)])) == other
    differing = 3, [(0, second), (1, first), (2, second)]
    assert in_the_order_of(other, differing) == differing
    assert in_the_order_of(other, (2, [(0, third), (1, first)])) == (2, [(0, third), (1, first)])


# --- the changes of logs ---

OFFSET = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00"
COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"
VALUE = bytes.fromhex("000300000000000000050000000000000000000000000001")


def log(*records: Record) -> Log:
    return len(records), list(enumerate(records))


def key(partition: int) -> bytes:
    return OFFSET + bytes([partition])


def compacted(entries: Log) -> set[tuple[tuple[int, Record], ...]]:
    """All that the cleaner may leave."""
    return {tuple(CHANGES["compacted"][0](random.Random(seed), entries)[1]) for seed in range(60)}


def test_the_cleaner_keeps_the_last_record_of_a_key() -> None:
    first, second, record = Record(key(0), VALUE), Record(key(0), VALUE + b"2"), Record(key(1), VALUE)
    assert ((1, second), (2, record)) in compacted(log(first, second, record))
    assert all(record == result[-1][1] for result in compacted(log(first, second, record)))


def test_the_cleaner_drops_aborted_transactions_and_leaves_open_ones() -> None:
    aborted, marker = Record(key(0), VALUE, 7), Record(ABORT, b"", 7, 0, True)
    still_open, later = Record(key(1), VALUE, 8), Record(key(1), VALUE + b"2")
    results = compacted(log(aborted, marker, still_open, later))
    assert ((2, still_open), (3, later)) in results
    assert all(result[-2:] == ((2, still_open), (3, later)) for result in results)


def test_a_cut_log_lost_its_end() -> None:
    records = [Record(key(index), VALUE) for index in range(5)]
    for seed in range(20):
        end, remaining = CHANGES["cut"][0](random.Random(seed), log(*records))
        assert remaining == list(enumerate(records))[:end]


def test_an_older_release_wrote_older_versions() -> None:
    versions = set()
    for seed in range(60):
        _, ((_, record),) = CHANGES["older"][0](random.Random(seed), log(Record(key(0), VALUE)))
        assert record.value is not None
        versions.add((record.key[:2], record.value[:2]))
    assert len(versions) >= 4
