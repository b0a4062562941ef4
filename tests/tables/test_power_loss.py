"""The power fails while the pipeline writes tables: rows of runs that ended are there, and the next run has
each row once.

The names of files keep the order in which they were given, as on ext4 and XFS (`tests.losing_disk`).
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from tests.losing_disk import LosingDisk
from tests.tables import pipeline_steps

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the losing disk is Linux's only")
ROWS = [("orders", partition, offset) for partition in range(2) for offset in range(6)]


def files_of(out: Path, table: str) -> list[str]:
    return Ledger(open_output(str(out))).named_files(table)[0]


def lose(work: Path, seed: int, rate: float) -> int:
    """Runs of a pipeline, whose inputs grow, on a disk that loses its power; gives how often it did."""
    inputs, disk_root = work / "in", work / "disk"
    disk_root.mkdir(parents=True)
    done = [0]
    disk = LosingDisk(disk_root, lambda: done[0], Random(seed), rate=rate, journal=True)
    with disk.recording():
        for partition in range(2):
            pipeline_steps.put_segment(inputs, "orders", partition, range(6))
            pipeline_steps.run(inputs, disk_root / "out")
            done[0] = partition + 1
        for _ in range(5):
            disk.fail("after the runs", always=True)
    for number, loss in enumerate(disk.losses):
        place = work / f"{number}"
        place.mkdir()
        loss.write(place)
        out = place / "out"
        rows = [row for row in ROWS if row[1] < loss.promised]
        where = f"seed {seed}, loss {number} before {loss.place}"
        assert not rows or set(rows) <= set(pipeline_steps.record_keys(out)), where
        pipeline_steps.run(inputs, out)
        assert pipeline_steps.record_keys(out) == ROWS, where
        named = {name for table in pipeline_steps.TABLES for name in files_of(out, table)}
        assert pipeline_steps.parquet_files(out) == named, where
        assert not pipeline_steps.leftovers(out), where
    return len(disk.losses)


def test_the_next_run_has_each_row_once(tmp_path: Path) -> None:
    assert lose(tmp_path, 1, 0.2) > 10


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_the_next_run_has_each_row_once_more_often(tmp_path: Path, seed: int) -> None:
    assert lose(tmp_path, seed, 0.7) > 50
