"""The data sources in Spark: found, registered, pruned, and row for row what the plain readers say."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark
from coordwire.capture import Capture, FrameEntry
from coordwire.cli.__main__ import main
from coordwire.dialects import ConnectionDialect
from coordwire.records import batches
from coordwire.segments import Segment
from coordwire.tables import pipeline
from coordwire.tables.options import Options
from tests.segments.test_kafka_07 import FIRST, LOG
from tests.tables.made_segments import partition, segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "data" / "captures"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two partitions; one of them with a hole."""
    folder = tmp_path_factory.mktemp("logs")
    rng = random.Random(11)
    partition(folder, "orders", 0, segment(rng, 60), segment(rng, 30, 5000))
    damaged = bytearray(segment(rng, 60))
    damaged[4000] ^= 1
    partition(folder, "orders", 1, bytes(damaged))
    (folder / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (folder / "orders-1" / f"{9999:020}.log").touch()
    return folder


def row_of(line: dict[str, Any]) -> dict[str, Any]:
    """A line of `coordwire decode --format json` in the words of the frames table."""
    error = line["error"] or {}

    def form(name: str) -> str | None:
        value = line.get(name)
        return None if value is None else json.dumps(value, separators=(",", ":"))

    return {
        "input_file": line["capture"], "frame": line["frame"], "flow": line["flow"],
        "direction": line["direction"], "api_key": line["apiKey"], "api": line["api"],
        "api_version": line["apiVersion"], "body_version": line.get("bodyVersion", line["apiVersion"]),
        "correlation_id": line["correlationId"], "client_id": line["clientId"], "size": line["size"],
        "latency_ms": line.get("latencyMs"),
        "throttle_time_ms": (line["body"] or {}).get("throttleTimeMs"),
        "dialect": line.get("dialect", "kafka"), "token": line.get("token", False),
        "error_reason": error.get("reason"), "error_position": error.get("position"),
        "error_path": error.get("path"), "body": form("body"),
        "header_tags": form("headerTags"), "redacted": line.get("redacted"), "deviations": form("deviations"),
        "raw": bytes.fromhex(line["raw"]) if "raw" in line else None,
    }  # fmt: skip


def test_frames_are_those_of_the_command_line(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    from pyspark.sql import functions

    files = sorted(CAPTURES.glob("*.pcap"))
    main(["decode", "--format", "json", *map(str, files)])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    frames = spark.read.format("kafka-capture").load(str(CAPTURES / "*.pcap"))
    time = functions.date_format("time", "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'").alias("time")
    rows = [row.asDict() for row in frames.select("*", time.alias("iso")).collect()]
    for row in rows:
        assert row.pop("time_ns") // 1000 == int(row.pop("time").timestamp() * 1_000_000 + 0.5)
        ends = [row.pop("client_address"), row.pop("broker_address")]
        assert row["flow"] == " > ".join(ends if row["direction"] == "request" else reversed(ends))
        assert (row.pop("error_code") == 0) == (row.pop("error_name") == "NONE")
    expected = [row_of(line) | {"iso": line["time"]} for line in lines if line["frame"] is not None]
    assert len(expected) > 600
    key = lambda row: (row["input_file"], row["frame"])  # noqa: E731
    assert sorted(rows, key=key) == sorted(expected, key=key)


@pytest.mark.smoke
def test_records_whatever_the_split(spark: SparkSession, logs: Path) -> None:
    expected = sorted(
        (int(path.parent.name[-1]), record.offset, record.key, record.value)
        for path in logs.glob("*/*.log")
        for batch in batches(path.read_bytes(), on_error="skip")
        for record in batch
    )  # offsets are unique in a partition, so that keys that are None aren't compared
    reader = spark.read.format("kafka-segment").option("splitSize", "4096")
    rows = reader.load([str(logs / "orders-0"), str(logs / "orders-1")])
    actual = [(row.partition, row.log_offset, row.key, row.value) for row in rows.collect()]
    assert sorted(actual) == expected
    pruned = spark.read.format("kafka-segment").schema("value binary, log_offset bigint, codec string")
    rows = pruned.load(str(logs / "orders-*" / "*.log"))
    assert rows.columns == ["value", "log_offset", "codec"]
    values = sorted((row.log_offset, row.value or b"") for row in rows.collect())
    assert values == sorted((offset, value or b"") for _, offset, _, value in expected)


def test_a_draft_of_the_coordinator_by_its_dialect(spark: SparkSession, tmp_path: Path) -> None:
    """The source, and the pipeline in this session, have the frames of the command line."""
    capture = ROOT / "tests" / "data" / "drafts" / "runs" / "draft-2.pcap"
    dialect = ConnectionDialect("draft-2")
    with capture.open("rb") as stream:
        entries = list(Capture(stream, "x", dialect=dialect).entries())
    expected = sorted((entry.number, entry.api_name) for entry in entries if isinstance(entry, FrameEntry))
    reader = spark.read.format("kafka-capture").option("dialect", "draft-2")
    rows = reader.load(str(capture)).select("frame", "api", "dialect").collect()
    assert sorted((row.frame, row.api) for row in rows) == expected
    assert {row.dialect for row in rows} == {"draft-2"}
    out, options = str(tmp_path / "out"), Options(dialect="draft-2")
    pipeline.run(coordwire.spark.engine(spark), [str(capture)], out, options=options, report=False)
    table = spark.read.parquet(f"{out}/frames").select("frame", "api").collect()
    assert sorted((row.frame, row.api) for row in table) == expected
    assert spark.read.parquet(f"{out}/groups").select("group_id").distinct().collect()


def test_a_log_of_kafka_07(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "orders-0" / f"{FIRST:011}.kafka"
    path.parent.mkdir()
    path.write_bytes(LOG)
    with Segment(path) as segment:
        expected = sorted((record.offset, record.value) for batch in segment.batches() for record in batch)
    rows = spark.read.format("kafka-segment").option("splitSize", "64").load(str(tmp_path)).collect()
    assert sorted((row.log_offset, bytes(row.value)) for row in rows) == expected
    assert {(row.topic, row.partition, row.time) for row in rows} == {("orders", 0, None)}


def test_batches_and_quarantine_are_all_bytes(spark: SparkSession, logs: Path) -> None:
    heads = spark.read.format("kafka-segment-batches").option("checksums", "true").load(str(logs))
    damaged = spark.read.format("kafka-quarantine").load(str(logs)).collect()
    size = heads.selectExpr("sum(size)").collect()[0][0] + sum(
        row.end_position - row.position for row in damaged
    )
    assert size == sum(path.stat().st_size for path in logs.glob("*/*.log"))
    [row] = damaged
    assert "CRC-32C" in row.reason
    assert len(row.bytes) == row.end_position - row.position


def test_what_is_refused_says_why(spark: SparkSession, logs: Path) -> None:
    def trouble(reader: Any, path: str | None = None) -> str:
        with pytest.raises(Exception, match=r"coordwire|kafka-|there is no") as actual:
            (reader.load(path) if path else reader.load()).collect()
        return str(actual.value)

    segments = spark.read.format("kafka-segment")
    assert "there is no /nowhere" in trouble(segments, "/nowhere")
    assert "needs a path" in trouble(spark.read.format("kafka-segment"))
    text = trouble(segments.option("spiltSize", "1"), str(logs))
    assert "no such option: spiltsize" in text
    assert "splitSize" in text
    wrong = spark.read.format("kafka-segment").schema("log_offset int")
    assert "column log_offset is bigint, not int" in trouble(wrong, str(logs))
    strict = spark.read.format("kafka-segment").option("mode", "failfast")
    assert "the CRC-32C is" in trouble(strict, str(logs))


def test_pushdown_reads_less_and_changes_nothing(spark: SparkSession, logs: Path) -> None:
    query = "log_offset >= 40 and log_offset < 60 and topic = 'orders' and partition = 0"
    rows = spark.read.format("kafka-segment").load(str(logs)).where(query)
    without = sorted(row.log_offset for row in rows.collect())
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        rows = spark.read.format("kafka-segment").load(str(logs)).where(query)
        assert sorted(row.log_offset for row in rows.collect()) == without == list(range(40, 60))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_filters_of_captures_are_pushed_down(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Each query has its own `load`: with one for several, Spark goes on with the filters of the last."""
    queries = {
        "api in ('Fetch', 'Heartbeat') and direction = 'response'": [
            "In(api,",
            "EqualTo(direction,response)",
        ],
        "client_id = 'kafka-python-2.3.0' and time > '2020-01-01'": ["EqualTo(client_id"],
        "api = 'Fetch' and size > 100": ["EqualTo(api,Fetch)"],
        "api in ('Fetch', null)": [],
        "direction = 'sideways'": ["EqualTo(direction,sideways)"],
    }

    def frames(query: str) -> DataFrame:
        return spark.read.format("kafka-capture").load(str(CAPTURES / "*.pcap")).where(query)

    def errors() -> list[Any]:
        rows = spark.read.format("kafka-errors").load(str(CAPTURES / "*.pcap"))
        return sorted(rows.where("api = 'JoinGroup' and error_code in (79, 27)").collect())

    counts = {query: frames(query).count() for query in queries}
    expected = errors()
    assert sum(count > 0 for count in counts.values()) >= 3
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for query, pushed in queries.items():
            assert frames(query).count() == counts[query]
            capsys.readouterr()
            frames(query).explain("formatted")
            plan = capsys.readouterr().out
            assert all(text in plan.partition("PushedFilters: [")[2].partition("]\n")[0] for text in pushed)
        assert errors() == expected
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_growing_folder(spark: SparkSession, tmp_path: Path) -> None:
    folder, place, rng = tmp_path / "in", tmp_path / "state", random.Random(4)

    def run() -> int:
        stream = (
            spark.readStream.format("kafka-segment").option("maxFilesPerTrigger", "1")
            .schema("log_offset bigint").load(str(folder))
        )  # fmt: skip
        query = (
            stream.writeStream.format("parquet").option("checkpointLocation", str(place))
            .trigger(availableNow=True).start(str(tmp_path / "out"))
        )  # fmt: skip
        query.awaitTermination(120)
        return spark.read.parquet(str(tmp_path / "out")).count()

    def count() -> int:
        return sum(
            batch.count or 0 for path in folder.glob("*/*.log") for batch in batches(path.read_bytes())
        )

    partition(folder, "orders", 0, segment(rng, 5), segment(rng, 5, 1000))
    assert run() == count()
    moved = partition(tmp_path / "aside", "orders", 1, segment(rng, 7)) / f"{0:020}.log"
    os.utime(moved, (1_000_000_000, 1_000_000_000))  # as mv, rsync -t and cp -p leave it
    (folder / "orders-1").mkdir()
    moved.rename(folder / "orders-1" / moved.name)
    with (folder / "orders-0" / f"{1000:020}.log").open("ab") as file:
        file.write(segment(rng, 3, 2000))
    assert run() == count()


def test_an_older_pyspark_without_filters(tmp_path: Path) -> None:
    """PySpark 4.0 has no classes of filters; the sources are there all the same."""
    script = """
import pyspark.sql.datasource as datasource
for name in ("Filter", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"):
    delattr(datasource, name)
from coordwire.spark.sources.compatibility import PUSHES_FILTERS
from coordwire.spark.sources.data_sources import register_all
assert not PUSHES_FILTERS
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
