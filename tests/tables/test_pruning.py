"""Segments that were renamed, and rows of files that are gone: each record once, nothing goes on a guess."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.manifest_file import load
from tests.tables import pipeline_steps
from tests.tables.pipeline_steps import Crash
from tests.tables.test_disk_lag import commits, put

LOG = f"{0:020}.log"


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """One broker with two topics."""
    folder = tmp_path / "in"
    for topic in ("orders", "pay"):
        pipeline_steps.put_segment(folder, topic, 0, range(3))
    (folder / "meta.properties").write_text("node.id=1\ncluster.id=c\n")
    return folder


def keys(out: Path) -> list[tuple[str, int]]:
    return [(topic, offset) for topic, _, offset in pipeline_steps.record_keys(out)]


def paths(out: Path, table: str) -> set[str]:
    return {row["input_file"] for row in pipeline_steps.table_rows(out, table)}


ORDERS, PAY = [("orders", n) for n in range(3)], [("pay", n) for n in range(3)]


# --- renamed ---


@pytest.mark.parametrize(
    ("to", "state"),
    [
        (f"orders-0/{LOG}.deleted", "deleted"),
        (f"orders-0.0123456789abcdef-delete/{LOG}", "deleted"),
        (f"orders-0.0123456789abcdef-stray/{LOG}.deleted", "deleted"),
        (f"disk2/orders-0/{LOG}", "live"),
    ],
)
def test_a_renamed_segment_counts_once(inputs: Path, tmp_path: Path, to: str, state: str) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    new = inputs / to
    new.parent.mkdir(parents=True, exist_ok=True)
    if "disk2" in to:  # another folder of the same broker
        shutil.copy(inputs / "meta.properties", inputs / "disk2")
    (inputs / "orders-0" / LOG).rename(new)
    summary = pipeline_steps.run(inputs, out)
    assert keys(out) == ORDERS + PAY
    assert summary.pruned == summary.notices == []
    [row] = {(row["input_file"], row["file_state"]) for row in pipeline_steps.table_rows(out, "records")
             if row["topic"] == "orders"}  # fmt: skip
    assert row == (str(new), state)
    assert pipeline_steps.run(inputs, out).reused == 2


@pytest.mark.parametrize("tables", [("offset_commits", "lag"), ("files", "records", "offset_commits", "lag")])
def test_what_a_moved_log_says_counts_once(tmp_path: Path, tables: tuple[str, ...]) -> None:
    """The stories and the lag of a broker's folder that has another place now."""
    folder, out = tmp_path / "in" / "monday", tmp_path / "out"
    pipeline_steps.put_segment(folder, "orders", 0, range(9))
    put(folder, "__consumer_offsets-0", commits([("g", "orders", 0, 3)]))
    put(folder, "__consumer_offsets-0", commits([("g", "orders", 0, 5)], 1), 1)
    (folder / "meta.properties").write_text("node.id=1\ncluster.id=c\n")
    pipeline_steps.run(tmp_path / "in", out, tables=tables)
    folder.rename(tmp_path / "in" / "tuesday")
    for _ in range(2):
        pipeline_steps.run(tmp_path / "in", out, tables=tables)
        rows = [*pipeline_steps.table_rows(out, "offset_commits"), *pipeline_steps.table_rows(out, "lag")]
        assert [row["committed_offset"] for row in rows] == [3, 5, 5]
        assert {Path(row["input_file"]).parts[-3] for row in rows} == {"tuesday"}
    shutil.copytree(
        tmp_path / "in" / "tuesday", tmp_path / "in" / "wednesday"
    )  # both are there: none is moved
    pipeline_steps.run(tmp_path / "in", out, tables=tables)
    assert len(pipeline_steps.table_rows(out, "offset_commits")) == 4


