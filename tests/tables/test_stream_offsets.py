"""Each row of a growing folder comes once: whatever the times of files, the order of arrivals and listings,
kills, restarts and replays. Without Spark."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from pyspark.sql.types import LongType, StringType, StructField, StructType

from coordwire.errors import CoordwireError
from coordwire.records import batches
from coordwire.spark.sources import streaming
from coordwire.tables.options import Options
from coordwire.tables.readers import stream_offsets
from coordwire.tables.readers.files import File
from coordwire.tables.readers.stream_offsets import (
    Arrival,
    ReadFiles,
    arrivals_between,
    initial_offset,
    next_offset,
)
from tests.broker_sample import SAMPLE, unpack
from tests.tables.made_segments import partition, segment

KINDS = ("segment", "capture")
NAMES = (f"orders-0/{0:020}.log", f"orders-0/{7:020}.log", f"orders-1/{0:020}.log", "a.pcap", "b.pcap")
SCHEMA = StructType([StructField("log_offset", LongType())])


# --- decisions on listings ---


class Folder:
    """Files by their live paths, and a stream over them; a row is a byte of a file."""

    def __init__(self, knows_start: bool) -> None:
        self.knows_start = knows_start
        self.files: dict[str, File] = {}
        self.ever: dict[str, int] = {}
        self.rows: Counter[tuple[str, int]] = Counter()
        self.log: list[dict[str, Any]] = []
        self.committed = 0
        self.known, self.remembered = initial_offset(), ReadFiles()

    def arrive(self, name: str, size: int, modified: int) -> None:
        """A file is moved in; one that was there before comes back as it was."""
        size = self.ever.setdefault(name, size)
        self.files[name] = File(f"/in/{name}", size, modified)

    def touch(self, name: str, modified: int) -> None:
        if name in self.files:
            self.files[name] = replace(self.files[name], modified=modified)

    def grow(self, name: str, size: int, modified: int) -> None:
        if name in self.files and name.endswith(".log"):
            self.ever[name] += size
            self.files[name] = replace(self.files[name], size=self.ever[name], modified=modified)

    def rename(self, name: str) -> None:
        if name in self.files and name.endswith(".log"):
            self.files[name] = replace(self.files[name], path=f"/in/{name}.deleted")

    def delete(self, name: str) -> None:
        self.files.pop(name, None)

    def batch(self, most: int | None, killed: bool) -> None:
        """A micro-batch; if it is killed, its rows are not committed, and a restart runs it again."""
        start = self.log[-1] if self.log else initial_offset()
        if len(self.log) == self.committed:
            if self.knows_start:
                end = next_offset(start, self.files.values(), KINDS, most=most)
            else:
                end = next_offset(self.known, self.files.values(), KINDS, remembered=self.remembered)
            if end == start:
                return
            self.log.append(json.loads(json.dumps(end)))
        else:
            start = self.log[-2] if len(self.log) > 1 else initial_offset()
        end = self.log[-1]
        actual = arrivals_between(start, end)
        self.known, self.remembered = end, stream_offsets.read_between(start, end)
        if killed:
            self.restart()
            return
        for arrival in actual:
            if arrival.change is None:
                name = arrival.file.path.removeprefix("/in/").removesuffix(".deleted")
                self.rows.update((name, byte) for byte in range(arrival.read, arrival.file.size))
        self.committed = len(self.log)

    def restart(self) -> None:
        self.known, self.remembered = initial_offset(), ReadFiles()


names, times, sizes = st.sampled_from(NAMES), st.integers(0, 5), st.integers(1, 4)
steps = st.one_of(
    st.tuples(st.just("arrive"), names, sizes, times),
    st.tuples(st.just("touch"), names, times),
    st.tuples(st.just("grow"), names, sizes, times),
    st.tuples(st.just("rename"), names),
    st.tuples(st.just("batch"), st.none() | st.integers(1, 2), st.booleans()),
    st.tuples(st.just("restart")),
)


@given(st.booleans(), st.lists(steps, max_size=30))
@example(True, [("arrive", NAMES[0], 3, 5), ("batch", None, False), ("arrive", NAMES[1], 3, 1)])
@example(False, [("arrive", "a.pcap", 3, 5), ("batch", None, True), ("arrive", "b.pcap", 3, 1)])
def test_each_row_once(knows_start: bool, story: list[tuple[Any, ...]]) -> None:
    folder = Folder(knows_start)
    for name, *arguments in story:
        getattr(folder, name)(*arguments)
    for _ in range(2 * len(NAMES) + 2):
        folder.batch(None, False)
    assert folder.rows == Counter((name, byte) for name, size in folder.ever.items() for byte in range(size))
    before = len(folder.log)
    folder.batch(None, False)
    assert len(folder.log) == before


@given(st.booleans(), st.lists(steps | st.tuples(st.just("delete"), names), max_size=30))
def test_what_is_gone_may_come_back(knows_start: bool, story: list[tuple[Any, ...]]) -> None:
    """Never a row twice, and none is missing of what was there when it was listed."""
    folder = Folder(knows_start)
    for name, *arguments in story:
        if not knows_start and (name == "restart" or (name == "batch" and arguments[1])):
            continue  # then only what is there is known
        getattr(folder, name)(*arguments)
        if name in ("arrive", "grow"):
            folder.batch(None, False)
            folder.batch(None, False)
    assert set(folder.rows.values()) <= {1}
    assert set(folder.rows) == {(name, byte) for name, size in folder.ever.items() for byte in range(size)}


def test_what_is_gone_is_remembered_after_a_restart() -> None:
    """By Sparks that don't say where the stream is, from the batch on that follows the restart."""
    folder = Folder(False)
    for name in ("a.pcap", "b.pcap", "a.pcap"):
        folder.arrive(name, 3, 1)
        folder.batch(None, False)
        folder.delete(name)
        folder.restart() if name == "a.pcap" else None
    assert folder.rows == Counter((name, byte) for name in ("a.pcap", "b.pcap") for byte in range(3))


