"""Standard output and error that take every text, whatever their encoding.

Strategy: an error handler of Python's codecs is in for what an encoding lacks: signs of ours have a
likeness in ASCII, anything else is escaped as in Python's literals. Rules: it is set once, where a command
starts; a stream that isn't Python's own text stream is left alone.
"""

from __future__ import annotations

import codecs
import io
import sys

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
