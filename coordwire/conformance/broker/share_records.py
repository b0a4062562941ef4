"""Cases: what share groups are delivered (KIP-932): sessions, acquired records, acknowledgements.

Rule: a group reads from the earliest offset by its own config, which is removed after the case.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.conformance.broker.share_groups import SharingMember, altered, sharer
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.broker.transactions import producer
from coordwire.conformance.cases import code_name
from coordwire.records import Record, encode_batch

__all__: list[str] = []

KIP_932 = "KIP-932"
NEEDS = "ShareGroupHeartbeat 1, ShareFetch 1"
BOTH = f"{NEEDS}, ShareAcknowledge 1"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LOCK_SECONDS = 15
"""The shortest lock that a broker's defaults permit."""

Batch = tuple[int, int, Sequence[int]]
"""First and last offset, and how they are acknowledged."""

Acquired = list[tuple[int, int, int]]
"""First and last offset, and how often they were delivered."""


@dataclass(slots=True)
class SharingSession:
    """A member's session with partition 0 of its topic. epoch: the next request's."""

    member: SharingMember
    topic_id: UUID
    epoch: int = 0

    def _topics(self, batches: Sequence[Batch]) -> list[dict[str, Any]]:
        acknowledged = [
            {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}
            for first, last, types in batches
        ]
        partition = {"partition_index": 0, "acknowledgement_batches": acknowledged}
        return [{"topic_id": self.topic_id, "partitions": [partition]}]

    async def ask(self, *batches: Batch, **values: Any) -> Any:
        """The answer to ShareFetch."""
        fields: dict[str, Any] = {
            "group_id": self.member.group, "member_id": self.member.id, "share_session_epoch": self.epoch,
            "max_wait_ms": 300, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 100, "batch_size": 100,
            "topics": self._topics(batches),
        }  # fmt: skip
        answer = await self.member.stage.ask("ShareFetch", **fields | values)
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def fetch(self, *batches: Batch, **values: Any) -> Acquired:
        """What is acquired by a ShareFetch. Raises `Broken`."""
        answer = await self.ask(*batches, **values)
        stage = self.member.stage
        stage.error("ShareFetch", answer.error_code, "NONE")
        parts = [part for topic in answer.responses for part in topic.partitions]
        for part in parts:
            stage.error("the partition", part.error_code, "NONE")
            stage.error("the acknowledgement", part.acknowledge_error_code, "NONE")
        return [
            (item.first_offset, item.last_offset, item.delivery_count)
            for part in parts
            for item in part.acquired_records
        ]

    async def acquire(self, **values: Any) -> Acquired:
        """Wait for records."""
        result: Acquired = []

        async def is_acquired() -> bool:
            nonlocal result
            result = await self.fetch(**values)
            return bool(result)

        await self.member.stage.until(is_acquired, "records are acquired")
        return result

    async def acknowledge(self, *batches: Batch, **values: Any) -> Any:
        """The answer to ShareAcknowledge."""
        fields: dict[str, Any] = {
            "group_id": self.member.group, "member_id": self.member.id, "share_session_epoch": self.epoch,
            "topics": self._topics(batches),
        }  # fmt: skip
        answer = await self.member.stage.ask("ShareAcknowledge", **fields | values)
        if not answer.error_code:
            self.epoch += 1
        return answer

    async def acknowledged(self, *batches: Batch) -> str:
        """The error of the partition in the answer to ShareAcknowledge."""
        answer = await self.acknowledge(*batches)
        self.member.stage.error("ShareAcknowledge", answer.error_code, "NONE")
        return code_name(answer.responses[0].partitions[0].error_code)


async def written(stage: Stage, topic: str, count: int, *, together: bool = False) -> None:
    """Write records to partition 0, each in a batch of its own, or all in one."""
    sizes = [count] if together else [1] * count
    for size in sizes:
        data = encode_batch([Record(value=b"v")] * size, base_offset=0)
        topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
        answer = await stage.ask("Produce", at=9, acks=-1, timeout_ms=10_000, topic_data=topics)
        stage.error("Produce", answer.responses[0].partition_responses[0].error_code, "NONE")


