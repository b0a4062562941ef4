"""Frames from text: plain hex, and the dumps of xxd, hexdump -C, tcpdump -X and Wireshark.

Strategy: blank lines and comments ("#") part the text into blocks. A block whose first line opens with an
offset is a dump of one frame (a new one begins where the offset is back at 0); in any other, each line is a
frame, except that what `xxd -p` wraps at 60 digits is joined. In plain hex, white space, ":", "," and "0x"
may be between bytes. In a dump, the bytes of a line end where the next line's offset says, else at
the first wide gap but the one in the middle, so that an ASCII column made of hex digits is not read as bytes.

Rules: nothing is guessed: a line that isn't hex costs its frame, which becomes an `UnreadableRange` with its
position in the file, and line and column in the reason. Offsets must agree with the bytes before them. "*"
repeats the line above, within the budget of one frame. A frame's lines are read one by one, and each of their
bytes once: never more is held than the bytes of one frame and two lines.

A line is looked at by itself, but for the count of its bytes, which the next line's offset gives; what isn't
hex raises `NotHex` with line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from coordwire.errors import UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

# An offset: 4 digits or more, then a colon, a wide gap, or nothing (the last line of hexdump -C).
_OFFSET = re.compile(r"\s*(?:0[xX])?([0-9a-fA-F]{4,16})(:(?=\s)|(?=\s{2})|(?=\s*$))")
_OD = re.compile(r"([0-9a-fA-F]{6,8})((?: [0-9a-fA-F]{2})+\s*|\s*)$")
_BYTE = re.compile(r"\s{2,}[0-9a-fA-F]{2}(?=\s|$)")
_GAP = re.compile(r"\s{2,}|\t")
_DIGITS = re.compile(r"[0-9a-fA-F]+")
_BETWEEN = re.compile(r"[\s:,]+|$")


class HexLine(NamedTuple):
    """A line of a text. number: from 1; position: of its first byte in the file."""

    number: int
    position: int
    size: int  # in the file, with the line's end
    text: str


class NotHex(Exception):
    """A place where a text isn't hex; never leaves the two modules."""

    def __init__(self, line: HexLine, column: int, reason: str) -> None:
        self.line = line
        self.reason = f"line {line.number}, column {column + 1}: {reason}"
        self.position = line.position + column


def opens_dump(line: HexLine) -> bool:
    """Whether a first line has an offset: with a colon, or with a gap and bytes one by one after it."""
    match = _OFFSET.match(line.text)
    return match is not None and bool(match[2] or _BYTE.match(line.text, match.end()))


def count_digits(line: HexLine) -> int:
    """The digits of a line of nothing else, else 0."""
    return len(line.text) if _DIGITS.fullmatch(line.text) else 0


def is_whole(line: HexLine) -> bool:
    """Whether a line is a whole frame, by its size prefix."""
    return int(line.text[:8], 16) == len(line.text) // 2 - 4


def plain_bytes(line: HexLine, start: int = 0, stop: int | None = None) -> bytes:
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
            reason = f"expected a hex digit, got {text[at]!r}" if at < len(text) else "0x without digits"
            raise NotHex(line, start + at, reason)
        if len(digits[0]) % 2:
            following = text[digits.end() : digits.end() + 1]
            if following and not following.isspace() and following not in ":,":
                raise NotHex(line, start + digits.end(), f"expected a hex digit, got {following!r}")
            raise NotHex(line, start + at, f"expected an even number of hex digits, got {len(digits[0])}")
        parts.append(bytes.fromhex(digits[0]))
        at = digits.end()
    return b"".join(parts)


def find_offset(line: HexLine) -> tuple[int, int, bool] | None:
    """A dump line's offset, where its bytes begin, and whether a colon marks it; None for plain hex."""
    match = _OFFSET.match(line.text)
    if match is None:
        return None
    return int(match[1], 16), match.end(), bool(match[2])


def find_od_offset(line: HexLine) -> tuple[int, int, bool] | None:
    """As `find_offset`, for od -A x -t x1: a single space after the offset."""
    match = _OD.match(line.text)
    return (int(match[1], 16), match.end(1), False) if match else None


class OdStart(NamedTuple):
    """A first line that may be od's. od differs from plain hex by its second offset, which is the first
    line's count of bytes."""

    offset: int
    length: int

    @classmethod
    def of(cls, line: HexLine) -> OdStart | None:
        offset = find_od_offset(line)
        return cls(offset[0], len(line.text[offset[1] :].split())) if offset else None

    def is_second_line(self, line: HexLine) -> bool:
        """Whether this may be the second line."""
        if line.text.strip() == "*":
            return self.offset == 0 and self.length > 1
        second = find_od_offset(line)
        return second is not None and second[0] - self.offset == self.length > 0


def dump_bytes(line: HexLine, start: int, colon: bool, due: int) -> bytes:
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
                data += plain_bytes(line, at, stop)
            except NotHex:
                break
            at = stop
            if len(data) >= due:
                break
        if len(data) == due:
            return bytes(data)
    first, second, third = (*islice(_stops(line.text, start), 3), -1, -1)[:3]
    row = plain_bytes(line, start, first)
    if not colon and len(row) == 8 and third >= 0:  # the gap in the middle of hexdump -C
        try:
            middle = row + plain_bytes(line, first, second)
        except NotHex:
            return row
        return middle if len(middle) <= 16 else row
    return row


def _stops(text: str, start: int) -> Iterator[int]:
    """The places after `start` where a gap begins, and the end."""
    for gap in _GAP.finditer(text, start):
        yield gap.start()
    yield len(text)


