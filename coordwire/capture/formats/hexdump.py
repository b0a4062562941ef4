"""Frames from text: plain hex, and the dumps of xxd, hexdump -C, tcpdump -X and Wireshark.

Strategy: blank lines and comments ("#") part the text into blocks. A block whose first line opens with an
offset is a dump of one frame (a new one begins where the offset is back at 0); in any other, each line is a
frame, except that what `xxd -p` wraps at 60 digits is joined. In plain hex, white space, ":", "," and "0x"
may stand between bytes. In a dump, the bytes of a line end where the next line's offset says, else at
the first wide gap but the one in the middle, so that an ASCII column made of hex digits is not read as bytes.

Rules: nothing is guessed: a line that isn't hex costs its frame, which becomes an `UnreadableRange` with its
position in the file, and line and column in the reason. Offsets must agree with the bytes before them. "*"
repeats the line above, within the budget of one frame. A frame's lines are read one by one, and each of their
bytes once: never more is held than the bytes of one frame and two lines.
"""

from __future__ import annotations

__all__ = ["HexFrame", "from_hex", "looks_like_hexdump", "read_frames"]

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from coordwire.errors import Malformed, UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

WRAP = 60  # digits on a line of xxd -p

# An offset: 4 digits or more, then a colon, a wide gap, or nothing (the last line of hexdump -C).
_OFFSET = re.compile(r"\s*(?:0[xX])?([0-9a-fA-F]{4,16})(:(?=\s)|(?=\s{2})|(?=\s*$))")
_OD = re.compile(r"([0-9a-fA-F]{6,8})((?: [0-9a-fA-F]{2})+\s*|\s*)$")
_BYTE = re.compile(r"\s{2,}[0-9a-fA-F]{2}(?=\s|$)")
_GAP = re.compile(r"\s{2,}|\t")
_DIGITS = re.compile(r"[0-9a-fA-F]+")
_BETWEEN = re.compile(r"[\s:,]+|$")
_TEXT = re.compile(rb"[^\x09-\x0d\x20-\x7e\x80-\xff]")


@dataclass(frozen=True, slots=True)
class HexFrame:
    """Bytes that a text spells out.

    line: the number of its first line, from 1; position, length: of the text in the file.
    """

    line: int
    position: int
    length: int
    data: bytes


class _Line(NamedTuple):
    number: int
    position: int
    size: int  # in the file, with the line's end
    text: str


class _NotHex(Exception):
    """Where a text isn't hex; never leaves this module."""

    def __init__(self, line: _Line, column: int, reason: str) -> None:
        self.line = line
        self.reason = f"line {line.number}, column {column + 1}: {reason}"
        self.position = line.position + column


def read_frames(lines: Iterable[bytes]) -> Iterator[HexFrame | UnreadableRange]:
    """The frames of a text (a binary file, or any lines of it), in order, and what isn't hex."""
    block: _Block | None = None
    position = 0
    for number, raw in enumerate(lines, 1):
        text = raw.decode("latin-1").rstrip()  # a byte a column; what isn't ASCII is never hex
        if number == 1 and text.startswith("\xef\xbb\xbf"):
            text = "   " + text[3:]
        if not text or text.lstrip().startswith("#"):
            if block is not None:
                yield from block.finish()
            block = None
        else:
            line = _Line(number, position, len(raw), text)
            if block is None or not block.takes(line):
                if block is not None:
                    yield from block.finish()
                block = _Block(line)
            else:
                yield from block.add(line)
        position += len(raw)
    if block is not None:
        yield from block.finish()


def from_hex(text: str) -> bytes:
    """The bytes that a text spells out, all its frames joined. Raises `Malformed` with line and column."""
    parts = []
    for frame in read_frames(text.encode("utf-8", "surrogatepass").splitlines(keepends=True)):
        if isinstance(frame, UnreadableRange):
            raise Malformed(frame.reason, frame.position)
        parts.append(frame.data)
    return b"".join(parts)


def looks_like_hexdump(head: bytes) -> bool:
    """Whether a file that begins like this is hex text, by its first line that isn't a comment."""
    if _TEXT.search(head):
        return False
    for raw in head.removeprefix(b"\xef\xbb\xbf").splitlines():
        text = raw.decode("latin-1").strip()
        if not text or text.startswith("#"):
            continue
        if len(text) >= 1024:
            text = text[: len(text) & ~1]  # the head may end within a byte
        line = _Line(1, 0, 0, text)
        try:
            return bool(_Dump(line, od=False).finish() if _opens_dump(line) else _plain(line))
        except _NotHex:
            return False
    return False


# --- blocks


