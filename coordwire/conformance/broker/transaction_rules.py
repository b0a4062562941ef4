"""Cases: transactions in each version; who is fenced, what is refused, what ends a transaction.

Rule: requests are in versions of transaction version 1, but where a case is about the second (KIP-890).
"""

from __future__ import annotations

from typing import Any

from coordwire.conformance.broker.classic_groups import join, joined
from coordwire.conformance.broker.consumer_groups import HEARTBEAT, consumer
from coordwire.conformance.broker.offsets import fetched
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.broker.transactions import (
    KIP_98,
    KIP_447,
    KIP_890,
    NEEDS,
    OFFSETS,
    Producer,
    commit_in_transaction,
    initialized,
    producer,
    sees,
    values_of,
)
from coordwire.conformance.cases import code_name

__all__: list[str] = []

KIP_360 = "KIP-360"
SECOND = "InitProducerId 5, Produce 12, TxnOffsetCommit 5, EndTxn 5"
FENCED = ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


def fields_of(first: Producer) -> dict[str, Any]:
    return {f"v3_and_below_{name}": value for name, value in first.identity.items()}


# --- versions ---


async def initializes(stage: Stage, answer: str, version: int) -> None:
    name = stage.transactional_id()
    for epoch in range(2):
        result = await initialized(stage, name, at=version)
        stage.error("InitProducerId", result.error_code, "NONE")
        stage.equal("epoch", result.producer_epoch, epoch)


table(KIP_98, "InitProducerId 0", initializes, [
    (f"transactions/versions/{number + 1}", f"InitProducerId {number}, twice", "the epochs 0 and 1",
     "A producer begins in every version that is offered.", number)
    for number in range(6)
])  # fmt: skip


async def adds(stage: Stage, answer: str, version: int) -> None:
    topic, first = await stage.topic(), await producer(stage)
    topics = [{"name": topic, "partitions": [0]}]
    if version <= 3:
        result = await stage.ask(
            "AddPartitionsToTxn", at=version, v3_and_below_topics=topics, **fields_of(first)
        )
        partition = result.results_by_topic_v3_and_below[0].results_by_partition[0]
    else:
        transactions = [first.identity | {"verify_only": False, "topics": topics}]
        result = await stage.ask("AddPartitionsToTxn", at=version, transactions=transactions)
        partition = result.results_by_transaction[0].topic_results[0].results_by_partition[0]
    stage.error("AddPartitionsToTxn", partition.partition_error_code, "NONE")
    stage.error("Produce", (await first.send(topic, b"one")).error_code, "NONE")
    stage.equal("EndTxn", await first.end(), "NONE")
    await sees(stage, topic, [b"one"])


table(KIP_98, f"{NEEDS}, AddPartitionsToTxn 0", adds, [
    (f"transactions/versions/{number + 7}", f"AddPartitionsToTxn {number}, Produce, EndTxn",
     "a committed record",
     "A partition is added in every version that is offered; from 4 on by brokers.", number)
    for number in range(6)
])  # fmt: skip


async def ends(stage: Stage, answer: str, version: int) -> None:
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"one")
    stage.equal("EndTxn", await first.end(at=version), "NONE")
    await sees(stage, topic, [b"one"])


table(KIP_98, f"{NEEDS}, EndTxn 0", ends, [
    (f"transactions/versions/{number + 13}", f"EndTxn {number}", "a committed record",
     "A transaction ends in every version that is offered.", number)
    for number in range(5)
])  # fmt: skip


async def commits(stage: Stage, answer: str, version: int) -> None:
    group, topic, first = stage.group(), await stage.topic(), await producer(stage)
    await stage.needs("TxnOffsetCommit", version)
    result = await stage.ask("AddOffsetsToTxn", at=min(version, 3), group_id=group, **first.identity)
    stage.error("AddOffsetsToTxn", result.error_code, "NONE")
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    result = await stage.ask("TxnOffsetCommit", at=version, group_id=group, topics=topics, **first.identity)
    stage.error("TxnOffsetCommit", result.topics[0].partitions[0].error_code, "NONE")
    stage.equal("EndTxn", await first.end(), "NONE")

    async def is_there() -> bool:
        return bool((await fetched(stage, group, topic)).committed_offset == 7)

    await stage.until(is_there, "the transaction's offset is fetched")


