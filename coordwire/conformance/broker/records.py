"""Cases: writing and reading records: Produce, Fetch and its sessions, offsets by time, deleted records."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import uuid4

from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import Lacking, code_name
from coordwire.errors import CodecUnavailable
from coordwire.records import Record, batches, encode_batch

__all__: list[str] = []

PROTOCOL = "https://kafka.apache.org/protocol"
MESSAGES = "https://kafka.apache.org/documentation/#messageformat"
KIP_227, KIP_320, KIP_107 = "KIP-227", "KIP-320", "KIP-107"
NEEDS = "Produce 9, Fetch 11"
MOST = 1 << 20


def batch_of(*values: bytes | None, **fields: Any) -> bytes:
    """A batch with records of these values, written now."""
    now = time.time_ns() // 1_000_000
    return encode_batch([Record(value=value, timestamp=now) for value in values], base_offset=0, **fields)


async def produce(
    stage: Stage, topic: str, data: bytes | None, *, at: int = 9, partition: int = 0, **values: Any
) -> Any:
    """The partition in the answer to Produce."""
    parts = [{"index": partition, "records": data}]
    name = {"topic_id": await stage.topic_id(topic)} if at >= 13 else {"name": topic}
    fields: dict[str, Any] = {
        "acks": -1,
        "timeout_ms": 10_000,
        "topic_data": [name | {"partition_data": parts}],
    }
    answer = await stage.ask("Produce", at=at, **fields | values)
    return answer.responses[0].partition_responses[0]


async def written(stage: Stage, topic: str, *values: bytes | None, **fields: Any) -> int:
    """Write a batch to partition 0; its base offset. Raises `Broken`."""
    answer = await produce(stage, topic, batch_of(*values, **fields))
    stage.error("Produce", answer.error_code, "NONE")
    return int(answer.base_offset)


async def fetch(stage: Stage, topic: str, offset: int = 0, *, at: int = 11, **values: Any) -> Any:
    """The answer to Fetch of partition 0. partition: more of its fields."""
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": MOST}
    partition |= values.pop("partition", {})
    name = {"topic_id": await stage.topic_id(topic)} if at >= 13 else {"topic": topic}
    topics = [name | {"partitions": [partition]}]
    fields: dict[str, Any] = {"max_wait_ms": 0, "max_bytes": MOST, "session_epoch": -1, "topics": topics}
    return await stage.ask("Fetch", at=at, **fields | values)


async def partition_of(stage: Stage, topic: str, offset: int = 0, **values: Any) -> Any:
    """Partition 0 in the answer to Fetch. Raises `Broken`."""
    answer = await fetch(stage, topic, offset, **values)
    stage.error("Fetch", answer.error_code, "NONE")
    return answer.responses[0].partitions[0]


def values_in(data: bytes | None) -> list[bytes | None]:
    return [record.value for batch in batches(data or b"") for record in batch.records()]


async def values_of(stage: Stage, topic: str, offset: int = 0, **values: Any) -> list[bytes | None]:
    partition = await partition_of(stage, topic, offset, **values)
    stage.error("the partition", partition.error_code, "NONE")
    return values_in(partition.records)


# --- versions ---


async def produces(stage: Stage, answer: str, version: int) -> None:
    topic = await stage.topic()
    result = await produce(stage, topic, batch_of(b"one"), at=version)
    stage.error("Produce", result.error_code, "NONE")
    stage.equal("base offset", result.base_offset, 0)
    stage.equal("values", await values_of(stage, topic), [b"one"])


table(PROTOCOL, "Fetch 11, Produce 3", produces, [
    (f"records/versions/{number - 2}", f"Produce {number}", "the base offset 0, and the record",
     "Records are written in every version that is offered.", number)
    for number in range(3, 14)
])  # fmt: skip


async def fetches(stage: Stage, answer: str, version: int) -> None:
    topic = await stage.topic()
    await stage.needs("Fetch", version)
    await written(stage, topic, b"one", b"two")
    partition = await partition_of(stage, topic, at=version)
    facts = (code_name(partition.error_code), partition.high_watermark, values_in(partition.records))
    stage.equal("error, high watermark, values", facts, ("NONE", 2, [b"one", b"two"]))


table(PROTOCOL, "Produce 9, Fetch 4", fetches, [
    (f"records/versions/{number + 8}", f"Fetch {number}", "both records",
     "Records are read in every version that is offered.", number)
    for number in range(4, 19)
])  # fmt: skip


async def offset_at(stage: Stage, topic: str, timestamp: int, *, at: int = 5, **partition: Any) -> Any:
    """Partition 0 in the answer to ListOffsets."""
    partitions = [{"partition_index": 0, "timestamp": timestamp} | partition]
    topics = [{"name": topic, "partitions": partitions}]
    answer = await stage.ask("ListOffsets", at=at, replica_id=-1, topics=topics)
    return answer.topics[0].partitions[0]


async def lists(stage: Stage, answer: str, version: int) -> None:
    topic = await stage.topic()
    await written(stage, topic, b"one", b"two")
    offsets = []
    for timestamp in (-2, -1):
        result = await offset_at(stage, topic, timestamp, at=version)
        stage.error("ListOffsets", result.error_code, "NONE")
        offsets.append(result.offset)
    stage.equal("first and last offset", offsets, [0, 2])


table(PROTOCOL, "Produce 9, ListOffsets 1", lists, [
    (f"records/versions/{number + 26}", f"ListOffsets {number}", "the first and the last offset",
     "Offsets are listed in every version that is offered.", number)
    for number in range(1, 12)
])  # fmt: skip


# --- writing ---


async def refused_produce(
    stage: Stage, answer: str, data: bytes, values: dict[str, Any], configs: dict[str, Any]
) -> None:
    topic = await stage.topic(**configs)
    result = await produce(stage, topic, data, **values)
    stage.error("Produce", result.error_code, answer)
    stage.equal("values", await values_of(stage, topic), [])


GOOD = batch_of(b"one")
FLIPPED = GOOD[:-1] + bytes([GOOD[-1] ^ 1])

table(MESSAGES, "Fetch 11, Produce 9", refused_produce, [
    ("records/produce/1", "a batch whose checksum is wrong", "CORRUPT_MESSAGE",
     "What was damaged on its way is not written.", FLIPPED, {}, {}),
    ("records/produce/2", "two batches for a partition", "INVALID_RECORD",
     "A request has one batch for each partition.", GOOD + GOOD, {}, {}),
    ("records/produce/3", "a batch of 2,000 bytes, where a topic takes 1,000", "MESSAGE_TOO_LARGE",
     "A topic has a limit for the size of a batch.", batch_of(b"v" * 2_000), {},
     {"max_message_bytes": "1000"}),
    ("records/produce/4", "a record without a key for a compacted topic", "INVALID_RECORD",
     "Records of a compacted topic have keys.", GOOD, {}, {"cleanup_policy": "compact"}),
    ("records/produce/5", "acks of 2", "INVALID_REQUIRED_ACKS",
     "A writer waits for no replica, for the leader, or for all.", GOOD, {"acks": 2}, {}),
    ("records/produce/6", "a control batch", "INVALID_RECORD",
     "Control batches are brokers' own.",
     encode_batch([Record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\0")], base_offset=0, control=True), {}, {}),
    ("records/produce/7", "a record from 2100", "INVALID_TIMESTAMP",
     "A topic bounds how far a record's time is from now.",
     encode_batch([Record(value=b"v", timestamp=4_102_444_800_000)], base_offset=0), {},
     {"message_timestamp_after_max_ms": "3600000"}),
])  # fmt: skip


async def refused_partition(stage: Stage, answer: str, values: dict[str, Any], has_topic: bool) -> None:
    topic = await stage.topic() if has_topic else stage.topic_name()
    stage.error("Produce", (await produce(stage, topic, GOOD, **values)).error_code, answer)


table(PROTOCOL, "Produce 9", refused_partition, [
    ("records/produce/8", "partition 9 of a topic that has one", "UNKNOWN_TOPIC_OR_PARTITION",
     "A partition must be the topic's.", {"partition": 9}, True),
])  # fmt: skip


@case(
    "records/produce/9",
    "KIP-516",
    "Produce 13 with an id that no topic has",
    "UNKNOWN_TOPIC_ID",
    needs="Produce 13",
)
async def case_unknown_id(stage: Stage) -> None:
    """A topic id must be a topic's."""
    data = [{"topic_id": uuid4(), "partition_data": [{"index": 0, "records": GOOD}]}]
    answer = await stage.ask("Produce", at=13, acks=-1, timeout_ms=10_000, topic_data=data)
    stage.error("Produce", answer.responses[0].partition_responses[0].error_code, "UNKNOWN_TOPIC_ID")


