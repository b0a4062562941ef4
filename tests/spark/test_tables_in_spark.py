"""The pipeline's tables, read and compacted by Spark's own Delta and Iceberg, and streams into such tables.

Run them with a PySpark that both formats know, 4.0 or 4.1, and pyiceberg: `.ci/run tables`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.tables import columns, pipeline
from tests.spark.table_jars import jars
from tests.tables.in_process import InProcess
from tests.tables.made_segments import partition, segment
from tests.tables.test_table_kills import expected
from tests.tables.worker_processes import spark_workers

pytestmark = pytest.mark.tables

CAPTURE = "tests/data/captures/confluent__rdmock__group-range.pcap"
PACKAGES = {"delta": "deltalake", "iceberg": "pyiceberg"}
KILLS = int(os.environ.get("COORDWIRE_KILLS", "3"))

READER = """
import json, sys
import coordwire.spark
from pathlib import Path
from coordwire.tables import columns
from coordwire.tables import pipeline
from coordwire.spark.session import session
from tests.spark.table_jars import session_settings

table_format, out, plain = sys.argv[1:]
spark = session("local[2]", config=session_settings(table_format, Path(out)))
spark.sparkContext.setLogLevel("ERROR")
said = {}
for name in columns.TABLES:
    own = spark.read.format(table_format).load(f"{out}/{name}")
    table, other = coordwire.spark.table(spark, out, name), coordwire.spark.table(spark, plain, name)
    assert table.schema == other.schema, (table.schema, other.schema)
    rows = lambda found: sorted(json.dumps(row.asDict(True), default=str) for row in found.collect())
    assert rows(table) == rows(other), name
    said[name] = own.count()
days = coordwire.spark.table(spark, out, "records").select("date").distinct().count()
assert days == 1
if table_format == "iceberg":
    assert spark.table("lake.records").count() == said["records"]
    files = "options => map('min-input-files', '2')"
    spark.sql(f"CALL lake.system.rewrite_data_files(table => 'records', {files})")
else:
    spark.sql(f"OPTIMIZE delta.`{out}/records`")
assert spark.read.format(table_format).load(f"{out}/records").count() == said["records"]
print(json.dumps(said))
"""


@pytest.mark.parametrize("table_format", PACKAGES)
def test_tables_by_their_own_readers(tmp_path: Path, table_format: str) -> None:
    """Equal to Parquet's, also after Spark compacted them and a file of theirs grew."""
    pytest.importorskip(PACKAGES[table_format])
    jars(table_format)
    logs, out, plain = tmp_path / "logs", tmp_path / "out", tmp_path / "plain"
    for number in range(4):
        partition(logs, "orders", number, segment(random.Random(number), 20))

    def run() -> dict[str, int]:
        for place, selected in ((out, table_format), (plain, "parquet")):
            inputs = [str(logs), CAPTURE]
            pipeline.run(InProcess(), inputs, str(place), report=False, format=selected)
        process = subprocess.run(
            [sys.executable, "-c", READER, table_format, str(out), str(plain)],
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr
        text: dict[str, int] = json.loads(process.stdout.splitlines()[-1])
        return text

    first = run()
    assert set(first) == set(columns.TABLES)
    assert first["records"] == expected(logs).total()
    file = next((logs / "orders-2").glob("*.log"))
    file.write_bytes(file.read_bytes() + segment(random.Random(9), 3, base=1000))
    assert run()["records"] == expected(logs).total() > first["records"]


def start(table_format: str, folder: Path) -> subprocess.Popen[Any]:
    with (folder / "job.txt").open("ab") as text:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.stream_job", table_format, str(folder)],
            start_new_session=True, stdout=text, stderr=text,
        )  # fmt: skip


@pytest.mark.parametrize("table_format", [*PACKAGES, "parquet"])
def test_a_stream_is_exact_when_killed(tmp_path: Path, table_format: str) -> None:
    """Files arrive while the query is killed, with its Java and workers, and started again."""
    jars(table_format)
    rng, waiting, log = random.Random(table_format), tmp_path / "waiting", tmp_path / "job.txt"
    (tmp_path / "arriving").mkdir()
    within = after = 0

    def arrive(turn: int) -> None:
        for number in range(3):
            partition(waiting, f"t{turn}", number, segment(rng, 6))
            (waiting / f"t{turn}-{number}").rename(tmp_path / "arriving" / f"t{turn}-{number}")

    def wait(running: subprocess.Popen[Any], condition: Callable[[], Any]) -> None:
        until = time.monotonic() + 300
        while not condition() and time.monotonic() < until:
            assert running.poll() is None, log.read_text()[-3000:]
            time.sleep(0.02)

    for turn in range(KILLS):
        arrive(turn)
        running = start(table_format, tmp_path)
        if turn % 4 == 0:  # at any moment from its start on
            time.sleep(rng.uniform(0, 20))
        elif turn % 4 == 1:  # when it begins to work, or while it does
            wait(running, partial(under_way, tmp_path))
            wait(running, partial(spark_workers, running.pid))
            time.sleep(rng.choice([0, rng.uniform(0, 5)]))
        else:  # when a micro-batch is in the table, and it may not be in the checkpoint
            known = table_commits(tmp_path, table_format)
            wait(running, partial(table_commits, tmp_path, table_format, known))
            time.sleep(rng.choice([0, rng.uniform(0, 0.1)]))
            after += under_way(tmp_path)
        within += under_way(tmp_path)
        arrive(KILLS + turn)
        assert running.poll() is None, log.read_text()[-3000:]
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    (tmp_path / "stop").touch()
    for _ in range(3):  # on a busy machine Spark may give up on a worker that is slow to start
        if (status := start(table_format, tmp_path).wait(900)) == 0:
            break
    assert status == 0, log.read_text()[-3000:]
    actual = Counter(map(tuple, json.loads((tmp_path / "rows.json").read_text())))
    assert actual == expected(tmp_path / "arriving")
    print(f"{KILLS} kills, {within} of them while a micro-batch was under way, {after} when the table had it")


def table_commits(folder: Path, table_format: str, known: int = 0) -> int:
    """How many commits the table's own log has beyond those known."""
    places = {
        "delta": "records/_delta_log/*.json", "parquet": "records/_spark_metadata/[0-9]*",
        "iceberg": "db/records/metadata/v*.metadata.json",
    }  # fmt: skip
    return len(list((folder / "lake").glob(places[table_format]))) - known


def under_way(folder: Path) -> bool:
    """Whether there is a micro-batch that has begun and isn't committed."""
    state = folder / "lake" / "_checkpoints" / "records"
    first, committed = (
        {file.name for file in (state / name).glob("[0-9]*")} for name in ("offsets", "commits")
    )
    return bool(first - committed)
