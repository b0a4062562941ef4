"""`python -m tests.bench.scale` measures how time and memory of the pipeline grow with its input.

Strategy: segments of 2, 4 and 8 GiB (`tests.bench.spark.make`), each to Parquet by processes of this machine.
Rules: CPU is that of the workers; memory is the most that any of them had, and what this process had.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from coordwire.spark import pipeline
from tests.bench.spark import make


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("--gib", type=int, nargs="+", default=[2, 4, 8], help="sizes (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes (%(default)s)")
    options = parser.parse_args()
    for size in options.gib:
        with tempfile.TemporaryDirectory() as folder:
            logs = Path(folder, "logs")
            logs.mkdir()
            make(logs, size << 30)
            began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            summary = pipeline.run(
                pipeline.LocalEngine(options.workers), [str(logs)], f"{folder}/out", report=False
            )
            after, own = (resource.getrusage(who) for who in (resource.RUSAGE_CHILDREN, resource.RUSAGE_SELF))
            took = time.monotonic() - began
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(
                f"{size} GiB, {summary.records:,} records: {took:.0f} s, {used:.0f} CPU-s,"
                f" a worker {after.ru_maxrss >> 10} MB, this process {own.ru_maxrss >> 10} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