@case(
    "records/produce/10",
    PROTOCOL,
    "batches of three and of two records",
    "the base offsets 0 and 3",
    needs=NEEDS,
)
async def case_base_offsets(stage: Stage) -> None:
    """The broker gives a batch the offset after the batch before."""
    topic = await stage.topic()
    offsets = [await written(stage, topic, b"a", b"b", b"c"), await written(stage, topic, b"d", b"e")]
    stage.equal("base offsets", offsets, [0, 3])
    partition = await partition_of(stage, topic)
    offsets = [record.offset for batch in batches(partition.records or b"") for record in batch.records()]
    stage.equal("offsets", offsets, [0, 1, 2, 3, 4])


async def compresses(stage: Stage, answer: str, codec: Any) -> None:
    topic, values = await stage.topic(), [b"one" * 100, b"two" * 100]
    try:
        data = batch_of(*values, codec=codec)
    except CodecUnavailable as error:
        raise Lacking(error.reason) from None
    stage.error("Produce", (await produce(stage, topic, data)).error_code, "NONE")
    partition = await partition_of(stage, topic)
    stage.equal("values", values_in(partition.records), values)
    (batch,) = batches(partition.records or b"")
    stage.equal("codec", batch.codec, codec)


table(MESSAGES, NEEDS, compresses, [
    (f"records/compression/{number}", f"a batch compressed by {codec}", "the same values, compressed so",
     "A batch is kept in its writer's codec.", codec)
    for number, codec in enumerate(("gzip", "snappy", "lz4", "zstd"), 1)
])  # fmt: skip


