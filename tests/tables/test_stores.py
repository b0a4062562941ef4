"""Files in a store: names, listings, and the pipeline into it. The store is a local S3."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

import pyarrow as pa
from pyspark.sql.pandas import types
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from coordwire.cli.__main__ import main
from coordwire.errors import CoordwireError
from coordwire.spark.stored_tables import StoredTable
from coordwire.tables.columns import TABLES, arrow_schema
from coordwire.tables.pipeline.job import check
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.readers.files import find_files, open_bytes, open_stream
from coordwire.tables.storage.folders import StoreFolder, open_output
from coordwire.tables.storage.parquet_files import read_rows
from coordwire.tables.storage.unit_attempt import Attempt
from coordwire.tables.stores import Store, canonical, is_uri, local_path, store_of
from tests.tables import pipeline_steps
from tests.tables.made_segments import segment
from tests.tables.moto_s3 import DENIED, LocalS3, local_s3

LOG = f"{0:020}.log"
DATA = segment(random.Random(1), 20)


@pytest.fixture(scope="module")
def s3() -> Iterator[LocalS3]:
    with local_s3() as server:
        yield server


@pytest.fixture(scope="module")
def unusual_keys(s3: LocalS3) -> str:
    """A bucket of keys that are hard to name."""
    keys = {
        f"a b/ü%25=x/orders-0/{LOG}": DATA, "dir/": b"", f"dir/orders-1/{LOG}": b"", "q[1]*?#/x.log": b"1",
    }  # fmt: skip
    s3.put("odd", keys)
    return "s3://odd"


def stored_rows(out: str, table: str) -> list[dict[str, Any]]:
    import pyarrow as pa

    schema = pa.schema([*arrow_schema(TABLES[table]), ("date", pa.date32())])
    output = open_output(out)
    names, _ = Ledger(output).named_files(table)
    return [row for name in names for batch in read_rows(output, name, schema) for row in batch.to_pylist()]


def test_keys_of_any_characters(unusual_keys: str) -> None:
    def names(uri: str) -> list[str]:
        return [file.path.removeprefix(f"{unusual_keys}/") for file in find_files([uri])]

    first, second, third = f"a b/ü%25=x/orders-0/{LOG}", f"dir/orders-1/{LOG}", "q[1]*?#/x.log"
    assert names(unusual_keys) == names(f"{unusual_keys}/") == names("S3A://odd") == [first, second, third]
    assert (
        names(f"{unusual_keys}/a b/")
        == names(f"{unusual_keys}/{first}")
        == names(f"{unusual_keys}/*/ü%25=x/*")
        == [first]
    )
    assert names(f"{unusual_keys}/dir") == names(f"{unusual_keys}/dir/") == [second]
    assert (
        names(f"{unusual_keys}/q[1]*?#/x.log")
        == names(f"{unusual_keys}/q[1]*?#")
        == names(f"{unusual_keys}/q[[]1[!a]?*")
        == [third]
    )
    [actual] = find_files([f"{unusual_keys}/{first}"])
    assert (actual.topic, actual.partition, actual.size, actual.named) == ("orders", 0, len(DATA), True)
    assert bytes(open_bytes(actual.path)) == DATA
    with open_stream(actual.path) as stream:
        assert stream.read() == DATA
    assert bytes(open_bytes(f"{unusual_keys}/{second}")) == b""


def test_more_keys_than_a_page_holds(s3: LocalS3) -> None:
    s3.put("many", {f"caps/{number:05}": b"" for number in range(1003)})
    assert len(find_files(["s3://many/caps"])) == 1003


def test_a_server_that_cannot_be_reached_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Some of fsspec's file systems connect when they are made."""
    pytest.importorskip("fsspec", reason="fsspec isn't installed")
    (tmp_path / LOG).write_bytes(DATA)
    uri = "ftp://127.0.0.1:1/tables"
    assert main(["pipeline", "--engine", "local", str(tmp_path), "--out", uri]) == 2
    assert uri in capsys.readouterr().err


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("s3://nowhere/x", "the bucket does not exist.*s3://nowhere/x"),
        ("s3://nowhere", "the bucket does not exist.*s3://nowhere"),
        ("s3://nowhere/*.log", "the bucket does not exist.*s3://nowhere/"),
        ("s3://odd/none", "there is no s3://odd/none"),
        ("s3://odd/none*", r"no file fits s3://odd/none\*"),
        ("s3://*/x", "expected a bucket without wildcards"),
        (f"s3://{DENIED}/x", r"access was denied; set AWS_ACCESS_KEY_ID .*\(ACCESS_DENIED\)"),
        ("s3:///x", "names no bucket: expected s3://BUCKET/PATH"),
        ("gs://", "names no bucket: expected gs://BUCKET/PATH"),
        ("abfss://files/x", "names no account: expected abfss://CONTAINER@ACCOUNT"),
        ("hdfs://name:8020/x", "set JAVA_HOME, HADOOP_HOME"),
        ("none://x", "none:// is not known here; s3, s3a, gs, abfss, hdfs and file are"),
        ("hdfs:/x", "expected hdfs://…, got hdfs:/x"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(unusual_keys: str, uri: str, reason: str) -> None:
    with pytest.raises((OSError, CoordwireError), match=reason) as info:
        find_files([uri])
    assert "\n" not in str(info.value)


def test_a_store_that_does_not_answer(s3: LocalS3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(OSError, match="the store can't be reached; check the network, AWS_ENDPOINT_URL"):
        find_files(["s3://odd"])


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            OSError("Could not create a OAuth2 access token to ask"),
            "set GOOGLE_APPLICATION_CRED",
        ),
        (pa.ArrowException("x failed: 4Core23AuthenticationExceptionE: No.\\nSee"), "set AZURE_STORAGE_KEY"),
        (OSError("AWS Error NETWORK_CONNECTION during X: curlCode: 7, No"), r"AWS_REGION \(7, No\)"),
    ],
)
def test_stores_without_credentials(error: Exception, reason: str) -> None:
    system = mock.Mock(get_file_info=mock.Mock(side_effect=error))
    with pytest.raises(OSError, match=reason) as info:
        Store(system, "x://", "", True).info("bucket/key")
    assert "\\n" not in str(info.value)
    assert str(info.value).endswith("'x://bucket/key'")


