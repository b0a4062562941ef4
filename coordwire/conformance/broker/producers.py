"""Cases: sequences of producers, and how producers and transactions are described and listed."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.broker.transactions import KIP_98, NEEDS, Producer, producer, values_of
from coordwire.conformance.cases import code_name

__all__: list[str] = []

KIP_664, KIP_994 = "KIP-664", "KIP-994"
IDEMPOTENT = "InitProducerId 2, Fetch 11, Produce 9"
DESCRIBE = f"{NEEDS}, DescribeTransactions 0"
PRODUCERS = f"{NEEDS}, DescribeProducers 0"


# --- sequences ---


@case(
    "transactions/sequence/3",
    KIP_98,
    "five batches, then the first again",
    "its offset again",
    needs=IDEMPOTENT,
)
async def case_old_duplicate(stage: Stage) -> None:
    """A producer may have five batches on their way: each is recognized when it comes again."""
    topic, first = await stage.topic(), await producer(stage, None)
    offsets = [(await first.send(topic, sequence=number)).base_offset for number in range(5)]
    answer = await first.send(topic, sequence=0)
    stage.error("Produce", answer.error_code, "NONE", "DUPLICATE_SEQUENCE_NUMBER")
    stage.equal("offsets", (offsets, answer.base_offset), ([0, 1, 2, 3, 4], 0))
    stage.equal("records", len((await values_of(stage, topic, committed=False))[0]), 5)


async def refused_sequence(stage: Stage, answer: str, sequence: int, epoch: int) -> None:
    """After the sequence 0 of the epoch 1."""
    topic, first = await stage.topic(), await producer(stage, None)
    first.epoch = 1
    stage.error("the first", (await first.send(topic, sequence=0)).error_code, "NONE")
    first.epoch = epoch
    stage.error("Produce", (await first.send(topic, sequence=sequence)).error_code, answer)
    stage.equal("records", len((await values_of(stage, topic, committed=False))[0]), 1)


table(KIP_98, IDEMPOTENT, refused_sequence, [
    ("transactions/sequence/4", "a batch with a former epoch", "INVALID_PRODUCER_EPOCH",
     "A producer's epoch doesn't go back.", 1, 0),
    ("transactions/sequence/5", "the next epoch, and not the sequence 0", "OUT_OF_ORDER_SEQUENCE_NUMBER",
     "Each epoch's sequences begin at 0.", 1, 2),
    ("transactions/sequence/6", "a sequence two after the last", "OUT_OF_ORDER_SEQUENCE_NUMBER",
     "A batch that is missing is not passed over.", 2, 1),
])  # fmt: skip


@case(
    "transactions/sequence/7", KIP_98, "the next epoch with the sequence 0", "it is written", needs=IDEMPOTENT
)
async def case_next_epoch(stage: Stage) -> None:
    """A producer goes on with its next epoch from the sequence 0."""
    topic, first = await stage.topic(), await producer(stage, None)
    for epoch in (0, 1):
        first.epoch = epoch
        stage.error(f"the epoch {epoch}", (await first.send(topic, sequence=0)).error_code, "NONE")
    stage.equal("records", len((await values_of(stage, topic, committed=False))[0]), 2)


@case(
    "transactions/sequence/8",
    KIP_98,
    "two producers with the same sequences",
    "both are written",
    needs=IDEMPOTENT,
)
async def case_two_producers(stage: Stage) -> None:
    """Each producer has sequences of its own."""
    topic = await stage.topic()
    for writer in (await producer(stage, None), await producer(stage, None)):
        stage.error("Produce", (await writer.send(topic, sequence=0)).error_code, "NONE")
    stage.equal("records", len((await values_of(stage, topic, committed=False))[0]), 2)


@case(
    "transactions/sequence/9", KIP_98, "a producer and two topics", "the sequence 0 in both", needs=IDEMPOTENT
)
async def case_two_topics(stage: Stage) -> None:
    """Each partition has sequences of its own."""
    first = await producer(stage, None)
    for topic in (await stage.topic(), await stage.topic()):
        stage.error("Produce", (await first.send(topic, sequence=0)).error_code, "NONE")
        stage.equal("records", len((await values_of(stage, topic, committed=False))[0]), 1)


# --- descriptions ---


async def described(stage: Stage, topic: str, partition: int = 0) -> Any:
    """The partition in the answer to DescribeProducers."""
    topics = [{"name": topic, "partition_indexes": [partition]}]
    answer = await stage.ask("DescribeProducers", topics=topics)
    return answer.topics[0].partitions[0]


@case("transactions/producers/1", KIP_664, "DescribeProducers in a transaction",
      "its id, epoch, sequence and first offset", needs=PRODUCERS)  # fmt: skip
async def case_describe(stage: Stage) -> None:
    """A partition's producers are described with where their transactions begin."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic)
    await first.wrote(topic)
    (active,) = (await described(stage, topic)).active_producers
    facts = (active.producer_id, active.producer_epoch, active.last_sequence, active.current_txn_start_offset)
    stage.equal("id, epoch, sequence, first offset", facts, (first.id, first.epoch, 1, 0))


