"""Frames from text: plain hex, and the dumps of xxd, hexdump -C, tcpdump -X and Wireshark.

Strategy: blank lines and comments ("#") part the text into blocks. A block whose first line opens with an
offset is a dump of one frame (a new one begins where the offset is back at 0); in any other, each line is a
frame, except that what `xxd -p` wraps at 60 digits is joined. In plain hex, white space, ":", "," and "0x"
may stand between bytes. In a dump, the bytes of a line end where the next line's offset says, else at
the first wide gap but the one in the middle, so that an ASCII column made of hex digits is not read as bytes.

Rules: nothing is guessed: a line that isn't hex costs its frame, which becomes an `Unreadable` with its place
in the file, and line and column in the reason. Offsets must agree with the bytes before them. "*" repeats the
line above, within the budget of one frame.
"""

from __future__ import annotations

__all__ = ["HexFrame", "from_hex", "looks_like_hexdump", "read_frames"]

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from coordwire.budget import current
from coordwire.capture.model import Unreadable
from coordwire.errors import Malformed

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


def read_frames(lines: Iterable[bytes]) -> Iterator[HexFrame | Unreadable]:
    """The frames of a text (a binary file, or any lines of it), in order, and what isn't hex."""
    block: list[_Line] = []
    position = 0
    for number, raw in enumerate(lines, 1):
        text = raw.decode("latin-1").rstrip()  # a byte a column; what isn't ASCII is never hex
        if number == 1 and text.startswith("\xef\xbb\xbf"):
            text = "   " + text[3:]
        if not text or text.lstrip().startswith("#"):
            yield from _read_block(block)
            block = []
        else:
            line = _Line(number, position, len(raw), text)
            if block and not _continues(block, line):
                yield from _read_block(block)
                block = []
            block.append(line)
        position += len(raw)
    yield from _read_block(block)


def from_hex(text: str) -> bytes:
    """The bytes that a text spells out, all its frames joined. Raises `Malformed` with line and column."""
    parts = []
    for frame in read_frames(text.encode("utf-8", "surrogatepass").splitlines(keepends=True)):
        if isinstance(frame, Unreadable):
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
            return bool(_dump([line]) if _opens_dump(line) else _plain(line))
        except _NotHex:
            return False
    return False


# --- blocks


def _opens_dump(line: _Line) -> bool:
    """Whether a first line has an offset: with a colon, or with a gap and bytes one by one behind it."""
    found = _OFFSET.match(line.text)
    return found is not None and bool(found[2] or _BYTE.match(line.text, found.end()))


def _continues(block: list[_Line], line: _Line) -> bool:
    """Whether a line belongs to the block before it: only dumps and wrapped lines go on."""
    if _opens_dump(block[0]):
        following = _offset(line)
        return line.text.strip() == "*" or (following is not None and following[0] != 0)
    if _is_od([block[0], block[1] if len(block) > 1 else line]):
        return line.text.strip() == "*" or _od(line) is not None
    return _digits(block[0]) == WRAP == _digits(block[-1]) >= _digits(line) > 0


def _digits(line: _Line) -> int:
    """The digits of a line of nothing else, else 0."""
    return len(line.text) if _DIGITS.fullmatch(line.text) else 0


def _read_block(block: list[_Line]) -> Iterator[HexFrame | Unreadable]:
    if not block:
        return
    first, last = block[0], block[-1]
    if len(block) == 1 or _opens_dump(first) or _is_od(block) or not _whole(first):
        yield _read_frame(block, last.position + last.size - first.position)
    else:
        for line in block:
            yield _read_frame([line], line.size)


def _read_frame(block: list[_Line], length: int) -> HexFrame | Unreadable:
    first = block[0]
    try:
        dump = _opens_dump(first) or _is_od(block)
        data = _dump(block) if dump else b"".join(map(_plain, block))
    except _NotHex as bad:
        return Unreadable(first.position, length, bad.reason)
    return HexFrame(first.number, first.position, length, data)


