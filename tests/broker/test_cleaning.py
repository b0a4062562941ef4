"""Retention and compaction: what goes, what stays, and what clients see of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.harness import Kafka
from coordwire.broker.harness.cluster_view import produce_records
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.producer_states import ProducerStates
from coordwire.broker.log.retention import LargerThan, OlderThan, SegmentRules
from coordwire.broker.log.storage import MemoryStorage
from coordwire.messages import FetchRequest, ListOffsetsRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.records import ControlType, Record, batches, encode_batch
from coordwire.segments import Producers
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.peer import run
from tests.broker.test_log import NOW, append, marker

HOUR = 3_600_000
Pairs = list[tuple[int, bytes | None, bytes | None]]


def pairs(log: PartitionLog) -> Pairs:
    """Offsets, keys and values of all records but markers."""
    return [
        (record.offset, record.key, record.value)
        for batch in log.batches()
        if not batch.is_control
        for record in batch
    ]


def keyed(
    *pairs_to_write: tuple[bytes | None, bytes | None],
    producer: int = -1,
    sequence: int = 0,
    time: int = NOW,
) -> bytes:
    """One batch."""
    records = [Record(timestamp=time, key=key, value=value) for key, value in pairs_to_write]
    if producer < 0:
        return encode_batch(records, base_offset=0)
    return encode_batch(
        records, base_offset=0, producer_id=producer, producer_epoch=0, base_sequence=sequence,
        transactional=True,
    )  # fmt: skip


def end(log: PartitionLog) -> None:
    """A last batch, which compaction leaves."""
    append(log, keyed((b"end", b"")))


# --- retention ---


def test_what_is_older_than_the_retention_goes(tmp_path: Path) -> None:
    """By the largest timestamp of each segment, from the log's start on; a restart does not bring it back."""
    for data in (None, tmp_path / "data"):
        with Kafka(data=data) as kafka:
            kafka.create_topic("orders", retention_ms=HOUR)
            now = kafka.produce("orders", "new")[0].timestamp
            kafka.moves.clean()
            assert [record.offset for record in kafka.records("orders")] == [0]
            kafka.create_topic("events", retention_ms=HOUR, segment_ms=1)
            for age in (3 * HOUR, 2 * HOUR, 0, 2 * HOUR):
                kafka.produce("events", f"{age}", timestamp=now - age)
            kafka.moves.clean("events")
            assert [record.offset for record in kafka.records("events")] == [2, 3]
            with BlockingPeer(kafka.bootstrap) as peer:
                part = ListOffsetsPartition(partition_index=0, timestamp=-2)
                topics = [ListOffsetsTopic(name="events", partitions=[part])]
                partition = (
                    peer.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 7).topics[0].partitions[0]
                )
                assert partition.offset == 2
                topic = FetchTopic(topic="events", partitions=[FetchPartition(fetch_offset=1)])
                answer = peer.ask(FetchRequest(topics=[topic], max_wait_ms=0, session_epoch=-1), 12)
                assert answer.responses[0].partitions[0].error_code == 1  # OFFSET_OUT_OF_RANGE
    with Kafka(data=tmp_path / "data") as kafka:
        assert [record.offset for record in kafka.records("events")] == [2, 3]


ONE_BATCH = SegmentRules(segment_bytes=1)
"""A segment for each batch."""


def begins(log: PartitionLog, now: int, most_ms: int, most_bytes: int) -> int:
    """Where the log begins once it has lost what is too old or too much."""
    log.remove_old(now, (LargerThan(most_bytes), OlderThan(most_ms)))
    return log.start_offset


def test_what_is_more_than_the_retention_goes() -> None:
    """As many segments as leave the log no smaller than its bound."""
    log = PartitionLog(storage=MemoryStorage(ONE_BATCH))
    for _ in range(5):
        append(log, keyed((None, bytes(100))))
    size = log.size // 5
    assert begins(log, NOW, -1, -1) == 0
    assert begins(log, NOW, -1, 5 * size) == 0
    assert begins(log, NOW, -1, 2 * size + 1) == 2
    assert begins(log, NOW, -1, 2 * size) == 3
    assert begins(log, NOW + 10, 10, -1) == 3
    assert begins(log, NOW + 11, 10, -1) == 5


