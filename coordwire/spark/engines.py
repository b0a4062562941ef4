"""Units of work as the tasks of one Spark job, in a classic session or one of Spark Connect.

    pipeline.run(engine(spark), ["/backup"], "tables")

Strategy: a classic session runs the tasks as an RDD and reports its progress. A session of Spark Connect
(`SparkSession.builder.remote(…)`) has no SparkContext: there each task is a row with its pickled units, and
`mapInArrow` works through it on the server's workers, which need coordwire as those of a cluster do. Rules:
an interrupted run cancels its job; Spark's traces become one sentence. With Connect, paths are the workers'
and also this process's, which lists the inputs and keeps the manifest, so that both must see the same files;
Connect reports nothing of a job that runs, so that progress comes at its end.
"""

from __future__ import annotations

__all__ = ["ConnectEngine", "SparkEngine", "engine", "in_one_sentence", "is_connect"]

import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError
from coordwire.tables.pipeline.engine import Progress, as_tasks
from coordwire.tables.pipeline.units import Job, Unit, UnitFailed, printable, run_units

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

POLL = 0.2
MOST_SAID = 2000
_FAILED = f"{UnitFailed.__module__}.{UnitFailed.__name__}: "
_LOST = re.compile(
    r"Python worker exited|ExecutorLostFailure|OutOfMemoryError|No space left|SparkContext was"
)
_CAUSE = re.compile(r"[A-Za-z_][\w.]*: ")
"""The line of a worker's traceback that says what was raised."""
_FRAME = re.compile(
    r"at [\w.$/]+[(]|[.]{3} \d+ (more|common frames omitted)$|(An error occurred|Driver stack)"
)
"""A line of Java's trace, or one around it, which says nothing of the cause."""
_PREFIX = re.compile(
    r"^(Caused by)?:? ?(org[.]apache[.]spark[.]SparkException: )?"
    r"(Job aborted due to stage failure: .*?most recent failure: Lost task [^)]*[)] [(][^)]*[)]: )?"
)
"""What Spark puts before the failure of a task."""
_CLOSED = re.compile(r"java[.]io[.]EOFException|java[.]net[.]SocketException: (Broken pipe|Connection reset)")
"""What Spark says of a worker that ends before it has its task: that their connection is closed."""

CONNECT_WORKERS = 16
"""How many there may be: Connect does not say."""


def engine(spark: SparkSession) -> SparkEngine:
    """The engine of a Spark session, for `coordwire.tables.pipeline.run`."""
    return ConnectEngine(spark) if is_connect(spark) else SparkEngine(spark)


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class SparkEngine:
    """Runs units in a Spark job of this session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        tasks, done_count = as_tasks(units, self._workers(), job.options.split_size), 0
        if not tasks:
            return

        def work(group: list[Unit]) -> int:
            return len(run_units(group, job))

        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._work_through, tasks, work)
            try:
                while not running.done():
                    done_count = max(done_count, self._done_count())
                    if progress is not None:
                        progress(done_count, len(tasks))
                    time.sleep(POLL)
            except BaseException:  # interrupted, or asked to end
                with suppress(Exception):  # Spark itself may be gone
                    self._cancel()
                raise
            if (error := running.exception()) is not None:
                raise in_one_sentence(error) from error
        if progress is not None:
            progress(len(tasks), len(tasks))

    def _workers(self) -> int:
        return self.spark.sparkContext.defaultParallelism

    def _work_through(self, tasks: list[list[Unit]], work: Callable[[list[Unit]], int]) -> None:
        self.spark.sparkContext.parallelize(tasks, len(tasks)).map(work).collect()

    def _done_count(self) -> int:
        """How many tasks have ended, as far as Spark reports it."""
        tracker = self.spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return sum(info.numCompletedTasks for info in stages if info is not None)

    def _cancel(self) -> None:
        self.spark.sparkContext.cancelAllJobs()


class ConnectEngine(SparkEngine):
    """Runs units in a job of a Spark Connect session."""

    def _workers(self) -> int:
        return CONNECT_WORKERS

    def _work_through(self, tasks: list[list[Unit]], work: Callable[[list[Unit]], int]) -> None:
        def run_batches(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            import pyarrow as pa

            for batch in batches:
                unit_counts = [work(pickle.loads(row["task"])) for row in batch.to_pylist()]
                yield pa.RecordBatch.from_pydict({"units": pa.array(unit_counts, pa.int64())})

        rows = [(number, pickle.dumps(task)) for number, task in enumerate(tasks)]
        frame = self.spark.createDataFrame(rows, "number bigint, task binary")
        frame.repartitionByRange(len(tasks), "number").mapInArrow(run_batches, "units bigint").collect()

    def _done_count(self) -> int:
        return 0

    def _cancel(self) -> None:
        self.spark.interruptAll()


def in_one_sentence(error: BaseException) -> BaseException:
    """An error of Spark's in one sentence, without its traces; any other error as it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, Py4JError | PySparkException):
        return error
    lines = [line for line in map(str.strip, str(error).splitlines()) if line and not _FRAME.match(line)]
    failed = [line.partition(_FAILED)[2] for line in lines if _FAILED in line]
    lost = [line for line in lines if _LOST.search(line)]
    causes = [line for line in lines if _CAUSE.match(line)]
    sentence = _PREFIX.sub("", (failed or lost[:1] or causes or lines or ["?"])[-1]).rstrip(".")
    if _CLOSED.match(sentence):
        sentence = f"a Python worker exited ({sentence})"
    return CoordwireError(
        f"the Spark job failed: {printable(sentence)[:MOST_SAID]}; a rerun goes on where it was"
    )