@case(
    "transactions/producers/2",
    KIP_664,
    "DescribeProducers after a transaction's end",
    "no first offset",
    needs=PRODUCERS,
)
async def case_describe_ended(stage: Stage) -> None:
    """A producer whose transaction has ended holds back no reader."""
    topic, first = await stage.topic(), await producer(stage)
    await first.wrote(topic)
    stage.equal("EndTxn", await first.end(), "NONE")

    async def has_ended() -> bool:
        (active,) = (await described(stage, topic)).active_producers
        return bool(active.current_txn_start_offset == -1)

    await stage.until(has_ended, "the producer has no open transaction")


@case(
    "transactions/producers/3",
    KIP_664,
    "DescribeProducers of a partition without producers",
    "none",
    needs=PRODUCERS,
)
async def case_describe_none(stage: Stage) -> None:
    """A partition that no producer with an id has written to has none."""
    result = await described(stage, await stage.topic())
    stage.equal("error and producers", (result.error_code, result.active_producers), (0, []))


@case("transactions/producers/4", KIP_664, "DescribeProducers of partition 9 of a topic that has one",
      "UNKNOWN_TOPIC_OR_PARTITION", needs="DescribeProducers 0")  # fmt: skip
async def case_describe_unknown(stage: Stage) -> None:
    """A partition must be the topic's."""
    answer = await described(stage, await stage.topic(), 9)
    stage.error("DescribeProducers", answer.error_code, "UNKNOWN_TOPIC_OR_PARTITION")


async def state_of(stage: Stage, name: str | None) -> Any:
    (state,) = (await stage.ask("DescribeTransactions", transactional_ids=[name])).transaction_states
    return state


async def is_described(stage: Stage, answer: str, ending: str) -> None:
    topic, first = await stage.topic(), await producer(stage)
    if ending:
        await first.wrote(topic)
        stage.equal("EndTxn", await first.end(committed=ending == "commit"), "NONE")

    async def has_state() -> bool:
        return bool((await state_of(stage, first.name)).transaction_state == answer)

    await stage.until(has_state, f"the state is {answer}")
    state = await state_of(stage, first.name)
    stage.equal("partitions and timeout", (state.topics, state.transaction_timeout_ms), ([], 30_000))


table(KIP_664, DESCRIBE, is_described, [
    ("transactions/describe/2", "DescribeTransactions before the first transaction", "Empty",
     "A name is described with its state.", ""),
    ("transactions/describe/3", "DescribeTransactions after a commit", "CompleteCommit",
     "A transaction that has ended has no partitions.", "commit"),
    ("transactions/describe/4", "DescribeTransactions after an abort", "CompleteAbort",
     "A transaction that was aborted has no partitions.", "abort"),
])  # fmt: skip


