"""The codecs: there and back, bounded, and no library's error."""

from __future__ import annotations

import gzip
import random
import sys
import zlib
from contextlib import suppress
from functools import cache

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CodecUnavailable, CorruptBatch, LimitExceeded, OutOfRange
from coordwire.records import Record, batches, compression, encode_batch
from coordwire.records.compression import LEVELS, Codec, compress, decompress

from .data import with_body

PACKED: tuple[Codec, ...] = ("gzip", "snappy", "lz4", "zstd")
TEXT = b"".join(b'{"id": %d, "name": "x"}' % (n * 7919) for n in range(8000))
UNSIZED = zstandard.ZstdCompressor(write_content_size=False)


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("size", [0, 1, 100, 32768, 32769, 100_000, len(TEXT)])
def test_there_and_back(codec: Codec, size: int) -> None:
    data = TEXT[:size]
    packed = compress(codec, data)
    assert decompress(codec, packed) == data
    assert decompress(codec, memoryview(bytearray(packed)), size) == data
    if size:
        with pytest.raises(LimitExceeded):
            decompress(codec, packed, size - 1)


@given(st.binary(max_size=300), st.sampled_from(PACKED), st.integers(0, 1000))
def test_any_bytes(data: bytes, codec: Codec, limit: int) -> None:
    with suppress(CorruptBatch, LimitExceeded):
        assert len(decompress(codec, data, limit)) <= limit


@given(st.binary(max_size=300), st.sampled_from(PACKED), st.data())
def test_changed_bytes(data: bytes, codec: Codec, more: st.DataObject) -> None:
    packed = bytearray(compress(codec, data))
    packed[more.draw(st.integers(0, len(packed) - 1))] ^= more.draw(st.integers(1, 255))
    with suppress(CorruptBatch, LimitExceeded):
        decompress(codec, bytes(packed), 1000)


@pytest.mark.parametrize("codec", PACKED)
def test_every_cut(codec: Codec) -> None:
    data = TEXT[:40_000]
    packed = compress(codec, data)
    for cut in [*range(60), *range(60, len(packed), 97), len(packed) - 1]:
        try:  # xerial blocks say nothing of how many there are
            assert codec == "snappy"
            assert data.startswith(decompress(codec, packed[:cut]))
        except (CorruptBatch, AssertionError):
            with pytest.raises(CorruptBatch):
                decompress(codec, packed[:cut])


@pytest.mark.parametrize("codec", PACKED)
def test_levels(codec: Codec) -> None:
    for level in [LEVELS[codec][-1], max(LEVELS[codec][0], -5)] if codec in LEVELS else []:
        assert decompress(codec, compress(codec, TEXT, level)) == TEXT
    with pytest.raises(OutOfRange, match=codec):
        compress(codec, TEXT, 99)


def test_libraries_of_others() -> None:
    assert decompress("gzip", gzip.compress(TEXT[:500]) + gzip.compress(TEXT[500:])) == TEXT
    assert decompress("gzip", gzip.compress(TEXT) + b"trailing") == TEXT
    parts = [TEXT[:1], b"", random.Random(1).randbytes(5000), b"", TEXT]
    many = b"".join(map(gzip.compress, parts)) + gzip.compress(b"") * 5000
    assert decompress("gzip", many) == b"".join(parts)
    for cut in (-1, -9):
        with pytest.raises(CorruptBatch, match="cut short"):
            decompress("gzip", many[:cut])
    assert decompress("gzip", gzip.compress(TEXT) * 2) == TEXT * 2
    assert decompress("snappy", bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT
    assert decompress("snappy", compress("snappy", TEXT) + compress("snappy", TEXT)) == TEXT + TEXT
    for block in (0, 4, 7):
        framed = lz4.frame.compress(TEXT, block_size=block, content_checksum=True, store_size=True)
        assert decompress("lz4", framed) == TEXT
        assert decompress("lz4", framed + b"\0\0\0") == TEXT
    assert decompress("zstd", UNSIZED.compress(TEXT)) == TEXT
    skipped = b"\x50\x2a\x4d\x18\1\0\0\0!"
    assert decompress("zstd", UNSIZED.compress(TEXT) + skipped + UNSIZED.compress(TEXT)) == TEXT * 2
    with pytest.raises(CorruptBatch, match="cut short"):
        decompress("zstd", UNSIZED.compress(TEXT) + skipped[:-1])
    checked = zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)
    assert decompress("zstd", checked) == TEXT
    with pytest.raises(CorruptBatch, match="no frame begins at its byte"):
        decompress("zstd", checked + b"abcdefgh")
    with pytest.raises(CorruptBatch):
        decompress("zstd", checked[:-1] + b"\xff")


