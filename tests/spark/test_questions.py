"""The queries of docs/how-to/questions.md run as they are, and their answers are those of plain loops."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from coordwire.records import batches
from coordwire.tables import pipeline
from coordwire.tables.views import VIEWS
from tests.broker_sample import broker_sample
from tests.tables import pipeline_steps
from tests.tables.captured_logs import CAPTURED_LOGS, unpack_captured_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("interpreted")

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TOPICS = ("several.segments-0", "several.segments-1", "codec-none-0", "transactions-0")
TABLES = ("batches", "errors", "frames", "groups", "lag", "traffic")
PAGE = (ROOT / "docs/how-to/questions.md").read_text()
QUERIES = [
    (heading, query)
    for part in PAGE.split("\n## ")[1:]
    for heading in [part.partition("\n")[0]]
    for query in re.findall(r"^```sql\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
]
Rows = list[dict[str, Any]]
Answer = list[tuple[Any, ...]]
WAITING = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of two brokers, which have the same partitions, and a third one's, with its capture."""
    folder = tmp_path_factory.mktemp("logs")
    unpack_captured_logs(folder / "captured")
    for broker in ("one", "two"):
        for topic in TOPICS:
            shutil.copytree(broker_sample() / "data" / topic, folder / broker / topic)
    return folder


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Rows]]:
    """The rows, which Spark has as views."""
    out = str(tmp_path_factory.mktemp("tables"))
    inputs = [DATA / "captures", DATA / "groups" / "java__kafka-4.3.0__groups.pcap.xz",
              DATA / "stories" / "classic-causes.pcap.xz", logs]  # fmt: skip
    pipeline.run(pipeline.LocalEngine(1), [*map(str, inputs)], out, tables=TABLES, report=False)
    for name in TABLES:
        coordwire.spark.table(spark, out, name).createOrReplaceTempView(name)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW rebalances_once AS {VIEWS['rebalances_once']()}")
    yield {name: pipeline_steps.table_rows(out, name) for name in TABLES}
    for name in (*TABLES, "rebalances_once"):
        spark.catalog.dropTempView(name)