def test_schemes() -> None:
    assert [is_uri(path) for path in ("a", "/a", "file:///a", "file:/a", "s3://a", "C://")] == [
        False, False, False, False, True, True,
    ]  # fmt: skip
    assert {local_path(path) for path in ("/a b", "file:///a b", "file:/a b", "FILE://localhost/a b")} == {
        "/a b"
    }
    assert canonical("S3A://b/x/") == "s3://b/x"
    store, path = store_of("abfs://box@account.dfs.core.windows.net/a b/c/")
    assert (path, store.uri("box/a b/c/d")) == (
        "box/a b/c", "abfss://box@account.dfs.core.windows.net/a b/c/d",
    )  # fmt: skip
    store, path = store_of("gcs://bucket/a%20b")
    assert (path, store.uri(path)) == ("bucket/a%20b", "gs://bucket/a%20b")


# --- the pipeline ---


def test_places_that_cannot_be_written(
    s3: LocalS3, unusual_keys: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, reason in [
        ("s3://nowhere/x", "the bucket does not exist"),
        (f"s3://{DENIED}/x", "access was denied"),
        (unusual_keys, "is not empty and has no manifest.json"),
        ("hdfs://name:8020/x", "HDFS needs Hadoop's libhdfs"),
        ("none://x", "is not known here"),
        ("s3:/bucket/x", "expected s3://…, got s3:/bucket/x"),
    ]:
        assert main(["pipeline", str(Path(__file__).parent), "--out", out]) == 2
        text = capsys.readouterr()
        assert reason in text.err
        assert text.err.count("\n") == 1
        assert text.out == ""
    with pytest.raises(CoordwireError, match="is inside of"):
        check(["s3://odd/out/x"], "s3a://odd/out/")
    with pytest.raises(FileNotFoundError, match="there is no "):  # seconds before Spark would say so
        check([str(tmp_path / "none")], str(tmp_path / "out"))


def test_a_run_and_another(s3: LocalS3, tmp_path: Path) -> None:
    pipeline_steps.put_segment(tmp_path, "orders", 0, range(5))
    s3.put("tables", {})
    out = "s3a://tables/a b"
    assert pipeline_steps.run(tmp_path, out).records == 5
    assert pipeline_steps.run(tmp_path, out).reused == 1
    pipeline_steps.put_segment(tmp_path, "orders", 0, range(7))
    assert pipeline_steps.run(tmp_path, out).records == 7
    assert sorted(row["log_offset"] for row in stored_rows(out, "records")) == list(range(7))
    assert [row["date"].isoformat() for row in stored_rows(out, "records")] == ["2023-11-14"] * 7
    remaining = [key for key in s3.keys("tables") if not key.endswith(("/", ".parquet"))]
    assert remaining == ["a b/manifest.json"]
    assert len([key for key in s3.keys("tables") if "/records/" in key and key.endswith(".parquet")]) == 1
    assert not [key for key in s3.keys("tables") if "attempts/0" in key]


def test_tables_are_read_as_before_pyspark_4_2(
    s3: LocalS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There the function that makes an Arrow schema knows no time zone."""
    newest: Any = types.to_arrow_schema
    monkeypatch.setattr(types, "to_arrow_schema", lambda schema: newest(schema, timezone="UTC"))
    pipeline_steps.put_segment(tmp_path, "orders", 0, range(5))
    s3.put("earlier", {})
    pipeline_steps.run(tmp_path, "s3://earlier/x")
    schema = StructType([StructField("log_offset", LongType()), StructField("time", TimestampType())])
    reader: Any = StoredTable({"out": "s3://earlier/x", "table": "records"}).reader(schema)
    rows = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert [row["log_offset"] for row in rows] == list(range(5))
    assert rows[0]["time"].isoformat() == "2023-11-14T22:13:20+00:00"


@pytest.mark.parametrize("last", [4, 10])
def test_a_run_that_ends_at_any_step(s3: LocalS3, tmp_path: Path, last: int) -> None:
    """What is written, moved or removed in the store is never half of a unit, and the next run goes on."""
    for number in range(2):
        pipeline_steps.put_segment(tmp_path, "orders", number, range(3))
    s3.put("steps", {})
    out, count = f"s3://steps/{last}", 0

    def ending(name: str) -> Any:
        inner = getattr(Store, name)

        def method(self: Store, *arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count >= last:
                raise pipeline_steps.Crash
            return inner(self, *arguments)

        return mock.patch.object(Store, name, method)

    with ending("put"), ending("move"), ending("delete"), pytest.raises(pipeline_steps.Crash):
        pipeline_steps.run(tmp_path, out, tables=["records"])
    for name in s3.keys("steps"):
        if "_manifest/runs/" in name:  # in a store a dead run's lock is the user's to remove
            s3.remove("steps", name)
    pipeline_steps.run(tmp_path, out, tables=["records"])
    actual = sorted(
        (row["topic"], row["partition"], row["log_offset"]) for row in stored_rows(out, "records")
    )
    assert actual == [("orders", number, offset) for number in range(2) for offset in range(3)]


def test_of_two_attempts_the_last_note_counts(s3: LocalS3, tmp_path: Path) -> None:
    """One's look comes before the other's put, its own put after it: the first takes its files back."""
    pipeline_steps.put_segment(tmp_path, "orders", 0, range(3))
    s3.put("attempts", {})
    out, is_beside = "s3://attempts/x", True
    create = StoreFolder.create

    def written(self: StoreFolder, name: str, data: bytes) -> bool:
        self.write(name, data)
        return True

    def racing(self: StoreFolder, name: str, data: bytes) -> bool:
        nonlocal is_beside
        if is_beside and "/runs/" not in name:
            is_beside = False
            assert create(self, name, data)  # ours; then the other's, which had looked before
            with mock.patch.object(StoreFolder, "create", written):
                pipeline_steps.run_unit(*arguments)
            return True
        return create(self, name, data)

    def work(*texts: Any) -> object:
        arguments[:] = texts
        with mock.patch.object(Attempt, "_claimed", claimed):
            return pipeline_steps.run_unit(*texts)

    arguments: list[Any] = []
    inner, looks = Attempt._claimed, 0

    def claimed(self: Attempt, own: str | None = None) -> Any:
        nonlocal looks
        looks += 1
        return None if own is None else inner(self, own)  # nobody sees a note before its put

    with mock.patch.object(StoreFolder, "create", racing):
        pipeline_steps.run(tmp_path, out, work=work, tables=["records"])
    assert looks == 4
    assert [row["log_offset"] for row in stored_rows(out, "records")] == [0, 1, 2]
    assert len([key for key in s3.keys("attempts") if key.endswith(".parquet")]) == 1
