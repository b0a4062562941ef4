"""Segments of a store, read in ranges: the rows of local files, by no more bytes and requests than needed."""

from __future__ import annotations

import pickle
import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")
pytest.importorskip("fsspec", reason="fsspec isn't installed")

from coordwire.records import Record, batches, encode_batch
from coordwire.tables.options import Options
from coordwire.tables.readers import object_ranges, segment_reader
from coordwire.tables.readers.rows import Bad
from coordwire.tables.readers.segment_rows import read_batches, read_records
from coordwire.tables.readers.sources import SOURCES, SourceDefinition, plan, read
from coordwire.tables.readers.splits import Part
from coordwire.tables.stores import RemoteStream, StoreError
from tests.tables.made_segments import START, partition, segment
from tests.tables.moto_s3 import LocalS3, Request, local_s3

LOG, INDEX = f"{0:020}.log", f"{0:020}.index"
COLUMNS = ["log_offset", "value", "batch_position"]
Rows = tuple[list[Any], list[Any], list[Any]]


def index_of(data: bytes, every: int = 1) -> bytes:
    """The index that a broker keeps beside these batches."""
    actual = list(batches(data))[1::every]
    return b"".join(struct.pack(">ii", item.last_offset, item.position) for item in actual)


def rows_of(path: str, options: Options) -> Rows:
    """Records, batches by their headers, and bad ranges of both."""
    records: list[Any] = []
    heads: list[Any] = []
    damaged: list[Any] = []
    for group in plan(SOURCES["kafka-segment"], replace(options, paths=(path,))):
        for part in group:
            for actual, items in (
                (records, read_records(part, options, COLUMNS)),
                (heads, read_batches(part, options, ["position", "base_offset", "max_timestamp_ms"])),
            ):
                for item in items:
                    if isinstance(item, Bad):
                        damaged.append((actual is records, item.start, item.end, item.reason, item.data))
                    else:
                        actual += map(tuple, zip(*item.to_pydict().values(), strict=True))
    return records, heads, sorted(damaged)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 1 << 32),
    st.lists(st.integers(0, 1 << 20), max_size=2),
    st.lists(st.tuples(st.integers(0, 39), st.integers(7, 24), st.integers(0, 7)), max_size=3),
    st.integers(700, 5000),
    st.sampled_from([
        {}, {"starting_offset": 90}, {"ending_offset": 70}, {"starting_offset": 50, "ending_offset": 120},
        {"starting_timestamp": START + 100_000}, {"checksums": True},
    ]),
    st.sampled_from([(64, 256, 1 << 30), (4096, 8192, 1), (200, 1 << 20, 40)]),
    st.integers(0, 300),
)  # fmt: skip
def test_the_rows_of_local_files_by_any_split(
    tmp_path_factory: pytest.TempPathFactory, seed: int, flips: list[int], heads: list[tuple[int, int, int]],
    size: int,
    request: dict[str, Any], tuning: tuple[int, int, int], cut: int,
) -> None:  # fmt: skip
    import fsspec

    data = bytearray(segment(random.Random(seed), 40))
    index = index_of(bytes(data), 2)
    positions = [batch.position for batch in batches(bytes(data))]
    for number, at, bit in heads:  # lengths, magic: what the way from batch to batch goes by
        data[positions[number] + at] ^= 1 << bit
    for flip in flips:
        data[flip // 8 % len(data)] ^= 1 << flip % 8
    del data[len(data) - cut :]
    data += bytes(cut // 2)
    place = partition(tmp_path_factory.mktemp("log"), "orders", 0, b"")
    for path in place.iterdir():
        path.unlink()
    (place / LOG).write_bytes(data)
    (place / INDEX).write_bytes(index)
    memory = fsspec.filesystem("memory")
    memory.pipe({f"/logs/orders-0/{LOG}": bytes(data), f"/logs/orders-0/{INDEX}": index})
    options = Options(**request)
    with ExitStack() as stack:
        for name, value in zip(("LEAST", "MOST", "IN_TURN"), tuning, strict=True):
            stack.enter_context(mock.patch.object(object_ranges, name, value))
        stack.enter_context(mock.patch.object(object_ranges, "SMALLEST", 1))
        stack.enter_context(mock.patch.object(segment_reader, "LEAD", 600))
        complete = rows_of(str(place), options)
        assert rows_of("memory://logs", options) == complete
        assert rows_of("memory://logs", replace(options, split_size=size)) == complete
        assert rows_of(str(place), replace(options, split_size=size)) == complete


# --- how much is read ---


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1 << 32), st.integers(1, 39), st.integers(-1, 1) | st.integers(2, 60), st.booleans())
def test_a_stream_goes_on_where_it_would_in_a_local_file(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int, extra: int, indexed: bool
) -> None:
    import fsspec

    data = segment(random.Random(seed), 40)
    ends = [0, *(item.position + item.size for item in batches(data))]
    read = min(ends[count] + extra, len(data))
    local = tmp_path_factory.mktemp("grown")
    (local / LOG).write_bytes(data)
    store = fsspec.filesystem("memory")
    store.pipe(f"/grown/{LOG}", data)
    if indexed:
        (local / INDEX).write_bytes(index_of(data))
        store.pipe(f"/grown/{INDEX}", index_of(data))
    actual = []
    for place in (str(local), "memory://grown"):
        index = f"{place}/{INDEX}" if indexed else None
        with mock.patch.object(segment_reader, "LEAD", 64):
            part = Part("segment", f"{place}/{LOG}", len(data), 0, len(data), index=index)
            actual.append(segment_reader.resume_position(part, read))
    store.rm("/grown", recursive=True)
    assert actual[0] == actual[1] <= read
    assert actual[0] == max(end for end in ends if end <= read)


