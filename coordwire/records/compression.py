"""The codecs of record batches: none, gzip, snappy, lz4 and zstd, by the libraries that measured fastest.

Strategy: gzip is the standard library's zlib, and libdeflate, where it is there, to read what Java writes;
snappy is cramjam, lz4 the lz4 package, zstd zstandard, each imported when a batch first needs it
(`coordwire[compression]` brings them). They are imported by name, from the one table `_MODULES`, since each
may be missing, and since importing one takes 0.5 to 9 ms, while a batch of three records is read in 2 µs.
Rules: what comes out is bounded before it is allocated: by a size that the format declares, by the most that
the format can expand, or by reading in steps. A library's own error never leaves; bytes after the end of gzip
and lz4 data are passed over, as Kafka does.

Measured on 16 KB and 1 MB of JSON lines, decompression in MB/s: gzip 1340 by libdeflate, 720 by zlib, 750 by
isal, 680 by zlib-ng; zstd 860/1000 by zstandard (one context kept), 490/940 by cramjam; lz4 3300/3300 by lz4,
1500/2600 by cramjam; snappy 2200/1300 by cramjam, which python-snappy calls too.

The formats around compressed blocks: LZ4's header checksum, xerial's framing of snappy, zstd's frames.

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

import threading
import zlib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, NamedTuple, cast

from coordwire.errors import CodecUnavailable, CorruptBatch, LimitExceeded, OutOfRange, counted
from coordwire.limits import current
from coordwire.records import backend

__all__ = ["CODECS", "LEVELS", "Codec", "compress", "decompress", "missing_codecs"]

# --- LZ4 ---

LZ4_MAGIC = b"\x04\x22\x4d\x18"
_MASK = (1 << 32) - 1
_PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2246822519, 3266489917, 668265263, 374761393
_PRIME1 = 2654435761


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


@lru_cache(maxsize=64)
def xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes. Headers of frames are mostly the same."""
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
    checksum = xxh32(data[4:end]) >> 8 & 255
    return data if data[end] == checksum else data[:end] + bytes([checksum]) + data[end + 1 :]


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
        frame = _zstd_frame_at(data, pos, enough)
        yield frame
        pos = frame.end


def _zstd_frame_at(data: bytes, start: int, enough: int) -> ZstdFrame:
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


# --- codecs ---


Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""By their number in a batch's attributes."""

LEVELS = {"gzip": range(1, 10), "lz4": range(17), "zstd": range(-131072, 23)}
"""The levels that can be asked of those that have any; by default 6, 0 (fast) and 3, as Kafka's are."""

STEP = 1 << 20
"""Bytes that come out at a time where nothing else bounds them."""

LZ4_CHUNK = 1 << 16
"""Bytes of lz4 that its library is given at a time, since it copies what it hasn't read yet at each step."""

