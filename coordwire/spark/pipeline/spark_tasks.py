"""Units of work as the tasks of one Spark job, with its progress, and why it failed.

Rules: neighbouring units share a task, so that all workers end at about the same time and no task is too
small; an interrupted run cancels its job; Spark's traces become one sentence.
"""

from __future__ import annotations

__all__ = ["Progress", "run_units"]

import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

from coordwire.errors import CoordwireError
from coordwire.spark.options import Options
from coordwire.spark.pipeline.units import Unit, UnitFailed, printable, run_unit
from coordwire.spark.readers.parts import OPENING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[int, int], None]
"""Called with how many tasks are done, of how many."""

TASK = 32 << 20
"""Bytes that a task reads at least, where there are that many."""

POLL = 0.2
MOST_SAID = 2000
_FAILED = f"{UnitFailed.__module__}.{UnitFailed.__name__}: "
_LOST = re.compile(
    r"Python worker exited|ExecutorLostFailure|OutOfMemoryError|No space left|SparkContext was"
)
_CAUSE = re.compile(r"[A-Za-z_][\w.]*: ")
"""The line of a worker's traceback that says what was raised."""


def run_units(
    spark: SparkSession,
    units: Sequence[Unit],
    out: str,
    options: Options,
    tables: tuple[str, ...],
    progress: Progress | None,
    run: str | None = None,
) -> None:
    """Run the units in tasks of a fair size each. Raises `CoordwireError` where the job fails."""
    tasks = _tasks(units, spark.sparkContext.defaultParallelism)
    if not tasks:
        return

    def work(group: list[Unit]) -> int:
        for unit in group:
            run_unit(unit, out, options, tables, run)
        return len(group)

    context, done = spark.sparkContext, 0
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(lambda: context.parallelize(tasks, len(tasks)).map(work).collect())
        try:
            while not job.done():
                done = max(done, _done(spark))
                if progress is not None:
                    progress(done, len(tasks))
                time.sleep(POLL)
        except BaseException:  # interrupted, or asked to end
            with suppress(Exception):  # Spark itself may be gone
                context.cancelAllJobs()
            raise
        if (error := job.exception()) is not None:
            raise _told(error) from error
    if progress is not None:
        progress(len(tasks), len(tasks))


def _told(error: BaseException) -> BaseException:
    """What ended the job, without Spark's traces; anything but Spark's own errors as it is."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if not isinstance(error, Py4JError | PySparkException):
        return error
    lines = [line.strip() for line in str(error).splitlines()]
    failed = [line.partition(_FAILED)[2] for line in lines if _FAILED in line]
    lost = [line for line in lines if _LOST.search(line)]
    causes = [line for line in lines if _CAUSE.match(line)]
    said = (failed or lost[:1] or causes or lines or ["?"])[-1]
    return CoordwireError(
        f"the Spark job failed: {printable(said)[:MOST_SAID]}; a rerun goes on where it was"
    )


def _tasks(units: Sequence[Unit], workers: int) -> list[list[Unit]]:
    """Neighbours together: enough tasks for all workers to end at about the same time, none too small."""
    cost = [unit.part.end - unit.part.start + OPENING for unit in units]
    most = (
        max(TASK, sum(cost) // (1000 * workers))
        if sum(cost) > 4 * workers * TASK
        else (sum(cost) // (4 * workers) + 1)
    )
    tasks: list[list[Unit]] = []
    used = most
    for unit, size in zip(units, cost, strict=True):
        if used + size > most:
            tasks.append([])
            used = 0
        tasks[-1].append(unit)
        used += size
    return tasks


def _done(spark: SparkSession) -> int:
    tracker = spark.sparkContext.statusTracker()
    found = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(info.numCompletedTasks for info in found if info is not None)
