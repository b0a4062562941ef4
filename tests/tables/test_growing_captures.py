"""Captures that are still written: each frame is in one micro-batch, with what one decode of the whole says,
whatever bytes are there when, under rotation, restarts and replays. Without Spark."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.errors import CoordwireError
from coordwire.tables.columns import FRAMES
from coordwire.tables.options import Options
from coordwire.tables.readers.files import File, find_files
from coordwire.tables.readers.growing_captures import (
    GrowingCaptures,
    Listing,
    growing_offset,
    next_growing_offset,
)
from coordwire.tables.readers.sources import SOURCES, plan, read

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
COLUMNS = [column.name for column in FRAMES if column.name != "input_file"]
NAMES = ("kpy__tansu__group-range", "confluent__noida__sasl")
Rows = list[dict[str, Any]]


def of_source(name: str, path: Path) -> Rows:
    """The rows of one decode of the whole."""
    source, options = SOURCES[name], Options(paths=(str(path),))
    columns = [column.name for column in source.columns if column.name != "input_file"]
    parts = [part for group in plan(source, options) for part in group]
    return [row for batch in read(source, parts, options, columns) for row in batch.to_pylist()]


class Stream:
    """A query over a folder: it has a log of offsets, and loses all else when it is killed."""

    def __init__(self, folder: Path, source: str = "kafka-capture", **options: Any) -> None:
        self.options = Options(paths=(str(folder),), **options)
        self.source = SOURCES[source]
        self.columns = [column.name for column in self.source.columns if column.name != "input_file"]
        self.offset = growing_offset()
        self.rows: Rows = []
        self.start()

    def start(self) -> None:
        self.listing = Listing()
        self.captures = GrowingCaptures(self.source, self.options, self.columns)

    def kill(self) -> None:
        self.captures.close()
        self.start()

    def batch(self, *, killed: bool = False, knows_start: bool = True, most: int | None = None) -> None:
        chains = self.listing.chains(find_files(self.options.paths))
        start = self.offset if knows_start else growing_offset()
        end = json.loads(json.dumps(next_growing_offset(start, chains, most)))
        if end == self.offset:
            return
        if killed:  # its rows are made, and lost
            list(self.captures.rows(self.offset, end))
            self.kill()
        self.rows += [row for b in self.captures.rows(self.offset, end) for row in b.to_pylist()]
        self.offset = end


def packets(path: Path) -> Iterator[tuple[int, int]]:
    """Where each packet of a pcap begins and ends in the file, its header included."""
    with path.open("rb") as stream:
        for packet in read_packets(stream):
            assert isinstance(packet, Packet)
            yield packet.position - 16, packet.position + len(packet.data)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_grows_at_any_byte(tmp_path: Path, name: str) -> None:
    path, rng = CAPTURES / f"{name}.pcap", random.Random(name)
    data, stream = path.read_bytes(), Stream(tmp_path)
    for cut in [*sorted(rng.sample(range(len(data)), 8)), len(data)]:
        (tmp_path / "x.pcap").write_bytes(data[:cut])
        stream.batch(killed=rng.random() < 0.3, knows_start=rng.random() < 0.7)
    assert stream.rows == of_source("kafka-capture", path)
    assert len(stream.rows) > 20


@pytest.mark.parametrize("name", NAMES[:1])
@pytest.mark.parametrize("pattern", ["x.pcap{}", "x.pcap{:02}", "x-2026-11-27_02.31.{:02}.pcap"])
def test_rotated_files_go_on_with_their_connections(tmp_path: Path, name: str, pattern: str) -> None:
    """As `tcpdump -C`, `-W` and `-G` name them; files end between packets, and batches anywhere."""
    path, rng = CAPTURES / f"{name}.pcap", random.Random(f"{name} {pattern}")
    data, ends, stream = path.read_bytes(), [end for _, end in packets(path)], Stream(tmp_path)
    cuts = [24, *sorted(rng.sample(ends[:-1], 5)), len(data)]
    for number in range(6):
        content = data[:24] + data[cuts[number] : cuts[number + 1]]
        file = tmp_path / pattern.format(number)
        if rng.random() < 0.7:
            file.write_bytes(content[: rng.randrange(len(content))])
            stream.batch(killed=rng.random() < 0.3)
        file.write_bytes(content)
        if rng.random() < 0.7:
            stream.batch(killed=rng.random() < 0.3, most=rng.choice([None, 5000]))
    for _ in range(10):
        stream.batch(most=20_000)
    assert stream.rows == of_source("kafka-capture", path)


@pytest.mark.parametrize("source", ["kafka-errors", "kafka-quarantine"])
def test_other_sources(tmp_path: Path, source: str) -> None:
    """Of a capture that lacks a packet."""
    path, stream = CAPTURES / "kpy__tansu__group-range.pcap", Stream(tmp_path, source)
    begin, end = list(packets(path))[110]
    data = path.read_bytes()
    data = data[:begin] + data[end:]
    for cut in [2000, begin - 50, begin + 10, len(data)]:
        (tmp_path / "x.pcap").write_bytes(data[:cut])
        stream.batch()
    whole = tmp_path.parent / f"{tmp_path.name}.pcap"
    whole.write_bytes(data)
    expected = of_source(source, whole)
    assert (stream.rows, bool(expected)) == (expected, True)


def test_a_ring_whose_names_are_used_again(tmp_path: Path) -> None:
    """The query keeps up: nothing is lost. A restart reports what it can't read again, and goes on."""
    path = CAPTURES / "kpy__tansu__group-range.pcap"
    data, ends, stream = path.read_bytes(), [end for _, end in packets(path)], Stream(tmp_path)
    quarantine = Stream(tmp_path, "kafka-quarantine")
    cuts = [24, *ends[len(ends) // 8 :: len(ends) // 8][:7], len(data)]
    for number in range(8):
        (tmp_path / f"x.pcap{number % 2}").write_bytes(data[:24] + data[cuts[number] : cuts[number + 1]])
        stream.batch()
        if number == 4:
            quarantine.batch()
    assert stream.rows == of_source("kafka-capture", path)
    quarantine.kill()
    quarantine.batch()
    reasons = {row["reason"] for row in quarantine.rows}
    assert "it was overwritten before it was read" in reasons


@pytest.mark.parametrize("knows_start", [True, False])
def test_files_that_are_compressed_after_their_rotation(tmp_path: Path, *, knows_start: bool) -> None:
    """As by `tcpdump -z gzip`: their frames were read."""
    path, stream = CAPTURES / f"{NAMES[0]}.pcap", Stream(tmp_path)
    data, ends = path.read_bytes(), [end for _, end in packets(path)]
    cuts = [24, *ends[20:100:20], len(data)]
    for number, (begin, end) in enumerate(pairwise(cuts)):
        (tmp_path / f"x.pcap{number}").write_bytes(data[:24] + data[begin:end])
        stream.batch(knows_start=knows_start)
        if number:
            done = tmp_path / f"x.pcap{number - 1}"
            (tmp_path / f"{done.name}.gz").write_bytes(gzip.compress(done.read_bytes()))
            done.unlink()
            stream.batch(knows_start=knows_start)
    assert stream.rows == of_source("kafka-capture", path)


def test_names_that_are_reused_are_other_files(tmp_path: Path) -> None:
    path = CAPTURES / "kpy__tansu__group-range.pcap"
    data, ends, stream = path.read_bytes(), [end for _, end in packets(path)], Stream(tmp_path)
    half = ends[len(ends) // 2]
    (tmp_path / "x.pcap").write_bytes(data[:half])
    stream.batch()
    (tmp_path / "x.pcap").write_bytes(data[:24] + data[half:])
    stream.batch()
    assert stream.rows == of_source("kafka-capture", path)
    (name,) = stream.offset["captures"]
    assert [file[2] for file in stream.offset["captures"][name]] == [len(data) - half + 24]


def test_what_goes_before_it_was_read_is_reported(tmp_path: Path) -> None:
    path, stream = CAPTURES / "kpy__tansu__group-range.pcap", Stream(tmp_path, "kafka-quarantine")
    (tmp_path / "x.pcap").write_bytes(path.read_bytes())
    end = next_growing_offset(stream.offset, stream.listing.chains(find_files([str(tmp_path)])))
    (tmp_path / "x.pcap").unlink()
    [row] = [row for b in stream.captures.rows(stream.offset, end) for row in b.to_pylist()]
    assert (row["reason"], row["position"]) == ("No such file or directory", 0)
    strict = Stream(tmp_path, "kafka-quarantine", mode="failfast")
    with pytest.raises(CoordwireError, match="No such file"):
        list(strict.captures.rows(stream.offset, end))


def test_captures_beside_each_other_are_two(tmp_path: Path) -> None:
    """So are files that are no captures yet, or never."""
    for name in ("eth0.pcap", "eth1.pcap"):
        (tmp_path / name).write_bytes((CAPTURES / "kpy__tansu__group-range.pcap").read_bytes())
    (tmp_path / "short.pcap").write_bytes(b"\xd4\xc3\xb2\xa1")
    (tmp_path / "notes.pcap").write_bytes(b"not a capture" * 10)
    stream = Stream(tmp_path)
    stream.batch()
    expected = of_source("kafka-capture", CAPTURES / "kpy__tansu__group-range.pcap")
    assert stream.rows == expected * 2


def test_an_offset_of_another_kind() -> None:
    with pytest.raises(CoordwireError, match="start with a new checkpoint"):
        next_growing_offset({"version": 2, "read": ""}, {})
    with pytest.raises(CoordwireError, match="expected a local file"):
        Listing().chains([File("s3://bucket/x.pcap", 9, 9)])
