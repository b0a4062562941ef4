"""Records of brokers' own logs: Kafka's bytes, round trips, and what isn't known or can't be read."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import (
    DecodeError,
    Deviation,
    EncodeError,
    Malformed,
    NotInVersion,
    OutOfRange,
    Truncated,
    WrongType,
    from_json,
    limits,
    to_json,
)
from coordwire.codec import Message
from coordwire.embedded import open_embedded
from coordwire.errors import LimitExceeded
from coordwire.logs import (
    TOPICS,
    Log,
    LogRecord,
    decode_log_record,
    encode_log_record,
    find_record,
    open_log_record,
)
from coordwire.messages import (
    ConsumerGroupMemberMetadataValue,
    ConsumerProtocolSubscription,
    GroupMetadataKey,
    GroupMetadataValue,
    NoOpRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    TopicRecord,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from coordwire.messages.record_types import RECORD_TYPES
from coordwire.records import Record
from coordwire.testing import strategies
from schemas._generate.walk import modules

RECORDS = Path(__file__).parent / "data/logs/records.jsonl"
SAMPLES = [json.loads(line) for line in RECORDS.read_text().splitlines()]
CELLS: list[tuple[Log, int, int]] = [
    (log, number, version)
    for log, types in RECORD_TYPES.items()
    for number in types
    for version in find_record(log, number).value.versions
]
DECLARED = {row.message.name: row.message for module in modules() for row in module.messages if row.message}
KEY = OffsetCommitKey(group="payments", topic="orders", partition=3)
KEY_BYTES = bytes.fromhex("0001 0008 7061796d656e7473 0006 6f7264657273 00000003")
VALUE = OffsetCommitValue(offset=42, metadata="m", commit_timestamp=7)


def unhex(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def form(message: Message | bytes | None, version: int | None) -> object:
    assert not isinstance(message, bytes)
    return None if message is None else to_json(message, version=version or 0)


# --- Kafka's own bytes ---


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s['log']}-{s['type']}-v{s['version']}")
def test_a_record_of_kafkas(sample: dict[str, Any]) -> None:
    key, value = unhex(sample["key_hex"]), unhex(sample["value_hex"])
    record = decode_log_record(sample["log"], key, value)
    assert (record.type, record.version, record.unknown) == (sample["type"], sample["version"], None)
    assert form(record.key, 0) == sample["key"]
    assert form(record.value, record.version) == sample["value"]
    assert encode_log_record(record) == (key, value)


def test_kafkas_records_are_all_there() -> None:
    seen = {(sample["log"], sample["type"], sample["version"]) for sample in SAMPLES}
    only_other_releases = {("consumer_offsets", 9, 0), ("metadata", 29, 0)}
    assert {cell for cell in CELLS if cell not in seen} == only_other_releases


# --- round trips ---


@given(st.data(), st.sampled_from(CELLS))
def test_a_record_comes_back(data: st.DataObject, cell: tuple[Log, int, int]) -> None:
    log, number, version = cell
    classes = find_record(log, number)
    key = None if classes.key is None else data.draw(strategies.messages(classes.key, version=0))
    values = strategies.messages(classes.value, version=version)
    value = data.draw(values if key is None else st.none() | values)
    record = LogRecord(log=log, type=number, key=key, value=value, version=None if value is None else version)
    assert decode_log_record(log, *encode_log_record(record)) == record


@given(st.sampled_from(list(TOPICS)), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(log: Log, key: bytes | None, value: bytes | None) -> None:
    refused = None
    try:
        record = decode_log_record(log, key, value)
    except DecodeError as error:
        refused = error
    if refused is None:
        assert decode_log_record(log, *encode_log_record(record)) == record
    else:
        part = refused.path.split(".")[0]
        assert 0 <= refused.position <= len({"key": key, "value": value}[part] or b"")


@given(st.data(), st.sampled_from(CELLS))
def test_hostile_values_are_read_or_refused(data: st.DataObject, cell: tuple[Log, int, int]) -> None:
    log, number, version = cell
    classes = find_record(log, number)
    key = None if classes.key is None else data.draw(strategies.messages(classes.key, version=0))
    value = data.draw(strategies.hostile_bytes(classes.value, version=version))
    key_bytes, value_bytes = encode_log_record(
        LogRecord(log=log, type=number, key=key, value=value, version=version)
    )
    refused = None
    try:
        record = decode_log_record(log, key_bytes, value_bytes)
    except DecodeError as error:
        refused = error
    if refused is None:
        assert record.unknown is None
        assert isinstance(record.value, classes.value)
    else:
        assert refused.path.split(".")[0] == "value"


# --- leniently ---


def test_what_kafka_accepts_is_odd() -> None:
    value = encode_log_record(LogRecord(log="consumer_offsets", type=1, key=KEY, value=VALUE, version=3))[1]
    assert value is not None
    odd: list[Deviation] = []
    record = decode_log_record("consumer_offsets", KEY_BYTES, value + b"x", strict=False, deviations=odd)
    assert record.value == VALUE
    assert odd == [Deviation("1 trailing byte", len(value), "value")]
    with pytest.raises(Malformed):
        decode_log_record("consumer_offsets", KEY_BYTES, value + b"x")


def test_an_over_long_frame_is_odd() -> None:
    odd: list[Deviation] = []
    record = decode_log_record("metadata", None, b"\1\x94\0\0\0", strict=False, deviations=odd)
    assert (record.type, record.value) == (20, NoOpRecord())
    assert odd == [Deviation("the varint of the record type is over-long", 1, "value")]


@given(st.sampled_from(list(TOPICS)), st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40))
def test_opening_never_raises(log: Log, key: bytes | None, value: bytes | None) -> None:
    opened = open_log_record(TOPICS[log], Record(key=key, value=value))
    assert opened is not None
    try:
        record = decode_log_record(log, key, value, strict=False)
    except DecodeError as refused:
        record = LogRecord(log=log, type=opened.type, key=opened.key, value=value, unknown=str(refused))
    assert opened == record


def test_what_opens() -> None:
    key, value = encode_log_record(LogRecord(log="consumer_offsets", type=1, key=KEY, value=VALUE, version=3))
    assert value is not None
    assert open_log_record("orders", Record(key=key, value=value)) is None
    opened = open_log_record("__consumer_offsets", Record(key=key, value=value))
    assert opened is not None
    assert (opened.key, opened.value, opened.unknown) == (KEY, VALUE, None)
    cut = open_log_record("__consumer_offsets", Record(key=key, value=value[:-1]))
    assert cut is not None
    assert (cut.type, cut.key, cut.value) == (1, KEY, value[:-1])
    assert cut.unknown == "int64 needs 8 bytes, 7 left at byte 17 in value.commit_timestamp"


# --- what isn't known ---


def test_a_tombstone() -> None:
    record = decode_log_record("consumer_offsets", KEY_BYTES, None)
    assert record == LogRecord(log="consumer_offsets", type=1, key=KEY)
    assert encode_log_record(record) == (KEY_BYTES, None)


@pytest.mark.parametrize("value", [None, b"", b"\0", b"\0\7rest"])
def test_an_unknown_type_stays_bytes(value: bytes | None) -> None:
    for number in (99, -1):
        key = number.to_bytes(2, signed=True) + b"\0\1g"
        record = decode_log_record("consumer_offsets", key, value)
        assert (record.type, record.key, record.value, record.version) == (number, b"\0\1g", value, None)
        assert record.unknown == f"record type {number} is unknown"
        assert encode_log_record(record) == (key, value)


def test_a_newer_version_stays_bytes() -> None:
    value = b"\0\5whatever"
    record = decode_log_record("consumer_offsets", KEY_BYTES, value)
    assert (record.key, record.value, record.version) == (KEY, b"whatever", 5)
    assert record.unknown == "OffsetCommitValue has no version 5: it has 0 to 4"
    assert encode_log_record(record) == (KEY_BYTES, value)


@pytest.mark.parametrize(
    ("value", "wanted", "why"),
    [
        (b"\2\2\0rest", (2, None, None, b"\2\0rest"), "frame version 2 is unknown"),
        (b"\1\xac\2\0rest", (1, 300, None, b"\0rest"), "record type 300 is unknown"),
        (b"\1\2\1rest", (1, 2, 1, b"rest"), "TopicRecord has no version 1: it has 0 to 0"),
    ],
)
def test_what_is_unknown_in_the_metadata_log(value: bytes, wanted: tuple[object, ...], why: str) -> None:
    record = decode_log_record("metadata", None, value)
    assert (record.frame_version, record.type, record.version, record.value) == wanted
    assert record.unknown == why
    assert encode_log_record(record) == (None, value)


def test_a_metadata_record_with_a_key() -> None:
    record = decode_log_record("metadata", b"k", b"\1\x14\0\0")
    assert (record.key, record.value) == (b"k", NoOpRecord())
    assert record.unknown == "a key has no meaning in the metadata log"
    assert encode_log_record(record) == (b"k", b"\1\x14\0\0")


def test_any_buffer_serves() -> None:
    record = decode_log_record("consumer_offsets", memoryview(KEY_BYTES), bytearray(b"\0\7x"))
    assert (record.key, record.value) == (KEY, b"x")


# --- what is refused ---


@pytest.mark.parametrize(
    ("log", "key", "value", "kind", "offset", "path", "reason"),
    [
        ("consumer_offsets", None, b"", Malformed, 0, "key", "a record of __consumer_offsets needs a key"),
        ("consumer_offsets", b"\0", None, Truncated, 0, "key", "the record type needs 2 bytes, 1 given"),
        ("consumer_offsets", KEY_BYTES[:-1], None, Truncated, 20, "key.partition", None),
        ("consumer_offsets", KEY_BYTES + b"x", None, Malformed, 24, "key", "1 trailing byte"),
        ("consumer_offsets", KEY_BYTES, b"\0", Truncated, 0, "value", None),
        ("consumer_offsets", KEY_BYTES, b"\0\0" + bytes(7), Truncated, 2, "value.offset", None),
        ("metadata", None, None, Malformed, 0, "value", "a record of __cluster_metadata needs a value"),
        ("metadata", None, b"", Truncated, 0, "value", "the frame version ends early"),
        ("metadata", None, b"\1\x80", Truncated, 2, "value", "the record type ends early"),
        ("metadata", None, b"\1\2", Truncated, 2, "value", "the value's version ends early"),
        (
            "metadata",
            None,
            b"\1\x82\0\0",
            Malformed,
            1,
            "value",
            "the varint of the record type is over-long",
        ),
        ("metadata", None, b"\xff\xff\xff\xff\x1f", Malformed, 0, "value", None),
        ("metadata", None, b"\xff" * 9, Malformed, 0, "value", None),
        ("metadata", None, b"\1\2\0\2ab", Truncated, 5, "value.topic_id", None),
    ],
)
def test_a_refusal_says_where(
    log: Log,
    key: bytes | None,
    value: bytes | None,
    kind: type[DecodeError],
    offset: int,
    path: str,
    reason: str | None,
) -> None:
    with pytest.raises(kind) as error_info:
        decode_log_record(log, key, value)
    assert (error_info.value.position, error_info.value.path) == (offset, path)
    assert reason in (None, error_info.value.reason)


def test_budgets_hold() -> None:
    key, value = encode_log_record(
        LogRecord(
            log="consumer_offsets",
            type=2,
            key=GroupMetadataKey(group="g"),
            value=GroupMetadataValue(members=[MemberMetadata()] * 100),
            version=3,
        )
    )
    with limits(elements=10), pytest.raises(LimitExceeded):
        decode_log_record("consumer_offsets", key, value)


def test_an_unknown_log() -> None:
    with pytest.raises(KeyError):
        decode_log_record("orders", b"", b"")  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        find_record("metadata", 6)


@pytest.mark.parametrize(
    ("changes", "kind", "path"),
    [
        ({"log": "orders"}, WrongType, "log"),
        ({"type": None}, WrongType, "type"),
        ({"type": 1 << 15}, OutOfRange, "type"),
        ({"type": 99}, WrongType, "key"),
        ({"key": None}, WrongType, "key"),
        ({"key": "payments"}, WrongType, "key"),
        ({"key": VALUE}, WrongType, "key"),
        ({"value": KEY}, WrongType, "value"),
        ({"version": None}, WrongType, "version"),
        ({"version": 5}, NotInVersion, "value"),
        ({"version": -40_000}, OutOfRange, "version"),
        ({"key": OffsetCommitKey(partition=1 << 40)}, OutOfRange, "key.partition"),
        ({"value": OffsetCommitValue(metadata=3)}, WrongType, "value.metadata"),  # type: ignore[arg-type]
        ({"log": "metadata"}, WrongType, "key"),
    ],
)
def test_what_cannot_be_written(changes: dict[str, Any], kind: type[EncodeError], path: str) -> None:
    whole: dict[str, Any] = {"log": "consumer_offsets", "type": 1, "key": KEY, "value": VALUE, "version": 4}
    with pytest.raises(kind) as error_info:
        encode_log_record(LogRecord(**whole | changes))
    assert error_info.value.path == path


@pytest.mark.parametrize(
    ("changes", "kind", "path"),
    [
        ({"value": None}, WrongType, "value"),
        ({"version": None}, WrongType, "version"),
        ({"type": None}, WrongType, "type"),
        ({"type": -1}, OutOfRange, "type"),
        ({"frame_version": "1"}, WrongType, "frame_version"),
        ({"value": NoOpRecord()}, WrongType, "value"),
    ],
)
def test_what_cannot_be_written_to_the_metadata_log(
    changes: dict[str, Any], kind: type[EncodeError], path: str
) -> None:
    whole: dict[str, Any] = {"log": "metadata", "type": 2, "value": TopicRecord(name="a"), "version": 0}
    with pytest.raises(kind) as error_info:
        encode_log_record(LogRecord(**whole | changes))
    assert error_info.value.path == path


# --- the table, and what the records hold ---


def test_the_table_needs_no_message() -> None:
    script = (
        "import sys, coordwire.messages.record_types; "
        "print([name for name in sys.modules if name.endswith(('_records', '_log'))])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_groups_members_open() -> None:
    subscription = ConsumerProtocolSubscription(topics=["orders"])
    member = MemberMetadata(member_id="m", subscription=b"\0\1" + subscription.encode(version=1))
    group = GroupMetadataValue(protocol_type="consumer", members=[member])
    opened = open_embedded(group)
    assert opened["members[0].subscription"].message == subscription


@pytest.mark.parametrize(
    ("classic", "wire"),
    [
        (None, "01 00 01 00"),
        (ClassicMemberMetadata(), "00"),
        (ClassicMemberMetadata(session_timeout_ms=10), "01 00 07 01 0000000a 01 00"),
    ],
)
def test_a_tagged_struct_that_may_be_null(classic: ClassicMemberMetadata | None, wire: str) -> None:
    """Its marker is 0 for null, where any other's is -1: Kafka's own bytes, written by its 4.3.0."""
    value = ConsumerGroupMemberMetadataValue(classic_member_metadata=classic)
    data = bytes.fromhex("01 01 01 01 01 01 ffffffff 01" + wire)
    assert value.encode(version=0) == data
    assert ConsumerGroupMemberMetadataValue.decode(data, version=0) == value
    assert ConsumerGroupMemberMetadataValue.decode(data, version=0, strict=False) == value
    message = from_json(ConsumerGroupMemberMetadataValue, to_json(value, version=0), version=0)
    assert message == value


@pytest.mark.parametrize("marker", ["02", "ff01"])
def test_a_tagged_struct_of_another_marker(marker: str) -> None:
    size = len(marker) // 2
    data = bytes.fromhex(f"01 01 01 01 01 01 ffffffff 01 01 00 {size:02x} {marker} 00000000 01 00")
    with pytest.raises(Malformed, match="a struct's marker is") as error_info:
        ConsumerGroupMemberMetadataValue.decode(data, version=0)
    assert (error_info.value.position, error_info.value.path) == (14, "classic_member_metadata")


@given(st.data(), st.sampled_from(CELLS))
def test_construct_agrees(data: st.DataObject, cell: tuple[Log, int, int]) -> None:
    log, number, version = cell
    cls = find_record(log, number).value
    value = data.draw(strategies.messages(cls, version=version, nan=True))
    schema = DECLARED[cls.__name__]
    wire = value.encode(version=version)
    assert schema.build(schema.parse(wire, version=version), version=version) == wire


def enveloped(payload: bytes, version: int = 0, compatible: int = 0) -> bytes:
    """A value as Redpanda's serde writes it: version, compatible version, size, all little-endian."""
    return struct.pack("<BBI", version, compatible, len(payload)) + payload


