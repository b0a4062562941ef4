"""Batch headers of an object ahead of the walk that needs them: found by what they look like.

Strategy: a scout looks for the first header in the bytes at its start, then goes from header to header by
their lengths until the end of its stretch. Rules: what it finds is bytes to have, never a verdict: a value
that looks like a batch leads a scout astray, which costs requests and changes no row; it gives up at the
first header that cannot be one.
"""

from __future__ import annotations

__all__ = ["headers_from"]

from collections.abc import Callable, Iterator
from struct import Struct

from coordwire.records.batch import HEADER

_HEAD = Struct(">qiib")
"""Base offset, length, leader epoch, magic."""
_LENGTH_FIELDS = 12
"""Bytes before those that the length counts."""


def headers_from(
    read: Callable[[int, int], bytes], start: int, end: int, size: int, near: int
) -> list[tuple[int, bytes]]:
    """Positions and bytes of the headers between `start` and `end`, as far as they are found.

    read: the object's bytes between two positions; size: the object's; near: how many bytes the first header
    is looked for in, 0 where it is at `start`.
    """
    found: list[tuple[int, bytes]] = []
    begin = start
    if near:
        window = read(start, min(start + near, size))
        found.append((start, window))
        first = next(_headers_in(window, size - start, 64 * near), None)
        if first is None:
            return found
        begin = start + first
    while begin < end and begin + HEADER.size <= size:
        head = read(begin, begin + HEADER.size)
        found.append((begin, head))
        length = _batch_length(head, 0, size - begin)
        if not length:
            break
        begin += length
    return found


def _headers_in(window: bytes, rest: int, most: int) -> Iterator[int]:
    """Where headers of batches of at most `most` bytes seem to be. rest: bytes from the window's start on."""
    magic = _HEAD.size - 1
    at = window.find(2, magic)
    while at >= 0:
        position = at - magic
        if 0 < _batch_length(window, position, rest - position) <= most:
            yield position
        at = window.find(2, at + 1)


def _batch_length(data: bytes, at: int, rest: int) -> int:
    """Bytes of the batch whose header may be there; 0 if it is none."""
    offset, length, epoch, magic = _HEAD.unpack_from(data, at)
    length += _LENGTH_FIELDS
    if magic != 2 or offset < 0 or epoch < -1 or not HEADER.size <= length <= rest:
        return 0
    return int(length)
