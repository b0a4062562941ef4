"""The bounds within which records and batches are believed: each at its last value, and one beyond. What is
beyond is refused before anything is allocated, by both halves in the same words."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pytest

from coordwire.errors import CorruptBatch, counted
from coordwire.records import Record, backend, batches, encode_batch
from fuzz._guard import Guard

from .data import resized, with_body

GUARD = Guard()
LARGEST = 0x7FFFFFFF - 12


def varint(number: int, width: int = 0) -> bytes:
    """Zigzag, in at least so many bytes."""
    raw = number << 1 ^ number >> 63
    raw &= (1 << 64) - 1
    result = bytearray()
    while raw > 127 or len(result) < width - 1:
        result.append(raw & 127 | 128)
        raw >>= 7
    return bytes([*result, raw])


def record(count: bytes, headers: bytes) -> bytes:
    """One without key and value, with so many headers."""
    body = bytes([0, 0, 0, 1, 1]) + count + headers
    return varint(len(body)) + body


def refusal(body: bytes, records: int = 1) -> str | None:
    """What reading such a batch says, in little memory."""
    batch = with_body(body, records)
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    tracemalloc.start()
    try:
        (result,) = batches(batch)
        try:
            assert len(list(result)) == records
        except CorruptBatch as error:
            return error.reason
        return None
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 1 << 20


def read_natively(body: bytes, records: int = 1) -> int:
    """How many records the kernel doesn't doubt."""
    if backend.codec is None:
        return -1
    walked = backend.codec.read(GUARD.place(body), records, 0, 0, None)
    walked.walk()
    made = backend.codec.read(GUARD.place(body), records, 0, 0, None)
    assert len(list(made)) == walked.done == made.done
    return walked.done


@pytest.mark.parametrize("count", [1, 2, 3, 62, 63, 64, 65, 200, 8192])
def test_headers_take_two_bytes_each_at_least(half: str, count: int) -> None:
    for width in (0, 3, 5):
        sound = record(varint(count, width), b"\x00\x01" * count)
        assert refusal(sound) is None
        beyond = record(varint(count, width), b"\x00\x01" * (count - 1) + b"\x00")
        assert refusal(beyond) == f"{counted(count, 'header')}, {counted(2 * count - 1, 'byte')} left"
        more = record(varint(count, width), b"\x00\x01" * count + b"\x00")
        assert refusal(more) == "1 byte after the record's last field"
        if half == "c":
            assert read_natively(sound) == 1
            assert read_natively(beyond) == read_natively(more) == 0


@pytest.mark.parametrize("count", [-1, -2, 1 << 20, 1 << 29, (1 << 31) - 1, -(1 << 31)])
def test_a_count_of_headers_that_nothing_is_allocated_for(half: str, count: int) -> None:
    for tail in (b"", b"\x00\x01", bytes(30)):
        body = record(varint(count), tail)
        said = (
            f"{count} headers, {len(tail)} bytes left"
            if count > 0
            else f"a record can't have {count} headers"
        )
        assert refusal(body) == said
        assert refusal(body + bytes(20), 1) == said
        if half == "c":
            assert read_natively(body) == 0


def test_lengths_of_records(half: str) -> None:
    """At the end of the bytes, where nothing is left to look ahead at, and before others."""
    for size in range(140):
        key = bytes(size)
        body = bytes([0, 0, 0]) + varint(size) + key + b"\x01\x00"
        sound = varint(len(body)) + body
        for following in (b"", sound * 3):
            records = 1 + 3 * bool(following)
            assert refusal(sound + following, records) is None
            wrong = [
                varint(len(body) + 1) + body,
                varint(len(body) - 1) + body,
                varint(-1) + body,
                varint(0) + body,
            ]
            wrong += [varint(len(body)) + body[:3] + varint(other) + body[4:] for other in (size + 1, -2, 60)]
            for each in wrong:
                assert (refusal(each + following, records) is None) == (each == sound)
                if half == "c":
                    assert read_natively(each + following, records) < records or each == sound
            if half == "c":
                assert read_natively(sound + following, records) == records


