"""Lag from disk: committed offsets against the ends of logs, without a false one."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.logs import LogRecord, encode_log_record, find_record
from coordwire.records import Record, batches, encode_batch
from coordwire.tables.options import Options
from coordwire.tables.readers import disk_lag, segment_reader
from coordwire.tables.readers.sources import SOURCES, SourceDefinition, plan, read
from coordwire.tables.readers.splits import CopiedSegment, LogCopy
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, read_records
from tests.broker_sample import broker_sample
from tests.tables import pipeline_steps
from tests.tables.made_segments import START

Commit = tuple[str, str, int, int | None]
"""Group, topic, partition and offset; None removes it."""


def commits(actual: Iterable[Commit], base: int = 0, **named: Any) -> bytes:
    """A batch of the offsets topic."""
    key_class: Any
    value_class: Any
    key_class, value_class = find_record("consumer_offsets", 1)
    records = []
    for number, (group, topic, partition, offset) in enumerate(actual):
        value = None if offset is None else value_class(offset=offset, commit_timestamp=START)
        log = LogRecord(log="consumer_offsets", type=1, version=None if value is None else 3, value=value)
        log.key = key_class(group=group, topic=topic, partition=partition)
        key, data = encode_log_record(log)
        records.append(Record(offset=base + number, timestamp=START + base + number, key=key, value=data))
    return encode_batch(records, base_offset=base, **named)


def put(folder: Path, name: str, data: bytes, offset: int = 0) -> Path:
    path = folder / name / f"{offset:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def lag(folder: Path, **named: Any) -> list[tuple[Any, ...]]:
    """Group, topic, partition, committed, end and lag."""
    options, source = Options(paths=(str(folder),), **named), SOURCES["kafka-lag"]
    columns = ["group_id", "topic", "partition", "committed_offset", "end_offset", "lag"]
    return _rows(source, options, columns)


def _rows(source: SourceDefinition, options: Options, columns: list[str]) -> list[tuple[Any, ...]]:
    return sorted(
        (
            tuple(row.values())
            for group in plan(source, options)
            for batch in read(source, group, options, columns)
            for row in batch.to_pylist()
        ),
        key=repr,
    )


def test_committed_against_the_logs_end(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10)))
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10, 25)), 10)
    put(tmp_path, "orders-1", b"", 40)  # its last segment has no record yet
    put(tmp_path, "pay-0", b"")
    first = [("g", "orders", 0, 3), ("g", "orders", 1, 40), ("h", "orders", 0, 30), ("h", "pay", 0, 0)]
    put(tmp_path, "__consumer_offsets-7", commits([*first, ("g", "orders", 0, 20)]))
    put(tmp_path, "__consumer_offsets-8", commits([("k", "gone", 3, 5), ("k", "pay", 0, -1)]))
    assert lag(tmp_path) == [
        ("g", "orders", 0, 20, 25, 5), ("g", "orders", 1, 40, 40, 0), ("h", "orders", 0, 30, 25, -5),
        ("h", "pay", 0, 0, 0, 0), ("k", "gone", 3, 5, None, None),
    ]  # fmt: skip
    assert lag(tmp_path, topics=("pay",)) == [("h", "pay", 0, 0, 0, 0)]


def test_a_commit_beyond_the_end_has_a_reason(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10)))
    actual = [("g", "orders", 0, 99_999_999), ("h", "orders", 0, 10), ("k", "gone", 0, 1)]
    put(tmp_path, "__consumer_offsets-7", commits(actual))
    options, source = Options(paths=(str(tmp_path),)), SOURCES["kafka-lag"]
    assert _rows(source, options, ["group_id", "lag", "reason"]) == [
        ("g", -99_999_989, "committed_beyond_end"), ("h", 0, None), ("k", None, None),
    ]  # fmt: skip


def test_what_was_removed_has_no_lag(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10)))
    data = commits([("g", "orders", 0, 3), ("h", "orders", 0, 4)])
    data += commits([("g", "orders", 0, None), ("h", "orders", 0, -1)], 2)
    put(tmp_path, "__consumer_offsets-7", data)
    assert lag(tmp_path) == []
    put(tmp_path, "__consumer_offsets-7", commits([("g", "orders", 0, 7)], 4), 4)
    assert lag(tmp_path) == [("g", "orders", 0, 7, 10, 3)]


def test_commits_of_a_transaction_count_from_its_end(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10)))
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    data = commits([("g", "orders", 0, 3)]) + commits(
        [("g", "orders", 0, 8)], 1, transactional=True, **producer
    )
    put(tmp_path, "__consumer_offsets-7", data)
    assert lag(tmp_path) == [("g", "orders", 0, 3, 10, 7)]
    marker = Record(timestamp=START, key=struct.pack(">hh", 0, 1), value=struct.pack(">hi", 0, 0))
    end = encode_batch(
        [marker], control=True, transactional=True, producer_id=5, producer_epoch=0, base_offset=2
    )
    put(tmp_path, "__consumer_offsets-7", data + end)
    assert lag(tmp_path) == [("g", "orders", 0, 8, 10, 2)]


def test_of_two_brokers_the_one_that_reaches_furthest_counts(tmp_path: Path) -> None:
    for broker, end, committed in (("a", 10, [3]), ("b", 12, [3, 6, None, 9])):
        put(tmp_path / broker, "orders-0", pipeline_steps.segment(range(end)))
        put(
            tmp_path / broker,
            "__consumer_offsets-7",
            commits([("g", "orders", 0, item) for item in committed]),
        )
    assert lag(tmp_path) == [("g", "orders", 0, 9, 12, 3)]
    (tmp_path / "b" / "orders-0").rename(tmp_path / "b" / "orders-0.0123456789abcdef-stray")
    assert lag(tmp_path) == [("g", "orders", 0, 9, 10, 1)]
    for broker in ("a", "b"):  # two clusters
        (tmp_path / broker / "meta.properties").write_text(f"node.id=1\ncluster.id={broker}\n")
    assert lag(tmp_path) == [("g", "orders", 0, 3, 10, 7), ("g", "orders", 0, 9, None, None)]


def test_a_damaged_end_is_no_false_lag(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", pipeline_steps.segment(range(10)))
    put(tmp_path, "orders-0", b"\xff" * 500, 10)
    put(tmp_path, "orders-1", pipeline_steps.segment(range(10))[:-7])
    put(tmp_path, "__consumer_offsets-7", b"\0" * 100 + commits([("g", "orders", n, 4) for n in (0, 1)]))
    assert lag(tmp_path) == [("g", "orders", 0, 4, 10, 6), ("g", "orders", 1, 4, 9, 5)]


@pytest.mark.parametrize("indexed", [True, False])
def test_the_end_is_found_by_its_last_bytes(
    tmp_path: Path, indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pipeline_steps.segment(range(3000))
    monkeypatch.setattr(disk_lag, "TAIL", 1000)
    monkeypatch.setattr(segment_reader, "LEAD", 1000)
    path = put(tmp_path, "orders-0", data)
    index = path.with_suffix(".index")
    if indexed:
        places = [batch.position for batch in batches(data)][50::50]
        index.write_bytes(b"".join(struct.pack(">ii", 0, place) for place in places))
    copy = LogCopy(None, "orders", 0, (CopiedSegment(str(path), len(data), 0, str(index)),))
    read_batches: list[int] = []
    counted = segment_reader._MappedSegment.batches

    def counting(segment: Any, **named: Any) -> Any:
        reader = counted(segment, **named)
        opened = reader._opened

        def see(view: memoryview, position: int) -> Any:
            read_batches.append(position)
            return opened(view, position)

        reader._opened = see
        reader._quick = None
        return reader

    monkeypatch.setattr(segment_reader._MappedSegment, "batches", counting)
    end = disk_lag.log_end(copy)
    assert (end.offset, end.timestamp_ms) == (3000, START + 2999)
    if indexed:
        assert 0 < len(read_batches) < 100
    index.write_bytes(struct.pack(">ii", 0, 77) * 2000)  # of another file
    assert disk_lag.log_end(copy).offset == 3000


def test_a_brokers_disk() -> None:
    """Against commits in their order, and whole logs read."""
    folder = broker_sample() / "data"
    expected: dict[tuple[str, str, int], int] = {}
    for log in sorted(folder.glob("__consumer_offsets-*/*.log")):
        for item in read_records(log.read_bytes(), log="consumer_offsets", file=str(log), log_partition=0):
            if isinstance(item, CoordinatorRecord) and item.kind == "OffsetCommit":
                value: Any = item.value
                key = item.group or "", item.topic or "", item.partition or 0
                if value is None:
                    expected.pop(key, None)
                else:
                    expected[key] = value.offset
    ends = {}
    for topic, partition in {(topic, partition) for _, topic, partition in expected}:
        logs = sorted(folder.glob(f"{topic}-{partition}/*.log"))
        last = [batch.last_offset for log in logs for batch in batches(log.read_bytes())]
        ends[topic, partition] = max([int(logs[-1].stem), *(offset + 1 for offset in last)]) if logs else None
    actual = {
        (group, topic, partition): (committed, end)
        for group, topic, partition, committed, end, _ in lag(folder)
    }
    assert {key: committed for key, (committed, _) in actual.items()} == expected
    assert {(topic, partition): end for (_, topic, partition), (_, end) in actual.items()} == ends
    assert any(end is not None for end in ends.values())


def test_the_table_has_both(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    put(folder, "orders-0", pipeline_steps.segment(range(10)))
    log = put(folder, "__consumer_offsets-7", commits([("g", "orders", 0, 3)]))
    capture = Path(__file__).parents[1] / "data/captures/confluent__rdmock__group-range.pcap"
    (folder / "x.pcap").write_bytes(capture.read_bytes())
    out = tmp_path / "out"
    pipeline_steps.run(folder, out, tables=("lag",))
    actual = pipeline_steps.table_rows(out, "lag")
    [row] = [row for row in actual if row["input_file"] == str(log)]
    assert (row["group_id"], row["committed_offset"], row["end_offset"], row["lag"], row["log_offset"]) == (
        "g",
        3,
        10,
        7,
        0,
    )
    assert row["time"].timestamp() * 1000 == START + 9
    assert {row["input_file"] for row in actual} == {str(log), str(folder / "x.pcap")}
    rerun = pipeline_steps.run(folder, out, tables=("lag",))
    assert rerun.reused == rerun.units
    put(folder, "orders-0", pipeline_steps.segment(range(10, 12)), 10)
    pipeline_steps.run(folder, out, tables=("lag",))
    assert [row["lag"] for row in pipeline_steps.table_rows(out, "lag") if row["input_file"] == str(log)] == [
        9
    ]
