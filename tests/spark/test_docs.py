"""The PySpark examples of docs/reference/spark.md and of two how-to guides run as they are."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coordwire.records import Record, encode_batch
from tests.broker_sample import broker_sample
from tests.tables.made_segments import START
from tests.tables.test_disk_lag import commits, put

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


(EXAMPLE,) = blocks("docs/reference/spark.md", "py")
(BY_DAY,) = blocks("docs/how-to/consumer-offsets.md", "py")
(PRINTED,) = blocks("docs/how-to/consumer-offsets.md", "text")
CAPTURE = "aio__rdmock__admin.pcap"


def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    disk, caps = tmp_path / "backup", tmp_path / "caps"
    shutil.copytree(broker_sample() / "data/transactions-0", disk / "orders-0")
    caps.mkdir()
    shutil.copy(ROOT / "tests/data/captures" / CAPTURE, caps)
    code = EXAMPLE
    for written, meant in {
        "s3://logs/": disk,
        "/backup": disk,
        "/arriving": disk,
        '"caps/': f'"{caps}/',
        '"caps"': f'"{caps}"',
        '"tables"': f'"{tmp_path / "tables"}"',
    }.items():
        assert written in code
        code = code.replace(written, str(meant))
    code = code.replace("frames.selectExpr", "found = frames.selectExpr")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/reference/spark.md, example", "exec"), names)
    assert any(row.group_id == "g-aio-admin" for row in names["found"].collect())


def marker(kind: int, offset: int) -> bytes:
    """The end of producer 5's transaction: 0 aborts, 1 commits."""
    record = Record(timestamp=START, key=struct.pack(">hh", 0, kind), value=struct.pack(">hi", 0, 0))
    return encode_batch(
        [record], control=True, transactional=True, producer_id=5, producer_epoch=0, base_offset=offset
    )


@pytest.fixture
def session_zone(spark: SparkSession) -> Iterator[None]:
    """The example sets the session's time zone, which other tests share."""
    before = spark.conf.get("spark.sql.session.timeZone")
    yield
    spark.conf.set("spark.sql.session.timeZone", str(before))


def committed_by_day(spark: SparkSession, folder: Path, year: int = 2026) -> Any:
    """The example's rows, of the files in a folder and of that year's November."""
    code = BY_DAY.replace('"disk/data"', repr(str(folder))).replace('"2026-', f'"{year}-')
    code, _, table = code.rpartition("by_day.orderBy")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/consumer-offsets.md, example", "exec"), names)
    assert names["spark"] is spark or names["spark"].version == spark.version
    return eval("by_day.orderBy" + table.removesuffix(".show()\n"), names)


@pytest.mark.usefixtures("session_zone")
def test_offsets_by_day(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    committed_by_day(spark, broker_sample() / "data").show()
    assert capsys.readouterr().out.strip() == PRINTED.strip()


@pytest.mark.usefixtures("session_zone")
def test_offsets_by_day_with_transactions_and_replicas(spark: SparkSession, tmp_path: Path) -> None:
    producer: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}
    data = commits([("g", "orders", 0, 3)])
    data += commits([("g", "orders", 0, 8)], 1, base_sequence=0, **producer) + marker(0, 2)
    data += commits([("g", "orders", 1, 4)], 3, base_sequence=1, **producer) + marker(1, 4)
    data += commits([("g", "orders", 1, 9)], 5, base_sequence=2, **producer)  # still open
    data += commits([("h", "orders", 0, 7), ("h", "orders", 0, None)], 6)
    for broker in ("a", "b"):
        put(tmp_path / broker, "__consumer_offsets-7", data)
    put(tmp_path / "c", "__consumer_offsets-7", commits([("other", "orders", 0, 5)]))
    (tmp_path / "c" / "meta.properties").write_text("node.id=1\ncluster.id=another\n")
    actual = [tuple(row)[1:] for row in committed_by_day(spark, tmp_path, 2023).collect()]
    assert actual == [
        ("g", "orders", 0, 1, 3), ("g", "orders", 1, 1, 4), ("h", "orders", 0, 1, None),
        ("other", "orders", 0, 1, 5),
    ]  # fmt: skip


def test_functions_on_columns(spark: SparkSession) -> None:
    (code,) = blocks("docs/how-to/columns-of-bytes.md", "py")
    assert "/backup/__consumer_offsets-*/" in code
    code = code.replace("/backup/", f"{broker_sample()}/data/")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/how-to/columns-of-bytes.md, example", "exec"), names)
    rows = names["commits"].collect()
    assert {row.group_id for row in rows} >= {"exactly-once"}
