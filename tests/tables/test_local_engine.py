"""The pipeline without Spark: workers killed, interrupts, failures; and rows as Spark orders them."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast
from unittest import mock

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa
import pyarrow.parquet as pq

from coordwire.cli.__main__ import main
from coordwire.errors import CoordwireError
from coordwire.records import batches
from coordwire.tables import pipeline
from coordwire.tables.options import Options
from coordwire.tables.pipeline import engine, plan
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.pipeline.units import Job, Unit
from coordwire.tables.readers.files import find_files
from coordwire.tables.readers.group_rows import STORIES
from coordwire.tables.readers.splits import Part
from coordwire.tables.report.summary import TableRows
from coordwire.tables.storage.folders import open_output
from tests.broker_sample import broker_sample
from tests.tables import pipeline_steps
from tests.tables.made_segments import partition, segment

PARTITIONS = 8


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Enough to be ended in the midst of; and how many records there are."""
    folder, expected = tmp_path_factory.mktemp("logs"), 0
    for number in range(PARTITIONS):
        data = segment(random.Random(number), 100)
        partition(folder, "orders", number, data)
        expected += sum(batch.count or 0 for batch in batches(data))
    return folder, expected


def words(logs: Path, out: Path, workers: int) -> list[str]:
    return ["pipeline", str(logs), "--out", str(out), "--engine", "local", "--workers", str(workers),
            "--format", "json", "--no-report", "--split-size", "16000"]  # fmt: skip


class Running:
    """The command in its own process group, once it has left a note."""

    def __init__(self, logs: Path, out: Path, workers: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "coordwire.cli", *words(logs, out, workers)],
            start_new_session=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background
        )  # fmt: skip
        until(lambda: self.process.poll() is not None or list((out / "_manifest").glob("*.json")))
        assert self.process.poll() is None, self.process.communicate()

    def workers(self) -> list[int]:
        """The processes that it started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(number) for number in children.read_text().split()]

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=600)
        return self.process.returncode, err


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def is_gone(process: int) -> bool:
    """Whether it has ended, waited for or not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def assert_whole(logs: tuple[Path, int], out: Path) -> None:
    keys = pipeline_steps.record_keys(out)
    assert len(keys) == len(set(keys)) == logs[1]
    assert pipeline_steps.leftovers(out) == []


