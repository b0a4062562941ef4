"""The pipeline: tables of what the plain readers say, every byte accounted for, killed and run again."""

from __future__ import annotations

import json
import lzma
import os
import random
import re
import shutil
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import coordwire.spark
from coordwire.cli.__main__ import main
from coordwire.logs import LogRecord, encode_log_record, find_record
from coordwire.records import Record, batches, encode_batch
from tests.tables.made_segments import START, partition, segment
from tests.tables.test_story_rows import in_tables, same, told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coordwire.tables.report.summary import PipelineSummary

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "tests" / "data" / "captures"
CALL = "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe."
JOB = (
    ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 1 "
    "times, most recent failure: Lost task 1.0 in stage 0.0 (TID 1) (192.0.2.2 executor driver)"
)
TRACE = (
    "\tat org.apache.spark.api.python.PythonWorkerFactory.$anonfun$create$1(PythonWorkerFactory.scala:218)"
)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Captures, segments sound and damaged, a coordinator's log, and things that are none of them."""
    folder = tmp_path_factory.mktemp("inputs")
    shutil.copytree(CAPTURES, folder / "captures")
    rng = random.Random(21)
    partition(folder, "orders", 0, segment(rng, 40), segment(rng, 20, 4000))
    damaged = bytearray(segment(rng, 40))
    damaged[3000] ^= 1
    partition(folder, "orders", 1, bytes(damaged[:-7]))
    partition(folder, "__consumer_offsets", 5, commits())
    (folder / "orders-1" / f"{9999:020}.log").touch()
    (folder / "orders-1" / f"{0:020}.index").write_bytes(struct.pack(">ii", 1, 300))
    (folder / "notes.txt").write_text("not ours")
    (folder / "captures" / "broken.pcap").write_bytes(b"\xa1\xb2\xc3\xd4 and no more")
    (folder / "captures" / "frames.cap").write_bytes(frames() + frames()[:21])
    return folder


def frames() -> bytes:
    from coordwire import encode_request
    from coordwire.messages import HeartbeatRequest

    request = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    return b"".join(encode_request(request, version=4, correlation_id=number) for number in range(50))


def commits() -> bytes:
    """Two commits and a tombstone, as a coordinator writes them."""
    key_class: Any
    value_class: Any
    key_class, value_class = find_record("consumer_offsets", 1)
    records = []
    for number, offset in enumerate([10, 25, None]):
        value: Any = None if offset is None else value_class(offset=offset, commit_timestamp=START)
        log = LogRecord(log="consumer_offsets", type=1, version=None if value is None else 3, value=value)
        log.key = key_class(group="payments", topic="orders", partition=0)
        key, data = encode_log_record(log)
        records.append(Record(offset=number, timestamp=START + number, key=key, value=data))
    return encode_batch(records)


@pytest.fixture(scope="module")
def process(
    spark: SparkSession, inputs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, PipelineSummary]:
    """The tables, written once."""
    from coordwire.tables import pipeline
    from coordwire.tables.options import Options

    out = tmp_path_factory.mktemp("out")
    return out, pipeline.run(
        coordwire.spark.engine(spark), [str(inputs)], str(out), options=Options(split_size=3000)
    )


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    """A table's rows, with the folders' columns."""
    import pyarrow.dataset

    values: list[dict[str, Any]] = (
        pyarrow.dataset.dataset(out / table, partitioning="hive").to_table().to_pylist()
    )
    return values


def test_records_are_those_of_the_plain_reader(process: tuple[Path, PipelineSummary], inputs: Path) -> None:
    expected = sorted(
        (path.parent.name.rpartition("-")[0], record.offset, record.key or b"", record.value or b"")
        for path in inputs.glob("*/*.log")
        for batch in batches(path.read_bytes(), on_error="skip")
        for record in batch
    )
    actual = [
        (r["topic"], r["log_offset"], r["key"] or b"", r["value"] or b"") for r in rows(process[0], "records")
    ]
    assert sorted(actual) == expected
    assert process[1].records == len(expected)
    folder = process[0] / "records" / "date=2023-11-14" / "topic-orders"
    assert list(folder.glob("*.parquet"))


