"""The table of traffic: each frame once, and Produce, Fetch and ShareFetch by partition."""

from __future__ import annotations

import random
import struct
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import UUID
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import to_json
from coordwire.capture.entries import FrameEntry
from coordwire.capture.plain_lines import PlainFrames
from coordwire.capture.reader import Capture
from coordwire.errors import CoordwireError
from coordwire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from coordwire.messages.metadata import MetadataResponse, MetadataResponseTopic
from coordwire.records import Record, batches, encode_batch
from coordwire.records.compression import CODECS, Codec, compress
from coordwire.records.legacy import LegacyBatch, message_count
from coordwire.tables.columns import TRAFFIC
from coordwire.tables.readers import traffic_rows
from coordwire.tables.readers.traffic_rows import TrafficRows, record_count
from coordwire.timeline.consumer_data import id_text

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))
NAMES = [column.name for column in TRAFFIC]
KEY = NAMES[: NAMES.index("requests")]
MINUTE = 60_000_000_000
GZIP = 1
EDGES = (0, 1, 2, 15, 16, 0x7F, 0x80, 0xFE, 0xFF)


def frames(path: Path) -> list[FrameEntry]:
    with path.open("rb") as stream:
        return [entry for entry in Capture(stream, path.name).entries() if isinstance(entry, FrameEntry)]


def traffic(entries: list[FrameEntry]) -> list[dict[str, Any]]:
    """The rows, which do not depend on whether frames are known to be plain, and on how many come at once."""
    plain = PlainFrames(show_secrets=True).flags(entries)
    builder, slow = TrafficRows(show_secrets=True), TrafficRows(show_secrets=True)
    rows = builder.feed(entries, plain) + builder.finish()
    slow_rows = [row for entry in entries for row in slow.feed([entry], [False])] + slow.finish()
    assert rows == slow_rows
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def codes(form: Any) -> Iterator[int]:
    """All error codes in a message's JSON form."""
    if isinstance(form, dict):
        for name, value in form.items():
            yield from [value] if name.endswith(("rrorCode", "rrorCodes")) else codes(value)
    elif isinstance(form, list):
        for item in form:
            yield from codes(item)


def numbers(form: dict[str, Any], api: str, direction: str) -> Iterator[tuple[str, int, int, bytes]]:
    """Topic, partition, error code and records of what has records or an answer, by the JSON form."""
    for topic in form["topicData"] if direction == "request" else form["responses"]:
        name = topic.get("name") or topic.get("topic") or topic["topicId"]
        for part in topic.get("partitionData") or topic.get("partitionResponses") or topic.get("partitions"):
            data = b64decode(part.get("records") or "")
            if api == "Produce" or data or part["errorCode"]:
                yield name, part.get("index", part.get("partitionIndex")), part.get("errorCode", 0), data


def expected(entries: list[FrameEntry]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows as a plain loop over the messages' JSON forms has them, records by reading them all."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(
        lambda: {"requests": 0, "responses": 0, "records": 0, "bytes": 0, "errors": 0, "latencies": []}
    )
    software: dict[int, tuple[str, str]] = {}
    topics: dict[str, str] = {}
    for entry in entries:
        assert entry.message is not None
        assert entry.body_version is not None
        assert entry.connection is not None
        assert entry.time_ns is not None
        form: Any = to_json(entry.message, version=entry.body_version)
        api, direction = entry.api_name, entry.direction
        if api == "ApiVersions" and direction == "request" and "clientSoftwareName" in form:
            names = form["clientSoftwareName"], form["clientSoftwareVersion"]
            software[entry.connection.stream] = names
        if api == "Metadata" and direction == "response":
            topics |= {topic["topicId"]: topic["name"] for topic in form["topics"] if "topicId" in topic}
        place = (
            entry.time_ns // MINUTE * MINUTE // 1000, entry.client_id, str(entry.connection.client),
            str(entry.connection.broker), *software.get(entry.connection.stream, (None, None)),
            entry.api_key, api,
        )  # fmt: skip
        parts: list[tuple[Any, ...]] = [(None, None, int(any(codes(form))), entry.size, 0)]
        if api == "Produce" or (api in ("Fetch", "ShareFetch") and direction == "response"):
            parts += [
                (topics.get(topic, topic), number, code, len(data), sum(1 for _ in records(data)))
                for topic, number, code, data in numbers(form, api, direction)
            ]
        for topic, number, code, size, count in parts:
            row = rows[*place, topic, number]
            row["bytes"] += size
            row["records"] += count
            row["requests"] += direction == "request" or (topic is not None and api != "Produce")
            row["responses"] += direction == "response"
            row["errors"] += direction == "response" and code != 0
            if direction == "response" and entry.latency_ns is not None:
                row["latencies"].append(round(entry.latency_ns / 1e6, 6))
    return rows


