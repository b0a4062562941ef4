"""The processes of `--jobs`: none is left when the command's output is not read, or a signal ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from coordwire.capture.formats.pcap import as_pcap
from tests.bench.group_traffic import traffic

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
]

COMMANDS = {
    "shares of a capture": ["decode", "--format", "tree"],
}


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """A command of two processes, with more output than a pipe holds."""
    path = tmp_path / "large.pcap"
    path.write_bytes(as_pcap(islice(traffic("joins"), 6_000)))
    return [sys.executable, "-m", "coordwire", *COMMANDS[request.param], "--jobs", "2", str(path)]


@pytest.mark.parametrize("words", COMMANDS, indirect=True)
def test_a_closed_pipe_ends_all_quietly(words: list[str]) -> None:
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""  # and no process has it open
    assert process.wait() == 0


@pytest.mark.parametrize("words", COMMANDS, indirect=True)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all(words: list[str], number: signal.Signals, status: int) -> None:
    """While the command waits to write: its output is not read."""
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(number)
    _, err = process.communicate()  # which ends when no process has the pipes open
    assert (process.returncode, err) == (status, b"")
