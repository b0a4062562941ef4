"""What must hold in every PySpark, in one session: `python -m tests.spark.version_check FOLDER [REMOTE]`.

Strategy: every source's rows are those that the readers give without Spark; a stream, stopped and started
again, gives each row once, also of files that are moved in with an old time; the pipeline's tables are those
of the engine without Spark; and all of it again with a store in the place of the local disk, where STORE is
in the environment: the URI of an empty folder. Rules: it needs no test framework, since it runs in virtual
environments of other versions; it prints what it checked as one line of JSON and ends with an error at the
first difference. With REMOTE the session is Spark Connect's.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coordwire.spark
from coordwire.spark import register
from coordwire.tables import pipeline
from coordwire.tables.columns import TABLES, default_columns
from coordwire.tables.options import Options
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.stores import store_of
from tests.broker_sample import SAMPLE, unpack
from tests.tables.made_segments import partition, segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

NOT_STARTED = "Python worker failed to connect back"

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "kpy__tansu__group-range.pcap"


def make_inputs(folder: Path) -> Path:
    """A broker's log, damaged segments and a capture."""
    unpack(SAMPLE, folder)
    inputs = folder / "data"
    damaged = bytearray(segment(random.Random(7), 40))
    damaged[3000] ^= 1
    partition(inputs, "orders", 1, bytes(damaged[:-7]))
    shutil.copy(CAPTURE, inputs)
    return inputs


def same(what: str, got: Iterable[Any], wanted: Iterable[Any]) -> int:
    """How many rows there are. Raises `AssertionError` where they differ."""
    counts, expected = Counter(map(repr, got)), Counter(map(repr, wanted))
    if counts != expected:
        missing, more = list((expected - counts).items())[:2], list((counts - expected).items())[:2]
        raise AssertionError(f"{what}: missing {missing}, not expected {more}")
    return sum(counts.values())


def plain(row: dict[str, Any]) -> list[Any]:
    """A row's values; times as microseconds, since Spark gives them in the local zone."""
    return [int(v.timestamp() * 1e6 + 0.5) if hasattr(v, "timestamp") else norm(v) for v in row.values()]


def norm(value: Any) -> Any:
    """Spark's rows and byte arrays as Arrow's dictionaries and bytes."""
    if isinstance(value, bytearray):
        return bytes(value)
    if hasattr(value, "asDict"):
        return {key: norm(inner) for key, inner in value.asDict().items()}
    if isinstance(value, dict):
        return {key: norm(inner) for key, inner in value.items()}
    return [norm(inner) for inner in value] if isinstance(value, list | tuple) else value


def rows(frame: DataFrame) -> list[list[Any]]:
    return [plain(row.asDict()) for row in frame.collect()]


def check_sources(spark: SparkSession, inputs: Path) -> dict[str, int]:
    counts = {}
    for name, source in SOURCES.items():
        columns = [column.name for column in default_columns(source.columns)]
        options = Options(paths=(str(inputs),))
        expected = [
            plain(row)
            for parts in plan(source, options)
            for batch in read(source, parts, options, columns)
            for row in batch.to_pylist()
        ]
        frame = spark.read.format(name).load(str(inputs))
        assert frame.columns == columns, (name, frame.columns)
        counts[name] = same(name, rows(frame), expected)
    few = spark.read.format("kafka-segment").schema("log_offset bigint, topic string").load(str(inputs))
    counts["filtered"] = few.where("topic = 'orders' and log_offset < 40").count()
    assert counts["filtered"] == 40, counts
    return counts


def run_through(writer: DataStreamWriter, out: Path) -> None:
    """Run a query to its end. Spark gives up on the query's Python process after 10 s, which no setting
    changes; on a busy machine it takes longer, and the query is started again."""
    for remaining in reversed(range(3)):
        query = writer.trigger(availableNow=True).start(str(out))
        try:
            assert query.awaitTermination(300)
            return
        except Exception as error:
            if NOT_STARTED not in str(error) or not remaining:
                raise


