"""Files that appear whole or not at all, also where the process is ended while it writes them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.files import staged
from coordwire.files.staged import Staged, remove_stale
from coordwire.segments import recover
from tests.segments.build import log, write

DATA = b"".join(log(4)) + b"junk"

BLOCKED = """
import os, sys, time
from coordwire.cli.__main__ import main
from coordwire.files import staged

call, after, named = sys.argv[1], int(sys.argv[2]), sys.argv[3]
whole = getattr(os, call)
calls = 0

def blocked(*arguments, **options):
    global calls
    calls += 1
    if calls > after:
        print("here", flush=True)
        time.sleep(60)
    return whole(*arguments, **options)

setattr(os, call, blocked)
if named == "named":
    staged._UNNAMED = 0
sys.exit(main(sys.argv[4:]))
"""


def end(number: signal.Signals, call: str, after: int, named: str, *arguments: str) -> int:
    """Run a command up to a call of the system, end it there: its status."""
    command = [sys.executable, "-c", BLOCKED, call, str(after), named, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"here\n"
            process.send_signal(number)
            return process.wait(30)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("named", "number", "left"),
    [("unnamed", signal.SIGKILL, 0), ("named", signal.SIGKILL, 3), ("named", signal.SIGTERM, 0)],
)
def test_an_ended_recovery_leaves_nothing_for_ever(
    tmp_path: Path, named: str, number: signal.Signals, left: int
) -> None:
    """Where files without a name can't be had, the next one removes what was left, and nothing else."""
    path, out = write(tmp_path, DATA), tmp_path / "out"
    out.mkdir()
    (out / ".precious.part").write_bytes(b"precious")
    status = end(number, "fsync", 2, named, "segment", "recover", "--out", str(out), str(path))
    assert status == (128 + number if number == signal.SIGTERM else -number)
    parts = [each for each in out.iterdir() if each.name != ".precious.part"]
    if named == "unnamed" and not unnamed_files(tmp_path):
        left = 3
    assert len(parts) == left
    (one,) = recover([path], out)
    assert sorted(out.iterdir()) == sorted([*one.files, out / ".precious.part"])
    assert one.log.read_bytes() == DATA[:-4]


def test_a_terminated_recovery_takes_the_names_back(tmp_path: Path) -> None:
    path, out = write(tmp_path, DATA), tmp_path / "out"
    status = end(signal.SIGTERM, "link", 3, "unnamed", "segment", "recover", "--out", str(out), str(path))
    assert status == 128 + signal.SIGTERM
    assert list(out.iterdir()) == []


def test_an_ended_indexing_leaves_nothing_for_ever(tmp_path: Path) -> None:
    path = write(tmp_path, DATA[:-4])
    end(signal.SIGKILL, "fsync", 1, "named", "segment", "index", str(path))
    assert len(list(path.parent.iterdir())) == 3
    end(signal.SIGTERM, "fsync", 1, "named", "segment", "index", str(path))
    assert list(path.parent.iterdir()) == [path]


def unnamed_files(folder: Path) -> bool:
    return staged._unnamed(folder / "x") is not None


def part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What an ended process leaves."""
    monkeypatch.setattr(staged, "_UNNAMED", 0)
    files = Staged(folder)
    with files.new("a.log") as file:
        file.write(b"x")
    path = files.path("a.log")
    os.close(files._parts.pop().descriptor)
    assert path.read_bytes() == b"x"
    return path


def test_only_what_proves_itself_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = part(tmp_path, monkeypatch).name
    others = [
        made.replace(".a.log", ".b.log"), f"{made}x", f"x{made}", ".a.log.part", ".a.log.tmp123.part",
        ".a.log." + "0" * 32 + ".part",
    ]  # fmt: skip
    for name in others:
        (tmp_path / name).write_bytes(b"precious")
    remove_stale(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(others)


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = part(tmp_path, monkeypatch)
    elsewhere = path.rename(tmp_path / "elsewhere")
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    remove_stale(tmp_path)
    assert os.path.lexists(path)
    assert elsewhere.read_bytes() == b"x"


def test_what_is_being_written_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "_UNNAMED", 0)
    with Staged(tmp_path) as files:
        with files.new("a.log") as file:
            file.write(b"x")
        remove_stale(tmp_path)
        assert files.path("a.log").exists()
        (made,) = files.commit()
    assert list(tmp_path.iterdir()) == [made]


def test_a_part_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staged, "_UNNAMED", 0)
    fcntl = pytest.importorskip("fcntl")
    lock, calls = fcntl.flock, []

    def late(descriptor: int, how: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            remove_stale(tmp_path)
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with Staged(tmp_path) as files:
        with files.new("a.log") as file:
            file.write(b"x")
        files.commit()
    assert len(calls) == 3
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"x"]


@pytest.mark.parametrize("unnamed", [True, False])
def test_replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unnamed: bool) -> None:
    if not unnamed:
        monkeypatch.setattr(staged, "_UNNAMED", 0)
    (tmp_path / "a").write_bytes(b"before")
    with Staged(tmp_path) as files:
        for name in ("a", "b"):
            with files.new(name) as file:
                file.write(b"after")
        assert (tmp_path / "a").read_bytes() == b"before"
        assert files.commit(replace=True) == [tmp_path / "a", tmp_path / "b"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"after", "b": b"after"}


def test_no_folder_has_nothing_stale(tmp_path: Path) -> None:
    remove_stale(tmp_path / "none")
    (tmp_path / "file").write_bytes(b"x")
    remove_stale(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_name_that_is_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "_UNNAMED", 0)
    name = "ü" * 127
    with Staged(tmp_path) as files:
        with files.new(name) as file:
            file.write(b"x")
        assert files.commit() == [tmp_path / name]


def test_as_on_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staged, "_UNNAMED", 0)
    monkeypatch.setattr(staged, "_WINDOWS", True)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for replace, content in ((False, b"first"), (True, b"second")):
        with Staged(tmp_path) as files:
            with files.new("a.log") as file:
                file.write(content)
            files.commit(replace=replace)
        assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.log", content)]
    with Staged(tmp_path) as files:
        with files.new("0.log") as file:
            file.write(b"taken back")
        with files.new("a.log") as file:
            file.write(b"never there")
        with pytest.raises(FileExistsError):
            files.commit()
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a.log", b"second")]
    with Staged(tmp_path) as files, files.new("b.log"):
        (part,) = tmp_path.glob(".b.log.*.part")
        remaining = part.read_bytes()
    part.write_bytes(remaining)
    remove_stale(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a.log"]
