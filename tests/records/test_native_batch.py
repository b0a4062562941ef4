"""Batches that the native half opens, iterates and writes in one call: like those of Python's own code."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.errors import CorruptBatch, EncodeError
from coordwire.records import Record, RecordBatch, batches, encode_batch, native
from fuzz.records_native import python

if native.codec is None:
    pytest.skip("no native extension", allow_module_level=True)

FREE = [Record(-1, 1000 + n // 2, b"k%d" % n, b"v" * n, (("h", b"%d" % n),)[: n % 2]) for n in range(200)]
ROWS = [Record(n, row.timestamp, row.key, row.value, row.headers) for n, row in enumerate(FREE)]
DATA = encode_batch(ROWS)


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Only the native half is looked at here."""
    return "c"


def test_a_batch_opened_natively_is_like_any_other() -> None:
    (batch,) = batches(DATA)
    other = RecordBatch(memoryview(DATA))
    assert repr(batch) == repr(other)
    for name in dir(RecordBatch):
        if not name.startswith("_") and not callable(getattr(other, name)):
            assert getattr(batch, name) == getattr(other, name)
    assert list(batch) == list(batch) == list(other) == ROWS
    with pytest.raises(AttributeError, match="RecordBatch has no attribute 'colour'"):
        batch.colour  # noqa: B018


def test_a_wrong_checksum_shows_at_the_first_record() -> None:
    bad = bytearray(DATA)
    bad[-1] ^= 1
    (batch,) = batches(bad)
    records = iter(batch)
    with pytest.raises(CorruptBatch, match="CRC-32C"):
        next(records)
    assert list(records) == []


def test_a_walk_that_python_code_disturbs() -> None:
    walk: Any = batches(DATA * 2)
    walk._quick = "no codec"
    assert next(walk).offset == 0
    walk._quick = native.codec
    walk._view = b"no view"
    assert list(walk) == []
    walk = batches(DATA)
    del walk._view
    with pytest.raises(AttributeError):
        next(walk)


ENCODED = {"base_offset": 3, "producer_id": 1 << 40, "producer_epoch": 7, "base_sequence": 9}


@pytest.mark.parametrize(
    "options",
    [
        ENCODED,
        ENCODED | {"transactional": True, "control": True, "partition_leader_epoch": 4},
        {"last_offset": 1000, "max_timestamp": 77},
        {"last_offset": 1 << 31},
        {"last_offset": 3},
        {"producer_epoch": 1 << 15},
        {"base_sequence": True},
        {"transactional": 1},
        {"base_offset": (1 << 63) - 5},
        {"base_offset": 1 << 63},
        {"partition_leader_epoch": -(1 << 31)},
    ],
)
def test_one_call_writes_what_python_writes(options: dict[str, Any]) -> None:
    def found() -> bytes | str:
        try:
            return encode_batch(FREE, **options)
        except EncodeError as error:
            return f"{type(error).__name__}: {error}"

    by_native = found()
    with python():
        assert found() == by_native
