"""Writing batches: what comes back, what is refused, how a builder fills up."""

from __future__ import annotations

import copy
import pickle
import struct
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordwire.errors import CorruptBatch, EncodeError, NotInVersion, OutOfRange, WrongType
from coordwire.records import Record, RecordBatch, RecordBatchBuilder, batches, encode_batch
from coordwire.records.compression import Codec, compress

from .data import CODECS, record_lists

SLOWLY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def only(data: bytes) -> RecordBatch:
    (batch,) = batches(data)
    return batch


@SLOWLY
@given(record_lists(base=1000), st.sampled_from(CODECS))
def test_there_and_back(records: list[Record], codec: Codec) -> None:
    batch = only(encode_batch(records, codec=codec))
    assert list(batch) == records
    assert (batch.base_offset, batch.last_offset) == (records[0].offset, records[-1].offset)
    assert batch.count == len(records)
    assert batch.max_timestamp == max(-1, *(record.timestamp for record in records))


@SLOWLY
@given(record_lists(headers=False), st.sampled_from(CODECS[:4]), st.sampled_from([0, 1]))
def test_old_message_sets(records: list[Record], codec: Codec, magic: int) -> None:
    results = list(batches(encode_batch(records, codec=codec, magic=magic)))
    assert len(results) == (len(records) if codec == "none" else 1)
    for record in records if magic == 0 else ():
        record.timestamp = -1
    assert [record for batch in results for record in batch] == records
    assert results[0].base_offset == records[0].offset
    assert results[-1].last_offset == records[-1].offset


def test_the_pages_layout_byte_by_byte() -> None:
    """ "5.3 Message Format" of Kafka's implementation page, with another number in each field."""
    records = [
        Record(0x0102030405060709, 0x1112131415161718, b"key", b"value", (("h", b"x"), ("i", None))),
        Record(0x010203040506070C, 0x1112131415161717, None, b""),
    ]
    first = bytes.fromhex("00 00 00 06") + b"key" + bytes.fromhex("0a") + b"value" + bytes.fromhex("04")
    first += bytes.fromhex("02") + b"h" + bytes.fromhex("02") + b"x" + bytes.fromhex("02") + b"i\1"
    second = bytes.fromhex("00 01 06 01 00 00")
    body = bytes([2 * len(first)]) + first + bytes([2 * len(second)]) + second
    codecs: list[tuple[int, Codec]] = [(0, "none"), (1, "gzip"), (2, "snappy"), (3, "lz4")]
    for (number, codec), transactional, control in product(codecs, (False, True), (False, True)):
        packed = compress(codec, body)
        attributes = number | transactional << 4 | control << 5
        covered = struct.pack(
            ">hiqqqhii", attributes, 3, 0x1112131415161718, 0x1112131415161718,
            0x2122232425262728, 0x3132, 0x41424344, 2,
        ) + packed  # fmt: skip
        head = struct.pack(">qiibI", 0x0102030405060709, 9 + len(covered), 0x51525354, 2, crc32c(covered))
        data = encode_batch(
            records, codec=codec, producer_id=0x2122232425262728, producer_epoch=0x3132,
            base_sequence=0x41424344, partition_leader_epoch=0x51525354, transactional=transactional,
            control=control,
        )  # fmt: skip
        assert data == head + covered
        batch = only(data)
        batch.check()
        assert batch.checksum == crc32c(covered)
        assert (batch.codec, batch.transactional, batch.is_control) == (codec, transactional, control)
        assert (batch.base_offset, batch.last_offset, batch.count) == (
            records[0].offset,
            records[1].offset,
            2,
        )
        assert (batch.partition_leader_epoch, batch.magic) == (0x51525354, 2)
        assert {batch.base_timestamp, batch.max_timestamp} == {0x1112131415161718}
        assert (batch.producer_id, batch.producer_epoch) == (0x2122232425262728, 0x3132)
        assert batch.base_sequence == 0x41424344
        assert list(batch) == records
        only(data[:12] + bytes(4) + data[16:]).check()  # the leader epoch is not covered
        for at in range(17, len(data)):
            with pytest.raises(CorruptBatch):
                only(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]).check()
    stamped = only(encode_batch(records, timestamp_type="LogAppendTime", max_timestamp=5))
    assert stamped.attributes == 1 << 3
    plain = encode_batch(records)
    for bit in range(16):
        batch = only(plain[:21] + (1 << bit).to_bytes(2, "big") + plain[23:])
        assert batch.attributes == (1 << bit if bit < 15 else -1 << 15)  # int16
        assert (batch.transactional, batch.is_control) == (bit == 4, bit == 5)
        assert (batch.timestamp_type == "LogAppendTime") is (bit == 3)


