"""One Spark session for all tests of this folder, whose workers know a store; every Java starts quickly."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

import coordwire.spark
from tests.spark.class_archive import OPTIONS, make_archive
from tests.tables.moto_s3 import environment_of, local_s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.tables.moto_s3 import LocalS3

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "kpy__tansu__group-range.pcap"

for name, value in OPTIONS.items():
    os.environ.setdefault(name, value)


@pytest.fixture(scope="session")
def store_socket() -> Iterator[socket.socket]:
    """Where `spark_s3` is going to listen: Spark's Java has the address from its start."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def spark_s3(spark: SparkSession, store_socket: socket.socket) -> Iterator[LocalS3]:
    """A local S3 that the session's workers know, and this process."""
    with local_s3(store_socket) as server:
        yield server


@pytest.fixture(scope="session")
def spark(store_socket: socket.socket) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")
    from coordwire.spark.session import session

    small = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
    utf_8 = {"LC_ALL": "C.UTF-8"}  # with LC_ALL=C, Java finds no file whose name has more than ASCII
    with mock.patch.dict("os.environ", environment_of(store_socket) | utf_8):
        spark = session("local[2]", name="tests", config=small)
    yield spark
    spark.stop()


@pytest.fixture(scope="session")
def class_archive(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For tests that start several Javas of their own, and those after them."""
    from coordwire.tables import pipeline

    folder = tmp_path_factory.mktemp("classes")
    pipeline.run(coordwire.spark.engine(spark), [str(CAPTURE)], str(folder / "out"), report=False)
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
