"""Bugs planted into a broker's groups of the classic protocol, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Plants, adds, asks, on, sets, swaps

REBALANCE = "REBALANCE_IN_PROGRESS"


def _as_new(exchange: TappedExchange) -> None:
    """A static member that comes back is taken for a new one."""
    exchange.request.group_instance_id = None


def _leaves_first_alone(exchange: TappedExchange) -> None:
    del exchange.request.members[1:]


PLANTS: Plants = {
    "groups/classic/versions/1 2 3 4 5 6 7 8 9 10": lambda: sets("JoinGroup", "members", []),
    "groups/classic/versions/11 12 13 14 15 16": lambda: sets("SyncGroup", "assignment", b""),
    "groups/classic/versions/17 18 19 20 21": lambda: swaps("Heartbeat", "ILLEGAL_GENERATION"),
    "groups/classic/versions/22 23 24 25 26 27": lambda: swaps("LeaveGroup", "UNKNOWN_MEMBER_ID"),
    "groups/classic/versions/28 29 30 31 32 33 34": lambda: sets(
        "DescribeGroups", "groups.protocol_data", "a"
    ),
    "groups/classic/join/16": lambda: adds(
        "JoinGroup", "generation_id", when=lambda request: bool(request.member_id)
    ),
    "groups/classic/join/17": lambda: swaps("Heartbeat", REBALANCE),
    "groups/classic/join/18": lambda: swaps("Heartbeat", "UNKNOWN_MEMBER_ID"),
    "groups/classic/join/19": lambda: swaps("JoinGroup", "MEMBER_ID_REQUIRED"),
    "groups/classic/join/20": lambda: sets("JoinGroup", "protocol_name", "a"),
    "groups/classic/join/21": lambda: swaps("JoinGroup", "NONE", "INVALID_REQUEST"),
    "groups/classic/sync/7": lambda: sets("SyncGroup", "assignment", b"l"),
    "groups/classic/heartbeat/5": lambda: swaps("Heartbeat", "NONE", REBALANCE),
    "groups/classic/static/10 11 12": lambda: (on("JoinGroup", _as_new), None),
    "groups/classic/static/13": lambda: sets("SyncGroup", "assignment", b""),
    "groups/classic/leave/4": lambda: (on("LeaveGroup", _leaves_first_alone), None),
    "groups/classic/leave/5": lambda: swaps("JoinGroup", "UNKNOWN_MEMBER_ID"),
    "groups/classic/leave/8": lambda: swaps("LeaveGroup", "NONE", "INVALID_REQUEST"),
    "groups/classic/leave/9": lambda: asks("LeaveGroup", members=[]),
    "groups/classic/session/2": lambda: swaps("Heartbeat", REBALANCE),
}