Buffer = bytes | bytearray | memoryview
_contexts = threading.local()
_GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""As Java writes it: no time, no flags, unknown system."""

_GZIP_MEMBER, _GZIP_MAGIC = b"\x1f\x8b\x08\x00", b"\x1f\x8b\x08"
"""What one begins with that has no flags, and any."""

_MOST_GZIP = 1032
"""How many bytes deflate can make of one."""


class _TooMuch(Exception):
    """The output is larger than the limit."""


def decompress(
    codec: Codec, data: Buffer, limit: int | None = None, *, magic: int = 2, offset: int = 0
) -> bytes:
    """The bytes that one batch's records were before compression.

    limit: the most that may come out, in bytes; by default what `coordwire.limits` sets. magic: of the batch;
    in 0 and 1 lz4's header checksum isn't compared. offset: the position that an error states.

    Raises `CorruptBatch` for bytes that aren't the codec's, `LimitExceeded` beyond the limit and
    `CodecUnavailable` without the library.
    """
    if codec == "none":
        return bytes(data)
    if limit is None:
        limit = current().decompressed
    reader = _READERS[codec]
    library = _library(codec)
    wire = data if isinstance(data, bytes) else bytes(data)
    if codec == "lz4" and magic < 2:
        wire = mend_lz4_checksum(wire)
    try:
        out = reader(library, wire, limit)
    except _TooMuch:
        reason = f"{counted(len(wire), 'byte')} of {codec} decompress to more than {limit}"
        raise LimitExceeded(reason, offset, "records") from None
    except MemoryError:  # which says nothing about the bytes: what may come out is bounded
        raise
    except Exception as error:  # each library has its own
        text = " ".join(str(error).split()) or type(error).__name__
        raise CorruptBatch(f"not valid {codec}: {text}", offset, "records") from None
    if len(out) > limit:
        raise LimitExceeded(
            f"{counted(len(wire), 'byte')} of {codec} decompress to {len(out)}, over {limit}",
            offset,
            "records",
        )
    return out


def compress(codec: Codec, data: bytes, level: int | None = None, *, magic: int = 2) -> bytes:
    """The bytes as one batch holds them.

    level: see `LEVELS`; snappy has none. magic: of the batch; in 0 lz4 gets the header checksum that Kafka
    0.8 wrote.

    Raises `OutOfRange` for a level that the codec doesn't have, `CodecUnavailable` without the library.
    """
    if codec == "none":
        return data
    if level is not None and level not in LEVELS.get(codec, ()):
        known = LEVELS.get(codec)
        has = f"has levels {known[0]} to {known[-1]}" if known else "has no levels"
        raise OutOfRange(f"{codec} {has}, got {level}")
    library = _library(codec)
    if codec == "gzip":
        deflate = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, wbits=-15)
        body = deflate.compress(data) + deflate.flush()
        tail = zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
        return _GZIP_HEADER + body + tail
    if codec == "snappy":
        return xerial_frame(data, library.snappy.compress_raw)
    if codec == "lz4":
        framed = cast(
            bytes, library.compress(data, compression_level=level or 0, block_linked=False, store_size=False)
        )
        return break_lz4_checksum(framed) if magic == 0 else framed
    return cast(bytes, _zstd_compressor(library, level).compress(data))


def _zstd_compressor(library: Any, level: int | None) -> Any:
    if level is not None:
        return library.ZstdCompressor(level=level)
    context = getattr(_contexts, "zstd_compressor", None)
    if context is None:
        context = _contexts.zstd_compressor = library.ZstdCompressor(level=3)
    return context


_MODULES = {"gzip": "zlib", "snappy": "cramjam", "lz4": "lz4.frame", "zstd": "zstandard"}


def missing_codecs() -> list[str]:
    """The codecs whose libraries aren't installed."""
    return [codec for codec, name in _MODULES.items() if find_spec(name.partition(".")[0]) is None]


def _library(codec: str) -> Any:
    name = _MODULES[codec]
    try:
        module: ModuleType = import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        reason = f"{codec} needs the package {package}: pip install 'coordwire[compression]'"
        raise CodecUnavailable(reason) from None
    return module


def _read_gzip(library: Any, data: bytes, limit: int) -> bytes:
    output = _read_whole_gzip(data, limit)
    if output is not None:
        return output
    parts: list[bytes] = []
    room = limit
    most = room + 1 if len(data) * _MOST_GZIP <= room else 16 * STEP
    view = memoryview(data)
    pos, input_size = 0, len(data)
    while True:
        member = library.decompressobj(wbits=31)
        unread: Buffer = b""
        while not member.eof:
            if not unread:
                unread = view[pos : pos + input_size]
                pos += len(unread)
                input_size *= 2
            part = _step(member.decompress(unread, most), room)
            room -= len(part)
            parts.append(part)
            unread = member.unconsumed_tail
            if not part and not unread and pos == len(data) and not member.eof:
                raise ValueError("it is cut short")
        pos -= len(member.unused_data)
        input_size = 64  # little at first, as a member copies what it hands back
        if not data.startswith(_GZIP_MAGIC, pos):  # no further member
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _read_whole_gzip(data: bytes, limit: int) -> bytes | None:
    """The content of one plain member, by libdeflate at the size that its end states; None if that may be
    wrong."""
    end = data[-4:]
    size = int.from_bytes(end, "little")
    if not 0 < size <= min(limit, _MOST_GZIP * len(data)) or not data.startswith(_GZIP_MEMBER):
        return None
    library = _libdeflate()
    if library is None:
        return None
    if backend.contains(data, end + _GZIP_MAGIC):  # a member of this size may end there, before another
        return None
    try:
        out = bytes(library.gzip_decompress(data, size))
    except library.DeflateError:
        return None  # zlib words it
    return out if len(out) == size else None


