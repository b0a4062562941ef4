"""`decode --deep` on record sets: as JSON, for people, and when something is wrong with them."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from coordwire.cli import record_sets
from coordwire.codec import Message
from coordwire.connection.dialect import Dialect
from coordwire.dialects.grammar import Grammar
from coordwire.errors import CodecUnavailable
from coordwire.frames import encode_request, encode_response
from coordwire.logs import Log, LogRecord, encode_log_record
from coordwire.messages import (
    FetchRequest,
    FetchResponse,
    Kafka07ProduceRequest,
    OffsetCommitKey,
    OffsetCommitValue,
    ProduceRequest,
    TopicRecord,
    UserScramCredentialRecord,
    fetch,
)
from coordwire.messages.control_records import EndTxnMarker
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import ControlType, Record, control_record, encode_batch
from coordwire.records.kafka_07 import encode_messages

from .conftest import Run

PATH = "topic_data[0].partition_data[0].records"
TIME = 1_760_000_000_000
ROWS = [
    Record(-1, TIME, b"key", "wört".encode(), (("trace", b"1"), ("empty", None))),
    Record(-1, TIME + 1, None, b"\xff\0"),
    Record(-1, -1, b"", None),
]
BATCH = encode_batch(ROWS, base_offset=7, codec="gzip", producer_id=4, producer_epoch=1, base_sequence=0)
MARKER = encode_batch(
    [control_record(ControlType.COMMIT, EndTxnMarker(coordinator_epoch=3))],
    control=True, transactional=True, producer_id=4, producer_epoch=1,
)  # fmt: skip


def produced(data: bytes) -> bytes:
    partition = PartitionProduceData(index=0, records=data)
    topic = TopicProduceData(name="orders", partition_data=[partition])
    return encode_request(ProduceRequest(acks=0, topic_data=[topic]), version=9, correlation_id=1)


def deep(run: Run, data: bytes) -> list[Any]:
    """The batches that `--deep` shows."""
    (form,) = run(
        "decode", "--format", "json", "-", "--deep", "--input", "frames", stdin=produced(data)
    ).forms
    assert form["body"]["topicData"][0]["partitionData"][0]["records"] == base64.b64encode(data).decode()
    opened = form["embedded"][PATH]
    assert (opened["type"], opened["version"]) == ("RecordSet", None)
    results: list[Any] = opened["value"]["batches"]
    return results


def test_batches_and_records(run: Run) -> None:
    batch, marker = deep(run, BATCH + MARKER)
    assert batch.pop("records") == [
        {"offset": 7, "timestamp": TIME, "key": "a2V5", "value": "d8O2cnQ=",
         "headers": [["trace", "MQ=="], ["empty", None]]},
        {"offset": 8, "timestamp": TIME + 1, "key": None, "value": "/wA=", "headers": []},
        {"offset": 9, "timestamp": -1, "key": "", "value": None, "headers": []},
    ]  # fmt: skip
    assert batch == {
        "position": 0, "size": len(BATCH), "magic": 2, "codec": "gzip", "baseOffset": 7, "lastOffset": 9,
        "timestampType": "CreateTime", "maxTimestamp": TIME + 1, "checksum": int.from_bytes(BATCH[17:21]),
        "partitionLeaderEpoch": -1, "producerId": 4, "producerEpoch": 1, "baseSequence": 0,
        "transactional": False, "control": False, "deleteHorizonMs": None, "count": 3,
    }  # fmt: skip
    (record,) = marker["records"]
    assert record["control"] == {"type": 1, "name": "COMMIT", "value": {"coordinatorEpoch": 3}}


def test_a_bad_batch_and_a_cut_one(run: Run) -> None:
    damaged = BATCH[:-1] + b"\xff"
    first, second, third = deep(run, damaged + BATCH + BATCH[:50])
    assert first["error"]["reason"].startswith("the CRC-32C is")
    assert (first["error"]["position"], first["error"]["length"]) == (0, len(damaged))
    assert second["position"] == len(damaged)
    assert third == {"incomplete": {"position": 2 * len(BATCH), "length": 50}}


def test_what_is_too_much_is_left_out_and_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sets, "MOST_BYTES", 300)
    many = encode_batch([Record(value=b"x" * 68)] * 4)
    cut, remainder = deep(run, many + BATCH)
    assert (cut["count"], len(cut["records"])) == (4, 3)
    assert (
        remainder["error"]["reason"] == "more than 300 bytes of records in one frame: the others are left out"
    )
    assert remainder["error"]["length"] == len(BATCH)
    (bomb,) = deep(run, encode_batch([Record(value=bytes(5000))], codec="gzip"))
    assert "more than 300" in bomb["error"]["reason"]


def test_batches_that_decompress_in_vain_use_up_the_room(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sets, "MOST_BYTES", 4000)
    bomb = encode_batch([Record(value=bytes(5000))], codec="gzip")
    *damaged, remainder = deep(run, 8 * bomb)
    assert ["more than 4000" in item["error"]["reason"] for item in damaged] == [True] * 5
    assert remainder["error"]["length"] == 3 * len(bomb)
    assert remainder["error"]["reason"].startswith("more than 4,000 bytes of records")


def test_without_a_codec(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> bytes:
        raise CodecUnavailable("gzip needs a library")

    monkeypatch.setattr("coordwire.records.batch.decompress", missing)
    (response,) = deep(run, BATCH)
    assert response == {"error": {"position": 0, "length": len(BATCH), "reason": "gzip needs a library"}}


def test_for_people(run: Run) -> None:
    extra = encode_batch(
        [Record(key=b"k", value=b"x" * 500)] * 30, timestamp_type="LogAppendTime", max_timestamp=9
    )
    data = produced(BATCH + MARKER + extra + encode_batch([Record()], magic=1)[:-1] + b"")
    text = run("decode", "-", "--deep", "--input", "frames", "--format", "tree", stdin=data).text
    assert "offsets 7-9  3 records, gzip, producer 4/1, sequence 0" in text
    assert '7  2025-10-09 08:53:20.000  "key" → "wört"  {"trace": "1", "empty": null}' in text
    assert "8  2025-10-09 08:53:20.001  null → 2 bytes ff00" in text
    assert '9  "" → null' in text
    assert '0  COMMIT  {"coordinatorEpoch": 3}' in text
    assert f'"k" → "{"x" * 120}…" (500 bytes)' in text
    assert "log-append time" in text
    assert "… 10 more records" in text
    assert "the rest of this batch is missing" in text


def fetched(topic: str, *records: Record) -> bytes:
    """A Fetch and its answer, with a batch of these records and a marker after it."""
    partition = fetch.PartitionData(records=encode_batch(records) + MARKER)
    answer = FetchResponse(responses=[fetch.FetchableTopicResponse(topic=topic, partitions=[partition])])
    request = encode_request(FetchRequest(), version=12, correlation_id=1)
    return request + encode_response(answer, version=12, correlation_id=1)


def logged(log: Log, number: int, value: Message, key: Message | None = None, version: int = 0) -> Record:
    entry = LogRecord(log=log, type=number, key=key, value=value, version=version)
    return Record(-1, TIME, *encode_log_record(entry))


def test_records_of_the_coordinators_say_what_they_mean(run: Run) -> None:
    key = OffsetCommitKey(group="g", topic="orders", partition=3)
    commit = logged("consumer_offsets", 1, OffsetCommitValue(offset=41), key)
    frames = fetched("__consumer_offsets", commit, Record(value=b"?"))
    _, answer = run("decode", "--format", "json", "-", "--deep", stdin=frames).forms
    first, marker = answer["embedded"]["responses[0].partitions[0].records"]["value"]["batches"]
    known, unknown = first["records"]
    assert known["value"] == base64.b64encode(commit.value or b"").decode()
    assert known["log"]["key"]["value"] == {"group": "g", "topic": "orders", "partition": 3}
    assert known["log"]["value"]["value"]["offset"] == 41
    assert unknown["log"]["unknown"]
    assert "log" not in marker["records"][0]
    text = run("decode", "-", "--deep", "--format", "tree", stdin=frames).text
    assert 'OffsetCommitKey {"group": "g", "topic": "orders", "partition": 3}  OffsetCommitValue' in text


def test_secrets_of_the_metadata_log_stay_hidden(run: Run) -> None:
    scram = UserScramCredentialRecord(
        name="ann", mechanism=1, salt=b"test-only-salt", stored_key=b"test-only-key"
    )
    frames = fetched(
        "__cluster_metadata", logged("metadata", 11, scram), logged("metadata", 2, TopicRecord(name="orders"))
    )
    for form in ("json", "tree"):
        text = run("decode", "-", "--deep", "--format", form, stdin=frames).text
        assert "UserScramCredentialRecord" in text
        assert "orders" in text
        for secret in (b"test-only-salt", b"test-only-key"):
            assert base64.b64encode(secret).decode() not in text
            assert secret.hex() not in text
            assert secret.decode() not in text
    output = run("decode", "--format", "json", "-", "--deep", "--show-secrets", stdin=frames).text
    assert base64.b64encode(b"test-only-salt").decode() in output


def test_kafka_07(run: Run) -> None:
    data = encode_messages([b"one", b"two"], codec="snappy")
    frame = Grammar(Dialect.KAFKA_07).encode(Kafka07ProduceRequest(topic="t", partition=0, messages=data))
    (form,) = run(
        "decode",
        "--format",
        "json",
        "-",
        "--deep",
        "--input",
        "frames",
        "--dialect",
        "kafka-0.7",
        stdin=frame,
    ).forms
    (batch,) = form["embedded"]["messages"]["value"]["batches"]
    assert (batch["magic"], batch["codec"]) == (1, "snappy")
    assert [record["value"] for record in batch["records"]] == ["b25l", "dHdv"]