async def session(stage: Stage, count: int = 3, **configs: str) -> SharingSession:
    """The session of a group's only member, with so many records in its partition."""
    group = stage.group()
    await stage.group_configs(group, **{"share_auto_offset_reset": "earliest"} | configs)
    member = await sharer(stage, group=group)
    await written(stage, member.topics[0], count)
    return SharingSession(member, await stage.topic_id(member.topics[0]))


async def second_session(stage: Stage, first: SharingSession) -> SharingSession:
    """A session of another member of the group."""
    member = SharingMember(stage, first.member.group, first.member.topics)
    await member.beat_until(1)
    return SharingSession(member, first.topic_id)


def counts(acquired: Acquired) -> dict[int, int]:
    """How often each offset was delivered."""
    return {offset: count for first, last, count in acquired for offset in range(first, last + 1)}


async def acquired_all(records: SharingSession, count: int = 3) -> dict[int, int]:
    """Fetch until so many records are acquired."""
    result: dict[int, int] = {}

    async def has_all() -> bool:
        result.update(counts(await records.fetch()))
        return len(result) >= count

    await records.member.stage.until(has_all, f"{count} records are acquired")
    return result


@case(
    "groups/share/fetch/1",
    KIP_932,
    "ShareFetch of three records",
    "they are acquired for the first time",
    needs=NEEDS,
)
async def case_acquire(stage: Stage) -> None:
    """Records that no one has had are acquired with a delivery count of 1."""
    stage.equal("acquired", await acquired_all(await session(stage)), {0: 1, 1: 1, 2: 1})


@case("groups/share/fetch/2", KIP_932, "ShareFetch again", "nothing", needs=NEEDS)
async def case_acquired_once(stage: Stage) -> None:
    """What is acquired is not delivered again while its lock lasts."""
    records = await session(stage)
    await acquired_all(records)
    stage.equal("acquired", await records.fetch(), [])


@case(
    "groups/share/fetch/3",
    KIP_932,
    "ShareFetch by two members",
    "each record is acquired by one",
    needs=NEEDS,
)
async def case_acquired_by_one(stage: Stage) -> None:
    """A record is acquired by one member at a time."""
    first = await session(stage)
    await acquired_all(first)
    second = await second_session(stage, first)
    stage.equal("acquired by the second", await second.fetch(), [])
    await written(stage, first.member.topics[0], 1)
    stage.equal("acquired by the second", counts(await second.acquire()), {3: 1})
    stage.equal("acquired by the first", await first.fetch(), [])


@case("groups/share/fetch/4", KIP_932, "ShareFetch of at most one record", "one", needs=NEEDS)
async def case_max_records(stage: Stage) -> None:
    """No more batches are acquired than the number of records asks for."""
    records = await session(stage)
    stage.equal("acquired", await records.acquire(max_records=1, batch_size=1), [(0, 0, 1)])
    stage.equal("acquired", await records.acquire(max_records=1, batch_size=1), [(1, 1, 1)])


@case("groups/share/fetch/5", "KIP-1206", "ShareFetch 2 of at most one record of a batch of three", "one",
      needs="ShareGroupHeartbeat 1, ShareFetch 2")  # fmt: skip
async def case_record_limit(stage: Stage) -> None:
    """In the mode of a limit no more records are acquired than are asked for, also of a batch."""
    records = await session(stage, 0)
    await written(stage, records.member.topics[0], 3, together=True)
    values = {"max_records": 1, "batch_size": 1, "share_acquire_mode": 1}
    stage.equal("acquired", counts(await records.acquire(**values)), {0: 1})
    stage.equal("acquired", counts(await records.acquire(**values)), {1: 1})


@case("groups/share/fetch/6", KIP_932, "ShareFetch", "the lock's time", needs=NEEDS)
async def case_lock_time(stage: Stage) -> None:
    """The answer says how long acquired records are locked."""
    records = await session(stage, share_record_lock_duration_ms="20000")
    stage.equal("milliseconds", (await records.ask()).acquisition_lock_timeout_ms, 20_000)


