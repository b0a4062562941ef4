"""Groups that a capture and their coordinator's log both have: counted once, as the coordinator and Kafka's
own tool state them."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.tables import pipeline
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.views import VIEWS, once
from tests.tables import pipeline_steps
from tests.tables.captured_logs import CAPTURED_LOGS, unpack_captured_logs
from tests.tables.in_process import InProcess

Rows = list[dict[str, Any]]
NAMES = ("groups", "offset_commits", "lag", "traffic")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    folder = tmp_path_factory.mktemp("captured")
    unpack_captured_logs(folder / "in")
    pipeline.run(InProcess(), [str(folder / "in")], str(folder / "out"), tables=NAMES, report=False)
    return {name: pipeline_steps.table_rows(folder / "out", name) for name in NAMES}


def view(name: str, tables: dict[str, Rows]) -> Rows:
    """The rows of a view, by DuckDB."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb isn't installed")
    connection = duckdb.connect()
    for table, rows in tables.items():
        schema = arrow_schema(TABLES[table])
        connection.register(table, pa.Table.from_pylist(rows, schema=schema))
    selection: Rows = connection.sql(VIEWS[name]()).to_arrow_table().to_pylist()
    return selection


def generations(rows: Rows) -> dict[str, list[int]]:
    counts: dict[str, list[int]] = {}
    for row in sorted(rows, key=lambda row: (row["group_id"], row["generation"])):
        counts.setdefault(row["group_id"], []).append(row["generation"])
    return counts


def stated() -> dict[str, list[int]]:
    """By the coordinator's log. A classic group that becomes empty has no rebalance that ends."""
    groups = json.loads((CAPTURED_LOGS / "generations.json").read_text())
    return {
        name: [
            one["generation"] for one in items if name.startswith("consumer") or one["members"] != 0
        ]
        for name, items in groups.items()
    }  # fmt: skip


def test_each_rebalance_is_counted_once(tables: dict[str, Rows]) -> None:
    ended = [row for row in tables["groups"] if row["event"] == "rebalanceEnded"]
    seen_in = Counter((row["group_id"], row["seen_in"]) for row in ended)
    assert seen_in == {
        ("classic-causes", "capture"): 7, ("classic-causes", "log"): 7,
        ("consumer-causes", "capture"): 10, ("consumer-causes", "log"): 10,
    }  # fmt: skip
    rows = [SimpleNamespace(**row | {"time": round(row["time"].timestamp() * 1e6)}) for row in ended]
    assert generations([vars(row) for row in once(rows)]) == stated()
    assert generations(view("rebalances_once", tables)) == stated()


def test_each_commit_is_counted_once(tables: dict[str, Rows]) -> None:
    key = ("group_id", "topic", "partition", "committed_offset")
    commits = [tuple(row[name] for name in key) for row in tables["offset_commits"]]
    stored = {
        seen_in: Counter(
            commit
            for row, commit in zip(tables["offset_commits"], commits, strict=True)
            if row["seen_in"] == seen_in and not row["error_code"]
        )
        for seen_in in ("capture", "log")
    }
    assert stored["log"] == stored["capture"]  # every commit is in both
    actual = Counter(tuple(row[name] for name in key) for row in view("offset_commits_once", tables)
                     if not row["error_code"])  # fmt: skip
    assert actual == stored["log"]


def test_lag_is_that_of_kafkas_tool(tables: dict[str, Rows]) -> None:
    lines = [line.split() for line in (CAPTURED_LOGS / "consumer-groups.txt").read_text().splitlines()]
    expected = {
        (line[0], line[1], int(line[2])): tuple(map(int, line[3:6]))
        for line in lines
        if line[1:2] and line[0] != "GROUP"
    }
    actual = {
        (row["group_id"], row["topic"], row["partition"]): (
            row["committed_offset"], row["end_offset"], row["lag"],
        )
        for row in tables["lag"]
        if row["seen_in"] == "log"
    }  # fmt: skip
    assert len(expected) == 21
    assert actual == expected
