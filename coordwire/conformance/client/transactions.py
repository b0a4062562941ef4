"""Cases: transactional producers, and consumers of what they wrote."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.client.recovery import ERRORS, MOVED
from coordwire.conformance.client.stage import TRANSACTION, ClientPlay, ClientStage, case
from coordwire.conformance.client.wire import WireExchange
from coordwire.records import batches

KIP_98, KIP_447, KIP_588 = "KIP-98", "KIP-447", "KIP-588"
BEFORE_890 = "3.9"
"""A release whose transactions add partitions by requests of their own (before KIP-890)."""


async def _committed(stage: ClientStage, report: Any, *values: str) -> None:
    stage.succeeded(report)
    await stage.until(lambda: stage.log(committed=True) == list(values), f"{', '.join(values)} are committed")


def _recovers(api: str, error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        key_type = 0 if api == "TxnOffsetCommit" else 1
        stage.fault(f"{api} error={error}")
        report = await stage.transact("one", offset=3)
        refused = stage.first(api, error)
        if error in MOVED:
            searches = stage.sent("FindCoordinator", refused)
            stage.true(
                key_type in {exchange.request.key_type for exchange in searches},
                "the coordinator is not looked for",
            )
        stage.first(api, after=refused)
        await _committed(stage, report, "one")
        await stage.until(lambda: stage.committed() == 3, "the offset is committed")

    return play


def _fails(api: str, error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} error={error} times=all")
        report = await stage.transact("one", offset=3)
        refused = [exchange for exchange in stage.sent(api) if error in exchange.errors]
        stage.true(bool(refused), f"no {api} is sent")
        stage.failed(report)
        stage.equal("requests", len(refused), 1)
        ends = [exchange.request.committed for exchange in stage.sent("EndTxn", refused[0])]
        stage.true(True not in ends, "the transaction is committed after that")
        stage.equal("committed records", stage.log(committed=True), [])

    return play


_COORDINATOR = "NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS"
RECOVERIES = {
    "FindCoordinator": "COORDINATOR_NOT_AVAILABLE",
    "InitProducerId": f"{_COORDINATOR} CONCURRENT_TRANSACTIONS",
    "AddPartitionsToTxn": f"{_COORDINATOR} CONCURRENT_TRANSACTIONS",
    "AddOffsetsToTxn": f"{_COORDINATOR} CONCURRENT_TRANSACTIONS",
    "TxnOffsetCommit": f"{_COORDINATOR} UNKNOWN_TOPIC_OR_PARTITION",
    "EndTxn": f"{_COORDINATOR} CONCURRENT_TRANSACTIONS",
}
FAILURES = {
    "InitProducerId": "TRANSACTIONAL_ID_AUTHORIZATION_FAILED INVALID_TRANSACTION_TIMEOUT PRODUCER_FENCED",
    "AddPartitionsToTxn": "TOPIC_AUTHORIZATION_FAILED TRANSACTIONAL_ID_AUTHORIZATION_FAILED PRODUCER_FENCED "
    "INVALID_PRODUCER_EPOCH INVALID_TXN_STATE",
    "AddOffsetsToTxn": "GROUP_AUTHORIZATION_FAILED PRODUCER_FENCED",
    "TxnOffsetCommit": "GROUP_AUTHORIZATION_FAILED ILLEGAL_GENERATION FENCED_INSTANCE_ID",
    "EndTxn": "PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_TXN_STATE",
    "Produce": "INVALID_PRODUCER_EPOCH MESSAGE_TOO_LARGE",
}
"""The errors of each API."""


def pairs_of(errors: dict[str, str]) -> list[tuple[str, str]]:
    return [(api, error) for api, names in errors.items() for error in names.split()]


for number, (api, error) in enumerate(pairs_of(RECOVERIES), 1):
    case(
        f"transactions/recovery/{number}",
        KIP_447 if api == "TxnOffsetCommit" else KIP_98 if error == "CONCURRENT_TRANSACTIONS" else ERRORS,
        f"{api}: {error}, once",
        f"FindCoordinator, then {api} again" if error in MOVED else f"{api} again",
        rule="A producer asks again after a retriable error, and the transaction is committed.",
        as_of=BEFORE_890,
    )(_recovers(api, error))

for number, (api, error) in enumerate(pairs_of(FAILURES), 1):
    case(
        f"transactions/failure/{number}",
        KIP_588 if "EPOCH" in error or "FENCED" in error else ERRORS,
        f"{api}: {error}",
        "an error for the application, and no commit",
        rule="A transaction of which a part is refused is not committed; the application gets an error.",
        as_of=BEFORE_890,
    )(_fails(api, error))


@case(
    "transactions/order/1",
    KIP_98,
    "a transaction",
    "partitions added before records, then EndTxn",
    as_of=BEFORE_890,
)
async def case_order(stage: ClientStage) -> None:
    """A producer gets its id, adds a partition before it writes there, and ends the transaction after all."""
    await _committed(stage, await stage.transact("one", "two", offset=3), "one", "two")
    order = ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]
    times = [stage.first(api).sent for api in order]
    stage.equal("the order", [api for _, api in sorted(zip(times, order, strict=True))], order)
    ends = stage.first("EndTxn")
    stage.true(ends.request.committed, "the transaction is not committed")
    for api in ("Produce", "AddOffsetsToTxn", "TxnOffsetCommit"):
        answered = [exchange.answered or 0 for exchange in stage.sent(api)]
        stage.true(max(answered) <= ends.sent, f"EndTxn is sent before {api} is answered")


@case("transactions/order/2", "KIP-890", "a transaction", "records without AddPartitionsToTxn")
async def case_order_890(stage: ClientStage) -> None:
    """Where the broker has transaction.version 2, its partitions are added by Produce; an older client's own
    requests are in order as well."""
    await _committed(stage, await stage.transact("one", "two", offset=3), "one", "two")
    stage.equal(
        "transactional ids",
        {exchange.request.transactional_id for exchange in stage.sent("Produce")},
        {TRANSACTION},
    )


@case("transactions/batches/1", KIP_98, "a transaction", "its id, epoch, sequences and mark in batches")
async def case_batches(stage: ClientStage) -> None:
    """Batches of a transaction say so, with the producer's id and epoch and sequences from 0."""
    await _committed(stage, await stage.transact("one", "two"), "one", "two")
    producer = stage.first("InitProducerId").response
    sequence = 0
    for exchange in stage.sent("Produce"):
        for batch in batches(exchange.request.topic_data[0].partition_data[0].records):
            stage.true(batch.transactional, "a batch is not transactional")
            stage.equal(
                "the producer",
                (batch.producer_id, batch.producer_epoch),
                (producer.producer_id, producer.producer_epoch),
            )
            stage.equal("the sequence", batch.base_sequence, sequence)
            sequence += batch.last_offset - batch.base_offset + 1