@case(
    "groups/share/fetch/7",
    KIP_932,
    "a group without configs begins",
    "only what is written after",
    needs=NEEDS,
)
async def case_latest(stage: Stage) -> None:
    """By default a group begins at the end of a partition."""
    member = await sharer(stage)
    await written(stage, member.topics[0], 2)
    records = SharingSession(member, await stage.topic_id(member.topics[0]))
    for _ in range(3):
        stage.equal("acquired", await records.fetch(), [])
    await written(stage, member.topics[0], 1)
    stage.equal("acquired", counts(await records.acquire()), {2: 1})


@case("groups/share/fetch/8", KIP_932, "an aborted record, read_committed", "the committed record alone",
      needs=f"{NEEDS}, AddPartitionsToTxn 3")  # fmt: skip
async def case_committed(stage: Stage) -> None:
    """A group that reads what is committed gets no aborted records."""
    records = await session(stage, 0, share_isolation_level="read_committed")
    topic, writer = records.member.topics[0], await producer(stage)
    await writer.wrote(topic)
    stage.equal("EndTxn", await writer.end(committed=False), "NONE")
    await writer.wrote(topic)
    stage.equal("EndTxn", await writer.end(), "NONE")
    result: dict[int, int] = {}

    async def has_record() -> bool:
        result.update(counts(await records.fetch()))
        return 2 in result

    await stage.until(has_record, "the committed record is acquired")
    stage.true(0 not in result, "the aborted record is acquired")


