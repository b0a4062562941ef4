"""Cases: a partition's ends: offsets by time, deleted records, ends of leader epochs."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.broker.records import offset_at, partition_of, produce, values_of, written
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import code_name
from coordwire.records import Record, encode_batch

__all__: list[str] = []

LIST = "https://kafka.apache.org/protocol#The_Messages_ListOffsets"
KIP_107, KIP_279 = "KIP-107", "KIP-279"
NEEDS = "Produce 9, ListOffsets 5"
DELETE = "Produce 9, Fetch 11, ListOffsets 5, DeleteRecords 0"


async def timed(stage: Stage) -> str:
    """A topic with the times 1000, 3000 and 2000, one a batch."""
    topic = await stage.topic()
    for time in (1_000, 3_000, 2_000):
        answer = await produce(
            stage, topic, encode_batch([Record(value=b"v", timestamp=time)], base_offset=0)
        )
        stage.error("Produce", answer.error_code, "NONE")
    return topic


async def lists(stage: Stage, answer: str, timestamp: int, version: int, expected: tuple[int, int]) -> None:
    result = await offset_at(stage, await timed(stage), timestamp, at=version)
    stage.error("ListOffsets", result.error_code, "NONE")
    stage.equal("offset and time", (result.offset, result.timestamp), expected)


for number, (question, timestamp, version, expected) in enumerate([
    ("the first offset", -2, 5, (0, -1)),
    ("the offset after the last", -1, 5, (3, -1)),
    ("the greatest time", -3, 7, (1, 3_000)),
    ("the first offset on the broker", -4, 8, (0, -1)),
    ("the time 1000", 1_000, 5, (0, 1_000)),
    ("a time between two", 1_500, 5, (1, 3_000)),
    ("a time after all", 5_000, 5, (-1, -1)),
    ("the time 0", 0, 5, (0, 1_000)),
], 1):  # fmt: skip
    table(LIST, f"Produce 9, ListOffsets {version}", lists, [
        (f"partitions/offsets/{number}", f"ListOffsets of {question}",
         f"{expected[0]}, with the time {expected[1]}",
         "An offset by time is the first with that time or a later one; -1 to -4 are special.",
         timestamp, version, expected),
    ])  # fmt: skip


async def refused_list(stage: Stage, answer: str, partition: dict[str, Any]) -> None:
    result = await offset_at(stage, await stage.topic(), -1, **partition)
    stage.error("ListOffsets", result.error_code, answer)
    stage.equal("offset", result.offset, -1)


table(LIST, NEEDS, refused_list, [
    ("partitions/offsets/9", "ListOffsets of partition 9 of a topic that has one",
     "UNKNOWN_TOPIC_OR_PARTITION",
     "A partition must be the topic's.", {"partition_index": 9}),
    ("partitions/offsets/10", "ListOffsets with a leader epoch that is too great", "UNKNOWN_LEADER_EPOCH",
     "A reader that knows of a later leader waits for this broker to know it too.",
     {"current_leader_epoch": 9}),
])  # fmt: skip


@case(
    "partitions/offsets/11",
    LIST,
    "ListOffsets of an empty partition",
    "0 and 0; no time has an offset",
    needs=NEEDS,
)
async def case_empty(stage: Stage) -> None:
    """An empty partition begins and ends at 0."""
    topic = await stage.topic()
    offsets = [(await offset_at(stage, topic, timestamp)).offset for timestamp in (-2, -1, 0)]
    stage.equal("offsets", offsets, [0, 0, -1])


# --- deleted records ---


async def delete(stage: Stage, topic: str, offset: int, *, at: int | None = None, partition: int = 0) -> Any:
    """The partition in the answer to DeleteRecords."""
    topics = [{"name": topic, "partitions": [{"partition_index": partition, "offset": offset}]}]
    answer = await stage.ask("DeleteRecords", at=at, topics=topics, timeout_ms=10_000)
    return answer.topics[0].partitions[0]


@case("partitions/delete/1", KIP_107, "DeleteRecords before the offset 2", "2 as first offset", needs=DELETE)
async def case_delete(stage: Stage) -> None:
    """Records before an offset are deleted: that is the partition's first one."""
    topic = await stage.topic()
    for value in (b"a", b"b", b"c"):
        await written(stage, topic, value)
    result = await delete(stage, topic, 2)
    stage.equal("error and first offset", (result.error_code, result.low_watermark), (0, 2))
    stage.equal("first offset", (await offset_at(stage, topic, -2)).offset, 2)
    stage.equal("values", await values_of(stage, topic, 2), [b"c"])
    partition = await partition_of(stage, topic, 2)
    stage.equal("first offset in Fetch", partition.log_start_offset, 2)


