"""Progress of commands: on standard error where that is a terminal, erased in the end, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from coordwire.cli import progress
from tests.broker_sample import broker_sample

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "kpy__tansu__group-range.pcap"
CHILD = """
import sys
from coordwire.cli import progress
progress.DELAY = progress.INTERVAL = 0
from coordwire.cli.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""A command that says at once, and each time, how far it is."""


class Ended(NamedTuple):
    """How a command ended, and what its standard error and, if it was a terminal, its output got."""

    status: int
    terminal: str
    out: str
    err: str


def run(*arguments: object, out: bool = False, err: bool = True) -> Ended:
    """Run a command. out, err: whether standard output and error are a terminal, the same one."""
    main, side = pty.openpty()
    with tempfile.TemporaryFile() as written, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, *map(str, arguments)],
            stdout=side if out else written,
            stderr=side if err else errors,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "COLUMNS": "80", "TERM": "xterm"},
        )
        os.close(side)
        parts: list[bytes] = []
        while part := _part(main):
            parts.append(part)
        status = process.wait(60)
        os.close(main)
        written.seek(0)
        errors.seek(0)
        texts = [text.decode() for text in (b"".join(parts), written.read(), errors.read())]
    return Ended(status, *texts)


def _part(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other side is closed
        return b""


def commands(folder: Path) -> dict[str, list[object]]:
    """Commands by name; each takes a while where its input is large."""
    data = broker_sample() / "data"
    log = next(data.glob("several.segments-0/*.log"))
    return {
        "timeline": ["timeline", CAPTURE],
        "decode": ["decode", "--format", "json", CAPTURE],
        "decode --out": ["decode", "--format", "csv", "--out", folder / "tables", CAPTURE],
        "segment dump": ["segment", "dump", "--format", "json", log],
        "segment verify": ["segment", "verify", log],
        "segment recover": ["segment", "recover", "--out", folder / "copy", log],
        "segment index": ["segment", "index", "--out", folder / "indexes", log],
        "offsets": ["offsets", data],
        "offsets --latest": ["offsets", "--latest", data],
        "simulate": ["simulate", "draft-3", "--members", "20"],
        "simulate --seeds": ["simulate", "classic", "--seeds", "3"],
    }


NAMES = (
    "timeline", "decode", "decode --out", "segment dump", "segment verify", "segment recover",
    "segment index", "offsets", "offsets --latest", "simulate", "simulate --seeds",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_on_a_terminal_and_in_pipes(name: str, tmp_path: Path) -> None:
    output = run(*commands(tmp_path / "shown")[name])
    assert output.status == 0
    assert " %" in output.terminal
    assert output.terminal.endswith(progress.ERASE)
    assert "\x1b" not in output.out
    piped = run(*commands(tmp_path / "piped")[name], err=False)
    assert (piped.status, piped.err) == (0, "")
    assert piped.out.replace("piped", "shown") == output.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_seen"),
    [("timeline", False), ("decode", False), ("decode --out", True), ("segment verify", True),
     ("segment dump", False), ("offsets", False), ("offsets --latest", True), ("simulate", True),
     ("simulate --seeds", True)],
)  # fmt: skip
def test_where_the_output_is_on_the_terminal_too(name: str, is_seen: bool, tmp_path: Path) -> None:
    arguments = commands(tmp_path)[name]
    if name == "timeline":
        arguments = [*arguments, "--format", "json"]
    plain_output = run(*arguments, out=True)
    assert (" %" in plain_output.terminal) == is_seen
    before, erased, output = plain_output.terminal.rpartition(progress.ERASE)
    assert bool(erased) == is_seen
    assert " %" not in output
    lines = [line for line in before.split(progress.ERASE) if line]
    assert all("\n" not in line for line in lines if " %" in line)


def test_a_story_is_told_after_its_progress() -> None:
    pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")
    output = run("timeline", "--format", "story", CAPTURE, out=True)
    _, erased, story = output.terminal.rpartition(progress.ERASE)
    assert erased
    assert " %" in output.terminal
    assert story.lstrip().startswith(str(CAPTURE)[:40])
    assert "In at the end" in story


@pytest.mark.slow
def test_tables_of_the_local_engine(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")
    arguments = ["pipeline", "--engine", "local", "--workers", "1", "--no-report", CAPTURE, "--out"]
    output = run(*arguments, tmp_path / "shown", out=True)
    assert output.status == 0
    assert "1 of 1 task" in output.terminal
    assert "task" not in output.terminal.rpartition(progress.ERASE)[2]
    assert run(*arguments, tmp_path / "piped", err=False).err == ""


def test_notes_come_on_a_line_of_their_own(tmp_path: Path) -> None:
    short = tmp_path / "short.pcap"
    short.write_bytes(CAPTURE.read_bytes()[:-7])
    output = run("timeline", "--format=json", short, tmp_path / "none.pcap")
    notes = [line for line in output.terminal.split("\r\n") if "coordwire:" in line]
    assert len(notes) >= 2
    assert all(progress.ERASE in note or note.startswith("coordwire:") for note in notes)
    assert all("%" not in note.rpartition(progress.ERASE)[2] for note in notes)


def test_nothing_within_the_first_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    written: list[str] = []

    class Terminal:
        def isatty(self) -> bool:
            return True

        def write(self, text: str) -> int:
            written.append(text)
            return len(text)

        def flush(self) -> None:
            """Nothing waits."""

    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    monkeypatch.setattr("sys.stderr", Terminal())
    progress.begin()
    progress.report("capture.pcap", 1, 10)
    assert written == []
    now[0] += 1.01
    for process in range(2, 5):
        progress.report("capture.pcap", process, 10)
    progress.end()
    progress.report("capture.pcap", 9, 10)
    assert "".join(written) == f"{progress.ERASE}capture.pcap  20 %{progress.ERASE}"
