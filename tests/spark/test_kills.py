"""The command, ended by signals in the midst of its work; workers killed; two at once.

What runs afterwards or meanwhile does so in the tests' own Spark, which is there at once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from coordwire.errors import CoordwireError
from coordwire.records import batches
from coordwire.tables import pipeline
from coordwire.tables.options import Options
from coordwire.tables.report.summary import PipelineSummary
from tests.tables import pipeline_steps
from tests.tables.made_segments import partition, segment
from tests.tables.worker_processes import spark_workers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("class_archive")]

PARTITIONS = 10
TIMES = int(os.environ.get("COORDWIRE_KILLS", "1"))
"""How often each is tried, at other moments."""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Enough to be ended in the midst of; and how many records there are."""
    folder, expected = tmp_path_factory.mktemp("kills"), 0
    for number in range(PARTITIONS):
        data = segment(random.Random(number), 150)
        partition(folder, "orders", number, data)
        expected += sum(batch.count or 0 for batch in batches(data))
    return folder, expected


def command(logs: Path, out: Path, master: str = "local[1]") -> list[str]:
    words = ["pipeline", str(logs), "--out", str(out), "--master", master, "--no-report", "--format", "json",
             "--split-size", "16000"]  # fmt: skip
    return [sys.executable, "-m", "coordwire.cli", *words]


class Running:
    """The command, as a leader of its own process group, once it has left a note."""

    def __init__(self, logs: Path, out: Path, master: str = "local[1]") -> None:
        self.process = subprocess.Popen(
            command(logs, out, master), start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in the background
        )  # fmt: skip
        wait_for(lambda: list((out / "_manifest").glob("*.json")), self.process)

    def end(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=600)
        return self.process.returncode, out, err


def wait_for(condition: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    until = time.monotonic() + 500
    while not (value := condition()):
        assert process.poll() is None, f"it ended before: {process.communicate()}"
        assert time.monotonic() < until
        time.sleep(0.01)
    return value


def run_again(spark: SparkSession, logs: tuple[Path, int], out: Path) -> PipelineSummary:
    """It goes on, each record is there once, and nothing is left of what was ended."""
    engine, options = coordwire.spark.engine(spark), Options(split_size=16_000)
    summary = pipeline.run(engine, [str(logs[0])], str(out), report=False, options=options)
    assert_whole(logs, out)
    assert summary.records == logs[1]
    return summary


def assert_whole(logs: tuple[Path, int], out: Path) -> None:
    keys = pipeline_steps.record_keys(out)
    assert len(keys) == len(set(keys)) == logs[1]
    assert pipeline_steps.leftovers(out) == []


def moments() -> Iterator[float]:
    """Seconds to wait after the first note."""
    for number in range(TIMES):
        yield random.Random(number).random() * 2 * (number > 0)


def kill_workers(process: subprocess.Popen[str]) -> None:
    """Kill every worker there is: an idle one, which Spark keeps, would not be missed."""
    kill(wait_for(partial(spark_workers, process.pid), process))


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_kill_of_everything(spark: SparkSession, logs: tuple[Path, int], tmp_path: Path) -> None:
    for number, wait in enumerate(moments()):
        out = tmp_path / str(number)
        running = Running(logs[0], out)
        time.sleep(wait)
        os.killpg(running.process.pid, signal.SIGKILL)
        running.end()
        note_count = sum(len(json.loads(path.read_bytes())) for path in (out / "_manifest").glob("*.json"))
        summary = run_again(spark, logs, out)
        assert summary.reused >= note_count > 0 or wait
        assert wait or "ended without finishing (its process is gone)" in summary.notices[0]


def test_kill_of_the_driver_alone(spark: SparkSession, logs: tuple[Path, int], tmp_path: Path) -> None:
    """Its Java and its workers may work on for a while, beside the run that follows at once."""
    for number, wait in enumerate(moments()):
        out = tmp_path / str(number)
        running = Running(logs[0], out)
        time.sleep(wait)
        running.process.kill()
        running.process.wait()
        run_again(spark, logs, out)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_asked_to_end(
    spark: SparkSession, logs: tuple[Path, int], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    for count, wait in enumerate(moments()):
        out = tmp_path / str(count)
        running = Running(logs[0], out)
        time.sleep(wait)
        running.process.send_signal(number)
        code, _, err = running.end()
        if code == 0 and wait:  # it was too late
            continue
        assert code == status, err
        assert "Traceback" not in err
        assert pipeline_steps.leftovers(out) == []
        assert run_again(spark, logs, out).notices == []


def test_kill_of_a_worker(spark: SparkSession, logs: tuple[Path, int], tmp_path: Path) -> None:
    for number, _ in enumerate(moments()):
        out = tmp_path / str(number)
        running = Running(logs[0], out, "local[1,1]")
        while running.process.poll() is None:  # one that idles between two tasks is not missed
            kill(spark_workers(running.process.pid))
            time.sleep(0.01)
        code, _, err = running.end()
        assert code == 2, err
        text = err.splitlines()[-1]
        assert text.startswith("coordwire: the Spark job failed: ")
        assert "worker" in text
        assert "Traceback" not in err
        assert "\tat org.apache" not in err
        assert pipeline_steps.leftovers(out) == []
        run_again(spark, logs, out)


def test_a_worker_is_replaced_and_a_second_run_refused(
    spark: SparkSession, logs: tuple[Path, int], tmp_path: Path
) -> None:
    """The task is tried again: a second attempt at the units that it had. Another run is refused."""
    out = tmp_path / "out"
    running = Running(logs[0], out, "local[2]")
    kill_workers(running.process)
    os.kill(running.process.pid, signal.SIGSTOP)  # or it might end before the second one has begun
    try:
        with pytest.raises(CoordwireError, match="is in use by run ") as refused:
            pipeline.run(coordwire.spark.engine(spark), [str(logs[0])], str(out), report=False)
    finally:
        os.kill(running.process.pid, signal.SIGCONT)
    assert f"process {running.process.pid} on" in str(refused.value)
    code, _, err = running.end()
    assert code == 0, err
    assert_whole(logs, out)
