"""Tables in Spark's catalog, and each record once, whatever copies of it there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import coordwire.spark
from coordwire.errors import CoordwireError
from coordwire.records import Record, encode_batch
from tests.tables.made_segments import START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = f"{0:020}.log"
DATABASE = "copies"


def put(folder: Path, broker: str, name: str, values: dict[int, bytes], epoch: int = 0) -> None:
    """A file of a broker, with these records by their offsets."""
    path = folder / broker / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (folder / broker / "meta.properties").write_text(f"node.id={broker}\ncluster.id=c\n")
    path.write_bytes(b"".join(
        encode_batch([Record(timestamp=START, value=value)], base_offset=at, partition_leader_epoch=epoch)
        for at, value in values.items()
    ))  # fmt: skip


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Two brokers' copies that differ, a segment being cleaned, a snapshot, and files without a topic."""
    folder = tmp_path / "in"
    put(folder, "1", f"orders-0/{LOG}", {0: b"same", 1: b"old leader's", 2: b"lost"}, 3)
    put(folder, "2", f"orders-0/{LOG}", {0: b"same", 1: b"new leader's"}, 4)
    put(folder, "2", f"orders-0/{LOG}.cleaned", {0: b"same"}, 4)
    put(folder, "2", f"orders-1/{LOG}", {0: b"other partition"})
    put(folder, "1", f"__cluster_metadata-0/{0:020}-{1:010}.checkpoint", {0: b"snapshot"})
    put(folder, "1", f"loose/{LOG}", {0: b"x"})
    put(folder, "2", f"loose/{LOG}", {0: b"y"})
    return folder


WANTED = [
    (None, 0, b"x"), (None, 0, b"y"), ("orders", 0, b"other partition"), ("orders", 0, b"same"),
    ("orders", 1, b"new leader's"), ("orders", 2, b"lost"),
]  # fmt: skip


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[None]:
    yield
    spark.sql(f"DROP DATABASE IF EXISTS {DATABASE} CASCADE")


def test_by_name_and_each_record_once(
    spark: SparkSession, catalog: None, inputs: Path, tmp_path: Path
) -> None:
    from coordwire.spark.replicas import once
    from coordwire.tables import pipeline

    out = tmp_path / "it's ours"
    engine, tables = pipeline.LocalEngine(1), ("records", "batches", "files")
    pipeline.run(engine, [str(inputs)], str(out), tables=tables, report=False)
    with pytest.raises(CoordwireError, match="has no tables"):
        coordwire.spark.register_views(spark, str(tmp_path / "nothing"), DATABASE)
    with pytest.raises(CoordwireError, match="has no tables"):
        coordwire.spark.table(spark, str(tmp_path / "nothing"), "records")
    with pytest.raises(CoordwireError, match="views need a Hadoop file system for gs://"):
        coordwire.spark.register_views(spark, "gs://bucket/tables", DATABASE)
    for database in ("no such catalog.a", "a/b", "%00", "", "a\nb"):
        with pytest.raises(CoordwireError, match="Spark can't make this database"):
            coordwire.spark.register_views(spark, str(out), database)
    names = coordwire.spark.register_views(spark, str(out), DATABASE)
    assert {f"{DATABASE}.records", f"{DATABASE}.records_once", f"{DATABASE}.lag"} <= set(names)

    def rows(name: str) -> list[tuple[str | None, int, bytes]]:
        actual = spark.sql(f"SELECT topic, log_offset, value FROM {DATABASE}.{name}").collect()
        return sorted(map(tuple, actual), key=lambda row: (row[0] or "", row[1], row[2]))

    assert len(rows("records")) == 10
    assert rows("records_once") == WANTED
    assert spark.table(f"{DATABASE}.batches_once").count() == len(WANTED)
    frame = once(spark.read.format("kafka-segment").load(str(inputs)))
    assert sorted((row.topic or "", row.log_offset, row.value) for row in frame.collect()) == [
        (topic or "", *arguments) for topic, *arguments in WANTED
    ]
    with pytest.raises(CoordwireError, match="cluster_id, broker_id is missing"):
        once(frame.drop("cluster_id", "broker_id"))
    put(inputs, "2", f"pay-0/{LOG}", {0: b"more"})
    pipeline.run(engine, [str(inputs)], str(out), tables=tables, report=False)
    coordwire.spark.register_views(spark, str(out), DATABASE)
    assert rows("records_once") == [*WANTED, ("pay", 0, b"more")]
    pipeline.run(engine, [str(inputs)], str(tmp_path / "two"), tables=tables, report=False)
    with pytest.raises(CoordwireError, match="is in the catalog already"):
        coordwire.spark.register_views(spark, str(tmp_path / "two"), DATABASE)
    assert rows("records_once") == [*WANTED, ("pay", 0, b"more")]
