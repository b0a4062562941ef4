"""One Spark session for all tests of this folder; every Java starts quickly."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.class_archive import OPTIONS, make_archive

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "kpy__tansu__group-range.pcap"

for name, value in OPTIONS.items():
    os.environ.setdefault(name, value)


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


@pytest.fixture(scope="session")
def class_archive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests that start several Javas of their own, and those after them."""
    from coordwire.spark import pipeline

    folder = tmp_path_factory.mktemp("classes")
    pipeline.run(spark, [str(CAPTURE)], str(folder / "out"), report=False)
    before = os.environ.get("SPARK_SUBMIT_OPTS", "")
    archive = folder / "spark.jsa"
    make_archive(spark, archive)
    yield
    os.environ["SPARK_SUBMIT_OPTS"] = before
    archive.unlink(missing_ok=True)  # 120 MB


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Queries over a few rows: compiling code for them costs more than it saves."""
    off = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    for name, value in off.items():
        spark.conf.set(name, value)
    yield
    for name in off:
        spark.conf.unset(name)