@case("records/compression/5", "KIP-110", "Produce 6 with a batch compressed by zstd",
      "UNSUPPORTED_COMPRESSION_TYPE", needs="Produce 6")  # fmt: skip
async def case_old_zstd(stage: Stage) -> None:
    """A client that names zstd must have a version that knows it."""
    topic = await stage.topic()
    try:
        data = batch_of(b"one", codec="zstd")
    except CodecUnavailable as error:
        raise Lacking(error.reason) from None
    stage.error(
        "Produce", (await produce(stage, topic, data, at=6)).error_code, "UNSUPPORTED_COMPRESSION_TYPE"
    )


@case(
    "records/compression/6",
    MESSAGES,
    "a plain batch for a topic that compresses by gzip",
    "it is compressed",
    needs=NEEDS,
)
async def case_topic_codec(stage: Stage) -> None:
    """A topic's own codec is that of its batches."""
    topic = await stage.topic(compression_type="gzip")
    await written(stage, topic, b"one" * 100)
    (batch,) = batches((await partition_of(stage, topic)).records)
    stage.equal("codec", batch.codec, "gzip")
    stage.equal("values", [record.value for record in batch.records()], [b"one" * 100])


@case(
    "records/produce/11",
    MESSAGES,
    "records with null keys, null values, empty ones and headers",
    "as written",
    needs=NEEDS,
)
async def case_parts(stage: Stage) -> None:
    """Keys, values and headers come back byte for byte; null is not empty."""
    topic = await stage.topic()
    records = [
        Record(key=None, value=b"\0\xff", timestamp=1_000),
        Record(key=b"k", value=None, timestamp=1_001, headers=[("h", b"1"), ("h", None), ("", b"")]),
        Record(key=b"", value=b"", timestamp=1_002),
    ]
    result = await produce(stage, topic, encode_batch(records, base_offset=0))
    stage.error("Produce", result.error_code, "NONE")
    partition = await partition_of(stage, topic)
    facts = [
        (record.key, record.value, record.timestamp, list(record.headers))
        for batch in batches(partition.records or b"")
        for record in batch.records()
    ]
    expected = [(record.key, record.value, record.timestamp, list(record.headers)) for record in records]
    stage.equal("records", facts, expected)


@case("records/produce/12", MESSAGES, "a topic with its own times", "the time of writing", needs=NEEDS)
async def case_append_time(stage: Stage) -> None:
    """A topic may give records the time at which they were written; the writer learns it."""
    topic = await stage.topic(message_timestamp_type="LogAppendTime")
    data = encode_batch([Record(value=b"v", timestamp=1_000)], base_offset=0)
    result = await produce(stage, topic, data)
    stage.error("Produce", result.error_code, "NONE")
    stage.true(result.log_append_time_ms > 1_000_000_000_000, f"the time is {result.log_append_time_ms}")
    (batch,) = batches((await partition_of(stage, topic)).records)
    times = [record.timestamp for record in batch.records()]
    stage.equal("times", times, [result.log_append_time_ms])


