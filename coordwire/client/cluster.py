"""The cluster as a client knows it: the nodes, the controller, leaders and coordinators.

Rules: no I/O and no clock; facts are as old as the answers that they came in, and are dropped when a broker
answers that they are wrong; nothing is kept of topics and groups that were not asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from coordwire.client.routing import (
    AnyBroker,
    Controller,
    CoordinatorOf,
    EveryBroker,
    LeaderOf,
    NamedNode,
    Target,
)
from coordwire.client.settings import Address
from coordwire.messages import DescribeClusterResponse, FindCoordinatorResponse, MetadataResponse

__all__ = ["KnownCluster"]


@dataclass(slots=True)
class KnownCluster:
    """The facts. nodes: addresses by id. controller: its id. leaders: node ids of partitions, -1 where a
    partition has no leader; topics by name and by id. coordinators: node ids. errors: the code of the last
    look-up of a topic or coordinator that failed."""

    nodes: dict[int, Address] = field(default_factory=dict)
    controller: int | None = None
    leaders: dict[LeaderOf, int] = field(default_factory=dict)
    coordinators: dict[CoordinatorOf, int] = field(default_factory=dict)
    errors: dict[str | UUID | CoordinatorOf, int] = field(default_factory=dict)

    def node_of(self, target: Target) -> int | None:
        """The id of the node that answers, which is in `nodes`; None for any, or where it is not known."""
        node_id: int | None = None
        match target:
            case NamedNode():
                node_id = target.node_id
            case Controller():
                node_id = self.controller
            case LeaderOf():
                node_id = self.leaders.get(target)
            case CoordinatorOf():
                node_id = self.coordinators.get(target)
        return node_id if node_id in self.nodes else None

    def is_known(self, target: Target) -> bool:
        """Whether a request for a target can be sent: its node is known, or any will do.

        A topic or partition that the cluster does not have is known not to have a leader: any broker answers
        for it.
        """
        match target:
            case AnyBroker():
                return True
            case EveryBroker():
                return bool(self.nodes)
            case LeaderOf(topic, _) if self.errors.get(topic) or self._has_other_partitions(target):
                return True
        return self.node_of(target) is not None

    def _has_other_partitions(self, target: LeaderOf) -> bool:
        """Whether a topic was found and has not this partition."""
        return target not in self.leaders and LeaderOf(target.topic, -1) in self.leaders

    def drop(self, targets: Iterable[Target]) -> None:
        """Drop what is known of targets whose node has refused a request for them or cannot be reached."""
        for target in targets:
            match target:
                case Controller():
                    self.controller = None
                case LeaderOf():
                    self.leaders.pop(target, None)
                    self.leaders.pop(LeaderOf(target.topic, -1), None)  # else it has no such partition
                    self.errors.pop(target.topic, None)
                case CoordinatorOf():
                    self.coordinators.pop(target, None)
                    self.errors.pop(target, None)

    # --- answers ---

    def add_metadata(self, answer: MetadataResponse) -> None:
        """Add the answer to Metadata: nodes, the controller and the topics asked for."""
        self.nodes = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller = answer.controller_id if answer.controller_id in self.nodes else None
        for topic in answer.topics:
            names: list[str | UUID] = [
                name for name in (topic.name, topic.topic_id) if name and name != _NO_ID
            ]
            for name in names:
                self.errors[name] = topic.error_code if topic.error_code != _LEADER_NOT_AVAILABLE else 0
                if topic.error_code:
                    continue
                self.leaders[LeaderOf(name, -1)] = -1
                for partition in topic.partitions:
                    self.leaders[LeaderOf(name, partition.partition_index)] = partition.leader_id

    def add_cluster(self, answer: DescribeClusterResponse) -> None:
        """Add the answer to DescribeCluster: nodes and the controller."""
        self.nodes = {broker.broker_id: (broker.host, broker.port) for broker in answer.brokers}
        self.controller = answer.controller_id if answer.controller_id in self.nodes else None

    def add_coordinators(self, kind: str, key: str, answer: FindCoordinatorResponse) -> None:
        """Add the answer to FindCoordinator, in either form. key: the one asked for, in the old form."""
        rows = [(row.key, row.error_code, row.node_id, row.host, row.port) for row in answer.coordinators]
        if not rows:
            rows = [(key, answer.error_code, answer.node_id, answer.host, answer.port)]
        for name, error_code, node_id, host, port in rows:
            target = CoordinatorOf(kind, name)
            self.errors[target] = error_code
            if not error_code:
                self.coordinators[target] = node_id
                self.nodes[node_id] = (host, port)


_LEADER_NOT_AVAILABLE = 5
_NO_ID = UUID(int=0)
