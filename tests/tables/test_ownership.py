"""What the pipeline may remove, and where it may write; Spark isn't needed."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.cli.__main__ import main
from coordwire.errors import CoordwireError
from coordwire.tables.options import Options
from coordwire.tables.pipeline import plan
from coordwire.tables.pipeline.ledger import Ledger, check_report, write_report
from coordwire.tables.pipeline.units import Job, UnitFailed
from coordwire.tables.readers.files import find_files
from coordwire.tables.storage.folders import LinkError, LocalFolder, open_output
from coordwire.tables.storage.names import is_data_name
from tests.tables import pipeline_steps
from tests.tables.pipeline_steps import TABLES

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests" / "data" / "captures" / "kpy__tansu__group-range.pcap"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    pipeline_steps.put_segment(tmp_path / "in", "orders", 0, range(5))
    return tmp_path / "in"


@pytest.fixture
def out(tmp_path: Path, logs: Path) -> Path:
    pipeline_steps.run(logs, tmp_path / "out")
    return tmp_path / "out"


def grow(logs: Path) -> None:
    """The units of the run before don't count any more."""
    pipeline_steps.put_segment(logs, "orders", 0, range(7))


def offsets(out: Path) -> list[int]:
    return [offset for _, _, offset in pipeline_steps.record_keys(out)]


# --- folders that aren't ours ---


@pytest.mark.parametrize("name", ["records/thesis.txt", "notes.txt", ".hidden", "files/files.parquet"])
def test_a_folder_without_a_manifest_is_refused(tmp_path: Path, logs: Path, name: str) -> None:
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    before = pipeline_steps.tree(tmp_path)
    with pytest.raises(CoordwireError, match=r"is not empty and has no manifest\.json.*choose another --out"):
        pipeline_steps.run(logs, tmp_path / "out")
    assert pipeline_steps.tree(tmp_path) == before


