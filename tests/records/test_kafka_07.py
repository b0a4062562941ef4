"""Kafka 0.7's messages: as `construct` builds and parses them, and what is refused or passed over."""

from __future__ import annotations

import pickle
from contextlib import suppress
from typing import Any
from zlib import crc32

import pytest
from construct import ConstructError
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CorruptBatch, EncodeError, LimitExceeded, NotInVersion, OutOfRange, WrongType
from coordwire.records import Record, UnreadableRange
from coordwire.records.compression import Codec, compress
from coordwire.records.kafka_07 import Kafka07Batch, batches, encode_messages
from schemas.record_batch import Kafka07MessageSet

PAYLOADS = st.lists(st.one_of(st.binary(max_size=30), st.integers(0, 300).map(bytes)), max_size=5)
CODECS: list[Codec] = ["none", "gzip", "snappy"]
WORDS = [b"one", b"two", b"", b"three"]


def message(payload: bytes, magic: int = 1, attributes: int = 0, crc: int | None = None) -> bytes:
    stated = crc32(payload) if crc is None else crc
    body = bytes([magic, attributes][: magic + 1]) + stated.to_bytes(4) + payload
    return len(body).to_bytes(4) + body


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 63).map(lambda n: n << 2), st.binary())))
def test_what_construct_builds(told: list[tuple[int, int, bytes]]) -> None:
    rows = [{"magic": m, "attributes": a if m else None, "payload": p} for m, a, p in told]
    data = Kafka07MessageSet.build(rows)
    place = 1000
    for batch, (magic, _, payload) in zip(batches(data, position=1000), told, strict=True):
        assert (batch.magic, batch.codec, batch.count) == (magic, "none", 1)
        assert (batch.base_offset, batch.last_offset) == (place, place)
        assert list(batch) == [Record(place, -1, None, payload)]
        place = batch.next_offset
    assert place == 1000 + len(data)


@given(PAYLOADS, st.sampled_from([0, 1]))
def test_what_construct_parses(payloads: list[bytes], magic: int) -> None:
    data = encode_messages(payloads, magic=magic)
    parsed = Kafka07MessageSet.parse(data)
    assert [(row.magic, row.payload) for row in parsed] == [(magic, payload) for payload in payloads]
    assert Kafka07MessageSet.build(parsed) == data


@given(PAYLOADS, st.sampled_from(CODECS))
def test_written_and_read(payloads: list[bytes], codec: Codec) -> None:
    data = encode_messages(payloads, codec=codec)
    results = list(batches(data, position=50))
    assert [record.value for batch in results for record in batch] == payloads
    assert all(record.offset == batch.base_offset for batch in results for record in batch)
    copied = pickle.loads(pickle.dumps(results))
    assert [(batch.position, list(batch)) for batch in copied] == [
        (batch.position, list(batch)) for batch in results
    ]
    if codec != "none" and payloads:
        (wrapper,) = results
        assert (wrapper.codec, wrapper.count, wrapper.base_offset) == (codec, None, 50)
        assert [row.attributes & 3 for row in Kafka07MessageSet.parse(data)] == [CODECS.index(codec)]


@settings(max_examples=300)
@given(st.data())
def test_hostile(draw: st.DataObject) -> None:
    """What construct reads whole, we read so; what we read, construct does."""
    data = bytearray(encode_messages(draw.draw(PAYLOADS), magic=draw.draw(st.integers(0, 1))))
    for _ in range(draw.draw(st.integers(0, 2))):
        at = draw.draw(st.integers(0, len(data)))
        data[at : at + draw.draw(st.integers(0, 2))] = draw.draw(st.binary(max_size=2))
    parsed = Kafka07MessageSet.parse(bytes(data))
    ends: int = len(Kafka07MessageSet.build(parsed))
    results: list[Any] = []
    with suppress(CorruptBatch):
        for batch in batches(data):
            results += [record.value for record in batch]
    plain = [row.payload for row in parsed if not (row.attributes or 0) & 3]
    assert results == plain[: len(results)]
    if ends == len(data) and len(plain) == len(parsed):
        assert results == plain