def grouped(rows: Iterable[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> dict[Any, Rows]:
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def collected(time: datetime) -> datetime:
    """As PySpark gives it: in this process's zone, without naming it."""
    return time.astimezone().replace(tzinfo=None)


def cut(time: datetime, unit: str) -> datetime:
    """The start of its minute or hour in UTC, which is the session's zone."""
    time = time.replace(second=0, microsecond=0)
    return collected(time if unit == "minute" else time.replace(minute=0))


def percentile(values: Iterable[float | None], share: float) -> float | None:
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    at = (len(ordered) - 1) * share
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def total(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def most(values: Iterable[Any]) -> Any:
    return max((value for value in values if value is not None), default=None)


def host(row: dict[str, Any]) -> str | None:
    return None if row["client_address"] is None else row["client_address"].rpartition(":")[0]


def lag(tables: dict[str, Rows]) -> Answer:
    keys = ("group_id", "topic", "partition")
    last = {
        key: max(
            rows, key=lambda row: (row["time"], row["frame"] is not None, row["frame"] or row["log_offset"])
        )["lag"]
        for key, rows in grouped(
            tables["lag"], lambda row: (cut(row["time"], "minute"), *(row[name] for name in keys))
        ).items()
    }
    sums: dict[Any, list[int]] = defaultdict(list)
    for (*key, _), value in last.items():
        sums[tuple(key)].append(value)
    return [(*key, sum(max(item, 0) for item in values), max(values)) for key, values in sums.items()]


def ended(tables: dict[str, Rows]) -> Rows:
    """Each rebalance once: a log's where no capture has one of the same generation within an hour."""
    rows = [row for row in tables["groups"] if row["event"] == "rebalanceEnded"]
    captured = grouped(
        (row for row in rows if row["seen_in"] == "capture"), lambda row: (row["group_id"], row["generation"])
    )
    return [
        row for row in rows
        if row["seen_in"] == "capture"
        or not any(
            abs(row["time"] - capture["time"]) <= timedelta(hours=1)
            for capture in captured.get((row["group_id"], row["generation"]), ())
        )
    ]  # fmt: skip


def rebalances(tables: dict[str, Rows]) -> Answer:
    needed = [row for row in ended(tables) if row["outcome"] != "not_needed"]
    answer = []
    for key, rows in grouped(needed, lambda row: (cut(row["began"], "hour"), row["group_id"])).items():
        lengths = [row["length_ms"] for row in rows]
        answer.append((*key, len(rows), percentile(lengths, 0.95), most(lengths), total(lengths)))
    return answer


def causes(tables: dict[str, Rows]) -> Answer:
    names = ("input_file", "group_id", "member_id")
    joined = [row for row in tables["groups"] if row["event"] in ("memberJoined", "memberFound")]
    members = {
        key: (most(row["client_id"] for row in rows), most(row["host"] for row in rows))
        for key, rows in grouped(joined, lambda row: tuple(row[name] for name in names)).items()
        if None not in key
    }
    clients = grouped(
        ended(tables),
        lambda row: (
            row["group_id"], row["cause"], *members.get(tuple(row[name] for name in names), (None, None)),
        ),
    )  # fmt: skip
    return [
        (*key, len(rows), sum(bool(row["inferred"]) for row in rows), total(row["length_ms"] for row in rows))
        for key, rows in clients.items()
    ]


def errors(tables: dict[str, Rows]) -> Answer:
    clients = grouped(
        tables["errors"], lambda row: (row["client_id"], host(row), row["api"], row["error_name"])
    )
    return [
        (*key, len(rows), len({(row["input_file"], row["frame"]) for row in rows}),
         min((collected(row["time"]) for row in rows if row["time"]), default=None))
        for key, rows in clients.items()
    ]  # fmt: skip


def answered(tables: dict[str, Rows]) -> Rows:
    return [
        row for row in tables["frames"] if row["direction"] == "response" and row["latency_ms"] is not None
    ]


def slowest(tables: dict[str, Rows]) -> Answer:
    rows = [row for row in answered(tables) if row["api"] not in WAITING]
    rows.sort(key=lambda row: (-row["latency_ms"], row["input_file"], row["frame"]))
    names = (
        "latency_ms",
        "api",
        "client_id",
        "client_address",
        "broker_address",
        "time",
        "input_file",
        "frame",
    )
    return [
        tuple(collected(value) if isinstance(value, datetime) else value
              for value in (row[name] for name in names))
        for row in rows[:20]
    ]  # fmt: skip


def latencies(tables: dict[str, Rows]) -> Answer:
    actual = grouped(answered(tables), lambda row: (row["api"], row["broker_address"]))
    times = {key: [row["latency_ms"] for row in rows] for key, rows in actual.items()}
    return [
        (*key, len(all), percentile(all, 0.5), percentile(all, 0.99), max(all)) for key, all in times.items()
    ]


def topics(tables: dict[str, Rows]) -> Answer:
    """Of one broker's files, not of the table."""
    sizes: Counter[str] = Counter()
    records: Counter[str] = Counter()
    partitions: Counter[str] = Counter()
    captured = (broker_sample(CAPTURED_LOGS / "logs.tar.xz") / "data").iterdir()
    for folder in (*(broker_sample() / "data" / name for name in TOPICS), *captured):
        topic = folder.name.rpartition("-")[0]
        files = [path for path in folder.glob("*.log") if path.stat().st_size]
        partitions[topic] += bool(files)
        for path in files:
            sizes[topic] += path.stat().st_size
            records[topic] += sum(
                batch.count or 0 for batch in batches(path.read_bytes()) if not batch.is_control
            )
    return [(topic, partitions[topic], sizes[topic], records[topic]) for topic in sizes]


def without_idempotence(tables: dict[str, Rows]) -> Answer:
    live = (row for row in tables["batches"] if not row["is_control"] and row["file_state"] == "live")
    actual = grouped(live, lambda row: row["topic"])
    counts = {
        topic: (
            sum(row["count"] for row in rows if row["producer_id"] < 0),
            sum(row["count"] for row in rows),
        )
        for topic, rows in actual.items()
    }
    return [(topic, *count) for topic, count in counts.items() if count[0]]


def clients_without_idempotence(tables: dict[str, Rows]) -> Answer:
    sent = [row for row in tables["frames"] if row["direction"] == "request"]
    actual = grouped(sent, lambda row: (row["client_id"], host(row)))
    counts = {key: Counter(row["api"] for row in rows) for key, rows in actual.items()}
    return [
        (*key, count["Produce"]) for key, count in counts.items()
        if count["Produce"] and not count["InitProducerId"]
    ]  # fmt: skip


def versions(tables: dict[str, Rows]) -> Answer:
    """Each connection's frames after its first request."""
    software: dict[Any, tuple[str, str]] = {}
    actual: dict[Any, Rows] = defaultdict(list)
    for row in sorted(tables["frames"], key=lambda row: (row["input_file"], row["frame"])):
        connection = row["input_file"], row["client_address"], row["broker_address"]
        if (
            row["direction"] == "request" and row["api"] == "ApiVersions" and (row["api_version"] or 0) >= 3
            and row["error_reason"] is None
        ):  # fmt: skip
            body = json.loads(row["body"])
            software[connection] = body["clientSoftwareName"], body["clientSoftwareVersion"]
        if connection in software and row["client_address"] is not None:
            actual[software[connection]].append(row)
    return [
        (*key, len({(row["input_file"], row["client_address"], row["broker_address"]) for row in rows}),
         sorted({row["client_id"] for row in rows if row["client_id"] is not None}))
        for key, rows in actual.items()
    ]  # fmt: skip


def producers(tables: dict[str, Rows]) -> Answer:
    """From the bodies of Produce requests, and of their answers for errors."""
    names: dict[Any, str] = {}
    counts: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in sorted(tables["frames"], key=lambda row: (row["input_file"], row["frame"])):
        body = json.loads(row["body"] or "null") if row["error_reason"] is None else None
        if body and row["api"] == "Metadata" and row["direction"] == "response":
            names |= {topic["topicId"]: topic["name"] for topic in body["topics"] if "topicId" in topic}
        if body and row["api"] == "Produce":
            for topic in body.get("topicData") or body.get("responses") or ():
                name = topic.get("name") or names.get(topic["topicId"], topic["topicId"])
                for part in topic.get("partitionData") or topic.get("partitionResponses"):
                    data = b64decode(part.get("records") or "")
                    count = counts[row["client_id"], host(row), name]
                    count[0] += len(data)
                    count[1] += sum(batch.count or 0 for batch in batches(data) if not batch.is_control)
                    count[2] += row["direction"] == "request"
                    count[3] += part.get("errorCode", 0) != 0
    return [(*key, *count) for key, count in counts.items()]


def traffic_by_api(tables: dict[str, Rows]) -> Answer:
    actual = grouped(
        tables["frames"],
        lambda row: (row["time"] and cut(row["time"], "minute"), row["client_id"], row["api"]),
    )
    return [
        (*key, sum(row["direction"] == "request" for row in rows), sum(row["size"] for row in rows),
         sum(bool(row["error_code"]) for row in rows), most(row["latency_ms"] for row in rows))
        for key, rows in actual.items()
    ]  # fmt: skip


ANSWERS = [
    producers, traffic_by_api, lag, rebalances, causes, errors, slowest, latencies, topics,
    without_idempotence, clients_without_idempotence, versions,
]  # fmt: skip


def test_each_query_has_an_answer() -> None:
    assert len(QUERIES) == len(ANSWERS)


def rounded(rows: Answer) -> list[str]:
    """Sums of floats in another order differ in their last digits."""
    return sorted(
        repr([round(value, 6) if isinstance(value, float) else value for value in row]) for row in rows
    )


@pytest.mark.parametrize("number", range(len(ANSWERS)), ids=[answer.__name__ for answer in ANSWERS])
def test_an_answer(spark: SparkSession, tables: dict[str, Rows], number: int) -> None:
    actual = [tuple(row) for row in spark.sql(QUERIES[number][1]).collect()]
    expected = ANSWERS[number](tables)
    assert rounded(actual) == rounded(expected)
    assert len(actual) >= 2
