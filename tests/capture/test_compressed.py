"""Compressed input: the same entries as from what is inside, whatever the steps; its faults are reported."""

from __future__ import annotations

import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture import Capture
from coordwire.capture.formats.compressed import BLOCK, Compression, Decompressed, decompressed, fault_of
from coordwire.errors import (
    CodecUnavailable,
    DecodeError,
    LimitExceeded,
    Malformed,
    Truncated,
    UnreadableRange,
)
from coordwire.limits import limits

zstandard = pytest.importorskip("zstandard")

GROUP = Path(__file__).parent.parent / "data" / "captures" / "kpy__tansu__group-range.pcap"
COMPRESS: dict[Compression, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "xz": lzma.compress,
    "zstd": lambda data: bytes(zstandard.ZstdCompressor(write_checksum=True).compress(data)),
}
every = pytest.mark.parametrize("codec", list(COMPRESS))


def read(data: bytes, codec: Compression, step: int = 1 << 16) -> tuple[bytes, DecodeError | None]:
    """The content, and why it ended early."""
    stream = decompressed(io.BytesIO(data), b"", codec)
    parts = []
    while part := stream.read1(step):
        assert len(part) <= step
        parts.append(part)
    return b"".join(parts), fault_of(stream)


@every
def test_the_same_entries_as_from_what_is_inside(codec: Compression) -> None:
    data = GROUP.read_bytes()
    plain = list(Capture(io.BytesIO(data), "x").entries())
    assert list(Capture(io.BytesIO(COMPRESS[codec](data)), "x").entries()) == plain
    assert len(plain) > 100


@every
@given(
    parts=st.lists(st.binary(max_size=300), min_size=1, max_size=4),
    padding=st.integers(0, 9),
    step=st.integers(1, 50),
)
def test_members_in_a_row_are_one_content(
    codec: Compression, parts: list[bytes], padding: int, step: int
) -> None:
    data = b"".join(COMPRESS[codec](part) for part in parts)
    data += bytes(0 if codec == "zstd" else padding)
    assert read(data, codec, step) == (b"".join(parts), None)


@every
def test_any_prefix_is_cut_short(codec: Compression) -> None:
    content = bytes(range(256)) * 20
    data = COMPRESS[codec](content)
    for end in range(4, len(data)):
        result, fault = read(data[:end], codec)
        assert content.startswith(result)
        assert isinstance(fault, Truncated), end
        assert f"{codec} data is cut short: it ends after {end:,} bytes" in fault.reason


@every
def test_a_cut_capture_is_read_as_far_as_it_goes(codec: Compression) -> None:
    data = GROUP.read_bytes()
    middle = len(data) // 2
    # Two members, so that every codec gives the first half whole.
    cut = COMPRESS[codec](data[:middle]) + COMPRESS[codec](data[middle:])[:30]
    plain = list(Capture(io.BytesIO(data[:middle]), "x").entries())
    *entries, last = Capture(io.BytesIO(cut), "x").entries()
    assert len(entries) >= len(plain) - 1
    assert isinstance(last, UnreadableRange)
    assert "cut short" in last.reason


@every
def test_what_follows_is_reported(codec: Compression) -> None:
    result, fault = read(COMPRESS[codec](b"content") + b"something else", codec)
    assert result == b"content"
    assert isinstance(fault, Malformed)


@every
def test_bytes_that_are_not_the_codecs(codec: Compression) -> None:
    data = bytearray(COMPRESS[codec](bytes(range(256)) * 9))
    data[len(data) // 2] ^= 0xFF
    _, fault = read(bytes(data), codec)
    assert isinstance(fault, DecodeError)


@every
def test_a_bomb_is_refused(codec: Compression) -> None:
    data = COMPRESS[codec](bytes(8 << 20))
    with limits(decompressed=1 << 20):
        result, fault = read(data, codec)
    assert isinstance(fault, LimitExceeded)
    assert len(result) <= (1 << 20) + 256 * len(data)
    assert "hold more than" in fault.reason


@every
def test_work_and_memory_are_linear(codec: Compression) -> None:
    """As many input blocks as the size asks for, and never more content at a time than was asked for."""
    counts = []
    for times in (1, 2, 4):
        pattern = b"".join(zlib.crc32(bytes([n & 255, n >> 8])).to_bytes(4, "big") for n in range(40_000))
        data = b"".join(COMPRESS[codec](pattern) for _ in range(times))
        source = Counting(data)
        raw = Decompressed(source, b"", codec)
        calls, buffer = 0, bytearray(BLOCK)
        while raw.readinto(buffer):
            calls += 1
        assert raw.content_bytes == times * len(pattern)
        counts.append(source.calls + calls)
    assert counts[1] <= 2 * counts[0] + 2
    assert counts[2] <= 4 * counts[0] + 4


class Counting(io.BytesIO):
    calls = 0

    def read1(self, size: int | None = -1, /) -> bytes:
        self.calls += 1
        return super().read1(-1 if size is None else size)


def test_an_xz_dictionary_beyond_the_limit_is_refused() -> None:
    data = bytearray(lzma.compress(b"content", check=lzma.CHECK_NONE))
    size = (data[12] + 1) * 4  # of the block's header, at byte 12
    at = data.index(b"\x21\x01", 12) + 2
    data[at] = 40  # 4 GB
    data[12 + size - 4 : 12 + size] = zlib.crc32(data[12 : 12 + size - 4]).to_bytes(4, "little")
    result, fault = read(bytes(data), "xz")
    assert result == b""
    assert isinstance(fault, LimitExceeded)
    assert "dictionary" in fault.reason


def test_a_zstd_window_beyond_the_limit_is_refused() -> None:
    data = b"\x28\xb5\x2f\xfd" + bytes([0, 21 << 3]) + b"\x01\0\0"  # a window of 2 GB
    result, fault = read(data, "zstd")
    assert result == b""
    assert isinstance(fault, LimitExceeded)
    assert "window" in fault.reason


def test_a_skippable_zstd_frame_is_stepped_over() -> None:
    data = b"\x50\x2a\x4d\x18\x03\0\0\0abc" + bytes(zstandard.compress(GROUP.read_bytes()))
    assert len(list(Capture(io.BytesIO(data), "x").entries())) > 100


def test_one_layer_is_read() -> None:
    with pytest.raises(Malformed, match="xz inside of another compression"):
        Capture(io.BytesIO(gzip.compress(lzma.compress(b"content"))), "x")


def test_nothing_inside() -> None:
    with pytest.raises(Malformed, match="empty"):
        Capture(io.BytesIO(gzip.compress(b"")), "x")
    with pytest.raises(Truncated, match="cut short"):
        Capture(io.BytesIO(gzip.compress(b"")[:12]), "x")


def test_without_lzma(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lzma.compress(b"content")
    monkeypatch.setitem(sys.modules, "lzma", None)
    with pytest.raises(CodecUnavailable, match="lzma"):
        Capture(io.BytesIO(data), "x")


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(CodecUnavailable, match=r"coordwire\[compression\]"):
        Capture(io.BytesIO(b"\x28\xb5\x2f\xfd" + bytes(20)), "x")


@every
def test_a_lack_of_memory_says_nothing_about_the_bytes(
    codec: Compression, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Decompressed(io.BytesIO(COMPRESS[codec](b"content")), b"", codec)

    def starved(size: int) -> bytes:
        raise MemoryError

    monkeypatch.setattr(stream._decoder, "read", starved)
    with pytest.raises(MemoryError):
        stream.read(10)
    assert stream.fault is None
