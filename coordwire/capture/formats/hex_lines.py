"""One line of hex text: plain digits, or an offset, bytes and an ASCII column; see `hexdump`.

Rules: a line is looked at by itself, but for the count of its bytes, which the next line's offset gives; what
isn't hex raises `NotHex` with line and column.
"""

from __future__ import annotations

__all__ = [
    "HexLine",
    "NotHex",
    "OdStart",
    "count_digits",
    "dump_bytes",
    "find_od_offset",
    "find_offset",
    "is_whole",
    "opens_dump",
    "plain_bytes",
]

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

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

    def goes_on(self, line: HexLine) -> bool:
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
