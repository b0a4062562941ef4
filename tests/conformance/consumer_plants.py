"""Bugs planted into a broker's consumer groups, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Change, Plants, asks, on, sets, swaps

HEARTBEAT, DESCRIBE = "ConsumerGroupHeartbeat", "ConsumerGroupDescribe"
ASSIGNED = "assignment.topic_partitions.partitions"


def _always_assigned() -> Change:
    """The last assignment is in every answer."""
    last: dict[str, object] = {}

    def change(exchange: TappedExchange) -> None:
        member = exchange.request.member_id
        if exchange.response.assignment is not None:
            last[member] = exchange.response.assignment
        exchange.response.assignment = last.get(member)

    return change


def _never_assigned_again(exchange: TappedExchange) -> None:
    if exchange.request.subscribed_topic_names and exchange.request.member_epoch > 0:
        exchange.response.assignment = None


def _first_epoch() -> Change:
    """Epochs stay as they were."""
    first: dict[str, int] = {}

    def change(exchange: TappedExchange) -> None:
        if exchange.response.member_epoch > 0:
            epoch = first.setdefault(exchange.request.member_id, exchange.response.member_epoch)
            exchange.response.member_epoch = epoch

    return change


def _stays(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -1:
        exchange.request.member_id = "another"


def _leaves_for_good(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -2:
        exchange.request.member_epoch = -1


def _matches_all(exchange: TappedExchange) -> None:
    if exchange.request.subscribed_topic_regex:
        exchange.request.subscribed_topic_regex = ".*-topic-.*"


def _keeps_expression(exchange: TappedExchange) -> None:
    exchange.request.subscribed_topic_regex = exchange.request.subscribed_topic_regex or None


def _fewer_partitions(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        topic.count = 2


PLANTS: Plants = {
    "groups/consumer/join/18 19": lambda: sets(HEARTBEAT, ASSIGNED, []),
    "groups/consumer/join/20": lambda: (on("CreatePartitions", _fewer_partitions), None),
    "groups/consumer/join/21": lambda: sets(HEARTBEAT, ASSIGNED, [0]),
    "groups/consumer/join/22": lambda: (None, on(HEARTBEAT, _never_assigned_again)),
    "groups/consumer/join/23": lambda: (None, on(HEARTBEAT, _always_assigned())),
    "groups/consumer/regex/1": lambda: (on(HEARTBEAT, _matches_all), None),
    "groups/consumer/regex/2": lambda: (on(HEARTBEAT, _matches_all), None),
    "groups/consumer/regex/3": lambda: asks(HEARTBEAT, subscribed_topic_regex=None),
    "groups/consumer/regex/4": lambda: (on(HEARTBEAT, _keeps_expression), None),
    "groups/consumer/regex/5": lambda: sets(DESCRIBE, "groups.members.subscribed_topic_regex", ""),
    "groups/consumer/assignor/1": lambda: asks(HEARTBEAT, server_assignor="range"),
    "groups/consumer/assignor/2": lambda: asks(HEARTBEAT, server_assignor="uniform"),
    "groups/consumer/static/4": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID"),
    "groups/consumer/static/6": lambda: (on(HEARTBEAT, _leaves_for_good), None),
    "groups/consumer/static/7": lambda: (on(HEARTBEAT, _stays), None),
    "groups/consumer/static/8": lambda: sets(DESCRIBE, "groups.members.instance_id", None),
    "groups/consumer/reconcile/4": lambda: asks(HEARTBEAT, rebalance_timeout_ms=60_000),
    "groups/consumer/describe/5 6": lambda: sets(DESCRIBE, "groups.group_state", "Stable"),
    "groups/consumer/describe/7": lambda: swaps(DESCRIBE, "GROUP_ID_NOT_FOUND"),
    "groups/consumer/describe/8": lambda: sets(DESCRIBE, "groups.members.member_type", -1),
    "groups/consumer/delete/2": lambda: asks("DeleteGroups", groups_names=["another"]),
    "groups/consumer/epochs/9": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID"),
    "groups/consumer/epochs/10": lambda: (None, on(HEARTBEAT, _first_epoch())),
    "groups/migration/1": lambda: sets("ListGroups", "groups.group_id", "another"),
    "groups/migration/2": lambda: swaps("Heartbeat", "REBALANCE_IN_PROGRESS"),
    "groups/migration/4": lambda: sets("OffsetFetch", "topics.partitions.committed_offset", -1),
    "groups/migration/5 6": lambda: swaps("JoinGroup", "NONE", "INCONSISTENT_GROUP_PROTOCOL"),
    "groups/migration/8": lambda: sets("ListGroups", "groups", []),
    "groups/migration/9": lambda: sets(DESCRIBE, "groups.members.member_type", 1),
}