table(KIP_98, f"{OFFSETS}, TxnOffsetCommit 0", commits, [
    (f"transactions/versions/{number + 18}", f"AddOffsetsToTxn, TxnOffsetCommit {number}, EndTxn",
     "the offset",
     "Offsets are committed in a transaction in every version that is offered.", number)
    for number in range(5)
])  # fmt: skip


# --- beginning ---


@case("transactions/init/6", KIP_360, "InitProducerId 3 with the id and epoch of before", "the next epoch",
      needs="InitProducerId 3")  # fmt: skip
async def case_recover(stage: Stage) -> None:
    """A producer that has its id and epoch gets the next epoch."""
    first = await producer(stage)
    answer = await initialized(stage, first.name, at=3, producer_id=first.id, producer_epoch=first.epoch)
    stage.error("InitProducerId", answer.error_code, "NONE")
    facts = (answer.producer_id, answer.producer_epoch)
    stage.equal("id and epoch", facts, (first.id, first.epoch + 1))


@case(
    "transactions/init/7",
    KIP_360,
    "InitProducerId 4 with a former epoch",
    "PRODUCER_FENCED",
    needs="InitProducerId 4",
)
async def case_recover_fenced(stage: Stage) -> None:
    """A former producer of a name doesn't come back with its epoch."""
    first = await producer(stage)
    for _ in range(2):
        await producer(stage, first.name)
    answer = await initialized(stage, first.name, at=4, producer_id=first.id, producer_epoch=first.epoch)
    stage.error("InitProducerId", answer.error_code, "PRODUCER_FENCED")


async def refused_init(stage: Stage, answer: str, values: dict[str, Any]) -> None:
    result = await initialized(stage, stage.transactional_id(), at=4, **values)
    stage.error("InitProducerId", result.error_code, answer)


table(KIP_360, "InitProducerId 4", refused_init, [
    ("transactions/init/8", "InitProducerId 4 with an epoch and no id", "INVALID_REQUEST",
     "An id and an epoch come together.", {"producer_epoch": 3}),
    ("transactions/init/9", "InitProducerId 4 with an id and no epoch", "INVALID_REQUEST",
     "An epoch and an id come together.", {"producer_id": 3}),
])  # fmt: skip


@case("transactions/init/10", KIP_98, "InitProducerId without a name, and a timeout of -1", "an id",
      needs="InitProducerId 2")  # fmt: skip
async def case_no_timeout(stage: Stage) -> None:
    """A producer without transactions needs no timeout."""
    answer = await initialized(stage, None, transaction_timeout_ms=-1)
    stage.error("InitProducerId", answer.error_code, "NONE")
    stage.true(answer.producer_id >= 0, "there is no id")


# --- fencing ---


async def refused_request(stage: Stage, answer: str, api: str, kind: str) -> None:
    """kind: a former producer, one with another id, one with a name that is not there."""
    topic, group, first = await stage.topic(), stage.group(), await producer(stage)
    if kind == "former":
        await producer(stage, first.name)
    elif kind == "id":
        first.id += 100_000
    else:
        first.name = stage.transactional_id()
    if api == "AddPartitionsToTxn":
        error = await first.add(topic)
    elif api == "EndTxn":
        error = await first.end()
    elif api == "AddOffsetsToTxn":
        result = await stage.ask("AddOffsetsToTxn", at=3, group_id=group, **first.identity)
        error = code_name(result.error_code)
    else:
        error = code_name((await first.send(topic)).error_code)
    allowed = FENCED if answer in FENCED else (answer,)
    stage.true(error in allowed, f"{api}: {error}")