@case("records/produce/13", MESSAGES, "a topic with writers' times", "-1, and the writer's time", needs=NEEDS)
async def case_create_time(stage: Stage) -> None:
    """By default a record has the time that its writer gave it."""
    topic = await stage.topic()
    result = await produce(stage, topic, encode_batch([Record(value=b"v", timestamp=1_000)], base_offset=0))
    stage.equal("time of writing", result.log_append_time_ms, -1)
    (batch,) = batches((await partition_of(stage, topic)).records)
    stage.equal("times", [record.timestamp for record in batch.records()], [1_000])


@case("records/produce/14", "KIP-467", "a batch with a record that is wrong, for a compacted topic",
      "which record it is", needs="Produce 9")  # fmt: skip
async def case_record_errors(stage: Stage) -> None:
    """A writer learns which of a batch's records the broker refused, and why."""
    topic = await stage.topic(cleanup_policy="compact")
    records = [Record(key=b"k", value=b"a"), Record(value=b"b"), Record(key=b"k", value=b"c")]
    result = await produce(stage, topic, encode_batch(records, base_offset=0))
    stage.error("Produce", result.error_code, "INVALID_RECORD")
    stage.equal("records", [item.batch_index for item in result.record_errors], [1])


# --- reading ---


async def refused_fetch(stage: Stage, answer: str, offset: int, values: dict[str, Any]) -> None:
    topic = await stage.topic()
    await written(stage, topic, b"one")
    stage.error("Fetch", (await partition_of(stage, topic, offset, **values)).error_code, answer)


table(KIP_320, "Produce 9, Fetch 11", refused_fetch, [
    ("records/fetch/1", "Fetch of an offset after the end", "OFFSET_OUT_OF_RANGE",
     "An offset is between the first and the next one.", 5, {}),
    ("records/fetch/2", "Fetch of partition 9 of a topic that has one", "UNKNOWN_TOPIC_OR_PARTITION",
     "A partition must be the topic's.", 0, {"partition": {"partition": 9}}),
    ("records/fetch/3", "Fetch with a leader epoch that is too great", "UNKNOWN_LEADER_EPOCH",
     "A reader that knows of a later leader waits for this broker to know it too.", 0,
     {"partition": {"current_leader_epoch": 9}}),
])  # fmt: skip


@case(
    "records/fetch/4",
    PROTOCOL,
    "Fetch at the end",
    "no records, no error, at once or after the wait",
    needs=NEEDS,
)
async def case_end(stage: Stage) -> None:
    """The offset after the last record is one to wait at."""
    topic = await stage.topic()
    await written(stage, topic, b"one")
    stage.equal("values", await values_of(stage, topic, 1), [])


@case(
    "records/fetch/5",
    PROTOCOL,
    "Fetch that waits, and a record",
    "the record, before the wait's end",
    needs=NEEDS,
)
async def case_wait(stage: Stage) -> None:
    """A reader that waits gets a record when it is written."""
    topic, client = await stage.topic(), await stage.client()
    loop = asyncio.get_running_loop()
    start = loop.time()
    waiting = stage.later(fetch(stage, topic, max_wait_ms=9_000, min_bytes=1, by=client))
    await asyncio.sleep(0.5)
    stage.true(not waiting.done(), "the reader doesn't wait")
    await written(stage, topic, b"one")
    answer = await waiting
    stage.equal("values", values_in(answer.responses[0].partitions[0].records), [b"one"])
    stage.true(loop.time() - start < 8, "the reader waits until the end")


@case("records/fetch/6", "KIP-74", "Fetch of at most one byte", "the first batch", needs=NEEDS)
async def case_one_byte(stage: Stage) -> None:
    """A reader gets a batch at least, whatever its limits are, so that it goes on."""
    topic = await stage.topic()
    await written(stage, topic, b"one")
    await written(stage, topic, b"two")
    values: dict[str, Any] = {"max_bytes": 1, "partition": {"partition_max_bytes": 1}}
    stage.equal("values", (await values_of(stage, topic, **values))[:1], [b"one"])


