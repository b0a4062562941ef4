"""Units of work by Spark Connect, whose sessions have no SparkContext: `SparkSession.builder.remote(…)`.

Strategy: each task is a row with its pickled units, and `mapInArrow` works through it on the server's
workers, which need coordwire as those of a cluster do. Rules: paths are the workers' and also this process's,
which lists the inputs and keeps the manifest, so that both must see the same files; Connect reports nothing
of a job that runs, so that progress comes at its end.
"""

from __future__ import annotations

__all__ = ["ConnectEngine", "is_connect"]

import pickle
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from coordwire.spark.pipeline.spark_tasks import SparkEngine
from coordwire.spark.pipeline.units import Unit

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession

WORKERS = 16
"""How many there may be: Connect does not say."""


def is_connect(spark: SparkSession) -> bool:
    """Whether it is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


class ConnectEngine(SparkEngine):
    """Runs units in a job of a Spark Connect session."""

    def _workers(self) -> int:
        return WORKERS

    def _work_through(self, tasks: list[list[Unit]], work: Callable[[list[Unit]], int]) -> None:
        def each(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            import pyarrow as pa

            for batch in batches:
                done = [work(pickle.loads(row["task"])) for row in batch.to_pylist()]
                yield pa.RecordBatch.from_pydict({"units": pa.array(done, pa.int64())})

        rows = [(number, pickle.dumps(task)) for number, task in enumerate(tasks)]
        frame = self.spark.createDataFrame(rows, "number bigint, task binary")
        frame.repartitionByRange(len(tasks), "number").mapInArrow(each, "units bigint").collect()

    def _done(self) -> int:
        return 0

    def _cancel(self) -> None:
        self.spark.interruptAll()
