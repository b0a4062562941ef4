"""`python -m tests.bench.spark` measures the Spark pipeline beside the same decode in a plain loop.

Strategy: it makes segments (1 GB by default) of one repeated batch shape, then decodes them to Arrow batches
in a plain loop, to Parquet by the pipeline in processes of this machine (`--engine local`), to Spark's `noop`
sink, to Parquet by the pipeline in Spark (pyarrow in the workers) and to Parquet by Spark's own writer; on
one core and on two. Rules: CPU is what this process and everything it started has
used; wall time is beside it. The JVM has started and read one segment before it is measured. Every row
decodes the same bytes with the same columns.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import coordwire.spark
from coordwire.records import Record, encode_batch
from coordwire.tables.columns import default_columns
from coordwire.tables.options import Options
from coordwire.tables.readers.sources import SOURCES, plan, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNT, KEY, VALUE = 1000, 16, 200
"""Records in a batch, bytes of a key and of a value."""

SEGMENT = 128 << 20
TICKS = os.sysconf("SC_CLK_TCK")


def make(folder: Path, size: int) -> None:
    """Segments of one partition each, `size` bytes in all; offsets go up."""
    source = random.Random(7)
    rows = [
        Record(n, 1_700_000_000_000 + 3 * n, source.randbytes(KEY), source.randbytes(VALUE))
        for n in range(COUNT)
    ]
    batch = bytearray(encode_batch(rows))  # the checksum doesn't cover the base offset
    for number in range(-(-size // SEGMENT)):
        place = folder / f"orders-{number}"
        place.mkdir(parents=True)
        remaining = min(SEGMENT, size - number * SEGMENT)
        with open(place / f"{0:020}.log", "wb") as log:
            for index in range(remaining // len(batch)):
                batch[:8] = (index * COUNT).to_bytes(8, "big")
                log.write(batch)


def cpu() -> float:
    """Seconds of CPU of this process and all that descend from it, those that ended included."""
    parents: dict[int, int] = {}
    used: dict[int, float] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(name)] = int(fields[1])
            used[int(name)] = sum(map(int, fields[11:15])) / TICKS
    ours = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(used[process] for process in ours if process in used)


def plain(folder: Path) -> int:
    source = SOURCES["kafka-segment"]
    options = Options(paths=(str(folder),))
    columns = [column.name for column in default_columns(source.columns)]
    groups = plan(source, options)
    return sum(batch.num_rows for group in groups for batch in read(source, group, options, columns))


def measure(name: str, run: Callable[[], object], size: int, base: float | None) -> float:
    """One line of the table; the CPU it took."""
    wall, before = time.monotonic(), cpu()
    run()
    used, wall = cpu() - before, time.monotonic() - wall
    ratio = "" if base is None else f"{used / base:8.2f}"
    print(f"{name:34} {used:8.1f} {wall:8.1f} {size / used / 1e6:12.0f} {size / wall / 1e6:10.0f} {ratio}")
    sys.stdout.flush()
    return used


def local_rows(workers: int, folder: Path, out: Path, size: int, base: float) -> None:
    from coordwire.tables import pipeline

    measure(
        f"pipeline to Parquet, {workers} workers",
        lambda: pipeline.run(
            pipeline.LocalEngine(workers), [str(folder)], str(out / f"local-{workers}"), tables=["records"],
            report=False,
        ),
        size, base,
    )  # fmt: skip


def spark_rows(cores: int, folder: Path, out: Path, size: int, base: float, *, writers: bool) -> None:
    from coordwire.spark.session import session
    from coordwire.tables import pipeline

    spark: SparkSession = session(f"local[{cores}]", name="bench")
    try:
        frame = spark.read.format("kafka-segment").load(str(folder))
        warm = spark.read.format("kafka-segment").load(str(folder / "orders-0"))
        warm.write.format("noop").mode("overwrite").save()
        sink = frame.write.format("noop").mode("overwrite")
        measure(f"noop, local[{cores}]", sink.save, size, base)
        if writers:
            tables = str(out / f"tables-{cores}")
            measure(
                f"pipeline to Parquet, local[{cores}]",
                lambda: pipeline.run(
                    coordwire.spark.engine(spark), [str(folder)], tables, tables=["records"], report=False
                ),
                size, base,
            )  # fmt: skip
            target = str(out / f"spark-{cores}")
            measure(f"Spark's Parquet, local[{cores}]", lambda: frame.write.parquet(target), size, base)
    finally:
        spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--no-parquet", action="store_true")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="coordwire-bench-"))
    try:
        size = options.megabytes << 20
        make(work / "in", size)
        print(f"{'':34} {'CPU s':>8} {'wall s':>8} {'MB/s of CPU':>12} {'MB/s':>10} {'× plain':>8}")
        base = measure("plain loop", lambda: plain(work / "in"), size, None)
        for cores in (1, 2):
            if not options.no_parquet:
                local_rows(cores, work / "in", work, size, base)
            spark_rows(cores, work / "in", work, size, base, writers=not options.no_parquet)
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