def test_the_command_line_refuses_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out" / "records").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "lag").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("coordwire.spark.session.session", None)
    assert main(["pipeline", str(CAPTURE), "--out", str(tmp_path / "out")]) == 2
    assert "is not empty and has no manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not a manifest of this pipeline"),
        ('{"name": "my web app", "icons": []}', "is not a manifest of this pipeline"),
        ('{"format": 1, "units": {}}', "is of format 1, expected 9"),
        ("[" * 5000, "is not a manifest of this pipeline"),
        ('{"format": 8, "units": {}, "removing": {}}', "expected made_by"),
        ('{"format": 8, "made_by": "coordwire pipeline", "units": {"u": 1}, "removing": {}}',
         "expected the note of unit 'u'"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_not_ours_is_refused(tmp_path: Path, logs: Path, text: str, reason: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(text)
    before = pipeline_steps.tree(tmp_path)
    with pytest.raises(CoordwireError, match=reason):
        pipeline_steps.run(logs, tmp_path / "out")
    assert pipeline_steps.tree(tmp_path) == before


def test_a_manifest_that_was_lost_is_said(out: Path, logs: Path) -> None:
    """Going on would leave every row twice: nothing says which of the files are ours."""
    (out / "manifest.json").unlink()
    before = pipeline_steps.tree(out)
    with pytest.raises(CoordwireError, match=r"has no manifest\.json"):
        pipeline_steps.run(logs, out)
    assert pipeline_steps.tree(out) == before


@pytest.mark.parametrize(
    "name",
    [
        "../thesis.txt", "/etc/passwd", "records/../../thesis.txt", "records/thesis.txt", "thesis.txt",
        "records/part-00000-c000.snappy.parquet", "manifest.json", "",
        f"records/date=2023-11-14/../{'0' * 24}-{'0' * 32}-0000.parquet",
        f"records/{'0' * 24}-{'0' * 32}-0000.parquet\n", f"other/{'0' * 24}-{'0' * 32}-0000.parquet",
        f"records//{'0' * 24}-{'0' * 32}-0000.parquet", f"records/x/{'0' * 24}-{'0' * 32}-0000.parquet",
        f"records/topic-..~/{'0' * 24}-{'0' * 32}-0000.parquet",
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["units", "removing", "note", "commit"])
def test_a_hostile_manifest_removes_nothing(
    tmp_path: Path, out: Path, logs: Path, name: str, where: str
) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    (out / "thesis.txt").write_text("mine")
    (out / "records" / "thesis.txt").write_text("mine")
    (out / "records" / "part-00000-c000.snappy.parquet").write_text("mine")
    manifest = json.loads((out / "manifest.json").read_text())
    proof = {name: [4, 2882377846]}  # of "mine"
    unit, note = next(iter(manifest["units"].items()))
    if where == "units":
        note["proofs"] |= proof
        note["files"] = sorted(note["proofs"])
    elif where == "note":
        other = note | {"unit": "f" * 24, "proofs": proof, "files": [name]}
        (out / "_manifest" / f"{'f' * 24}.json").write_text(json.dumps([other]))
    elif where == "commit":
        place = out / "_manifest" / "attempts" / f"{'a' * 32}-{unit}-{'b' * 32}"
        place.mkdir()
        (place / "commit.json").write_text(json.dumps({"files": proof}))
    else:
        manifest[where] |= proof
    (out / "manifest.json").write_text(json.dumps(manifest))
    grow(logs)
    before = {path: data for path, data in pipeline_steps.tree(tmp_path).items() if data == b"mine"}
    if where == "commit":
        pipeline_steps.run(logs, out)
    else:
        with pytest.raises(CoordwireError, match="which is not a file of the pipeline's"):
            pipeline_steps.run(logs, out)
    assert {path: data for path, data in pipeline_steps.tree(tmp_path).items() if data == b"mine"} == before
    assert len(before) == 4


def test_a_manifest_copied_from_elsewhere(tmp_path: Path, out: Path, logs: Path) -> None:
    """It proves nothing about the files that are there, even of the same names."""
    other = tmp_path / "other"
    shutil.copytree(out, other)
    for path in other.rglob("*.parquet"):
        path.write_bytes(b"mine" + bytes(path.stat().st_size - 4))
    grow(logs)
    before = {path: data for path, data in pipeline_steps.tree(other).items() if path.endswith(".parquet")}
    pipeline_steps.run(logs, other)
    after = pipeline_steps.tree(other)
    assert {path: after[path] for path in before} == before


def test_a_copy_of_the_whole_folder_goes_on(tmp_path: Path, out: Path, logs: Path) -> None:
    """Its files have other stamps and the same content: they are known by that."""
    other = tmp_path / "other"
    shutil.copytree(out, other)
    assert pipeline_steps.run(logs, other).reused == 1
    old = pipeline_steps.parquet_files(other)
    grow(logs)
    pipeline_steps.run(logs, other)
    assert offsets(other) == list(range(7))
    assert not old & pipeline_steps.parquet_files(other)


# --- files beside ours ---


def test_users_files_beside_ours_stay(tmp_path: Path, out: Path, logs: Path) -> None:
    [own] = (out / "records" / "date=2023-11-14" / "topic-orders").glob("*.parquet")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "keep.txt").write_text("mine")
    user_paths = [
        out / "thesis.txt", out / "records" / "thesis.txt", out / "records" / "part-0000.parquet",
        own.parent / "part-0000.parquet", own.parent / f"{own.stem}.copy.parquet",
        own.parent / f"_{own.name}.writing", out / "_manifest" / "notes.txt", out / "_manifest" / "x.json",
        out / "_manifest" / "attempts" / "mine" / "x.part", out / "records" / own.name,
        out / "records" / "date=2024-01-01" / "topic-orders" / own.name, out / "files" / "files.parquet",
        own.parent / f"{'0' * 24}-{'0' * 32}-0000.parquet", out / "_manifest" / "writing" / "mine.part",
    ]  # fmt: skip
    for path in user_paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(own.read_bytes())
    links = [
        out / "links",
        out / "records" / "link",
        own.parent / "link.parquet",
        out / "_manifest" / "link",
    ]
    for path in links:
        path.symlink_to(tmp_path / "elsewhere")
    grow(logs)
    data = own.read_bytes()
    summary = pipeline_steps.run(logs, out)
    assert not own.exists()
    assert all(path.read_bytes() == data for path in user_paths)
    assert all(path.is_symlink() for path in links)
    assert (tmp_path / "elsewhere" / "keep.txt").read_text() == "mine"
    assert offsets(out) == list(range(7))
    assert (
        "files in the tables' folders that this pipeline did not write were left alone" in summary.notices[0]
    )


@pytest.mark.parametrize("how", ["appended", "same size", "same size and time", "a link", "a folder"])
def test_a_file_of_ours_that_became_the_users(tmp_path: Path, out: Path, logs: Path, how: str) -> None:
    [own] = (out / "records").rglob("*.parquet")
    data, times = own.read_bytes(), own.stat()
    if how == "appended":
        own.write_bytes(data + b"mine")
    elif how == "a link":
        (tmp_path / "mine").write_bytes(data)
        own.unlink()
        own.symlink_to(tmp_path / "mine")
    elif how == "a folder":
        own.unlink()
        own.mkdir()
        (own / "mine").write_bytes(data)
    else:
        own.write_bytes(b"mine" + data[4:])
        if how == "same size and time":
            os.utime(own, ns=(times.st_atime_ns, times.st_mtime_ns))
    before = {
        path: data
        for path, data in pipeline_steps.tree(tmp_path).items()
        if path.startswith(str(own)) or "mine" in path
    }
    grow(logs)
    pipeline_steps.run(logs, out)
    after = pipeline_steps.tree(tmp_path)
    assert {path: after[path] for path in before} == before
    assert offsets(out) == list(range(7))


def test_a_file_that_is_gone_is_written_again(tmp_path: Path, logs: Path) -> None:
    out, tables = tmp_path / "out", ("files", "batches", "records")
    pipeline_steps.run(logs, out, tables=tables)
    [own] = (out / "records").rglob("*.parquet")
    own.unlink()
    assert pipeline_steps.run(logs, out, tables=tables).reused == 0
    assert offsets(out) == list(range(5))
    assert len(list((out / "batches").rglob("*.parquet"))) == 1


def test_units_of_other_inputs_stay(tmp_path: Path, out: Path) -> None:
    pipeline_steps.put_segment(tmp_path / "more", "pay", 1, range(3))
    pipeline_steps.run(tmp_path / "more", out)
    assert pipeline_steps.record_keys(out) == [("orders", 0, n) for n in range(5)] + [
        ("pay", 1, n) for n in range(3)
    ]


# --- links ---


def test_out_may_be_a_link_itself(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "real")
    pipeline_steps.run(logs, tmp_path / "out")
    assert offsets(tmp_path / "real") == list(range(5))


@pytest.mark.parametrize("link", ["records", "records/date=2023-11-14", "_manifest", "_manifest/runs",
                                  "_manifest/attempts", "records/date=2023-11-14/topic-orders"])  # fmt: skip
def test_a_link_below_is_refused_and_not_followed(tmp_path: Path, out: Path, logs: Path, link: str) -> None:
    shutil.move(out / link, tmp_path / "elsewhere")
    (out / link).symlink_to(tmp_path / "elsewhere")
    grow(logs)
    before = pipeline_steps.tree(tmp_path / "elsewhere")
    with pytest.raises(CoordwireError, match=r"is a symbolic link or a file, expected a folder.*remove it"):
        pipeline_steps.run(logs, out)
    assert pipeline_steps.tree(tmp_path / "elsewhere") == before
    assert (out / link).is_symlink()


@pytest.mark.parametrize("name", ["manifest.json", "report.html", "_manifest/lock"])
def test_a_file_of_ours_that_is_a_link(tmp_path: Path, out: Path, logs: Path, name: str) -> None:
    target = tmp_path / "target"
    if (out / name).exists():
        shutil.move(out / name, target)
    else:
        target.write_text("mine")
    (out / name).symlink_to(target)
    before = target.read_bytes()
    with pytest.raises((CoordwireError, OSError)):  # noqa: PT012 each looks at files of its own
        pipeline_steps.run(logs, out)
        check_report(open_output(str(out)))
        write_report(open_output(str(out)), b"x")
    assert target.read_bytes() == before
    assert (out / name).is_symlink()


def test_a_folder_that_becomes_a_link_at_any_step(tmp_path: Path, logs: Path) -> None:
    """Whenever it happens, nothing is written or removed after the link."""
    files = {file.path: file for file in find_files([str(logs)])}
    [unit] = plan(files, Options(), TABLES)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "date=2023-11-14" / "topic-orders").mkdir(parents=True)
    number, ended = 0, False
    causes: list[BaseException | None] = []
    while not ended:
        number += 1
        out = tmp_path / f"out{number}"

        def at(count: int, number: int = number, out: Path = out) -> None:
            if count == number:
                out.mkdir(exist_ok=True)
                if (out / "records").exists():
                    (out / "records").rename(out / "records-before")
                (out / "records").symlink_to(elsewhere)

        with pipeline_steps.steps(at) as steps:
            try:
                pipeline_steps.run_unit(unit, Job(str(out), Options(), TABLES))
            except UnitFailed as error:
                causes.append(error.__cause__)
        assert pipeline_steps.tree(elsewhere) == {}, number
        ended = steps.count < number
    assert number > 20
    assert causes
    assert all(isinstance(error, (LinkError, OSError)) for error in causes)


def test_names_that_would_leave_the_folder(tmp_path: Path) -> None:
    folder = LocalFolder(str(tmp_path / "out"))
    for name in ("../x", "/x", "a/../../x", "", "a//x", "./x", "a/.", "x\0"):
        with pytest.raises(CoordwireError, match="expected a name below the output folder"):
            folder.write(name, b"")
    assert pipeline_steps.tree(tmp_path) == {}


# --- the report ---


def test_a_report_that_is_not_ours_stays(tmp_path: Path, out: Path, logs: Path) -> None:
    output = open_output(str(out))
    write_report(output, b"first")
    write_report(output, b"second")
    assert (out / "report.html").read_bytes().endswith(b" -->\nsecond")
    (out / "report.html").write_bytes(b"mine!!")
    for call in (check_report, lambda output: write_report(output, b"third")):
        with pytest.raises(
            CoordwireError, match=r"report\.html is not as this pipeline wrote it: move it away"
        ):
            call(output)
    assert (out / "report.html").read_bytes() == b"mine!!"


def test_a_report_killed_at_every_step(tmp_path: Path) -> None:
    number, ended = 0, False
    while not ended:
        number += 1
        output = open_output(str(tmp_path / f"out{number}"))
        write_report(output, b"first")
        with pipeline_steps.steps(pipeline_steps.crash_at(number)) as steps, suppress(pipeline_steps.Crash):
            write_report(output, b"second")
        write_report(output, b"third")
        assert (output.read("report.html") or b"").endswith(b" -->\nthird")
        ended = steps.count < number


# --- inputs and outputs in one another ---


def test_out_inside_of_the_input(logs: Path) -> None:
    first = pipeline_steps.run(logs, logs / "tables")
    second = pipeline_steps.run(logs, logs / "tables")
    assert (first.files, second.files, second.reused) == (1, 1, 1)
    assert [row["input_file"] for row in pipeline_steps.table_rows(logs / "tables", "files")] == [
        str(logs / "orders-0" / f"{0:020}.log")
    ]


def test_the_input_inside_of_out(tmp_path: Path, out: Path, logs: Path) -> None:
    before = pipeline_steps.tree(tmp_path)
    with pytest.raises(CoordwireError, match="the output folder"):
        pipeline_steps.run(logs, logs)
    with pytest.raises(CoordwireError, match="is not empty"):
        pipeline_steps.run(tmp_path / "in", tmp_path / "in" / "orders-0")
    assert pipeline_steps.tree(tmp_path) == before
    pipeline_steps.put_segment(out / "caps", "pay", 0, range(2))
    with pytest.raises(CoordwireError, match="is inside of"):
        pipeline_steps.run(out / "caps", out)
    with pytest.raises(CoordwireError, match="is inside of"):
        pipeline_steps.run(f"{out}/caps/*/*.log", out)


# --- stores ---


def test_a_store_that_is_no_disk(logs: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec isn't installed")
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    out = "memory://bucket/tables"
    assert pipeline_steps.run(logs, out).records == 5
    memory.pipe("/bucket/tables/records/mine.parquet", b"mine")
    grow(logs)
    summary = pipeline_steps.run(logs, out)
    assert summary.records == 7
    assert "records/mine.parquet" in summary.notices[0]
    assert memory.cat("/bucket/tables/records/mine.parquet") == b"mine"
    actual = [path for path in memory.find("/bucket/tables") if "/records/" in path]
    assert len(actual) == 2
    assert not [path for path in memory.find("/bucket/tables") if path.endswith((".part", ".lock"))]
    memory.store.clear()
    memory.pipe("/bucket/tables/records/mine.parquet", b"mine")
    with pytest.raises(CoordwireError, match="is not empty"):
        pipeline_steps.run(logs, out)


def test_the_local_disk_by_other_names(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec isn't installed")
    for uri in (f"file://{tmp_path}/out", f"local://{tmp_path}/out"):
        output = open_output(uri)
        assert isinstance(output, LocalFolder)
        assert output.root == f"{tmp_path}/out"


def test_sweep_removes_only_what_is_proven(tmp_path: Path, out: Path, logs: Path) -> None:
    output = open_output(str(out))
    notes: dict[str, Any] = Ledger(output).complete_units()
    [note] = (note for note in notes.values() if note["kind"] == "segment")
    files_notes = {unit: note for unit, note in notes.items() if note["kind"] == "files"}
    assert all(is_data_name(name) for name in note["files"])
    assert Ledger(output).remove_orphans(notes, set(), ["elsewhere"]) == notes
    assert all((out / name).exists() for name in note["files"])
    assert Ledger(output).remove_orphans(notes, set(), note["paths"]) == files_notes
    assert not any((out / name).exists() for name in note["files"])