def records(data: bytes) -> Iterator[Record]:
    for batch in batches(data, on_error="skip"):
        if not batch.is_control:
            yield from batch


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_rows_are_those_of_a_plain_loop(path: Path) -> None:
    entries = [entry for entry in frames(path) if entry.message is not None and entry.error is None]
    rows = expected(entries)
    actual = {tuple(row[name] for name in KEY): row for row in traffic(entries)}
    assert actual.keys() == rows.keys()
    for key, row in rows.items():
        got, latencies = actual[key], sorted(row["latencies"])
        assert got["records"] == (None if key[-2] is None else row["records"])
        assert [got[name] for name in ("requests", "responses", "bytes", "errors")] == [
            row[name] for name in ("requests", "responses", "bytes", "errors")
        ]
        quantiles = [got[f"latency_{name}_ms"] for name in ("p50", "p95", "p99", "max")]
        assert quantiles == [
            latencies[ceil(part * len(latencies)) - 1] if latencies else None for part in (0.5, 0.95, 0.99, 1)
        ]
        assert got["input_file"] == path.name
    whole = [row for row in actual.values() if row["topic"] is None]
    assert sum(row["requests"] + row["responses"] for row in whole) == len(entries)
    assert sum(row["bytes"] for row in whole) == sum(entry.size for entry in entries)


def test_the_captures_have_what_the_table_is_for() -> None:
    rows = [row for path in CAPTURES for row in traffic(frames(path))]
    named = {row["api"] for row in rows if row["topic"] is not None and row["records"]}
    assert named == {"Produce", "Fetch"}
    assert any(row["errors"] for row in rows)
    assert {row["client_software_name"] for row in rows} > {None}