for address, api, version, kind, answer in [
    ("transactions/fence/4", "AddOffsetsToTxn", 3, "former", "PRODUCER_FENCED"),
    ("transactions/fence/5", "AddOffsetsToTxn", 3, "id", "INVALID_PRODUCER_ID_MAPPING"),
    ("transactions/fence/6", "EndTxn", 3, "id", "INVALID_PRODUCER_ID_MAPPING"),
    ("transactions/fence/7", "EndTxn", 3, "name", "INVALID_PRODUCER_ID_MAPPING"),
    ("transactions/fence/8", "AddPartitionsToTxn", 3, "name", "INVALID_PRODUCER_ID_MAPPING"),
    ("transactions/fence/9", "AddOffsetsToTxn", 3, "name", "INVALID_PRODUCER_ID_MAPPING"),
]:
    text = {"former": "of a former producer", "id": "with another id", "name": "with an unknown name"}[kind]
    table(KIP_98, f"{NEEDS}, {api} {version}", refused_request, [
        (address, f"{api} {text}", answer,
         "A name has one producer at a time, with its id and epoch.", api, kind),
    ])  # fmt: skip


@case("transactions/fence/10", KIP_98, "Produce of a former producer", "INVALID_PRODUCER_EPOCH",
      needs=f"{NEEDS}, Produce 9")  # fmt: skip
async def case_fenced_produce(stage: Stage) -> None:
    """A former producer writes nothing, also where the transaction is its successor's."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic, b"lost")
    second = await producer(stage, first.name)
    await second.wrote(topic, b"here")
    stage.error("Produce", (await first.send(topic, b"late")).error_code, *FENCED[::-1])
    stage.equal("EndTxn", await second.end(), "NONE")
    await sees(stage, topic, [b"here"])


@case("transactions/fence/11", KIP_98, "a transaction lasts longer than its timeout",
      "it is aborted, and its producer fenced", needs=NEEDS)  # fmt: skip
async def case_timeout(stage: Stage) -> None:
    """The coordinator aborts a transaction after its timeout, so that readers go on."""
    topic = await stage.topic()
    first = await producer(stage, transaction_timeout_ms=1_000)
    await first.wrote(topic, b"lost")

    async def is_stable() -> bool:
        return bool((await values_of(stage, topic, committed=True))[1].last_stable_offset == 2)

    await stage.until(is_stable, "the abort's marker is in the partition")
    error = await first.end()
    stage.true(error in (*FENCED, "INVALID_TXN_STATE"), f"EndTxn: {error}")
    stage.equal("committed records", (await values_of(stage, topic, committed=True))[0], [])


# --- partitions ---


@case("transactions/add/1", KIP_98, "AddPartitionsToTxn of a topic that is not there, and one that is",
      "UNKNOWN_TOPIC_OR_PARTITION, OPERATION_NOT_ATTEMPTED", needs=NEEDS)  # fmt: skip
async def case_add_unknown(stage: Stage) -> None:
    """All partitions of a request are added, or none."""
    topic, name, first = await stage.topic(), stage.topic_name(), await producer(stage)
    topics = [{"name": topic_name, "partitions": [0]} for topic_name in (topic, name)]
    answer = await stage.ask("AddPartitionsToTxn", at=3, v3_and_below_topics=topics, **fields_of(first))
    errors = {
        item.name: code_name(item.results_by_partition[0].partition_error_code)
        for item in answer.results_by_topic_v3_and_below
    }
    expected = {name: "UNKNOWN_TOPIC_OR_PARTITION", topic: "OPERATION_NOT_ATTEMPTED"}
    stage.equal("errors", errors, expected)


@case("transactions/add/2", KIP_98, "AddPartitionsToTxn of a partition twice", "NONE both times", needs=NEEDS)
async def case_add_twice(stage: Stage) -> None:
    """A partition that is there already may be added again."""
    topic, first = await stage.topic(), await producer(stage)
    for _ in range(2):
        stage.equal("AddPartitionsToTxn", await first.add(topic), "NONE")
    stage.equal("EndTxn", await first.end(), "NONE")


@case("transactions/add/3", KIP_890, "Produce 9 without AddPartitionsToTxn", "INVALID_TXN_STATE",
      needs=f"{NEEDS}, AddPartitionsToTxn 4, Produce 9")  # fmt: skip
async def case_not_added(stage: Stage) -> None:
    """A partition that the transaction doesn't have takes none of its records."""
    topic, first = await stage.topic(), await producer(stage)
    answer = await first.send(topic)
    stage.error("Produce", answer.error_code, "INVALID_TXN_STATE")
    stage.equal("records", (await values_of(stage, topic, committed=False))[0], [])


