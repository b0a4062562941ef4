"""Where a batch begins and ends, and where the next one begins behind bytes that are none.

Strategy: `batch_size` judges one header by what Kafka's own reader checks. Behind a bad one a regular
expression runs over the bytes for what looks like a header (at C speed, and without stopping in zeros), and
the checksum decides. Rules: where a batch is bad inside but another stands where it ends, its length is
trusted; the checksums that the searches in one buffer may compute are bounded, so that bytes made of headers
can't make them crawl; a batch that seems cut short at the end is corrupt if later ones stand inside it, and
not what a record's value may hold.
"""

from __future__ import annotations

__all__ = ["Search", "batch_size"]

import re
from collections.abc import Iterator
from struct import Struct
from zlib import crc32

from coordwire.errors import CorruptBatch
from coordwire.records import native
from coordwire.records.batch import HEADER

LOG_OVERHEAD = 12
"""Bytes of offset and length, which the length doesn't count."""

TO_MAGIC = 17
LEAST = (14, 22, 49)
"""The smallest length by magic."""

LARGEST = 0x7FFFFFFF - LOG_OVERHEAD
"""The largest length: Kafka keeps the whole batch's size in an int."""

_LENGTH = Struct(">8xi").unpack_from
_MAGIC = Struct(">16xb").unpack_from
_OFFSET = Struct(">q").unpack_from
_CRC2 = Struct(">17xI").unpack_from
_CRC = Struct(">12xI").unpack_from
_NOT_ZERO = re.compile(rb"[^\0]")
_ZEROS = re.compile(rb"\0{64,}")

# Sought by the byte of the magic: behind it attributes that say nothing unknown, before it an offset that
# isn't negative and a length of 14 bytes to 128 MB.
_HEADER = re.compile(
    rb"(?:\x02(?=.{4}\x00[\x00-\x7f])|[\x00\x01](?=[\x00-\x0b]))"
    rb"(?<=[\x00-\x7f].{7}(?!\x00\x00\x00)[\x00-\x07].{3}.{4}.|[\x00-\x7f].{7}\x00\x00\x00[\x0e-\xff].{4}.)",
    re.DOTALL,
)


def batch_size(view: memoryview, pos: int) -> int:
    """The size in bytes of the batch whose header stands at `pos`; 0 if it isn't all there.

    Raises `CorruptBatch` for a header that no batch can have.
    """
    left = len(view) - pos
    if left < LOG_OVERHEAD:
        return 0
    (length,) = _LENGTH(view, pos)
    if length < LEAST[0]:
        if not length and not _NOT_ZERO.search(view, pos):
            raise CorruptBatch(f"nothing but {left} zero bytes to the end", pos, "length")
        raise CorruptBatch(f"a batch can't have a length of {length} bytes", pos + 8, "length")
    if length > LARGEST:
        raise CorruptBatch(f"a batch can't have a length of {length} bytes", pos + 8, "length")
    if left < TO_MAGIC:
        return 0
    (magic,) = _MAGIC(view, pos)
    if not 0 <= magic <= 2:
        raise CorruptBatch(f"no batch has magic {magic}", pos + 16, "magic")
    if length < LEAST[magic]:
        raise CorruptBatch(
            f"a batch of magic {magic} can't have a length of {length} bytes", pos + 8, "length"
        )
    size = LOG_OVERHEAD + int(length)
    return size if size <= left else 0


TRIAL = 64
"""What a look at a header counts for, in bytes that go through a checksum."""

WINDOW = 512, 1 << 16
"""Bytes that are searched for headers at a time, at first and at most; each counts as one that goes through a
checksum."""


