"""One Spark session for all tests of this folder; every Java starts quickly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# These jobs are short: the optimizing compiler and several collectors cost more than they save.
for name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(name, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")
    from coordwire.spark.session import session

    small = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    spark = session("local[2]", name="tests", config=small)
    yield spark
    spark.stop()