WRAP = 60  # digits on a line of xxd -p

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
            line = HexLine(number, position, len(raw), text)
            if block is None or not block.includes_line(line):
                if block is not None:
                    yield from block.finish()
                block = _Block(line)
            else:
                yield from block.add(line)
        position += len(raw)
    if block is not None:
        yield from block.finish()


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
        line = HexLine(1, 0, 0, text)
        try:
            return bool(_Dump(line, od=False).finish() if opens_dump(line) else plain_bytes(line))
        except NotHex:
            return False
    return False


# --- blocks


class _Block:
    """Lines that belong together, read one by one; what is true of the first is found out once."""

    def __init__(self, first: HexLine) -> None:
        self._first = first
        self._dumped = opens_dump(first)
        self._digits = 0 if self._dumped else count_digits(first)
        self._od = None if self._dumped else OdStart.of(first)
        self._second: HexLine | None = None
        self._end = first.position + first.size
        self._last = self._digits
        self._dump: _Dump | None = None
        self._plain: _Plain | None = None

    def includes_line(self, line: HexLine) -> bool:
        """Whether a line belongs here: only dumps and wrapped lines go on."""
        if self._dumped:
            following = find_offset(line)
            return line.text.strip() == "*" or (following is not None and following[0] != 0)
        if self._is_od(self._second or line):
            return line.text.strip() == "*" or find_od_offset(line) is not None
        return self._digits == WRAP == self._last >= count_digits(line) > 0

    def _is_od(self, second: HexLine) -> bool:
        return self._od is not None and self._od.is_second_line(second)

    def add(self, line: HexLine) -> Iterator[HexFrame | UnreadableRange]:
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
        self._last = count_digits(line) if self._digits else 0
        self._end = line.position + line.size

    def _start(self, second: HexLine) -> Iterator[HexFrame | UnreadableRange]:
        """Two lines show what the block is."""
        if self._dumped or self._is_od(second):
            self._dump = _Dump(self._first, od=self._is_od(second))
        elif not is_whole(self._first):
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


def _frame_of(line: HexLine) -> HexFrame | UnreadableRange:
    """A line of plain hex that is a frame by itself."""
    return _result(line, line.size, lambda: plain_bytes(line))


def _result(first: HexLine, length: int, finish: Callable[[], bytes]) -> HexFrame | UnreadableRange:
    try:
        return HexFrame(first.number, first.position, length, finish())
    except NotHex as bad:
        return UnreadableRange(first.position, length, bad.reason)


class _Reader:
    """Gathers the bytes of one frame line by line. The first line that is wrong decides: it is kept as the
    reason, and the rest is passed over. Never more is held than a frame may have."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._wrong: NotHex | None = None

    def add(self, line: HexLine) -> None:
        if self._wrong is None:
            try:
                self._add(line)
            except NotHex as wrong:
                self._wrong = wrong
                self._data.clear()

    def finish(self) -> bytes:
        """The frame. Raises `NotHex`."""
        if self._wrong is not None:
            raise self._wrong
        return bytes(self._data)

    def _add_line(self, line: HexLine, data: bytes) -> None:
        """The bytes of a line."""
        self._data += data
        if len(self._data) > current().frame + PREFIX:
            raise NotHex(line, 0, f"more than {current().frame} bytes, the limit of a frame")

    def _add(self, line: HexLine) -> None:
        raise NotImplementedError


class _Plain(_Reader):
    """Plain hex that was wrapped."""

    def __init__(self, first: HexLine) -> None:
        super().__init__()
        self.add(first)

    def _add(self, line: HexLine) -> None:
        self._add_line(line, plain_bytes(line))


class _Dump(_Reader):
    """Lines with offsets. A line waits for the next, whose offset says how many bytes it has."""

    def __init__(self, first: HexLine, *, od: bool) -> None:
        super().__init__()
        self._offset = find_od_offset if od else find_offset
        self._base = -1
        self._above = b""
        self._starred: HexLine | None = None
        self._pending: tuple[HexLine, tuple[int, int, bool]] | None = None
        self.add(first)

    def _add(self, line: HexLine) -> None:
        if line.text.strip() == "*":
            self._take(-1)
            self._starred = line
            return
        place = self._offset(line)
        self._take(-1 if place is None else place[0])
        if place is None:
            raise NotHex(line, 0, "expected an offset, as on the dump's other lines")
        self._pending = line, place
        offset = place[0]
        self._base = offset if self._base < 0 else self._base
        if self._starred is not None:
            self._repeat(self._starred, offset)
            self._starred = None
        if offset - self._base != len(self._data):
            raise NotHex(line, 0, f"expected offset {self._base + len(self._data):x}, got {offset:x}")

    def _take(self, following: int) -> None:
        """Read the line that waits; following: the next line's offset, -1 if unknown."""
        if self._pending is None:
            return
        line, (offset, start, colon) = self._pending
        self._pending = None
        self._above = dump_bytes(line, start, colon, following - offset if following >= 0 else -1)
        self._add_line(line, self._above)

    def _repeat(self, starred: HexLine, offset: int) -> None:
        above, size = self._above, len(self._data)
        missing = offset - self._base - size
        if not above or missing < 0 or missing % len(above):
            raise NotHex(
                starred, 0, f"a repetition up to offset {offset:x}, which is not at the end of a full line"
            )
        if missing + size > current().frame:
            raise NotHex(starred, 0, f"a repetition of {missing} bytes, over the limit of a frame")
        self._data += above * (missing // len(above))

    def finish(self) -> bytes:
        if self._wrong is None:
            self._take(-1)
            if self._starred is not None:
                raise NotHex(self._starred, 0, "a repetition without an end")
        return super().finish()