MIDDLE = message(b"middle")
BAD = {
    "the CRC-32 is": message(b"middle", crc=1),
    "expected a Kafka 0.7 magic of 0 or 1, got 2": b"\0\0\0\x0c\2" + MIDDLE[5:],
    "can't have a length of 4 bytes": b"\0\0\0\x04" + MIDDLE[4:],
    "can't have a length of -1 bytes": b"\xff\xff\xff\xff" + MIDDLE[4:],
    "magic 1 can't have a length of 5 bytes": b"\0\0\0\x05\1" + bytes(4),
    "with whole batches among them": b"\0\0\xff\xff" + MIDDLE[4:],
    "not valid gzip": message(b"middle", attributes=1),
    "not valid snappy": message(b"middle", attributes=2),
    "codec number 3 is unknown": message(b"middle", attributes=3),
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_message_among_good_ones(reason: str) -> None:
    before, following = (
        message(b"before") + message(b"", 0),
        message(b"behind", 0) + message(b"") + message(b"end"),
    )
    data = before + BAD[reason] + following
    with pytest.raises(CorruptBatch, match=reason) as error_info:
        [list(batch) for batch in batches(data)]
    assert len(before) <= error_info.value.position < len(data) - len(following)
    results = list(batches(data, on_error="report"))
    bad = [unreadable for unreadable in results if isinstance(unreadable, UnreadableRange)]
    assert [(unreadable.position, unreadable.length) for unreadable in bad] == [
        (len(before), len(BAD[reason]))
    ]
    assert reason in bad[0].reason
    values = [record.value for result in results if isinstance(result, Kafka07Batch) for record in result]
    assert values == [b"before", b"", b"behind", b"", b"end"]


INSIDE = {
    "a length needs 4 bytes, 3 left": MIDDLE + b"\0\0\0",
    "expected a message's magic of 0 or 1, got 7": b"\0\0\0\x0c\7" + MIDDLE[5:],
    "magic 0 can't have 0 bytes": bytes(4),
    "a message of 100 bytes, 12 left": b"\0\0\0\x64" + MIDDLE[4:],
    "a compressed message inside another": message(b"", attributes=1),
    "the CRC-32 is": message(b"middle", crc=1),
}


@pytest.mark.parametrize("reason", INSIDE)
def test_bad_messages_inside_a_compressed_one(reason: str) -> None:
    data = message(compress("gzip", MIDDLE + INSIDE[reason]), attributes=1)
    (batch,) = batches(data, position=7)
    reader = iter(batch)
    assert next(reader).value == b"middle"
    with pytest.raises(CorruptBatch, match=reason) as error_info:
        list(reader)
    assert error_info.value.position == 10
    assert error_info.value.path.startswith("records[1]") or "a length needs" in reason
    assert "bytes into the decompressed records" in error_info.value.reason


def test_the_ends() -> None:
    data = encode_messages(WORDS)
    for end in range(len(data)):
        reader = batches(data[:end])
        values = [record.value for batch in reader for record in batch]
        assert values == WORDS[: len(values)]
        assert bytes(reader.remainder) == data[reader.position : end]
    with pytest.raises(CorruptBatch, match="only 100 zero bytes"):
        list(batches(data + bytes(100)))
    assert encode_messages([], codec="gzip") == b""
    (batch,) = batches(message(compress("gzip", b""), attributes=1))
    assert list(batch) == []
    assert "Kafka07Batch of magic 1" in repr(batch)
    assert (batch.timestamp_type, batch.producer_id, batch.max_timestamp) == ("NoTimestampType", -1, -1)


def test_a_message_lost_in_zeros_is_found() -> None:
    data = b"\xff" * 5 + bytes(1000) + message(b"x" * 70000) + bytes(200) + message(b"last", 0)
    results = list(batches(data, on_error="skip"))
    assert [len(record.value or b"") for batch in results for record in batch] == [70000, 4]


def test_a_bomb() -> None:
    data = encode_messages([bytes(1 << 20)], codec="gzip")
    with limits(decompressed=1000), pytest.raises(LimitExceeded):
        [list(batch) for batch in batches(data)]


def test_a_set_of_many_is_read_in_parts() -> None:
    payloads = [b"%d" % number for number in range(2000)]
    (batch,) = batches(encode_messages(payloads, codec="gzip"))
    assert [record.value for record in batch] == payloads
    batch.verify()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"magic": 2}, OutOfRange),
        ({"codec": "brotli"}, OutOfRange),
        ({"codec": "lz4"}, NotInVersion),
        ({"codec": "gzip", "magic": 0}, NotInVersion),
        ({"codec": "gzip", "level": 11}, OutOfRange),
        ({"payloads": ["text"]}, WrongType),
    ],
)
def test_what_cannot_be_written(arguments: dict[str, Any], error: type[EncodeError]) -> None:
    with pytest.raises(error):
        encode_messages(**{"payloads": [b"x"], **arguments})


def test_construct_refuses_what_we_refuse() -> None:
    with pytest.raises(ConstructError):
        Kafka07MessageSet.subcon.parse(BAD["the CRC-32 is"])


def test_many_bad_ones_are_passed_over_without_crawling() -> None:
    data = message(b"bad", 0, crc=1) * 20_000 + MIDDLE
    (batch,) = batches(data, on_error="skip")
    assert [record.value for record in batch] == [b"middle"]


def test_a_header_across_the_edges_of_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordwire.records.resync.WINDOW", (16, 16))
    for gap in range(40):
        for filler in (b"\xff", b"\0"):
            (batch,) = batches(b"\xff" * 9 + filler * (gap + 100) + MIDDLE, on_error="skip")
            assert batch.position == 109 + gap
