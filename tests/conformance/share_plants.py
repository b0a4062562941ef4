"""Bugs planted into a broker's share groups, as in `broker_plants`."""

from __future__ import annotations

from typing import Any

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Change, Plants, adds, asks, on, sets, swaps

HEARTBEAT, FETCH, ACKNOWLEDGE = "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"
OFFSETS = "DescribeShareGroupOffsets"
ACQUIRED = "responses.partitions.acquired_records"


def _stays(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -1:
        exchange.request.group_id = "another"


def _remembers_no_partitions(exchange: TappedExchange) -> None:
    if not exchange.request.topics:
        exchange.request.max_bytes = 0
        exchange.request.forgotten_topics_data = []


def _forgets_nothing(exchange: TappedExchange) -> None:
    exchange.request.forgotten_topics_data = []


def _first_alone() -> Change:
    """The first member gets everything, others nothing."""
    first: list[str] = []

    def change(exchange: TappedExchange) -> None:
        first.append(exchange.request.member_id)
        if exchange.request.member_id != first[0] and exchange.response.assignment is not None:
            exchange.response.assignment.topic_partitions = []

    return change


def _again() -> Change:
    """What was acquired is in the next answer too."""
    last: list[Any] = []

    def change(exchange: TappedExchange) -> None:
        acquired = [
            item
            for topic in exchange.response.responses
            for item in topic.partitions
            if item.acquired_records
        ]
        if acquired:
            last[:] = exchange.response.responses
        elif last:
            exchange.response.responses = list(last)

    return change


def _acquires_all(exchange: TappedExchange) -> None:
    exchange.request.max_records = 100
    exchange.request.share_acquire_mode = 0


def _accepts_all(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                batch.acknowledge_types = [1 for _ in batch.acknowledge_types]


def _releases_all(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                batch.acknowledge_types = [2 for _ in batch.acknowledge_types]


PLANTS: Plants = {
    "groups/share/join/7 12": lambda: sets(HEARTBEAT, "assignment.topic_partitions.partitions", [5]),
    "groups/share/join/10": lambda: swaps(HEARTBEAT, "NONE", "UNKNOWN_TOPIC_OR_PARTITION"),
    "groups/share/join/11": lambda: (None, on(HEARTBEAT, _first_alone())),
    "groups/share/join/8": lambda: sets(HEARTBEAT, "heartbeat_interval_ms", 0),
    "groups/share/join/9": lambda: sets(HEARTBEAT, "member_id", "another"),
    "groups/share/epochs/6": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID"),
    "groups/share/epochs/7": lambda: adds(HEARTBEAT, "member_epoch"),
    "groups/share/epochs/8": lambda: swaps(HEARTBEAT, "NONE", "FENCED_MEMBER_EPOCH"),
    "groups/share/epochs/9": lambda: (on(HEARTBEAT, _stays), None),
    "groups/share/describe/1": lambda: sets("ShareGroupDescribe", "groups.assignment_epoch", 0),
    "groups/share/describe/4": lambda: sets("ShareGroupDescribe", "groups.group_state", "Stable"),
    "groups/share/delete/2": lambda: asks("DeleteGroups", groups_names=["another"]),
    "groups/share/list/1": lambda: sets("ListGroups", "groups.group_type", "Consumer"),
    "offsets/share/1 9": lambda: sets(OFFSETS, "groups.topics.partitions.start_offset", 0),
    "offsets/share/2 4 6 10": lambda: sets(OFFSETS, "groups.topics.partitions.start_offset", 5),
    "offsets/share/5": lambda: swaps("AlterShareGroupOffsets", "UNKNOWN_TOPIC_OR_PARTITION"),
    "offsets/share/11": lambda: asks("AlterShareGroupOffsets", topics=[]),
    "groups/share/fetch/1 3": lambda: sets(FETCH, f"{ACQUIRED}.delivery_count", 2),
    "groups/share/fetch/2": lambda: (None, on(FETCH, _again())),
    "groups/share/fetch/7 8": lambda: sets(FETCH, f"{ACQUIRED}.first_offset", 0),
    "groups/share/fetch/4 5": lambda: (on(FETCH, _acquires_all), None),
    "groups/share/fetch/6": lambda: sets(FETCH, "acquisition_lock_timeout_ms", 30_000),
    "groups/share/lock/2": lambda: (on(ACKNOWLEDGE, _releases_all), None),
    "groups/share/lock/1 4": lambda: sets(FETCH, f"{ACQUIRED}.delivery_count", 3),
    "groups/share/session/6": lambda: swaps(FETCH, "SHARE_SESSION_NOT_FOUND"),
    "groups/share/session/9": lambda: swaps(FETCH, "NONE", "INVALID_SHARE_SESSION_EPOCH"),
    "groups/share/session/7": lambda: (on(FETCH, _forgets_nothing), None),
    "groups/share/session/8": lambda: (on(FETCH, _remembers_no_partitions), None),
    "groups/share/acknowledge/2 4 6": lambda: (on(ACKNOWLEDGE, _accepts_all), None),
    "groups/share/acknowledge/1 3 5 20": lambda: (on(ACKNOWLEDGE, _releases_all), None),
    "groups/share/acknowledge/15": lambda: (on(FETCH, _accepts_all), None),
    "groups/share/acknowledge/19": lambda: sets(FETCH, f"{ACQUIRED}.delivery_count", 1),
}
