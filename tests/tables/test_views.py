"""What happened is counted once where captures and logs both have it."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.tables.columns import GROUPS, OFFSET_COMMITS, arrow_schema
from coordwire.tables.views import VIEWS, once

START = datetime(2026, 11, 26, 12, tzinfo=UTC)


def rebalance(seen_in: str, generation: int | None, minutes: float, **values: Any) -> dict[str, Any]:
    time = START + timedelta(minutes=minutes)
    names = {"event": "rebalanceEnded", "group_id": "payments", "seen_in": seen_in, "generation": generation}
    return names | {"time": time, "input_file": f"a.{seen_in}", "log_offset": None} | values


def commit(seen_in: str, offset: int, minutes: float, **values: Any) -> dict[str, Any]:
    names = {"group_id": "payments", "topic": "orders", "partition": 0, "committed_offset": offset}
    return rebalance(seen_in, None, minutes, **names) | values


def rows_of(view: str, table: str, rows: list[dict[str, Any]]) -> list[tuple[str, int, float]]:
    """Where each row is seen, its number (generation or offset), and when."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb isn't installed")
    schema = arrow_schema({"groups": GROUPS, "offset_commits": OFFSET_COMMITS}[table])
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.register(table, pa.Table.from_pylist(rows, schema=schema))
    number = {"groups": "generation", "offset_commits": "committed_offset"}[table]
    query = f"SELECT seen_in, {number}, epoch(time) FROM ({VIEWS[view]()}) ORDER BY time, seen_in"
    rows_left = connection.sql(query).fetchall()
    return [(seen_in, value, (time - START.timestamp()) / 60) for seen_in, value, time in rows_left]


def test_a_rebalance_in_a_capture_and_in_a_log() -> None:
    rows = [
        rebalance("log", 1, 0), rebalance("log", 2, 10), rebalance("capture", 2, 9.9),
        rebalance("log", 3, 20),
        rebalance("log", 2, 180),  # the group was deleted and made again
        rebalance("log", 4, 30), rebalance("capture", 4, 30, group_id="another"),
        rebalance("capture", 3, 21, event="memberJoined"), rebalance("log", None, 40),
    ]  # fmt: skip
    assert rows_of("rebalances_once", "groups", rows) == [
        ("log", 1, 0), ("capture", 2, 9.9), ("log", 3, 20), ("capture", 4, 30), ("log", 4, 30),
        ("log", None, 40), ("log", 2, 180),
    ]  # fmt: skip


def test_a_commit_in_a_capture_and_in_a_log() -> None:
    rows = [
        commit("log", 5, 1), commit("capture", 5, 1), commit("log", 6, 2),
        commit("capture", 6, 2, partition=1), commit("log", 5, 120),
    ]  # fmt: skip
    assert rows_of("offset_commits_once", "offset_commits", rows) == [
        ("capture", 5, 1), ("capture", 6, 2), ("log", 6, 2), ("log", 5, 120),
    ]  # fmt: skip


def test_an_idle_consumer_commits_one_offset_again_and_again() -> None:
    """A capture that has one of the commits, or one that was refused, says nothing of the others."""
    logged = [commit("log", 5, minute) for minute in range(0, 50, 5)]
    rows = [*logged, commit("capture", 5, 50.1), commit("log", 5, 50)]
    assert len(rows_of("offset_commits_once", "offset_commits", rows)) == 11
    refused = commit("capture", 7, 60, error_code=27)
    seen = rows_of("offset_commits_once", "offset_commits", [refused, commit("log", 7, 60.1)])
    assert seen == [("capture", 7, 60), ("log", 7, 60.1)]
    unanswered = commit("capture", 8, 60, error_code=None)
    seen = rows_of("offset_commits_once", "offset_commits", [unanswered, commit("log", 8, 60.1)])
    assert seen == [("capture", 8, 60)]


def test_replicas_of_a_log() -> None:
    """One record of several brokers' copies; a log that has another cluster's generation is none."""
    brokers = [{"input_file": f"/{name}/0.log"} for name in ("two", "one", "three")]
    rows = [
        *(rebalance("log", 1, 0, log_offset=7) | broker for broker in brokers),
        *(rebalance("log", 2, 10, log_offset=9) | broker for broker in brokers[:2]),
        rebalance("capture", 2, 10), rebalance("log", 1, 1, log_offset=7, input_file="/other/0.log"),
    ]  # fmt: skip
    counted = [("log", 1, 0), ("log", 1, 1), ("capture", 2, 10)]
    assert rows_of("rebalances_once", "groups", rows) == counted
    attributes = [SimpleNamespace(**row | {"time": round(row["time"].timestamp() * 1e6)}) for row in rows]
    (first, *_) = once(attributes)
    assert first.input_file == "/one/0.log"
    commits = [commit("log", 5, 1, log_offset=3) | broker for broker in brokers]
    twice = [commit("log", 5, 2, log_offset=4, input_file="/one/0.log")] * 2  # one transaction's
    assert rows_of("offset_commits_once", "offset_commits", commits + twice) == [
        ("log", 5, 1), ("log", 5, 2), ("log", 5, 2),
    ]  # fmt: skip


def test_rows_in_memory_are_counted_as_the_view_does() -> None:
    rng = random.Random(9)
    for _ in range(20):
        rows = [
            rebalance(rng.choice(("log", "capture")), rng.choice((1, 2, None)), rng.choice((0, 59, 61, 200)),
                      group_id=rng.choice("ab"), log_offset=rng.choice((1, 2)), input_file=rng.choice("cde"))
            for _ in range(rng.randrange(1, 14))
        ]  # fmt: skip
        attributes = [SimpleNamespace(**row | {"time": round(row["time"].timestamp() * 1e6)}) for row in rows]
        minutes = [
            (row.seen_in, row.generation, (row.time / 1e6 - START.timestamp()) / 60)
            for row in once(attributes)
        ]
        assert sorted(minutes, key=str) == sorted(rows_of("rebalances_once", "groups", rows), key=str)
