"""A command on a pseudo-terminal of a size, which is read while the command runs."""

from __future__ import annotations

import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
fcntl = pytest.importorskip("fcntl", reason="this system has no pseudo-terminals")
termios = pytest.importorskip("termios", reason="this system has no pseudo-terminals")

WAIT = 60.0
ERASE = "\r\x1b[K"
_STYLES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal:
    """text: all that the command has written so far, without its styles."""

    def __init__(self, main: int, process: subprocess.Popen[bytes]) -> None:
        self._main = main
        self._process = process
        self._data = b""

    @property
    def text(self) -> str:
        return _STYLES.sub("", self._data.decode(errors="replace")).replace("\r\n", "\n")

    @property
    def screen(self) -> str:
        """What a terminal shows of it."""
        return "\n".join(visible(self.text))

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match on the screen, once there is one."""
        end = time.monotonic() + WAIT
        while not (match := re.search(pattern, self.screen, re.MULTILINE)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.screen}"
            assert self._read(), f"no {pattern!r} before the end of {self.screen}"
        return match

    def interrupt(self) -> int:
        """Press Ctrl-C; the status with which the command ends."""
        os.write(self._main, b"\x03")
        while self._read():
            pass
        return self._process.wait(WAIT)

    def _read(self) -> bool:
        """Read what comes within a while; False at the end."""
        if select.select([self._main], [], [], 0.1)[0]:
            try:
                part = os.read(self._main, 1 << 16)
            except OSError:  # Linux says so when the other side is closed
                part = b""
            self._data += part
            return bool(part)
        return True


def visible(text: str) -> list[str]:
    """The lines that a text leaves on a terminal that is high enough."""
    lines, row, column = [""], 0, 0
    for part in re.findall(r"\n|\r|\x1b\[[?\d]*[a-zA-Z]|[^\x1b\r\n]+", text):
        if part == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif part == "\r":
            column = 0
        elif part == "\x1b[K":
            lines[row] = lines[row][:column]
        elif part == "\x1b[2K":
            lines[row] = " " * column
        elif part == "\x1b[1A":
            row -= 1
        elif part[0] != "\x1b":
            lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
            column += len(part)
    return [line.rstrip() for line in lines]


@contextmanager
def on_terminal(
    *words: str, columns: int, rows: int = 50, env: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run `coordwire` with a terminal of its own, which Ctrl-C interrupts."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}

    def take_terminal() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, "-m", "coordwire", *words], stdin=side, stdout=side, stderr=side,
        env={**inherited, "TERM": "xterm", **(env or {})}, start_new_session=True, preexec_fn=take_terminal,
    )  # fmt: skip
    os.close(side)
    try:
        yield Terminal(main, process)
    finally:
        process.kill()
        process.wait()
        os.close(main)
