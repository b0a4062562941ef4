"""Jars for the Spark that is installed, from Maven Central: Delta, Iceberg, Spark's Kafka source."""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path

import pytest

CENTRAL = "https://repo1.maven.org/maven2"
CACHE = Path(os.environ.get("COORDWIRE_JARS") or Path.home() / ".cache" / "coordwire-jars")

DELTA, STORAGE = "io/delta/delta-spark_{spark}_2.13/4.4.0", "io/delta/delta-storage/4.4.0"
KAFKA = [
    "org/apache/spark/spark-sql-kafka-0-10_2.13/{spark}",
    "org/apache/spark/spark-token-provider-kafka-0-10_2.13/{spark}",
    "org/apache/kafka/kafka-clients/{clients}",
    "org/apache/commons/commons-pool2/2.13.1",
]
ICEBERG = "org/apache/iceberg/iceberg-spark-runtime-{spark}_2.13/{version}"

JARS: dict[tuple[str, str], list[str]] = {
    **{("delta", spark): [DELTA.format(spark=spark), STORAGE] for spark in ("4.0", "4.1", "4.2")},
    ("iceberg", "4.0"): [ICEBERG.format(spark="4.0", version="1.11.0")],
    ("iceberg", "4.1"): [ICEBERG.format(spark="4.1", version="1.12.0")],
    ("kafka", "4.1"): [place.format(spark="4.1.1", clients="3.9.1") for place in KAFKA],
    **{
        ("kafka", spark): [place.format(spark="4.2.0", clients="3.9.2") for place in KAFKA]
        for spark in ("4.2", "4.3")
    },
}
"""By format and Spark's version; the formats have nothing for Spark 4.3 yet, whose Kafka source is 4.2's."""


def jars(table_format: str) -> list[Path]:
    """The jars; skips the test where there are none, or they can't be had."""
    if table_format == "parquet":
        return []
    pyspark = pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")
    spark = ".".join(pyspark.__version__.split(".")[:2])
    if (table_format, spark) not in JARS:
        pytest.skip(f"{table_format} has no release for Spark {spark}")
    return [_fetched(place) for place in JARS[table_format, spark]]


def _fetched(place: str) -> Path:
    *_, name, version = place.split("/")
    jar = CACHE / f"{name}-{version}.jar"
    if not jar.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = jar.with_suffix(f".{os.getpid()}.part")
        try:
            urllib.request.urlretrieve(f"{CENTRAL}/{place}/{jar.name}", part)
        except OSError as error:
            pytest.skip(f"{jar.name} can't be had from Maven Central: {error}")
        part.rename(jar)
    return jar


def session_settings(table_format: str, warehouse: Path) -> dict[str, str]:
    """What a session needs to read and write tables of this format. warehouse: of the catalog `lake`."""
    settings = {"spark.sql.shuffle.partitions": "2"}
    if table_format == "parquet":
        return settings
    settings["spark.jars"] = ",".join(map(str, jars(table_format)))
    if table_format == "delta":
        return settings | {
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
    return settings | {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": str(warehouse),
    }
