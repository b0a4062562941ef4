"""Bugs planted into how a broker writes and reads records, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Change, Plants, asks, on, sets, swaps

BASE = "responses.partition_responses.base_offset"
RECORDS = "responses.partitions.records"


def _from_the_next(exchange: TappedExchange) -> None:
    """A reader gets what comes after the batch with its offset."""
    for topic in exchange.request.topics:
        for partition in topic.partitions:
            partition.fetch_offset += bool(partition.fetch_offset) * 2


def _whole_limit(exchange: TappedExchange) -> None:
    if exchange.request.max_bytes == 1:
        for topic in exchange.response.responses:
            for partition in topic.partitions:
                partition.records = None


def _does_not_wait(exchange: TappedExchange) -> None:
    exchange.request.max_wait_ms = 0


def _all_partitions() -> Change:
    """A session's answers have all of the first answer's partitions."""
    first: list[object] = []

    def change(exchange: TappedExchange) -> None:
        if not first:
            first.extend(exchange.response.responses)
        elif not exchange.response.responses:
            exchange.response.responses = list(first)

    return change


PLANTS: Plants = {
    "records/versions/1 2 3 4 5 6 7 8 9 10 11": lambda: sets("Produce", BASE, 1),
    "records/versions/12 13 14 15 16 17 18 19 20 21 22 23 24 25 26": lambda: sets("Fetch", RECORDS, None),
    "records/versions/27 28 29 30 31 32 33 34 35 36 37": lambda: sets(
        "ListOffsets", "topics.partitions.offset", 1
    ),
    "records/produce/10": lambda: sets("Produce", BASE, 0),
    "records/produce/11 13": lambda: sets("Fetch", RECORDS, None),
    "records/compression/1 2 3 4 6": lambda: sets("Fetch", RECORDS, None),
    "records/produce/12": lambda: sets("Produce", "responses.partition_responses.log_append_time_ms", -1),
    "records/produce/14": lambda: sets("Produce", "responses.partition_responses.record_errors", []),
    "records/fetch/4": lambda: swaps("Fetch", "NONE", "OFFSET_OUT_OF_RANGE"),
    "records/fetch/5": lambda: (on("Fetch", _does_not_wait), None),
    "records/fetch/6": lambda: (None, on("Fetch", _whole_limit)),
    "records/fetch/7": lambda: (on("Fetch", _from_the_next), None),
    "records/session/1 4": lambda: (None, on("Fetch", _all_partitions())),
    "records/session/6": lambda: asks("Fetch", session_epoch=0),
}
