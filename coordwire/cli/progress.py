"""How far a command has come: one line on standard error, which is replaced, and erased in the end.

Strategy: readers and writers report how much they have finished (`report`), at any rate; the line is written
a few times a second, after a command has run for a second. Rules: nothing is written where
standard error is not a terminal, nor where the command's output goes to a terminal, unless the command keeps
quiet meanwhile (`quietly`) and has the line erased before it writes (`clear`). A command whose output another
process writes has that one's line erased before its own notes (`share`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from coordwire.capture.printable import shown

DELAY = 1.0
"""Seconds that a command runs before it has a line."""

INTERVAL = 0.2
ERASE = "\r\x1b[K"
LONGEST_NAME = 50


@dataclass(slots=True)
class _Line:
    """The line of the command that runs. due: when it may be written next, by the monotonic clock; None where
    it never is; written: whether it is there; shared: whether another process's may be."""

    due: float | None = None
    written: bool = False
    shared: bool = False


_line = _Line()


def begin() -> None:
    """Start with a command."""
    _line.due = monotonic() + DELAY if _is_terminal(sys.stderr) and not _is_terminal(sys.stdout) else None
    _line.written = False


def quietly() -> None:
    """Show the line also where the output goes to a terminal: the command erases it before it writes."""
    if _line.due is None and _is_terminal(sys.stderr):
        _line.due = monotonic() + DELAY


def share() -> None:
    """Expect the line of another process on the same terminal, until `end`."""
    _line.shared = _is_terminal(sys.stderr)


def report(name: str, finished: int, total: int) -> None:
    """Report that so many bytes of an input, or so many of its parts, are finished."""
    if _line.due is not None and monotonic() >= _line.due:
        tell(lambda: f"{_short(name)}  {min(100 * finished // total, 100) if total > 0 else 0} %")


def tell(text: Callable[[], str]) -> None:
    """Write a text, if the line is due."""
    if _line.due is None or monotonic() < _line.due:
        return
    _line.due = monotonic() + INTERVAL
    _line.written = True
    print(f"{ERASE}{text()}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Erase the line, before something else is written."""
    if _line.written or _line.shared:
        _line.written = False
        print(ERASE, end="", file=sys.stderr, flush=True)


def end() -> None:
    """Stop: the command has ended, or writes its output from now on."""
    _line.shared = False
    clear()
    _line.due = None


def _is_terminal(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    return isatty is not None and bool(isatty())


def _short(name: str) -> str:
    """The end of a name, so that the line is not wrapped."""
    text = shown(name)
    return text if len(text) <= LONGEST_NAME else f"…{text[1 - LONGEST_NAME :]}"
