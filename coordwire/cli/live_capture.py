"""A live capture of an interface, by dumpcap or tcpdump, whichever is installed.

Strategy: the program captures with its own rights and writes pcap to a pipe, which is read as it comes.
Rules: the first interrupt ends the capture in order: the program stops, and what it has captured is read to
its end; the second ends the command. Whatever way the command ends, the program does not outlive it. What the
kernel dropped is reported.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from coordwire.capture.printable import shown
from coordwire.cli import Failure, terminable
from coordwire.cli.inputs import is_piped, note

if TYPE_CHECKING:
    import subprocess

PROGRAMS = ("dumpcap", "tcpdump")
RIGHTS = (
    "capturing needs rights: run it as root, join the group of dumpcap (often wireshark), or grant them: "
    "setcap cap_net_raw,cap_net_admin+ep"
)
LAST_LINES = 4
"""Lines of the program's output that an error repeats."""

PATIENCE = 5.0
"""Seconds in which the program must stop."""

_IDLE = r"Capturing on |File: "
_DENIED = r"(?i)permission|not permitted|privilege|EPERM|EACCES"
_DROPPED = r"(\d+) packets? dropped by (?:kernel|interface)|interface '[^']*': \d+/(\d+)"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-i",
        "--interface",
        metavar="IFACE",
        help="capture live, with dumpcap or tcpdump, until interrupted; --port narrows it",
    )
    parser.set_defaults(usage_error=parser.error)


def check_inputs(options: argparse.Namespace) -> None:
    """End with how the command is used unless there are either files or an interface; standard input is the
    file where neither is named and something is piped in."""
    if options.files and options.interface is not None:
        options.usage_error("expected files or an interface with -i, got both")
    if not options.files and options.interface is None:
        if not is_piped():
            options.usage_error("expected a FILE, an interface with -i, or a pipe to standard input")
        options.files = ["-"]


class LiveCapture:
    """A capture that is going on. stream: its bytes, as they come."""

    def __init__(self, interface: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        assert process.stdout is not None
        self.stream = cast(BinaryIO, process.stdout)
        self.interrupted = False
        self._interface = interface
        self._process = process
        self._log = log

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Stop the program; the second time, the command."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self._process.send_signal(number)

    def conclude(self, packets: int) -> None:
        """Judge how the program ended, once its stream has. Raises `Failure` if it captured nothing at all
        and reports that it failed."""
        status = self._process.wait()
        self._log.seek(0)
        log = self._log.read(1 << 20).decode("utf-8", "replace")
        lines = [
            shown(line.strip()) for line in log.splitlines() if line.strip() and not re.match(_IDLE, line)
        ]
        if status and not self.interrupted:
            reason = "; ".join(lines[-LAST_LINES:]) or f"it ended with status {status}"
            hint = f" ({RIGHTS} {shown(str(self._process.args[0]))})" if re.search(_DENIED, log) else ""  # type: ignore[index]
            trouble = f"{shown(self._interface)}: {reason}{hint}"
            if not packets:
                raise Failure(trouble)
            note(trouble)
        dropped = sum(int(kernel or interface) for kernel, interface in re.findall(_DROPPED, log))
        if dropped:
            note(f"{shown(self._interface)}: {dropped:,} packets were dropped before they could be captured")

    def stop(self) -> None:
        """End the program, if it still runs."""
        from subprocess import TimeoutExpired

        self.stream.close()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(PATIENCE)
            except TimeoutExpired:
                self._process.kill()
                self._process.wait()


@contextmanager
def live(interface: str, ports: Collection[int]) -> Iterator[LiveCapture]:
    """Capture TCP on an interface; ports: only theirs. Raises `Failure` where no program can do it."""
    import subprocess  # these imports take longer than what most commands do
    import tempfile

    command = _command(interface, ports)
    with tempfile.TemporaryFile() as log, lines_at_once():
        try:
            # A session of its own: a terminal's interrupt is for the command, which hands it on.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        except OSError as error:
            raise Failure(f"{shown(command[0])}: {error.strerror or error}") from None
        capture = LiveCapture(interface, process, log)
        try:
            with terminable(), _interrupts(capture):
                yield capture
        finally:
            capture.stop()


def _command(interface: str, ports: Collection[int]) -> list[str]:
    if not interface.isprintable() or not interface or interface.startswith("-"):
        raise Failure(f"{shown(interface)!r} is not an interface")
    capture_filter = " or ".join(f"tcp port {port}" for port in sorted(ports)) or "tcp"
    import shutil

    for program in PROGRAMS:
        path = shutil.which(program)
        if path is None:
            continue
        if program == "dumpcap":
            return [path, "-q", "-i", interface, "-f", capture_filter, "-w", "-"]
        return [path, "-i", interface, "-n", "-U", "-s", "262144", "-w", "-", capture_filter]
    raise Failure(
        f"{shown(interface)}: a live capture needs dumpcap (of Wireshark) or tcpdump on PATH, and neither is "
        "there; or capture elsewhere and decode the file, or its bytes from standard input (-)"
    )


@contextmanager
def _interrupts(capture: LiveCapture) -> Iterator[None]:
    """Pass interrupts to the capture; only the main thread can."""
    import signal  # which other inputs do without
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, capture.interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def lines_at_once() -> Iterator[None]:
    """Flush standard output after each line, also into a pipe."""
    if not isinstance(sys.stdout, io.TextIOWrapper) or sys.stdout.line_buffering:
        yield
        return
    stdout = sys.stdout
    stdout.reconfigure(line_buffering=True)
    try:
        yield
    finally:
        stdout.reconfigure(line_buffering=False)
