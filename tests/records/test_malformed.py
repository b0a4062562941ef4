"""Malformed batches: each its own reason, byte and path, and no other error."""

from __future__ import annotations

import re
import struct
import zlib
from itertools import chain, islice

import pytest

from coordwire import limits
from coordwire.errors import CorruptBatch, DecodeError, LimitExceeded
from coordwire.records import Record, batches, encode_batch
from coordwire.records.compression import compress

from .data import resized, sealed, with_body

GOOD = encode_batch(
    [Record(-1, 1000 + i, b"k%d" % i, b"v%d" % i, [("h", b"x")]) for i in range(3)], base_offset=100
)
LEGACY = encode_batch([Record(0, 5, b"key", b"value")], magic=1)
START = 61


def refusal(data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as error_info:
        list(chain.from_iterable(batches(data)))
    return error_info.value


def put(data: bytes, at: int, fmt: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(fmt, changed, at, value)
    return bytes(changed)


def entry(body: bytes, offset: int = 0) -> bytes:
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


@pytest.mark.parametrize(
    ("data", "reason", "offset", "path"),
    [
        (put(GOOD, 17, ">I", 7), "the CRC-32C is .*, the batch says 0x00000007", 17, "checksum"),
        (put(LEGACY, 12, ">I", 7), "the CRC-32 is .*, the message says 0x00000007", 12, "checksum"),
        (put(GOOD, 8, ">i", -1), "a length of -1 bytes", 8, "length"),
        (put(GOOD, 8, ">i", 13), "a length of 13 bytes", 8, "length"),
        (put(GOOD, 8, ">i", 48), "magic 2 can't have a length of 48 bytes", 8, "length"),
        (put(LEGACY, 8, ">i", 21), "magic 1 can't have a length of 21 bytes", 8, "length"),
        (put(GOOD, 8, ">i", 2**31 - 1), "a length of 2147483647 bytes", 8, "length"),
        (put(GOOD, 8, ">i", len(GOOD) - 5) + GOOD, "the CRC-32C is", 17, "checksum"),
        (put(GOOD, 16, ">b", 3), "expected a batch's magic of 0, 1 or 2, got 3", 16, "magic"),
        (put(GOOD, 16, ">b", -1), "expected a batch's magic of 0, 1 or 2, got -1", 16, "magic"),
        (sealed(put(GOOD, 21, ">h", 5)), "codec number 5", 22, "attributes"),
        (sealed(put(GOOD, 57, ">i", -1)), "can't have -1 records", START, "records"),
        (sealed(put(GOOD, 57, ">i", 2**31 - 1)), "47 records claimed, 45 bytes", START, "records"),
        (sealed(put(GOOD, 57, ">i", 4)), "the bytes end before this one of 4", len(GOOD), "records[3]"),
        (sealed(put(GOOD, 57, ">i", 2)), "15 bytes after the last of 2 records", START + 30, "records"),
        (sealed(put(GOOD, 57, ">i", 0)), "45 bytes after the last of 0 records", START, "records"),
        (resized(GOOD[:-1]), "a record of 14 bytes, 13 left", START + 30, "records[2]"),
        (sealed(put(GOOD, START + 15, ">B", 30)), "1 byte after the", START + 30, "records[1]"),
        (sealed(put(GOOD, START + 15, ">B", 1)), "a record of -1 bytes", START + 15, "records[1]"),
        (sealed(put(GOOD, START + 4, ">B", 3)), "a length can't be -2", START + 4, "records[0].key"),
        (sealed(put(GOOD, START + 4, ">B", 60)), "a field of 30 bytes, 10 left", START + 4, "records[0].key"),
        (sealed(put(GOOD, START + 7, ">B", 5)), "a length can't be -3", START + 7, "records[0].value"),
        (sealed(put(GOOD, START + 10, ">B", 1)), "can't have -1 headers", START + 10, "records[0].headers"),
        (sealed(put(GOOD, START + 10, ">B", 12)), "6 headers, 4 bytes", START + 10, "records[0].headers"),
        (sealed(put(GOOD, START + 11, ">B", 1)), "can't be null", START + 11, "records[0].headers[0].key"),
    ],
)  # fmt: skip
def test_reasons(data: bytes, reason: str, offset: int, path: str) -> None:
    error = refusal(data)
    assert isinstance(error, CorruptBatch)
    assert re.search(reason, error.reason), error
    assert error.path == path
    assert error.position == offset, error


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def record(stamp: bytes = b"\0", offset: bytes = b"\0", key: bytes = b"\1", rest: bytes = b"\1\0") -> bytes:
    body = b"\0" + stamp + offset + key + rest
    return varint(len(body) * 2) + body


def test_overlong_varints_are_read() -> None:
    body = record(stamp=b"\x84\x80\x80\x00", offset=b"\x82\x80\x80\x80\x00", key=b"\x82\x80\x00k")
    ((only,),) = (list(batch) for batch in batches(with_body(body, 1)))
    assert (only.offset, only.timestamp, only.key, only.value) == (101, 1, b"k", None)
    ((only,),) = (list(b) for b in batches(with_body(record(stamp=b"\x84" + b"\x80" * 8 + b"\0"), 1)))
    assert only.timestamp == 1


@pytest.mark.parametrize(
    ("body", "reason", "path"),
    [
        (
            record(stamp=b"\x80" * 10 + b"\x01"),
            "a varint of 64 bits is too long",
            "records[0].timestamp_delta",
        ),
        (record(stamp=b"\xff" * 9 + b"\x02"), "overflows 64 bits .Java drops", "records[0].timestamp_delta"),
        (record(offset=b"\x80" * 5 + b"\x00"), "a varint of 32 bits is too long", "records[0].offset_delta"),
        (record(offset=b"\xff" * 4 + b"\x10"), "overflows 32 bits .Java drops", "records[0].offset_delta"),
        (record(key=b"\xff" * 4 + b"\x1f"), "overflows 32 bits", "records[0].key"),
        (record(rest=b"\1\x80"), "the bytes end inside a varint", "records[0].headers"),
        (b"\x80" * 7, "a varint of 32 bits is too long", "records[0]"),
        (b"\0" * 7, "a record without its attributes", "records[0]"),
        (record() + b"\x02\0" + b"\0" * 5, "the bytes end inside a varint", "records[1].timestamp_delta"),
    ],
)
def test_varints(body: bytes, reason: str, path: str) -> None:
    error = refusal(with_body(body, 2 if path == "records[1].timestamp_delta" else 1))
    assert isinstance(error, CorruptBatch)
    assert error.path == path
    assert re.search(reason, error.reason), error


def test_records_before_the_bad_one_come_first() -> None:
    good = record()
    body = good * 700 + record(key=b"\x05") + good * 5
    (batch,) = batches(with_body(body, 706))
    records = iter(batch)
    assert [record.offset for record in islice(records, 700)] == [100] * 700
    with pytest.raises(CorruptBatch) as error_info:
        next(records)
    assert error_info.value.path == "records[700].key"
    assert error_info.value.position == START + len(good) * 700 + 4


def test_offsets_are_absolute() -> None:
    error = refusal(GOOD + sealed(put(GOOD, START + 4, ">B", 3)))
    assert error.position == len(GOOD) + START + 4


def test_inside_a_codec() -> None:
    body = compress("gzip", record() + record(key=b"\x05"))
    error = refusal(with_body(body, 2, "gzip"))
    assert error.path == "records[1].key"
    assert error.position == START
    assert "11 bytes into the decompressed records" in error.reason


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_garbage_in_the_codec(codec: str) -> None:
    batch = encode_batch([Record(key=b"k" * 200)], codec=codec)  # type: ignore[arg-type]
    for body in (b"", b"garbage", batch[61:-4], b"\0" * 40):
        error = refusal(resized(batch[:61] + body))
        assert isinstance(error, CorruptBatch)
        assert error.position == START
        assert error.path.startswith("records")


def test_wrapping_as_java_does() -> None:
    data = sealed(put(put(GOOD, 0, ">q", 2**63 - 1), 27, ">q", -(2**63)))
    (batch,) = batches(data)
    assert [r.offset for r in batch] == [2**63 - 1, -(2**63), -(2**63) + 1]
    assert [r.timestamp for r in batch] == [-(2**63), -(2**63) + 1, -(2**63) + 2]
    assert batch.last_offset == -(2**63) + 1


def wrapper(
    inner: bytes, *, magic: int = 1, offset: int = 1, codec: int = 1, value: bytes | None = None
) -> bytes:
    packed = compress("gzip", inner) if value is None else value
    head = struct.pack(">bb", magic, codec) + (struct.pack(">q", 9) if magic else b"")
    return entry(head + b"\xff" * 4 + len(packed).to_bytes(4) + packed, offset)


def message(magic: int = 1, attributes: int = 0, rest: bytes = b"\xff" * 8, offset: int = 0) -> bytes:
    return entry(
        struct.pack(">bb", magic, attributes) + (struct.pack(">q", 5) if magic else b"") + rest, offset
    )


@pytest.mark.parametrize(
    ("data", "reason", "path"),
    [
        (message(rest=b"\xff\xff\xff\xfe\xff\xff\xff\xff"), "a length can't be -2", "records[0].key"),
        (message(rest=b"\0\0\0\x09\xff\xff\xff\xff"), "a field of 9 bytes, 4 left", "records[0].key"),
        (message(rest=b"\0\0\0\x04\xff\xff\xff\xff"), "a length needs 4 bytes, 0 left", "records[0].value"),
        (message(rest=b"\xff" * 8 + b"\0"), "1 byte after the message's value", "records[0]"),
        (wrapper(message(attributes=1)), "a compressed message inside another", "records[0].attributes"),
        (wrapper(message() + message(magic=0)), "of magic 0 in a wrapper of magic 1", "records[1].magic"),
        (
            wrapper(message()[:16] + b"\x07" + message()[17:]),
            "expected a message's magic of 0 or 1, got 7",
            "records[0].magic",
        ),
        (wrapper(message() + message()[:-3]), "a message of 22 bytes, 19 left", "records[1]"),
        (wrapper(message() + b"\0\0\0"), "a message needs at least 12 bytes, 3 left", "records[1]"),
        (wrapper(struct.pack(">qi", 0, 13) + bytes(20)), "a message can't have 13 bytes", "records[0]"),
        (
            wrapper(entry(struct.pack(">bb", 1, 0) + b"\xff" * 8)),
            "a message of magic 1 can't have 14 bytes",
            "records[0]",
        ),
        (wrapper(b""), "a compressed message without any inside", "records"),
        (wrapper(message(offset=5), offset=3), "offset 3 is below its last message's 5", "offset"),
        (wrapper(message(), value=b"junk"), "not valid gzip", "records"),
        (wrapper(message(), codec=4), "magic 1 has no zstd", "attributes"),
        (wrapper(message(), codec=5), "codec number 5", "attributes"),
        (message(attributes=1), "a compressed message can't have a null value", "value"),
    ],
)
def test_message_sets(data: bytes, reason: str, path: str) -> None:
    error = refusal(data)
    assert isinstance(error, CorruptBatch)
    assert error.path == path
    assert re.search(reason, error.reason), error
    assert 0 <= error.position <= len(data)


def test_wrapper_at_offset_0() -> None:
    inner = message(offset=3) + message(offset=4)
    (batch,) = batches(wrapper(inner, offset=0))
    assert [r.offset for r in batch] == [3, 4]
    (batch,) = batches(wrapper(inner, offset=104))
    assert [r.offset for r in batch] == [103, 104]
    assert (batch.base_offset, batch.last_offset, batch.count) == (103, 104, None)


def test_limit_of_one_batch() -> None:
    data = encode_batch([Record(value=bytes(5000))], codec="gzip")
    with limits(decompressed=4000), pytest.raises(LimitExceeded) as error_info:
        list(next(batches(data)))
    assert error_info.value.position == START
