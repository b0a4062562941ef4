"""Bugs planted into a broker's committed offsets, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import FETCHED, Plants, asks, on, sets, swaps

FETCHED_IN_GROUPS = f"groups.{FETCHED}"


def _short_metadata(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        for partition in topic.partitions:
            partition.committed_metadata = (partition.committed_metadata or "?")[:4_000]


def _first_partition_alone(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        del topic.partitions[1:]


def _one_choice_for_all(exchange: TappedExchange) -> None:
    for group in exchange.request.groups:
        group.topics = exchange.request.groups[0].topics


def _empty_is_all(exchange: TappedExchange) -> None:
    exchange.request.topics = exchange.request.topics or None


def _all_of_a_topic(exchange: TappedExchange) -> None:
    """What was never committed is 0."""
    for topic in exchange.response.topics or ():
        for partition in topic.partitions:
            partition.committed_offset = max(partition.committed_offset, 0)
    for group in exchange.response.groups or ():
        for topic in group.topics:
            for partition in topic.partitions:
                partition.committed_offset = max(partition.committed_offset, 0)


PLANTS: Plants = {
    "offsets/versions/1 2 3 4 5 6 7 8 9": lambda: asks("OffsetCommit", topics=[]),
    "offsets/versions/10 11 12 13 14 15 16 17 18 19": lambda: (None, on("OffsetFetch", _all_of_a_topic)),
    "offsets/commit/12 13": lambda: (on("OffsetCommit", _short_metadata), None),
    "offsets/commit/14": lambda: (on("OffsetCommit", _first_partition_alone), None),
    "offsets/commit/17 18": lambda: swaps("OffsetCommit", "NONE", "REBALANCE_IN_PROGRESS"),
    "offsets/commit/19 25": lambda: sets("OffsetFetch", FETCHED, -1),
    "offsets/fetch/5": lambda: (None, on("OffsetFetch", _all_of_a_topic)),
    "offsets/fetch/7": lambda: swaps("OffsetFetch", "NONE", "GROUP_ID_NOT_FOUND"),
    "offsets/fetch/8": lambda: (on("OffsetFetch", _empty_is_all), None),
    "offsets/fetch/9": lambda: swaps("OffsetFetch", "NONE", "UNSTABLE_OFFSET_COMMIT"),
    "offsets/fetch/10": lambda: (on("OffsetFetch", _one_choice_for_all), None),
    "offsets/fetch/11": lambda: sets("OffsetFetch", FETCHED_IN_GROUPS, -1),
    "offsets/fetch/12": lambda: swaps("OffsetFetch", "UNKNOWN_MEMBER_ID"),
    "offsets/delete/7": lambda: swaps("OffsetDelete", "NONE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "offsets/delete/9": lambda: sets("OffsetFetch", FETCHED, 3),
    "offsets/delete/10": lambda: asks("OffsetDelete", topics=[]),
}
