"""Bugs planted into a broker's producers and transactions, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import FENCED, FETCHED, Plants, asks, on, sets, swaps

ADD, OFFSETS = "AddPartitionsToTxn", "TxnOffsetCommit"
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
}