def run_again(logs: tuple[Path, int], out: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(words(logs[0], out, 1)) == 0
    assert_whole(logs, out)
    summary: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert summary["records"] == logs[1]
    return summary


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers in /proc")
def test_killed_workers_are_replaced(logs: tuple[Path, int], tmp_path: Path) -> None:
    running = Running(logs[0], tmp_path / "out", 2)
    killed = running.workers()
    assert len(killed) == 2
    for worker in killed:
        os.kill(worker, signal.SIGKILL)
    assert running.end() == (0, "")
    assert_whole(logs, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_asked_to_end(
    logs: tuple[Path, int],
    tmp_path: Path,
    number: signal.Signals,
    status: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As a terminal does it: the signal goes to the whole group."""
    running = Running(logs[0], tmp_path / "out", 2)
    workers = running.workers()
    os.killpg(running.process.pid, number)
    code, err = running.end()
    assert (code, "Traceback" in err) == (status, False), err
    assert all(map(is_gone, workers))
    assert pipeline_steps.leftovers(tmp_path / "out") == []
    assert run_again(logs, tmp_path / "out", capsys)["reused"] > 0


def test_kill_of_the_driver(
    logs: tuple[Path, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Running(logs[0], tmp_path / "out", 2)
    workers = running.workers()
    running.process.kill()
    running.end()
    [notice] = run_again(logs, tmp_path / "out", capsys)["notices"]
    assert "ended without finishing (its process is gone)" in notice
    until(lambda: all(map(is_gone, workers)))


class Poison(Unit):
    """Kills the process that reads it from its pipe."""

    def __reduce__(self) -> Any:
        return signal.raise_signal, (signal.SIGKILL,)


def test_a_task_that_kills_every_worker_fails_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where this process has several threads: a worker is an interpreter."""
    monkeypatch.setattr(engine, "_has_one_thread", lambda: False)
    monkeypatch.setattr(engine, "TRIES", 2)
    unit = Poison("poison", Part("segment", "/in/a.log", 1, 0, 1))
    with pytest.raises(CoordwireError) as info:
        pipeline.LocalEngine(2).run_units([unit], Job(str(tmp_path), Options(), ("records",)), None)
    assert info.value.reason == (
        "the job failed: /in/a.log: a worker process was ended by SIGKILL (2 attempts); a rerun goes on "
        "where it was"
    )


IN_A_FORK = """
import json, os, signal, sys, threading
from coordwire.tables.options import Options
from coordwire.tables.pipeline import LocalEngine, engine
from coordwire.tables.pipeline.units import Job, Unit
from coordwire.tables.readers.splits import Part

def report():
    state = {
        "files": [os.readlink(file) for n in range(50) if os.path.lexists(file := f"/proc/self/fd/{n}")],
        "blocked": signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        "default": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
        "imported": "marker" in sys.modules,
    }
    with open(sys.argv[1], "w") as file:
        json.dump(state, file)
    os.kill(os.getpid(), signal.SIGKILL)

class Probe(Unit):
    def __reduce__(self):
        return report, ()

engine.TRIES = 1
sys.modules["marker"] = sys
kept = open(sys.argv[1] + ".kept", "w")
signal.signal(signal.SIGTERM, lambda *_: None)
if sys.argv[2] == "2":
    engine.subprocess.Popen = None
    threading.Thread(target=threading.Event().wait, daemon=True).start()
unit = Probe("probe", Part("segment", "/in/a.log", 1, 0, 1))
try:
    LocalEngine(1).run_units([unit], Job("x", Options(), ("records",)), None)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")
def test_a_worker_that_is_a_fork_has_nothing_of_its_parent_but_modules(tmp_path: Path) -> None:
    def run(threads: int) -> str:
        words = [sys.executable, "-c", IN_A_FORK, str(tmp_path / "state"), str(threads)]
        return subprocess.run(words, check=True, text=True, capture_output=True).stdout

    assert "the job failed: /in/a.log: a worker process was ended by SIGKILL" in run(1)
    state = json.loads((tmp_path / "state").read_text())
    descriptors = [name for name in state.pop("files")[3:] if not name.startswith("/proc")]
    assert len(descriptors) == 1
    assert descriptors[0].startswith("socket:")
    assert state == {"blocked": True, "default": True, "imported": True}
    assert run(2).startswith("TypeError")  # where there are several threads it is no fork


def test_a_job_that_fails_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = partition(tmp_path / "in", "orders", 0, bytes(8) + b"\xff" * 92)
    strict = Options(mode="failfast")
    with pytest.raises(CoordwireError, match=r"^the job failed: .*CorruptBatch: .*bytes 0 to 100"):
        pipeline.run(pipeline.LocalEngine(1), [str(place)], str(tmp_path / "out"), options=strict)
    rerun = pipeline.run(pipeline.LocalEngine(1), [str(place)], str(tmp_path / "out"))
    assert (rerun.reused, rerun.bad_ranges) == (0, 1)
    (tmp_path / "full").mkdir()
    partition(tmp_path / "sound", "orders", 0, segment(random.Random(1), 3))
    assert main(words(tmp_path / "sound", tmp_path / "full", 1)) == 0
    (tmp_path / "full" / "manifest.json").write_text("{}")
    assert main(words(tmp_path / "sound", tmp_path / "full", 1)) == 2
    assert "is not a manifest of this pipeline" in capsys.readouterr().err


@pytest.mark.slow
def test_progress_and_workers(logs: tuple[Path, int], tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    engine = pipeline.LocalEngine(2)
    pipeline.run(
        engine, [str(logs[0])], str(tmp_path), tables=["records"], report=False,
        options=Options(split_size=16_000),
        progress=lambda process, total: calls.append((process, total)),
    )  # fmt: skip
    assert calls == [(number + 1, len(calls)) for number in range(len(calls))]
    assert len(calls) >= PARTITIONS // 2
    with pytest.raises(CoordwireError, match="expected at least 1 worker, got 0"):
        pipeline.LocalEngine(0)


def test_segments_that_no_table_needs_are_not_read(tmp_path: Path) -> None:
    """Nor is it noticed what is wrong in them; in those of commits it is."""
    disk = tmp_path / "disk"
    shutil.copytree(broker_sample() / "data", disk)
    damaged = [next(disk.glob(f"{name}/*.log")) for name in ("codec-none-0", "__consumer_offsets-1")]
    for path in damaged:
        with path.open("ab") as file:
            file.write(b"\xff" * 100)

    def run(*tables: str) -> tuple[int, set[str], list[Any]]:
        out = tmp_path / "-".join(tables)
        summary = pipeline.run(pipeline.LocalEngine(1), [str(disk)], str(out), tables=tables, report=False)
        notes = json.loads((out / "manifest.json").read_text())["units"].values()
        read = {
            Path(path).parent.name for note in notes if note["kind"] == "segment" for path in note["paths"]
        }
        actual = [
            sorted(map(repr, pipeline_steps.table_rows(out, name))) for name in STORIES if name in tables
        ]
        return summary.bad_ranges, read, actual

    offsets = {"__consumer_offsets-0", "__consumer_offsets-1"}
    *_, expected = run(*STORIES, "quarantine")
    assert run(*STORIES) == (1, offsets, expected)
    files = {file.path: file for file in find_files([str(disk)])}
    segments = {path.parent.name for path in [*disk.glob("*/*.log"), *disk.glob("*/*.checkpoint")]} | {"disk"}
    for name, read in {
        **dict.fromkeys(STORIES, offsets), "frames": set(), "errors": set(),
        **dict.fromkeys(("files", "batches", "records", "quarantine"), segments),
    }.items():  # fmt: skip
        units = plan(files, Options(), [name])
        assert {Path(unit.part.path).parent.name for unit in units if unit.kind == "segment"} == read


def test_options_of_the_other_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    current = [str(tmp_path), "--out", str(tmp_path / "out")]
    for extra, text in {
        "--engine local --master local[2]": "--master and --conf are for Spark",
        "--engine local --conf a=b": "--master and --conf are for Spark",
        "--engine local --workers 0": "expected at least 1 worker, got 0",
        "--workers 2": "--workers is for --engine local",
    }.items():
        assert main(["pipeline", *current, *extra.split()]) == 2
        assert text in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_first_rows_are_those_of_a_plain_sort(logs: tuple[Path, int], tmp_path: Path) -> None:
    pipeline.run(pipeline.LocalEngine(1), [str(logs[0])], str(tmp_path), tables=["records"], report=False)
    output = open_output(str(tmp_path))
    reading = TableRows(output, {"records": Ledger(output).named_files("records")[0]})
    rows = pipeline_steps.table_rows(tmp_path, "records")

    def order(row: dict[str, Any]) -> tuple[Any, ...]:
        return (row["key"] is not None, row["key"] or b"", row["partition"], row["log_offset"])

    for most in (0, 1, 7, len(rows) // 5, len(rows) + 1):
        actual = reading.rows("records", "log_offset key time", "key partition log_offset", most)
        expected = sorted(rows, key=order)[:most]
        assert [(row.log_offset, row.key) for row in actual] == [
            (row["log_offset"], row["key"]) for row in expected
        ]
        assert [row.time for row in actual] == [micros(row["time"]) for row in expected]
    known = reading.rows("records", "key", "key", 10**6, known=["key"], among={"topic": ["orders", "none"]})
    assert [row.key for row in known] == sorted(row["key"] for row in rows if row["key"] is not None)
    assert reading.rows("records", "key", "key", 9, among={"topic": ["none"]}) == []
    assert reading.rows("records", "log_offset", "log_offset", 9, known=["timestamp_type"]) == []  # not there
    assert reading.rows("frames", "time", "time", 9) == []


def test_row_groups_without_values_are_not_read(tmp_path: Path) -> None:
    """The first group, of a megabyte, has no reason: what is read is the footer and the second group."""
    rng, size = random.Random(1), 100_000
    times = pa.array([rng.getrandbits(50) for _ in range(size)] + [4, 3], pa.timestamp("us"))
    table = pa.table({"time": times, "error_reason": [None] * size + [None, "x"]})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=size)
    output, sizes = open_output(str(tmp_path)), list[int]()
    inner = output.open

    class Counting(io.BufferedReader):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(size)
            sizes.append(len(data))
            return data

    def opened(name: str) -> io.BufferedReader:
        return Counting(cast(io.BufferedReader, inner(name)).detach())

    with mock.patch.object(output, "open", opened):
        rows = TableRows(output, {"frames": ["x.parquet"]}).rows(
            "frames", "time error_reason", "time", 9, known=["error_reason"]
        )
    assert [(row.time, row.error_reason) for row in rows] == [(3, "x")]
    assert (tmp_path / "x.parquet").stat().st_size > 700_000 > 200_000 > sum(sizes) > 0


def micros(time: datetime) -> int:
    return round(time.timestamp() * 1000) * 1000