class _Block:
    """Lines that belong together, read one by one; what is true of the first is found out once."""

    def __init__(self, first: _Line) -> None:
        self._first = first
        self._dumped = _opens_dump(first)
        self._digits = 0 if self._dumped else _digits(first)
        self._od = None if self._dumped else _Od.of(first)
        self._second: _Line | None = None
        self._end = first.position + first.size
        self._last = self._digits
        self._dump: _Dump | None = None
        self._plain: _Plain | None = None

    def takes(self, line: _Line) -> bool:
        """Whether a line belongs here: only dumps and wrapped lines go on."""
        if self._dumped:
            following = _offset(line)
            return line.text.strip() == "*" or (following is not None and following[0] != 0)
        if self._is_od(self._second or line):
            return line.text.strip() == "*" or _od(line) is not None
        return self._digits == WRAP == self._last >= _digits(line) > 0

    def _is_od(self, second: _Line) -> bool:
        return self._od is not None and self._od.goes_on(second)

    def add(self, line: _Line) -> Iterator[HexFrame | UnreadableRange]:
        """Take a line; a frame that it completes."""
        if self._second is None:
            self._second = line
            yield from self._start(line)
        if self._dump is not None:
            self._dump.add(line)
        elif self._plain is not None:
            self._plain.add(line)
        else:
            yield _frame_of(line)
        self._last = _digits(line) if self._digits else 0
        self._end = line.position + line.size

    def _start(self, second: _Line) -> Iterator[HexFrame | UnreadableRange]:
        """Two lines show what the block is."""
        if self._dumped or self._is_od(second):
            self._dump = _Dump(self._first, od=self._is_od(second))
        elif not _whole(self._first):
            self._plain = _Plain(self._first)
        else:
            yield _frame_of(self._first)

    def finish(self) -> Iterator[HexFrame | UnreadableRange]:
        """The frame that is left."""
        if self._second is None and self._dumped:
            self._dump = _Dump(self._first, od=False)
        reader = self._dump or self._plain
        if reader is not None:
            yield _result(self._first, self._end - self._first.position, reader.finish)
        elif self._second is None:
            yield _frame_of(self._first)


def _frame_of(line: _Line) -> HexFrame | UnreadableRange:
    """A line of plain hex that is a frame by itself."""
    return _result(line, line.size, lambda: _plain(line))


def _result(first: _Line, length: int, finish: Callable[[], bytes]) -> HexFrame | UnreadableRange:
    try:
        return HexFrame(first.number, first.position, length, finish())
    except _NotHex as bad:
        return UnreadableRange(first.position, length, bad.reason)


