"""Cases: producer ids, sequences, transactions, and what readers see of them.

Rule: requests are in the versions of clients before KIP-890's second part (transaction version 1), but where
a case is about that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from coordwire.conformance.broker.classic_groups import joined
from coordwire.conformance.broker.offsets import committed, fetched
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import code_name
from coordwire.records import Record, batches, encode_batch

__all__: list[str] = []

KIP_98, KIP_447, KIP_890 = "KIP-98", "KIP-447", "KIP-890"
INIT = "InitProducerId 2"
NEEDS = f"{INIT}, AddPartitionsToTxn 3, EndTxn 3, Produce 9, Fetch 11"
OFFSETS = f"{INIT}, AddOffsetsToTxn 3, TxnOffsetCommit 3, EndTxn 3, OffsetFetch 7"


@dataclass(slots=True)
class Producer:
    """A producer with an id, and perhaps with a transactional id."""

    stage: Stage
    name: str | None
    id: int
    epoch: int
    sequence: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        return {"transactional_id": self.name, "producer_id": self.id, "producer_epoch": self.epoch}

    async def add(self, topic: str, **values: Any) -> str:
        """The error of AddPartitionsToTxn for partition 0."""
        identity = {f"v3_and_below_{name}": value for name, value in (self.identity | values).items()}
        topics = [{"name": topic, "partitions": [0]}]

        async def answer() -> str:
            result = await self.stage.ask("AddPartitionsToTxn", at=3, v3_and_below_topics=topics, **identity)
            partition = result.results_by_topic_v3_and_below[0].results_by_partition[0]
            return code_name(partition.partition_error_code)

        result = await answer()

        async def is_settled() -> bool:
            nonlocal result
            if result == "CONCURRENT_TRANSACTIONS":
                result = await answer()
            return result != "CONCURRENT_TRANSACTIONS"

        await self.stage.until(is_settled, "the transaction before is complete")
        return result

    async def send(self, topic: str, value: bytes = b"v", *, sequence: int | None = None, at: int = 9) -> Any:
        """The answer to Produce for partition 0."""
        number = self.sequence if sequence is None else sequence
        data = encode_batch(
            [Record(value=value, timestamp=time.time_ns() // 1_000_000)], base_offset=0, producer_id=self.id,
            producer_epoch=self.epoch, base_sequence=number, transactional=self.name is not None,
        )  # fmt: skip
        topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
        answer = await self.stage.ask(
            "Produce", at=at, transactional_id=self.name, acks=-1, timeout_ms=10_000, topic_data=topics
        )
        result = answer.responses[0].partition_responses[0]
        if not result.error_code and sequence is None:
            self.sequence += 1
        return result

    async def end(self, *, committed: bool = True, **values: Any) -> str:
        """The error of EndTxn."""
        fields = {"at": 3, "committed": committed} | self.identity | values
        answer = await self.stage.ask("EndTxn", **fields)
        return code_name(answer.error_code)

    async def wrote(self, topic: str, value: bytes = b"v") -> None:
        """Write a record in a transaction. Raises `Broken`."""
        self.stage.equal("AddPartitionsToTxn", await self.add(topic), "NONE")
        self.stage.error("Produce", (await self.send(topic, value)).error_code, "NONE")


async def producer(stage: Stage, name: str | None = "", **values: Any) -> Producer:
    """A producer; by default with a new transactional id."""
    name = stage.transactional_id() if name == "" else name
    answer = await initialized(stage, name, **values)
    stage.error("InitProducerId", answer.error_code, "NONE")
    return Producer(stage, name, answer.producer_id, answer.producer_epoch)


async def initialized(stage: Stage, name: str | None, **values: Any) -> Any:
    fields = {"at": 2, "transactional_id": name, "transaction_timeout_ms": 30_000} | values
    return await stage.ask("InitProducerId", **fields)


async def values_of(stage: Stage, topic: str, *, committed: bool) -> tuple[list[bytes], Any]:
    """The values of the records that a reader sees in partition 0, and the answer about it."""
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    answer = await stage.ask(
        "Fetch", at=11, max_wait_ms=0, max_bytes=1 << 20, isolation_level=int(committed), session_epoch=-1,
        topics=[{"topic": topic, "partitions": [partition]}],
    )  # fmt: skip
    result = answer.responses[0].partitions[0]
    stage.error("Fetch", result.error_code, "NONE")
    aborted = {item.producer_id: item.first_offset for item in result.aborted_transactions or ()}
    values = []
    for batch in batches(result.records or b""):
        if batch.is_control:  # the end of the producer's transaction
            aborted.pop(batch.producer_id, None)
        elif not committed or aborted.get(batch.producer_id, 1 << 62) > batch.base_offset:
            values += [record.value or b"" for record in batch.records()]
    return values, result


async def sees(stage: Stage, topic: str, expected: list[bytes]) -> None:
    """Wait for what a reader of committed records sees. Raises `Broken`."""

    async def is_seen() -> bool:
        return (await values_of(stage, topic, committed=True))[0] == expected

    await stage.until(is_seen, f"a reader of committed records sees {expected}")


@case(
    "transactions/init/1",
    KIP_98,
    "InitProducerId twice without a name",
    "two ids with the epoch 0",
    needs=INIT,
)
async def case_ids(stage: Stage) -> None:
    """Producers without transactions get ids of their own."""
    first, second = await producer(stage, None), await producer(stage, None)
    stage.true(first.id >= 0 and second.id >= 0 and first.id != second.id, "the ids are not two")
    stage.equal("epochs", (first.epoch, second.epoch), (0, 0))


@case(
    "transactions/init/2",
    KIP_98,
    "InitProducerId twice with a name",
    "the same id with the next epoch",
    needs=INIT,
)
async def case_next_epoch(stage: Stage) -> None:
    """A name keeps its producer id; its next producer has the next epoch."""
    first = await producer(stage)
    second = await producer(stage, first.name)
    stage.equal("id and epoch", (second.id, second.epoch), (first.id, first.epoch + 1))


@case("transactions/init/3", KIP_98, "InitProducerId with an empty name", "INVALID_REQUEST", needs=INIT)
async def case_empty_name(stage: Stage) -> None:
    """A transactional id is null or has characters."""
    stage.error("InitProducerId", (await initialized(stage, "")).error_code, "INVALID_REQUEST")


@case(
    "transactions/init/4",
    KIP_98,
    "InitProducerId with timeouts of 0 and of 24 days",
    "INVALID_TRANSACTION_TIMEOUT",
    needs=INIT,
)
async def case_timeouts(stage: Stage) -> None:
    """A transaction's timeout is above 0, and at most the broker's."""
    for timeout in (0, (1 << 31) - 1):
        answer = await initialized(stage, stage.transactional_id(), transaction_timeout_ms=timeout)
        stage.error(f"{timeout} ms", answer.error_code, "INVALID_TRANSACTION_TIMEOUT")


@case(
    "transactions/init/5",
    KIP_98,
    "InitProducerId while a transaction is open",
    "the transaction is aborted",
    needs=NEEDS,
)
async def case_init_aborts(stage: Stage) -> None:
    """A name's next producer aborts what the one before left open."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"lost")
    second = await producer(stage, first.name)
    await second.wrote(topic, b"here")
    stage.equal("EndTxn", await second.end(), "NONE")
    await sees(stage, topic, [b"here"])


