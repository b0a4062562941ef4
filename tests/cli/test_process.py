"""Whole processes: pipes that close, signals, and what starting imports."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CAPTURES

COMMAND = [sys.executable, "-m", "coordwire.cli"]
GROUP = CAPTURES / "confluent__rdmock__group-range.pcap"


def test_a_pipe_in_and_a_pipe_out() -> None:
    """With the bytes of the frame that is refused, which are withheld otherwise."""
    words = ["decode", "--format", "json", "--show-secrets", "-"]
    with (
        GROUP.open("rb") as capture,
        subprocess.Popen([*COMMAND, *words], stdin=capture, stdout=subprocess.PIPE) as decode,
    ):
        encode = subprocess.run(
            [*COMMAND, "encode", "-"], stdin=decode.stdout, capture_output=True, text=True
        )
    assert decode.returncode == 1
    assert encode.returncode == 0
    assert len(encode.stdout.splitlines()) == 230


def test_a_closed_pipe_is_quiet(tmp_path: Path) -> None:
    for form in ("json", "tree", "hex"):
        process = subprocess.Popen(
            [*COMMAND, "decode", "--format", form, *[str(GROUP)] * 5],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0
        process.stderr.close()


def test_a_full_disk_is_told() -> None:
    full = Path("/dev/full")
    if not full.exists():
        return
    with full.open("wb") as out:
        process = subprocess.run(
            [*COMMAND, "decode", "--format", "json", str(GROUP)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert process.returncode == 2
    assert process.stderr.count("\n") == 1
    assert "space" in process.stderr


def test_an_interrupt_is_quiet() -> None:
    process = subprocess.Popen(
        [*COMMAND, "decode", "--format", "json", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    assert process.stdin is not None
    header = struct.pack("<IHHiIII4I", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1, 1, 0, 250_000, 250_000)
    process.stdin.write(header + bytes(200_000))  # more than a pipe holds: the command reads
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == b""


def test_starting_imports_little() -> None:
    script = "from coordwire.cli.__main__ import main; main(['decode', '--format', 'json', '/dev/null'])"
    code = f"import sys; {script}; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = process.stdout.split()
    assert "coordwire.cli.decode" in loaded
    for name in (
        "rich",
        "decimal",
        "shutil",
        "signal",
        "threading",
        "coordwire.cli.encode",
        "coordwire.cli.decode.tree",
        "coordwire.messages.fetch",
        "coordwire.segments",
        "coordwire.timeline",
        "coordwire.connection.connection",
        "coordwire.connection.kafka",
        "coordwire.dialects.conversation",
        "coordwire.dialects.frames",
        "coordwire.enums",
        "coordwire.logs",
    ):
        assert name not in loaded


def test_the_version_imports_no_captures() -> None:
    script = "from coordwire.cli.__main__ import main; main(['--version'])"
    code = f"import sys; {script}; print(*sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.stdout.startswith("coordwire ")
    assert not {"coordwire.capture.entries", "coordwire.codec.message"} & set(process.stdout.split())


def test_names_of_error_codes_import_no_other_numbers() -> None:
    script = f"from coordwire.cli.__main__ import main; main(['decode', '--format', 'json', {str(GROUP)!r}])"
    code = f"import sys; {script}; print(*sys.modules, file=sys.stderr)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "REBALANCE_IN_PROGRESS" in process.stdout
    loaded = process.stderr.split()
    assert "coordwire.enums.error_codes" in loaded
    assert "coordwire.enums.numbers" not in loaded


def test_kafka_connections_that_had_begun_load_no_other_dialect() -> None:
    capture = Path(__file__).parents[1] / "data" / "stories" / "classic-static.pcap.xz"
    script = (
        f"from coordwire.cli.__main__ import main; main(['decode', '--format', 'json', {str(capture)!r}])"
    )
    code = f"import sys; {script}; print(*sys.modules, file=sys.stderr)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert '"apiKey"' in process.stdout
    loaded = process.stderr.split()
    for name in ("dialects.connection", "dialects.grammar", "connection.endpoint"):
        assert f"coordwire.{name}" not in loaded


def test_a_system_without_locks_writes_no_tables(tmp_path: Path) -> None:
    run = "from coordwire.cli.__main__ import main; sys.exit(main(sys.argv[1:]))"
    script = f"import sys; sys.modules['fcntl'] = None; {run}"  # as on Windows
    command = [sys.executable, "-c", script]
    process = subprocess.run([*command, "pipeline", str(GROUP), "--out", str(tmp_path)], capture_output=True)
    assert (process.returncode, process.stdout) == (2, b"")
    assert process.stderr == b"coordwire: this needs Python's module fcntl, which this system lacks\n"
    assert b"JoinGroup" in subprocess.run([*command, "decode", str(GROUP)], capture_output=True).stdout


def test_colours_on_a_terminal() -> None:
    """Under `script`, which gives it a terminal."""
    pytest.importorskip("rich", reason="rich isn't installed")
    line = " ".join([*COMMAND, "decode", str(GROUP)])
    process = subprocess.run(
        ["script", "-qec", line, "/dev/null"], capture_output=True, stdin=subprocess.DEVNULL
    )
    assert b"\x1b[" in process.stdout
    assert "→ ".encode() in process.stdout