@case("records/fetch/7", PROTOCOL, "Fetch of an offset inside a batch", "the batch with it", needs=NEEDS)
async def case_inside(stage: Stage) -> None:
    """A batch is sent as it is: a reader skips the records before its offset."""
    topic = await stage.topic()
    await written(stage, topic, b"a", b"b", b"c")
    await written(stage, topic, b"d")
    result = await values_of(stage, topic, 1)
    stage.equal("the last two values", result[-2:], [b"c", b"d"])
    stage.true(b"b" in result, "the record at the offset is not there")


@case(
    "records/fetch/8", "KIP-516", "Fetch 13 of an id that no topic has", "UNKNOWN_TOPIC_ID", needs="Fetch 13"
)
async def case_fetch_unknown_id(stage: Stage) -> None:
    """A topic id must be a topic's."""
    partitions = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": MOST}]
    topics = [{"topic_id": uuid4(), "partitions": partitions}]
    answer = await stage.ask("Fetch", at=13, max_bytes=MOST, session_epoch=-1, topics=topics)
    stage.error("Fetch", answer.responses[0].partitions[0].error_code, "UNKNOWN_TOPIC_ID")


# --- sessions ---


async def opened(stage: Stage, topic: str) -> Any:
    """The answer to a Fetch that begins a session."""
    answer = await fetch(stage, topic, session_epoch=0)
    stage.error("Fetch", answer.error_code, "NONE")
    stage.true(answer.session_id > 0, "there is no session")
    return answer


async def in_session(stage: Stage, session: int, epoch: int, **values: Any) -> Any:
    fields = {"max_wait_ms": 0, "max_bytes": MOST, "session_id": session, "session_epoch": epoch}
    return await stage.ask("Fetch", at=11, topics=[], **fields | values)


@case(
    "records/session/1",
    KIP_227,
    "a session, then Fetch without partitions",
    "nothing, then a new record",
    needs=NEEDS,
)
async def case_session(stage: Stage) -> None:
    """A session remembers its partitions, and answers those that have something new."""
    topic = await stage.topic()
    session = (await opened(stage, topic)).session_id
    answer = await in_session(stage, session, 1)
    stage.error("Fetch", answer.error_code, "NONE")
    stage.equal("partitions without news", answer.responses, [])
    await written(stage, topic, b"one")
    answer = await in_session(stage, session, 2)
    stage.equal("values", values_in(answer.responses[0].partitions[0].records), [b"one"])


async def refused_session(stage: Stage, answer: str, beyond: int, epoch: int) -> None:
    topic = await stage.topic()
    session = (await opened(stage, topic)).session_id
    result = await in_session(stage, session + beyond, epoch)
    stage.error("Fetch", result.error_code, answer)


table(KIP_227, "Produce 9, Fetch 11", refused_session, [
    ("records/session/2", "Fetch with an epoch that is not the session's next", "INVALID_FETCH_SESSION_EPOCH",
     "Each request of a session has the epoch after the one before.", 0, 5),
    ("records/session/3", "Fetch with the id of no session", "FETCH_SESSION_ID_NOT_FOUND",
     "A session must be there.", 1_000_003, 1),
])  # fmt: skip


@case("records/session/4", KIP_227, "a partition is forgotten", "nothing of it", needs=NEEDS)
async def case_session_forgets(stage: Stage) -> None:
    """A session may drop partitions."""
    topic = await stage.topic()
    session = (await opened(stage, topic)).session_id
    await written(stage, topic, b"one")
    forgotten = [{"topic": topic, "partitions": [0]}]
    answer = await in_session(stage, session, 1, forgotten_topics_data=forgotten)
    stage.equal("error and partitions", (answer.error_code, answer.responses), (0, []))


@case("records/session/5", KIP_227, "a session is closed, and its next epoch", "FETCH_SESSION_ID_NOT_FOUND",
      needs="Produce 9, Fetch 11")  # fmt: skip
async def case_session_closed(stage: Stage) -> None:
    """The epoch -1 ends a session."""
    topic = await stage.topic()
    session = (await opened(stage, topic)).session_id
    stage.error(
        "the end", (await fetch(stage, topic, session_id=session, session_epoch=-1)).error_code, "NONE"
    )
    answer = await in_session(stage, session, 1)
    stage.error("Fetch", answer.error_code, "FETCH_SESSION_ID_NOT_FOUND")


@case("records/session/6", KIP_227, "Fetch with the epoch -1", "no session", needs=NEEDS)
async def case_no_session(stage: Stage) -> None:
    """Who wants no session gets none."""
    stage.equal("session", (await fetch(stage, await stage.topic())).session_id, 0)
