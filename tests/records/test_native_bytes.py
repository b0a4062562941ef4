"""Each byte of a record batch with other values, and each end: the native half and Python's say the same.

Strategy: batches whose lengths, times and offsets take varints of one byte to four, in the middle of a batch,
where the kernel may look ahead, and at its end, where it may not. The checksum is put right, so that what is
judged is the record and not that. Rule: both halves give the same records before the same refusal.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.records import Record, backend, encode_batch
from fuzz.records_native import ARROW, read, rows, same

from .data import resized, sealed, with_body

if backend.codec is None:
    pytest.skip("no native extension", allow_module_level=True)

HEAD, COUNT = 61, 57
STAMPS = (0, 1, 70, 9_000, 1_100_000)
"""Deltas that take a byte, two, three and four."""

LONG = [
    Record(-1, 1000 + delta, key, value, headers)
    for delta, key, value, headers in (
        (0, b"k" * 63, b"v", ()),
        (1, None, b"v" * 64, (("h", b"1"),)),
        (70, b"", None, ()),
        (9_000, b"k" * 65, b"", (("name", None), ("", b""))),
        (1_100_000, b"key", b"value", ()),
        (-1, b"k", b"v", ()),
    )
]
BATCHES = {
    "long": encode_batch(LONG),
    "short": encode_batch([Record(-1, 1000 + stamp, b"k", b"v") for stamp in STAMPS]),
    "far": with_body(b"\x12\0\0\x80\x80\x80\x80\x10\1\1\0", 1) + encode_batch(LONG[:1]),
}


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Both halves are looked at here."""
    return "c"


def read_alike(data: bytes) -> list[Any]:
    """What both halves read."""
    result: list[Any] = same(lambda: read(data))
    return result


def rows_alike(data: bytes) -> None:
    same(lambda: rows(data))


@pytest.mark.parametrize("name", BATCHES)
def test_each_byte_of_records(name: str) -> None:
    data = BATCHES[name]
    for at in range(HEAD, len(data)):
        for value in set(range(256)) - {data[at]}:
            read_alike(sealed(data[:at] + bytes([value]) + data[at + 1 :]))


@pytest.mark.parametrize("name", BATCHES)
def test_each_end_of_records(name: str) -> None:
    """A batch that says it ends earlier, and one whose bytes do, alone and before another."""
    data = BATCHES[name]
    for end in range(len(data)):
        read_alike(data[:end])
        if end >= HEAD:
            read_alike(resized(data[:end]))
            read_alike(resized(data[:end]) + data)


def test_each_byte_of_a_head() -> None:
    data = BATCHES["short"]
    for at in range(HEAD):
        for value in set(range(256)) - {data[at]}:
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            read_alike(changed)
            if at > 16:
                read_alike(sealed(changed))


@pytest.mark.parametrize("count", [0, 1, 4, 5, 6, 7, 100, 101, -1, 2**31 - 1])
def test_numbers_of_records(count: int) -> None:
    data = BATCHES["short"]
    changed = sealed(data[:COUNT] + count.to_bytes(4, signed=True) + data[COUNT + 4 :])
    assert (read_alike(changed) == read(data)) is (count == len(STAMPS))


@pytest.mark.skipif(not ARROW, reason="no pyarrow")
@pytest.mark.parametrize("name", BATCHES)
def test_each_byte_of_rows(name: str) -> None:
    data = BATCHES[name]
    for at in range(len(data)):
        for value in {data[at] + 1 & 255, data[at] - 1 & 255, data[at] ^ 128} - {data[at]}:
            changed = data[:at] + bytes([value]) + data[at + 1 :]
            rows_alike(sealed(changed) if at > 20 else changed)
