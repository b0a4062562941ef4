"""Small captures that share files: one that changes or goes takes its own rows with it, and no others."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import CoordwireError
from coordwire.tables.columns import arrow_schema, table_schema
from coordwire.tables.formats import PARQUET
from coordwire.tables.pipeline import PipelineSummary
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.parquet_files import read_rows
from tests.tables import pipeline_steps
from tests.tables.moto_s3 import local_s3
from tests.tables.pipeline_steps import Crash
from tests.tables.test_captures import CAPTURES, HEADER, PACKET

TABLES = ("files", "frames", "errors", "groups", "offset_commits", "traffic", "quarantine")
GROUP = "kpy__tansu__group-range.pcap"
NAMES = (GROUP, GROUP, GROUP, "aio__tansu__txn.pcap")
PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}
Rows = Counter[str]


def need(table_format: str) -> None:
    if table_format in PACKAGES:
        pytest.importorskip(PACKAGES[table_format], reason=f"pip install 'coordwire[{table_format}]'")


@pytest.fixture
def captures(tmp_path: Path) -> Path:
    """Three captures of one day, one of which has bytes that nobody can read, and one of another day."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        data = bytearray((CAPTURES / name).read_bytes())
        if number == 1:
            data[len(data) // 2 : len(data) // 2 + 400] = bytes(400)
        (folder / f"c{number}.pcap").write_bytes(data)
    shorten(folder / "c2.pcap")
    return folder


def run(captures: Path, out: Path | str, table_format: str = PARQUET, **named: Any) -> PipelineSummary:
    return pipeline_steps.run(captures, out, tables=TABLES, format=table_format, **named)


def rows(out: Path | str, table: str) -> Rows:
    """The rows of the files that a table consists of."""
    output, schema = open_output(str(out)), arrow_schema(table_schema(table))
    names, _ = Ledger(output).named_files(table)
    batches = (batch for name in names for batch in read_rows(output, name, schema))
    return Counter(repr(sorted(row.items())) for batch in batches for row in batch.to_pylist())


def all_rows(out: Path | str) -> dict[str, Rows]:
    return {table: rows(out, table) for table in TABLES}


def shorten(path: Path) -> None:
    """Leave out the last packets of a capture."""
    data, at = path.read_bytes(), HEADER
    while at < len(data) * 2 // 3:
        at += PACKET + int.from_bytes(data[at + 8 : at + 12], "little")
    path.write_bytes(data[:at])


def data_files(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*.parquet"))


def notes_of(out: Path | str) -> dict[str, dict[str, Any]]:
    return Ledger(open_output(str(out))).manifest.units


def test_small_captures_share_files_and_their_notes_say_which_rows_are_theirs(
    captures: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    summary = run(captures, out)
    assert summary.units == len(NAMES)
    names, _ = Ledger(open_output(str(out))).named_files("frames")
    days = {name.split("/")[1] for name in names}
    assert len(names) == len(days) < len(NAMES)
    name = names[0]
    output, schema = open_output(str(out)), arrow_schema(table_schema("frames"))
    paths = [row["input_file"] for batch in read_rows(output, name, schema) for row in batch.to_pylist()]
    for note in notes_of(out).values():
        if note["kind"] == "capture":
            own = [path for start, end in note["ranges"].get(name, ()) for path in paths[start:end]]
            assert set(own) <= {note["paths"][0]}
            assert len(own) == paths.count(note["paths"][0])


@pytest.mark.parametrize("table_format", [PARQUET, "delta", "iceberg"])
@pytest.mark.parametrize("store", [False, True], ids=["disk", "s3"])
def test_one_capture_changes(captures: Path, tmp_path: Path, table_format: str, store: bool) -> None:
    need(table_format)
    bucket = f"shared-{table_format}"
    out = f"s3://{bucket}/out" if store else str(tmp_path / "out")
    with local_s3() if store else nullcontext() as s3:
        if s3 is not None:
            s3.put(bucket, {})
        run(captures, out, table_format)
        for number in (1, 0, 2):
            shorten(captures / f"c{number}.pcap")
            summary = run(captures, out, table_format)
            assert summary.reused == summary.units - 1
            expected = tmp_path / f"expected{number}"
            run(captures, expected)
            assert all_rows(out) == all_rows(expected), number
            assert summary.frames == rows(expected, "frames").total()
        again = run(captures, out, table_format)
        assert again.reused == again.units


@pytest.mark.parametrize("table_format", [PARQUET, "delta", "iceberg"])
def test_one_capture_is_pruned(captures: Path, tmp_path: Path, table_format: str) -> None:
    need(table_format)
    out = tmp_path / "out"
    run(captures, out, table_format)
    (captures / "c2.pcap").unlink()
    assert run(captures, out, table_format, prune=True).pruned == [str(captures / "c2.pcap")]
    run(captures, tmp_path / "expected")
    assert all_rows(out) == all_rows(tmp_path / "expected")
    if table_format == PARQUET:
        assert not pipeline_steps.leftovers(out)


@pytest.mark.parametrize("table_format", [PARQUET, "delta"])
def test_killed_at_every_step_while_one_changes(
    captures: Path, tmp_path: Path, table_format: str, request: pytest.FixtureRequest
) -> None:
    """Rows of the others are there once at each moment; a rerun leaves what a first run would."""
    need(table_format)

    def begin(place: Path) -> Path:
        folder = place / "in"
        folder.mkdir(parents=True)
        for path in captures.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        run(folder, place / "out", table_format)
        before = rows(place / "out", "frames")
        shorten(folder / "c0.pcap")
        others = Counter({row: count for row, count in before.items() if "c0.pcap" not in row})
        assert 0 < others.total() < before.total()
        place.joinpath("others").write_text(json.dumps(others))
        return folder

    folder = begin(tmp_path / "count")
    with pipeline_steps.steps() as steps:
        run(folder, tmp_path / "count/out", table_format)
    expected = all_rows(tmp_path / "count/out")
    assert steps.count > 60
    seen = set()
    for number in range(1, steps.count + 1, 1 if table_format == PARQUET else 5):
        place = tmp_path / str(number)
        folder = begin(place)
        with pipeline_steps.steps(pipeline_steps.crash_at(number)), pytest.raises(Crash):
            run(folder, place / "out", table_format)
        others = Counter(json.loads(place.joinpath("others").read_text()))
        now = rows(place / "out", "frames")
        kept = {row.replace(str(place), ""): count for row, count in now.items() if "c0.pcap" not in row}
        assert kept == {row.replace(str(place), ""): count for row, count in others.items()}, number
        seen.add(now.total())
        run(folder, place / "out", table_format)
        for table, wanted in expected.items():
            if table != "files":
                actual = {
                    row.replace(str(place), ""): count for row, count in rows(place / "out", table).items()
                }
                assert actual == {
                    row.replace(str(tmp_path / "count"), ""): count for row, count in wanted.items()
                }, (number, table)
        assert not pipeline_steps.leftovers(place / "out"), number
        if table_format == PARQUET:
            names = {
                name
                for table in TABLES
                for name in Ledger(open_output(str(place / "out"))).named_files(table)[0]
            }
            assert set(data_files(place / "out")) == names, number
    assert len(seen) > 1


def test_units_of_a_killed_run_share_files_of_which_one_changed_before_the_next(
    captures: Path, tmp_path: Path
) -> None:
    """Their notes are in no manifest yet, in Delta in no commit."""
    for table_format in (PARQUET, "delta"):
        need(table_format)
        folder, out = tmp_path / f"in-{table_format}", tmp_path / f"out-{table_format}"
        folder.mkdir()
        for path in captures.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("coordwire.tables.pipeline.job.write_files", _crash)
            with pytest.raises(Crash):
                run(folder, out, table_format)
        shorten(folder / "c0.pcap")
        assert run(folder, out, table_format).reused == len(NAMES) - 1
        run(folder, tmp_path / f"expected-{table_format}")
        assert all_rows(out) == all_rows(tmp_path / f"expected-{table_format}")


def _crash(*_: object) -> None:
    raise Crash


def test_tables_of_the_format_before_are_continued(captures: Path, tmp_path: Path) -> None:
    """Each unit has files of its own there, and its notes say nothing of rows."""
    out = tmp_path / "out"
    pipeline_steps.run(captures, out, tables=TABLES, work=pipeline_steps.run_unit)
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert not any("ranges" in note for note in manifest["units"].values())
    (out / "manifest.json").write_text(json.dumps(manifest | {"format": 8}))
    assert run(captures, out).reused == len(NAMES)
    shorten(captures / "c0.pcap")
    assert run(captures, out).reused == len(NAMES) - 1
    run(captures, tmp_path / "expected")
    assert all_rows(out) == all_rows(tmp_path / "expected")


def test_a_shared_file_that_is_not_what_was_written_down(captures: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(captures, out)
    name = Ledger(open_output(str(out))).named_files("traffic")[0][0]
    data = bytearray((out / name).read_bytes())
    data[40] ^= 1
    (out / name).write_bytes(data)
    shorten(captures / "c0.pcap")
    with pytest.raises(CoordwireError, match="is not as it was written"):
        run(captures, out)
    (out / name).unlink()
    run(captures, out)
    run(captures, tmp_path / "expected")
    assert all_rows(out) == all_rows(tmp_path / "expected")


@pytest.mark.parametrize("ranges", [[], [[0, 10**9]], [[5, 5]], [[0, 2], [1, 3]]], ids=str)
def test_a_manifest_that_gives_rows_to_nobody(captures: Path, tmp_path: Path, ranges: list[Any]) -> None:
    out = tmp_path / "out"
    run(captures, out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    for note in manifest["units"].values():
        note["ranges"] = dict.fromkeys(note.get("ranges", {}), ranges)
    (out / "manifest.json").write_text(json.dumps(manifest))
    before = data_files(out)
    shorten(captures / "c0.pcap")
    with pytest.raises(CoordwireError, match="rows"):
        run(captures, out)
    assert set(before) <= set(data_files(out))
