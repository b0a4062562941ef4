"""`decode --jobs`: the output and the status of one process, and nothing left after any end."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CAPTURES, Run

COMMAND = [sys.executable, "-m", "coordwire", "decode"]
GROUP = CAPTURES / "kpy__tansu__group-range.pcap"
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SCRIPT = """
import os, signal, sys, time
from coordwire.cli.decode.jobs import read_all

class Lines:
    state = ()
    def read(self, index):
        time.sleep(0.01 * (index % 3))
        if index == {killed}:
            os.kill(os.getpid(), signal.SIGKILL)
        if index == {failing}:
            raise OSError(28, "No space left on device")
        print(index, self.state)
        print("note", index, file=sys.stderr)
        if index % 4 < 2:  # else the next input may have been begun with what it needs
            self.state += (index,)
        return index * index

try:
    for result in read_all(Lines(), [f"input-{{index}}" for index in range(9)], 3):
        print("result", result)
except Exception as error:
    print(type(error).__name__, error)
"""


def script(killed: int = -1, failing: int = -1) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", SCRIPT.format(killed=killed, failing=failing)]
    return subprocess.run(words, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--format", "line"),
        ("--format", "json"),
        ("--format", "csv", "--fields", "time,api,topic", "--filter", "topic == 'orders'"),
        ("--format", "tree", "--group", "nobody's"),
    ],
)
def test_the_output_is_that_of_one_process(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """For inputs that widen columns, deviate, aren't captures, or aren't there."""
    (tmp_path / "noise").write_bytes(bytes(range(200)))
    small = [path for path in sorted(CAPTURES.glob("*.pcap")) if path.stat().st_size < 20_000]
    files = [str(path) for path in (small[0], GROUP, tmp_path / "noise", *small[1:6], tmp_path / "nothing")]
    single = run("decode", *words, *files)
    several = subprocess.run([*COMMAND, *words, "--jobs", "3", *files], capture_output=True)
    assert (several.returncode, several.stdout) == (single.status, single.out)
    assert several.stderr.decode() == single.err
    assert single.out or "0 of" in single.err


def test_what_an_input_leaves_reaches_the_next() -> None:
    """Though that was begun before."""
    state: tuple[int, ...] = ()
    expected = []
    for index in range(9):
        expected += [f"{index} {state}", f"result {index * index}"]
        if index % 4 < 2:
            state += (index,)
    process = script()
    assert process.stdout.splitlines() == expected
    assert process.stderr.splitlines() == [f"note {index}" for index in range(9)]


def test_a_process_that_was_killed_is_reported() -> None:
    process = script(killed=4)
    assert process.stdout.splitlines()[-1] == "Failure input-4: the process that read it ended with status -9"
    assert "result 9" in process.stdout


def test_an_error_of_a_process_is_raised() -> None:
    process = script(failing=2)
    assert process.stdout.splitlines()[-2:] == ["result 1", "OSError [Errno 28] No space left on device"]
    assert process.stderr == "note 0\nnote 1\n"


def test_few_inputs_are_read_ahead(tmp_path: Path) -> None:
    """While the first takes long: what waits to be written is bounded."""
    script = """
import os, sys, tempfile, time
from coordwire.cli.decode.jobs import read_all

class Lines:
    state = None
    def read(self, index):
        time.sleep(0.5 * (index == 0))

results = read_all(Lines(), [f"input-{index}" for index in range(9)], 2)
next(results)
(folder,) = os.scandir(tempfile.gettempdir())
print(*sorted(os.listdir(folder)))
print(len([*results]))
"""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert process.stdout.splitlines() == ["1.err 1.out 2.err 2.out 3.err 3.out", "8"]
    assert not [*tmp_path.iterdir()]


def test_a_closed_pipe_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--format", "json", *[str(GROUP)] * 2],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr:
        assert process.stderr.read() == b""
    assert process.wait() == 0
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals, status: int) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--format", "json", str(GROUP), str(pipe)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(folder)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    with pipe.open("wb"):  # once a process reads it
        process.send_signal(number)
        _, err = process.communicate()
    assert (process.returncode, err) == (status, b"")
    assert not [*folder.iterdir()]
    with pytest.raises(OSError, match="No such device") as failure:
        os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    assert failure.value.errno == errno.ENXIO  # no process reads it any more


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command_that_waits_to_write(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    """Whose output, more than a pipe holds, is not read."""
    process = subprocess.Popen(
        [*COMMAND, "--jobs", "2", "--format", "json", *[str(GROUP)] * 3],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(number)
    _, err = process.communicate()  # which ends when no process has the pipes open
    assert (process.returncode, err) == (status, b"")
    assert not [*tmp_path.iterdir()]


def test_one_input_has_one_process(run: Run) -> None:
    assert run("decode", "--jobs", "3", GROUP) == run("decode", GROUP)
    single = subprocess.run([*COMMAND, str(GROUP)], capture_output=True)
    with GROUP.open("rb") as file:
        piped = subprocess.run([*COMMAND, "--jobs", "3", "-"], stdin=file, capture_output=True)
    assert (piped.returncode, piped.stdout, piped.stderr) == (single.returncode, single.stdout, b"")


def test_wrong_uses_are_refused(run: Run, tmp_path: Path) -> None:
    assert (
        "expected a number of processes from 1 to 1,000, got '0'" in run("decode", "--jobs", "0", GROUP).err
    )
    refused = run("decode", "--jobs", "2", "--out", tmp_path / "tables", GROUP, GROUP)
    assert refused.status == 2
    assert "coordwire pipeline --engine local --workers N" in refused.err
