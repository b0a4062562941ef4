"""Files that can't be read as they should: rows of quarantine, whatever they are; Spark isn't needed."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.tables.options import Options
from coordwire.tables.pipeline import units
from coordwire.tables.readers.files import find_files, open_bytes, open_stream
from coordwire.tables.readers.segment_rows import read_records
from coordwire.tables.readers.sources import SOURCES, plan, plan_files, read, reason_of
from tests.tables import pipeline_steps

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests" / "data" / "captures" / "kpy__tansu__group-range.pcap"
LOG = f"{0:020}.log"
ALL = (
    "files",
    "batches",
    "records",
    "frames",
    "errors",
    "offset_commits",
    "groups",
    "lag",
    "traffic",
    "quarantine",
)


@pytest.fixture
def unusual_files(tmp_path: Path) -> Path:
    """A folder of what isn't a file that can be read, beside some that can."""
    folder = tmp_path / "in"
    pipeline_steps.put_segment(folder, "orders", 0, range(5))
    for topic in (
        "fifo",
        "gone",
        "socket",
        "folder",
        "loop",
        "short",
        "empty",
        "noise",
        "__consumer_offsets",
    ):
        (folder / f"{topic}-0").mkdir()
    os.mkfifo(folder / "fifo-0" / LOG)
    os.mkfifo(folder / "__consumer_offsets-0" / LOG)
    os.mkfifo(folder / "orders-0" / f"{0:020}.index")
    os.mkfifo(folder / "pipe.pcap")
    os.mkfifo(folder / "pipe.log")
    (folder / "gone-0" / LOG).symlink_to("nowhere")
    (folder / "gone.pcap").symlink_to("nowhere")
    (folder / "loop-0" / LOG).symlink_to(LOG)
    (folder / "device.pcap").symlink_to("/dev/zero")
    (folder / "device.log").symlink_to("/dev/zero")
    (folder / "folder-0" / LOG).mkdir()
    (folder / "folder.pcap").mkdir()
    (folder / "short-0" / LOG).write_bytes(pipeline_steps.segment(range(3))[:-5])
    (folder / "empty-0" / LOG).touch()
    (folder / "empty.pcap").touch()
    (folder / "noise-0" / LOG).write_bytes(os.urandom(5000))
    (folder / "noise.pcap").write_bytes(os.urandom(5000))
    (folder / "short.pcap").write_bytes(CAPTURE.read_bytes()[:1000])
    with socket.socket(socket.AF_UNIX) as server:
        current = os.getcwd()
        os.chdir(folder / "socket-0")
        server.bind(LOG)
        os.chdir(current)
    return folder


def reasons(folder: Path) -> dict[str, str]:
    options, source = Options(paths=(str(folder),)), SOURCES["kafka-quarantine"]
    rows = [
        row
        for group in plan(source, options)
        for batch in read(source, group, options, ["input_file", "reason"])
        for row in batch.to_pylist()
    ]
    return {os.path.relpath(row["input_file"], folder): row["reason"] for row in rows}


def test_the_data_sources(unusual_files: Path) -> None:
    actual = reasons(unusual_files)
    regular = "expected a regular file"
    for name, reason in {
        f"fifo-0/{LOG}": f"it is a FIFO, {regular}", "pipe.pcap": f"it is a FIFO, {regular}",
        f"socket-0/{LOG}": f"it is a socket, {regular}", "device.pcap": f"it is a device, {regular}",
        f"gone-0/{LOG}": "No such file or directory", "gone.pcap": "No such file or directory",
        f"loop-0/{LOG}": "Too many levels of symbolic links",
        f"short-0/{LOG}": "the file ends inside a batch",
    }.items():  # fmt: skip
        assert actual[name] == reason
    assert f"noise-0/{LOG}" in actual
    assert "noise.pcap" in actual
    options = Options(paths=(str(unusual_files),), topics=("orders",))
    for name, column in (("kafka-segment", "log_offset"), ("kafka-segment-batches", "base_offset")):
        source = SOURCES[name]
        rows = [row for group in plan(source, options)
                for batch in read(source, group, options, [column]) for row in batch.to_pylist()]  # fmt: skip
        assert [row[column] for row in rows] == list(range(5))
    for name in ("kafka-capture", "kafka-offsets"):
        options = Options(paths=(str(unusual_files),))
        columns = [SOURCES[name].columns[0].name]
        for group in plan(SOURCES[name], options):
            list(read(SOURCES[name], group, options, columns))


def test_the_pipeline(unusual_files: Path, tmp_path: Path) -> None:
    summary = pipeline_steps.run(unusual_files, tmp_path / "out", tables=ALL)
    assert summary.records == 5 + 2
    damaged = {row["input_file"] for row in pipeline_steps.table_rows(tmp_path / "out", "quarantine")}
    assert {
        str(unusual_files / name) for name in ("pipe.pcap", "gone.pcap", "device.pcap", f"fifo-0/{LOG}")
    } <= damaged
    paths = {row["input_file"] for row in pipeline_steps.table_rows(tmp_path / "out", "files")}
    assert str(unusual_files / "pipe.log") in paths
    assert str(unusual_files / "device.log") in paths


def test_named_by_the_user(unusual_files: Path) -> None:
    for name in ("pipe.pcap", "pipe.log", "device.log", f"gone-0/{LOG}"):
        [file] = find_files([str(unusual_files / name)])
        assert file.trouble
        assert file.kind() in ("capture", "segment")
    [file] = find_files(["/dev/zero"])
    assert (file.kind(), file.trouble) == ("capture", "it is a device, expected a regular file")


