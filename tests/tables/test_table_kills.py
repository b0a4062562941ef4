"""The command, killed at any moment and run again: plain Parquet on a disk and in a store, Delta, Iceberg.

`python -m tests.tables.test_table_kills --times 60` starts sixty runs of each, and counts what was killed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.records import batches
from coordwire.tables import pipeline
from coordwire.tables.formats import FORMATS, PARQUET
from coordwire.tables.options import Options
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.parquet_files import read_rows
from tests.tables.in_process import InProcess
from tests.tables.made_segments import partition, segment
from tests.tables.moto_s3 import local_s3

TIMES = int(os.environ.get("COORDWIRE_KILLS", "1"))
"""How often a run is started to be killed, each time at another moment."""

PARTITIONS = 6
COLUMNS = ("partition", "log_offset")
PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}

Rows = Counter[tuple[int, int]]
"""How often each record is there, by its partition and offset."""


LOCAL = ("--engine", "local", "--workers", "2", "--no-report")


def command(logs: Path, out: str, table_format: str, engine: Sequence[str]) -> list[str]:
    return [
        sys.executable, "-m", "coordwire.cli", "pipeline", str(logs), "--out", out, *engine, "--format",
        table_format, "--split-size", "16000", "--tables", "records,files", "--summary", "json",
    ]  # fmt: skip


def rows(out: str, table_format: str) -> Rows:
    """The records of the table; none where there is no table yet."""
    place = Path(out, "records")
    if table_format == PARQUET:
        output, schema = open_output(out), pa.schema([(name, pa.int64()) for name in COLUMNS])
        names, _ = Ledger(output).named_files("records")
        table = pa.Table.from_batches(
            (batch for name in names for batch in read_rows(output, name, schema)), schema
        )
    elif not any((place / log).exists() for log in ("_delta_log", "metadata")):
        return Rows()
    elif table_format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(place).to_pyarrow_table(columns=list(COLUMNS))
    else:
        from pyiceberg.table import StaticTable

        table = StaticTable.from_metadata(str(place)).scan(selected_fields=COLUMNS).to_arrow()
    return Rows(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))


def expected(logs: Path) -> Rows:
    counts = Rows()
    for file in logs.rglob("*.log"):
        number = int(file.parent.name.rpartition("-")[2])
        counts.update((number, record.offset) for batch in batches(file.read_bytes()) for record in batch)
    return counts


def add_records(logs: Path, turn: int) -> None:
    """Each partition's segment grows."""
    for number in range(PARTITIONS):
        data = segment(random.Random(100 * turn + number), 8, base=10_000 * turn)
        if turn == 0:
            partition(logs, "orders", number, data)
        else:
            with next((logs / f"orders-{number}").glob("*.log")).open("ab") as file:
                file.write(data)


class Command:
    """Runs the command, with its workers, in a process group of its own."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words

    def run(self, seconds: float) -> bool:
        """Whether it was killed after so many seconds; else it had ended by itself, with success."""
        running = subprocess.Popen(
            self.words, start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        try:
            running.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
        _, errors = running.communicate()
        assert "Traceback" not in errors
        assert running.returncode in (0, -signal.SIGKILL), errors
        return running.returncode != 0


class Process:
    """Runs the pipeline without workers in a process that is forked from one with all modules."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([__name__, *PACKAGES.values(), "pyarrow.parquet"])

    def run(self, seconds: float) -> bool:
        """As `Command.run`."""
        process = self._context.Process(target=run_pipeline, args=(*self._arguments, dict(os.environ)))
        process.start()
        process.join(seconds)
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        return process.exitcode != 0


def run_pipeline(logs: str, out: str, table_format: str, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    pipeline.run(
        InProcess(), [logs], out, tables=("records", "files"), options=Options(split_size=16_000),
        report=False, format=table_format,
    )  # fmt: skip


def count_kills(
    logs: Path,
    out: str,
    table_format: str,
    times: int,
    *,
    runner: Command | Process,
    rows: Callable[[str, str], Rows] = rows,
    took: float = 3.0,
) -> int:
    """Start runs, each on more records than the one before; how many of them were killed.

    With a log of their own, tables have all rows of a run or none, at each moment. In plain Parquet they may
    have some of them, each once. A run that isn't killed adds the missing ones. rows: reads the
    table; took: how many seconds a run takes, at first.
    """
    rng = random.Random(f"{table_format} {out.partition('://')[1]}")
    versions, killed, last = [Rows()], 0, 0
    for turn in range(times):
        add_records(logs, turn)
        versions.append(expected(logs))
        killed += runner.run(took * rng.uniform(0.3, 1.0))
        actual = rows(out, table_format)
        if table_format == PARQUET:
            assert actual <= versions[-1]
        else:
            assert actual in versions[last:]  # a run that was killed before may have left a commit to be made
            last = versions.index(actual, last)
        if rng.random() < 0.5 or turn == times - 1:
            began = time.monotonic()
            assert not runner.run(600)
            took = time.monotonic() - began
            assert rows(out, table_format) == versions[-1]
            last = len(versions) - 1
    return killed


def run_all(folder: Path, table_format: str, store: bool, times: int, *, with_workers: bool) -> int:
    """In a folder of the local disk, or of a local S3."""
    logs, out = folder / "logs", "s3://kills/out" if store else str(folder / "out")
    runner: Command | Process = Process(str(logs), out, table_format)
    if with_workers:
        runner = Command(command(logs, out, table_format, LOCAL))
    with local_s3() if store else nullcontext() as s3:
        if s3 is not None:
            s3.put("kills", {})
        return count_kills(logs, out, table_format, times, runner=runner)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table_format", "store"), [("delta", False), (PARQUET, False), (PARQUET, True), ("iceberg", False)]
)
def test_killed_at_any_moment(tmp_path: Path, table_format: str, store: bool) -> None:
    """Each row is there at most once at each moment, and once in the end."""
    if package := PACKAGES.get(table_format):
        pytest.importorskip(
            package, reason=f"{package} isn't installed: pip install 'coordwire[{table_format}]'"
        )
    killed = run_all(tmp_path, table_format, store, TIMES, with_workers=True)
    print(f"{killed} of {TIMES} runs were killed")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.tables.test_table_kills", description=__doc__)
    parser.add_argument("--times", type=int, default=60, help="how many runs are started (%(default)s)")
    parser.add_argument("--workers", action="store_true", help="the command, with two workers")
    parser.add_argument("--formats", default=",".join(FORMATS), help="of %(default)s")
    options = parser.parse_args()
    for table_format in options.formats.split(","):
        for store in (False, True) if table_format == PARQUET else (False,):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                killed = run_all(
                    Path(folder), table_format, store, options.times, with_workers=options.workers
                )
            place = "a local S3" if store else "a disk"
            seconds = time.monotonic() - began
            print(f"{table_format} on {place}: nothing found in {seconds:.0f} s, {killed} cases", flush=True)


if __name__ == "__main__":
    main()