@case("transactions/add/4", KIP_890, "AddPartitionsToTxn 4 of two transactions", "an answer for each",
      needs=f"{NEEDS}, AddPartitionsToTxn 4")  # fmt: skip
async def case_add_batch(stage: Stage) -> None:
    """From version 4 on brokers add partitions to several transactions at once."""
    topic, writers = await stage.topic(2), [await producer(stage), await producer(stage)]
    transactions = [
        writer.identity | {"verify_only": False, "topics": [{"name": topic, "partitions": [number]}]}
        for number, writer in enumerate(writers)
    ]
    answer = await stage.ask("AddPartitionsToTxn", at=4, transactions=transactions)
    errors = {
        item.transactional_id: code_name(item.topic_results[0].results_by_partition[0].partition_error_code)
        for item in answer.results_by_transaction
    }
    stage.equal("errors", errors, {str(writer.name): "NONE" for writer in writers})


@case("transactions/add/5", KIP_890, "AddPartitionsToTxn 4 that verifies what was added, and what was not",
      "NONE, and an error", needs=f"{NEEDS}, AddPartitionsToTxn 4")  # fmt: skip
async def case_verify(stage: Stage) -> None:
    """A broker asks whether a transaction has a partition, and adds nothing by that."""
    topic, first = await stage.topic(2), await producer(stage)
    stage.equal("AddPartitionsToTxn", await first.add(topic), "NONE")
    topics = [{"name": topic, "partitions": [0, 1]}]
    transactions = [first.identity | {"verify_only": True, "topics": topics}]
    answer = await stage.ask("AddPartitionsToTxn", at=4, transactions=transactions)
    (result,) = answer.results_by_transaction[0].topic_results
    errors = {
        item.partition_index: code_name(item.partition_error_code) for item in result.results_by_partition
    }
    stage.equal("error of what was added", errors[0], "NONE")
    stage.true(errors[1] in ("INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"), f"what was not: {errors[1]}")


# --- ends ---


@case(
    "transactions/end/4",
    KIP_98,
    "an abort twice, then a commit",
    "NONE, NONE, INVALID_TXN_STATE",
    needs=NEEDS,
)
async def case_abort_twice(stage: Stage) -> None:
    """A producer whose answer was lost may abort again, but not commit what it aborted."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic)
    for _ in range(2):
        stage.equal("EndTxn", await first.end(committed=False), "NONE")
    stage.equal("EndTxn with a commit", await first.end(), "INVALID_TXN_STATE")


@case(
    "transactions/end/5",
    KIP_98,
    "an abort where no transaction is open",
    "INVALID_TXN_STATE",
    needs=f"{NEEDS}, EndTxn 3",
)
async def case_abort_nothing(stage: Stage) -> None:
    """What has not begun can't be aborted in version 3."""
    stage.error("EndTxn", await abort_at(await producer(stage), 3), "INVALID_TXN_STATE")


async def abort_at(first: Producer, version: int) -> int:
    answer = await first.stage.ask("EndTxn", at=version, committed=False, **first.identity)
    code: int = answer.error_code
    return code


@case(
    "transactions/end/6", KIP_890, "an abort by EndTxn 5 where no transaction is open", "NONE", needs=SECOND
)
async def case_abort_nothing_second(stage: Stage) -> None:
    """From EndTxn 5 on a producer that doesn't know whether a transaction has begun may abort it."""
    stage.error("EndTxn", await abort_at(await producer(stage), 5), "NONE")


@case(
    "transactions/end/7",
    KIP_890,
    "EndTxn 5 twice with the same epoch",
    "the next epoch both times",
    needs=SECOND,
)
async def case_end_again_second(stage: Stage) -> None:
    """A producer whose answer was lost gets it again, with the epoch that it was given."""
    topic, first = await stage.topic(), await second_producer(stage)
    await wrote_at_once(first, topic)
    epochs = []
    for _ in range(2):
        answer = await stage.ask("EndTxn", at=5, committed=True, **first.identity)
        stage.error("EndTxn", answer.error_code, "NONE")
        epochs.append(answer.producer_epoch)
    stage.equal("epochs", epochs, [first.epoch + 1] * 2)


