"""What the pipeline asks of the store that its tables are in: how often, and what is there after a stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow.parquet

from coordwire.errors import CoordwireError
from coordwire.tables.pipeline.engine import as_tasks
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import Unit
from coordwire.tables.readers.splits import Part
from coordwire.tables.storage import unit_attempt
from coordwire.tables.storage.folders import open_output
from tests.tables import pipeline_steps
from tests.tables.moto_s3 import LocalS3, Request, local_s3

TABLES = ("files", "batches", "records", "quarantine")
A_UNIT = 2
"""Requests for a small segment with rows in two tables, beside those for the task that it shares."""

A_RERUN = 80
"""Requests where nothing is new, for up to a thousand files."""

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "confluent__rdmock__group-range.pcap"

STOPS = [pytest.param(number, marks=() if number == 45 else pytest.mark.slow) for number in range(5, 130, 8)]


@pytest.fixture(scope="module")
def s3() -> Iterator[LocalS3]:
    with local_s3() as server:
        yield server


def requests(s3: LocalS3, inputs: Path, out: str, segments: int) -> list[Request]:
    for number in range(segments):
        if not (inputs / f"orders-{number}").is_dir():
            pipeline_steps.put_segment(inputs, "orders", number, range(3))
    with s3.counted() as actual:
        pipeline_steps.run(inputs, out, tables=TABLES)
    return actual


def offsets(out: str) -> list[tuple[int, int]]:
    """Each record's partition and offset."""
    output, rows = open_output(out), []
    for name in Ledger(output).named_files("records")[0]:
        with output.open(name) as stream:
            rows += pyarrow.parquet.ParquetFile(stream).read(["partition", "log_offset"]).to_pylist()
    return sorted((row["partition"], row["log_offset"]) for row in rows)


@pytest.mark.slow
def test_requests_are_few_and_none_for_what_is_unchanged(s3: LocalS3, tmp_path: Path) -> None:
    s3.put("few", {})
    few = len(requests(s3, tmp_path / "few", "s3://few/x", 2))
    many = len(requests(s3, tmp_path / "many", "s3://few/y", 6))
    assert many - few <= 4 * A_UNIT
    again = [
        requests(s3, tmp_path / name, f"s3://few/{out}", 0) for name, out in (("few", "x"), ("many", "y"))
    ]
    assert len(again[0]) == len(again[1]) <= A_RERUN
    for request in (request for rerun in again for request in rerun):
        assert not any(f"/{table}/" in request.path for table in ("batches", "records")), request


def test_more_small_captures_ask_for_nothing_more(s3: LocalS3, tmp_path: Path) -> None:
    """They share the files of a task."""
    s3.put("captures", {})
    counts = []
    for number in (2, 4):
        inputs = tmp_path / str(number)
        inputs.mkdir()
        for copy in range(number):
            (inputs / f"{copy}.pcap").write_bytes(CAPTURE.read_bytes())
        with s3.counted() as actual:
            pipeline_steps.run(inputs, f"s3://captures/{number}", tables=["frames", "groups", "traffic"])
        counts.append(len(actual))
    assert counts[1] == counts[0]


def test_small_inputs_share_a_task() -> None:
    def sizes(count: int, size: int, workers: int, split_size: int = 1 << 20) -> list[int]:
        part = Part("segment", "x", size, 0, size)
        return [len(task) for task in as_tasks([Unit("", part)] * count, workers, split_size)]

    assert sizes(555, 1000, 64) == [100, 100, 100, 100, 100, 55]
    assert sizes(555, 1000, 64, split_size=1000) == [2] * 277 + [1]
    assert sizes(6, 200_000, 4) == [5, 1]
    assert sizes(6, 2 << 20, 4) == [1] * 6
    assert sizes(0, 0, 4) == []


@pytest.mark.parametrize("stop", STOPS)
def test_a_store_that_stops_answering(s3: LocalS3, tmp_path: Path, stop: int) -> None:
    """As after a kill: nothing that was begun is finished or undone. The next run has each row once."""
    bucket, count = f"stop-{stop}", 0
    s3.put(bucket, {})
    for number in range(2):
        pipeline_steps.put_segment(tmp_path, "orders", number, range(3))

    def deny(method: str, path: str) -> None:
        nonlocal count
        count += 1
        if count > stop:
            s3.denied.add(bucket)

    out = f"s3://{bucket}/x"
    with mock.patch.object(s3, "before", deny):
        try:
            pipeline_steps.run(tmp_path, out, tables=TABLES)
        except (OSError, CoordwireError):
            assert count > stop
    s3.denied.discard(bucket)
    for key in s3.keys(bucket):
        if "/runs/" in key:  # a run that is over here is not known to be over
            s3.remove(bucket, key)
    pipeline_steps.run(tmp_path, out, tables=TABLES)
    assert offsets(out) == [(number, offset) for number in range(2) for offset in range(3)]
    present = {key.removeprefix("x/") for key in s3.keys(bucket) if key.endswith(".parquet")}
    assert present == {name for table in TABLES for name in Ledger(open_output(out)).named_files(table)[0]}


@pytest.mark.parametrize(
    "room", [3000, pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow)]
)
def test_files_that_are_not_held(s3: LocalS3, tmp_path: Path, room: int) -> None:
    """The same files, whatever is held in memory."""
    s3.put(f"room-{room}", {})
    pipeline_steps.put_segment(tmp_path, "orders", 0, range(40))
    with mock.patch.object(unit_attempt, "HELD", room):
        pipeline_steps.run(tmp_path, f"s3://room-{room}/x", tables=TABLES)
    assert offsets(f"s3://room-{room}/x") == [(0, offset) for offset in range(40)]
    assert not [key for key in s3.keys(f"room-{room}") if ".part" in key]
