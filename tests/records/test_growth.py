"""Reading bytes that hold batches is linear in them, whatever they claim: the work is counted, not timed."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from coordwire.errors import CoordwireError
from coordwire.records import Record, batches, encode_batch, kafka_07
from coordwire.records.compression import decompress
from tests.growth import Charge, assert_linear


def _spanned(_: object, __: object, text: Any, start: int = 0, end: int | None = None) -> int:
    return min(len(text), len(text) if end is None else end) - start


CHARGES: dict[str, Charge] = {"finditer": _spanned}
"""A regular expression goes over the range that it is given."""


def head(offset: int, length: int, magic: int = 2, *, cut: int = 61) -> bytes:
    """A header with a wrong checksum that claims such a length."""
    if magic < 2:
        return struct.pack(">qiIbBqii", offset, length, 1, magic, 0, 5, -1, length - 30)[:cut]
    return struct.pack(">qiibIhiqqqhii", offset, length, 0, 2, 1, 0, 0, 0, 0, -1, -1, -1, 1)[:cut]


def sound(offset: int, size: int = 5, **facts: Any) -> bytes:
    return encode_batch([Record(offset, value=bytes(size))], base_offset=offset, **facts)


def far(n: int) -> bytes:
    """Each header claims half of what there is."""
    return b"".join(head(k, n * 40) + sound(k) for k in range(n))


def far_cut(n: int) -> bytes:
    return b"".join(head(k, n * 30, cut=30) + sound(k) for k in range(n))


def beyond(n: int) -> bytes:
    """Each claims more than there is."""
    return b"".join(head(k, 1 << 30) + sound(k) for k in range(n))


def beyond_and_before(n: int) -> bytes:
    """And nothing that follows has a later offset, but the last."""
    return sound(5) + b"".join(head(1 << 60, 1 << 30) + sound(5) for _ in range(n)) + sound(6) * 2


def falling(n: int) -> bytes:
    return b"".join(head(1 << 60, 1 << 30) + sound(n - k) for k in range(n))


def to_the_same_end(n: int) -> bytes:
    """All claim to end where a large batch begins."""
    last = sound(n, 60 * n)
    return b"".join(head(k, (n - k) * 61 - 12) for k in range(n)) + last


def old(n: int) -> bytes:
    parts = []
    for k in range(n):
        parts += [head(k, 20 * n + 34, 1, cut=38), sound(k, magic=1)]
    return b"".join(parts)


def zeros(n: int) -> bytes:
    """All end in zeros that are not the last bytes."""
    return b"".join(head(k, (n - k) * 61 + 20 * n) for k in range(n)) + bytes(60 * n) + sound(n)


def zeros_between(n: int) -> bytes:
    return b"".join(bytes(100) + sound(k) for k in range(n))


def tiny_bad(n: int) -> bytes:
    data = bytearray(sound(0, 0, magic=0))
    data[12] ^= 1
    return bytes(data) * n + sound(1)


def overlapping(n: int) -> bytes:
    """A header at every sixth byte."""
    return b"\x00\x00\x02\x00\x00\x00" * (12 * n)


def ones(n: int) -> bytes:
    """Nothing but bytes of 1 are headers, too."""
    return sound(0) + b"\1" * (100 * n) + sound(1, magic=1) + b"\1" * 70 + sound(2)


def nested(n: int) -> bytes:
    """Sound batches, each the value of the next one, and the outermost is bad."""
    data = sound(0)
    while len(data) < 60 * n:
        data = encode_batch([Record(1, value=data)], base_offset=1)
        if len(data) < 4000:
            data *= 2
    return data[:-1] + b"!"


def wrong_inside(n: int) -> bytes:
    """The checksum is right, the records can't be read."""
    wrong = encode_batch([Record(value=bytes(20))], magic=1)
    wrong = wrong[:26] + b"\x7f" + wrong[27:]
    wrong = wrong[:12] + zlib.crc32(wrong[16:]).to_bytes(4) + wrong[16:]
    return wrong * n


MADE = [
    far, far_cut, beyond, beyond_and_before, falling, to_the_same_end, old, zeros, zeros_between, tiny_bad,
    overlapping, ones, nested, wrong_inside,
]  # fmt: skip


def draw(data: bytes) -> None:
    at = 0
    reader = batches(data, on_error="report")
    for batch in reader:
        at += batch.length if hasattr(batch, "length") else batch.size
    assert at + len(reader.remainder) == len(data)


SLACK = 1.2
"""Checksums read ranges up to a small size as they are, and longer ones in parts of blocks."""


@pytest.mark.parametrize("make", MADE)
def test_batches(make: Callable[[int], bytes]) -> None:
    assert_linear(make, draw, 70, charges=CHARGES, slack=SLACK)


