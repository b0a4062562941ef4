"""Attempts at one unit, side by side and ended at every step; Spark isn't needed."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow.parquet

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.pipeline import plan
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import Job, Unit, UnitFailed
from coordwire.tables.readers.files import find_files
from coordwire.tables.storage import unit_attempt
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.names import NOTES
from coordwire.tables.storage.run_lock import Lock
from coordwire.tables.storage.unit_attempt import Attempt, RunOver
from tests.tables import pipeline_steps
from tests.tables.pipeline_steps import TABLES, Crash

OFFSETS = range(6)


@pytest.fixture
def unit(tmp_path: Path) -> Unit:
    pipeline_steps.put_segment(tmp_path / "in", "orders", 0, OFFSETS)
    files = {file.path: file for file in find_files([str(tmp_path / "in")])}
    [only_unit] = plan(files, Options(), TABLES)
    return only_unit


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def do(unit: Unit, out: Path, run: str | None = None) -> dict[str, Any]:
    return pipeline_steps.run_unit(unit, Job(str(out), Options(), TABLES, run))


def count_steps(unit: Unit, out: Path) -> int:
    with pipeline_steps.steps() as steps:
        do(unit, out)
    return steps.count


def fresh(tmp_path: Path) -> Iterator[Path]:
    number = 0
    while True:
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        yield folder
        number += 1


def assert_noted_once(out: Path, note: dict[str, Any]) -> None:
    """What the note names is there, is readable, and is all there is."""
    assert note["files"]
    assert pipeline_steps.parquet_files(out) == set(note["files"])
    for name in note["files"]:
        assert pyarrow.parquet.read_table(out / name).num_rows
    assert [offset for _, _, offset in pipeline_steps.record_keys(out)] == list(OFFSETS)


def test_two_attempts_meet_at_every_step(unit: Unit, tmp_path: Path, out: Path) -> None:
    total = count_steps(unit, out)
    assert total > 20
    places = fresh(tmp_path)
    for number in range(1, total + 1):
        place = next(places)
        other_values: list[dict[str, Any]] = []

        def at(
            count: int, place: Path = place, number: int = number, other_values: list[Any] = other_values
        ) -> None:
            if count == number:
                other_values.append(do(unit, place))

        with pipeline_steps.steps(at):
            own = do(unit, place)
        assert other_values == [own], number
        assert_noted_once(place, own)
        assert len(list((place / NOTES).glob("*.json"))) == 1
        assert not pipeline_steps.leftovers(place)


def test_killed_at_every_step_and_run_again(tmp_path: Path) -> None:
    """Two units are one task."""
    for partition in range(2):
        pipeline_steps.put_segment(tmp_path / "in", "orders", partition, OFFSETS)
    places = fresh(tmp_path)
    with pipeline_steps.steps() as steps:
        pipeline_steps.run(tmp_path / "in", next(places))
    for number in range(1, steps.count + 1):
        place = next(places)
        with pipeline_steps.steps(pipeline_steps.crash_at(number)), pytest.raises(Crash):
            pipeline_steps.run(tmp_path / "in", place)
        for path in (place / NOTES).glob("*.json"):
            for name in [name for note in json.loads(path.read_bytes()) for name in note["files"]]:
                assert pyarrow.parquet.read_table(place / name).num_rows
        summary = pipeline_steps.run(tmp_path / "in", place)
        assert summary.records == 2 * len(OFFSETS), number
        assert [key[1:] for key in pipeline_steps.record_keys(place)] == [
            (partition, offset) for partition in range(2) for offset in OFFSETS
        ], number
        assert not pipeline_steps.leftovers(place), number
        named = {row for table in TABLES for row in Ledger(open_output(str(place))).named_files(table)[0]}
        assert pipeline_steps.parquet_files(place) == named, number


@pytest.mark.slow
def test_a_disk_that_is_full_at_every_step(tmp_path: Path) -> None:
    pipeline_steps.put_segment(tmp_path / "in", "orders", 0, OFFSETS)
    places = fresh(tmp_path)
    with pipeline_steps.steps() as steps:
        pipeline_steps.run(tmp_path / "in", next(places))
    said = set()
    for number in range(1, steps.count + 1):
        place = next(places)
        with pipeline_steps.steps(full_from=number):
            try:
                summary = pipeline_steps.run(tmp_path / "in", place)
                assert summary.records == len(OFFSETS)  # only clearing up was left
            except (OSError, CoordwireError) as error:
                said.add(str(error))
        assert pipeline_steps.run(tmp_path / "in", place).records == len(OFFSETS), number
        assert [offset for _, _, offset in pipeline_steps.record_keys(place)] == list(OFFSETS), number
        assert not pipeline_steps.leftovers(place), number
    assert all("No space left on device" in text for text in said), said
    assert any(text.startswith(str(tmp_path / "in")) for text in said)  # the file that was being read


def test_a_failed_attempt_leaves_nothing(unit: Unit, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(unit_attempt.Sink, "write", full)
    with pytest.raises(UnitFailed, match=r"00000000000000000000\.log: No space left on device"):
        do(unit, out)
    assert not pipeline_steps.leftovers(out)
    assert not pipeline_steps.parquet_files(out)


def test_what_reads_back_otherwise_is_refused(unit: Unit, out: Path) -> None:
    def spoil(count: int) -> None:
        for path in out.rglob("*.part"):
            if path.stat().st_size > 400:
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(data)

    with pipeline_steps.steps(spoil), pytest.raises(UnitFailed, match="were read back"):
        do(unit, out)
    assert not list((out / NOTES).glob("*.json"))
    assert not pipeline_steps.parquet_files(out)


def test_an_attempt_of_a_run_that_is_over_publishes_nothing(unit: Unit, out: Path) -> None:
    lock = Lock(open_output(str(out)))
    lock.acquire()
    assert do(unit, out, lock.run)["files"]
    Ledger(open_output(str(out))).commit({})
    for path in (out / NOTES).glob("*.json"):
        path.unlink()
    before = pipeline_steps.parquet_files(out)
    lock.fence()
    with pytest.raises(UnitFailed, match="is over"):
        do(unit, out, lock.run)
    lock.release()
    with pytest.raises(UnitFailed, match="is over"):
        do(unit, out, lock.run)
    assert pipeline_steps.parquet_files(out) == before
    assert not pipeline_steps.leftovers(out)


def test_a_fence_at_every_step_of_an_attempt(unit: Unit, tmp_path: Path, out: Path) -> None:
    """Whether it comes before or after, a unit is noted with all of its files or not at all."""
    lock = Lock(open_output(str(out)))
    lock.acquire()
    with pipeline_steps.steps() as steps:
        do(unit, out, lock.run)
    lock.release()
    outcomes = set()
    places = fresh(tmp_path)
    for number in range(1, steps.count + 1):
        place = next(places)
        lock = Lock(open_output(str(place)))
        lock.acquire()

        def at(count: int, number: int = number, place: Path = place, lock: Lock = lock) -> None:
            if count == number and not list(place.rglob("*/commit.json")):  # else the fence waits
                lock.fence()

        with pipeline_steps.steps(at):
            try:
                note = do(unit, place, lock.run)
                assert_noted_once(place, note)
                outcomes.add("noted")
            except UnitFailed as error:
                outcomes.add(type(error.__cause__).__name__)
                assert not pipeline_steps.parquet_files(place)
        lock.release()
        assert not pipeline_steps.leftovers(place)
    assert outcomes == {"noted", RunOver.__name__}


def test_a_run_that_sweeps_meanwhile_leaves_an_attempt_alone(unit: Unit, tmp_path: Path, out: Path) -> None:
    total = count_steps(unit, out)
    places = fresh(tmp_path)
    for number in range(1, total + 1):
        place = next(places)

        def at(count: int, place: Path = place, number: int = number) -> None:
            if count == number:
                output = open_output(str(place))
                Ledger(output).remove_orphans(Ledger(output).complete_units(), set(), ["other"])

        with pipeline_steps.steps(at):
            note = do(unit, place)
        assert all((place / name).exists() for name in note["files"])
        assert_noted_once(place, note)


def test_names_never_collide(out: Path) -> None:
    output = open_output(str(out))
    tokens = {Attempt(output, "0" * 24).token for _ in range(100)}
    assert len(tokens) == 100
