"""`python -m tests.spark.stress --runs 200`: runs of the pipeline while its workers are killed and held up.

Strategy: each run has a folder of its own and a troublemaker, which sends SIGKILL to some of the Python
workers and stops others for a while, so that speculation starts second attempts at their tasks; two threads
start the run at once, of which one may be refused. Then the troublemaker ends, the run is repeated, and the
folder is looked at: every record once, every file readable and named in the manifest, nothing left over.
Rules: the trouble follows from the seed, as far as the scheduler repeats itself; Spark runs as a
cluster with workers on two addresses, as Spark starts no second attempt on the host of the first.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

import coordwire.spark
from coordwire.errors import CoordwireError
from coordwire.records import batches
from coordwire.spark.session import java_home, session
from coordwire.tables import pipeline
from coordwire.tables.columns import TABLES
from coordwire.tables.options import Options
from coordwire.tables.pipeline.engine import Engine, LocalEngine
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.storage.folders import open_output
from tests.tables import pipeline_steps
from tests.tables.made_segments import partition, segment
from tests.tables.worker_processes import local_workers, spark_workers

PARTITIONS, BATCHES = 8, 300
OPTIONS = Options(split_size=16_384)
"""So that there are many tasks."""

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.task.maxFailures": "1000",
    "spark.default.parallelism": "4",
    "spark.sql.shuffle.partitions": "2",
}


class Troublemaker(threading.Thread):
    """Kills workers, and stops some for a while. workers: gives those that are there."""

    def __init__(self, seed: int, workers: Callable[[], list[int]], counts: Counter[str]) -> None:
        super().__init__(daemon=True)
        self._random = random.Random(seed)
        self._workers = workers
        self._counts = counts
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(self._random.uniform(0.1, 0.8)):
            if workers := self._workers():
                self._trouble(self._random.choice(workers), self._random.random() < 0.25)

    def _trouble(self, worker: int, kill: bool) -> None:
        with suppress(ProcessLookupError):
            if kill:
                os.kill(worker, signal.SIGKILL)
                self._counts["killed"] += 1
                return
            os.kill(worker, signal.SIGSTOP)
            self._counts["held up"] += 1
            self._ended.wait(self._random.uniform(0.5, 4.0))
            os.kill(worker, signal.SIGCONT)

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each, on addresses of their own; gives the master's URL."""
    home = Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"spark://127.0.0.1:{port}"
    environment = {**os.environ, "JAVA_HOME": java_home(), "SPARK_HOME": str(home), "SPARK_NO_DAEMONIZE": "1"}
    words = ["--port", str(port), "--webui-port", "0"]
    commands = [["master.Master", "--host", "127.0.0.1", *words]]
    for number in (2, 3):
        place = ["--host", f"127.0.0.{number}", "--work-dir", str(folder / f"work-{number}")]
        commands.append(["worker.Worker", *place, "--cores", "1", "--memory", "1g", "--webui-port", "0", url])
    started: list[subprocess.Popen[bytes]] = []
    try:
        for name, *remaining in commands:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", *remaining]
            log = (folder / f"{name}-{len(started)}.txt").open("w")
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
        yield url
    finally:
        for process in started:
            process.terminate()
            process.wait()


def one_run(engine: Engine, logs: Path, out: Path, counts: Counter[str]) -> None:
    """A run that may be refused or fail, as long as it says so."""
    try:
        pipeline.run(engine, [str(logs)], str(out), options=OPTIONS, report=False)
        counts["finished"] += 1
    except CoordwireError as error:
        if " is in use by " not in str(error):
            print(f"failed: {error}", flush=True)
            counts["failed"] += 1
        else:
            counts["refused"] += 1


def wait_for_late_attempts(out: Path, counts: Counter[str]) -> bool:
    """Whether an attempt outlived its run, as a second one of a task that was held up may: it publishes
    nothing and removes its files itself, unless it is killed, after which the next run does."""
    if not pipeline_steps.leftovers(out):
        return False
    counts["late attempts"] += 1
    until = time.monotonic() + 60
    while pipeline_steps.leftovers(out) and time.monotonic() < until:
        time.sleep(0.2)
    return True


def check(out: Path, wanted: int) -> None:
    """That each record is there once, and that the files are those of the manifest."""
    keys = pipeline_steps.record_keys(out)
    assert len(keys) == len(set(keys)) == wanted, (out, len(keys), len(set(keys)), wanted)
    assert pipeline_steps.leftovers(out) == [], pipeline_steps.leftovers(out)
    output = open_output(str(out))
    assert all(alone for _, alone in (Ledger(output).named_files(table) for table in TABLES)), out


def tasks_started(events: Path) -> tuple[int, int]:
    """How many attempts at tasks Spark started by its own log of events, and how many for speculation."""
    lines = (line for path in events.rglob("*") if path.is_file() for line in path.open(errors="replace"))
    started = [line for line in lines if '"Event":"SparkListenerTaskStart"' in line]
    return len(started), sum('"Speculative":true' in line for line in started)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.stress", description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=0, help="of the first run; the next has the next (%(default)s)"
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        logs, events, expected = Path(folder, "logs"), Path(folder, "events"), 0
        events.mkdir()
        for number in range(PARTITIONS):
            data = segment(random.Random(number), BATCHES)
            partition(logs, "orders", number, data)
            expected += sum(batch.count or 0 for batch in batches(data))
        engine: Engine
        if options.engine == "local":
            engine, workers = LocalEngine(2), local_workers
        else:
            logged = {
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": events.as_uri(),
                "spark.eventLog.compress": "false",
            }
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            own = {"spark.executor.memory": "512m", "spark.cores.max": "2", "spark.driver.host": "127.0.0.1",
                   "spark.ui.enabled": "false"}  # fmt: skip
            master = stack.enter_context(cluster(Path(folder)))
            spark = session(master, name="stress", config=SPECULATION | logged | own)
            engine, workers = coordwire.spark.engine(spark), spark_workers
        for run in range(options.seed, options.seed + options.runs):
            out = Path(folder, f"run-{run}")
            trouble = Troublemaker(run, workers, counts)
            trouble.start()
            both = [threading.Thread(target=one_run, args=(engine, logs, out, counts)) for _ in range(2)]
            for thread in both:
                thread.start()
            for thread in both:
                thread.join()
            trouble.end()
            pipeline.run(engine, [str(logs)], str(out), options=OPTIONS, report=False)
            if wait_for_late_attempts(out, counts):
                pipeline.run(engine, [str(logs)], str(out), options=OPTIONS, report=False)
            check(out, expected)
            print(run, dict(counts), flush=True)
        if options.engine == "spark":
            spark.stop()
            counts["attempts"], counts["speculative"] = tasks_started(events)
    print(f"{options.runs} runs: every record once, every file readable", dict(counts))


if __name__ == "__main__":
    main()