def test_what_is_not_the_same_segment_stays(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    old = inputs / "orders-0" / LOG
    shutil.copy(old, f"{old}.deleted")  # both names are there: the cleaner has made a new one of the old
    pipeline_steps.run(inputs, out)
    assert keys(out) == sorted(ORDERS + ORDERS) + PAY
    states = sorted(
        row["file_state"] for row in pipeline_steps.table_rows(out, "records") if row["topic"] == "orders"
    )
    assert states == ["deleted"] * 3 + ["live"] * 3
    other = tmp_path / "in2"
    pipeline_steps.put_segment(other, "orders", 0, range(3))  # of no known broker
    old.unlink()
    pipeline_steps.run(other, out)
    assert keys(out) == sorted(ORDERS * 3) + PAY


def test_a_segment_read_under_its_new_name_alone_leaves_the_old_one(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    old = inputs / "orders-0" / LOG
    shutil.copy(old, f"{old}.deleted")
    pipeline_steps.run(f"{old}.deleted", out)
    assert keys(out) == sorted(ORDERS + ORDERS) + PAY


# --- pruned ---


def test_rows_of_gone_files_go_on_request(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    shutil.rmtree(inputs / "orders-0")
    assert pipeline_steps.run(inputs, out).pruned == []
    assert keys(out) == ORDERS + PAY
    missing = str(inputs / "orders-0" / LOG)
    summary = pipeline_steps.run(inputs, out, prune=True)
    assert summary.pruned == [missing]
    assert summary.notices == [f"the rows of 1 file that are gone were removed: {missing}"]
    assert keys(out) == PAY
    assert pipeline_steps.run(inputs, out, prune=True).pruned == []


def test_the_remaining_rows_are_not_read_again(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    foreign = out / "records" / "theirs.parquet"
    foreign.write_bytes(b"a user's")
    shutil.rmtree(inputs / "orders-0")
    missing = str(inputs / "orders-0" / LOG)
    with mock.patch("coordwire.tables.readers.segment_rows.read_records", side_effect=AssertionError):
        assert pruned(inputs, out) == [missing]
    assert keys(out) == PAY
    assert paths(out, "files") == {str(inputs / "pay-0" / LOG), str(inputs / "meta.properties")}
    assert foreign.read_bytes() == b"a user's"
    assert pruned(inputs, out) == []
    assert pipeline_steps.run(inputs, out).reused == 1


def test_only_what_is_below_the_inputs_goes(inputs: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    pipeline_steps.put_segment(other, "others", 0, range(2))
    pipeline_steps.run(inputs, out)
    pipeline_steps.run(other, out)
    (inputs / "orders-0" / LOG).unlink()
    (inputs / "orders-0" / "partition.metadata").touch()
    other_values = [("others", n) for n in range(2)]
    assert pruned(other, out) == []
    assert pruned(f"{inputs}/pay-*", out) == []
    assert keys(out) == sorted(ORDERS + other_values + PAY)
    assert pruned(f"{inputs}/*-0", out) == [str(inputs / "orders-0" / LOG)]
    assert keys(out) == sorted(other_values + PAY)
    assert pruned(str(inputs), out, options=Options(recursive=False)) == []  # not listed, there


def pruned(inputs: Path | str, out: Path, **named: Any) -> list[str]:
    return pipeline_steps.run(inputs, out, prune=True, **named).pruned


def refused(inputs: Path, out: Path) -> str:
    """Why it is not pruned; nothing is removed."""
    before = keys(out)
    with pytest.raises(CoordwireError) as actual:
        pruned(inputs, out)
    assert keys(out) == before
    assert pipeline_steps.leftovers(out) == []
    return str(actual.value)


@pytest.mark.parametrize("what", ["", "orders-0"])
def test_an_empty_folder_may_be_an_unmounted_disk(inputs: Path, tmp_path: Path, what: str) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    place = inputs / what
    shutil.rmtree(place)
    place.mkdir()
    text = refused(inputs, out)
    assert text.startswith(
        f"{place} is empty, from which {inputs / 'orders-0' / LOG} was read: a disk that isn't"
    )
    if what:
        place.rmdir()
        assert pruned(inputs, out) == [str(inputs / "orders-0" / LOG)]


def test_a_mount_point_that_is_none_any_more(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    mounted = {str(inputs.resolve()), "/"}
    with mock.patch("os.path.ismount", lambda path: str(path) in mounted):
        pipeline_steps.run(inputs, out)
        manifest = load(open_output(str(out)))
        assert manifest is not None
        assert manifest.mounts == [str(inputs.resolve())]
        shutil.rmtree(inputs / "orders-0")
        mounted.remove(str(inputs.resolve()))
        assert "was a mount point when" in refused(inputs, out)
        mounted.add(str(inputs.resolve()))
        assert pruned(inputs, out) == [str(inputs / "orders-0" / LOG)]


def test_a_folder_that_cannot_be_listed(
    inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    shutil.rmtree(inputs / "orders-0")
    (inputs / "orders-0").mkdir()
    scandir = os.scandir

    def failing(path: object) -> object:
        if str(path) == str(inputs / "orders-0"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)  # type: ignore[call-overload]

    monkeypatch.setattr(os, "scandir", failing)
    assert refused(inputs, out).startswith(f"{inputs / 'orders-0'} can't be listed (Permission denied)")


def test_an_input_that_is_not_there(inputs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pipeline_steps.run(inputs, out)
    shutil.rmtree(inputs)
    with pytest.raises(FileNotFoundError, match="there is no"):
        pruned(inputs, out)
    assert keys(out) == ORDERS + PAY


def test_killed_at_any_step_it_is_finished_by_the_next_run(inputs: Path, tmp_path: Path) -> None:
    ready, missing = tmp_path / "ready", inputs / "orders-0"
    pipeline_steps.run(inputs, ready)
    remaining = tmp_path / "kept"
    missing.rename(remaining)
    step = -1
    while True:
        step += 2
        out = tmp_path / f"out-{step}"
        shutil.copytree(ready, out)
        try:
            with pipeline_steps.steps(pipeline_steps.crash_at(step)):
                pruned(inputs, out)
        except Crash:
            assert keys(out) in (ORDERS + PAY, PAY)
            pruned(inputs, out)
            assert keys(out) == PAY
            assert pipeline_steps.leftovers(out) == []
            named = {
                name
                for table in pipeline_steps.TABLES
                for name in Ledger(open_output(str(out))).named_files(table)[0]
            }
            assert pipeline_steps.parquet_files(out) == named
            shutil.rmtree(out)
        else:
            break
    assert step > 10
