"""Rotated captures that lose files between two runs: every row stays, and is there once."""

from __future__ import annotations

import gzip
import math
import os
import random
import shutil
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.errors import CoordwireError
from coordwire.tables import columns, pipeline
from coordwire.tables.columns import arrow_schema
from coordwire.tables.options import Options
from coordwire.tables.pipeline import PipelineSummary
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import Job, Unit
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.parquet_files import read_rows
from tests.tables import pipeline_steps
from tests.tables.moto_s3 import local_s3
from tests.tables.pipeline_steps import Crash
from tests.tables.test_captures import CAPTURES, HEADER, PACKET

GROUP = CAPTURES / "kpy__tansu__group-range.pcap"
TABLES = ("files", "frames", "errors", "groups", "offset_commits", "traffic", "quarantine")
COUNT = 8
Rows = Counter[tuple[Any, ...]]


class Ring:
    """A capture in files, as tcpdump -C writes them, of which some are there."""

    def __init__(self, folder: Path, data: bytes = GROUP.read_bytes(), count: int = COUNT) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        cuts, at = [HEADER], HEADER
        while at < len(data):
            at += PACKET + int.from_bytes(data[at + 8 : at + 12], "little")
            if at - cuts[-1] > (len(data) - HEADER) // count:
                cuts.append(at)
        self.parts = [
            data[:HEADER] + data[a:b] for a, b in zip(cuts, [*cuts[1:count], len(data)], strict=False)
        ]

    def path(self, number: int) -> Path:
        return self.folder / f"x.pcap{number or ''}"

    def put(self, *numbers: int) -> None:
        for number in numbers:
            self.path(number).write_bytes(self.parts[number])

    def remove(self, *numbers: int) -> None:
        for number in numbers:
            self.path(number).unlink()


@pytest.fixture
def ring(tmp_path: Path) -> Ring:
    return Ring(tmp_path / "in")


def run(ring: Ring, out: Path, **named: Any) -> PipelineSummary:
    return pipeline_steps.run(ring.folder, out, tables=TABLES, **named)


def rows(out: Path, table: str = "frames") -> Rows:
    """The rows without what depends on the files that were read together."""
    columns = ("time", "direction", "api", "correlation_id", "size", "event", "group_id", "member_id")
    return Counter(tuple(row.get(name) for name in columns) for row in pipeline_steps.table_rows(out, table))