def test_declared_sizes_are_not_believed() -> None:
    small = zstandard.ZstdCompressor().compress(bytes(300))
    assert small[4] & 0xC0 == 0x40
    lying = small[:4] + bytes([small[4] & 0x3F | 0xC0]) + (1 << 40).to_bytes(8, "little") + small[7:]
    with pytest.raises(CorruptBatch, match="1099511627776 bytes declared"):
        decompress("zstd", lying)
    sized = lz4.frame.compress(b"abc" * 50, store_size=True)
    broken = compression.mend_lz4_checksum(sized[:6] + (1 << 40).to_bytes(8, "little") + sized[14:])
    with pytest.raises(CorruptBatch):
        decompress("lz4", broken)
    with pytest.raises(CorruptBatch, match="can't decompress"):
        decompress("snappy", b"\xff\xff\xff\xff\x0f" + b"\0" * 20)


@cache
def bomb(codec: Codec, mebibytes: int = 1024) -> bytes:
    if codec == "snappy":
        block = bytes(cramjam.snappy.compress_raw(bytes(32 << 20)))
        return compression.XERIAL_HEADER + (len(block).to_bytes(4) + block) * (mebibytes // 32)
    if codec == "lz4":
        frame = lz4.frame.LZ4FrameCompressor(block_size=7)
        parts = [frame.begin(), *(frame.compress(bytes(1 << 20)) for _ in range(mebibytes)), frame.flush()]
        return b"".join(map(bytes, parts))
    stream = zlib.compressobj(9, wbits=31) if codec == "gzip" else UNSIZED.compressobj()
    return b"".join([*(stream.compress(bytes(1 << 20)) for _ in range(mebibytes)), stream.flush()])


@pytest.mark.parametrize("codec", PACKED)
def test_bombs(codec: Codec) -> None:
    data = with_body(bomb(codec), 5, codec)
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    tracemalloc.start()
    try:
        for limit, most in ((256 << 20, 700 << 20), (1 << 20, 120 << 20)):
            tracemalloc.reset_peak()
            with limits(decompressed=limit), pytest.raises(LimitExceeded, match=codec):
                list(next(batches(data)))
            assert tracemalloc.get_traced_memory()[1] < most + len(data)
    finally:
        tracemalloc.stop()


def test_many_small_records_come_in_chunks() -> None:
    record = b"\x0c\0\0\0\1\1\0"
    count = 2_000_000
    data = with_body(compress("zstd", record * count), count, "zstd")
    assert len(data) < 5000
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    tracemalloc.start()
    try:
        (batch,) = batches(data)
        for number, _ in enumerate(batch):
            if number == 5000:
                break
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("codec", "module"), [("snappy", "cramjam"), ("lz4", "lz4.frame"), ("zstd", "zstandard")]
)
def test_missing_library(monkeypatch: pytest.MonkeyPatch, codec: Codec, module: str) -> None:
    data = encode_batch([Record(value=b"v")], codec=codec)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CodecUnavailable, match=r"coordwire\[compression\]"):
        list(next(batches(data)))
    with pytest.raises(CodecUnavailable, match=codec):
        next(batches(data, on_error="skip"))
    with pytest.raises(CodecUnavailable, match=codec):
        encode_batch([Record(value=b"v")], codec=codec)