def check_stream(spark: SparkSession, folder: Path) -> int:
    """One file, then one that is moved in with an older time, then one that grew: three runs of a query."""
    arriving, rng = folder / "arriving", random.Random(4)
    data = [segment(rng, 6), segment(rng, 6, 1000)]

    def run() -> list[int]:
        stream = spark.readStream.format("kafka-segment").schema("log_offset bigint").load(str(arriving))
        writer = stream.writeStream.format("parquet").option("checkpointLocation", str(folder / "state"))
        run_through(writer, folder / "streamed")
        return sorted(row.log_offset for row in spark.read.parquet(str(folder / "streamed")).collect())

    place = partition(arriving, "orders", 0, data[1])
    run()
    moved = partition(folder / "aside", "orders", 1, data[0]) / f"{0:020}.log"
    os.utime(moved, (1_000_000_000, 1_000_000_000))
    (arriving / "orders-1").mkdir()
    moved.rename(arriving / "orders-1" / moved.name)
    run()
    more = segment(rng, 3, 2000)
    with next(place.glob("*.log")).open("ab") as file:
        file.write(more)
    from coordwire.records import batches

    offsets = [record.offset for part in (*data, more) for batch in batches(part) for record in batch]
    return same("stream", run(), offsets)


def check_pipeline(spark: SparkSession, inputs: Path, folder: Path) -> dict[str, int]:
    import pyarrow.dataset

    summary = pipeline.run(coordwire.spark.engine(spark), [str(inputs)], str(folder / "spark"), report=False)
    pipeline.run(pipeline.LocalEngine(workers=1), [str(inputs)], str(folder / "local"), report=False)
    counts = {"units": summary.units}
    for path in sorted((folder / "local").iterdir()):
        if path.is_dir() and not path.name.startswith("_"):
            expected, got = (
                pyarrow.dataset.dataset(folder / engine / path.name, partitioning="hive")
                .to_table()
                .to_pylist()
                for engine in ("local", "spark")
            )
            counts[path.name] = same(path.name, map(plain, got), map(plain, expected))
    assert coordwire.spark.table(spark, str(folder / "spark"), "frames").count() == counts["frames"]
    return counts


def check_store(spark: SparkSession, inputs: Path, folder: Path, store: str) -> dict[str, int]:
    """The same rows from a store as from the local disk; tables in a store as on the local disk."""
    from pyarrow import fs

    target, place = store_of(store)
    fs.copy_files(str(inputs), f"{place}/in", destination_filesystem=target.system)
    read, out, options = f"{store}/in", f"{store}/out", Options(split_size=20_000)

    def texts(frame: DataFrame) -> Iterator[str]:
        """Rows with paths as on the local disk, without the times of files."""
        for row in frame.drop("modified").collect():
            yield json.dumps(row.asDict(True), default=repr).replace(read, str(inputs))

    counts = {}
    for name in ("kafka-segment", "kafka-segment-batches", "kafka-capture", "kafka-offsets"):
        source = spark.read.format(name)
        split = source.option("splitSize", options.split_size).load(read)
        counts[name] = same(
            f"{name} of a store", texts(split), texts(spark.read.format(name).load(str(inputs)))
        )
    stream = spark.readStream.format("kafka-segment").load(read).writeStream.format("parquet")
    run_through(stream.option("checkpointLocation", str(folder / "store-state")), folder / "store-streamed")
    assert spark.read.parquet(str(folder / "store-streamed")).count() == counts["kafka-segment"]
    pipeline.run(coordwire.spark.engine(spark), [read], out, report=False, options=options)
    for table in TABLES:
        expected = texts(coordwire.spark.table(spark, str(folder / "spark"), table))
        counts[table] = same(f"{table} in a store", texts(coordwire.spark.table(spark, out, table)), expected)
    result = pipeline.run(coordwire.spark.engine(spark), [read], out, report=False, options=options)
    assert result.reused == result.units
    return counts


def main(folder: str, remote: str | None = None) -> None:
    import pyspark

    if remote is None:
        from coordwire.spark.session import session

        small = {"spark.sql.shuffle.partitions": "2", "spark.default.parallelism": "2"}
        spark = session("local[2]", name="versions", config=small)
    else:
        from pyspark.sql import SparkSession

        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        spark = SparkSession.builder.remote(remote).getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        register(spark)
    inputs = make_inputs(Path(folder))
    result: dict[str, Any] = {"pyspark": pyspark.__version__, "session": type(spark).__module__}
    result["sources"] = check_sources(spark, inputs)
    result["stream"] = check_stream(spark, Path(folder))
    result["pipeline"] = check_pipeline(spark, inputs, Path(folder))
    if store := os.environ.get("STORE"):
        result["store"] = check_store(spark, inputs, Path(folder), store)
    spark.stop()
    print(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