class _Reader:
    """Gathers the bytes of one frame line by line. The first line that is wrong decides: it is kept as the
    reason, and the rest is passed over. Never more is held than a frame may have."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._wrong: _NotHex | None = None

    def add(self, line: _Line) -> None:
        if self._wrong is None:
            try:
                self._add(line)
            except _NotHex as wrong:
                self._wrong = wrong
                self._data.clear()

    def finish(self) -> bytes:
        """The frame. Raises `_NotHex`."""
        if self._wrong is not None:
            raise self._wrong
        return bytes(self._data)

    def _more(self, line: _Line, data: bytes) -> None:
        """The bytes of a line."""
        self._data += data
        if len(self._data) > current().frame + PREFIX:
            raise _NotHex(line, 0, f"more than {current().frame} bytes, which no frame may have")

    def _add(self, line: _Line) -> None:
        raise NotImplementedError


class _Plain(_Reader):
    """Plain hex that was wrapped."""

    def __init__(self, first: _Line) -> None:
        super().__init__()
        self.add(first)

    def _add(self, line: _Line) -> None:
        self._more(line, _plain(line))


class _Dump(_Reader):
    """Lines with offsets. A line waits for the next, whose offset says how many bytes it has."""

    def __init__(self, first: _Line, *, od: bool) -> None:
        super().__init__()
        self._offset = _od if od else _offset
        self._base = -1
        self._above = b""
        self._starred: _Line | None = None
        self._pending: tuple[_Line, tuple[int, int, bool]] | None = None
        self.add(first)

    def _add(self, line: _Line) -> None:
        if line.text.strip() == "*":
            self._take(-1)
            self._starred = line
            return
        found = self._offset(line)
        self._take(-1 if found is None else found[0])
        if found is None:
            raise _NotHex(line, 0, "no offset, though the dump's other lines have one")
        self._pending = line, found
        offset = found[0]
        self._base = offset if self._base < 0 else self._base
        if self._starred is not None:
            self._repeat(self._starred, offset)
            self._starred = None
        if offset - self._base != len(self._data):
            raise _NotHex(line, 0, f"offset {offset:x}, where {self._base + len(self._data):x} is due")

    def _take(self, following: int) -> None:
        """Read the line that waits; following: the next line's offset, -1 if unknown."""
        if self._pending is None:
            return
        line, (offset, start, colon) = self._pending
        self._pending = None
        self._above = _bytes_of(line, start, colon, following - offset if following >= 0 else -1)
        self._more(line, self._above)

    def _repeat(self, starred: _Line, offset: int) -> None:
        above, held = self._above, len(self._data)
        missing = offset - self._base - held
        if not above or missing < 0 or missing % len(above):
            raise _NotHex(starred, 0, f"a repetition up to offset {offset:x}, which no full lines reach")
        if missing + held > current().frame:
            raise _NotHex(starred, 0, f"a repetition of {missing} bytes, more than a frame may have")
        self._data += above * (missing // len(above))

    def finish(self) -> bytes:
        if self._wrong is None:
            self._take(-1)
            if self._starred is not None:
                raise _NotHex(self._starred, 0, "a repetition without an end")
        return super().finish()


def _opens_dump(line: _Line) -> bool:
    """Whether a first line has an offset: with a colon, or with a gap and bytes one by one behind it."""
    found = _OFFSET.match(line.text)
    return found is not None and bool(found[2] or _BYTE.match(line.text, found.end()))


def _digits(line: _Line) -> int:
    """The digits of a line of nothing else, else 0."""
    return len(line.text) if _DIGITS.fullmatch(line.text) else 0


def _whole(line: _Line) -> bool:
    """Whether a line is a frame by itself: its size prefix says so."""
    return int(line.text[:8], 16) == len(line.text) // 2 - 4


# --- lines


def _plain(line: _Line, start: int = 0, stop: int | None = None) -> bytes:
    """Hex digits in pairs, or in longer even groups."""
    text = line.text[start:stop]
    if text.isascii():
        try:
            return bytes.fromhex(text)  # by far the most common, and fast
        except ValueError:
            pass
    parts = []
    at = 0
    while at < len(text):
        between = _BETWEEN.match(text, at)
        if between is not None and between.end() > at:
            at = between.end()
            continue
        if text[at : at + 2] in ("0x", "0X"):
            at += 2
        digits = _DIGITS.match(text, at)
        if digits is None:
            reason = f"{text[at]!r} is no hex digit" if at < len(text) else "0x without digits"
            raise _NotHex(line, start + at, reason)
        if len(digits[0]) % 2:
            behind = text[digits.end() : digits.end() + 1]
            if behind and not behind.isspace() and behind not in ":,":
                raise _NotHex(line, start + digits.end(), f"{behind!r} is no hex digit")
            raise _NotHex(line, start + at, f"an odd number of hex digits: {len(digits[0])}")
        parts.append(bytes.fromhex(digits[0]))
        at = digits.end()
    return b"".join(parts)


def _offset(line: _Line) -> tuple[int, int, bool] | None:
    """A dump line's offset, where its bytes begin, and whether a colon marks it; None for plain hex."""
    found = _OFFSET.match(line.text)
    if found is None:
        return None
    return int(found[1], 16), found.end(), bool(found[2])


def _od(line: _Line) -> tuple[int, int, bool] | None:
    """As `_offset`, for od -A x -t x1: a single space behind the offset."""
    found = _OD.match(line.text)
    return (int(found[1], 16), found.end(1), False) if found else None


class _Od(NamedTuple):
    """A first line that may be od's. od is told from plain hex by its second offset, which is the first
    line's count of bytes."""

    offset: int
    length: int

    @classmethod
    def of(cls, line: _Line) -> _Od | None:
        found = _od(line)
        return cls(found[0], len(line.text[found[1] :].split())) if found else None

    def goes_on(self, line: _Line) -> bool:
        """Whether this may be the second line."""
        if line.text.strip() == "*":
            return self.offset == 0 and self.length > 1
        second = _od(line)
        return second is not None and second[0] - self.offset == self.length > 0


def _bytes_of(line: _Line, start: int, colon: bool, due: int) -> bytes:
    """The bytes of one dump line, of which `due` are expected (-1: unknown), without its ASCII column."""
    while start < len(line.text) and line.text[start].isspace():
        start += 1
    # Every place where the bytes may end; xxd and tcpdump have no gap but the one before the ASCII.
    stops = _stops(line.text, start)
    if due > 0:
        data = bytearray()
        at = start
        for stop in stops:
            try:
                data += _plain(line, at, stop)
            except _NotHex:
                break
            at = stop
            if len(data) >= due:
                break
        if len(data) == due:
            return bytes(data)
    first, second, third = (*islice(_stops(line.text, start), 3), -1, -1)[:3]
    found = _plain(line, start, first)
    if not colon and len(found) == 8 and third >= 0:  # the gap in the middle of hexdump -C
        try:
            middle = found + _plain(line, first, second)
        except _NotHex:
            return found
        return middle if len(middle) <= 16 else found
    return found


def _stops(text: str, start: int) -> Iterator[int]:
    """The places after `start` where a gap begins, and the end."""
    for gap in _GAP.finditer(text, start):
        yield gap.start()
    yield len(text)