def assert_only_answers_lack(out: Path, complete: Path) -> None:
    """Answers whose requests were in files that had gone are in quarantine, and everything else has rows."""
    assert not rows(out) - rows(complete)
    lacking = rows(complete) - rows(out)
    assert {row[1] for row in lacking} <= {"response"}
    assert lacking.total() < 6
    lengths = Counter(
        row["end_position"] - row["position"] for row in pipeline_steps.table_rows(out, "quarantine")
    )
    assert Counter(row[4] + 4 for row in lacking) <= lengths


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the capture in one file."""
    out = tmp_path_factory.mktemp("complete") / "out"
    pipeline_steps.run(GROUP, out, tables=TABLES)
    return out


@pytest.mark.parametrize(
    "lost", [(0,), (3,), (COUNT - 1,), (0, 1, 2), (0, 4, 7), tuple(range(1, COUNT))], ids=str
)
def test_rows_of_lost_files_stay_and_no_row_is_there_twice(
    ring: Ring, tmp_path: Path, complete: Path, lost: tuple[int, ...]
) -> None:
    out = tmp_path / "out"
    ring.put(*range(COUNT))
    run(ring, out)
    before = {name: rows(out, name) for name in TABLES if name != "files"}
    assert before["frames"] == rows(complete)
    ring.remove(*lost)
    for _ in range(2):
        summary = run(ring, out)
        assert summary.pruned == summary.notices == []
        assert {name: rows(out, name) for name in before} == before
        assert summary.frames == before["frames"].total()
        assert summary.reused == summary.units


def test_files_that_go_one_after_the_other_while_others_come(
    ring: Ring, tmp_path: Path, complete: Path
) -> None:
    """As tcpdump writes: the last file grows, a new one appears, the oldest goes."""
    out = tmp_path / "out"
    ring.put(0, 1)
    for number in range(2, COUNT):
        half = len(ring.parts[number]) // 2
        ring.path(number).write_bytes(ring.parts[number][:half])
        run(ring, out)
        ring.put(number)
        ring.remove(number - 2)
        run(ring, out)
        assert max(rows(out).values()) == 1
    assert_only_answers_lack(out, complete)


def test_a_ring_that_is_overwritten_in_place(tmp_path: Path, complete: Path) -> None:
    """tcpdump -W 3 writes the fourth file over the first."""
    ring, out = Ring(tmp_path / "in"), tmp_path / "out"
    for number, part in enumerate(ring.parts):
        (ring.folder / f"x.pcap{number % 3}").write_bytes(part)
        if number >= 2:
            run(ring, out)
    assert_only_answers_lack(out, complete)
    summary = run(ring, out, prune=True)
    assert summary.pruned == [str(ring.folder / f"x.pcap{number}") for number in range(3)]
    assert rows(out) < rows(complete)
    assert summary.frames == rows(out).total()
    second = tmp_path / "other"
    run(ring, second)
    assert rows(second) == rows(out)
    assert run(ring, out, prune=True).pruned == []


def test_pruning_removes_the_rows_of_lost_files(ring: Ring, tmp_path: Path, complete: Path) -> None:
    out = tmp_path / "out"
    ring.put(*range(COUNT))
    run(ring, out)
    ring.remove(0)
    run(ring, out)
    summary = run(ring, out, prune=True)
    assert summary.pruned == [str(ring.path(0))]
    run(ring, tmp_path / "other")
    assert rows(out) == rows(tmp_path / "other") != rows(complete)


def test_a_file_that_was_not_named_is_not_pruned(ring: Ring, tmp_path: Path, complete: Path) -> None:
    out = tmp_path / "out"
    ring.put(*range(COUNT))
    run(ring, out)
    for prune in (False, True):
        summary = pipeline_steps.run(ring.path(3), out, tables=TABLES, prune=prune)
        assert (summary.pruned, rows(out)) == ([], rows(complete))
    assert run(ring, out).units == 2  # the settled files, and the last one


@pytest.mark.parametrize("action", ["all moved", "some moved", "compressed", "all compressed"])
def test_moved_and_compressed_files_are_the_same(
    ring: Ring, tmp_path: Path, complete: Path, action: str
) -> None:
    out = tmp_path / "out"
    ring.put(*range(COUNT))
    run(ring, out)
    if not action.startswith("all"):
        ring.remove(0)
    elsewhere = ring.folder / "older"
    elsewhere.mkdir()
    for number in range(0 if action.startswith("all") else 1, 8 if action.startswith("all") else 5):
        path = ring.path(number)
        if "moved" in action:
            path.rename(elsewhere / path.name)
        else:
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    for _ in range(2):
        run(ring, out)
        assert rows(out) == rows(complete)
    first = (
        "older/x.pcap" if action == "all moved" else "x.pcap.gz" if action == "all compressed" else "x.pcap"
    )
    assert str(ring.folder / first) in {row["input_file"] for row in pipeline_steps.table_rows(out, "frames")}


def test_a_file_that_comes_back(ring: Ring, tmp_path: Path, complete: Path) -> None:
    out = tmp_path / "out"
    ring.put(0, 1, 2, 3)
    run(ring, out)
    ring.remove(0)
    ring.put(4, 5)
    run(ring, out)
    ring.put(0, 6, 7)
    run(ring, out)
    assert rows(out) == rows(complete)


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_runs(tmp_path: Path, complete: Path, seed: int) -> None:
    """Files come in their order and grow, and any go: no row goes, but of a file that grew, and none is there
    twice."""
    rng, ring, out = random.Random(seed), Ring(tmp_path / "in"), tmp_path / "out"
    known: Rows = Counter()

    def run_all(grown: bytes = b"") -> None:
        nonlocal known
        run(ring, out, options=Options(split_size=rng.choice((1 << 20, 20_000))))
        before, known = known, rows(out)
        since = int.from_bytes(grown[HEADER : HEADER + 4], "little") if grown else math.inf
        lacking = before - known
        assert all(row[0].timestamp() >= since for row in lacking)
        assert max(known.values(), default=1) == 1

    for number, part in enumerate(ring.parts):
        place = ring.path(number)
        if rng.random() < 0.5:
            place.write_bytes(part[: rng.randrange(len(part))])
            run_all()
        place.write_bytes(part)
        run_all(part)
        present = sorted(ring.folder.iterdir())
        for path in rng.sample(present, rng.randrange(len(present))):
            path.unlink()
        if rng.random() < 0.3:
            os.utime(rng.choice(sorted(ring.folder.iterdir())))
        run_all()
    frames = {(row[0], row[1], row[4]) for row in known}
    assert frames <= {(row[0], row[1], row[4]) for row in rows(complete)}


@pytest.mark.parametrize(("lost", "share_size"), [((0,), 1 << 20), ((0, 3), 20_000)], ids=str)
def test_killed_at_any_step_while_files_go(
    ring: Ring, tmp_path: Path, complete: Path, lost: tuple[int, ...], share_size: int
) -> None:
    """A run that reads a grown capture again is killed; before the next one files go."""
    ring.put(*range(5))
    options, start = Options(split_size=share_size), tmp_path / "start"
    run(ring, start, options=options)
    ring.put(*range(5, COUNT))
    with pipeline_steps.steps() as counting:
        run(ring, shutil.copytree(start, tmp_path / "count"), options=options)
    for number in range(1, counting.count, counting.count // 5):
        ring.put(*range(COUNT))
        out = shutil.copytree(start, tmp_path / f"out-{number}")
        with pytest.raises(Crash), pipeline_steps.steps(pipeline_steps.crash_at(number)):
            run(ring, out, options=options)
        ring.remove(*lost)
        run(ring, out, options=options)
        assert not rows(complete) - rows(out) or set(lost) == {0, 3}
        assert max(rows(out).values()) == 1
        assert rows(out) >= rows(start)
        assert run(ring, out, options=options).notices == []


@pytest.mark.parametrize("action", ["removed", "overwritten"])
def test_a_file_that_goes_while_it_is_read_again(
    ring: Ring, tmp_path: Path, complete: Path, action: str
) -> None:
    out = tmp_path / "out"
    ring.put(*range(6))
    run(ring, out)
    ring.put(6)

    def work(unit: Unit, job: Job) -> object:
        if action == "removed":
            ring.path(5).unlink(missing_ok=True)
        else:
            ring.path(5).write_bytes(ring.parts[7])
        return pipeline_steps.run_unit(unit, job)

    before = rows(out)
    with pytest.raises(CoordwireError, match="was removed or overwritten while it was read again"):
        run(ring, out, work=work)
    assert rows(out) >= before
    ring.put(*[7] if action == "removed" else [])
    run(ring, out)
    assert rows(out) >= before
    assert not rows(out) - rows(complete)
    assert {row[1] for row in rows(complete) - rows(out)} <= {"response"}  # their requests went with the file


@pytest.mark.parametrize(("table_format", "store"), [("delta", False), ("iceberg", False), ("parquet", True)])
def test_files_go_under_tables_of_any_kind(
    tmp_path: Path, complete: Path, table_format: str, store: bool
) -> None:
    """With processes, in formats with logs of their own, and in a store."""
    if package := {"delta": "deltalake", "iceberg": "pyiceberg"}.get(table_format):
        pytest.importorskip(
            package, reason=f"{package} isn't installed: pip install 'coordwire[{table_format}]'"
        )
    if store:
        pytest.importorskip("moto", reason="moto isn't installed")
    ring = Ring(tmp_path / "in")
    ring.put(*range(5))
    with local_s3() if store else nullcontext() as s3:
        out = "s3://lost/out" if store else str(tmp_path / "out")
        if s3 is not None:
            s3.put("lost", {})
            s3.put("captures", {})

        def run_all() -> Rows:
            inputs = [str(ring.folder)]
            if s3 is not None:
                present = {path.name: path.read_bytes() for path in ring.folder.iterdir()}
                for key in set(s3.keys("captures")).difference(present):
                    s3.remove("captures", key)
                s3.put("captures", {key: present[key] for key in present if key not in s3.keys("captures")})
                inputs = ["s3://captures/"]
            pipeline.run(
                pipeline.LocalEngine(2), inputs, out, tables=TABLES, report=False, format=table_format
            )
            output, names = open_output(out), ("time", "direction", "api", "correlation_id", "size")
            schema = pa.schema([field for field in arrow_schema(columns.FRAMES) if field.name in names])
            files, _ = Ledger(output).named_files("frames")
            batches = [batch for name in files for batch in read_rows(output, name, schema)]
            return Counter(
                (*(row[name] for name in names), None, None, None)
                for batch in batches
                for row in batch.to_pylist()
            )

        start = run_all()
        ring.remove(0, 1)
        assert run_all() == start
        ring.put(5, 6, 7)
        assert run_all() == rows(complete)
        ring.remove(2, 4)
        assert run_all() == rows(complete)
