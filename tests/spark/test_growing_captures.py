"""A query over a capture that is written and rotated meanwhile, killed with its Java: each frame is in its
table once, with what one decode of the whole says."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from tests.tables.test_growing_captures import CAPTURES, of_source, packets

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("COORDWIRE_KILLS", "1"))
COLUMNS = ("frame", "flow", "direction", "api", "api_version", "correlation_id", "latency_ms", "body")
PARTS = 12


def query(folder: Path, *, last: bool) -> None:
    """The query, until it is killed; last: until it has read all that is there."""
    from coordwire.spark.session import session

    spark = session("local[2]", name="growing", config={"spark.sql.shuffle.partitions": "1"})
    frames = spark.readStream.format("kafka-capture").option("growing", "true").load(str(folder / "in"))
    writer = (
        frames.select(*COLUMNS).writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "state")).option("path", str(folder / "out"))
    )  # fmt: skip
    if last:
        for _ in range(2):  # before PySpark 4.2 the first run may only end what was under way
            writer.trigger(availableNow=True).start().awaitTermination()
        rows = [row.asDict() for row in spark.read.parquet(str(folder / "out")).collect()]
        (folder / "rows.json").write_text(json.dumps(rows))
    else:
        writer.trigger(processingTime="100 milliseconds").start().awaitTermination()
    spark.stop()


def run(folder: Path, word: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.spark.test_growing_captures", str(folder), word]
    return subprocess.Popen(command, start_new_session=True)


def test_each_frame_once_under_kills(tmp_path: Path) -> None:
    path, rng = CAPTURES / "confluent__rdmock__group-range.pcap", random.Random(8)
    data, ends = path.read_bytes(), [end for _, end in packets(path)]
    cuts = [24, *sorted(rng.sample(ends[:-1], PARTS - 1)), len(data)]
    (tmp_path / "in").mkdir()
    written = iter(range(PARTS))

    def write() -> None:
        """The next of the capture's files, in pieces."""
        if (number := next(written, None)) is None:
            return
        content = data[:24] + data[cuts[number] : cuts[number + 1]]
        with (tmp_path / "in" / f"x.pcap{number:02}").open("wb", buffering=0) as file:
            for at in range(0, len(content), 1000):
                file.write(content[at : at + 1000])
                time.sleep(0.02)

    for _ in range(KILLS):
        running = run(tmp_path, "on")
        commits, until = len(list((tmp_path / "state").glob("commits/*"))), time.monotonic() + 500
        write()
        while len(list((tmp_path / "state").glob("commits/*"))) == commits:
            assert running.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        write()
        time.sleep(rng.random())
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    while (before := len(list((tmp_path / "in").iterdir()))) < PARTS:
        write()
        assert len(list((tmp_path / "in").iterdir())) > before
    assert run(tmp_path, "last").wait(600) == 0
    rows = json.loads((tmp_path / "rows.json").read_text())
    expected = [{name: row[name] for name in COLUMNS} for row in of_source("kafka-capture", path)]
    assert sorted(rows, key=lambda row: row["frame"]) == expected
    assert len(list((tmp_path / "state").glob("commits/[0-9]*"))) > 1


if __name__ == "__main__":
    query(Path(sys.argv[1]), last=sys.argv[2] == "last")
