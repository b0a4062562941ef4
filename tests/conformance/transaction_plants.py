"""Bugs planted into a broker's producers and transactions, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import FENCED, FETCHED, Plants, asks, on, sets, swaps

ADD, OFFSETS = "AddPartitionsToTxn", "TxnOffsetCommit"
LIST, BASE = "ListTransactions", "responses.partition_responses.base_offset"
ACTIVE = "topics.partitions.active_producers"
RECORDS = "responses.partitions.records"


def _same_epoch(exchange: TappedExchange) -> None:
    exchange.response.producer_epoch = exchange.request.producer_epoch


def _one_transaction_alone(exchange: TappedExchange) -> None:
    del exchange.request.transactions[1:]


def _adds_what_is_verified(exchange: TappedExchange) -> None:
    for transaction in exchange.request.transactions:
        transaction.verify_only = False


def _long_timeout(exchange: TappedExchange) -> None:
    exchange.request.transaction_timeout_ms = 60_000


def _any_duration(exchange: TappedExchange) -> None:
    exchange.request.duration_filter = -1


def _any_name(exchange: TappedExchange) -> None:
    exchange.request.transactional_id_pattern = None


def _first_state_alone(exchange: TappedExchange) -> None:
    del exchange.request.state_filters[1:]


PLANTS: Plants = {
    "transactions/versions/1 2 3 4 5 6": lambda: sets("InitProducerId", "producer_epoch", 0),
    "transactions/versions/7 8 9 10 11 12": lambda: swaps(ADD, "NONE", "INVALID_TXN_STATE"),
    "transactions/versions/13 14 15 16 17": lambda: swaps("EndTxn", "NONE", "INVALID_TXN_STATE"),
    "transactions/versions/18 19 20 21 22": lambda: sets("OffsetFetch", FETCHED, -1),
    "transactions/init/6": lambda: sets("InitProducerId", "producer_epoch", 0),
    "transactions/init/10": lambda: sets("InitProducerId", "producer_id", -1),
    "transactions/fence/4": lambda: swaps("AddOffsetsToTxn", FENCED),
    "transactions/fence/10": lambda: swaps("Produce", FENCED),
    "transactions/fence/11": lambda: (on("InitProducerId", _long_timeout), None),
    "transactions/add/1": lambda: swaps(ADD, "OPERATION_NOT_ATTEMPTED"),
    "transactions/add/2": lambda: swaps(ADD, "NONE", "INVALID_TXN_STATE"),
    "transactions/add/4": lambda: (on(ADD, _one_transaction_alone), None),
    "transactions/add/5": lambda: swaps(ADD, "INVALID_TXN_STATE TRANSACTION_ABORTABLE"),
    "transactions/end/4": lambda: swaps("EndTxn", "INVALID_TXN_STATE"),
    "transactions/end/6": lambda: swaps("EndTxn", "NONE", "INVALID_TXN_STATE"),
    "transactions/end/7": lambda: (None, on("EndTxn", _same_epoch)),
    "transactions/end/8 9": lambda: sets("Fetch", RECORDS, None),
    "transactions/second/1": lambda: asks("Fetch", isolation_level=0),
    "transactions/second/2": lambda: swaps("Produce", FENCED),
    "transactions/second/3": lambda: sets("OffsetFetch", FETCHED, 7),
    "transactions/second/4": lambda: (None, on("EndTxn", _same_epoch)),
    "transactions/offsets/7": lambda: swaps(OFFSETS, "NONE", "ILLEGAL_GENERATION"),
    "transactions/offsets/8": lambda: swaps(OFFSETS, "ILLEGAL_GENERATION STALE_MEMBER_EPOCH"),
    "transactions/sequence/3": lambda: sets("Produce", BASE, 7),
    "transactions/sequence/7 8 9": lambda: swaps("Produce", "NONE", "OUT_OF_ORDER_SEQUENCE_NUMBER"),
    "transactions/producers/1 2": lambda: sets("DescribeProducers", f"{ACTIVE}.current_txn_start_offset", 4),
    "transactions/producers/3": lambda: swaps("DescribeProducers", "NONE", "UNKNOWN_PRODUCER_ID"),
    "transactions/describe/2 3 4": lambda: sets(
        "DescribeTransactions", "transaction_states.transaction_state", "Ongoing"
    ),
    "transactions/list/2": lambda: asks(LIST, producer_id_filters=[]),
    "transactions/list/3": lambda: sets(LIST, "unknown_state_filters", []),
    "transactions/list/4": lambda: (on(LIST, _any_duration), None),
    "transactions/list/5": lambda: (on(LIST, _any_name), None),
    "transactions/list/7": lambda: (on(LIST, _first_state_alone), None),
}