def test_minutes_and_many_rows_change_no_sum() -> None:
    """Frames spread over an hour, back and forth; rows that leave early."""
    entries = frames(CAPTURES[-1])
    rng = random.Random(7)
    for number, entry in enumerate(entries):
        if entry.time_ns is not None:
            entry.time_ns += MINUTE * (number // 10 + rng.choice((0, 0, 0, -3)))
    names = ("requests", "responses", "bytes", "errors")

    def sums(rows: list[dict[str, Any]]) -> dict[Any, list[int]]:
        by_key: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for row in rows:
            key = tuple(row[name] for name in KEY)
            by_key[key] = [a + row[name] for a, name in zip(by_key[key], names, strict=True)]
        return by_key

    complete = traffic(entries)
    with (
        mock.patch.object(traffic_rows, "MOST_MINUTES", 1000),
        mock.patch.object(traffic_rows, "MOST_ROWS", 3),
    ):
        assert sums(traffic(entries)) == sums(complete)
    with mock.patch.object(traffic_rows, "MOST_LATENCIES", 1):
        assert sums(traffic(entries)) == sums(complete)
    assert sum(row["bytes"] for row in complete if row["topic"] is None) == sum(one.size for one in entries)
    assert len({row["time"] for row in complete}) > 5


def test_frames_that_are_not_counted_give_names() -> None:
    entries = frames(CAPTURES[0])
    builder = TrafficRows(show_secrets=True)
    counted = [entry.api_name not in ("ApiVersions", "Metadata") for entry in entries]
    assert builder.feed(entries, PlainFrames(show_secrets=True).flags(entries), counted) == []
    rows = [dict(zip(NAMES, row, strict=True)) for row in builder.finish()]
    assert rows == [row for row in traffic(entries) if row["api"] not in ("ApiVersions", "Metadata")]
    assert rows


def test_software_is_of_the_frames_after_its_name() -> None:
    entries = frames(CAPTURES[2])
    rows = traffic([entry for entry in entries if entry.api_name != "ApiVersions"] + entries)
    names = {row["client_software_name"] for row in rows if row["api"] == "InitProducerId"}
    assert names == {None, "kafka-python"}


@pytest.mark.parametrize("api", ["InitProducerId", "Metadata", "Produce"])
def test_frames_of_another_dialect(api: str) -> None:
    entries = [entry for entry in frames(CAPTURES[2]) if entry.api_name == api]
    entry = entries[api == "Metadata"]  # its answer
    foreign = replace(entry, dialect="another", text=None, message=None)
    rows = [
        row for row in traffic([entry, foreign, entry]) + traffic([foreign, entry]) if row["topic"] is None
    ]
    counts = [(row["api"], row["requests"] + row["responses"]) for row in rows]
    assert counts == [(api, 2), (None, 1), (None, 1), (api, 1)]


def test_a_topic_is_named_by_its_id_until_metadata_names_it() -> None:
    number = UUID(int=77)
    data = encode_batch([Record(value=b"a"), Record(value=b"b")])
    part = PartitionData(partition_index=2, records=data)
    fetched = FetchResponse(responses=[FetchableTopicResponse(topic_id=number, partitions=[part])])
    known = MetadataResponse(topics=[MetadataResponseTopic(name="orders", topic_id=number)])
    fetch = FrameEntry(
        capture="x", number=1, flow="", time_ns=None, direction="response", body=b"", api_key=1,
        api_version=13, body_version=13, message=fetched,
    )  # fmt: skip
    metadata = replace(fetch, api_key=3, api_version=12, body_version=12, message=known)
    rows = [row for row in traffic([fetch, metadata, fetch]) if row["topic"] is not None]
    assert [(row["topic"], row["partition"], row["records"], row["bytes"]) for row in rows] == [
        (id_text(number), 2, 2, len(data)), ("orders", 2, 2, len(data)),
    ]  # fmt: skip
    assert {row["time"] for row in rows} == {None}


def test_records_are_counted_by_headers() -> None:
    rng = random.Random(5)
    for _ in range(300):
        data = b"".join(
            encode_batch(
                [Record(timestamp=5, value=rng.randbytes(9)) for _ in range(rng.randrange(1, 9))],
                magic=rng.choice((0, 1, 2, 2, 2)), codec=rng.choice(("none", "gzip")),
            )
            for _ in range(rng.randrange(5))
        )  # fmt: skip
        data = data[: len(data) - rng.choice((0, 0, 1, 30))]
        assert record_count(data) == sum(1 for _ in records(data))
    assert record_count(None) == record_count(b"") == 0


def message(magic: int, codec: int, value: bytes, offset: int, key: bytes | None = None) -> bytes:
    key_field = b"\xff" * 4 if key is None else len(key).to_bytes(4) + key
    body = bytes([magic, codec]) + bytes(8 * magic) + key_field + len(value).to_bytes(4) + value
    return offset.to_bytes(8) + (4 + len(body)).to_bytes(4) + crc32(body).to_bytes(4) + body


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_are_counted_as_they_are_read(magic: int) -> None:
    """Those in sound wrappers, with any byte changed or gone, and messages that are not wrapped."""
    rows = [Record(timestamp=5, key=b"k", value=b"v"), Record(timestamp=5)]
    inner = encode_batch(rows, magic=magic, base_offset=0)
    changed = [inner[:at] + bytes([byte]) + inner[at + 1 :] for at in range(len(inner)) for byte in EDGES]
    cut = [inner[:at] for at in range(len(inner))] + [inner + bytes(size) for size in range(1, 40)]
    wrapped = [
        message(magic, GZIP, compress("gzip", data, magic=magic), offset)
        for offset in (0, 9)
        for data in [*changed, *cut, inner]
    ]
    wrapped += [message(magic, codec, compress("gzip", inner, magic=magic), 1) for codec in range(8)]
    wrapped += [message(1 - magic, GZIP, compress("gzip", inner, magic=magic), 1)]
    originals = encode_batch(rows[:1], magic=magic), wrapped[-3]
    sized = struct.Struct(">8xi")
    damaged = [
        data[:at] + bytes([byte]) + data[at + 1 :]
        for data in originals
        for at in range(len(data))
        for byte in EDGES
    ]
    damaged = [data for data in damaged if data[16] < 2 and sized.unpack_from(data)[0] == len(data) - 12]
    counts = [message_count(memoryview(data)) for data in [*wrapped, *damaged]]
    assert counts == list(map(read_count, [*wrapped, *damaged]))
    assert {None, 1, 2} == set(counts)


INNER = st.lists(
    st.builds(
        message, st.sampled_from((0, 0, 0, 1)), st.sampled_from((0, 0, 0, 0, 1)), st.binary(max_size=9),
        st.integers(0, 5), st.none() | st.binary(max_size=5),
    ),
    max_size=4,
)  # fmt: skip


@given(inner=INNER, magic=st.sampled_from((0, 1)), codec=st.sampled_from(CODECS), data=st.data())
def test_any_messages_are_counted_as_they_are_read(
    inner: list[bytes], magic: int, codec: Codec, data: st.DataObject
) -> None:
    """Nested ones, with bytes changed before and after compression, and cut short."""

    def damaged(sound: bytes) -> bytes:
        at = data.draw(st.integers(0, 2 * len(sound)))
        return sound[:at] + data.draw(st.binary(max_size=2)) + sound[at + data.draw(st.integers(0, 2)) :]

    content = damaged(b"".join(one[:16] + bytes([magic ^ one[16]]) + one[17:] for one in inner))
    packed = damaged(compress(codec, content, magic=magic)) if content else b""
    wrapper = message(magic, CODECS.index(codec), packed, data.draw(st.integers(0, 5)))
    assert message_count(memoryview(wrapper)) == read_count(wrapper)


def read_count(data: bytes) -> int | None:
    try:
        return sum(1 for _ in LegacyBatch(memoryview(data)))
    except CoordwireError:
        return None


def test_hostile_headers_are_counted_in_bounds() -> None:
    data = bytearray(encode_batch([Record(value=b"x")]))
    for size in (0, -1, -12, 1 << 31 - 1, 0x7FFFFFFF):
        data[8:12] = (size & 0xFFFFFFFF).to_bytes(4, "big")
        assert record_count(bytes(data)) == 0
    data = bytearray(message(1, 0, b"x", 0))
    data[11] += 1
    assert record_count(bytes(data)) == 0
    rng = random.Random(3)
    for _ in range(300):
        assert record_count(rng.randbytes(rng.randrange(200))) >= 0
