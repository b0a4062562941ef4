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
"""

from __future__ import annotations

__all__ = ["HexFrame", "from_hex", "looks_like_hexdump", "read_frames"]

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from coordwire.capture.formats.hex_lines import (
    HexLine,
    NotHex,
    OdStart,
    count_digits,
    dump_bytes,
    find_od_offset,
    find_offset,
    is_whole,
    opens_dump,
    plain_bytes,
)
from coordwire.errors import Malformed, UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

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

    def takes(self, line: HexLine) -> bool:
        """Whether a line belongs here: only dumps and wrapped lines go on."""
        if self._dumped:
            following = find_offset(line)
            return line.text.strip() == "*" or (following is not None and following[0] != 0)
        if self._is_od(self._second or line):
            return line.text.strip() == "*" or find_od_offset(line) is not None
        return self._digits == WRAP == self._last >= count_digits(line) > 0

    def _is_od(self, second: HexLine) -> bool:
        return self._od is not None and self._od.goes_on(second)

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