def test_an_open_transaction_stays() -> None:
    log = PartitionLog(storage=MemoryStorage(ONE_BATCH))
    append(log, keyed((b"k", b"old")))
    append(log, keyed((b"k", b"open"), producer=7))
    assert begins(log, NOW + HOUR, 10, 0) == 1


def test_nothing_goes_unasked_but_with_kafkas_settings() -> None:
    assert BrokerConfig().retention_check_ms == 0
    assert BrokerConfig.kafka().retention_check_ms == 300_000

    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=BrokerConfig(retention_check_ms=60_000)) as broker:
            cluster = broker.cluster
            log = cluster.topics["orders"].partitions[0].log
            produce_records(cluster, "orders", [b"old"], timestamp=cluster.clock() - 8 * 24 * HOUR)
            passed = [0]
            clock = cluster.clock
            cluster.clock = lambda: clock() + passed[0]
            cluster.advance()
            assert log.start_offset == 0
            for _ in range(2):  # and it goes on
                passed[0] += 61_000
                cluster.advance()
            assert log.start_offset == 1
            assert cluster.next_deadline() is not None

    run(main())


# --- compaction ---


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    log = PartitionLog()
    append(log, keyed((b"a", b"1"), (b"b", b"1"), (None, b"no key")))
    append(log, keyed((b"a", b"2")))
    append(log, keyed((b"a", b"3"), (b"c", b"1")))
    end(log)
    log.compact(NOW, tombstones_ms=HOUR)
    assert pairs(log) == [(1, b"b", b"1"), (4, b"a", b"3"), (5, b"c", b"1"), (6, b"end", b"")]
    assert [(record_batch.base_offset, record_batch.last_offset) for record_batch in log.batches()] == [
        (0, 2),
        (4, 5),
        (6, 6),
    ]
    assert (log.start_offset, log.end_offset) == (0, 7)
    read = log.read(3, 1 << 20)  # the offset of a batch that is gone
    assert read.data[7] == 4
    before = [bytes(record_batch.raw) for record_batch in log.batches()]
    log.compact(NOW, tombstones_ms=HOUR)
    assert [bytes(record_batch.raw) for record_batch in log.batches()] == before
    append(log, keyed((b"d", b"1")))
    assert log.end_offset == 8


def test_a_tombstone_stays_for_its_time() -> None:
    log = PartitionLog()
    append(log, keyed((b"a", b"1"), (b"b", b"1")))
    append(log, keyed((b"a", None)))
    end(log)
    log.compact(NOW, tombstones_ms=HOUR)
    assert pairs(log) == [(1, b"b", b"1"), (2, b"a", None), (3, b"end", b"")]
    assert [record_batch.delete_horizon_ms for record_batch in log.batches()] == [None, NOW + HOUR, None]
    log.compact(NOW + HOUR - 1, tombstones_ms=HOUR)
    assert (2, b"a", None) in pairs(log)
    log.compact(NOW + HOUR, tombstones_ms=HOUR)
    assert pairs(log) == [(1, b"b", b"1"), (3, b"end", b"")]


def test_young_records_stay() -> None:
    log = PartitionLog()
    append(log, keyed((b"a", b"1"), time=NOW - 20))
    append(log, keyed((b"a", b"2"), time=NOW - 20))
    append(log, keyed((b"a", b"3"), time=NOW - 5))
    end(log)
    log.compact(NOW, tombstones_ms=HOUR, lag_ms=10)
    assert [pair[0] for pair in pairs(log)] == [1, 2, 3]


def test_of_aborted_transactions_nothing_stays_in_the_end() -> None:
    """Their records go at once, their marker after its time; what was committed is read as before."""
    log = PartitionLog()
    append(log, keyed((b"a", b"kept"), producer=1))
    marker(log, ControlType.COMMIT, 1)
    append(log, keyed((b"a", b"lost"), producer=2))
    marker(log, ControlType.ABORT, 2)
    append(log, keyed((b"b", b"1"), producer=3))
    marker(log, ControlType.COMMIT, 3)
    append(log, keyed((b"b", b"2")))
    end(log)
    for producer in (2, 3):  # what they wrote before is not their last
        append(log, keyed((None, b"open"), producer=producer, sequence=1))
    log.compact(NOW, tombstones_ms=HOUR)
    assert pairs(log)[:3] == [(0, b"a", b"kept"), (6, b"b", b"2"), (7, b"end", b"")]
    assert [record_batch.base_offset for record_batch in log.batches() if record_batch.is_control] == [
        1,
        3,
        5,
    ]
    assert [
        transaction.producer_id for transaction in log.read(0, 1 << 20, committed=True).aborted or []
    ] == [2]
    log.compact(NOW + HOUR, tombstones_ms=HOUR)
    assert [record_batch.base_offset for record_batch in log.batches() if record_batch.is_control] == [1]
    assert log.read(0, 1 << 20, committed=True).aborted == []


