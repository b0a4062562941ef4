"""Bugs planted into how a broker describes, lists and deletes groups, as in `broker_plants`."""

from __future__ import annotations

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Plants, adds, asks, on, sets, swaps

NOT_FOUND = "GROUP_ID_NOT_FOUND"


def _first_alone(exchange: TappedExchange) -> None:
    del exchange.request.groups[1:]


def _first_key_alone(exchange: TappedExchange) -> None:
    del exchange.request.coordinator_keys[1:]


def _first_state_alone(exchange: TappedExchange) -> None:
    del exchange.request.states_filter[1:]


def _no_host(exchange: TappedExchange) -> None:
    exchange.response.host = ""
    for item in exchange.response.coordinators or ():
        item.host = ""


PLANTS: Plants = {
    "groups/classic/describe/3 4 5 6": lambda: sets("DescribeGroups", "groups.group_state", "Stable"),
    "groups/classic/describe/7": lambda: (on("DescribeGroups", _first_alone), None),
    "groups/classic/describe/8": lambda: sets("DescribeGroups", "groups.members.member_metadata", b"\5"),
    "groups/classic/describe/9": lambda: asks("DescribeGroups", include_authorized_operations=True),
    "groups/classic/describe/10": lambda: sets("DescribeGroups", "groups.members.client_id", ""),
    "groups/classic/list/3 4 5": lambda: sets("ListGroups", "groups.group_state", "Stable"),
    "groups/classic/list/6": lambda: asks("ListGroups", types_filter=["Share"]),
    "groups/classic/list/7": lambda: (on("ListGroups", _first_state_alone), None),
    "groups/classic/list/8": lambda: asks("ListGroups", states_filter=[]),
    "groups/classic/list/9 10 11 12 13 14 15": lambda: sets("ListGroups", "groups.protocol_type", "connect"),
    "groups/classic/delete/4 5 6 7 8": lambda: swaps("DeleteGroups", NOT_FOUND),
    "groups/classic/delete/9": lambda: adds("JoinGroup", "generation_id"),
    "groups/coordinator/1 2 3 4 5 6 7 11": lambda: (None, on("FindCoordinator", _no_host)),
    "groups/coordinator/8": lambda: (on("FindCoordinator", _first_key_alone), None),
    "groups/coordinator/9": lambda: adds(
        "FindCoordinator", "node_id", when=lambda request: bool(request.key)
    ),
}