@pytest.mark.parametrize("make", [far, old, to_the_same_end])
def test_batches_with_longer_claims(make: Callable[[int], bytes]) -> None:
    assert_linear(make, draw, 250, charges=CHARGES, slack=SLACK)


def walk(data: bytes) -> None:
    reader = batches(data, on_error="report")
    while reader.position < len(data):
        before = reader.position
        reader.advance(before + 1000)
        next(reader, None)
        if reader.position == before:
            break


@pytest.mark.parametrize("make", MADE)
def test_advance(make: Callable[[int], bytes]) -> None:
    assert_linear(make, walk, 70, charges=CHARGES, slack=SLACK)


# --- Kafka 0.7


def claims_07(n: int) -> bytes:
    good = b"".join(kafka_07.encode_messages([b"%d" % k]) for k in range(3))
    return b"".join(struct.pack(">ibBI", 12 * n, 1, 0, 1) + good for _ in range(n))


def ones_07(n: int) -> bytes:
    """A plausible header at every byte."""
    return b"\x00\x01" * (20 * n)


@pytest.mark.parametrize("make", [claims_07, ones_07])
def test_kafka_07(make: Callable[[int], bytes]) -> None:
    def read(data: bytes) -> None:
        for _ in kafka_07.batches(data, on_error="report"):
            pass

    assert_linear(make, read, 300, charges=CHARGES, slack=SLACK)


# --- what is compressed


def _gzip(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=31)
    return made.compress(data) + made.flush()


def _lz4_blocks(n: int) -> bytes:
    library = pytest.importorskip("lz4.frame")
    head: bytes = library.compress(b"", block_linked=False)[:7]
    block = b"\x01\x00\x00\x80x"  # stored: 1 byte
    return head + block * n + bytes(4)


def _zstd(n: int, content: bytes) -> bytes:
    library = pytest.importorskip("zstandard")
    one: bytes = library.ZstdCompressor().compress(content)
    return one * n


def _xerial(n: int) -> bytes:
    snappy = pytest.importorskip("cramjam").snappy
    block = bytes(snappy.compress_raw(b"x"))
    return b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01" + (len(block).to_bytes(4) + block) * n


COMPRESSED: list[tuple[str, Callable[[int], bytes]]] = [
    ("gzip", lambda n: _gzip(b"") * n),
    ("gzip", lambda n: _gzip(b"x" * 50) * n),
    ("gzip", lambda n: (_gzip(bytes(10)) + _gzip(bytes(3000))) * n),
    ("lz4", _lz4_blocks),
    ("zstd", lambda n: _zstd(n, b"")),
    ("zstd", lambda n: _zstd(n, b"xyz")),
    ("zstd", lambda n: b"\x50\x2a\x4d\x18\x00\x00\x00\x00" * n + _zstd(1, b"x")),
    ("zstd", lambda n: b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3 * n) + b"\x09\x00\x00x"),
    ("snappy", _xerial),
]


@pytest.mark.parametrize(("codec", "make"), COMPRESSED)
@pytest.mark.parametrize("limit", [100, 1 << 28])
def test_decompress(codec: Any, make: Callable[[int], bytes], limit: int) -> None:
    def read(data: bytes) -> None:
        with suppress(CoordwireError):
            decompress(codec, data, limit)

    assert_linear(make, read, 1000, slack=SLACK)


def test_lz4_in_steps_copies_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What isn't read yet is given to the library once, however little comes out at a time."""
    library: Any = pytest.importorskip("lz4.frame")
    given: list[int] = []

    class Counted(library.LZ4FrameDecompressor):  # type: ignore[misc]
        def decompress(self, data: bytes, most: int = -1) -> bytes:
            given.append(len(data) + len(self._unconsumed_data or b""))
            out: bytes = super().decompress(data, most)
            return out

    monkeypatch.setattr(library, "LZ4FrameDecompressor", Counted)
    monkeypatch.setattr("coordwire.records.compression.STEP", 1 << 12)

    def work(n: int) -> int:
        given.clear()
        noise = struct.pack(f">{n * 1024}I", *((k * 2654435761) & 0xFFFFFFFF for k in range(n * 1024)))
        wire = library.compress(noise, store_size=True)
        assert decompress("lz4", wire) == noise
        return sum(given)

    once, twice = work(100), work(200)
    assert twice <= 2.2 * once


def test_a_wrapper_of_many() -> None:
    for magic in (0, 1):

        def make(n: int, magic: int = magic) -> bytes:
            records = [Record(k, value=b"") for k in range(n)]
            return encode_batch(records, magic=magic, codec="gzip", base_offset=0)

        assert_linear(make, draw, 500, charges=CHARGES)
    assert_linear(
        lambda n: kafka_07.encode_messages([b""] * n, codec="gzip"),
        lambda data: [list(batch) for batch in kafka_07.batches(data)],
        500,
    )