@pytest.mark.parametrize("bits", [32, 64])
def test_varints_hold_what_their_type_does(half: str, bits: int) -> None:
    """In 5 bytes (or 10) at most; the timestamp's has 64 bits, the offset's 32."""
    largest, least = (1 << (bits - 1)) - 1, -(1 << (bits - 1))
    most = 5 if bits == 32 else 10

    def with_number(number: bytes) -> bytes:
        body = b"\x00" + (number + b"\x00" if bits == 64 else b"\x00" + number) + b"\x01\x01\x00"
        return varint(len(body)) + body

    for value in (0, 1, -1, 63, 64, -64, -65, 8191, 8192, -8193, 1 << 20, 1 << 21, largest, least):
        for width in range(most + 1):
            sound = with_number(varint(value, width))
            assert refusal(sound) is None
            if half == "c":
                assert read_natively(sound) == read_natively(sound + bytes(40)) == 1
    for wrong in (
        varint(1, most + 1), b"\xff" * most, b"\xff" * (most + 3) + b"\x00",
        b"\xff" * (most - 1) + (b"\x10" if bits == 32 else b"\x02"),
    ):  # fmt: skip
        body = with_number(wrong)
        assert "varint" in (refusal(body) or "")
        if half == "c":
            assert read_natively(body) == read_natively(body + bytes(40)) == 0


@pytest.mark.parametrize("many", [0, 1, 2, 5])
def test_a_count_of_records_takes_seven_bytes_each(many: int) -> None:
    least = varint(6) + bytes([0, 0, 0, 1, 1, 0])
    assert refusal(least * many, many) is None
    for beyond in (many + 1, 1 << 20, (1 << 31) - 1):
        assert refusal(least * many, beyond) == f"{counted(beyond, 'record')} claimed, {7 * many} bytes left"
    assert refusal(least * many, -1) == "a batch can't have -1 records"


# --- the lengths of batches ---


def with_length(length: int) -> bytes:
    head = encode_batch([Record(value=bytes(60))])
    return head[:8] + length.to_bytes(4) + head[12:]


def first(data: Any) -> Any:
    """The size of the first batch, what refuses it, or None if it isn't all there."""
    try:
        batch = next(batches(data), None)
    except CorruptBatch as error:
        return error.reason
    return None if batch is None else batch.size


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_least_length_of_a_batch(kind: Any) -> None:
    whole = with_length(0)
    for length in range(14, 49):
        result = first(kind(with_length(length)))
        assert result == f"a batch of magic 2 can't have a length of {length} bytes"
    for length in range(49, len(whole) - 12 + 1):
        assert first(kind(with_length(length))) == length + 12
    assert first(kind(with_length(len(whole) - 12 + 1))) is None
    for length in (LARGEST + 1, 0x7FFFFFFF):
        assert first(kind(with_length(length))) == f"a batch can't have a length of {length} bytes"
    for length in (0x80000000, 0xFFFFFFFF):
        assert (
            first(kind(with_length(length))) == f"a batch can't have a length of {length - (1 << 32)} bytes"
        )


def test_the_largest_length_of_a_batch(tmp_path: Path) -> None:
    """In a file of more than 2 GB, all of them holes."""
    path = tmp_path / "holes"
    for length, expected in (
        (LARGEST, LARGEST + 12),
        (LARGEST + 1, f"a batch can't have a length of {LARGEST + 1} bytes"),
        (0x7FFFFFFF, f"a batch can't have a length of {0x7FFFFFFF} bytes"),
        (0xFFFFFFFF, "a batch can't have a length of -1 bytes"),
    ):
        path.write_bytes(with_length(length))
        with path.open("r+b") as file:
            file.truncate((1 << 32) + 100)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data, memoryview(data) as view:
                assert first(view) == expected


def test_a_batch_ends_where_it_says() -> None:
    """Its checksum is of its own bytes, whatever comes after them."""
    batch = encode_batch([Record(value=b"v")])
    for following in (b"", bytes(5), batch, batch + bytes(70)):
        result = next(batches(batch + following))
        assert result.size == len(batch)
        result.verify()
    assert first(resized(batch)[:-1]) is None
