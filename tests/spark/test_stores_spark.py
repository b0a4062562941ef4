"""The command with inputs and tables in a store, killed, finished by Spark; its tables equal those of local
disks."""

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
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from coordwire.tables import pipeline
from coordwire.tables.columns import TABLES
from tests.tables import pipeline_steps
from tests.tables.made_segments import partition, segment
from tests.tables.test_stores import stored_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.tables.moto_s3 import LocalS3

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
NAMES = ("aio__rdmock__admin.pcap", "confluent__rdmock__group-range.pcap")


def compared(rows: list[dict[str, Any]], place: str) -> list[str]:
    """Rows in one order, with paths as from the input's folder; without times of files and missing values."""
    remaining = [
        {name: value for name, value in row.items() if value is not None and name not in ("modified", "date")}
        for row in rows
    ]
    return sorted(json.dumps(row, default=repr, sort_keys=True).replace(place, "") for row in remaining)


def has_note(keys: list[str]) -> bool:
    return any(re.search(r"/_manifest/[0-9a-f]+\.json$", key) for key in keys)


def test_from_a_store_into_a_store(spark: SparkSession, spark_s3: LocalS3, tmp_path: Path) -> None:
    s3, logs = spark_s3, tmp_path / "logs"
    for number in range(3):
        data = bytearray(segment(random.Random(number), 30))
        data[2000] ^= number
        partition(logs, "orders", number, bytes(data))
    (logs / "caps").mkdir()
    for name in NAMES:
        shutil.copy(CAPTURES / name, logs / "caps")
    pipeline_steps.run(logs, tmp_path / "tables", tables=list(TABLES))
    s3.put("inputs", {str(p.relative_to(tmp_path)): p.read_bytes() for p in logs.rglob("*.*") if p.is_file()})
    s3.put("outputs", {})
    out = "s3://outputs/tables"
    first = subprocess.Popen(  # without Java
        [sys.executable, "-m", "coordwire.cli", "pipeline", "s3://inputs/logs", "--out", out,
         "--engine", "local", "--workers", "1"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    until = time.monotonic() + 300
    while not has_note(s3.keys("outputs")):
        assert first.poll() is None, first.communicate()
        assert time.monotonic() < until
        time.sleep(0.005)
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate()
    summary = pipeline.run(coordwire.spark.engine(spark), ["s3://inputs/logs"], out)
    assert summary.unread
    assert "ended without finishing" in summary.notices[0]
    assert summary.reused >= 1
    for table in TABLES:
        actual = compared(stored_rows(out, table), "s3://inputs/logs")
        assert actual == compared(pipeline_steps.table_rows(tmp_path / "tables", table), str(logs)), table
    report = [key for key in s3.keys("outputs") if key.endswith("report.html")]
    assert report == ["tables/report.html"]
    frames, rows = coordwire.spark.table(spark, out, "frames"), stored_rows(out, "frames")
    assert rows
    assert sorted(row.frame for row in frames.where("date is not null").select("frame").collect()) == sorted(
        row["frame"] for row in rows
    )
    assert frames.select("api").distinct().count() == len({row["api"] for row in rows})
