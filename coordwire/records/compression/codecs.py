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
"""

from __future__ import annotations

__all__ = ["CODECS", "LEVELS", "Codec", "compress", "decompress", "missing_codecs"]

import threading
import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, cast

from coordwire.errors import CodecUnavailable, CorruptBatch, LimitExceeded, OutOfRange, counted
from coordwire.limits import current
from coordwire.records import backend
from coordwire.records.compression.frames import (
    XERIAL_MAGIC,
    break_lz4_checksum,
    mend_lz4_checksum,
    xerial_blocks,
    xerial_frame,
    zstd_frames,
)

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
