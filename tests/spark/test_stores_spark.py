"""The command with inputs and tables in a store: killed, run again; its tables equal those of local disks."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")
pytest.importorskip("moto", reason="moto isn't installed: pip install 'coordwire[test]'")

from coordwire.spark.columns import TABLES
from tests.spark import plain
from tests.spark.data import partition, segment
from tests.spark.moto_s3 import LocalS3, local_s3
from tests.spark.test_stores import stored_rows

pytestmark = pytest.mark.spark
CAPTURES = Path(__file__).parents[1] / "data" / "captures"
NAMES = ("aio__rdmock__admin.pcap", "confluent__rdmock__group-range.pcap")

READ_TABLE = """
import sys
from coordwire.spark import pipeline
from coordwire.spark.session import session
spark = session("local[1]", config={"spark.sql.shuffle.partitions": "1"})
frames = pipeline.table(spark, sys.argv[1], "frames")
print(frames.count(), frames.where("date is null").count(), frames.select("api").distinct().count())
"""


def compared(rows: list[dict[str, Any]], place: str) -> list[str]:
    """Rows in one order, with paths as from the input's folder; without times of files and missing values."""
    kept = [
        {name: value for name, value in row.items() if value is not None and name not in ("modified", "date")}
        for row in rows
    ]
    return sorted(json.dumps(row, default=repr, sort_keys=True).replace(place, "") for row in kept)


def has_note(keys: list[str]) -> bool:
    return any(re.search(r"/_manifest/[0-9a-f]+\.json$", key) for key in keys)


def command(s3: LocalS3, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env=os.environ | s3.environment,
    )  # fmt: skip


def test_from_a_store_into_a_store(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for number in range(3):
        data = bytearray(segment(random.Random(number), 30))
        data[2000] ^= number
        partition(logs, "orders", number, bytes(data))
    (logs / "caps").mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, logs / "caps")
    plain.run(logs, tmp_path / "tables", tables=list(TABLES))
    with local_s3() as s3:
        s3.put(
            "inputs", {str(p.relative_to(tmp_path)): p.read_bytes() for p in logs.rglob("*.*") if p.is_file()}
        )
        s3.put("outputs", {})
        words = ["-m", "coordwire.cli", "pipeline", "s3://inputs/logs", "--out", "s3://outputs/tables"]
        first = command(s3, *words, "--engine", "local", "--workers", "1")  # without Java
        until = time.monotonic() + 300
        while not has_note(s3.keys("outputs")):
            assert first.poll() is None, first.communicate()
            assert time.monotonic() < until
            time.sleep(0.005)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
        second = command(s3, *words, "--master", "local[1]", "--summary", "json")
        said, errors = second.communicate(timeout=500)
        assert second.returncode == 1, errors  # 1: there is quarantine
        assert "ended without finishing" in errors
        assert json.loads(said)["reused"] >= 1
        for table in TABLES:
            found = compared(stored_rows("s3://outputs/tables", table), "s3://inputs/logs")
            assert found == compared(plain.table_rows(tmp_path / "tables", table), str(logs)), table
        report = [key for key in s3.keys("outputs") if key.endswith("report.html")]
        assert report == ["tables/report.html"]
        reading = command(s3, "-c", READ_TABLE, "s3://outputs/tables")
        said, errors = reading.communicate(timeout=500)
        frames = stored_rows("s3://outputs/tables", "frames")
        assert frames
        assert said.split() == [str(len(frames)), "0", str(len({row["api"] for row in frames}))], errors
