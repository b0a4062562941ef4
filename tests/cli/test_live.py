"""A live capture: a program on PATH that writes pcap to a pipe, as dumpcap and tcpdump do."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.frames import encode_request
from coordwire.messages import HeartbeatRequest

from ..capture import build
from .conftest import Run

COMMAND = [sys.executable, "-m", "coordwire.cli"]
PROGRAM = """#!/bin/sh
# Writes a capture, waits to be interrupted, writes the rest.
here={folder}
echo "$0 $*" > "$here/arguments"
trap 'cat "$here/second"; echo "3 packets dropped by kernel" >&2; exit 0' INT
cat "$here/first"
while :; do sleep 0.05; done
"""


def packets(*numbers: int) -> list[bytes]:
    """A heartbeat each."""
    product, at = [], 1
    for number in range(1, max(numbers) + 1):
        request = HeartbeatRequest(group_id=f"g{number}", generation_id=1, member_id="m")
        frame = encode_request(request, version=4, correlation_id=number)
        if number in numbers:
            product.append(build.packet(frame, seq=at, ack=1))
        at += len(frame)
    return product


def write_halves(folder: Path) -> None:
    """A capture in two files: with a frame each, the first with the connection's beginning."""
    full_output = build.pcap([build.packet(flags=build.SYN), *packets(1, 2)])
    middle = len(build.pcap([build.packet(flags=build.SYN), *packets(1)]))
    (folder / "first").write_bytes(full_output[:middle])
    (folder / "second").write_bytes(full_output[middle:])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """For PATH, without any program yet; it needs the shell's own."""
    for name in ("sh", "cat", "sleep"):
        (tmp_path / name).symlink_to(
            next(path for path in (Path("/bin", name), Path("/usr/bin", name)) if path.exists())
        )
    return tmp_path


def install(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(script.format(folder=shlex.quote(str(folder))))
    path.chmod(0o755)


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=os.environ | {"PATH": str(folder)},
        preexec_fn=heed_interrupts,
    )


def heed_interrupts() -> None:
    """Where the tests run in the background of a shell, interrupts are ignored, and so by what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("program", "options"), [("dumpcap", "-q -i eth7 -f"), ("tcpdump", "-i eth7 -n -U")])
def test_frames_come_as_they_are_captured_and_an_interrupt_ends_it(
    folder: Path, program: str, options: str
) -> None:
    install(folder, program, PROGRAM)
    write_halves(folder)
    process = start(folder, "decode", "-i", "eth7", "--port", "9092", "--format", "json")
    assert process.stdout is not None
    assert select.select([process.stdout], [], [], 60)[0]  # before the capture ends
    first = process.stdout.read(1 << 16)
    assert first.count(b"\n") == 1
    assert b'"groupId":"g1"' in first
    process.send_signal(signal.SIGINT)
    remainder, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b'"groupId":"g2"' in remainder
    assert b"eth7: 3 packets, 2 frames; Kafka in 1 of 1 connections" in err
    assert b"3 packets were dropped" in err
    message = (folder / "arguments").read_text()
    assert f"{program} {options}" in message
    assert "tcp port 9092" in message


def test_a_timeline_of_it(folder: Path) -> None:
    install(folder, "dumpcap", "#!/bin/sh\ncat {folder}/first\n")
    captures = Path(__file__).parent.parent / "data" / "captures"
    capture = captures / "kpy__tansu__group-range.pcap"
    (folder / "first").write_bytes(capture.read_bytes())
    process = start(folder, "timeline", "-i", "eth7", "--format", "json")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert b'"group":"g-kpy-range"' in out


@pytest.mark.parametrize("manner", ["a closed pipe", "SIGTERM"])
def test_a_program_does_not_outlive_the_command(folder: Path, manner: str) -> None:
    nap = "do sleep 0.05; done"
    wait = f"while [ ! -e {{folder}}/closed ]; {nap}; cat {{folder}}/second; while :; {nap}"
    install(folder, "dumpcap", f"#!/bin/sh\necho $$ > {{folder}}/pid; cat {{folder}}/first; {wait}\n")
    write_halves(folder)
    process = start(folder, "decode", "-i", "eth7", "--format", "json")
    assert process.stdout is not None
    process.stdout.read(10)
    if manner == "SIGTERM":
        process.terminate()
    else:
        process.stdout.close()
        (folder / "closed").touch()
    _, err = process.communicate(timeout=60)
    assert process.returncode == (128 + signal.SIGTERM if manner == "SIGTERM" else 0), err
    number = int((folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.parametrize(
    ("expected", "hint"),
    [
        ("tcpdump: eth7: You don't have permission to capture on that device", True),
        ("tcpdump: eth7: No such device exists", False),
    ],
)
def test_a_program_that_fails_is_repeated(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, expected: str, hint: bool
) -> None:
    install(folder, "tcpdump", f'#!/bin/sh\necho "{expected}" >&2\nexit 1\n')
    monkeypatch.setenv("PATH", str(folder))
    for command in ("decode", "timeline"):
        result = run(command, "-i", "eth7")
        assert (result.status, result.text) == (2, "")
        assert expected in result.err
        assert ("capturing needs rights" in result.err) is hint


def test_without_a_program(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for command in ("decode", "timeline"):
        result = run(command, "-i", "eth7")
        assert (result.status, result.text) == (2, "")
        assert (
            "a live capture needs dumpcap (of Wireshark) or tcpdump on PATH, and neither is there"
            in result.err
        )


@pytest.mark.parametrize(
    "arguments", [("decode", "-i", "x", "y"), ("timeline", "-i", "x", "y"), ("decode", "-i=-w")]
)
def test_wrong_arguments(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.status, result.text) == (2, "")
    assert "interface" in result.err


@pytest.mark.parametrize(
    "interface", ["eth7; touch hostile", "$(touch hostile)", "`x`", "eth7 -w hostile", "@x"]
)
def test_an_interface_is_one_argument_whatever_it_is(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, interface: str
) -> None:
    """No shell reads it, and the program gets it behind its own option; the command has no rights to lend."""
    install(folder, "dumpcap", '#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/arguments\nexit 1\n')
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.chdir(folder)
    assert run("decode", "-i", interface).status == 2
    assert (folder / "arguments").read_text() == f"-q\n-i\n{interface}\n-f\ntcp\n-w\n-\n"
    assert not (folder / "hostile").exists()


@pytest.mark.parametrize("interface", ["", "-w", "--help", "eth7\0", "eth7\n-w", "\x1b[31m"])
def test_what_cannot_be_an_interface_starts_nothing(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, interface: str
) -> None:
    install(folder, "dumpcap", "#!/bin/sh\ntouch {folder}/started\n")
    monkeypatch.setenv("PATH", str(folder))
    result = run("decode", f"--interface={interface}")
    assert (result.status, result.text) == (2, "")
    assert "is not an interface" in result.err
    assert "\x1b" not in result.err
    assert not (folder / "started").exists()
