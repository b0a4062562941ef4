"""The checksum of any range of a buffer, after linear work at a cost that doesn't depend on its length.

Strategy: a CRC is linear, so that crc(a + b) follows from crc(a), crc(b) and the length of b alone. The CRCs
of the buffer from a first byte up to each `BLOCK` are kept, as far as a range reached yet; the CRC of a range
is then that up to its last whole block, less what is before the range, and at most two parts of blocks
are read. What a CRC becomes when blocks of zeros follow is a multiplication in GF(2), one table look-up a
byte for each power of two of them. Rules: a range of `SHORT` bytes is read as it is; 4 bytes are kept for
each block; the buffer must not change.
"""

from __future__ import annotations

__all__ = ["CRC32", "CRC32C", "Checksums"]

from array import array
from collections.abc import Callable
from functools import cache
from typing import NamedTuple
from zlib import crc32

from coordwire.records import backend

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
