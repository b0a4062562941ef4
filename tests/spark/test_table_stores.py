"""Tables in Delta and Iceberg in a store: as on the local disk, killed and finished, pruned. A local S3.

The formats' own libraries read them, with the environment of the pipeline.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.cli.__main__ import main
from coordwire.errors import CoordwireError
from coordwire.tables import pipeline
from coordwire.tables.formats import Conflict, VersionedTable, check_format, open_table
from coordwire.tables.report.summary import PipelineSummary
from coordwire.tables.storage.folders import open_output
from tests.tables.in_process import InProcess
from tests.tables.made_segments import partition, segment
from tests.tables.moto_s3 import LocalS3, local_s3
from tests.tables.test_table_formats import parquet_rows, rows, table_format
from tests.tables.test_table_kills import COLUMNS, LOCAL, TIMES, Command, Rows, command, count_kills, expected

__all__ = ["table_format"]

TABLES = ("records", "files")


@pytest.fixture(scope="module")
def s3() -> Iterator[LocalS3]:
    with local_s3() as server:
        server.put("lake", {})
        yield server


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(2):
        partition(tmp_path / "logs", "orders", number, segment(random.Random(number), 5))
    return tmp_path / "logs"


def run(logs: Path, out: str, table_format: str | None, *, prune: bool = False) -> PipelineSummary:
    return pipeline.run(
        InProcess(), [str(logs)], out, tables=TABLES, report=False, format=table_format, prune=prune
    )


def stored(uri: str, name: str, table_format: str, version: int | None = None) -> pa.Table:
    """The rows by the format's own library, as a user would read them."""
    if table_format == "delta":
        from deltalake import DeltaTable

        place = f"{uri}/{name}".replace("?", "%3F").replace("#", "%23")
        actual = DeltaTable(place, version=version, storage_options={"allow_http": "true"})
        rows: pa.Table = actual.to_pyarrow_table()
        return rows
    from pyiceberg.table import StaticTable

    settings = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"]}
    return StaticTable.from_metadata(f"{uri}/{name}", settings).scan().to_arrow()


def commits(s3: LocalS3, place: str, name: str) -> int:
    keys = [key for key in s3.keys("lake") if key.startswith(f"{place}/{name}/")]
    return sum("/_delta_log/" in key or key.endswith(".metadata.json") for key in keys)


def test_as_on_the_local_disk(logs: Path, tmp_path: Path, s3: LocalS3, table_format: str) -> None:
    place = f"{table_format}/tables of=1" + ("ü+?#" if table_format == "delta" else "")
    out, plain = f"s3://lake/{place}", tmp_path / "plain"

    def check_same(*, records: int) -> None:
        if plain.exists():
            shutil.rmtree(plain)
        run(logs, str(plain), None)
        assert len(stored(out, "records", table_format)) == records
        for name in TABLES:
            assert rows(stored(out, name, table_format)) == parquet_rows(plain, name), name

    run(logs, out, table_format)
    first = expected(logs).total()
    check_same(records=first)
    rerun = run(logs, f"S3A://lake/{place}/", None)
    assert rerun.reused == rerun.units
    assert [commits(s3, place, name) for name in TABLES] == [1, 1]

    file = next((logs / "orders-1").glob("*.log"))
    file.write_bytes(file.read_bytes() + segment(random.Random(9), 3, base=1000))
    run(logs, f"s3a://lake/{place}", None)
    grown = expected(logs).total()
    check_same(records=grown)
    assert [commits(s3, place, name) for name in TABLES] == [2, 2]

    shutil.rmtree(logs / "orders-0")
    assert run(logs, out, None, prune=True).pruned
    check_same(records=expected(logs).total())
    if table_format == "delta":  # what a commit replaces stays for older versions
        assert len(stored(out, "records", "delta", 0)) == first
        assert len(stored(out, "records", "delta", 1)) == grown


def opened(out: str, table_format: str) -> VersionedTable:
    opened_table = open_table(table_format, open_output(out), "records", "1")
    opened_table.committed()
    return opened_table


def test_one_of_two_commits_at_once(s3: LocalS3, table_format: str) -> None:
    out = f"s3://lake/both {table_format}"
    for number in (1, 2):
        item, other = opened(out, table_format), opened(out, table_format)
        item.commit(number, {}, ())
        with pytest.raises(Conflict):
            other.commit(number, {}, ())
        assert opened(out, table_format).committed() == number


def test_what_is_refused(logs: Path, s3: LocalS3, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("deltalake")
    with pytest.raises(CoordwireError, match="Delta tables can be in s3, gs, abfss or on the local disk"):
        check_format("delta", "hdfs://name:8020/out")
    with pytest.raises(CoordwireError, match="Delta's readers take % in a path for more than a name"):
        check_format("delta", "s3://lake/100%")
    words = ["--engine", "local", "--workers", "1", "--format", "delta", "--no-report"]
    assert main(["pipeline", str(logs), "--out", "s3://lake/closed", "--tables", "records", *words]) == 0

    def before(method: str, path: str) -> None:
        s3.denied.update({"lake"} if "_delta_log" in path else ())

    s3.before = before
    try:
        capsys.readouterr()
        assert main(["pipeline", str(logs), "--out", "s3://lake/closed", *words]) == 2
    finally:
        s3.before = None
        s3.denied.remove("lake")
    text = capsys.readouterr().err
    assert len(text.splitlines()) == 1, text
    assert "s3://lake/closed/" in text
    assert "\x1b" not in text
    assert "\\n" not in text


@pytest.mark.tables
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_killed_at_any_moment(tmp_path: Path, s3: LocalS3, table_format: str, engine: str) -> None:
    """Rows are all of a run or none of it, at each moment, and each once in the end."""

    def table_rows(out: str, table_format: str) -> Rows:
        if not commits(s3, out.removeprefix("s3://lake/"), "records"):
            return Rows()
        table = stored(out, "records", table_format)
        return Rows(zip(*(table.column(name).to_pylist() for name in COLUMNS), strict=True))

    words = LOCAL if engine == "local" else ("--master", "local[2]")  # its report reads the tables in Spark
    out = f"s3://lake/killed/{table_format}-{engine}"
    logs = tmp_path / "logs"
    runner = Command(command(logs, out, table_format, words))
    killed = count_kills(logs, out, table_format, TIMES, runner=runner, rows=table_rows, took=10.0)
    print(f"{killed} of {TIMES} runs were killed")