class Search:
    """The search for batches in one buffer.

    work: what it may still do, in bytes that go through checksums; with none left, it finds nothing more.
    length_at, head: where a batch's length stands, and the bytes up to its magic.
    """

    length_at = 8
    head = TO_MAGIC

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self.work = (64 << 20) + 8 * len(view)

    def size(self, pos: int) -> int:
        """As `batch_size` has it."""
        return batch_size(self.view, pos)

    def behind(self, start: int, size: int) -> int:
        """Where to go on behind the bad batch at `start`; its size, as far as it is known (else 0)."""
        end = start + size
        if size and (end == len(self.view) or self._sound_end(end) or self.looks_right(end)):
            return end
        for pos, _ in self._sound(start + 1):
            return pos
        return end if size else len(self.view)

    def incomplete(self, start: int, *, after: int | None) -> None:
        """Raise `CorruptBatch` if the batch at `start`, which runs beyond the end, isn't the last one.

        after: the last offset before it, if what claims to be a batch may be anything else; then its own
        offset needn't be true. None to be sure: a record's value may hold a batch.
        """
        if len(self.view) - start < self.head:
            return
        for pos, end in self._sound(start + 1):
            if self._tells(pos, end, start, after):
                behind = start + self.length_at + 4
                length = int.from_bytes(self.view[behind - 4 : behind])
                left = len(self.view) - behind
                reason = f"a length of {length} bytes, of {left} left, with whole batches among them"
                raise CorruptBatch(reason, start + self.length_at, "length")

    def _tells(self, pos: int, end: int, start: int, after: int | None) -> bool:
        """Whether the sound batch from `pos` to `end` belongs behind what stands at `start`, not into it."""
        (later,) = _OFFSET(self.view, pos)
        if later > _OFFSET(self.view, start)[0] and self._goes_on(end, after is None):
            return True
        return after is not None and bool(later > after) and self._is_followed(end)

    def _goes_on(self, end: int, sure: bool) -> bool:
        """Whether what stands behind a sound batch vouches for it."""
        if len(self.view) - end < HEADER.size and not sure:
            return True
        return self.looks_right(end) or bool(self._sound_end(end))

    def _is_followed(self, end: int) -> bool:
        """Whether what ends here is the last of the bytes, or followed by a sound batch."""
        return end == len(self.view) or bool(self._sound_end(end))

    def _sound(self, pos: int) -> Iterator[tuple[int, int]]:
        """The batches from `pos` on whose checksums are right: where they begin and end."""
        for start in self._candidates(pos):
            end = self._sound_end(start)
            if end:
                yield start, end
            elif self.work < 0:
                return

    def _sound_end(self, start: int) -> int:
        """The end of the batch at `start`, if one stands there and its checksum is right; else 0."""
        self.work -= TRIAL
        if self.work < 0:
            return 0
        try:
            size = self.size(start)
        except CorruptBatch:
            return 0
        if not size or size > self.work:
            return 0
        self.work -= size
        return start + size if self._checksum(start, size) else 0

    def _candidates(self, pos: int) -> Iterator[int]:
        """Where something like a header begins, from `pos` on."""
        window = WINDOW[0]
        while pos < len(self.view) and self.work >= 0:
            stop = min(pos + window, len(self.view))
            yield from self._within(pos, stop)
            self.work -= stop - pos
            pos, window = stop, min(2 * window, WINDOW[1])

    def _within(self, pos: int, stop: int) -> Iterator[int]:
        """Where something like a header begins, from `pos` up to `stop`."""
        magic, last = pos + 16, stop + 16
        for run in _ZEROS.finditer(self.view, pos, stop):
            # A magic byte further in would have a length of 0 before it.
            for match in _HEADER.finditer(self.view, magic, run.start() + 8 + 6):
                yield match.start() - 16
            magic = max(magic, run.end())
        for match in _HEADER.finditer(self.view, magic, last + 6):
            if match.start() < last:
                yield match.start() - 16

    def _checksum(self, start: int, size: int) -> bool:
        batch = self.view[start : start + size]
        if batch[16] == 2:
            return bool(_CRC2(batch)[0] == native.crc32c(batch[21:]))
        return bool(_CRC(batch)[0] == crc32(batch[16:]))

    def looks_right(self, pos: int) -> bool:
        """Whether a header of magic 2 stands at `pos` that nothing else is likely to be."""
        if len(self.view) - pos < HEADER.size:
            return False
        base, length, _, magic, _, attributes, last, _, _, _, _, _, count = HEADER.unpack_from(self.view, pos)
        return bool(
            magic == 2
            and LEAST[2] <= length <= LARGEST
            and base >= 0
            and 0 <= attributes < 128
            and attributes & 7 <= 4
            and 0 <= count <= last + 1
        )
