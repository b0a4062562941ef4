"""Tables in Delta and Iceberg: the same rows as in Parquet, one commit a run, killed anywhere and run again.

The pipeline works in this process, and the tables are read by the formats' own libraries.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa
import pyarrow.parquet

from coordwire.errors import CoordwireError
from coordwire.records import Record, encode_batch
from coordwire.tables import columns, pipeline
from coordwire.tables.formats import Conflict, check_format, open_table, table_commits
from coordwire.tables.pipeline import job
from coordwire.tables.pipeline.ledger import Ledger
from coordwire.tables.report.summary import PipelineSummary
from coordwire.tables.storage.folders import Output, open_output
from tests.tables.in_process import InProcess, KilledError
from tests.tables.made_segments import partition, segment

CAPTURE = "tests/data/captures/confluent__rdmock__group-range.pcap"
LOGGED = ("delta", "iceberg")
"""The formats with a log of their own."""


@pytest.fixture(params=LOGGED)
def table_format(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    package = {"delta": "deltalake", "iceberg": "pyiceberg"}[name]
    pytest.importorskip(package, reason=f"{package} isn't installed: pip install 'coordwire[{name}]'")
    return name


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    for number in range(3):
        partition(folder, "orders", number, segment(random.Random(number), 8))
    return folder


def run(
    logs: Path,
    out: Path,
    table_format: str | None,
    engine: InProcess | None = None,
    *extra: str,
    **named: Any,
) -> PipelineSummary:
    return pipeline.run(
        engine or InProcess(), [str(logs), *extra], str(out), report=False, format=table_format, **named
    )


def log_of(out: Path, name: str, table_format: str) -> pa.Table:
    """The rows by the format's own library."""
    if table_format == "delta":
        from deltalake import DeltaTable

        return DeltaTable(out / name).to_pyarrow_table()
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(f"{out}/{name}").scan().to_arrow()


def commits(out: Path, name: str, table_format: str) -> int:
    """The commits of a table, its creation included."""
    if table_format == "delta":
        return len(list((out / name / "_delta_log").glob("*.json")))
    return len(list((out / name / "metadata").glob("v*.metadata.json")))


def rows(table: pa.Table) -> list[str]:
    """Rows in an order of their own, without what differs between runs and formats."""
    return sorted(
        json.dumps({key: str(value) for key, value in row.items() if value is not None}, sort_keys=True)
        for row in table.to_pylist()
    )


def parquet_rows(out: Path, name: str) -> list[str]:
    names, _ = Ledger(open_output(str(out))).named_files(name)
    tables = []
    for file in names:
        table = pyarrow.parquet.ParquetFile(out / file).read()
        day = file.partition("date=")[2].partition("/")[0]
        if day:
            table = table.append_column("date", pa.array([day] * len(table)))
        tables.append(table)
    return rows(pa.concat_tables(tables, promote_options="default")) if tables else []


def grow(logs: Path) -> None:
    """One partition's segment gets more batches, and another partition appears."""
    if not (logs / "payments-0").exists():
        partition(logs, "payments", 0, segment(random.Random(7), 4))
    file = next((logs / "orders-1").glob("*.log"))
    file.write_bytes(file.read_bytes() + segment(random.Random(9), 3, base=file.stat().st_size))


def assert_equal(out: Path, other: Path, table_format: str) -> None:
    """Both folders have the same rows in all tables."""
    for name in columns.TABLES:
        assert rows(log_of(out, name, table_format)) == parquet_rows(other, name), name


def test_the_same_rows_as_in_parquet(logs: Path, tmp_path: Path, table_format: str) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    run(logs, plain, None, None, CAPTURE)
    assert run(logs, out, table_format, None, CAPTURE).frames == 230
    assert_equal(out, plain, table_format)
    assert {commits(out, name, table_format) for name in columns.TABLES} == {1}