@case("transactions/end/8", KIP_98, "two transactions, one after the other", "both records", needs=NEEDS)
async def case_next(stage: Stage) -> None:
    """After a transaction's end the next one begins with the next partition that is added."""
    topic, first = await stage.topic(), await producer(stage)
    for value in (b"one", b"two"):
        await first.wrote(topic, value)
        stage.equal("EndTxn", await first.end(), "NONE")
    await sees(stage, topic, [b"one", b"two"])


@case("transactions/end/9", KIP_98, "a transaction of two partitions", "both records at its end", needs=NEEDS)
async def case_two_topics(stage: Stage) -> None:
    """All partitions of a transaction end with it."""
    topics, first = [await stage.topic(), await stage.topic()], await producer(stage)
    for topic in topics:
        await first.wrote(topic, b"v")
        first.sequence = 0
        stage.equal("committed records", (await values_of(stage, topic, committed=True))[0], [])
    stage.equal("EndTxn", await first.end(), "NONE")
    for topic in topics:
        await sees(stage, topic, [b"v"])


async def second_producer(stage: Stage) -> Producer:
    """A producer of the second version of transactions."""
    name = stage.transactional_id()
    answer = await initialized(stage, name, at=5)
    stage.error("InitProducerId", answer.error_code, "NONE")
    return Producer(stage, name, answer.producer_id, answer.producer_epoch)


async def wrote_at_once(first: Producer, topic: str, value: bytes = b"v") -> None:
    """Write a record that begins or goes on with a transaction."""

    async def is_written() -> bool:
        error = code_name((await first.send(topic, value, at=12)).error_code)
        first.stage.true(error in ("NONE", "CONCURRENT_TRANSACTIONS"), f"Produce 12: {error}")
        return error == "NONE"

    await first.stage.until(is_written, "the transaction before is complete")


@case("transactions/second/1", KIP_890, "Produce 12 without AddPartitionsToTxn, then EndTxn 5",
      "a committed record", needs=SECOND)  # fmt: skip
async def case_produce_adds(stage: Stage) -> None:
    """From Produce 12 on the first record adds its partition."""
    topic, first = await stage.topic(), await second_producer(stage)
    await wrote_at_once(first, topic, b"one")
    stage.equal("committed records", (await values_of(stage, topic, committed=True))[0], [])
    stage.equal("EndTxn", await first.end(at=5), "NONE")
    await sees(stage, topic, [b"one"])


@case("transactions/second/2", KIP_890, "Produce 12 with the epoch before the end", "INVALID_PRODUCER_EPOCH",
      needs="InitProducerId 5, EndTxn 5, Produce 12")  # fmt: skip
async def case_produce_late(stage: Stage) -> None:
    """A record of a transaction that has ended doesn't come into the next: its epoch is the one before."""
    topic, first = await stage.topic(), await second_producer(stage)
    await wrote_at_once(first, topic, b"one")
    stage.equal("EndTxn", await first.end(at=5), "NONE")
    await sees(stage, topic, [b"one"])
    answer = await first.send(topic, b"late", at=12)
    stage.error("Produce 12", answer.error_code, "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")


