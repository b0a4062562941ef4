"""`python -m tests.bench.scale` measures how time and memory of the pipeline grow with its input.

Strategy: segments of 2, 4 and 8 GiB (`tests.bench.spark.make`), each to Parquet by processes of this machine,
or by Spark on as many cores (`--engine spark`), in one session, which has run a small job before. Rules: CPU
is that of this process and all that it started, Java included; memory is the most that any worker had by
then, and what this process had, and Java.
"""

from __future__ import annotations

import argparse
import random
import resource
import tempfile
import time
from pathlib import Path

import coordwire.spark
from coordwire.tables import pipeline
from coordwire.tables.pipeline.engine import Engine
from tests.bench.spark import cpu, make
from tests.tables.made_segments import partition, segment
from tests.tables.worker_processes import descendants, spark_workers


def most_memory(pids: list[int]) -> int:
    """The most memory, in MB, that any of these processes had."""
    results = [0]
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                results.append(int(line.split()[1]) >> 10)
    return max(results)


def engine_of(name: str, workers: int, folder: Path) -> Engine:
    """An engine that has worked before, if it takes time to start."""
    if name == "local":
        return pipeline.LocalEngine(workers)
    from coordwire.spark.session import session

    engine = coordwire.spark.engine(session(f"local[{workers}]", name="scale"))
    partition(folder / "small", "orders", 0, segment(random.Random(1), 50))
    pipeline.run(engine, [str(folder / "small")], str(folder / "small-out"), report=False)
    return engine


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--gib", type=int, nargs="+", default=[2, 4, 8], help="sizes (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes or cores (%(default)s)")
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as first:
        engine = engine_of(options.engine, options.workers, Path(first))
    for size in options.gib:
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder, "logs")
            logs.mkdir()
            make(logs, size << 30)
            began, before = time.monotonic(), cpu()
            summary = pipeline.run(engine, [str(logs)], f"{folder}/out", report=False)
            took, used = time.monotonic() - began, cpu() - before
            if options.engine == "spark":
                workers = most_memory(spark_workers())
                others = most_memory([pid for pid, command in descendants().items() if b"java" in command])
                more = f", Java {others} MB"
            else:
                workers, more = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, ""
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            print(
                f"{size} GiB, {summary.records:,} records: {took:.0f} s, {used:.0f} CPU-s,"
                f" a worker {workers} MB, this process {own} MB{more}",
                flush=True,
            )


if __name__ == "__main__":
    main()
