"""Spark reads what the tests of `tables` make without it: topics of every kind, a real broker's logs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.tables.columns import ddl, table_schema
from coordwire.tables.storage.folders import open_output
from tests.broker_sample import SAMPLE, unpack
from tests.tables.test_broker_disk import written
from tests.tables.test_topic_folders import DAY, TOPICS, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_topics_of_every_kind(spark: SparkSession, tmp_path: Path) -> None:
    cases: list[list[str | None]] = [TOPICS, ["007", "7"], ["2024-01-01"]]
    for number, topics in enumerate(cases):
        out = tmp_path / f"o?u [t] {{x}} é%20 {number}"
        write(out, topics)
        plain = spark.read.option("__globPaths__", "false").parquet(str(out / "lag")).orderBy("lag").collect()
        assert [row.topic for row in plain] == topics
        table = spark.read.schema(ddl(table_schema("lag"))).parquet(f"{open_output(str(out)).uri}/lag")
        assert [row.topic for row in table.orderBy("lag").collect()] == topics
        assert {row.date for row in table.collect()} == {DAY.date()}


def test_what_coordinators_wrote(spark: SparkSession, tmp_path: Path) -> None:
    unpack(SAMPLE, tmp_path)
    offsets = spark.read.format("kafka-offsets").load(str(tmp_path / "data"))
    assert offsets.count() == len(written(tmp_path / "data"))