@case(
    "transactions/second/3",
    KIP_890,
    "TxnOffsetCommit 5 without AddOffsetsToTxn",
    "the offset at the end",
    needs=SECOND,
)
async def case_offsets_add(stage: Stage) -> None:
    """From TxnOffsetCommit 5 on offsets add their group."""
    group, topic, first = stage.group(), await stage.topic(), await second_producer(stage)
    topics = [{"name": topic, "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
    answer = await stage.ask("TxnOffsetCommit", at=5, group_id=group, topics=topics, **first.identity)
    stage.error("TxnOffsetCommit", answer.topics[0].partitions[0].error_code, "NONE")
    stage.equal("offset before", (await fetched(stage, group, topic)).committed_offset, -1)
    stage.equal("EndTxn", await first.end(at=5), "NONE")

    async def is_there() -> bool:
        return bool((await fetched(stage, group, topic)).committed_offset == 7)

    await stage.until(is_there, "the transaction's offset is fetched")


@case(
    "transactions/second/4",
    KIP_890,
    "a transaction goes on with the epoch of EndTxn 5",
    "both records",
    needs=SECOND,
)
async def case_second_goes_on(stage: Stage) -> None:
    """The next transaction has the epoch that the end gave, and begins with the sequence 0."""
    topic, first = await stage.topic(), await second_producer(stage)
    for value in (b"one", b"two"):
        await wrote_at_once(first, topic, value)
        answer = await stage.ask("EndTxn", at=5, committed=True, **first.identity)
        stage.error("EndTxn", answer.error_code, "NONE")
        first.id, first.epoch, first.sequence = answer.producer_id, answer.producer_epoch, 0
    await sees(stage, topic, [b"one", b"two"])


# --- offsets ---


@case("transactions/offsets/5", KIP_447, "TxnOffsetCommit with a strange member id", "UNKNOWN_MEMBER_ID",
      needs=f"{OFFSETS}, TxnOffsetCommit 3")  # fmt: skip
async def case_offsets_member(stage: Stage) -> None:
    """A transaction's offsets are of a member, where it has one."""
    topic, first, member = await stage.topic(), await producer(stage), await joined(stage, stage.group())
    error = await commit_in_transaction(
        stage, first, member.group, topic, member_id="no-member",
        generation_id_or_member_epoch=member.generation,
    )  # fmt: skip
    stage.equal("TxnOffsetCommit", error, "UNKNOWN_MEMBER_ID")


@case("transactions/offsets/6", KIP_447, "TxnOffsetCommit of a former static member", "FENCED_INSTANCE_ID",
      needs=f"{OFFSETS}, JoinGroup 5, TxnOffsetCommit 3")  # fmt: skip
async def case_offsets_static(stage: Stage) -> None:
    """A static member that was replaced commits nothing in a transaction."""
    topic, first = await stage.topic(), await producer(stage)
    member = await joined(stage, stage.group(), group_instance_id="s")
    await join(stage, member.group, await stage.client(), group_instance_id="s")
    error = await commit_in_transaction(
        stage, first, member.group, topic, member_id=member.id, group_instance_id="s",
        generation_id_or_member_epoch=member.generation,
    )  # fmt: skip
    stage.equal("TxnOffsetCommit", error, "FENCED_INSTANCE_ID")


@case(
    "transactions/offsets/7",
    KIP_447,
    "TxnOffsetCommit of a member with its generation",
    "NONE",
    needs=OFFSETS,
)
async def case_offsets_own(stage: Stage) -> None:
    """A member commits in a transaction with its own generation."""
    topic, first, member = await stage.topic(), await producer(stage), await joined(stage, stage.group())
    error = await commit_in_transaction(
        stage, first, member.group, topic, member_id=member.id,
        generation_id_or_member_epoch=member.generation,
    )  # fmt: skip
    stage.equal("TxnOffsetCommit", error, "NONE")


@case("transactions/offsets/8", KIP_447,
      "TxnOffsetCommit of a consumer group's member with its epoch, and the next",
      "NONE, then an error", needs=f"{OFFSETS}, {HEARTBEAT}")  # fmt: skip
async def case_offsets_epoch(stage: Stage) -> None:
    """A consumer group's member commits in a transaction with its epoch."""
    first, member = await producer(stage), await consumer(stage)
    for beyond, errors in [(0, ["NONE"]), (1, ["ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH"])]:
        error = await commit_in_transaction(
            stage, first, member.group, member.topics[0], member_id=member.id,
            generation_id_or_member_epoch=member.epoch + beyond,
        )  # fmt: skip
        stage.true(error in errors, f"TxnOffsetCommit with {beyond} beyond its epoch: {error}")


@case("transactions/offsets/9", KIP_98, "TxnOffsetCommit for a topic that is not there",
      "UNKNOWN_TOPIC_OR_PARTITION", needs=f"{OFFSETS}, TxnOffsetCommit 3")  # fmt: skip
async def case_offsets_no_topic(stage: Stage) -> None:
    """A transaction's offsets are of topics that are there."""
    first = await producer(stage)
    error = await commit_in_transaction(stage, first, stage.group(), stage.topic_name())
    stage.equal("TxnOffsetCommit", error, "UNKNOWN_TOPIC_OR_PARTITION")
