"""Compressed input: files of gzip, xz and zstd, read as what is inside them.

Strategy: the first bytes tell the format; a raw stream then gives the content piece by piece, so that memory
does not depend on the size. gzip and xz are the standard library's, zstd is `zstandard`
(`coordwire[compression]`), imported when it is needed.

Rules: the content is bounded by the bytes that were read so far: `coordwire.limits`' `decompressed`, and
`MOST_RATIO` bytes for each of them; a dictionary or window beyond `MOST_MEMORY` is refused. Nothing raises
while it is read: what is wrong with the compressed bytes ends the content and stays in `Decompressed.fault`.
Several members, streams or frames in a row are one content, zeros after them padding.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable
from typing import Any, Literal, Protocol, cast

from coordwire.capture.formats.source import Readable
from coordwire.errors import CodecUnavailable, DecodeError, LimitExceeded, Malformed, Truncated
from coordwire.limits import current

Compression = Literal["gzip", "xz", "zstd"]
SUFFIXES: dict[str, Compression] = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
"""How the names of such files end."""

MAGIC = 6
"""Bytes by which the formats are recognised."""

MOST_RATIO = 256
"""Bytes of content for each compressed byte, on top of the budget; real captures reach 10 to 30."""

MOST_MEMORY = 128 << 20
"""Bytes that a dictionary or window may take: `xz -9` takes 65 MB, `zstd --long` 128 MB."""

BLOCK = 64 << 10
"""Compressed bytes that are read at a time."""


def find_compression(head: bytes) -> Compression | None:
    """The compression of a file that begins with `head` (`MAGIC` bytes are enough); None if it has none."""
    if head.startswith(b"\x1f\x8b\x08"):
        return "gzip"
    if head.startswith(b"\xfd7zXZ\0"):
        return "xz"
    skippable = head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5
    return "zstd" if head.startswith(b"\x28\xb5\x2f\xfd") or skippable else None


def decompressed(
    stream: Readable, head: bytes, compression: Compression, *, closes: bool = False
) -> io.BufferedReader:
    """The content of a compressed stream. head: bytes that were read from it already; closes: closing the
    content closes the stream.

    Raises `CodecUnavailable` where the library is not installed. What is wrong with the bytes is found
    while they are read: see `fault_of`.
    """
    return io.BufferedReader(Decompressed(stream, head, compression, closes=closes), BLOCK)


def fault_of(stream: object) -> DecodeError | None:
    """The reason for which a stream's content ended early; None where it did not, or is not compressed."""
    raw = getattr(stream, "raw", None)
    return raw.fault if isinstance(raw, Decompressed) else None


def is_decompressed(stream: object) -> bool:
    """Whether a stream is the content of a compressed one."""
    return isinstance(getattr(stream, "raw", None), Decompressed)


class Decompressed(io.RawIOBase):
    """The content of a compressed stream; `fault` says why it ended early, if it did.

    content_bytes, input_bytes: bytes of content that came out, and of the input that were read.
    """

    def __init__(
        self, stream: Readable, head: bytes, compression: Compression, *, closes: bool = False
    ) -> None:
        self._closes: Any = stream if closes else None
        self.compression: Compression = compression
        self.fault: DecodeError | None = None
        self.content_bytes = self.input_bytes = 0
        self._input = _Input(stream, head)
        self._decoder = _DECODERS[compression](self._input)
        self._budget = current().decompressed
        self._ended = False

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if self._closes is not None:
            self._closes.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        with memoryview(buffer) as outer, outer.cast("B") as view:  # PyPy keeps views that aren't released
            return self._fill(view)

    def _fill(self, view: memoryview) -> int:
        if self._ended or not len(view):
            return 0
        try:
            data = self._decoder.read(len(view))
            self.input_bytes = self._input.input_bytes
            if self.content_bytes + len(data) > self._budget + MOST_RATIO * self.input_bytes:
                raise LimitExceeded(
                    f"{self.input_bytes:,} bytes of {self.compression} hold more than "
                    f"{self.content_bytes:,}: the limit is {MOST_RATIO} times as many, and {self._budget:,}"
                )
        except DecodeError as error:
            return self._end(error)
        except (OSError, MemoryError):  # not of the bytes; the reader reports it
            raise
        except Exception as error:  # each library has its own
            text = " ".join(str(error).split()) or type(error).__name__
            return self._end(Malformed(f"not the bytes of {self.compression}: {text}"))
        if not data:
            self._ended = True
        view[: len(data)] = data
        self.content_bytes += len(data)
        return len(data)

    def _end(self, error: DecodeError) -> int:
        """End the content. The error's position is in the content."""
        self._ended = True
        self.fault = type(error)(error.reason, self.content_bytes)
        return 0


class _Input:
    """The compressed bytes; `input_bytes`: how many were read."""

    def __init__(self, stream: Readable, head: bytes) -> None:
        self._read = getattr(stream, "read1", stream.read)
        self._head = head
        self.input_bytes = 0

    def read(self, size: int = BLOCK) -> bytes:
        """Some bytes, b"" at the end."""
        data, self._head = self._head, b""
        data = data or self._read(min(size, BLOCK)) or b""
        self.input_bytes += len(data)
        return data


class _Decoder(Protocol):
    def read(self, size: int) -> bytes:
        """At most so many bytes of content, b"" at the end."""


def _cut_short(compression: str, size_bytes: int) -> Truncated:
    return Truncated(f"the {compression} data is cut short: it ends after {size_bytes:,} bytes")


