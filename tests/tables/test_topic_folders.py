"""Topics of every kind in folders' names, and read back."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa
import pyarrow.dataset
from hypothesis import given
from hypothesis import strategies as st

from coordwire.tables.columns import LAG, arrow_schema
from coordwire.tables.storage.folders import open_output
from coordwire.tables.storage.names import data_name, folder_of, is_data_name
from coordwire.tables.storage.parquet_files import BEHIND_LAST_DAY, FIRST_DAY, UnitFiles, _days, _only_day
from coordwire.tables.storage.parquet_files import DAY as FILES_DAY
from coordwire.tables.storage.unit_attempt import Attempt

TOPICS = [
    None, "", ".", "..", "...", "a/b", "a=b%2F", "a\x00b", "\x1b[31m", "x" * 100, "x" * 101, "x" * 249,
    "x" * 1000, "é" * 100, "日本" * 300, "𝕏", "__HIVE_DEFAULT_PARTITION__", "null", "no-topic", "NULL",
    "Orders", "orders", "ORDERS", "1", "007", "1.50", "1e5", "NaN", "true", "2024-01-01", "2024-01-01 00:00",
    "9223372036854775808", " a", "a ", "a.", "a..", " ", "~", "a~" + "0" * 32, "_hidden", ".hidden", "-",
    "a:b", "../../../../etc/passwd", "%00", "%C3%A9", "\n", "topic=x", "date=2024-01-01", "a\\b", "*", "?",
    "[a]", "{a,b}", "con", "a|b", '"', "<b>", "\u202e", "\ud7ff", "x" * 40 + "~" + "y", "part-0000.parquet",
]  # fmt: skip
DAY = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
SAFE = re.compile(r"date=2024-02-29/[A-Za-z0-9._~-]+")


def write(out: Path, topics: list[str | None]) -> None:
    rows = [{"time": DAY, "group_id": "g", "topic": topic, "lag": n} for n, topic in enumerate(topics)]
    files = UnitFiles(Attempt(open_output(str(out)), "0" * 24), "0" * 24)
    for batch in pa.Table.from_pylist(rows, schema=arrow_schema(LAG)).to_batches():
        files.add("lag", batch)
    files.close()
    files.attempt.place_files()


def read(out: Path) -> list[str | None]:
    rows = pyarrow.dataset.dataset(out / "lag", partitioning="hive").to_table().to_pylist()
    return [row["topic"] for row in sorted(rows, key=lambda row: row["lag"])]


def test_every_topic_is_read_back(tmp_path: Path) -> None:
    write(tmp_path, TOPICS)
    assert read(tmp_path) == TOPICS
    folders = [path.name for path in (tmp_path / "lag" / "date=2024-02-29").iterdir()]
    assert len(folders) == len(TOPICS)
    assert "topic-orders" in folders


@pytest.mark.parametrize("topics", [["007", "7"], ["2024-01-01"], ["1.50"], [None], ["é"]])
def test_types_are_not_guessed(tmp_path: Path, topics: list[str | None]) -> None:
    """Where all of a table's topics look like numbers, readers would make numbers of folders' names."""
    write(tmp_path, topics)
    assert read(tmp_path) == topics


@given(st.lists(st.none() | st.text(), min_size=2, max_size=2, unique=True))
def test_folders_are_safe_and_no_two_topics_share_one(topics: list[str | None]) -> None:
    first, second = (folder_of([DAY.date(), topic], True) for topic in topics)
    assert first != second
    for folder in (first, second):
        assert SAFE.fullmatch(folder)
        assert max(len(part) for part in folder.split("/")) <= 143
        assert is_data_name(data_name("lag", folder, "0" * 24, "f" * 32, 12345))


def test_times_beyond_the_calendar(tmp_path: Path) -> None:
    ends = [-(1 << 63), (1 << 63) - 1, -1, 0, 253_402_300_799_999_999, 253_402_300_800_000_000, None]
    times = pa.array(ends, pa.timestamp("us", tz="UTC"))
    columns = [
        times if field.name == "time" else pa.nulls(len(ends), field.type) for field in arrow_schema(LAG)
    ]
    files = UnitFiles(Attempt(open_output(str(tmp_path)), "0" * 24), "0" * 24)
    files.add("lag", pa.RecordBatch.from_arrays(columns, schema=arrow_schema(LAG)))
    files.close()
    files.attempt.place_files()
    actual = {path.parts[-3] for path in tmp_path.rglob("lag/*/*/*.parquet")}
    null = "date=__HIVE_DEFAULT_PARTITION__"
    assert actual == {null, "date=1969-12-31", "date=1970-01-01", "date=9999-12-31"}
    assert files.rows["lag"] == len(ends)


EDGES = [-(1 << 63), FIRST_DAY - 1, FIRST_DAY, -1, 0, FILES_DAY - 1, FILES_DAY, BEHIND_LAST_DAY - 1]
EDGES += [BEHIND_LAST_DAY, (1 << 63) - 1]


@given(st.lists(st.sampled_from([None, *EDGES]), min_size=1, max_size=3))
def test_the_only_day_is_that_of_each_time(times: list[int | None]) -> None:
    array = pa.array(times, pa.timestamp("us", tz="UTC"))
    days = set(_days(array).to_pylist())
    assert _only_day(array) == (days.pop() if len(days) == 1 else None)
