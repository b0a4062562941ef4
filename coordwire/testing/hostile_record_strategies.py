"""Hostile record sets: valid ones, mutated, mostly with their checksums corrected.

Strategy: a mutation that leaves the checksum wrong tests the checksum and nothing after it. So the last step
gives each batch that can still be found, by the length that it claims, the checksum of what it now covers.
Rule: as for `hostile_bytes`: some of what comes out is valid all the same, and all of it shrinks.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import crc32c

from coordwire.records.compression import Codec
from coordwire.testing.hypothesis_import import st
from coordwire.testing.record_strategies import record_sets, sized_sets

__all__ = ["hostile_record_sets"]

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_LENGTH, _MAGIC, _START = 8, 16, 12
"""Where a batch has its length and its magic, in any format, and from where the length counts."""

_CRC = {0: 12, 1: 12, 2: 17}
_COUNT = 57
"""Where a batch of magic 2 has the number of its records; the records follow."""

_NUMBERS = [0, 1, -1, -2, 4, 7, 1 << 16, (1 << 31) - 1, -(1 << 31)]
_VARINTS = [
    b"\x00",
    b"\x01",
    b"\x02",
    b"\x7f",
    b"\x80\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x80" * 9 + b"\x01",
    b"\xff" * 12,
]


def hostile_record_sets(
    *, codecs: Sequence[Codec] | None = None, magics: Sequence[int] = (2,)
) -> st.SearchStrategy[bytes]:
    """Bytes in the place of a record set that a reader shouldn't trust; some are valid all the same.

    Valid sets cut off or extended, with bytes flipped or replaced, lengths, counts and attributes of any
    value, over-long varints in the records; three of four have right checksums again, so that what is after
    them is reached. And bytes at random. codecs, magics: as for `record_sets`, of the sets before they are
    mutated: what comes out may claim any codec and magic.
    """
    valid = record_sets(codecs=codecs, magics=magics, max_batches=2).filter(bool)
    large = sized_sets(codecs, magics, 1, st.just("large")).filter(bool)

    @st.composite
    def mutated(draw: _Draw, valid: st.SearchStrategy[bytes], times: st.SearchStrategy[int]) -> bytes:
        data = bytearray(draw(valid))
        for _ in range(draw(times)):
            draw(st.sampled_from(_MUTATIONS))(draw, data)
        if draw(st.integers(0, 3)):
            _seal(data)
        return bytes(data)

    mutations = [mutated(valid, st.integers(1, 2)) for _ in range(3)]
    return st.one_of(*mutations, mutated(large, st.integers(0, 1)), st.binary(max_size=80))


def _seal(data: bytearray) -> None:
    """Give each batch that can be found the checksum of what its length covers."""
    at = 0
    while at + _MAGIC < len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH)
        end, crc = at + _START + length, at + _CRC.get(data[at + _MAGIC], 17)
        if not crc + 4 <= end <= len(data):
            return
        covered = bytes(data[crc + 4 : end])
        sum_of = crc32c.crc32c if data[at + _MAGIC] == 2 else zlib.crc32
        struct.pack_into(">I", data, crc, sum_of(covered))
        at = end


def _cut(draw: _Draw, data: bytearray) -> None:
    del data[draw(st.integers(0, len(data))) :]


def _cut_and_tell(draw: _Draw, data: bytearray) -> None:
    """Cut off, with a length that fits what is left."""
    del data[draw(st.integers(min(_MAGIC, len(data)), len(data))) :]
    if len(data) >= _START:
        struct.pack_into(">i", data, _LENGTH, len(data) - _START)


def _extend(draw: _Draw, data: bytearray) -> None:
    data += draw(st.binary(min_size=1, max_size=8))


def _flip(draw: _Draw, data: bytearray) -> None:
    if data:
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))


def _number(draw: _Draw, data: bytearray) -> None:
    """Another length, count of records, or number anywhere."""
    if len(data) > _START:
        at = draw(st.sampled_from([_LENGTH, _COUNT]) | st.integers(0, len(data) - 4))
        if at + 4 <= len(data):
            struct.pack_into(">i", data, at, draw(st.sampled_from(_NUMBERS)))


def _varint(draw: _Draw, data: bytearray) -> None:
    """A varint of a record replaced, with the batch's length corrected."""
    if len(data) > _COUNT + 4 and data[_MAGIC] == 2:
        at = draw(st.integers(_COUNT + 4, len(data) - 1))
        new = draw(st.sampled_from(_VARINTS))
        (length,) = struct.unpack_from(">i", data, _LENGTH)
        data[at : at + 1] = new
        grown = length + len(new) - 1
        if abs(grown) < 1 << 31:
            struct.pack_into(">i", data, _LENGTH, grown)


_MUTATIONS = [_number, _cut, _cut_and_tell, _varint, _flip, _extend]