def test_times_that_no_calendar_has(tmp_path: Path, table_format: str) -> None:
    """They have no bounds; every row is there."""
    times = [5, -1, 253_402_300_800_000, -62_135_596_800_001, 1 << 50]
    for number, time in enumerate(times):
        data = encode_batch([Record(timestamp=time, value=b"v"), Record(timestamp=7, value=b"w")])
        partition(tmp_path / "logs", "orders", number, data)
    run(tmp_path / "logs", tmp_path / "out", table_format)
    actual = log_of(tmp_path / "out", "records", table_format)
    counts = Counter(time * 1000 for time in (*times, *[7] * len(times)) if time != -1)
    assert Counter(actual["time"].cast("int64").drop_null().to_pylist()) == counts
    assert actual.num_rows == 2 * len(times)


def test_a_rerun_adds_only_what_is_new(logs: Path, tmp_path: Path, table_format: str) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    run(logs, out, table_format)
    rerun = run(logs, out, None)
    assert rerun.reused == rerun.units
    assert {commits(out, name, table_format) for name in columns.TABLES} == {1}

    grow(logs)
    rerun = run(logs, out, table_format)
    assert rerun.units - rerun.reused == 2
    run(logs, plain, None)
    assert_equal(out, plain, table_format)  # the old rows of what grew went in the same commit
    assert {name for name in columns.TABLES if commits(out, name, table_format) == 2} == {
        "files", "batches", "records",
    }  # fmt: skip
    assert commits(out, "frames", table_format) == 1


def test_an_older_version_can_still_be_read(logs: Path, tmp_path: Path, table_format: str) -> None:
    """Files that were replaced stay until the format's own cleaning."""
    out = tmp_path / "out"
    run(logs, out, table_format)
    before = rows(log_of(out, "records", table_format))
    grow(logs)
    run(logs, out, table_format)
    if table_format == "delta":
        from deltalake import DeltaTable

        old = DeltaTable(out / "records", version=0).to_pyarrow_table()
    else:
        from pyiceberg.table import StaticTable

        table = StaticTable.from_metadata(f"{out}/records")
        old = table.scan(snapshot_id=table.snapshots()[0].snapshot_id).to_arrow()
    assert rows(old) == before


def fail(*_: object, **__: object) -> None:
    raise KilledError


def kill_before_commit(patch: pytest.MonkeyPatch, number: int) -> InProcess:
    """Kill the run at its end, before the nth table's commit."""
    commit, calls = table_commits._commit, iter(range(1, 1000))

    def called(output: Output, name: str, table: Any, actual: Any, run: str, create: bool) -> None:
        if create and next(calls) == number:
            raise KilledError
        commit(output, name, table, actual, run, create)

    patch.setattr(table_commits, "_commit", called)
    return InProcess()


KILLS: dict[str, Callable[[pytest.MonkeyPatch], InProcess]] = {
    "before the first unit": lambda patch: InProcess(fail_after=0),
    "amid the units": lambda patch: InProcess(fail_after=1),
    "before the table of files": lambda patch: patch.setattr(job, "write_files", fail) or InProcess(),
    "before the manifest": lambda patch: patch.setattr(job, "next_log", fail) or InProcess(),
    "before the first table's commit": lambda patch: kill_before_commit(patch, 1),
    "after one table's commit": lambda patch: kill_before_commit(patch, 2),
    "after two tables' commits": lambda patch: kill_before_commit(patch, 3),
}


@pytest.mark.parametrize("moment", KILLS)
def test_killed_and_run_again(logs: Path, tmp_path: Path, table_format: str, moment: str) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    run(logs, out, table_format)
    grow(logs)
    before = rows(log_of(out, "records", table_format))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        run(logs, out, table_format, KILLS[moment](patch))
    if not moment.startswith("after"):
        assert rows(log_of(out, "records", table_format)) == before
    run(logs, out, table_format)
    run(logs, plain, None)
    assert_equal(out, plain, table_format)
    assert commits(out, "records", table_format) == 2


def test_killed_in_the_first_run(logs: Path, tmp_path: Path, table_format: str) -> None:
    for number in (1, 2, len(columns.TABLES)):
        out = tmp_path / str(number)
        with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
            run(logs, out, table_format, kill_before_commit(patch, number))
        rerun = run(logs, out, None)
        assert rerun.reused == rerun.units
        assert {commits(out, name, table_format) for name in columns.TABLES} == {1}
    run(logs, tmp_path / "plain", None)
    assert_equal(out, tmp_path / "plain", table_format)


