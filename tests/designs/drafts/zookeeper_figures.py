"""What two sentences of the implementation page cost: a broker that comes, and step 4's order of partitions.

    python -m tests.designs.drafts.zookeeper_figures

A change of the brokers rebalances the consumers of all groups; the figure is operations of ZooKeeper for one
broker that comes, by the number of groups. Partitions of one broker are together before they are divided into
ranges; the figure is the brokers that all consumers fetch from, each counted for each consumer.
"""

from __future__ import annotations

from coordwire.designs.drafts.zookeeper_assignment import SortBy
from coordwire.designs.drafts.zookeeper_operations import CreateNode
from coordwire.dialects.zookeeper import Broker
from tests.designs.drafts.cluster import Cluster
from tests.designs.drafts.test_zookeeper_consumer import join, world

__all__ = ["connections", "operations_of_a_broker"]


def operations_of_a_broker(groups: int, consumers: int = 2) -> tuple[int, int]:
    """Operations of ZooKeeper, and rebalances, when a broker comes."""
    cluster: Cluster = world()
    for group in range(groups):
        for number in range(consumers):
            join(cluster, f"c{group}-{number}", group=f"g{group}")
    cluster.run(30_000)
    before = sum(node.machine.rebalances for node in cluster.nodes.values())
    count = 0
    apply = cluster.tree.apply

    def counted(*arguments: object) -> object:
        nonlocal count
        count += 1
        return apply(*arguments)  # type: ignore[arg-type]

    data = Broker(host="b", port=2).build()
    apply(cluster.admin, CreateNode(Broker.path(2), data, ephemeral=True), cluster.now)
    cluster.tree.apply = counted  # type: ignore[method-assign,assignment]
    cluster.deliver_events()
    cluster.run(10_000)
    after = sum(node.machine.rebalances for node in cluster.nodes.values())
    return count, after - before


def connections(sort_by: SortBy, *, partitions: int = 12, brokers: int = 3, consumers: int = 4) -> int:
    """How many pairs of a consumer and a broker that leads one of its partitions there are."""
    cluster: Cluster = world()
    leaders = {number: [number % brokers] for number in range(partitions)}
    cluster.topic("t", leaders)
    for number in range(consumers):
        join(cluster, f"c{number}", sort_by=sort_by)
    cluster.run(30_000)
    return len({(cluster.owner("t", str(number)), leaders[number][0]) for number in leaders})


def main() -> None:
    for groups in (1, 10, 100):
        operations, rebalances = operations_of_a_broker(groups)
        print(f"{groups} groups of two: {operations} operations, {rebalances} rebalances")
    for sort_by in SortBy:
        print(f"by {sort_by.value}: {connections(sort_by)} connections")


if __name__ == "__main__":
    main()
