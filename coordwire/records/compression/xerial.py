"""Snappy as Java writes it: blocks of raw snappy after their lengths, after a magic header.

The framing is that of the xerial library's `SnappyOutputStream`: 8 bytes of magic, two int32 versions, then
each block's int32 size and its bytes. Other clients write raw snappy; both are read, distinguished by the
magic. Rules: a block's decompressed size is known from its first bytes and counted before it is decompressed.
"""

from __future__ import annotations

__all__ = ["MAGIC", "frame", "unframe"]

from collections.abc import Callable, Iterator

Buffer = bytes | bytearray | memoryview

MAGIC = b"\x82SNAPPY\x00"
HEADER = MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
"""Magic, version 1, compatible with version 1."""

BLOCK = 32 * 1024
"""Bytes of each block before compression, as Kafka's producer has it."""


def frame(data: bytes, compress: Callable[[memoryview], Buffer]) -> bytes:
    """The blocks of `data`, each compressed, as a Java producer frames them."""
    parts: list[Buffer] = [HEADER]
    view = memoryview(data)
    for start in range(0, len(data), BLOCK):
        block = compress(view[start : start + BLOCK])
        parts += (len(block).to_bytes(4), block)
    return b"".join(parts)


def unframe(data: bytes) -> Iterator[bytes]:
    """The compressed blocks after the header. Raises `ValueError` where one is cut short."""
    pos, size = len(HEADER), len(data)
    if size < pos:
        raise ValueError("the xerial header is cut short")
    while pos < size:
        if data.startswith(MAGIC, pos):  # a second stream, appended to the first
            pos += len(HEADER)
            continue
        start = pos + 4
        pos = start + int.from_bytes(data[pos:start])
        if start > size or pos > size:
            raise ValueError("a block of snappy is cut short")
        yield data[start:pos]
