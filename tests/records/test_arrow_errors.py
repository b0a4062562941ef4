"""What tables come before an error, and after one that is passed over: no sound row is lost, wherever the bad
batch or record is. Both halves give the same rows and raise the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from coordwire.errors import CoordwireError, CorruptBatch, LimitExceeded
from coordwire.records import Record, batches, encode_batch
from coordwire.records.arrow import fallback, iter_batches
from coordwire.segments import Segment
from fuzz.records_native import spread_from

from .data import resized, sealed

COUNT, RECORDS = 6, 40
Damage = Callable[[bytes], bytes]


def made(number: int, codec: Any = "none", magic: int = 2) -> bytes:
    records = [
        Record(-1, 1_000 + n, b"k%d" % n, b"v" * (n % 9), (("h", None),) if magic == 2 and n % 7 == 3 else ())
        for n in range(RECORDS)
    ]
    return encode_batch(records, base_offset=number * RECORDS, codec=codec, magic=magic)


def in_record(number: int) -> Damage:
    """The record of this number gets a key that is longer than the record; the checksum is right."""

    def damage(batch: bytes) -> bytes:
        at = batch.index(b"k%d" % number) - 1
        return sealed(batch[:at] + b"\x7e" + batch[at + 1 :])

    return damage


DAMAGES: dict[str, Damage] = {
    "checksum": lambda batch: batch[:-1] + bytes([batch[-1] ^ 1]),
    "length": lambda batch: batch[:8] + b"\x00\x00\x00\x05" + batch[12:],
    "magic": lambda batch: batch[:16] + b"\x09" + batch[17:],
    "codec": lambda batch: sealed(batch[:22] + b"\x07" + batch[23:]),
    "not the codec's": lambda batch: sealed(batch[:22] + b"\x03" + batch[23:]),
    "count": lambda batch: sealed(batch[:57] + b"\x7f\xff\xff\xff" + batch[61:]),
    "one record more": lambda batch: sealed(batch[:57] + (RECORDS + 1).to_bytes(4) + batch[61:]),
    "one record less": lambda batch: sealed(batch[:57] + (RECORDS - 1).to_bytes(4) + batch[61:]),
    "more bytes": lambda batch: resized(batch + b"\x00"),
    **{f"record {number}": in_record(number) for number in (0, 1, 9, 20, RECORDS - 1)},
}


def read(data: bytes) -> tuple[list[Any], str | None]:
    """The records that iterating gives, and the error that ends it."""
    results: list[Any] = []
    try:
        for batch in batches(data):
            for record in batch:
                results.append((record.offset, record.key, record.value, len(record.headers)))
    except CorruptBatch as error:
        return results, str(error)
    return results, None


def rows(data: bytes, **options: Any) -> tuple[list[Any], str | None]:
    """The rows that come before the error, and it."""
    results: list[Any] = []
    try:
        for table in iter_batches(data, **options):
            table.validate(full=True)
            results += [
                (row["offset"], row["key"], row["value"], len(row["headers"])) for row in table.to_pylist()
            ]
    except CorruptBatch as error:
        return results, str(error)
    return results, None


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("at", range(COUNT))
def test_the_records_before_the_error_come_first(name: str, at: int) -> None:
    parts = [made(number) for number in range(COUNT)]
    parts[at] = DAMAGES[name](parts[at])
    data = b"".join(parts)
    expected, error = read(data)
    assert error is not None
    assert len(expected) >= at * RECORDS
    for max_bytes in (1, 700, 4 << 20):
        for view in (False, True):
            for many in (1, len(data) + 1):
                with spread_from(many):
                    assert rows(data, max_bytes=max_bytes, view=view) == (expected, error)


@pytest.mark.parametrize("codec", ["gzip", "lz4"])
@pytest.mark.parametrize("at", [0, 3, 5])
def test_compressed_and_old_ones(codec: Any, at: int) -> None:
    """The last records of a compressed batch are bad, or what was compressed is."""
    for magic in (1, 2):
        parts = [made(number, codec, magic) for number in range(COUNT)]
        plain = made(at)
        bodies = [resized(plain[:22] + b"\x01" + plain[23:61] + _gzip(plain[61:-3]))] if magic == 2 else []
        for bad in [parts[at][:-9] + bytes(9), *bodies]:
            data = b"".join([*parts[:at], bad, *parts[at + 1 :]])
            expected, error = read(data)
            assert error is not None
            for max_bytes in (1, 700, 4 << 20):
                assert rows(data, max_bytes=max_bytes) == (expected, error)
        assert read(b"".join(parts)) == rows(b"".join(parts))


def _gzip(data: bytes) -> bytes:
    from coordwire.records.compression import compress

    return compress("gzip", data)


@pytest.mark.parametrize("name", DAMAGES)
def test_skipping_loses_the_bad_batch_alone(name: str) -> None:
    for at in range(COUNT):
        parts = [made(number) for number in range(COUNT)]
        parts[at] = DAMAGES[name](parts[at])
        for max_bytes in (1, 700, 4 << 20):
            result, error = rows(b"".join(parts), on_error="skip", max_bytes=max_bytes)
            assert error is None
            sound = b"".join(parts[:at] + parts[at + 1 :])
            assert result == read(sound)[0]


def test_nulls_before_the_bad_record_are_not_those_of_the_next_batch() -> None:
    """The validity bits that a bad batch has cleared are set again: of keys, values, times and headers. They
    are looked at where a column has any null."""
    null = Record(-1, -1, None, None, (("h", None),))
    record = in_record(49)(encode_batch([null] * 49 + [Record(key=b"k49")], base_offset=RECORDS))
    full = [Record(-1, 5, b"k", b"v", (("h", b"x"), ("g", b"y"))) for _ in range(80)]
    sound = [encode_batch([null, *full], base_offset=100 * number) for number in (0, 5)]
    for columns in (None, ["timestamp"], ["key"], ["value"], ["headers"]):
        options: dict[str, Any] = {"on_error": "skip", "columns": columns}
        table = pa.Table.from_batches(iter_batches(sound[0] + record + sound[1], **options))
        table.validate(full=True)
        assert table.equals(pa.Table.from_batches(iter_batches(b"".join(sound), **options)))
        for name in set(table.column_names) & {"timestamp", "key", "value"}:
            assert table[name].null_count == 2


def test_what_was_passed_over_is_noted_before_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing library ends the iteration even where bad batches are skipped."""
    import sys

    data = made(0) + DAMAGES["checksum"](made(1)) + made(2) + made(3, "lz4")
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    skipped: list[Any] = []
    results: list[Any] = []
    tables = iter_batches(data, on_error="skip", skipped=skipped, columns=["offset"])
    with pytest.raises(CoordwireError, match="lz4 needs the package"):
        results.extend(offset for table in tables for offset in table["offset"].to_pylist())
    assert results == [*range(RECORDS), *range(2 * RECORDS, 3 * RECORDS)]
    assert [unreadable.position for unreadable in skipped] == [len(made(0))]


