"""Segments, part by part: the rows of the whole file, whatever the size of a part."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from crc32c import crc32c

from coordwire.errors import CorruptBatch
from coordwire.records import Record, batches, encode_batch
from coordwire.tables.options import Options, parse_options
from coordwire.tables.readers.rows import Bad
from coordwire.tables.readers.segment_rows import BatchRows, read_batches, read_records
from coordwire.tables.readers.sources import SOURCES, plan, read
from tests.broker_sample import OLD_FORMATS, SAMPLE, broker_sample
from tests.tables.made_segments import START, partition, segment

COLUMNS = ["log_offset", "timestamp_ms", "key", "value", "headers", "batch_position", "topic", "partition"]


def read_all(path: Path, options: Options) -> tuple[list[dict[str, Any]], list[Bad], int]:
    """Rows, bad ranges, and the bytes of the batches."""
    rows: list[dict[str, Any]] = []
    damaged: list[Bad] = []
    size = 0
    for group in plan(SOURCES["kafka-segment"], options):
        for part in group:
            for item in read_records(part, options, COLUMNS):
                if isinstance(item, Bad):
                    damaged.append(item)
                else:
                    rows += item.to_pylist()
            for item in read_batches(part, replace(options, checksums=True), ["size"]):
                if not isinstance(item, Bad):
                    size += sum(item.column(0).to_pylist())
    return rows, damaged, size


def plain(data: bytes) -> list[tuple[Any, ...]]:
    """What the plain reader says."""
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for batch in batches(data, on_error="skip")
        for record in batch
    ]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 1 << 20), max_size=4), st.integers(100, 5000))
def test_parts_of_any_size_make_up_the_whole(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: list[int], size: int
) -> None:
    data = bytearray(segment(random.Random(seed), 40))
    for flip in flips:
        data[flip // 8 % len(data)] ^= 1 << flip % 8
    if flips:
        del data[len(data) - flips[0] % 300 :]
    folder = tmp_path_factory.mktemp("log")
    place = partition(folder, "orders", 3, bytes(data))
    complete = read_all(place, Options(paths=(str(folder),)))
    rows, damaged, read_bytes = complete
    actual = [
        (row["log_offset"], row["timestamp_ms"], row["key"], row["value"],
         tuple((pair["key"], pair["value"]) for pair in row["headers"]))
        for row in rows
    ]  # fmt: skip
    assert actual == plain(bytes(data))
    assert read_bytes + sum(item.end - item.start for item in damaged) == len(data)
    assert read_all(place, Options(paths=(str(folder),), split_size=size)) == complete


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.lists(st.integers(0, 1 << 20), max_size=3), st.integers(100, 5000))
def test_counting_is_reading_without_values(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: list[int], size: int
) -> None:
    """Columns that a file has once: as many rows, and the same bad ranges."""
    data = bytearray(segment(random.Random(seed), 40))
    for flip in flips:
        data[flip // 8 % len(data)] ^= 1 << flip % 8
    if flips:
        del data[len(data) - flips[0] % 300 :]
    folder = tmp_path_factory.mktemp("log")
    partition(folder, "orders", 3, bytes(data))
    assert counted(folder, size, ["topic", "input_file"]) == counted(folder, size, COLUMNS)


def counted(folder: Path, size: int, columns: list[str]) -> tuple[int, list[Bad]]:
    rows, damaged = 0, []
    options = Options(paths=(str(folder),), split_size=size)
    for group in plan(SOURCES["kafka-segment"], options):
        for part in group:
            for item in read_records(part, options, columns):
                if isinstance(item, Bad):
                    damaged.append(item)
                else:
                    assert item.schema.names == columns
                    rows += item.num_rows
    return rows, sorted(damaged, key=lambda one: one.start)


@pytest.mark.parametrize("sample", [SAMPLE, OLD_FORMATS])
def test_counting_a_brokers_records(sample: Path) -> None:
    """Compacted ones, control records and old formats too."""
    folder = broker_sample(sample) / "data"
    actual = counted(folder, 1 << 20, ["topic"])
    assert actual == counted(folder, 1 << 20, ["log_offset", "value"])
    assert actual[0] > 300


def test_counting_leaves_out_what_only_decoding_finds(tmp_path: Path) -> None:
    """Batches with right checksums: one that claims more records than it has, one that isn't compressed."""
    valid = encode_batch([Record(value=b"x" * 40)] * 3, codec="gzip")
    damaged = []
    for place, value in ((57, 9), (len(valid) - 20, 255)):
        wrong = bytearray(valid)
        wrong[place + 3 if place == 57 else place] = value
        wrong[17:21] = crc32c(wrong[21:]).to_bytes(4, "big")
        damaged.append(bytes(wrong))
    partition(tmp_path, "orders", 0, valid + damaged[0] + valid + damaged[1] + valid)
    rows, ranges = counted(tmp_path, 1 << 20, ["topic"])
    assert (rows, len(ranges)) == (9, 2)
    assert (rows, ranges) == counted(tmp_path, 1 << 20, ["value"])


def test_counting_decodes_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition(tmp_path, "orders", 0, segment(random.Random(2), 50))
    expected = counted(tmp_path, 1 << 20, ["log_offset"])
    monkeypatch.setattr("coordwire.records.arrow.iter_batches", None)
    assert counted(tmp_path, 1 << 20, ["topic", "partition", "broker_id", "file_state"]) == expected


