"""Captures in other protocols than Kafka's as tables."""

from __future__ import annotations

import io
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from coordwire.cli.__main__ import main
from coordwire.tables import pipeline
from coordwire.tables.options import Options, parse_options
from coordwire.tables.readers.captures import read_frames
from coordwire.tables.readers.rows import Bad
from coordwire.tables.readers.splits import Part

DATA = Path(__file__).parents[1] / "data"
COLUMNS = ("dialect", "api", "direction", "error_code", "error_name", "error_reason")


def rows(path: Path, dialect: str) -> Iterator[dict[str, Any]]:
    part = Part("capture", str(path), path.stat().st_size, 0, path.stat().st_size)
    for batch in read_frames(part, Options(dialect=dialect), COLUMNS):
        assert not isinstance(batch, Bad | str)
        yield from batch.to_pylist()


def test_zookeeper_is_found_beside_kafka() -> None:
    results = list(rows(DATA / "zookeeper" / "java-3.9.3.pcap.xz", "kafka"))
    assert len(results) == 584
    assert {row["dialect"] for row in results} == {"zookeeper"}
    assert not [row for row in results if row["error_reason"]]
    refused = [row for row in results if row["error_code"]]
    assert {row["error_name"] for row in refused} >= {"NONODE", "NODEEXISTS", "BADVERSION"}


def test_a_draft_is_named() -> None:
    path = DATA / "drafts" / "runs" / "draft-2.pcap"
    results = list(rows(path, "draft-2"))
    assert {row["dialect"] for row in results} == {"draft-2"}
    assert {"Ping", "RegisterConsumer", "StartFetcher"} <= {row["api"] for row in results}
    assert not [row for row in results if row["error_reason"]]


def test_the_option_names_a_dialect() -> None:
    assert parse_options({"path": "x", "Dialect": "ZooKeeper"}).dialect == "zookeeper"
    with pytest.raises(Exception, match=r"expected kafka, kafka-0\.7, draft-1"):
        parse_options({"path": "x", "dialect": "draft-9"})


def test_decode_writes_tables_of_zookeepers_groups(tmp_path: Path) -> None:
    capture = tmp_path / "x.pcap"
    capture.write_bytes(lzma.decompress((DATA / "zookeeper" / "consumers-7001.pcap.xz").read_bytes()))
    assert main(["decode", str(capture), "--out", str(tmp_path / "out")]) == 0
    groups = pyarrow.parquet.read_table(io.BytesIO((tmp_path / "out" / "groups.parquet").read_bytes()))
    assert set(groups["kind"].to_pylist()) <= {"zookeeper", None}
    assert {"g1", "g-2"} == set(groups["group_id"].to_pylist())


def test_tables_of_another_dialect_are_not_reused(tmp_path: Path) -> None:
    path, out = DATA / "drafts" / "runs" / "draft-2.pcap", tmp_path / "out"

    def run(dialect: str) -> tuple[int, set[str]]:
        options = Options(dialect=dialect)
        engine = pipeline.LocalEngine(1)
        summary = pipeline.run(
            engine, [str(path)], str(out), options=options, tables=["frames"], report=False
        )
        results = [pyarrow.parquet.read_table(path)["dialect"] for path in out.rglob("*.parquet")]
        return summary.reused, {str(value) for column in results for value in column}

    assert run("draft-2") == (0, {"draft-2"})
    assert run("draft-2") == (1, {"draft-2"})
    assert run("draft-1") == (0, set())
    assert run("draft-2") == (0, {"draft-2"})