def test_a_record_with_too_many_bytes_of_header_keys(half: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow's offsets are int32, and a byte that isn't UTF-8 becomes three."""
    if half == "c":
        pytest.skip("the native half's bound is the type's")
    monkeypatch.setattr(fallback, "LARGEST_NAMES", 100)
    records = [Record(value=b"before"), Record(headers=(("\udcff" * 33, None),)), Record(value=b"after")]
    data = encode_batch(records)
    assert len(rows(data)[0]) == 3
    records[1].headers = (("\udcff" * 33, None), ("nn", None))
    results: list[Any] = []
    tables = iter_batches(encode_batch(records), columns=["value"])
    with pytest.raises(LimitExceeded, match="record 1 has 101 bytes of header keys"):
        results.extend(value for table in tables for value in table["value"].to_pylist())
    assert results == [b"before"]


def test_a_segment_is_read_whole_or_raises(tmp_path: Any) -> None:
    path = tmp_path / "t-0" / "00000000000000000000.log"
    path.parent.mkdir()
    parts = [made(number) for number in range(3)]
    parts[1] = in_record(20)(parts[1])
    path.write_bytes(b"".join(parts))
    with Segment(path) as segment:
        with pytest.raises(CorruptBatch, match=r"records\[20\].key"):
            segment.to_arrow()
        assert segment.to_arrow(on_error="skip").num_rows == 2 * RECORDS