@case(
    "transactions/fence/1", KIP_98, "AddPartitionsToTxn of a former producer", "PRODUCER_FENCED", needs=NEEDS
)
async def case_fenced_add(stage: Stage) -> None:
    """The former producer of a name adds nothing."""
    topic, first = await stage.topic(), await producer(stage)
    await producer(stage, first.name)
    error = await first.add(topic)
    stage.true(error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), f"AddPartitionsToTxn: {error}")


@case("transactions/fence/2", KIP_98, "EndTxn of a former producer", "PRODUCER_FENCED", needs=NEEDS)
async def case_fenced_end(stage: Stage) -> None:
    """The former producer of a name ends nothing: the present one's transaction goes on."""
    topic, first = await stage.topic(), await producer(stage)
    second = await producer(stage, first.name)
    await second.wrote(topic, b"new")
    error = await first.end(committed=False)
    stage.true(error in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"), f"EndTxn: {error}")
    stage.equal("EndTxn", await second.end(), "NONE")
    await sees(stage, topic, [b"new"])


@case(
    "transactions/fence/3",
    KIP_98,
    "AddPartitionsToTxn with another producer id",
    "INVALID_PRODUCER_ID_MAPPING",
    needs=NEEDS,
)
async def case_wrong_id(stage: Stage) -> None:
    """A name has one producer id."""
    topic, first = await stage.topic(), await producer(stage)
    error = await first.add(topic, producer_id=first.id + 100_000)
    stage.equal("AddPartitionsToTxn", error, "INVALID_PRODUCER_ID_MAPPING")


@case("transactions/end/1", KIP_98, "EndTxn where no transaction is open", "INVALID_TXN_STATE", needs=NEEDS)
async def case_end_nothing(stage: Stage) -> None:
    """What has not begun can't be ended."""
    stage.equal("EndTxn", await (await producer(stage)).end(), "INVALID_TXN_STATE")


@case("transactions/end/2", KIP_98, "EndTxn twice", "NONE both times", needs=NEEDS)
async def case_end_twice(stage: Stage) -> None:
    """A producer whose answer was lost may commit again, but not abort what it committed."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic)
    stage.equal("EndTxn", await first.end(), "NONE")
    stage.equal("EndTxn again", await first.end(), "NONE")
    stage.equal("EndTxn with an abort", await first.end(committed=False), "INVALID_TXN_STATE")


@case("transactions/end/3", KIP_890, "EndTxn 5", "the next epoch", needs=f"{INIT}, EndTxn 5, Produce 12")
async def case_end_bumps(stage: Stage) -> None:
    """From EndTxn 5 on every end of a transaction gives the producer the next epoch."""
    topic = await stage.topic()
    name = stage.transactional_id()
    opened = await stage.ask("InitProducerId", at=5, transactional_id=name, transaction_timeout_ms=30_000)
    data = encode_batch(
        [Record(value=b"v", timestamp=time.time_ns() // 1_000_000)],
        base_offset=0,
        producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch,
        base_sequence=0,
        transactional=True,
    )
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    answer = await stage.ask(
        "Produce", at=12, transactional_id=name, acks=-1, timeout_ms=10_000, topic_data=topics
    )
    stage.error("Produce 12", answer.responses[0].partition_responses[0].error_code, "NONE")
    ended = await stage.ask(
        "EndTxn", at=5, transactional_id=name, producer_id=opened.producer_id,
        producer_epoch=opened.producer_epoch, committed=True,
    )  # fmt: skip
    stage.error("EndTxn", ended.error_code, "NONE")
    expected = (opened.producer_id, opened.producer_epoch + 1)
    stage.equal("id and epoch", (ended.producer_id, ended.producer_epoch), expected)
    await sees(stage, topic, [b"v"])


@case(
    "transactions/isolation/1",
    KIP_98,
    "Fetch while a transaction is open, and after its commit",
    "the record after the commit alone",
    needs=NEEDS,
)
async def case_committed(stage: Stage) -> None:
    """A reader of committed records sees a transaction's once it is committed; others see them at once."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"one")
    values, result = await values_of(stage, topic, committed=True)
    stage.equal("committed records before the commit", values, [])
    stage.equal("last stable offset", result.last_stable_offset, 0)
    values, _ = await values_of(stage, topic, committed=False)
    stage.equal("all records before the commit", values, [b"one"])
    stage.equal("EndTxn", await first.end(), "NONE")
    await sees(stage, topic, [b"one"])


@case(
    "transactions/isolation/2",
    KIP_98,
    "Fetch after an abort",
    "the record, and which producer aborted it",
    needs=NEEDS,
)
async def case_aborted(stage: Stage) -> None:
    """A reader of committed records learns which transactions were aborted."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"lost")
    stage.equal("EndTxn", await first.end(committed=False), "NONE")

    async def is_stable() -> bool:
        return bool((await values_of(stage, topic, committed=True))[1].last_stable_offset == 2)

    await stage.until(is_stable, "the abort's marker is in the partition")
    values, result = await values_of(stage, topic, committed=True)
    stage.equal("committed records", values, [])
    aborted = [(item.producer_id, item.first_offset) for item in result.aborted_transactions or ()]
    stage.equal("aborted", aborted, [(first.id, 0)])


@case(
    "transactions/isolation/3",
    KIP_98,
    "ListOffsets of committed records in an open transaction",
    "0",
    needs=f"{NEEDS}, ListOffsets 5",
)
async def case_list_offsets(stage: Stage) -> None:
    """The last offset for readers of committed records is that before the first open transaction."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"one")
    result = []
    for level in (0, 1):
        partitions = [{"partition_index": 0, "timestamp": -1}]
        topics = [{"name": topic, "partitions": partitions}]
        answer = await stage.ask("ListOffsets", at=5, replica_id=-1, isolation_level=level, topics=topics)
        result.append(answer.topics[0].partitions[0].offset)
    stage.equal("last offsets of all and of committed records", result, [1, 0])


async def commit_in_transaction(stage: Stage, first: Producer, group: str, topic: str, **values: Any) -> str:
    """The error of TxnOffsetCommit for offset 7, after AddOffsetsToTxn."""
    answer = await stage.ask("AddOffsetsToTxn", at=3, group_id=group, **first.identity)
    stage.error("AddOffsetsToTxn", answer.error_code, "NONE")
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    answer = await stage.ask(
        "TxnOffsetCommit", at=3, **first.identity | {"group_id": group, "topics": topics} | values
    )
    return code_name(answer.topics[0].partitions[0].error_code)


@case(
    "transactions/offsets/1",
    KIP_98,
    "TxnOffsetCommit, then EndTxn",
    "the offset after the commit alone",
    needs=OFFSETS,
)
async def case_offsets(stage: Stage) -> None:
    """Offsets of a transaction count once it is committed."""
    group, topic, first = stage.group(), await stage.topic(), await producer(stage)
    stage.equal("TxnOffsetCommit", await commit_in_transaction(stage, first, group, topic), "NONE")
    stage.equal("offset before", (await fetched(stage, group, topic)).committed_offset, -1)
    stage.equal("EndTxn", await first.end(), "NONE")

    async def is_there() -> bool:
        return bool((await fetched(stage, group, topic)).committed_offset == 7)

    await stage.until(is_there, "the transaction's offset is fetched")


@case(
    "transactions/offsets/2", KIP_98, "TxnOffsetCommit, then an abort", "the offset of before", needs=OFFSETS
)
async def case_offsets_aborted(stage: Stage) -> None:
    """Offsets of a transaction that is aborted are none."""
    group, topic, first = stage.group(), await stage.topic(), await producer(stage)
    await committed(stage, group, topic, 2)
    stage.equal("TxnOffsetCommit", await commit_in_transaction(stage, first, group, topic), "NONE")
    stage.equal("EndTxn", await first.end(committed=False), "NONE")

    async def is_stable() -> bool:
        return not (await fetched(stage, group, topic, stable=True)).error_code

    await stage.until(is_stable, "the abort is complete")
    stage.equal("offset", (await fetched(stage, group, topic)).committed_offset, 2)


@case(
    "transactions/offsets/3",
    KIP_447,
    "OffsetFetch of stable offsets while a transaction has some",
    "UNSTABLE_OFFSET_COMMIT",
    needs=OFFSETS,
)
async def case_unstable(stage: Stage) -> None:
    """Who asks for stable offsets waits for the transaction that has them."""
    group, topic, first = stage.group(), await stage.topic(), await producer(stage)
    stage.equal("TxnOffsetCommit", await commit_in_transaction(stage, first, group, topic), "NONE")
    result = await fetched(stage, group, topic, stable=True)
    stage.error("OffsetFetch", result.error_code, "UNSTABLE_OFFSET_COMMIT")


@case(
    "transactions/offsets/4",
    KIP_447,
    "TxnOffsetCommit of another generation",
    "ILLEGAL_GENERATION",
    needs=OFFSETS,
)
async def case_offsets_generation(stage: Stage) -> None:
    """A transaction's offsets are of a member of the current generation."""
    topic, first, member = await stage.topic(), await producer(stage), await joined(stage, stage.group())
    values = {"member_id": member.id, "generation_id": member.generation + 1}
    error = await commit_in_transaction(
        stage, first, member.group, topic, member_id=member.id,
        generation_id_or_member_epoch=values["generation_id"],
    )  # fmt: skip
    stage.equal("TxnOffsetCommit", error, "ILLEGAL_GENERATION")


@case(
    "transactions/describe/1",
    "KIP-664",
    "DescribeTransactions in a transaction, and of no name",
    "Ongoing with its partition; TRANSACTIONAL_ID_NOT_FOUND",
    needs=f"{NEEDS}, DescribeTransactions 0",
)
async def case_describe(stage: Stage) -> None:
    """An open transaction is described with its producer and partitions."""
    topic, first, name = await stage.topic(), await producer(stage), stage.transactional_id()
    await first.wrote(topic)
    answer = await stage.ask("DescribeTransactions", transactional_ids=[first.name, name])
    states = {item.transactional_id: item for item in answer.transaction_states}
    result = states[str(first.name)]
    facts = (result.transaction_state, result.producer_id, result.producer_epoch)
    stage.equal("state, id, epoch", facts, ("Ongoing", first.id, first.epoch))
    stage.equal("topics", [(item.topic, list(item.partitions)) for item in result.topics], [(topic, [0])])
    stage.error("no name", states[name].error_code, "TRANSACTIONAL_ID_NOT_FOUND")


@case(
    "transactions/list/1",
    "KIP-664",
    "ListTransactions of ongoing ones",
    "the transaction, and not after it",
    needs=f"{NEEDS}, ListTransactions 0",
)
async def case_list(stage: Stage) -> None:
    """A list of transactions in some states has those alone."""
    topic, first = await stage.topic(), await producer(stage)

    async def is_ongoing() -> bool:
        answer = await stage.ask("ListTransactions", at=0, state_filters=["Ongoing"])
        return first.name in {item.transactional_id for item in answer.transaction_states}

    stage.true(not await is_ongoing(), "it is ongoing before it has begun")
    await first.wrote(topic)
    stage.true(await is_ongoing(), "it is not among the ongoing ones")
    stage.equal("EndTxn", await first.end(), "NONE")
    stage.true(not await is_ongoing(), "it is ongoing after its end")


@case(
    "transactions/sequence/1",
    KIP_98,
    "the same batch twice",
    "the same offset twice, one record",
    needs="InitProducerId 2, Produce 9, Fetch 11",
)
async def case_duplicate(stage: Stage) -> None:
    """A batch that is sent again is written once."""
    topic, first = await stage.topic(), await producer(stage, None)
    answers = [await first.send(topic, b"one", sequence=0) for _ in range(2)]
    for answer in answers:
        stage.error("Produce", answer.error_code, "NONE", "DUPLICATE_SEQUENCE_NUMBER")
    stage.equal("offset of the second", answers[1].base_offset, answers[0].base_offset)
    stage.equal("records", (await values_of(stage, topic, committed=False))[0], [b"one"])


@case(
    "transactions/sequence/2",
    KIP_98,
    "a batch after a gap",
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    needs="InitProducerId 2, Produce 9",
)
async def case_gap(stage: Stage) -> None:
    """A producer's batches are written in their order, without gaps."""
    topic, first = await stage.topic(), await producer(stage, None)
    stage.error("the first", (await first.send(topic, sequence=0)).error_code, "NONE")
    answer = await first.send(topic, sequence=5)
    stage.error("the one after a gap", answer.error_code, "OUT_OF_ORDER_SEQUENCE_NUMBER")
