"""Standard output and error that take every text, whatever their encoding.

Strategy: an error handler of Python's codecs is in for what an encoding lacks: signs of ours have a
likeness in ASCII, anything else is escaped as in Python's literals. Rules: it is set once, where a command
starts; a stream that isn't Python's own text stream is left alone.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import TextIO, cast

__all__ = ["TrimmedOutput", "prepare", "table_output"]

HANDLER = "coordwire.likeness"
_LIKENESS = {
    "─": "-", "→": "->", "←": "<-", "…": "...", "·": "-", "×": "x", "–": "-",
    "✗": "x", "✓": "ok", "⟳": "*", "↻": "*", "µ": "u",
}  # fmt: skip


def prepare() -> None:
    """Let nothing that is written end in a UnicodeEncodeError."""
    codecs.register_error(HANDLER, _likeness)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=HANDLER)


def _likeness(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    escaped = (_LIKENESS.get(char) or ascii(char)[1:-1] for char in lacking)
    return "".join(escaped), error.end


def table_output() -> TextIO:
    """Where tables are written that fill their last column: standard output, without the blanks at the ends
    of lines where it is not a terminal."""
    return sys.stdout if sys.stdout.isatty() else cast(TextIO, TrimmedOutput(sys.stdout))


class TrimmedOutput(io.TextIOBase):
    """Passes text on without the blanks before the ends of lines. A line waits for its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun: list[str] = []

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str) -> int:
        *lines, begun = text.split("\n")
        if lines:
            lines[0] = "".join([*self._begun, lines[0]])
            self._begun.clear()
            self._stream.writelines(f"{line.rstrip(' ')}\n" for line in lines)
        self._begun.append(begun)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()