def test_every_field_of_the_header() -> None:
    given_fields: dict[str, Any] = {
        "base_offset": 7,
        "timestamp_type": "LogAppendTime",
        "max_timestamp": 5000,
        "producer_id": 2**62,
        "producer_epoch": 3,
        "base_sequence": 2**31 - 2,
        "transactional": True,
        "partition_leader_epoch": 9,
        "delete_horizon_ms": 4000,
        "last_offset": 20,
    }
    batch = only(encode_batch([Record(timestamp=1), Record(timestamp=2)], control=True, **given_fields))
    for name, value in given_fields.items():
        assert getattr(batch, name) == value
    assert batch.is_control
    assert batch.last_sequence == 11
    assert [r.timestamp for r in batch] == [5000, 5000]
    assert [r.timestamp for r in batch.records(create_time=True)] == [1, 2]
    assert "at byte 0" in repr(batch)


def test_offsets() -> None:
    rows = [Record(), Record(offset=5), Record(), Record(offset=9)]
    assert [r.offset for r in only(encode_batch(rows))] == [0, 5, 6, 9]
    assert [r.offset for r in only(encode_batch(rows, base_offset=3))] == [3, 5, 6, 9]
    with pytest.raises(OutOfRange) as error_info:
        encode_batch([Record(offset=5), Record(offset=5)])
    assert error_info.value.path == "records[1].offset"
    with pytest.raises(OutOfRange):
        encode_batch([Record(offset=5)], base_offset=6)


def test_plain_values_of_unusual_types() -> None:
    record = Record(key=memoryview(b"k"), value=bytearray(b"v"), headers=[["h", memoryview(b"x")]])  # type: ignore[arg-type, list-item]
    assert list(only(encode_batch([record]))) == [Record(0, -1, b"k", b"v", (("h", b"x"),))]


def test_header_keys_that_are_not_utf8() -> None:
    data = encode_batch([Record(headers=(("\udcff\udc80ä", b""),))])
    assert b"\xff\x80\xc3\xa4" in data
    batch = only(data)
    assert encode_batch(batch) == data


@pytest.mark.parametrize(
    ("records", "error", "path"),
    [
        ([Record(key="k")], WrongType, "records[0].key"),  # type: ignore[arg-type]
        ([Record(), Record(value=5)], WrongType, "records[1].value"),  # type: ignore[arg-type]
        ([Record(timestamp=1.5)], WrongType, "records[0].timestamp"),  # type: ignore[arg-type]
        ([Record(timestamp=2**63)], OutOfRange, "records[0].timestamp"),
        ([Record(timestamp=2**62), Record(timestamp=-(2**63))], OutOfRange, "records[1].timestamp"),
        ([Record(offset="1")], WrongType, "records[0].offset"),  # type: ignore[arg-type]
        ([Record(offset=-2)], OutOfRange, "records[0].offset"),
        ([Record(offset=2**63)], OutOfRange, "records[0].offset"),
        ([Record(offset=True)], WrongType, "records[0].offset"),
        ([Record(offset=0), Record(offset=2**31)], OutOfRange, "records[1].offset"),
        ([Record(headers=5)], WrongType, "records[0].headers"),  # type: ignore[arg-type]
        ([Record(headers=[("a",)])], WrongType, "records[0].headers[0]"),  # type: ignore[list-item]
        ([Record(headers=[(None, b"")])], WrongType, "records[0].headers[0].key"),  # type: ignore[list-item]
        ([Record(headers=[(b"a", b"")])], WrongType, "records[0].headers[0].key"),  # type: ignore[list-item]
        ([Record(headers=[("\ud800", b"")])], OutOfRange, "records[0].headers[0].key"),
        ([Record(headers=[("a", "b")])], WrongType, "records[0].headers[0].value"),  # type: ignore[list-item]
        ([None], WrongType, "records[0]"),
    ],
)
def test_refused_records(records: list[Any], error: type[EncodeError], path: str) -> None:
    for magic in (2, 1):
        if magic == 1 and ("2**31" in path or path == "records[1].offset" or records[-1] == records[0]):
            continue
        if magic == 1 and path == "records[1].timestamp":
            continue
        with pytest.raises(error) as error_info:
            encode_batch(records, magic=magic)
        assert error_info.value.path == path


