"""Where the next batch begins after bytes that are not a batch.

Strategy: `batch_size` checks one header as Kafka's own reader does. After a bad one a regular expression
runs over the bytes for what looks like a header (at C speed, and without stopping in zeros); the header and
the lengths in it are checked next, and at last the checksum decides. All of it is linear in the bytes,
whatever headers claim: `Checksums` gives the checksum of any range at a cost that doesn't depend on its
length, and the search never goes over bytes twice, since the last result holds for all positions up to it. So
no sound batch is lost to a budget.

Rules: `Search` trusts the length of a bad batch if another batch begins at its end; the bytes inside count as
its records. A batch that seems cut short at the end is corrupt if later ones are inside it that a record's
value can't hold. `ThoroughSearch` looks inside both, and marks what it finds there: its caller decides
whether a sound batch in there belongs to the log. The first sound batch takes its range, and no other begins
in it.

Checksums: a CRC is linear, so that crc(a + b) follows from crc(a), crc(b) and the length of b alone. The CRCs
of the buffer from a first byte up to each `BLOCK` are kept, as far as a range reached yet; the CRC of a range
is then that up to its last whole block, less what is before the range, and at most two parts of blocks
are read. What a CRC becomes when blocks of zeros follow is a multiplication in GF(2), one table look-up a
byte for each power of two of them. Rules: a range of `SHORT` bytes is read as it is; 4 bytes are kept for
each block; the buffer must not change.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from coordwire.errors import CorruptBatch, counted
from coordwire.records import backend
from coordwire.records.batch import (
    CODEC_BITS,
    CRC_AT,
    CRC_FROM,
    HEADER,
    LARGEST,
    LEAST,
    TO_MAGIC,
    batch_size,
    content_end,
)
from coordwire.records.compression import CODECS
from coordwire.records.strict import LEAST as LEAST_RECORD

_OFFSET = Struct(">q").unpack_from
_UINT32 = Struct(">I").unpack_from
_CRC_AT, _CRC_FROM = 12, 16
_RUNS = re.compile(rb"[\x00\x01](?:(?<=\x00)\x00{63,}|(?<=\x01)\x01{63,})")

# Both begin with a set of bytes, for which `re` looks fastest. A header is found by its magic: after it are
# attributes without unknown bits, before it an offset that isn't negative and a length of 14 bytes to 128 MB.
_HEADER = re.compile(
    rb"[\x00-\x02](?:(?<=\x02)(?=.{4}\x00[\x00-\x7f])|(?<!\x02)(?=[\x00-\x0b]))"
    rb"(?<=[\x00-\x7f].{7}(?!\x00\x00\x00)[\x00-\x07].{3}.{4}.|[\x00-\x7f].{7}\x00\x00\x00[\x0e-\xff].{4}.)",
    re.DOTALL,
)


WINDOW = 512, 1 << 16
"""Bytes that are searched for headers at a time, at first and at most."""

WASTE = 4
"""How many bytes may be read in vain for checksums, for each byte that was passed: by the plain functions,
which are faster where little is bad."""

_KEY_AT = (18, 26)
"""By magic 0 and 1, where a message has the length of its key."""

_KEY_END = 14
"""From the magic 1 up to the end of that."""

_INT32 = Struct(">i").unpack_from


class Search:
    """The search for batches in one buffer, from its start to its end.

    length_at, head: where a batch's length is, and the bytes up to its magic.
    """

    length_at = 8
    head = TO_MAGIC

    def __init__(self, view: memoryview) -> None:
        self.view = view
        self._last_search: tuple[int, tuple[int, int] | None] = (1, (0, 0))
        self._later = _LaterBatches()
        self._checksums: dict[bool, Checksums] = {}
        self._spent = 0

    @cached_property
    def _content_end(self) -> int:
        return content_end(self.view)

    def is_blank(self, pos: int) -> bool:
        """Whether nothing but zeros follows from `pos` to the end."""
        return pos >= self._content_end

    def size(self, pos: int) -> int:
        """The size in bytes of the batch at `pos`, as `batch_size` has it."""
        return batch_size(self.view, pos, self.is_blank)

    def after(self, start: int, size: int) -> int:
        """Where to go on after the bad batch at `start`; its size, as far as it is known (else 0)."""
        end = start + size
        if self._is_confirmed(start, size):
            return end
        if self.is_blank(start):
            return len(self.view)
        bounds = self.next_sound(start + 1)
        if bounds is not None:
            return bounds[0]
        return end if size else len(self.view)

    def _is_confirmed(self, start: int, size: int) -> bool:
        """Whether the bytes after the bad batch at `start` confirm its size."""
        end = start + size
        return bool(size) and (end == len(self.view) or self.looks_right(end) or self.sound_end(end) > 0)

    def incomplete(self, start: int, *, after: int | None) -> None:
        """Raise `CorruptBatch` if the batch at `start`, which runs beyond the end, isn't the last one.

        after: the last offset before it, if what claims to be a batch may be anything else; then its own
        offset needn't be true. None to be sure: a record's value may hold a batch.
        """
        if len(self.view) - start >= self.head and self._is_followed(start, after):
            raise self._not_last(start)

    def _not_last(self, start: int) -> CorruptBatch:
        after = start + self.length_at + 4
        length = int.from_bytes(self.view[after - 4 : after])
        remaining = len(self.view) - after
        reason = f"a length of {counted(length, 'byte')}, {remaining} left, with whole batches among them"
        return CorruptBatch(reason, start + self.length_at, "length")

    def _is_followed(self, start: int, after: int | None) -> bool:
        """Whether some sound batch belongs after what is at `start`, not into it.

        One with a later offset does if what follows it vouches for it. So does one of a later offset than
        `after`, if it is followed by another or by nothing.
        """
        own, later = self._claimed_offset(start), self._later
        pos = start + 1
        while not later.shows_later(pos, own, after):
            bounds = self._sound_from(max(pos, later.scanned))
            later.scanned = len(self.view) if bounds is None else bounds[0] + 1
            if bounds is None:
                return False
            begin, end = bounds
            offset = self._offset(begin)
            followed = self.sound_end(end) > 0
            near = len(self.view) - end < HEADER.size and after is not None
            if followed or near or self.looks_right(end):
                later.vouched.add(begin, offset)
            if followed or end == len(self.view):
                later.followed.add(begin, offset)
        return True

    def _offset(self, pos: int) -> int:
        """The offset that the batch at `pos` states."""
        return int(_OFFSET(self.view, pos)[0])

    _claimed_offset = _offset

    def next_sound(self, pos: int) -> tuple[int, int] | None:
        """The first batch from `pos` on whose checksum is right: where it begins and ends; None for none."""
        start, bounds = self._last_search
        if pos < start or (bounds is not None and pos > bounds[0]):
            bounds = self._sound_from(pos)
            self._last_search = pos, bounds
        return bounds

    def _sound_from(self, pos: int) -> tuple[int, int] | None:
        for start in self._candidates(pos):
            end = self.sound_end(start)
            if end:
                return start, end
        return None

    def sound_end(self, start: int) -> int:
        """The end of the batch at `start`, if there is one and its checksum is right; else 0."""
        try:
            size = self.size(start)
        except CorruptBatch:
            return 0
        if not size or not self._is_plausible(start, size):
            return 0
        computed, stated, _ = self._sums(start, size)
        return start + size if computed == stated else 0

    def check(self, start: int, size: int, check: Callable[[], None]) -> None:
        """Run `check`, which compares the checksum of the batch at `start`; raises what it does.

        Once too many bytes were spent on checks that fail, a check that would fail isn't run.
        """
        if self._spent + size > WASTE * start:
            computed, stated, at = self._sums(start, size)
            if computed != stated:
                name, kind = ("CRC-32C", "batch") if self._is_modern(start) else ("CRC-32", "message")
                reason = f"the {name} is {computed:#010x}, the {kind} says {stated:#010x}"
                raise CorruptBatch(reason, at, "checksum")
        try:
            check()
        except CorruptBatch as error:
            if error.path == "checksum":
                self._spent += size
            raise

    def _is_plausible(self, start: int, size: int) -> bool:
        """Whether the lengths in a possible batch allow that its records can be read."""
        view = self.view
        magic = view[start + 16]
        if magic == 2:
            attributes, count = view[start + 22], _INT32(view, start + HEADER.size - 4)[0]
            codec = attributes & CODEC_BITS
            if codec:
                return codec < len(CODECS) and count >= 0
            return bool(
                0 <= count * LEAST_RECORD <= size - HEADER.size and (count > 0) == (size > HEADER.size)
            )
        if magic > 1:  # the bytes have changed since their length was read
            return False
        pos, end = start + _KEY_AT[magic], start + size
        key = _INT32(view, pos)[0]
        pos += 4 + max(key, 0)
        if key < -1 or pos + 4 > end:
            return False
        value = _INT32(view, pos)[0]
        return bool(value >= -1 and pos + 4 + max(value, 0) == end)

    def _candidates(self, pos: int) -> Iterator[int]:
        """The positions of possible headers, from `pos` on."""
        window = WINDOW[0]
        while pos < len(self.view):
            stop = min(pos + window, len(self.view))
            yield from self._within(pos, stop)
            pos, window = stop, min(2 * window, WINDOW[1])

    def _within(self, pos: int, stop: int) -> Iterator[int]:
        """The positions of possible headers, from `pos` up to `stop`."""
        magic, last = pos + 16, stop + 16
        for run in _RUNS.finditer(self.view, pos, stop):
            # A magic byte further in would have a length of 0 before it, or one below that of its key.
            for match in _HEADER.finditer(self.view, magic, run.start() + 8 + 6):
                yield match.start() - 16
            magic = max(magic, run.end() - (_KEY_END if self.view[run.start()] else 0))
        for match in _HEADER.finditer(self.view, magic, last + 6):
            if match.start() < last:
                yield match.start() - 16

    def _is_modern(self, start: int) -> bool:
        """Whether the checksum of the batch at `start` is a CRC-32C."""
        return self.view[start + 16] == 2

    def _sums(self, start: int, size: int) -> tuple[int, int, int]:
        """The checksum of the batch at `start`, the one that it states, and where."""
        if self._is_modern(start):
            at, begin = start + CRC_AT, start + CRC_FROM
        else:
            at, begin = start + _CRC_AT, start + _CRC_FROM
        return self._sum(begin, start + size, self._is_modern(start)), _UINT32(self.view, at)[0], at

    def _sum(self, start: int, end: int, modern: bool) -> int:
        if self._spent + end - start <= WASTE * start:
            self._spent += end - start
            return (CRC32C if modern else CRC32).update(self.view[start:end], 0)
        checksums = self._checksums.get(modern)
        if checksums is None:
            checksums = self._checksums[modern] = Checksums(self.view, CRC32C if modern else CRC32, start)
        return checksums.of(start, end)

    def looks_right(self, pos: int) -> bool:
        """Whether a header of magic 2 is at `pos` that nothing else is likely to be."""
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


class ThoroughSearch(Search):
    """The search that also looks inside the range that a bad batch claims.

    claimed: up to where the last of these ranges goes in which a sound batch was found, and which `Search`
    would have passed over whole. Of ranges that overlap, that is the first.
    """

    claimed = 0

    def _claim(self, start: int, end: int) -> None:
        if start >= self.claimed:
            self.claimed = end

    def after(self, start: int, size: int) -> int:
        """Where to go on: at the next sound batch, or after the bad one if that comes first."""
        if not self._is_confirmed(start, size):
            return super().after(start, size)
        end = start + size
        bounds = self.next_sound(start + 1)
        if bounds is None or bounds[0] >= end:
            return end
        self._claim(start, end)
        return bounds[0]

    def incomplete(self, start: int, *, after: int | None) -> None:
        """Raise `CorruptBatch` if a sound batch follows, with any offset."""
        if len(self.view) - start < self.head or self.next_sound(start + 1) is None:
            return
        if not self._is_followed(start, after):
            self._claim(start, len(self.view))
        raise self._not_last(start)


class _LaterBatches:
    """What is known of sound batches ahead.

    vouched, followed: those that something vouches for, and that are followed by one or by nothing. scanned:
    up to where it is known.
    """

    def __init__(self) -> None:
        self.scanned = 0
        self.vouched, self.followed = _Highest(), _Highest()

    def shows_later(self, pos: int, own: int, after: int | None) -> bool:
        """Whether, from `pos` on, one above offset `own` is vouched for, or one above `after` is followed."""
        if self.vouched.above(pos, own):
            return True
        return after is not None and self.followed.above(pos, after)


class _Highest:
    """The highest offset from any place on: places that rise, with offsets that fall."""

    def __init__(self) -> None:
        self._places: list[int] = []
        self._offsets: list[int] = []

    def add(self, place: int, offset: int) -> None:
        """Add a batch that is after all others."""
        while self._offsets and self._offsets[-1] <= offset:
            self._offsets.pop()
            self._places.pop()
        self._offsets.append(offset)
        self._places.append(place)

    def above(self, place: int, offset: int) -> bool:
        """Whether one from `place` on has a higher offset."""
        at = bisect_left(self._places, place)
        return at < len(self._places) and self._offsets[at] > offset


# --- checksums ---


BLOCK_BITS = 8
BLOCK = 1 << BLOCK_BITS
SHORT = 2 * BLOCK

Matrix = tuple[int, ...]


class ChecksumKind(NamedTuple):
    """A CRC of 32 bits, reflected. polynomial: bit 31 is that of x^0; update: goes on from an earlier one."""

    polynomial: int
    update: Callable[[memoryview, int], int]


def _crc32c(data: memoryview, before: int) -> int:
    return backend.crc32c(data, before)


CRC32 = ChecksumKind(0xEDB88320, crc32)
CRC32C = ChecksumKind(0x82F63B78, _crc32c)


class Checksums:
    """The checksums of one kind of ranges in `view`; first: where the ranges to come are likely to begin."""

    def __init__(self, view: memoryview, kind: ChecksumKind, first: int = 0) -> None:
        self._view = view
        self._kind = kind
        self._restart(first)

    def _restart(self, first: int) -> None:
        self._first = first
        self._upto = array("I", [0])
        """The CRC from `first` on, up to each block."""

    def of(self, start: int, end: int) -> int:
        """The CRC of the bytes from `start` to `end`."""
        view, update = self._view, self._kind.update
        if end - start <= SHORT:
            return update(view[start:end], 0)
        if start < self._first:
            self._restart(start)
        block = (start - self._first + BLOCK - 1) >> BLOCK_BITS
        last = (end - self._first) >> BLOCK_BITS
        self._extend(last)
        head = update(view[start : self._first + (block << BLOCK_BITS)], 0)
        checksum = self._upto[last] ^ _followed(self._kind.polynomial, head ^ self._upto[block], last - block)
        return update(view[self._first + (last << BLOCK_BITS) : end], checksum)

    def _extend(self, last: int) -> None:
        upto, view, update = self._upto, self._view, self._kind.update
        crc = upto[-1]
        start = self._first + ((len(upto) - 1) << BLOCK_BITS)
        for at in range(start, self._first + (last << BLOCK_BITS), BLOCK):
            crc = update(view[at : at + BLOCK], crc)
            upto.append(crc)


def _followed(polynomial: int, crc: int, blocks: int) -> int:
    """The contribution of a CRC to the CRC of its bytes and `blocks` further blocks."""
    power = 0
    while blocks:
        if blocks & 1:
            table0, table1, table2, table3 = _tables(polynomial, power)
            crc = table0[crc & 255] ^ table1[crc >> 8 & 255] ^ table2[crc >> 16 & 255] ^ table3[crc >> 24]
        blocks >>= 1
        power += 1
    return crc


@cache
def _tables(polynomial: int, power: int) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """For each byte of a CRC, the CRC after 2^power blocks of zeros."""
    columns = _columns(polynomial, power)
    tables = []
    for low in range(0, 32, 8):
        table = [0] * 256
        for value in range(1, 256):
            higher_bits = value & (value - 1)
            table[value] = table[higher_bits] ^ columns[low + (value ^ higher_bits).bit_length() - 1]
        tables.append(tuple(table))
    table0, table1, table2, table3 = tables
    return table0, table1, table2, table3


@cache
def _columns(polynomial: int, power: int) -> Matrix:
    """For each bit of a CRC, the CRC after 2^power blocks of zeros."""
    if power > -BLOCK_BITS - 3:
        half = _columns(polynomial, power - 1)
        return tuple(_times(half, column) for column in half)
    return polynomial, *(1 << bit for bit in range(31))  # one bit of zero


def _times(columns: Matrix, value: int) -> int:
    total = 0
    for column in columns:
        if value & 1:
            total ^= column
        value >>= 1
    return total