def test_broken_lz4_header() -> None:
    framed = compress("lz4", TEXT)
    broken = compress("lz4", TEXT, magic=0)
    assert broken[6] != framed[6]
    assert compression.mend_lz4_checksum(broken) == framed == compression.mend_lz4_checksum(framed)
    for magic in (0, 1):
        assert decompress("lz4", broken, magic=magic) == TEXT
    with pytest.raises(CorruptBatch):
        decompress("lz4", broken)
    sized = lz4.frame.compress(TEXT, store_size=True)
    assert compression.mend_lz4_checksum(compression.break_lz4_checksum(sized)) == sized
    assert compression.mend_lz4_checksum(b"abc") == b"abc" == compression.break_lz4_checksum(b"abc")


@pytest.mark.parametrize("cut", [0, 1, 4, 5, 8, 30])
@pytest.mark.parametrize(
    "tail",
    [b"", b"\0", gzip.compress(TEXT, mtime=0), gzip.compress(b"", mtime=0), b"\x1f\x8b\x08", TEXT[:4]],
    ids=["nothing", "a zero", "a member", "an empty member", "a magic number", "text"],
)
def test_gzip_is_read_the_same_by_both_libraries(
    cut: int, tail: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(TEXT)
    packed = packed[: len(packed) - cut] + tail

    def found() -> bytes | str:
        try:
            return decompress("gzip", packed)
        except CorruptBatch as error:
            return str(error)

    by_both = found()
    monkeypatch.setattr(compression, "_libdeflate", lambda: None)
    assert found() == by_both


def snappy_block(size: int, body: bytes) -> bytes:
    """A raw block that declares so many bytes."""
    declared = bytearray()
    while size > 127:
        declared.append(size & 127 | 128)
        size >>= 7
    return bytes([*declared, size]) + body


@pytest.mark.parametrize("framed", [False, True])
def test_what_snappy_can_become(framed: bool) -> None:
    """A copy makes 64 bytes of 3, so that a block's bytes become less than 22 times as many; what declares
    more is refused before it is allocated."""

    def stream(block: bytes) -> bytes:
        return compression.XERIAL_HEADER + len(block).to_bytes(4) + block if framed else block

    for copies in (1, 10, 1_000, 30_000):
        sound = snappy_block(1 + 64 * copies, b"\x00x" + b"\xfe\x01\x00" * copies)
        assert decompress("snappy", stream(sound)) == b"x" * (1 + 64 * copies)
    assert len(sound) * 21 < 1 + 64 * copies
    for size in (1, 5, 100, 5_000):
        for declared in range(21 * (size + 1), 22 * (size + 5)):
            block = snappy_block(declared, bytes(size))
            with pytest.raises(CorruptBatch) as error_info:
                decompress("snappy", stream(block))
            beyond = f"{len(block)} bytes can't decompress to {declared}" in error_info.value.reason
            assert beyond == (declared > 22 * len(block))
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    tracemalloc.start()
    with pytest.raises(CorruptBatch, match="can't decompress"):
        decompress("snappy", stream(snappy_block(200 << 20, bytes(1_000))))
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_lack_of_memory_says_nothing_about_the_bytes(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    data = compress(codec, b"content")

    def starved(library: object, data: bytes, limit: int) -> bytes:
        raise MemoryError

    monkeypatch.setitem(compression._READERS, codec, starved)
    with pytest.raises(MemoryError):
        decompress(codec, data)


def test_the_pages_numbers_of_codecs() -> None:
    """Bits 0 to 2 of a batch's attributes; zstd came later (KIP-110)."""
    numbers: dict[Codec, int] = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
    for codec, number in numbers.items():
        (batch,) = batches(encode_batch([Record(value=b"v" * 99)], codec=codec))
        assert batch.attributes == number
        assert batch.codec == codec
