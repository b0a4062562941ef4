"""The figures of the page of drafts, which its command prints."""

from __future__ import annotations

from coordwire.designs.drafts.zookeeper_assignment import SortBy
from tests.designs.drafts.zookeeper_figures import connections, operations_of_a_broker


def test_a_broker_costs_each_group_the_same() -> None:
    assert operations_of_a_broker(1) == (34, 2)
    assert operations_of_a_broker(10) == (340, 20)


def test_an_order_by_brokers_needs_fewer_connections() -> None:
    assert {sort_by: connections(sort_by) for sort_by in SortBy} == {SortBy.NUMBER: 12, SortBy.BROKER: 6}