@case(
    "transactions/coordinator/1",
    KIP_98,
    "a transaction with offsets",
    "FindCoordinator of both types",
    nodes=3,
)
async def case_coordinators(stage: ClientStage) -> None:
    """The transaction's coordinator and the group's are looked for, and asked, each for its own."""
    stage.broker.moves.coordinator(transactional_id=TRANSACTION, to=2)
    stage.broker.moves.coordinator(group="conformance-group", to=3)
    await _committed(stage, await stage.transact("one", offset=3), "one")
    stage.equal("types", {exchange.request.key_type for exchange in stage.sent("FindCoordinator")}, {0, 1})
    stage.equal("nodes of InitProducerId", {exchange.node for exchange in stage.sent("InitProducerId")}, {2})
    stage.equal("nodes of EndTxn", {exchange.node for exchange in stage.sent("EndTxn")}, {2})
    stage.equal(
        "nodes of TxnOffsetCommit", {exchange.node for exchange in stage.sent("TxnOffsetCommit")}, {3}
    )


@case(
    "transactions/coordinator/2",
    KIP_98,
    "the coordinator moves within a transaction",
    "EndTxn to the new one",
    nodes=3,
)
async def case_coordinator_moves(stage: ClientStage) -> None:
    """A producer finds the new coordinator, and ends its transaction there."""
    stage.broker.moves.coordinator(transactional_id=TRANSACTION, to=2)

    def move(exchange: WireExchange) -> None:
        stage.broker.moves.coordinator(transactional_id=TRANSACTION, to=3)

    stage.wire.rule("Produce", move)
    await _committed(stage, await stage.transact("one"), "one")
    stage.equal("the node of the last EndTxn", stage.sent("EndTxn")[-1].node, 3)