def test_frames_are_those_of_the_command_line(
    process: tuple[Path, PipelineSummary], inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(map(str, (inputs / "captures").glob("*cap")))
    main(["decode", "--format", "json", *files])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = {
        (line["capture"], line["frame"]): (line["api"], line["correlationId"], line["body"])
        for line in lines
        if line["frame"] is not None
    }
    actual = {
        (row["input_file"], row["frame"]): (
            row["api"],
            row["correlation_id"],
            json.loads(row["body"] or "null"),
        )
        for row in rows(process[0], "frames")
    }
    assert actual == expected
    assert process[1].frames == len(expected)


def test_every_byte_is_accounted_for(process: tuple[Path, PipelineSummary], inputs: Path) -> None:
    files = {row["input_file"]: row for row in rows(process[0], "files")}
    assert set(files) == {str(path) for path in inputs.rglob("*") if path.is_file()}
    damaged: dict[str, int] = {}
    for row in rows(process[0], "quarantine"):
        damaged[row["input_file"]] = damaged.get(row["input_file"], 0) + row["end_position"] - row["position"]
    sizes: dict[str, int] = {}
    for row in rows(process[0], "batches"):
        sizes[row["input_file"]] = sizes.get(row["input_file"], 0) + row["size"]
    for path, row in files.items():
        assert row["size"] == os.path.getsize(path)
        if row["kind"] == "segment":
            assert sizes.get(path, 0) + damaged.get(path, 0) == row["size"]
        if row["kind"] in ("segment", "capture"):
            assert row["quarantined_bytes"] == damaged.get(path, 0)
            assert row["read_bytes"] + row["quarantined_bytes"] + row["other_bytes"] == row["size"]
        else:
            assert row["other_bytes"] == row["size"]
    raw = files[str(inputs / "captures" / "frames.cap")]
    assert (raw["read_bytes"], raw["quarantined_bytes"], raw["other_bytes"]) == (len(frames()), 21, 0)
    assert damaged[str(inputs / "captures" / "broken.pcap")] == 16
    assert {row["kind"] for row in files.values()} == {"segment", "capture", "index", "other"}


def test_stories_are_those_of_the_command_line(
    process: tuple[Path, PipelineSummary], inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = inputs / "captures" / "confluent__rdmock__group-range.pcap"
    main(["timeline", "--format", "json", str(capture), str(inputs / "__consumer_offsets-5")])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    current = (str(capture), str(inputs / "__consumer_offsets-5" / f"{0:020}.log"))
    count = {
        name: sum(row["input_file"] in current for row in rows(process[0], name))
        for name in ("groups", "offset_commits", "lag")
    }
    kinds = [line["event"] for line in lines]
    assert count["offset_commits"] == kinds.count("offsetCommitted")
    assert count["lag"] == kinds.count("lagMeasured")
    assert count["groups"] == len(kinds) - count["offset_commits"] - count["lag"] > 10
    commits = [row for row in rows(process[0], "offset_commits") if row["group_id"] == "payments"]
    assert [(row["topic"], row["committed_offset"], row["removed"]) for row in commits] == [
        ("orders", 10, False), ("orders", 25, False), ("orders", -1, True),
    ]  # fmt: skip
    assert any(row["event"] == "rebalanceEnded" and row["length_ms"] for row in rows(process[0], "groups"))


def test_local_tables_are_the_pipelines_row_for_row(
    process: tuple[Path, PipelineSummary], inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet

    files = sorted(map(str, (inputs / "captures").glob("*__*.pcap")))
    assert main(["decode", "--out", str(tmp_path), *files]) == 1
    assert "frames.parquet" in capsys.readouterr().out
    for table in ("frames", "groups", "offset_commits", "lag", "traffic", "quarantine"):
        own = pyarrow.parquet.read_table(tmp_path / f"{table}.parquet").to_pylist()
        foreign = [row for row in rows(process[0], table) if row["input_file"] in files]
        for row in foreign:
            row.pop("date", None)  # of the folder
        assert sorted(map(repr, own)) == sorted(map(repr, foreign)), table
        assert own or table == "quarantine"


def _comparable(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def test_without_spark_everything_is_the_same(
    spark: SparkSession, process: tuple[Path, PipelineSummary], inputs: Path, tmp_path: Path
) -> None:
    """Rows, summary and report; and each engine finishes what the other one began."""
    from coordwire.tables import pipeline
    from coordwire.tables.columns import TABLES
    from coordwire.tables.options import Options

    options = Options(split_size=3000)
    local, out = pipeline.LocalEngine(2), str(tmp_path)
    summary = pipeline.run(local, [str(inputs)], out, options=options)
    for name in TABLES:
        assert _comparable(rows(tmp_path, name)) == _comparable(rows(process[0], name)), name
    times = re.compile(r"^<!--.*-->|<b>[^<]*</b>to read it|\d{4}-\d\d-\d\d \d\d:\d\d UTC")
    own, foreign = (times.sub("", (out / "report.html").read_text()) for out in (tmp_path, process[0]))
    assert own == foreign
    for field in ("frames", "records", "batches", "refused", "bad_ranges", "units", "apis", "error_codes"):
        assert getattr(summary, field) == getattr(process[1], field)

    assert pipeline.run(local, [str(inputs)], str(process[0]), options=options).reused == process[1].units
    actual = sorted((tmp_path / "records").rglob("*.parquet"))[:3]
    for path in actual:
        path.unlink()
    rerun = pipeline.run(coordwire.spark.engine(spark), [str(inputs)], out, options=options)
    assert summary.units - len(actual) <= rerun.reused < summary.units
    for name in TABLES:
        assert _comparable(rows(tmp_path, name)) == _comparable(rows(process[0], name)), name


def test_tables_have_the_types_documented(spark: SparkSession, process: tuple[Path, PipelineSummary]) -> None:
    from coordwire.tables.columns import TABLES, table_schema

    for name in TABLES:
        table = coordwire.spark.table(spark, str(process[0]), name)
        expected = [(column.name, column.type) for column in table_schema(name)]
        assert sorted(table.dtypes) == sorted(expected)
        assert table.count() == len(rows(process[0], name)) > 0


def test_bodies_as_variants(spark: SparkSession, process: tuple[Path, PipelineSummary]) -> None:

    frames = coordwire.spark.table(spark, str(process[0]), "frames").where(
        "api = 'JoinGroup' and direction = 'request'"
    )
    group = frames.selectExpr("variant_get(parse_json(body), '$.groupId', 'string') AS name").distinct()
    assert {row.name for row in group.collect()} == {"g-aio-admin", "g-kpy-range", "g-range"}


def test_a_second_run_adds_nothing(
    spark: SparkSession, process: tuple[Path, PipelineSummary], inputs: Path
) -> None:
    from coordwire.tables import pipeline
    from coordwire.tables.options import Options

    out, first = process
    before = {str(path): path.read_bytes() for path in out.rglob("*.parquet") if "files" not in path.parts}
    foreign = out / "records" / "theirs.parquet"
    foreign.write_bytes(b"a user's")
    rerun = pipeline.run(
        coordwire.spark.engine(spark), [str(inputs)], str(out), options=Options(split_size=3000)
    )
    assert (rerun.reused, rerun.units) == (first.units, first.units)
    assert (rerun.records, rerun.frames, rerun.unread) == (first.records, first.frames, first.unread)
    [notice] = rerun.notices
    assert notice.endswith("this pipeline did not write were left alone: records/theirs.parquet")
    assert coordwire.spark.table(spark, str(out), "records").count() == first.records
    assert foreign.read_bytes() == b"a user's"
    foreign.unlink()
    after = {str(path): path.read_bytes() for path in out.rglob("*.parquet") if "files" not in path.parts}
    assert after == before


def test_the_report_is_one_file(process: tuple[Path, PipelineSummary]) -> None:
    page = (process[0] / "report.html").read_text()
    assert page.count("<svg") >= 4
    assert "REBALANCE_IN_PROGRESS" in page
    assert "an array that can&#x27;t be null is null" in page
    assert page.count("<h3>") >= 3
    assert process[1].error_codes["JoinGroup"][79] > 0
    assert "a later batch" not in page
    assert not [word for word in ("src=", "href=", "@import", "url(") if word in page]


def test_a_file_that_grew_is_read_anew(spark: SparkSession, tmp_path: Path) -> None:
    from coordwire.tables import pipeline

    data = segment(random.Random(8), 30)
    place = partition(tmp_path / "in", "orders", 0, data[:5000])
    [path] = place.glob("*.log")
    out = tmp_path / "out"
    first = pipeline.run(coordwire.spark.engine(spark), [str(tmp_path / "in")], str(out), report=False)
    path.write_bytes(data)
    second = pipeline.run(coordwire.spark.engine(spark), [str(tmp_path / "in")], str(out), report=False)
    assert first.bad_ranges == 1
    assert second.bad_ranges == 0
    expected = [record.offset for batch in batches(data) for record in batch]
    assert sorted(row["log_offset"] for row in rows(out, "records")) == expected


def test_a_job_that_fails_says_why(spark: SparkSession, tmp_path: Path) -> None:
    from coordwire.errors import CoordwireError
    from coordwire.tables import pipeline
    from coordwire.tables.options import Options

    partition(tmp_path / "in", "orders", 0, bytes(8) + b"\xff" * 92)
    strict = Options(mode="failfast")
    with pytest.raises(CoordwireError, match=r"^the Spark job failed: .*CorruptBatch: .*bytes 0 to 100"):
        pipeline.run(
            coordwire.spark.engine(spark),
            [str(tmp_path / "in")],
            str(tmp_path / "out"),
            options=strict,
            report=False,
        )
    rerun = pipeline.run(
        coordwire.spark.engine(spark), [str(tmp_path / "in")], str(tmp_path / "out"), report=False
    )
    assert (rerun.reused, rerun.bad_ranges) == (0, 1)


def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", str(tmp_path), "--out", str(tmp_path / "out"), "--tables", "recrods"]) == 2
    assert "no such table: recrods; there are files, batches" in capsys.readouterr().err
    assert main(["pipeline", str(tmp_path), "--out", str(tmp_path / "out"), "--conf", "spark"]) == 2
    assert "--conf spark: expected KEY=VALUE" in capsys.readouterr().err


def test_groups_are_those_of_the_command(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the ends of connections, so that brokers that were away are among them."""
    path = tmp_path / "restart.pcap"
    path.write_bytes(lzma.decompress((CAPTURES.parent / "stories" / "consumer-restart.pcap.xz").read_bytes()))
    expected = told(path, capsys)
    assert any(("event", "brokerAway") in row for row in expected["groups"])
    same(in_tables(path, tmp_path / "out", lambda: coordwire.spark.engine(spark)), expected)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            [
                f"{JOB}: java.lang.IllegalStateException: Python daemon failed to launch worker.", TRACE,
                "Driver stacktrace:", TRACE,
                "Caused by: java.lang.IllegalStateException: Python daemon failed to launch worker.", TRACE,
                "\t... 1 more",
            ],
            "java.lang.IllegalStateException: Python daemon failed to launch worker",
        ),
        (
            [f"{JOB}: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", TRACE,
             "Caused by: java.io.EOFException", TRACE],
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)",
        ),
        (
            [f"{JOB}: org.apache.spark.api.python.PythonException: Traceback (most recent call last):",
             '  File "worker.py", line 1', "MemoryError: no room", TRACE],
            "MemoryError: no room",
        ),
        ([f"{JOB}: java.net.SocketException: Broken pipe", TRACE, "\t... 12 common frames omitted"],
         "a Python worker exited (java.net.SocketException: Broken pipe)"),
        ([f"{JOB}: java.io.EOFException", TRACE], "a Python worker exited (java.io.EOFException)"),
    ],
)  # fmt: skip
def test_a_failed_job_in_one_sentence(lines: list[str], sentence: str) -> None:
    """As Spark 4.3 says it where a worker is killed at different moments, with its trace cut."""
    from coordwire.spark import engines

    errors = pytest.importorskip("pyspark.errors", reason="pyspark isn't installed")
    error = errors.PySparkException("\n".join([CALL, *lines]))
    actual = engines.in_one_sentence(error)
    assert str(actual) == f"the Spark job failed: {sentence}; a rerun goes on where it was"
    assert engines.in_one_sentence(other := ValueError("x")) is other