KEYS, VALUES = st.sampled_from([b"a", b"b", b"c"]), st.sampled_from([b"1", b"2", None])


def test_a_cleaned_batch_keeps_what_its_producer_needs() -> None:
    """Its first and last offset and sequence, its epoch; and the last batch of each producer stays, empty if
    nothing else is left of it."""
    log = PartitionLog(epoch=5)

    def send(producer: int, sequence: int, *keys: bytes) -> bytes:
        data = encode_batch(
            [Record(timestamp=NOW, key=key, value=b"v") for key in keys],
            base_offset=0, producer_id=producer, producer_epoch=3, base_sequence=sequence,
        )  # fmt: skip
        append(log, data)
        return data

    send(7, 0, b"gone", b"a", b"gone")
    send(7, 3, b"gone")
    send(8, 0, b"gone", b"gone")
    last = send(7, 4, b"gone", b"gone")
    append(log, keyed((b"gone", b"newer")))
    end(log)
    log.compact(NOW, tombstones_ms=HOUR)
    assert [
        (one.base_offset, one.last_offset, one.base_sequence, one.last_sequence, one.count, one.producer_id)
        for one in log.batches()
    ] == [
        (0, 2, 0, 2, 1, 7), (4, 5, 0, 1, 0, 8), (6, 7, 4, 5, 0, 7),
        (8, 8, -1, -1, 1, -1), (9, 9, -1, -1, 1, -1),
    ]  # fmt: skip
    assert [one.producer_epoch for one in log.batches()] == [3, 3, 3, -1, -1]
    assert {one.partition_leader_epoch for one in log.batches()} == {5}
    assert {len(one.raw) for one in log.batches() if not one.count} == {61}
    before = [bytes(one.raw) for one in log.batches()]
    log.compact(NOW, tombstones_ms=HOUR)
    assert [bytes(one.raw) for one in log.batches()] == before
    reloaded = Producers()
    for one in log.batches():
        reloaded.add(one)
    entries = {entry.producer_id: entry for entry in reloaded.entries()}
    assert {number: (entry.epoch, entry.last_sequence) for number, entry in entries.items()} == {
        7: (3, 5),
        8: (3, 1),
    }
    states = ProducerStates(reloaded)
    (again,) = batches(last)
    assert states.check(again) is not None
    read = log.read(3, 1 << 20)
    assert [record.key for one in batches(read.data) for record in one] == [b"gone", b"end"]
    send(7, 6, b"next")
    log.compact(NOW, tombstones_ms=HOUR)
    assert [one.count for one in log.batches()] == [1, 0, 1, 1, 1]  # the newer batch says it now


def test_the_last_marker_of_a_producer_without_records_stays_for_its_epoch() -> None:
    log = PartitionLog()
    append(log, keyed((b"a", b"1")))
    marker(log, ControlType.COMMIT, 7)
    end(log)
    for number in range(4):
        log.compact(NOW + 2 * number * HOUR, tombstones_ms=HOUR)
    kept = [one for one in log.batches() if one.is_control]
    assert [(one.producer_id, one.count) for one in kept] == [(7, 0)]


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_the_marker_of_an_emptied_batch_stays_with_it(kind: ControlType) -> None:
    """A log that is read again would else have a transaction that never ends."""
    log = PartitionLog()
    append(log, keyed((b"a", b"1"), producer=7))
    marker(log, kind, 7)
    append(log, keyed((b"a", b"2")))
    for _ in range(2):
        end(log)
    for number in range(3):
        log.compact(NOW + 2 * number * HOUR, tombstones_ms=HOUR)
    assert [(one.base_offset, one.count) for one in log.batches()] == [(0, 0), (1, 1), (2, 1), (3, 1), (4, 1)]
    assert len(log.read(0, 1 << 20, committed=True).aborted or []) == (kind is ControlType.ABORT)
    log.truncate(4)
    assert (log.last_stable_offset, log.end_offset) == (4, 4)