GROUP_KEY = b"\x00\x03" + ConsumerGroupMetadataKey(group_id="g").encode(version=0)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("version", [0, 1, 3])
def test_a_value_of_redpandas_stays_bytes(version: int, strict: bool) -> None:
    value = enveloped(struct.pack("<iq", 7, 0), version)
    record = decode_log_record("consumer_offsets", GROUP_KEY, value, strict=strict)
    assert (record.type, record.version, record.value) == (3, None, value)
    assert record.unknown == "not Kafka's layout: an envelope of Redpanda's serde"
    assert encode_log_record(record) == (GROUP_KEY, value)


def test_an_envelope_is_not_older_than_its_readers() -> None:
    """Of version 0, readable from version 1 on: no envelope, but a value of Kafka's version 1."""
    record = decode_log_record("consumer_offsets", GROUP_KEY, enveloped(b"\x07", 0, 1))
    assert record.version == 1
    assert record.unknown == "ConsumerGroupMetadataValue has no version 1: it has 0 to 0"


def test_a_value_of_kafkas_that_looks_like_an_envelope_is_kafkas() -> None:
    value = b"\x00\x00" + ConsumerGroupMetadataValue(epoch=1 << 24).encode(version=0)
    assert value == enveloped(value[6:])
    record = decode_log_record("consumer_offsets", GROUP_KEY, value)
    assert record.value == ConsumerGroupMetadataValue(epoch=1 << 24)
