"""Where a zstd frame ends and the most that it can hold, known from its block headers (RFC 8878).

The library neither says how much of its input a frame took nor notices one that was cut short, and it
allocates what a frame declares. Walking the blocks first answers all three, a few bytes each 128 KB.
"""

from __future__ import annotations

__all__ = ["ZstdFrame", "frames"]

from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 1 << 17
"""The most that one compressed block becomes."""

_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_RLE, _COMPRESSED = 1, 2


class ZstdFrame(NamedTuple):
    """One frame: where it is, the size that it declares (None if it doesn't), the most it can hold."""

    start: int
    end: int
    declared: int | None
    most: int


def frames(data: bytes, enough: int) -> Iterator[ZstdFrame]:
    """The frames in `data`. Counting stops at `enough` bytes of content; `end` is then that of the data.

    Raises `ValueError` where no frame begins, or where it isn't whole.
    """
    pos = 0
    if not data:
        raise ValueError("it is empty")
    while pos < len(data):
        if data[pos + 1 : pos + 4] == _SKIPPABLE and data[pos] >> 4 == 5:
            pos += 8 + int.from_bytes(data[pos + 4 : pos + 8], "little")
            if pos > len(data):
                raise ValueError("it is cut short")
            continue
        if not data.startswith(_MAGIC, pos):
            raise ValueError(f"no frame begins at its byte {pos}")
        frame = _frame(data, pos, enough)
        yield frame
        pos = frame.end


def _frame(data: bytes, start: int, enough: int) -> ZstdFrame:
    size = len(data)
    pos = start + 5
    flags = data[start + 4] if pos <= size else 0
    single = flags >> 5 & 1
    pos += (0 if single else 1) + (0, 1, 2, 4)[flags & 3]
    width = (single, 2, 4, 8)[flags >> 6]
    declared = int.from_bytes(data[pos : pos + width], "little") + (256 if width == 2 else 0)
    pos += width
    most = last = 0
    while not last and most <= enough:
        if pos + 3 > size:
            raise ValueError("it is cut short")
        head = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
        last, kind, length = head & 1, head >> 1 & 3, head >> 3
        most += BLOCK if kind == _COMPRESSED else length
        pos += 4 if kind == _RLE else 3 + length
    if last:
        pos += 4 if flags & 4 else 0  # the content's checksum
    else:
        pos = size
    if pos > size:
        raise ValueError("it is cut short")
    return ZstdFrame(start, pos, declared if width else None, most)