class _Gzip:
    """Members, one after the other."""

    def __init__(self, source: _Input) -> None:
        self._source = source
        self._unread = b""
        self._member = zlib.decompressobj(wbits=31)

    def read(self, size: int) -> bytes:
        while True:
            if self._member.eof:
                self._unread = _after(self._member.unused_data, self._source, b"\x1f\x8b", "gzip")
                if not self._unread:
                    return b""
                self._member = zlib.decompressobj(wbits=31)
            elif not self._unread:
                self._unread = self._source.read()
                if not self._unread:
                    # zlib may hold content back that had no room.
                    if part := self._member.decompress(b"", size):
                        return part
                    raise _cut_short("gzip", self._source.input_bytes)
            part = self._member.decompress(self._unread, size)
            self._unread = self._member.unconsumed_tail
            if part:
                return part


class _Xz:
    """Streams, one after the other."""

    def __init__(self, source: _Input) -> None:
        try:
            import lzma
        except ImportError:  # a Python that was built without it
            raise CodecUnavailable("xz needs Python's lzma module, which this Python lacks") from None
        self._new: Callable[[], Any] = lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        self._error = lzma.LZMAError
        self._source = source
        self._stream = self._new()
        self._unread = b""

    def read(self, size: int) -> bytes:
        while True:
            if self._stream.eof:
                self._unread = _after(self._stream.unused_data, self._source, b"\xfd7", "xz")
                if not self._unread:
                    return b""
                self._stream = self._new()
            elif self._stream.needs_input and not self._unread:
                self._unread = self._source.read()
                if not self._unread:
                    raise _cut_short("xz", self._source.input_bytes)
            data, self._unread = self._unread, b""
            try:
                part = self._stream.decompress(data, size)
            except self._error as error:
                if "emory" in str(error):
                    raise LimitExceeded(
                        f"the xz data needs a dictionary beyond the limit of {MOST_MEMORY:,} bytes"
                    ) from None
                raise
            if part:
                return part


def _after(remainder: bytes, source: _Input, magic: bytes, compression: str) -> bytes:
    """The bytes after a member or stream: the beginning of the next, b"" at the end. Zeros are padding."""
    while not (remainder := remainder.lstrip(b"\0")):
        remainder = source.read()
        if not remainder:
            return b""
    while len(remainder) < len(magic) and (part := source.read()):
        remainder += part
    if not remainder.startswith(magic):
        raise Malformed(f"what follows the {compression} data is not {compression}: {remainder[:4].hex(' ')}")
    return remainder


class _Zstd:
    """Frames, one after the other; `_ZstdFrames` checks that none is cut short, as the library doesn't."""

    def __init__(self, source: _Input) -> None:
        try:
            import zstandard
        except ImportError:
            reason = "zstd needs the package zstandard: pip install 'coordwire[compression]'"
            raise CodecUnavailable(reason) from None
        self._source = source
        self._frames = _ZstdFrames()
        context = zstandard.ZstdDecompressor(max_window_size=MOST_MEMORY)
        feed = cast(Any, _Tapped(source, self._frames))
        self._reader = context.stream_reader(feed, read_size=BLOCK, read_across_frames=True)

    def read(self, size: int) -> bytes:
        try:
            part = self._reader.read1(size)
        except Exception as error:
            if "memory" in str(error):
                raise LimitExceeded(
                    f"the zstd data needs a window beyond the limit of {MOST_MEMORY:,} bytes"
                ) from None
            raise
        if not part and not self._frames.is_whole:
            raise _cut_short("zstd", self._source.input_bytes)
        return part


class _Tapped:
    """The input as zstandard reads it, shown to `_ZstdFrames` as it passes."""

    def __init__(self, source: _Input, frames: _ZstdFrames) -> None:
        self._source = source
        self._frames = frames

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._frames.pass_by(data)
        return data


class _ZstdFrames:
    """Where frames end, found by the headers of their blocks (RFC 8878) as the bytes pass by."""

    def __init__(self) -> None:
        self._skip = 0
        self._part = b""
        self._want = 4
        self._step = self._magic
        self._checksum = False

    @property
    def is_whole(self) -> bool:
        """Whether the bytes so far end where a frame does."""
        return self._step == self._magic and not self._skip and not self._part

    def pass_by(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._skip:
                count = min(self._skip, len(data) - at)
                self._skip -= count
            else:
                count = min(self._want - len(self._part), len(data) - at)
                self._part += data[at : at + count]
                if len(self._part) == self._want:
                    part, self._part = self._part, b""
                    self._step(part)
            at += count

    def _next(self, want: int, step: Any) -> None:
        self._want, self._step = want, step

    def _magic(self, part: bytes) -> None:
        if part == b"\x28\xb5\x2f\xfd":
            self._next(1, self._header)
        else:  # a frame to be skipped; anything else the library refuses
            self._next(4, self._skippable)

    def _skippable(self, part: bytes) -> None:
        self._skip = int.from_bytes(part, "little")
        self._next(4, self._magic)

    def _header(self, part: bytes) -> None:
        flags = part[0]
        single = flags >> 5 & 1
        self._checksum = bool(flags & 4)
        self._skip = (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
        self._next(3, self._block)

    def _block(self, part: bytes) -> None:
        head = int.from_bytes(part, "little")
        self._skip = 1 if head >> 1 & 3 == 1 else head >> 3
        if head & 1:
            self._skip += 4 if self._checksum else 0
            self._next(4, self._magic)


_DECODERS: dict[str, type[_Gzip] | type[_Xz] | type[_Zstd]] = {"gzip": _Gzip, "xz": _Xz, "zstd": _Zstd}