@pytest.mark.parametrize(
    ("fields", "error", "path"),
    [
        ({"codec": "lzo"}, OutOfRange, "codec"),
        ({"timestamp_type": 1}, OutOfRange, "timestamp_type"),
        ({"magic": 3}, OutOfRange, "magic"),
        ({"producer_id": 2**63}, OutOfRange, "producer_id"),
        ({"producer_epoch": 40_000}, OutOfRange, "producer_epoch"),
        ({"base_sequence": "1"}, WrongType, "base_sequence"),
        ({"partition_leader_epoch": None}, WrongType, "partition_leader_epoch"),
        ({"transactional": 1}, WrongType, "transactional"),
        ({"last_offset": -1}, OutOfRange, "last_offset"),
        ({"last_offset": 2**31}, OutOfRange, "last_offset"),
        ({"base_offset": 2**63 - 1}, OutOfRange, "last_offset"),
        ({"codec": "zstd", "level": 40}, OutOfRange, ""),
        ({"codec": "snappy", "level": 1}, OutOfRange, ""),
        ({"magic": 1, "producer_id": 5}, NotInVersion, "producer_id"),
        ({"magic": 0, "control": True}, NotInVersion, "control"),
        ({"magic": 1, "codec": "zstd"}, NotInVersion, "codec"),
    ],
)
def test_refused_fields(fields: dict[str, Any], error: type[EncodeError], path: str) -> None:
    with pytest.raises(error) as error_info:
        encode_batch([Record(), Record()], **fields)
    assert error_info.value.path == path


def test_headers_need_magic_2() -> None:
    with pytest.raises(NotInVersion) as error_info:
        encode_batch([Record(headers=(("a", b""),))], magic=1)
    assert error_info.value.path == "records[0].headers"


@pytest.mark.parametrize("magic", [0, 1])
def test_offsets_of_messages_have_64_bits(magic: int) -> None:
    with pytest.raises(OutOfRange) as error_info:
        encode_batch([Record(), Record(offset=2**63)], magic=magic)
    assert error_info.value.path == "records[1].offset"


def test_nothing() -> None:
    batch = only(encode_batch([], base_offset=5, last_offset=9, codec="gzip"))
    assert (list(batch), batch.count, batch.size, batch.last_offset) == ([], 0, 61, 9)
    assert encode_batch([], magic=1) == b""


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_builder_fills_up(magic: int) -> None:
    builder = RecordBatchBuilder(magic=magic, limit=1000, base_offset=50)
    taken = 0
    while builder.append(Record(value=b"v" * 90)):
        taken += 1
        assert builder.count == taken
        assert builder.size == len(builder.build()) <= 1000
    assert builder.size + 90 < 1200
    before = builder.build()
    assert not builder.append(Record(value=b"v" * 90))
    assert builder.build() == before
    assert before == encode_batch([Record(value=b"v" * 90)] * taken, magic=magic, base_offset=50)
    assert builder.append(Record()) == (builder.size + 40 <= 1000 or builder.build() != before)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_builder_is_not_copied(way: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="can't be copied"):
        way(RecordBatchBuilder())


def test_builder_takes_the_first_record_whatever_its_size() -> None:
    builder = RecordBatchBuilder(limit=10)
    assert builder.append(Record(value=bytes(1000)))
    assert not builder.append(Record())
    assert builder.count == 1


def test_builder_after_a_refusal() -> None:
    builder = RecordBatchBuilder()
    builder.append(Record(timestamp=5, value=b"a"))
    with pytest.raises(WrongType) as error_info:
        builder.append(Record(value=3))  # type: ignore[arg-type]
    assert error_info.value.path == "records[1].value"
    with pytest.raises(OutOfRange):
        builder.extend([Record(), Record(offset=0)])
    builder.append(Record(timestamp=6, value=b"b"))
    assert builder.build() == encode_batch([Record(timestamp=5, value=b"a"), Record(timestamp=6, value=b"b")])


@SLOWLY
@given(record_lists(base=50), st.lists(st.integers(0, 8), max_size=4), st.data())
def test_one_by_one_is_as_all_at_once(records: list[Record], refused: list[int], data: st.DataObject) -> None:
    """Whatever is refused or doesn't fit in between."""
    large = Record(key=b"k" * 99)
    bad = st.sampled_from([Record(value="text"), Record(offset=1), large])  # type: ignore[arg-type]
    builder = RecordBatchBuilder()
    for number, record in enumerate(records):
        for _ in range(refused.count(number)):
            chosen = data.draw(bad)
            if chosen is not large:
                with pytest.raises(EncodeError):
                    builder.extend([record, chosen])
            elif number:
                builder.limit = builder.size + 20
                assert not builder.append(large)
                builder.limit = None
        assert builder.append(record)
        assert (builder.count, builder.size) == (number + 1, len(encode_batch(records[: number + 1])))
    assert builder.build() == encode_batch(records)