@case("partitions/delete/2", KIP_107, "DeleteRecords of all, then Fetch of the first", "OFFSET_OUT_OF_RANGE",
      needs="Produce 9, DeleteRecords 0, Fetch 11")  # fmt: skip
async def case_delete_all(stage: Stage) -> None:
    """The offset -1 deletes everything up to the end; what was deleted is not read."""
    topic = await stage.topic()
    await written(stage, topic, b"a", b"b")
    stage.equal("first offset", (await delete(stage, topic, -1)).low_watermark, 2)
    stage.error("Fetch", (await partition_of(stage, topic)).error_code, "OFFSET_OUT_OF_RANGE")


async def refused_delete(stage: Stage, answer: str, offset: int, partition: int) -> None:
    topic = await stage.topic()
    await written(stage, topic, b"a")
    result = await delete(stage, topic, offset, partition=partition)
    stage.error("DeleteRecords", result.error_code, answer)
    stage.equal("first offset", (await offset_at(stage, topic, -2)).offset, 0)


table(KIP_107, DELETE, refused_delete, [
    ("partitions/delete/3", "DeleteRecords before an offset after the end", "OFFSET_OUT_OF_RANGE",
     "What is not there yet is not deleted.", 5, 0),
    ("partitions/delete/4", "DeleteRecords before the offset -2", "OFFSET_OUT_OF_RANGE",
     "An offset is at least 0; -1 is the end.", -2, 0),
])  # fmt: skip


async def deletes(stage: Stage, answer: str, version: int) -> None:
    topic = await stage.topic()
    await written(stage, topic, b"a", b"b")
    result = await delete(stage, topic, 1, at=version)
    stage.equal("error and first offset", (result.error_code, result.low_watermark), (0, 1))


table(KIP_107, DELETE, deletes, [
    (f"partitions/delete/{number + 5}", f"DeleteRecords {number}", "the first offset",
     "Records are deleted in every version that is offered.", number)
    for number in range(3)
])  # fmt: skip


# --- leader epochs ---


async def end_of_epoch(stage: Stage, topic: str, epoch: int, *, at: int | None = None, **values: Any) -> Any:
    """The partition in the answer to OffsetForLeaderEpoch."""
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch} | values
    topics = [{"topic": topic, "partitions": [partition]}]
    answer = await stage.ask("OffsetForLeaderEpoch", at=at, replica_id=-1, topics=topics)
    return answer.topics[0].partitions[0]


async def epoch_ends(stage: Stage, answer: str, version: int) -> None:
    topic = await stage.topic()
    await written(stage, topic, b"a", b"b")
    result = await end_of_epoch(stage, topic, 0, at=version)
    facts = (code_name(result.error_code), result.leader_epoch, result.end_offset)
    stage.equal("error, epoch, end", facts, ("NONE", 0, 2))


table(KIP_279, "Produce 9, OffsetForLeaderEpoch 2", epoch_ends, [
    (f"partitions/epochs/{number - 1}", f"OffsetForLeaderEpoch {number} of the present epoch", "the end",
     "The present epoch ends where the partition does, in every version that is offered.", number)
    for number in range(2, 5)
])  # fmt: skip


@case("partitions/epochs/4", KIP_279, "OffsetForLeaderEpoch of an epoch that is yet to come", "-1 and -1",
      needs="OffsetForLeaderEpoch 3")  # fmt: skip
async def case_later_epoch(stage: Stage) -> None:
    """An epoch that the leader doesn't know has no end."""
    topic = await stage.topic()
    await written(stage, topic, b"a")
    result = await end_of_epoch(stage, topic, 9)
    facts = (code_name(result.error_code), result.leader_epoch, result.end_offset)
    stage.equal("error, epoch, end", facts, ("NONE", -1, -1))


@case("partitions/epochs/5", "KIP-320", "OffsetForLeaderEpoch with a leader epoch that is too great",
      "UNKNOWN_LEADER_EPOCH", needs="OffsetForLeaderEpoch 3")  # fmt: skip
async def case_unknown_epoch(stage: Stage) -> None:
    """A reader that knows of a later leader waits for this broker to know it too."""
    result = await end_of_epoch(stage, await stage.topic(), 0, current_leader_epoch=9)
    stage.error("OffsetForLeaderEpoch", result.error_code, "UNKNOWN_LEADER_EPOCH")