async def refused_fetch(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    records = await session(stage, 1)
    stage.error("ShareFetch", (await records.ask(**values)).error_code, answer)


table(KIP_932, NEEDS, refused_fetch, [
    ("groups/share/session/1", "ShareFetch with the epoch 5 and no session", "SHARE_SESSION_NOT_FOUND",
     "A session begins with the epoch 0.", {"share_session_epoch": 5}),
    ("groups/share/session/2", "a first ShareFetch without a member id", "INVALID_REQUEST",
     "A session is a member's.", {"member_id": ""}),
    ("groups/share/session/3", "a first ShareFetch without a group", "INVALID_REQUEST",
     "A session is a group's.", {"group_id": None}),
    ("groups/share/session/4", "the epoch -1 and no session", "SHARE_SESSION_NOT_FOUND",
     "Only a session that is there can be closed.", {"share_session_epoch": -1}),
])  # fmt: skip


@case(
    "groups/share/session/5",
    KIP_932,
    "ShareFetch with the epoch after the next",
    "INVALID_SHARE_SESSION_EPOCH",
    needs=NEEDS,
)
async def case_session_epoch(stage: Stage) -> None:
    """Each request of a session has the epoch after the one before."""
    records = await session(stage, 1)
    await records.fetch()
    answer = await records.ask(share_session_epoch=records.epoch + 1)
    stage.error("ShareFetch", answer.error_code, "INVALID_SHARE_SESSION_EPOCH")
    await records.fetch()


@case(
    "groups/share/session/6", KIP_932, "a session is closed", "its records are delivered again", needs=NEEDS
)
async def case_session_closed(stage: Stage) -> None:
    """What a session had acquired is released with it, and delivered with a count of 2."""
    first = await session(stage)
    await acquired_all(first)
    second = await second_session(stage, first)
    answer = await first.ask(share_session_epoch=-1, topics=[])
    stage.error("closing", answer.error_code, "NONE")
    stage.equal("acquired by another", await acquired_all(second), {0: 2, 1: 2, 2: 2})
    stage.error("ShareFetch after it", (await first.ask()).error_code, "SHARE_SESSION_NOT_FOUND")


@case("groups/share/session/7", KIP_932, "a partition is forgotten", "nothing of it", needs=NEEDS)
async def case_forgotten(stage: Stage) -> None:
    """A session may drop partitions."""
    records = await session(stage, 1)
    await records.acquire()
    forgotten = [{"topic_id": records.topic_id, "partitions": [0]}]
    await written(stage, records.member.topics[0], 1)
    stage.equal("acquired", await records.fetch(topics=[], forgotten_topics_data=forgotten), [])
    stage.equal("acquired", counts(await records.acquire()), {1: 1})


@case(
    "groups/share/session/8",
    KIP_932,
    "the session's partitions, not named again",
    "their records",
    needs=NEEDS,
)
async def case_session_partitions(stage: Stage) -> None:
    """A session remembers its partitions."""
    records = await session(stage, 0)
    await records.fetch()
    await written(stage, records.member.topics[0], 1)
    stage.equal("acquired", counts(await records.acquire(topics=[])), {0: 1})


@case("groups/share/session/9", KIP_932, "the epoch 0 in a session", "a new session", needs=NEEDS)
async def case_new_session(stage: Stage) -> None:
    """A member may begin again, and goes on with the epoch 1."""
    records = await session(stage, 1)
    await records.fetch()
    await records.fetch()
    records.epoch = 0
    await records.fetch()
    stage.equal("epoch", records.epoch, 1)
    await records.fetch()


# --- acknowledgements ---


async def acknowledgement(
    stage: Stage, answer: str, batches: Sequence[Batch], expected: dict[int, int], lag: int
) -> None:
    """expected: how often what is delivered again was; lag: records that are not done."""
    records = await session(stage)
    await acquired_all(records)
    stage.equal("ShareAcknowledge", await records.acknowledged(*batches), "NONE")
    stage.equal("delivered again", counts(await records.fetch()), expected)

    async def has_moved() -> bool:
        return bool((await offsets_of(stage, records.member)).lag == lag)

    await stage.until(has_moved, f"the lag is {lag}")


async def offsets_of(stage: Stage, member: SharingMember) -> Any:
    """How a group's offsets of partition 0 are described."""
    topics = [{"topic_name": member.topics[0], "partitions": [0]}]
    groups = [{"group_id": member.group, "topics": topics}]
    answer = await stage.ask("DescribeShareGroupOffsets", groups=groups)
    return answer.groups[0].topics[0].partitions[0]


table(KIP_932, f"{BOTH}, DescribeShareGroupOffsets 1", acknowledgement, [
    ("groups/share/acknowledge/1", "three records are accepted", "none is delivered again",
     "What is accepted is done, and no lag is left.", [(0, 2, [ACCEPT])], {}, 0),
    ("groups/share/acknowledge/2", "three records are released", "they are delivered for the second time",
     "What is released is delivered again, with the next count.", [(0, 2, [RELEASE])], {0: 2, 1: 2, 2: 2}, 3),
    ("groups/share/acknowledge/3", "three records are rejected", "none is delivered again",
     "What is rejected is done.", [(0, 2, [REJECT])], {}, 0),
    ("groups/share/acknowledge/4", "one is accepted, one released, one rejected", "the second again",
     "Each record of a batch may be acknowledged in its own way.", [(0, 2, [ACCEPT, RELEASE, REJECT])],
     {1: 2}, 1),
    ("groups/share/acknowledge/5", "the last of three is accepted", "nothing again; a lag of 2",
     "Records are done in any order.", [(2, 2, [ACCEPT])], {}, 2),
    ("groups/share/acknowledge/6", "two batches in one request", "the released one again",
     "A request may acknowledge several batches.", [(0, 0, [ACCEPT]), (2, 2, [RELEASE])], {2: 2}, 2),
])  # fmt: skip


async def refused_acknowledgement(stage: Stage, answer: str, batches: Sequence[Batch]) -> None:
    records = await session(stage)
    await acquired_all(records)
    result = await records.acknowledge(*batches)
    code = result.error_code or result.responses[0].partitions[0].error_code
    stage.error("ShareAcknowledge", code, answer)


table(KIP_932, BOTH, refused_acknowledgement, [
    ("groups/share/acknowledge/7", "an acknowledgement of an unknown type", "INVALID_REQUEST",
     "Types are accept, release, reject and, from version 2 on, renew.", [(0, 0, [9])]),
    ("groups/share/acknowledge/8", "two batches that overlap", "INVALID_RECORD_STATE",
     "A record is acknowledged once in a request.", [(0, 1, [ACCEPT]), (1, 2, [ACCEPT])]),
    ("groups/share/acknowledge/9", "a batch whose last offset is before the first", "INVALID_REQUEST",
     "A batch has an offset at least.", [(2, 1, [ACCEPT])]),
    ("groups/share/acknowledge/10", "two types for three records", "INVALID_REQUEST",
     "A batch has one type, or one for each record.", [(0, 2, [ACCEPT, ACCEPT])]),
    ("groups/share/acknowledge/11", "a batch without types", "INVALID_REQUEST",
     "A batch says what is done with its records.", [(0, 2, [])]),
    ("groups/share/acknowledge/12", "records that are not there", "INVALID_REQUEST",
     "Only what is there can be acknowledged.", [(10, 12, [ACCEPT])]),
])  # fmt: skip


@case(
    "groups/share/acknowledge/13",
    KIP_932,
    "a released record is acknowledged again",
    "INVALID_RECORD_STATE",
    needs=BOTH,
)
async def case_twice(stage: Stage) -> None:
    """A record that is not acquired any more can't be acknowledged."""
    records = await session(stage)
    await acquired_all(records)
    stage.equal("ShareAcknowledge", await records.acknowledged((0, 2, [RELEASE])), "NONE")
    stage.equal(
        "ShareAcknowledge again", await records.acknowledged((0, 2, [ACCEPT])), "INVALID_RECORD_STATE"
    )


@case(
    "groups/share/acknowledge/14",
    KIP_932,
    "another member's record is acknowledged",
    "INVALID_RECORD_STATE",
    needs=BOTH,
)
async def case_foreign(stage: Stage) -> None:
    """A record is acknowledged by the member that acquired it."""
    first = await session(stage)
    await acquired_all(first)
    second = await second_session(stage, first)
    await second.fetch()
    stage.equal("ShareAcknowledge", await second.acknowledged((0, 2, [ACCEPT])), "INVALID_RECORD_STATE")
    stage.equal("ShareAcknowledge by its own", await first.acknowledged((0, 2, [ACCEPT])), "NONE")


@case("groups/share/acknowledge/15", KIP_932, "ShareFetch with an acknowledgement", "it counts", needs=NEEDS)
async def case_with_fetch(stage: Stage) -> None:
    """A member may acknowledge with its next ShareFetch."""
    records = await session(stage)
    await acquired_all(records)
    result = counts(await records.fetch((0, 2, [ACCEPT, RELEASE, ACCEPT])))
    stage.equal("delivered again", result or counts(await records.acquire()), {1: 2})


@case(
    "groups/share/acknowledge/16",
    KIP_932,
    "ShareAcknowledge without a session",
    "SHARE_SESSION_NOT_FOUND",
    needs=BOTH,
)
async def case_no_session(stage: Stage) -> None:
    """Only a session acknowledges."""
    records = await session(stage)
    records.epoch = 1
    answer = await records.acknowledge((0, 2, [ACCEPT]))
    stage.error("ShareAcknowledge", answer.error_code, "SHARE_SESSION_NOT_FOUND")


@case(
    "groups/share/acknowledge/17",
    KIP_932,
    "ShareAcknowledge with the epoch 0",
    "INVALID_SHARE_SESSION_EPOCH",
    needs=BOTH,
)
async def case_first_epoch(stage: Stage) -> None:
    """A session doesn't begin with an acknowledgement."""
    records = await session(stage)
    answer = await records.acknowledge((0, 2, [ACCEPT]))
    stage.error("ShareAcknowledge", answer.error_code, "INVALID_SHARE_SESSION_EPOCH")


@case(
    "groups/share/acknowledge/18",
    KIP_932,
    "a first ShareFetch with an acknowledgement",
    "INVALID_REQUEST",
    needs=NEEDS,
)
async def case_first_with_acknowledgement(stage: Stage) -> None:
    """A session that begins has nothing to acknowledge."""
    records = await session(stage)
    answer = await records.ask((0, 2, [ACCEPT]))
    code = answer.error_code or answer.responses[0].partitions[0].acknowledge_error_code
    stage.error("ShareFetch", code, "INVALID_REQUEST")


@case(
    "groups/share/acknowledge/19",
    KIP_932,
    "a record is released five times",
    "it is not delivered again",
    needs=BOTH,
)
async def case_delivery_limit(stage: Stage) -> None:
    """A record is delivered at most as often as the limit says, by default five times."""
    records = await session(stage, 1)
    for count in range(1, 6):
        stage.equal("acquired", counts(await records.acquire()), {0: count})
        stage.equal("ShareAcknowledge", await records.acknowledged((0, 0, [RELEASE])), "NONE")
    stage.equal("acquired", await records.fetch(), [])


@case(
    "groups/share/acknowledge/20",
    KIP_932,
    "ShareAcknowledge with the epoch -1",
    "the session is closed",
    needs=BOTH,
)
async def case_last_acknowledgement(stage: Stage) -> None:
    """A member may acknowledge when it closes its session; what is left is released."""
    first = await session(stage)
    await acquired_all(first)
    second = await second_session(stage, first)
    answer = await first.acknowledge((0, 1, [ACCEPT]), share_session_epoch=-1)
    stage.error("ShareAcknowledge", answer.error_code, "NONE")
    stage.equal("acquired by another", counts(await second.acquire()), {2: 2})


@case("groups/share/lock/1", KIP_932, "a lock's time passes", "the record is delivered again", needs=BOTH)
async def case_lock_expires(stage: Stage) -> None:
    """What is not acknowledged in time is released, and its member can't acknowledge it any more."""
    records = await session(stage, 1, share_record_lock_duration_ms=f"{LOCK_SECONDS}000")
    stage.equal("acquired", counts(await records.acquire()), {0: 1})
    await asyncio.sleep(LOCK_SECONDS - 3)
    stage.equal("acquired while it lasts", await records.fetch(), [])
    await asyncio.sleep(3)
    stage.equal("acquired", counts(await records.acquire()), {0: 2})


@case("groups/share/lock/2", "KIP-1222", "a lock is renewed", "the record stays acquired",
      needs="ShareGroupHeartbeat 1, ShareFetch 2, ShareAcknowledge 2")  # fmt: skip
async def case_lock_renewed(stage: Stage) -> None:
    """A renewed lock begins again."""
    records = await session(stage, 1, share_record_lock_duration_ms=f"{LOCK_SECONDS}000")
    await records.acquire()
    await asyncio.sleep(LOCK_SECONDS - 5)
    answer = await records.acknowledge((0, 0, [RENEW]), is_renew_ack=True)
    stage.error("ShareAcknowledge", answer.error_code, "NONE")
    stage.error("the partition", answer.responses[0].partitions[0].error_code, "NONE")
    await asyncio.sleep(8)
    stage.equal("acquired after the first lock's end", await records.fetch(), [])
    stage.equal("ShareAcknowledge", await records.acknowledged((0, 0, [ACCEPT])), "NONE")


@case("groups/share/lock/3", "KIP-1222", "a renewal without the field that says so", "INVALID_REQUEST",
      needs="ShareGroupHeartbeat 1, ShareFetch 2, ShareAcknowledge 2")  # fmt: skip
async def case_renewal_unsaid(stage: Stage) -> None:
    """A request that renews says so."""
    records = await session(stage, 1)
    await records.acquire()
    answer = await records.acknowledge((0, 0, [RENEW]))
    code = answer.error_code or answer.responses[0].partitions[0].error_code
    stage.error("ShareAcknowledge", code, "INVALID_REQUEST")


@case(
    "groups/share/lock/4",
    KIP_932,
    "a member leaves its group",
    "its records are delivered again",
    needs=NEEDS,
)
async def case_member_leaves(stage: Stage) -> None:
    """A new member gets what one that left without closing its session had, at the latest after the lock."""
    first = await session(stage, 1, share_record_lock_duration_ms=f"{LOCK_SECONDS}000")
    await first.acquire()
    second = await second_session(stage, first)
    await first.member.send(member_epoch=-1)
    await first.ask(share_session_epoch=-1, topics=[])
    stage.equal("acquired by another", counts(await second.acquire()), {0: 2})


@case("offsets/share/11", KIP_932, "the start offset is set before a member comes",
      "the records from there on", needs=f"{NEEDS}, AlterShareGroupOffsets 0")  # fmt: skip
async def case_set_before(stage: Stage) -> None:
    """A group begins at the start offset that was set."""
    member = await sharer(stage)
    await written(stage, member.topics[0], 3)
    await member.send(member_epoch=-1)
    answer = await altered(stage, member.group, member.topics[0], 1)
    stage.error("AlterShareGroupOffsets", answer.error_code, "NONE")
    member.epoch = 0
    await member.beat_until(1)
    records = SharingSession(member, await stage.topic_id(member.topics[0]))
    stage.equal("acquired", await acquired_all(records, 2), {1: 1, 2: 1})
