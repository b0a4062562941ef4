"""The outputs of commands: standard output as a terminal, a pager or a file, in any encoding.

Strategy: a line is a list of pieces, each a text with the name of its style. rich makes colours of the styles
where standard output is a terminal and rich is installed; elsewhere the lines are plain text. What an
encoding lacks is replaced by an error handler of Python's codecs: signs have a likeness in ASCII, and
anything else is escaped as in Python's literals.

Rules: the handler is set once, where a command starts; a stream that is not Python's own text stream is left
alone; a command that cannot work without rich refuses with the command that installs it. On a terminal no
line is wider than that, and none breaks within a word that fits; elsewhere a line stays one.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from coordwire.capture.printable import Pieces
from coordwire.cli import Failure

if TYPE_CHECKING:
    from rich.console import Console

    from coordwire.capture.entries import Entry

STYLES = {
    "rule": "dim", "flow": "cyan", "api": "bold", "request": "bold blue", "response": "bold green",
    "number": "", "text": "green", "name": "cyan", "none": "dim", "note": "dim", "bytes": "magenta",
    "error": "bold red", "odd": "yellow", "slow": "bold yellow", "plain": "",
}  # fmt: skip
"""rich's styles by their names."""

SLOW_NS = 1_000_000_000
"""A latency beyond this has the style "slow"."""

COLUMNS = 80
"""The width of a line where there is no terminal."""

CONTINUED = 4
"""Columns by which a line that goes on is indented further."""

CHUNK = 200
"""Lines that are written together."""

_HANDLER = "coordwire.likeness"
_LIKENESS = {
    "─": "-", "→": "->", "←": "<-", "…": "...", "·": "-", "×": "x", "–": "-",
    "✗": "x", "✓": "ok", "⟳": "*", "↻": "*", "µ": "u",
}  # fmt: skip
_FORCING = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables by which rich takes something else for a terminal."""


# --- standard streams ---


def prepare() -> None:
    """Let nothing that is written end in a UnicodeEncodeError."""
    codecs.register_error(_HANDLER, _likeness)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


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
        self._unfinished: list[str] = []

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    def write(self, text: str) -> int:
        *lines, unfinished = text.split("\n")
        if lines:
            lines[0] = "".join([*self._unfinished, lines[0]])
            self._unfinished.clear()
            self._stream.writelines(f"{line.rstrip(' ')}\n" for line in lines)
        self._unfinished.append(unfinished)
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def __del__(self) -> None:
        """Leave the stream alone, which is another's and may be closed by now."""


# --- formats, widths, colours ---


def columns(default: int = COLUMNS) -> int:
    """The width of lines: that of the terminal that any standard stream is, since a pager shows them there
    too; the default where no stream is a terminal."""
    if (setting := os.environ.get("COLUMNS", "")).isdecimal():
        return int(setting[:9])
    for number in (1, 2, 0):
        try:
            return os.get_terminal_size(number).columns or default
        except OSError:
            continue
    return default


def rich_console(subject: str, file: TextIO | None = None) -> Console:
    """A console of rich for standard output or a file. Raises `Failure` where rich is not installed.

    subject: what needs it, for the error.
    """
    try:
        from rich.console import Console
    except ImportError:
        raise Failure(
            f"{subject} needs rich: pip install 'coordwire[cli]' (--format json does without)"
        ) from None

    class Output(Console):
        """rich's, which would end the process where a pipe's reader has seen enough."""

        def on_broken_pipe(self) -> NoReturn:
            raise BrokenPipeError

    return Output(file=file or sys.stdout, highlight=False, markup=False, emoji=False)


def folded(line: Pieces, width: int, margin: int) -> Iterator[Pieces]:
    """A line as lines of at most so many columns, broken between words. margin: columns before the lines that
    follow the first."""
    text = "".join(part for part, _ in line).rstrip()
    margin = min(margin, width // 2)
    start, room, before = 0, width, ""
    while len(text) - start > room:
        break_at = text.rfind(" ", start + 1, start + room + 1)
        end = break_at if text[start:break_at].strip() and break_at > start else start + room
        yield [(before, "plain"), *_between(line, start, start + len(text[start:end].rstrip(" ")))]
        start = len(text) - len(text[end:].lstrip(" "))
        room, before = max(width - margin, 1), " " * margin
    yield [(before, "plain"), *_between(line, start, len(text))]


def _between(line: Pieces, start: int, end: int) -> Iterator[tuple[str, str]]:
    """The pieces of a part of a line."""
    at = 0
    for part, style in line:
        piece = part[max(start - at, 0) : max(end - at, 0)]
        if piece:
            yield piece, style
        at += len(part)


def folded_text(text: str, file: TextIO, margin: int = CONTINUED, *, prefix: str = "") -> str:
    """Lines for a stream, folded where it is a terminal. margin: columns before the lines that go on; prefix:
    what each line begins with."""
    width = max(columns() - len(prefix), 20) if file.isatty() else len(text) + 1
    return "\n".join(
        prefix + "".join(part for part, _ in pieces)
        for line in text.split("\n")
        for pieces in folded([(line, "plain")], width, margin)
    )


def line_writer() -> Callable[[Iterable[Pieces]], None]:
    """A function that writes lines to standard output: in colours where that is a terminal and rich is
    installed, else as plain text."""
    if not sys.stdout.isatty() and not any(os.environ.get(name) for name in _FORCING):
        return _write_plainly
    try:
        from rich.text import Text

        console = rich_console("")
    except (ImportError, Failure):
        return _write_plainly
    if not console.is_terminal and console.color_system is None:
        return _write_plainly

    width = max(console.width, 20)

    def write(lines: Iterable[Pieces]) -> None:
        remaining = chain.from_iterable(folded(line, width, _margin(line)) for line in lines)
        while chunk := list(islice(remaining, CHUNK)):
            block = Text("\n").join(
                Text.assemble(*((part, STYLES[style]) for part, style in line)) for line in chunk
            )
            console.print(block, soft_wrap=True)

    return write


def _margin(line: Pieces) -> int:
    text = "".join(part for part, _ in line[:2])
    return len(text) - len(text.lstrip()) + CONTINUED


def plain_text(line: Pieces) -> str:
    """A line's text, with its end."""
    return "".join([part for part, _ in line]) + "\n"


def _write_plainly(lines: Iterable[Pieces]) -> None:
    sys.stdout.writelines(map(plain_text, lines))


def packets(entry: Entry) -> str:
    """An entry's packets as Wireshark numbers them: the only one, or the first and the last; empty where
    there are none."""
    if entry.packet is None:
        return ""
    if entry.first_packet in (None, entry.packet):
        return f"  packet {entry.packet}"
    return f"  packets {entry.first_packet}-{entry.packet}"