def files_of(**sizes: int) -> list[File]:
    return [File(f"/in/{name}.pcap", size, number) for number, (name, size) in enumerate(sizes.items())]


def test_a_checkpoint_of_another_format() -> None:
    with pytest.raises(CoordwireError, match=r"offset is of format 3, expected 2: .*a new checkpoint"):
        next_offset({"version": 3}, [], KINDS)
    with pytest.raises(CoordwireError, match="offset is of format None, expected 2"):
        arrivals_between({}, {})


def test_what_changed_is_reported_once() -> None:
    start = next_offset(initial_offset(), files_of(a=10, b=20), KINDS)
    end = next_offset(start, files_of(a=10, b=25), KINDS)
    [arrival] = arrivals_between(start, end)
    assert arrival.change == "it had 20 bytes when it was read and has 25 now; it is not read again"
    assert next_offset(end, files_of(a=10, b=25), KINDS) is end


def test_what_could_not_be_read_comes_when_it_can() -> None:
    blind = [File("/in/a.pcap", 0, 1, trouble="Permission denied")]
    start = next_offset(initial_offset(), blind, KINDS)
    assert [a.file for a in arrivals_between(initial_offset(), start)] == blind
    assert next_offset(start, blind, KINDS) is start
    end = next_offset(start, files_of(a=10), KINDS)
    assert arrivals_between(start, end) == [Arrival(File("/in/a.pcap", 10, 0))]
    assert next_offset(end, blind, KINDS) is end


def test_other_files_are_no_progress() -> None:
    files = [File(f"/in/orders-0/{0:020}.index", 8, 1), File("/in/notes.txt", 8, 1), *files_of(empty=0)]
    start = initial_offset()
    assert next_offset(start, files, KINDS) is start


def test_how_large_an_offset_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """24 characters a file; those that are gone go at last, the first ones first."""
    monkeypatch.setattr(stream_offsets, "KEPT_GONE", 10)
    offset = initial_offset()
    for number in range(40):
        offset = next_offset(offset, files_of(**{f"f{number}": 9}), KINDS)
    assert len(offset["read"]) == 24 * 11
    rerun = next_offset(offset, files_of(f30=9), KINDS)
    assert rerun is offset
    rerun = next_offset(offset, files_of(f20=9), KINDS)
    assert rerun is not offset


# --- files on disk ---


def reader(folder: Path, **options: Any) -> Any:
    return streaming.stream_reader("kafka-segment", Options(paths=(str(folder),), **options), SCHEMA)


