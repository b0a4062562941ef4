"""What a broker of the implementation page writes into ZooKeeper beside its own node: the cluster's id, and
the topics that it has.

Rules: the id is that of the first broker that starts without one. A topic's node is persistent; the state of
each of its partitions, which names the broker as its leader, goes with the broker's session, as the page has
it.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.designs.drafts.machine import Steps
from coordwire.designs.drafts.zookeeper_operations import CreateNode, GetData
from coordwire.designs.drafts.zookeeper_steps import ensure_parents
from coordwire.designs.zookeeper import ClusterId, PartitionState, Topic
from coordwire.errors import DecodeError

__all__ = ["keep_cluster_id", "register_topics"]


def keep_cluster_id(own: str) -> Steps:
    """Gives the cluster's id: a new one, `own`, where none is there; "" for a node that can't be read."""
    path = ClusterId.path()
    node = yield GetData(path)
    if not node.ok:
        yield from ensure_parents(path)
        yield CreateNode(path, ClusterId(id=own).build())
        node = yield GetData(path)  # perhaps another broker's
    try:
        return ClusterId.parse(node.data).id if node.ok else ""
    except DecodeError:
        return ""


def register_topics(broker_id: int, topics: Mapping[str, int]) -> Steps:
    """Write topics, each with its number of partitions, whose one replica is this broker."""
    nodes = {
        Topic.path(name): Topic(partitions={number: [broker_id] for number in range(count)}).build()
        for name, count in topics.items()
    }
    if not nodes:
        return
    state = PartitionState(leader=broker_id, isr=[broker_id]).build()
    states = [PartitionState.path(name, number) for name, count in topics.items() for number in range(count)]
    yield from ensure_parents(*nodes)
    yield tuple(CreateNode(path, data) for path, data in nodes.items())
    yield from ensure_parents(*states)
    yield tuple(CreateNode(path, state, ephemeral=True) for path in states)