@case("transactions/abort/1", KIP_98, "a transaction that is aborted", "EndTxn without commit")
async def case_abort(stage: ClientStage) -> None:
    """A transaction that the application aborts is not committed, and neither are its offsets."""
    stage.succeeded(await stage.transact("one", end="abort", offset=3))
    stage.equal(
        "commits in EndTxn", {exchange.request.committed for exchange in stage.sent("EndTxn")}, {False}
    )
    stage.equal("committed records", stage.log(committed=True), [])
    stage.equal("the committed offset", stage.committed(), None)


@case(
    "transactions/restart/1", KIP_98, "a producer restarts", "InitProducerId with the same transactional id"
)
async def case_restart(stage: ClientStage) -> None:
    """A producer that restarts takes its transactional id over, with a newer epoch."""
    await _committed(stage, await stage.transact("one"), "one")
    first = stage.first("InitProducerId")
    await _committed(stage, await stage.transact("two"), "one", "two")
    restarted = stage.first("InitProducerId", after=first)
    stage.equal("the transactional id", restarted.request.transactional_id, TRANSACTION)
    last = stage.sent("Produce")[-1].request.topic_data[0].partition_data[0].records
    stage.equal("the epoch", next(iter(batches(last))).producer_epoch, restarted.response.producer_epoch)


@case("transactions/lost/1", KIP_98, "the answer to EndTxn is lost with its connection", "EndTxn again")
async def case_lost_end(stage: ClientStage) -> None:
    """A producer that doesn't know whether its transaction ended asks again."""
    stage.fault("EndTxn after disconnect")
    await _committed(stage, await stage.transact("one"), "one")
    stage.true(len(stage.sent("EndTxn")) > 1, "EndTxn is not sent again")


# --- consumers ---


@case(
    "transactions/isolation/1",
    KIP_98,
    "an aborted transaction, then a committed one",
    "the committed records",
)
async def case_read_committed(stage: ClientStage) -> None:
    """A consumer that reads committed records gets no others, and no markers."""
    stage.succeeded(await stage.transact("aborted", end="abort"))
    stage.succeeded(await stage.transact("one"))
    await stage.until(lambda: stage.log(committed=True) == ["one"], "the record is committed")
    stage.write("two")
    stage.succeeded(await stage.consume(2, isolation_level="read_committed"), "one", "two")
    stage.equal(
        "isolation levels", {exchange.request.isolation_level for exchange in stage.sent("Fetch")}, {1}
    )


@case("transactions/isolation/2", KIP_98, "an aborted transaction", "all records, no markers")
async def case_read_uncommitted(stage: ClientStage) -> None:
    """A consumer that reads uncommitted records gets those of aborted transactions too, but no markers."""
    stage.succeeded(await stage.transact("aborted", end="abort"))
    await stage.until(
        lambda: "EndTxn" in {exchange.api for exchange in stage.wire.exchanges}, "EndTxn is sent"
    )
    stage.write("one")
    stage.succeeded(await stage.consume(2, isolation_level="read_uncommitted"), "aborted", "one")


@case("transactions/isolation/3", KIP_98, "markers at the end of the log", "the offset after them")
async def case_position(stage: ClientStage) -> None:
    """Markers have offsets, which a consumer passes over: it goes on after them."""
    stage.succeeded(await stage.transact("one"))
    await stage.until(lambda: stage.log(committed=True) == ["one"], "the record is committed")
    consuming = stage.later(stage.consume(2, isolation_level="read_committed", commit=True))
    await stage.until(lambda: stage.committed() is not None, "the first record is committed")
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    stage.equal("the committed offset", stage.committed(), 3)
