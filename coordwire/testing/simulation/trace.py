"""What is written down of a run in a simulated world: its trace, and the log of its processes.

Rules: the digest of a trace is the same for all runs of one seed, so that no text has an object's address;
all times are the world's. Of the log the last lines are kept, repeated ones once.
"""

from __future__ import annotations

import hashlib
import io
import logging
import re
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from coordwire.testing.simulation.loop import SimulationLoop
    from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["LogLines", "Printed", "Trace", "without_addresses"]

_KEPT_LINES = 400
_NEAR = 8
"""A line of the log is repeated if it is one of so many last ones."""

_LINES = 1_000
"""So many lines of a trace are added to its digest at once."""

_WIDEST = 240
"""Characters of a line of the log, beyond which it is cut."""

_SPACES = re.compile(r"(\\n|\s)+")
"""Also an end of line within a `repr`."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


class Trace:
    """The events of a run as lines; all of them if `keep`, and their digest."""

    def __init__(self, loop: SimulationLoop, *, keep: bool) -> None:
        self._loop = loop
        self._digest = hashlib.blake2b(digest_size=16)
        self._waiting: list[str] = []
        """Lines that are not in the digest yet."""
        self.lines: list[str] | None = [] if keep else None
        self.count = 0

    def __call__(self, kind: str, text: str) -> None:
        line = f"{self._loop.now:.6f} {kind} {text}"
        self.count += 1
        if self.lines is not None:
            self.lines.append(line)
        self._waiting.append(line)
        if len(self._waiting) >= _LINES:
            self._take()

    def _take(self) -> None:
        self._waiting.append("")
        self._digest.update("\n".join(self._waiting).encode(errors="surrogateescape"))
        self._waiting.clear()

    @property
    def digest(self) -> str:
        if self._waiting:
            self._take()
        return self._digest.hexdigest()


class _LogEntry:
    """A line of the log, with the time of its first and its last occurrence."""

    def __init__(self, text: str, now: float) -> None:
        self.text = text
        self.first = self.last = now
        self.count = 1

    @property
    def line(self) -> str:
        repeats = f" ({self.count} times until {self.last:.3f})" if self.count > 1 else ""
        return f"{self.first:10.3f} {self.text}{repeats}"


class LogLines(logging.Handler):
    """The log of the world's processes, in virtual time."""

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(logging.INFO)
        self.world = world
        self._entries: deque[_LogEntry] = deque(maxlen=_KEPT_LINES)

    @property
    def lines(self) -> list[str]:
        """The last lines; what is repeated without much in between has one."""
        return [entry.line for entry in self._entries]

    def emit(self, record: logging.LogRecord) -> None:
        if self.world.is_over:
            return
        try:
            message = without_addresses(record.getMessage())
        except Exception as error:  # a logging call that is wrong in itself
            message = f"{record.msg!r}: {error!r}"
        world = self.world
        if record.exc_info and record.exc_info[1] is not None:
            message += f" ({record.exc_info[1]!r})"
        if record.levelno >= logging.WARNING:
            world.last_event = world.now
        self.add(world.process_name(), record.levelname, f"{record.name}: {message}")
        world.trace("log", f"{world.process_name()} {record.levelname} {record.name} {message}")

    def add(self, source: str, level: str, message: str) -> None:
        """Write a line of a process, or of the world."""
        message = _SPACES.sub(" ", message)
        if len(message) > _WIDEST:
            message = f"{message[:_WIDEST]} …"
        text, now = f"{source:12} {level:7} {message}", self.world.loop.now
        for entry in islice(reversed(self._entries), _NEAR):
            if entry.text == text:
                entry.count += 1
                entry.last = now
                return
        self._entries.append(_LogEntry(text, now))


class Printed(io.TextIOBase):
    """What processes print: in the log, by the line, and where it went before."""

    def __init__(self, lines: LogLines, stdout: TextIO) -> None:
        self._lines, self._stdout = lines, stdout
        self._line = ""
        """A line without its end."""

    def write(self, text: str) -> int:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._lines.add(self._lines.world.process_name(), "PRINT", without_addresses(line))
        return self._stdout.write(text)

    def flush(self) -> None:
        self._stdout.flush()


def without_addresses(text: str) -> str:
    """A text without the addresses of objects, which differ between runs."""
    return _ADDRESS.sub("0x…", text)
