"""The formats around compressed blocks: LZ4's header checksum, xerial's framing of snappy, zstd's frames.

LZ4: Kafka's old producers hashed the frame's magic number too, and brokers and clients still write and accept
that in message sets of magic 0 (KAFKA-3160). Libraries refuse it, so that it is corrected before they read.

Snappy: Java's framing is that of the xerial library's `SnappyOutputStream`: 8 bytes of magic, two int32
versions, then each block's int32 size and its bytes. Other clients write raw snappy; the magic distinguishes
them. The decompressed size of a block is known from its first bytes and counted before it is decompressed.

Zstd: the library neither reports how much of its input a frame took nor notices one that was cut short, and
it allocates what a frame declares. Walking the block headers first (RFC 8878) answers all three, at a few
bytes each 128 KB.
"""

from __future__ import annotations

__all__ = [
    "LZ4_MAGIC",
    "XERIAL_HEADER",
    "XERIAL_MAGIC",
    "ZstdFrame",
    "break_lz4_checksum",
    "mend_lz4_checksum",
    "xerial_blocks",
    "xerial_frame",
    "zstd_frames",
]

from collections.abc import Callable, Iterator
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview

# --- LZ4 ---

LZ4_MAGIC = b"\x04\x22\x4d\x18"
_MASK = (1 << 32) - 1
_PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2246822519, 3266489917, 668265263, 374761393
_PRIME1 = 2654435761


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    value = _PRIME5 + len(data)
    aligned_size = len(data) & ~3
    for pos in range(0, aligned_size, 4):
        word = int.from_bytes(data[pos : pos + 4], "little")
        value = _rotate((value + word * _PRIME3) & _MASK, 17) * _PRIME4 & _MASK
    for byte in data[aligned_size:]:
        value = _rotate((value + byte * _PRIME5) & _MASK, 11) * _PRIME1 & _MASK
    value = (value ^ value >> 15) * _PRIME2 & _MASK
    value = (value ^ value >> 13) * _PRIME3 & _MASK
    return value ^ value >> 16


def _lz4_header_end(data: bytes) -> int | None:
    """The position of the header's checksum; None if this is not a frame with room for one."""
    if not data.startswith(LZ4_MAGIC) or len(data) < 7:
        return None
    flags = data[4]
    end = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    return end if end < len(data) and end < 16 else None


def mend_lz4_checksum(data: bytes) -> bytes:
    """The frame with the checksum that libraries expect, whatever it had."""
    end = _lz4_header_end(data)
    if end is None:
        return data
    return data[:end] + bytes([xxh32(data[4:end]) >> 8 & 255]) + data[end + 1 :]


def break_lz4_checksum(data: bytes) -> bytes:
    """The frame with the checksum that Kafka 0.8 wrote."""
    end = _lz4_header_end(data)
    if end is None:
        return data
    return data[:end] + bytes([xxh32(data[:end]) >> 8 & 255]) + data[end + 1 :]


# --- snappy ---

XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
"""Magic, version 1, compatible with version 1."""

XERIAL_BLOCK = 32 * 1024
"""Bytes of each block before compression, as Kafka's producer has it."""


def xerial_frame(data: bytes, compress: Callable[[memoryview], Buffer]) -> bytes:
    """The blocks of `data`, each compressed, as a Java producer frames them."""
    parts: list[Buffer] = [XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), XERIAL_BLOCK):
        block = compress(view[start : start + XERIAL_BLOCK])
        parts += (len(block).to_bytes(4), block)
    return b"".join(parts)


def xerial_blocks(data: bytes) -> Iterator[bytes]:
    """The compressed blocks after the header. Raises `ValueError` where one is cut short."""
    pos, size = len(XERIAL_HEADER), len(data)
    if size < pos:
        raise ValueError("the xerial header is cut short")
    while pos < size:
        if data.startswith(XERIAL_MAGIC, pos):  # a second stream, appended to the first
            pos += len(XERIAL_HEADER)
            continue
        start = pos + 4
        pos = start + int.from_bytes(data[pos:start])
        if start > size or pos > size:
            raise ValueError("a block of snappy is cut short")
        yield data[start:pos]


# --- zstd ---

ZSTD_BLOCK = 1 << 17
"""The most that one compressed block becomes."""

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
_RLE, _COMPRESSED = 1, 2


class ZstdFrame(NamedTuple):
    """One frame: where it is, the size that it declares (None if it doesn't), the most it can hold."""

    start: int
    end: int
    declared: int | None
    most: int


def zstd_frames(data: bytes, enough: int) -> Iterator[ZstdFrame]:
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
        if not data.startswith(_ZSTD_MAGIC, pos):
            raise ValueError(f"no frame begins at its byte {pos}")
        frame = _zstd_frame(data, pos, enough)
        yield frame
        pos = frame.end


def _zstd_frame(data: bytes, start: int, enough: int) -> ZstdFrame:
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
        most += ZSTD_BLOCK if kind == _COMPRESSED else length
        pos += 4 if kind == _RLE else 3 + length
    if last:
        pos += 4 if flags & 4 else 0  # the content's checksum
    else:
        pos = size
    if pos > size:
        raise ValueError("it is cut short")
    return ZstdFrame(start, pos, declared if width else None, most)