def test_what_became_a_fifo_does_not_block(unusual_files: Path) -> None:
    for path in (unusual_files / "pipe.pcap", unusual_files / "device.pcap"):
        for opened in (open_stream, open_bytes):
            with pytest.raises(OSError, match="expected a regular file"):
                opened(str(path))


@pytest.mark.parametrize("how", ["removed", "a FIFO", "emptied", "a folder", "without permission"])
def test_files_that_change_after_they_were_listed(tmp_path: Path, how: str) -> None:
    log = pipeline_steps.put_segment(tmp_path / "in", "orders", 0, range(5))
    commits = pipeline_steps.put_segment(tmp_path / "in", "__consumer_offsets", 0, range(5))
    capture = Path(shutil.copy(CAPTURE, tmp_path / "in" / "x.pcap"))
    paths = (log, commits, capture)
    if how == "without permission" and os.geteuid() == 0:
        pytest.skip("root may read everything")

    def work(unit: Any, *arguments: Any) -> None:
        for path in paths:
            if how == "without permission":
                path.chmod(0)
                continue
            path.unlink(missing_ok=True) if not path.is_dir() else path.rmdir()
            if how == "a FIFO":
                os.mkfifo(path)
            elif how == "emptied":
                path.touch()
            elif how == "a folder":
                path.mkdir()
        pipeline_steps.run_unit(unit, *arguments)

    summary = pipeline_steps.run(tmp_path / "in", tmp_path / "out", work=work, tables=ALL)
    assert summary.records == summary.frames == 0
    damaged = {row["input_file"] for row in pipeline_steps.table_rows(tmp_path / "out", "quarantine")}
    assert how == "emptied" or damaged == set(map(str, paths))


def test_a_reader_that_fails_ends_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline_steps.put_segment(tmp_path / "in", "bad", 0, range(5))
    pipeline_steps.put_segment(tmp_path / "in", "good", 0, range(5))

    def broken(part: Any, *arguments: Any) -> Iterator[Any]:
        if part.topic == "bad":
            raise ValueError("not foreseen")
        return read_records(part, *arguments)

    monkeypatch.setattr(units, "read_records", broken)
    assert pipeline_steps.run(tmp_path / "in", tmp_path / "out", tables=ALL).records == 5
    [row] = pipeline_steps.table_rows(tmp_path / "out", "quarantine")
    assert row["reason"] == "the reader failed: ValueError: not foreseen"
    assert row["end_position"] - row["position"] == (tmp_path / "in" / "bad-0" / LOG).stat().st_size
    with pytest.raises(units.UnitFailed, match=rf"bad-0/{LOG}: ValueError: not foreseen"):
        pipeline_steps.run(tmp_path / "in", tmp_path / "strict", tables=ALL, options=Options(mode="failfast"))
    assert reason_of(OSError(5, "Input/output error")) == "Input/output error"


def test_a_lack_of_memory_fails_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is sound is not quarantine for want of memory: Spark tries the task again."""
    pipeline_steps.put_segment(tmp_path / "in", "large", 0, range(5))

    def starved(*arguments: Any) -> Iterator[Any]:
        raise MemoryError

    monkeypatch.setattr(units, "read_records", starved)
    with pytest.raises(units.UnitFailed, match=rf"large-0/{LOG}: MemoryError"):
        pipeline_steps.run(tmp_path / "in", tmp_path / "out", tables=ALL)


def test_rotated_captures_with_a_file_missing(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    data = CAPTURE.read_bytes()
    for number in range(1, 4):
        (folder / f"x.pcap{number}").write_bytes(data)
    (folder / "x.pcap").write_bytes(data)
    (folder / "x.pcap2").unlink()
    (folder / "x.pcap2").symlink_to("nowhere")
    options, source = Options(paths=(str(folder),)), SOURCES["kafka-capture"]

    def frames() -> int:
        return sum(batch.num_rows for group in groups for batch in read(source, group, options, ["frame"]))

    groups = plan(source, options)
    parts = [part for group in groups for part in group]
    assert [(Path(part.path).name, len(part.further_paths)) for part in parts] == [
        ("x.pcap", 2),
        ("x.pcap2", 0),
    ]
    first = frames()
    assert first > 0
    files = [file for file in find_files([str(folder)]) if not file.trouble]
    groups = plan_files(source, files, options)
    (folder / "x.pcap1").unlink()
    assert frames() == first  # the same packets again are retransmissions
    quarantine = SOURCES["kafka-quarantine"]
    [damaged] = [row for group in groups for batch in read(quarantine, group, options, ["input_file"])
                 for row in batch.to_pylist()]  # fmt: skip
    assert damaged["input_file"] == str(folder / "x.pcap1")


def test_thousands_of_rotated_files_are_opened_one_at_a_time(tmp_path: Path) -> None:
    import resource

    folder = tmp_path / "in"
    folder.mkdir()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    data = CAPTURE.read_bytes()
    (folder / "x.pcap").write_bytes(data)
    for number in range(1, 300):
        (folder / f"x.pcap{number}").write_bytes(data[:24])
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, hard))
    try:
        options, source = Options(paths=(str(folder),)), SOURCES["kafka-capture"]
        [group] = plan(source, options)
        assert sum(batch.num_rows for batch in read(source, group, options, ["frame"])) > 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