def test_a_transaction_whose_marker_is_emptied_is_not_told_to_readers() -> None:
    """They wait for its marker, and would take the producer's next transaction for aborted."""
    log = PartitionLog()
    append(log, keyed((b"a", b"lost"), producer=7))
    log.end_transaction(7, 1, committed=False, coordinator_epoch=0, version=2, now=NOW)
    end(log)
    for number in range(4):
        log.compact(NOW + 2 * number * HOUR, tombstones_ms=HOUR)
        kept = next(log.batches())
        assert (kept.is_control, kept.producer_epoch, kept.last_offset, kept.max_timestamp) == (
            True, 1, 1, NOW,
        )  # fmt: skip
        assert (kept.count, kept.delete_horizon_ms) == ((0, None) if number else (1, NOW + HOUR))
        assert len(log.read(0, 1 << 20, committed=True).aborted or []) == (not number)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), max_size=8), st.integers(1, 4))
def test_compaction_leaves_what_a_table_of_the_log_has(written: list[Pairs], passes: int) -> None:
    log = PartitionLog()
    table: dict[bytes, tuple[int, bytes | None]] = {}
    for given_pairs in written:
        base = append(log, keyed(*given_pairs))  # type: ignore[arg-type]
        table |= {key: (base + at, value) for at, (key, value) in enumerate(given_pairs)}  # type: ignore[misc]
    end(log)
    ends = log.end_offset
    for number in range(passes):
        log.compact(NOW + number * HOUR, tombstones_ms=HOUR)
    names = sorted(
        (offset, key, value) for key, (offset, value) in table.items() if value is not None or passes == 1
    )
    assert pairs(log) == [*names, (ends - 1, b"end", b"")]
    assert log.size == sum(len(batch.raw) for batch in log.batches())
    assert log.end_offset == ends


def test_a_topic_is_compacted_when_it_is_asked_for(tmp_path: Path) -> None:
    with Kafka() as kafka:
        kafka.create_topic("table", cleanup_policy="compact")
        kafka.create_topic("orders")
        for topic in ("table", "orders"):
            for value in ("1", "2", "3"):
                kafka.produce(topic, value, key="k")
        kafka.moves.clean()
        assert [record.value for record in kafka.records("table")] == [
            b"2",
            b"3",
        ]  # the last batch is as it was
        assert len(kafka.records("orders")) == 3
        with pytest.raises(LookupError, match="nothing-0"):
            kafka.moves.clean("nothing")
    with Kafka(data=tmp_path) as kafka:
        kafka.create_topic("table", cleanup_policy="compact")
        kafka.moves.clean()
        with pytest.raises(ValueError, match="table is on disk"):
            kafka.moves.clean("table")


def test_a_failure_does_not_end_the_cleaning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What the clock brings is logged; the next time comes."""

    async def main() -> None:
        config = BrokerConfig(retention_check_ms=60_000)
        async with Broker(topics={"orders": 1}, config=config, data=tmp_path) as broker:
            cluster = broker.cluster
            produce_records(cluster, "orders", [b"old"], timestamp=cluster.clock() - 8 * 24 * HOUR)
            clock, started = cluster.clock, cluster.logs.started
            passed = [0]
            cluster.clock = lambda: clock() + passed[0]

            def refuse(*partitions: object) -> None:
                raise OSError("no space")

            cluster.logs.started = refuse  # type: ignore[method-assign]
            passed[0] += 61_000
            cluster.advance()
            assert "no space" in caplog.text
            cluster.logs.started = started  # type: ignore[method-assign]
            produce_records(cluster, "orders", [b"old"], timestamp=cluster.clock() - 8 * 24 * HOUR)
            passed[0] += 61_000
            cluster.advance()
            assert cluster.topics["orders"].partitions[0].log.start_offset == 2

    run(main())


def test_a_policy_that_raises_does_not_end_the_cleaning(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def count(self, segments: object, now: int) -> int:
            raise LookupError("no such policy")

    async def main() -> None:
        config = BrokerConfig(retention_check_ms=60_000, delete_policies=(Broken(),))
        async with Broker(topics={"orders": 1}, config=config) as broker:
            cluster = broker.cluster
            clock, passed = cluster.clock, [0]
            cluster.clock = lambda: clock() + passed[0]
            for number in (1, 2):
                passed[0] += 61_000
                cluster.advance()
                assert caplog.text.count("LookupError: no such policy") == number

    run(main())