def _whole(line: _Line) -> bool:
    """Whether a line is a frame by itself: its size prefix says so."""
    return int(line.text[:8], 16) == len(line.text) // 2 - 4


# --- lines


def _plain(line: _Line, start: int = 0, stop: int | None = None) -> bytes:
    """Hex digits in pairs, or in longer even groups."""
    text = line.text[:stop]
    if text.isascii():
        try:
            return bytes.fromhex(text[start:])  # by far the most common, and fast
        except ValueError:
            pass
    parts = []
    at = start
    while at < len(text):
        between = _BETWEEN.match(text, at)
        if between is not None and between.end() > at:
            at = between.end()
            continue
        if text[at : at + 2] in ("0x", "0X"):
            at += 2
        digits = _DIGITS.match(text, at)
        if digits is None:
            raise _NotHex(
                line, at, f"{text[at : at + 1]!r} is no hex digit" if text[at:] else "0x without digits"
            )
        if len(digits[0]) % 2:
            behind = text[digits.end() : digits.end() + 1]
            if behind and not behind.isspace() and behind not in ":,":
                raise _NotHex(line, digits.end(), f"{behind!r} is no hex digit")
            raise _NotHex(line, at, f"an odd number of hex digits: {len(digits[0])}")
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


def _is_od(block: list[_Line]) -> bool:
    """od is told from plain hex by its second offset, which is the first line's count of bytes."""
    if len(block) < 2:
        return False
    first, second = _od(block[0]), _od(block[1])
    if first is None:
        return False
    count = len(block[0].text[first[1] :].split())
    if block[1].text.strip() == "*":
        return first[0] == 0 and count > 1
    return second is not None and second[0] - first[0] == count > 0


def _dump(block: list[_Line]) -> bytes:
    """One frame from lines with offsets."""
    of = _od if _is_od(block) else _offset
    data = bytearray()
    base = -1
    above = b""
    starred: _Line | None = None
    for index, line in enumerate(block):
        if line.text.strip() == "*":
            starred = line
            continue
        found = of(line)
        if found is None:
            raise _NotHex(line, 0, "no offset, though the dump's other lines have one")
        offset, start, colon = found
        base = offset if base < 0 else base
        if starred is not None:
            missing = offset - base - len(data)
            if not above or missing < 0 or missing % len(above):
                raise _NotHex(starred, 0, f"a repetition up to offset {offset:x}, which no full lines reach")
            if missing + len(data) > current().frame:
                raise _NotHex(starred, 0, f"a repetition of {missing} bytes, more than a frame may have")
            data += above * (missing // len(above))
            starred = None
        if offset - base != len(data):
            raise _NotHex(line, 0, f"offset {offset:x}, where {base + len(data):x} is due")
        following = of(block[index + 1]) if index + 1 < len(block) else None
        due = following[0] - offset if following is not None else -1
        above = _bytes_of(line, start, colon, due)
        data += above
    if starred is not None:
        raise _NotHex(starred, 0, "a repetition without an end")
    return bytes(data)


def _bytes_of(line: _Line, start: int, colon: bool, due: int) -> bytes:
    """The bytes of one dump line, of which `due` are expected (-1: unknown), without its ASCII column."""
    while start < len(line.text) and line.text[start].isspace():
        start += 1
    # Every place where the bytes may end; xxd and tcpdump have no gap but the one before the ASCII.
    stops = [gap.start() for gap in _GAP.finditer(line.text, start)]
    stops.append(len(line.text))
    if due > 0:
        for stop in stops:
            try:
                data = _plain(line, start, stop)
            except _NotHex:
                break
            if len(data) == due:
                return data
    stop = stops[0]
    data = _plain(line, start, stop)
    if not colon and len(data) == 8 and len(stops) > 2:  # the gap in the middle of hexdump -C
        try:
            middle = _plain(line, start, stops[1])
        except _NotHex:
            return data
        return middle if len(middle) <= 16 else data
    return data