# --- lists ---


async def names_listed(stage: Stage, at: int = 0, **values: Any) -> set[str]:
    answer = await stage.ask("ListTransactions", at=at, **values)
    stage.error("ListTransactions", answer.error_code, "NONE")
    return {item.transactional_id for item in answer.transaction_states}


async def open_pair(stage: Stage) -> tuple[Producer, Producer]:
    topic, pair = await stage.topic(), (await producer(stage), await producer(stage))
    for writer in pair:
        await writer.wrote(topic)
    return pair


@case("transactions/list/2", KIP_664, "ListTransactions of a producer id", "its transaction alone",
      needs=f"{NEEDS}, ListTransactions 0")  # fmt: skip
async def case_list_id(stage: Stage) -> None:
    """Producer ids select their transactions."""
    first, _ = await open_pair(stage)
    stage.equal("names", await names_listed(stage, producer_id_filters=[first.id]), {first.name})


@case("transactions/list/3", KIP_664, "ListTransactions of a state that is unknown",
      "the state, and no transactions", needs=f"{NEEDS}, ListTransactions 0")  # fmt: skip
async def case_list_unknown(stage: Stage) -> None:
    """A tool learns which of its states the coordinator doesn't know."""
    await open_pair(stage)
    answer = await stage.ask("ListTransactions", at=0, state_filters=["Busy"])
    facts = (list(answer.unknown_state_filters), answer.transaction_states)
    stage.equal("unknown states and transactions", facts, (["Busy"], []))


@case("transactions/list/4", KIP_994, "ListTransactions 1 of those that are open for an hour", "none of ours",
      needs=f"{NEEDS}, ListTransactions 1")  # fmt: skip
async def case_list_duration(stage: Stage) -> None:
    """A duration selects transactions that are open for longer."""
    pair = await open_pair(stage)
    names = {writer.name for writer in pair}
    stage.equal("open for an hour", names & await names_listed(stage, 1, duration_filter=3_600_000), set())
    stage.equal("open for any time", names & await names_listed(stage, 1, duration_filter=-1), names)


@case("transactions/list/5", "KIP-1152", "ListTransactions 2 of a pattern of names",
      "the names that it matches", needs=f"{NEEDS}, ListTransactions 2")  # fmt: skip
async def case_list_pattern(stage: Stage) -> None:
    """A pattern selects names as a whole."""
    first, _ = await open_pair(stage)
    pattern = f"{stage.prefix}-transaction-0"
    stage.equal("names", await names_listed(stage, 2, transactional_id_pattern=pattern), {first.name})
    part = await names_listed(stage, 2, transactional_id_pattern=f"{stage.prefix}-trans")
    stage.equal("names of which it matches a part", part, set())


@case("transactions/list/6", "KIP-1152", "ListTransactions 2 of a pattern that is none",
      "INVALID_REGULAR_EXPRESSION", needs="ListTransactions 2")  # fmt: skip
async def case_list_wrong_pattern(stage: Stage) -> None:
    """The coordinator checks a pattern."""
    answer = await stage.ask("ListTransactions", at=2, transactional_id_pattern="([")
    stage.error("ListTransactions", answer.error_code, "INVALID_REGULAR_EXPRESSION")


@case("transactions/list/7", KIP_664, "ListTransactions of two states", "transactions in either",
      needs=f"{NEEDS}, ListTransactions 0")  # fmt: skip
async def case_list_states(stage: Stage) -> None:
    """Several states select the transactions in any of them."""
    topic, first, second = await stage.topic(), await producer(stage), await producer(stage)
    await first.wrote(topic)
    names = await names_listed(stage, state_filters=["Ongoing", "Empty"])
    stage.true({first.name, second.name} <= names, "not both are listed")
    errors = [code_name((await state_of(stage, writer.name)).error_code) for writer in (first, second)]
    stage.equal("errors", errors, ["NONE", "NONE"])