@cache
def _libdeflate() -> Any:
    try:
        return import_module("deflate")
    except ImportError:
        return None


def _read_snappy(library: Any, data: bytes, limit: int) -> bytes:
    snappy = library.snappy
    if not data.startswith(XERIAL_MAGIC):
        return bytes(_snappy_block(snappy, data, limit))
    parts = []
    for block in xerial_blocks(data):
        part = _snappy_block(snappy, block, limit)
        limit -= len(part)
        parts.append(part)
    return b"".join(parts)


def _snappy_block(snappy: Any, block: bytes, limit: int) -> Buffer:
    size = snappy.decompress_raw_len(block)
    if size > 22 * len(block):  # a copy makes 64 bytes of 3
        raise ValueError(f"{counted(len(block), 'byte')} can't decompress to {size}")
    if size > limit:
        raise _TooMuch
    return cast(Buffer, snappy.decompress_raw(block))


def _read_lz4(library: Any, data: bytes, limit: int) -> bytes:
    sized = len(data) > 4 and data[4] & 8  # a declared size would be allocated unseen
    if not sized and len(data) * 255 <= limit:  # the most that lz4 can expand
        return cast(bytes, library.decompress(data))
    frame = library.LZ4FrameDecompressor()
    parts: list[bytes] = []
    view = memoryview(data)
    for start in range(0, len(data), LZ4_CHUNK):
        chunk: Buffer = view[start : start + LZ4_CHUNK]
        while not frame.eof:
            part = _step(frame.decompress(chunk, STEP), limit)
            limit -= len(part)
            parts.append(part)
            chunk = b""
            if frame.needs_input:
                break
    if not frame.eof:
        raise ValueError("it is cut short")
    return b"".join(parts)


def _step(part: bytes, room: int) -> bytes:
    if len(part) > room:
        raise _TooMuch
    return part


def _in_steps(step: Callable[[], bytes], room: int) -> bytes:
    """The output of `step`, called until it returns nothing, at most `room` bytes."""
    parts: list[bytes] = []
    while part := step():
        parts.append(_step(part, room))
        room -= len(part)
    return b"".join(parts)


def _read_zstd(library: Any, data: bytes, limit: int) -> bytes:
    context = getattr(_contexts, "zstd", None)
    if context is None:
        context = _contexts.zstd = library.ZstdDecompressor()
    parts: list[bytes] = []
    for start, end, declared, most in zstd_frames(data, limit):
        if most > limit:  # perhaps too much: the rest in steps
            stream = context.stream_reader(data[start:], read_across_frames=True)
            parts.append(_in_steps(lambda: stream.read(STEP), limit))  # noqa: B023 (called at once)
            break
        if declared is not None and declared > most:
            raise ValueError(f"{counted(declared, 'byte')} declared, its blocks can hold {most}")
        frame = data if end - start == len(data) else data[start:end]
        part = _zstd_frame(library, context, frame, most)
        limit -= len(part)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _zstd_frame(library: Any, context: Any, frame: bytes, most: int) -> bytes:
    guess = min(most, max(1 << 14, 8 * len(frame)))  # smaller than `most`, as it is allocated
    if guess < most:
        try:
            return cast(bytes, context.decompress(frame, max_output_size=guess))
        except library.ZstdError:
            pass  # bad, or more than was guessed
    return cast(bytes, context.decompress(frame, max_output_size=max(most, 1)))


_READERS: dict[str, Callable[[Any, bytes, int], bytes]] = {
    "gzip": _read_gzip,
    "snappy": _read_snappy,
    "lz4": _read_lz4,
    "zstd": _read_zstd,
}