def test_an_index_shortens_the_walk_and_changes_nothing(tmp_path: Path) -> None:
    import struct

    data = segment(random.Random(5), 300) * 40  # more than the walk's lead
    place = partition(tmp_path, "orders", 0, data)
    options = Options(paths=(str(tmp_path),), split_size=700_000)
    complete = read_all(place, options)
    positions = [batch.position for batch in batches(data)]
    index = place / f"{0:020}.index"
    index.write_bytes(b"".join(struct.pack(">ii", 0, at) for at in positions[1::3]) + bytes(800))
    assert read_all(place, options) == complete
    index.write_bytes(b"".join(struct.pack(">ii", 0, at + 5) for at in positions))  # of another file
    assert read_all(place, options) == complete


def test_the_ranges_asked_for(tmp_path: Path) -> None:
    data = segment(random.Random(2), 50)
    partition(tmp_path, "orders", 0, data)
    all_rows = plain(data)
    low, high = 37, 111
    texts = {"path": str(tmp_path), "startingOffset": str(low), "endingOffset": str(high)}
    rows, _, _ = read_all(tmp_path, parse_options(texts))
    assert [row["log_offset"] for row in rows] == list(range(low, high))
    first, last = START + 17_000, START + 60_500
    times = {"startingTimestamp": "2023-11-14T22:13:37Z", "endingTimestamp": str(last)}
    rows, _, _ = read_all(tmp_path, parse_options({"path": str(tmp_path), **times}))
    assert [row["log_offset"] for row in rows] == [item[0] for item in all_rows if first <= item[1] < last]


def test_topics_and_partitions(tmp_path: Path) -> None:
    item = segment(random.Random(1), 3)
    for topic, number in [("orders", 0), ("orders", 7), ("pay-ments", 7), ("other", 1)]:
        partition(tmp_path, topic, number, item)

    def partitions_of(**texts: str) -> list[tuple[str | None, int | None]]:
        options = parse_options({"path": str(tmp_path), **texts})
        return [(p.topic, p.partition) for group in plan(SOURCES["kafka-segment"], options) for p in group]

    assert len(partitions_of()) == 4
    assert partitions_of(topics="or*") == [("orders", 0), ("orders", 7)]
    assert partitions_of(topics="pay-ments,other") == [("other", 1), ("pay-ments", 7)]
    assert partitions_of(partitions="5-9", topics="orders") == [("orders", 7)]


def test_failfast_raises_at_the_first_bad_byte(tmp_path: Path) -> None:
    data = bytearray(segment(random.Random(3), 20))
    data[-3] ^= 4
    place = partition(tmp_path, "orders", 0, bytes(data))
    with pytest.raises(CorruptBatch, match=r"\.log: bytes \d+ to \d+: the CRC-32C"):
        read_all(place, Options(paths=(str(place),), mode="failfast"))


def test_quarantine_keeps_the_bytes(tmp_path: Path) -> None:
    valid = segment(random.Random(3), 5)
    place = partition(tmp_path, "orders", 0, valid + b"\xff" * 100_000)
    options = Options(paths=(str(place),))
    source = SOURCES["kafka-quarantine"]
    rows = [
        row
        for group in plan(source, options)
        for batch in read(source, group, options, ["position", "end_position", "reason", "bytes"])
        for row in batch.to_pylist()
    ]
    [row] = rows
    assert (row["position"], row["end_position"]) == (len(valid), len(valid) + 100_000)
    assert row["bytes"] == b"\xff" * 65_536


@settings(deadline=None, max_examples=10)
@given(st.integers(0, 1 << 32))
def test_columns_that_are_computed(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Sizes and sequence numbers are those that the plain reader's records and batches have."""
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("log")
    pieces: list[bytes] = []
    for number in range(12):
        magic = rng.choice((1, 2, 2, 2))
        producer: dict[str, Any] = {
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": (1 << 31) - rng.randrange(1, 9),
        }
        records = [
            Record(timestamp=START, key=rng.choice((None, b"", b"ab")), value=rng.choice((None, b"v" * 90)))
            for _ in range(rng.randrange(1, 9))
        ]
        pieces.append(
            encode_batch(
                records, magic=magic, codec=rng.choice(("none", "gzip")), base_offset=10 * number,
                **(producer if magic == 2 and rng.random() < 0.5 else {}),
            )
        )  # fmt: skip
    partition(folder, "orders", 3, b"".join(pieces))
    expected, sizes = [], []
    for batch in batches(b"".join(pieces)):
        first = batch.base_sequence
        expected += [
            (
                record.offset, batch.codec, None if record.key is None else len(record.key),
                None if record.value is None else len(record.value),
                -1 if first < 0 else (first + number) % (1 << 31),
            )
            for number, record in enumerate(batch)
        ]  # fmt: skip
        body = len(batch.payload()) if batch.codec != "none" else 0
        sizes.append((61 if batch.magic == 2 else 0) + body if body else batch.size)
    options = Options(paths=(str(folder),))
    names, heads = ["log_offset", "codec", "key_size", "value_size", "sequence"], ["uncompressed_size"]
    [[part]] = plan(SOURCES["kafka-segment"], options)
    rows = BatchRows(part, heads)
    seen: list[Any] = []
    actual = [
        tuple(row.values())
        for batch in read_records(part, options, names, lambda *head: seen.append(rows.add(*head)))
        if not isinstance(batch, Bad)
        for row in batch.to_pylist()
    ]
    assert actual == expected
    complete = rows.builder.take()
    assert complete is not None
    assert complete.column(0).to_pylist() == sizes
    counted_rows = BatchRows(part, heads)
    for _ in read_records(part, options, ["topic"], lambda *head: seen.append(counted_rows.add(*head))):
        pass
    assert counted_rows.builder.take() == complete
    known = [
        size
        for batch in read_batches(part, options, heads)
        if not isinstance(batch, Bad)
        for size in batch.column(0).to_pylist()
    ]
    assert known == [
        size if batch.codec == "none" else None
        for size, batch in zip(sizes, batches(b"".join(pieces)), strict=True)
    ]