@pytest.fixture(scope="module")
def s3() -> Iterator[LocalS3]:
    with local_s3() as server:
        yield server


def batches_of(count: int, size: int, size_each: int = 4) -> bytes:
    """Batches of about so many bytes, and records in each."""
    value = random.Random(1).randbytes(size // size_each)
    return b"".join(
        encode_batch(
            [Record(timestamp=START + number, value=value)] * size_each, base_offset=number * size_each
        )
        for number in range(count)
    )


def read_source(name: str, path: str, **asked: Any) -> list[dict[str, Any]]:
    options = Options(paths=(path,), **asked)
    columns = ["log_offset"] if name == "kafka-segment" else ["base_offset", "size"]
    source = SOURCES[name]
    return [row for group in plan(source, options) for batch in read(source, group, options, columns)
            for row in batch.to_pylist()]  # fmt: skip


def cost(actual: list[Request]) -> tuple[int, int]:
    """Bytes and requests."""
    return sum(item.size for item in actual), len(actual)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "total"), [(10_000, 2_000_000), (100_000, 8_000_000)])
def test_the_last_of_a_segment_and_its_headers(
    s3: LocalS3, size: int, total: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_reader, "LEAD", total // 100)
    count = total // size
    data = batches_of(count, size)
    bucket = f"sized-{size}"
    s3.put(bucket, {f"orders-0/{LOG}": data, f"orders-0/{INDEX}": index_of(data)})
    last = 4 * count
    first = last - last // 100
    with s3.counted() as actual:
        rows = read_source("kafka-segment", f"s3://{bucket}", starting_offset=first)
    assert [row["log_offset"] for row in rows] == list(range(first, last))
    spent, requests = cost(actual)
    assert spent < 0.03 * len(data) + 2 * size
    assert requests < 40
    with s3.counted() as actual:
        rows = read_source("kafka-segment", f"s3://{bucket}", ending_offset=last // 100)
    assert [row["log_offset"] for row in rows] == list(range(last // 100))
    assert cost(actual)[0] < 0.05 * len(data) + 2 * size
    for split in (128 << 20, total // 3):
        with s3.counted() as actual:
            rows = read_source("kafka-segment-batches", f"s3://{bucket}", split_size=split)
        assert [row["base_offset"] for row in rows] == list(range(0, last, 4))
        spent, requests = cost(actual)
        assert spent < 0.1 * len(data) + 8 * size
        assert requests < 2 * count + 100
    with s3.counted() as actual:
        rows = read_source("kafka-segment", f"s3://{bucket}", split_size=total // 3)
    assert [row["log_offset"] for row in rows] == list(range(last))
    spent, requests = cost(actual)
    assert spent < 1.9 * len(data)
    assert requests < 80


@pytest.mark.parametrize(
    ("name", "total", "share", "most"), [("end", 2_000_000, 0.03, 6), ("half", 6_000_000, 0.5, 12)]
)
def test_what_an_index_leads_to_takes_few_requests(
    s3: LocalS3, name: str, total: int, share: float, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes: the records asked for, and a few headers."""
    monkeypatch.setattr(object_ranges, "MOST", 1 << 20)  # windows as many as of a file eight times as large
    data = batches_of(total // 16_384, 16_384)
    s3.put(f"few-{name}", {f"orders-0/{LOG}": data, f"orders-0/{INDEX}": index_of(data)})
    last = total // 16_384 * 4
    first = int(last - last * share)
    with s3.counted() as actual:
        rows = read_source("kafka-segment", f"s3://few-{name}", starting_offset=first)
    assert [row["log_offset"] for row in rows] == list(range(first, last))
    assert sum(item.method == "GET" for item in actual) <= most
    assert cost(actual)[0] < share * len(data) + 4 * 16_384


def test_headers_without_an_index(s3: LocalS3) -> None:
    large, small = batches_of(40, 100_000), batches_of(9000, 300, 1)
    s3.put("noindex", {f"large-0/{LOG}": large, f"small-0/{LOG}": small})
    with s3.counted() as actual:
        assert len(read_source("kafka-segment-batches", "s3://noindex/large-0", split_size=1_000_000)) == 40
    spent, requests = cost(actual)
    assert spent < 0.1 * len(large)
    assert requests < 60
    with s3.counted() as actual:
        assert len(read_source("kafka-segment-batches", "s3://noindex/small-0")) == 9000
    spent, requests = cost(actual)
    assert spent < 1.2 * len(small)
    assert requests < 30


def misleading(count: int, size: int) -> bytes:
    """Batches whose values are batches, damaged here and there, and bytes that are none between them."""
    rng, nested = random.Random(7), batches_of(4, size // 8, 1)
    data = b""
    for number in range(count):
        value = nested + rng.randbytes(size - len(nested))
        batch = bytearray(encode_batch([Record(timestamp=START, value=value)], base_offset=number))
        if number % 37 == 5:
            batch[rng.choice([8, 9, 11, 16, len(batch) - 3])] ^= 1 << rng.randrange(8)
        data += bytes(batch) + rng.randbytes(3 * size if number % 41 == 7 else 0)
    return data


@pytest.mark.slow
@pytest.mark.parametrize("size", [2000, 6000])
def test_headers_that_scouts_find(
    s3: LocalS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Without an index, one after the other they would take too long; whatever looks like one, rows are
    those of local files."""
    for name, value in {"SCOUTED": 20, "STRETCH": 8, "SMALLEST": 64, "LEAST": 4096}.items():
        monkeypatch.setattr(object_ranges, name, value)
    plain, unusual = batches_of(150, size), misleading(80, size)
    bucket = f"scouted-{size}"
    s3.put(bucket, {f"plain-0/{LOG}": plain, f"odd-0/{LOG}": unusual})
    for name, data in (("plain", plain), ("odd", unusual)):
        (tmp_path / f"{name}-0").mkdir()
        (tmp_path / f"{name}-0" / LOG).write_bytes(data)
        for options in (Options(), Options(starting_offset=60)):
            actual = rows_of(f"s3://{bucket}/{name}-0", options)
            assert actual == rows_of(str(tmp_path / f"{name}-0"), options)
    alone: list[int] = []
    fetch = object_ranges.Ranges._fetch

    def fetched(self: object_ranges.Ranges, start: int, end: int) -> None:
        alone.append(start)
        fetch(self, start, end)

    monkeypatch.setattr(object_ranges.Ranges, "_fetch", fetched)
    with s3.counted() as requests:
        assert len(read_source("kafka-segment-batches", f"s3://{bucket}/plain-0")) == 150
    spent, _ = cost(requests)
    assert spent < 0.25 * len(plain) + 4096  # a scout of 8 headers looks at the whole of more than one batch
    assert len(alone) < 30  # the first ones, the last ones, for which no scout is sent, and the file's end


def test_bytes_grow_as_the_file_does(s3: LocalS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_reader, "LEAD", 50_000)
    spent = []
    for times in (1, 2, 4):
        data = bytearray(batches_of(40 * times, 20_000))
        for at in range(5000, len(data), 300_000):
            data[at] ^= 1
        bucket = f"grown-{times}"
        s3.put(bucket, {f"orders-0/{LOG}": bytes(data), f"orders-0/{INDEX}": index_of(bytes(data))})
        with s3.counted() as actual:
            read_source("kafka-quarantine", f"s3://{bucket}")
            read_source("kafka-segment-batches", f"s3://{bucket}", split_size=500_000)
        spent.append(cost(actual))
    for (small, few), (large, many) in pairwise(spent):
        assert large < 2.5 * small
        assert many < 2.5 * few + 20


# --- objects that change ---


def all_of(
    source: SourceDefinition, parts: list[tuple[Part, ...]], options: Options, column: str
) -> list[Any]:
    return [value for group in parts for batch in read(source, group, options, [column])
            for value in batch.column(0).to_pylist()]  # fmt: skip


@pytest.mark.parametrize("name", ["kafka-segment", "kafka-segment-batches", "kafka-offsets"])
def test_an_object_that_is_replaced_meanwhile(
    s3: LocalS3, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, other = batches_of(30, 100_000), batches_of(30, 100_000, 2)
    assert len(item) != len(other)
    key = f"__consumer_offsets-0/{LOG}"
    for data in (other, item[:-1] + bytes([item[-1] ^ 1])):
        s3.put("replaced", {key: item})
        options = Options(paths=("s3://replaced",), split_size=1 << 20)
        source = SOURCES[name]
        columns = {"kafka-segment": "log_offset", "kafka-offsets": "log_offset"}.get(name, "base_offset")
        parts = plan(source, options)
        gets = 0

        def replacing(method: str, path: str, data: bytes = data) -> None:
            nonlocal gets
            gets += method == "GET" and path.endswith(LOG)
            if gets == 2:
                s3.put("replaced", {key: data})

        try:
            monkeypatch.setattr(RemoteStream, "BLOCK", 1 << 20)
            monkeypatch.setattr(object_ranges, "MOST", 1 << 20)
            s3.before = replacing
            quarantine = SOURCES["kafka-quarantine"]
            with pytest.raises(OSError, match="the object was replaced while it was read"):
                all_of(source, parts, replace(options, mode="failfast"), columns)
            s3.put("replaced", {key: data})
            reasons = set(all_of(quarantine, parts, options, "reason"))
        finally:
            s3.before = None
        if len(data) != len(item):  # the listing says so
            assert reasons == {"the object was replaced while it was read"}


def test_a_stream_of_an_object_that_is_replaced(s3: LocalS3) -> None:
    data = random.Random(1).randbytes(10_000)
    s3.put("stream", {"x.pcap": data})
    with mock.patch.object(RemoteStream, "BLOCK", 3000), RemoteStream("s3://stream/x.pcap") as stream:
        assert stream.read(3500) == data[:3000]
        s3.put("stream", {"x.pcap": data[::-1]})
        with pytest.raises(OSError, match="the object was replaced while it was read"):
            stream.readall()


def test_what_cannot_be_read_is_quarantine_and_who_does_not_answer_fails(
    s3: LocalS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"orders-0/{LOG}"
    s3.put("failing", {key: batches_of(30, 100_000)})
    options, quarantine = Options(paths=("s3://failing",)), SOURCES["kafka-quarantine"]
    parts = plan(quarantine, options)
    s3.denied.add("failing")
    [reason] = all_of(quarantine, parts, options, "reason")
    assert reason.startswith("access was denied; set AWS_ACCESS_KEY_ID")
    s3.denied.remove("failing")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for name in ("kafka-quarantine", "kafka-segment"):
        with pytest.raises(StoreError, match="the store can't be reached") as info:
            all_of(SOURCES[name], parts, options, "reason" if "q" in name else "log_offset")
        assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)
    monkeypatch.undo()
    s3.remove("failing", key)
    assert all_of(quarantine, parts, options, "reason") == ["there is no such file"]