def test_files_that_were_published_and_never_committed_go(
    logs: Path, tmp_path: Path, table_format: str
) -> None:
    """A unit was complete when its run was killed, and then its input grew."""
    out, plain = tmp_path / "out", tmp_path / "plain"
    with pytest.raises(KilledError):
        run(logs, out, table_format, InProcess(fail_after=2))
    published = {path for path in out.glob("records/**/*.parquet") if "_delta_log" not in path.parts}
    assert published
    grow(logs)
    run(logs, out, table_format)
    run(logs, plain, None)
    assert_equal(out, plain, table_format)
    named = {out / name for name in Ledger(open_output(str(out))).named_files("records")[0]}
    assert set(out.glob("records/**/*.parquet")) == named


def test_later_columns_come_with_a_later_run(
    logs: Path, tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    older = {
        name: tuple(column for column in table if column.name not in ("latency_ms", "path"))
        for name, table in columns.TABLES.items()
    }
    with pytest.MonkeyPatch.context() as patch:
        for name in ("frames", "files"):
            patch.setitem(columns.TABLES, name, older[name])
        run(logs, out, table_format, None, CAPTURE, tables=["frames"])
        assert "latency_ms" not in log_of(out, "frames", table_format).column_names
    monkeypatch.setattr("coordwire.tables.pipeline.units.ROWS_FORMAT", "later")  # all units are read again
    run(logs, out, table_format, None, CAPTURE, tables=["frames"])
    run(logs, plain, None, None, CAPTURE, tables=["frames"])
    assert rows(log_of(out, "frames", table_format)) == parquet_rows(plain, "frames")


def test_a_table_has_the_columns_that_are_written(
    logs: Path, tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that has further columns, as earlier ones had, is continued."""
    out = tmp_path / "out"
    on_request = {column.name for column in columns.RECORDS if column.on_request}
    run(logs, out, table_format, tables=["records"])
    assert len(on_request) == 6
    assert not on_request.intersection(log_of(out, "records", table_format).column_names)
    earlier = tmp_path / "earlier"
    with monkeypatch.context() as patch:
        patch.setattr(columns, "default_columns", lambda names: names)
        run(logs, earlier, table_format, tables=["records"])
    before = log_of(earlier, "records", table_format)
    assert on_request <= set(before.column_names)
    partition(logs, "orders", 7, segment(random.Random(7), 8))
    run(logs, earlier, table_format, tables=["records"])
    run(logs, out, table_format, tables=["records"])
    after = log_of(earlier, "records", table_format)
    assert after.num_rows > before.num_rows
    assert rows(after) == rows(log_of(out, "records", table_format))


def test_another_type_is_refused(logs: Path, tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    with pytest.MonkeyPatch.context() as patch:
        other = [
            column._replace(type="string") if column.name == "size" else column for column in columns.FRAMES
        ]
        patch.setitem(columns.TABLES, "frames", tuple(other))
        patch.setattr(job, "plan", lambda *_: [])
        run(logs, out, table_format, tables=["frames"])
    with pytest.raises(CoordwireError, match=r"frames: size is .*string.*, expected .*choose another --out"):
        run(logs, out, table_format, None, CAPTURE, tables=["frames"])


def test_another_format_is_refused(logs: Path, tmp_path: Path, table_format: str) -> None:
    run(logs, tmp_path / "out", table_format, tables=["files"])
    for other in {"parquet", *LOGGED} - {table_format}:
        with pytest.raises(CoordwireError, match=f"are in the format {table_format}, and {other} was asked"):
            run(logs, tmp_path / "out", other)
    run(logs, tmp_path / "plain", None, tables=["files"])
    with pytest.raises(CoordwireError, match=f"in the format parquet, and {table_format} was asked"):
        run(logs, tmp_path / "plain", table_format)


def test_a_table_of_others_is_refused(logs: Path, tmp_path: Path, table_format: str) -> None:
    run(logs, tmp_path / "out", table_format, tables=["files"])
    run(logs, tmp_path / "other", table_format, tables=["files"])
    shutil.rmtree(tmp_path / "out" / "files")
    shutil.copytree(tmp_path / "other" / "files", tmp_path / "out" / "files")
    with pytest.raises(CoordwireError, match="not written with this folder's manifest"):
        run(logs, tmp_path / "out", table_format)


def test_an_older_manifest_is_refused(logs: Path, tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    run(logs, out, table_format)
    old = (out / "manifest.json").read_bytes()
    grow(logs)
    run(logs, out, table_format)
    (out / "manifest.json").write_bytes(old)
    with pytest.raises(CoordwireError, match="has commit 2 of this pipeline, and the manifest knows 1"):
        run(logs, out, table_format)


def test_two_commits_of_one_number_conflict(logs: Path, tmp_path: Path, table_format: str) -> None:
    """As two runs would in a store, where a lock may be lost."""
    from coordwire.tables.storage.manifest_file import load

    out = tmp_path / "out"
    run(logs, out, table_format)
    actual = load(open_output(str(out)))
    assert actual is not None
    first, second = (
        open_table(table_format, open_output(str(out)), "records", actual.log.table_id) for _ in range(2)
    )
    assert first.committed() == second.committed() == 1
    missing = first.files()[:1]
    first.commit(2, {}, missing)
    with pytest.raises(Conflict):
        second.commit(2, {}, missing)
    assert second.committed() == 2
    assert len(second.files()) == 2


def test_a_conflict_with_another_writer_is_tried_again(
    logs: Path, tmp_path: Path, table_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    run(logs, out, table_format)
    grow(logs)
    meet = iter([True, False])

    def opened(*args: Any) -> Any:
        table = open_table(*args)
        commit = table.commit

        def meeting(number: int, *changes: Any) -> None:
            if next(meet, False):
                touch(out / "records", table_format)
            commit(number, *changes)

        return SimpleNamespace(committed=table.committed, files=table.files, commit=meeting)

    monkeypatch.setattr(table_commits, "open_table", opened)
    run(logs, out, table_format)
    run(logs, plain, None)
    assert_equal(out, plain, table_format)


def touch(place: Path, table_format: str) -> None:
    """A commit by another writer."""
    if table_format == "delta":
        from deltalake import DeltaTable

        DeltaTable(place).alter.set_table_properties({"delta.appendOnly": "false"})
        return
    newest = place / "metadata" / "v1.metadata.json"
    later = json.loads(newest.read_text()) | {"last-updated-ms": 1}
    later["properties"]["note"] = "another writer's"
    (place / "metadata" / "v2.metadata.json").write_text(json.dumps(later))
    (place / "metadata" / "version-hint.text").write_text("2")


def compact(place: Path, table_format: str) -> None:
    """All of a table's rows in new files, as an engine's compaction leaves them."""
    if table_format == "delta":
        from deltalake import DeltaTable

        DeltaTable(place).optimize.compact()
        return
    from coordwire.tables.formats.iceberg_table import PathCatalog

    table = PathCatalog(open_output(str(place.parent)), lambda _: None).find_table(place.name)
    assert table is not None
    table.overwrite(table.scan().to_arrow())


def test_rows_are_replaced_in_compacted_files(logs: Path, tmp_path: Path, table_format: str) -> None:
    out, plain = tmp_path / "out", tmp_path / "plain"
    run(logs, out, table_format)
    before = Ledger(open_output(str(out))).named_files("records")[0]
    for name in ("records", "batches", "files"):
        compact(out / name, table_format)
    assert not set(before) & set(Ledger(open_output(str(out))).named_files("records")[0])
    rerun = run(logs, out, None)
    assert rerun.reused == rerun.units
    grow(logs)
    run(logs, out, None)
    run(logs, plain, None)
    assert_equal(out, plain, table_format)
    grow(logs)
    run(logs, out, None)
    run(logs, plain, None)
    assert_equal(out, plain, table_format)


def test_links_below_the_folder_are_not_followed(logs: Path, tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    run(logs, out, table_format)
    log = {"delta": "_delta_log", "iceberg": "metadata"}[table_format]
    (out / "records" / log).rename(tmp_path / "elsewhere")
    (out / "records" / log).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CoordwireError, match="symbolic link"):
        run(logs, out, table_format)


def test_the_example_of_the_page() -> None:
    pytest.importorskip("deltalake", reason="deltalake isn't installed: pip install 'coordwire[delta]'")
    page = Path(__file__).parents[2] / "docs/how-to/table-formats.md"
    blocks = re.findall(r"^```py\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "LocalEngine" in block)
    exec(compile(code, str(page), "exec"), {})


def test_an_unknown_format() -> None:
    with pytest.raises(
        CoordwireError, match="no such format of tables: hudi; there are parquet, delta, iceb"
    ):
        check_format("hudi")


@pytest.mark.parametrize("name", LOGGED)
def test_a_missing_package_is_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr("coordwire.tables.formats.version", missing)
    with pytest.raises(CoordwireError, match=rf"need the package \w+, .* pip install 'coordwire\[{name}\]'"):
        check_format(name)
    monkeypatch.setattr("coordwire.tables.formats.version", lambda _: "0.9.1rc2")
    with pytest.raises(CoordwireError, match=r"or newer, and 0\.9\.1rc2 is installed"):
        check_format(name)


def test_a_manifest_that_was_tampered_with(logs: Path, tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    run(logs, out, table_format, tables=["files"])
    valid = json.loads((out / "manifest.json").read_text())
    damaged: list[Any] = [
        7, {}, valid["log"] | {"table_id": "../x"}, valid["log"] | {"commit": "1"},
        valid["log"] | {"retired": ["../../etc/passwd"]}, valid["log"] | {"more": 1},
    ]  # fmt: skip
    for log in damaged:
        (out / "manifest.json").write_text(json.dumps(valid | {"log": log}))
        with pytest.raises(CoordwireError, match=r"manifest\.json is not as this pipeline writes it"):
            run(logs, out, None)


def test_a_place_that_iceberg_cannot_name() -> None:
    pytest.importorskip("pyiceberg", reason="pyiceberg isn't installed: pip install 'coordwire[iceberg]'")
    with pytest.raises(CoordwireError, match="Iceberg's readers take # and \\? in a path"):
        check_format("iceberg", "/data/out#1?")


def test_a_commit_at_the_same_moment_is_made_on_top_of_the_others(logs: Path, tmp_path: Path) -> None:
    """Another writer has the version that this one was about to create, once it has read the table."""
    pytest.importorskip("pyiceberg", reason="pyiceberg isn't installed: pip install 'coordwire[iceberg]'")
    from coordwire.tables.formats.iceberg_table import PathCatalog

    out, meet = tmp_path / "out", iter([True])
    run(logs, out, "iceberg")
    catalog = PathCatalog(
        open_output(str(out)), lambda _: touch(out / "records", "iceberg") if next(meet, False) else None
    )
    table = catalog.load_table("records")
    tasks = list(table.scan().plan_files())
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as change:
        change.delete_data_file(tasks[0].file)
    newest = catalog.load_table("records")
    assert newest.properties["note"] == "another writer's"
    assert len(list(newest.scan().plan_files())) == len(tasks) - 1
    assert newest.metadata_location.endswith("/v3.metadata.json")


@pytest.mark.parametrize("name", ["100%25", "%2E%2E", "new\nline", "a#b"])
def test_folders_whose_names_readers_of_tables_change(
    logs: Path, tmp_path: Path, table_format: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are refused before anything is written, also where only the current folder's name is one."""
    refused = "#%" if table_format == "iceberg" else "%\n"
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    if set(name).isdisjoint(refused):
        for _ in range(2):
            assert run(logs, Path("out"), table_format).records > 0
        return
    with pytest.raises(CoordwireError, match="in a path for more than a name: choose another --out"):
        run(logs, Path("out"), table_format)
    assert not list(folder.iterdir())