def step(stream: Any, start: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    end = next_offset(start, stream._files(), KINDS)
    return end, read(stream, start, end)


def read(stream: Any, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    parts = stream.partitions(start, end)
    return [row["log_offset"] for part in parts for batch in stream.read(part) for row in batch.to_pylist()]


@given(st.lists(st.integers(1, 20_000), max_size=5), st.sampled_from([700, 4096, 1 << 30]), st.booleans())
def test_a_segment_that_grows_at_any_byte(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], split: int, indexed: bool
) -> None:
    data = segment(random.Random(3), 25)
    folder = tmp_path_factory.mktemp("grows")
    [path] = partition(folder, "orders", 0, b"").glob("*.log")
    if indexed:
        heads = [(batch.base_offset, batch.position) for batch in batches(data)]
        entries = b"".join(o.to_bytes(4, "big") + p.to_bytes(4, "big") for o, p in heads[1:])
        path.with_suffix(".index").write_bytes(entries)
    stream, offset, rows = reader(folder, split_size=split), initial_offset(), list[int]()
    for cut in [*sorted(cuts), len(data)]:
        path.write_bytes(data[:cut])
        end = next_offset(offset, stream._files(), KINDS)
        path.write_bytes(data[: cut + 300])  # it grows meanwhile
        rows += read(stream, offset, end)
        offset = end
    rows += step(stream, offset)[1]
    assert sorted(rows) == [record.offset for batch in batches(data) for record in batch]


def test_a_coordinators_log_that_grows(tmp_path: Path) -> None:
    unpack(SAMPLE, tmp_path)
    path = max(tmp_path.glob("data/__consumer_offsets-*/*.log"), key=lambda path: path.stat().st_size)
    data, schema = path.read_bytes(), StructType([StructField("log_offset", LongType())])
    stream: Any = streaming.stream_reader("kafka-offsets", Options(paths=(str(path.parent),)), schema)
    offset, rows = initial_offset(), list[int]()
    for cut in [1, 200, len(data) // 2, len(data) // 2 + 1, len(data)]:
        path.write_bytes(data[:cut])
        end = next_offset(offset, stream._files(), KINDS)
        actual = [batch for part in stream.partitions(offset, end) for batch in stream.read(part)]
        rows += [row["log_offset"] for batch in actual for row in batch.to_pylist()]
        offset = end
    complete: Any = stream.partitions(initial_offset(), next_offset(initial_offset(), stream._files(), KINDS))
    expected = [
        row["log_offset"] for part in complete for batch in stream.read(part) for row in batch.to_pylist()
    ]
    assert rows == expected
    assert len(expected) > 10


def test_a_replay_reads_the_same(tmp_path: Path) -> None:
    """Though files came, grew and changed their times meanwhile."""
    rng = random.Random(5)
    first, second = segment(rng, 4), segment(rng, 4, 1000)
    folder = partition(tmp_path, "orders", 0, first)
    stream = reader(tmp_path)
    end, rows = step(stream, initial_offset())
    [path] = folder.glob("*.log")
    path.write_bytes(first + segment(rng, 2, 500))
    os.utime(path, (1, 1))
    partition(tmp_path, "orders", 1, second)
    assert read(reader(tmp_path), initial_offset(), json.loads(json.dumps(end))) == rows
    end, extra = step(stream, end)
    expected = sorted(
        record.offset for log in tmp_path.rglob("*.log") for b in batches(log.read_bytes()) for record in b
    )
    assert sorted(rows + extra) == expected


def test_failfast_refuses_what_changed(tmp_path: Path) -> None:
    folder = partition(tmp_path, "orders", 0, segment(random.Random(5), 4))
    stream = reader(tmp_path, mode="failfast")
    start, _ = step(stream, initial_offset())
    [path] = folder.glob("*.log")
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CoordwireError, match="has 100 now; it is not read again"):
        step(stream, start)


def test_quarantine_has_what_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = partition(tmp_path, "orders", 0, segment(random.Random(5), 4))
    [path] = folder.glob("*.log")
    schema = StructType([StructField("reason", StringType())])
    stream: Any = streaming.stream_reader("kafka-quarantine", Options(paths=(str(tmp_path),)), schema)
    start = next_offset(initial_offset(), stream._files(), KINDS)
    path.write_bytes(path.read_bytes()[:100])
    end = next_offset(start, stream._files(), KINDS)
    [part] = stream.partitions(start, end)
    [row] = [row for batch in stream.read(part) for row in batch.to_pylist()]
    assert row["reason"].endswith("bytes when it was read and has 100 now; it is not read again")
    assert row["reason"] in caplog.text
