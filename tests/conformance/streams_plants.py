"""Bugs planted into a broker's streams groups, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Change, Plants, asks, on, sets, swaps

HEARTBEAT, DESCRIBE = "StreamsGroupHeartbeat", "StreamsGroupDescribe"


def _stays(exchange: TappedExchange) -> None:
    if exchange.request.member_epoch == -1:
        exchange.request.member_id = "another"


def _no_changelogs(exchange: TappedExchange) -> None:
    if exchange.request.topology is not None:
        for subtopology in exchange.request.topology.subtopologies:
            subtopology.state_changelog_topics = []


def _one_assignment_for_all() -> Change:
    """What the first member got, every other gets too."""
    first: dict[str, object] = {}

    def change(exchange: TappedExchange) -> None:
        if exchange.response.active_tasks and not first:
            first[exchange.request.member_id] = exchange.response.active_tasks
        elif first and exchange.request.member_id not in first:
            exchange.response.active_tasks = next(iter(first.values()))

    return change


PLANTS: Plants = {
    "groups/streams/join/11": lambda: sets(HEARTBEAT, "active_tasks.partitions", [0, 1]),
    "groups/streams/join/12": lambda: sets(HEARTBEAT, "heartbeat_interval_ms", 0),
    "groups/streams/topology/1 3": lambda: sets(HEARTBEAT, "status", None),
    "groups/streams/topology/2 5": lambda: sets(HEARTBEAT, "active_tasks", []),
    "groups/streams/topology/4": lambda: (on(HEARTBEAT, _no_changelogs), None),
    "groups/streams/reconcile/1 3": lambda: (None, on(HEARTBEAT, _one_assignment_for_all())),
    "groups/streams/reconcile/2": lambda: (on(HEARTBEAT, _stays), None),
    "groups/streams/epochs/6": lambda: swaps(HEARTBEAT, "UNKNOWN_MEMBER_ID"),
    "groups/streams/epochs/7": lambda: swaps(HEARTBEAT, "NONE", "UNRELEASED_INSTANCE_ID"),
    "groups/streams/static/3": lambda: asks(HEARTBEAT, instance_id=None),
    "groups/streams/shutdown/1": lambda: asks(HEARTBEAT, shutdown_application=False),
    "groups/streams/describe/1": lambda: sets(DESCRIBE, "groups.members.member_epoch", 0),
    "groups/streams/describe/4 5": lambda: sets(DESCRIBE, "groups.group_state", "Stable"),
    "groups/streams/list/1": lambda: sets("ListGroups", "groups.group_type", "Consumer"),
    "groups/streams/delete/2": lambda: asks("DeleteGroups", groups_names=["another"]),
    "groups/streams/offsets/1": lambda: swaps("OffsetCommit", "STALE_MEMBER_EPOCH"),
}
