"""Where a batch ends, by its header: the checks of length and magic that Kafka's own reader does.

Rule: a header that no batch can have raises `CorruptBatch`; one whose batch is cut short is not an error.
"""

from __future__ import annotations

from coordwire.errors import counted

__all__ = ["LARGEST", "LEAST", "LOG_OVERHEAD", "TO_MAGIC", "batch_size", "claimed_size", "content_end"]

from collections.abc import Callable
from struct import Struct

from coordwire.errors import CorruptBatch

LOG_OVERHEAD = 12
"""Bytes of offset and length, which the length doesn't count."""

TO_MAGIC = 17
LEAST = (14, 22, 49)
"""The smallest length by magic."""

LARGEST = 0x7FFFFFFF - LOG_OVERHEAD
"""The largest length: Kafka keeps the whole batch's size in an int."""

_LENGTH = Struct(">8xi").unpack_from
_MAGIC = Struct(">16xb").unpack_from

BLANK = 1 << 16
"""Bytes that are compared with zeros at a time."""


def content_end(view: memoryview) -> int:
    """The position at which the zeros at the end begin; these may be gigabytes."""
    end = len(view)
    while end:
        start = max(0, end - BLANK)
        used = len(view[start:end].tobytes().rstrip(b"\0"))
        if used:
            return start + used
        end = start
    return 0


def batch_size(view: memoryview, pos: int, is_blank: Callable[[int], bool] | None = None) -> int:
    """The size in bytes of the batch whose header is at `pos`; 0 if it isn't all there.

    is_blank: whether nothing but zeros follows; None to look. Raises `CorruptBatch` for a header that no
    batch can have.
    """
    remaining = len(view) - pos
    if remaining < LOG_OVERHEAD:
        return 0
    (length,) = _LENGTH(view, pos)
    if length < LEAST[0]:
        if not length and (content_end(view[pos:]) == 0 if is_blank is None else is_blank(pos)):
            raise CorruptBatch(f"only {counted(remaining, 'zero byte')} to the end", pos, "length")
        raise CorruptBatch(f"a batch can't have a length of {counted(length, 'byte')}", pos + 8, "length")
    if length > LARGEST:
        raise CorruptBatch(f"a batch can't have a length of {counted(length, 'byte')}", pos + 8, "length")
    if remaining < TO_MAGIC:
        return 0
    (magic,) = _MAGIC(view, pos)
    if not 0 <= magic <= 2:
        raise CorruptBatch(f"expected a batch's magic of 0, 1 or 2, got {magic}", pos + 16, "magic")
    if length < LEAST[magic]:
        raise CorruptBatch(
            f"a batch of magic {magic} can't have a length of {counted(length, 'byte')}", pos + 8, "length"
        )
    size = LOG_OVERHEAD + int(length)
    return size if size <= remaining else 0


def claimed_size(view: memoryview, pos: int) -> int:
    """The result of `batch_size`; 0 also for a header that no batch can have."""
    try:
        return batch_size(view, pos, _not_blank)
    except CorruptBatch:
        return 0


def _not_blank(_: int) -> bool:
    return False
