"""The cluster as a client knows it: the nodes, the controller, leaders and coordinators.

Rules: no I/O and no clock; facts are as old as the answers that they came in, and are dropped when a broker
answers that they are wrong; nothing is kept of partitions and groups that were not asked for, nor of nodes
that neither the last answer to Metadata nor a coordinator names; nodes are bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from uuid import UUID

from coordwire.client.errors import UnreadableAnswer
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

MOST_NODES = 10_000
LONGEST_HOST = 255
"""Characters of a name in DNS."""


@dataclass(slots=True)
class KnownCluster:
    """The facts. nodes: addresses by id. controller: its id. leaders: node ids of the partitions that were
    asked for, -1 where a partition has no leader, None where its topic has no such partition. coordinators:
    node ids. errors: the code of the last look-up of a topic or coordinator that failed."""

    nodes: dict[int, Address] = field(default_factory=dict)
    controller: int | None = None
    leaders: dict[LeaderOf, int | None] = field(default_factory=dict)
    coordinators: dict[CoordinatorOf, int] = field(default_factory=dict)
    errors: dict[str | UUID | CoordinatorOf, int] = field(default_factory=dict)
    _named_nodes: frozenset[int] = frozenset()
    """The nodes of the last answer that lists all."""
    _coordinating: Counter[int] = field(default_factory=Counter)
    """How many of `coordinators` a node is."""

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
            case LeaderOf(topic, _) if self.errors.get(topic) or self.leaders.get(target, -1) is None:
                return True
        return self.node_of(target) is not None

    def drop(self, targets: Iterable[Target]) -> None:
        """Drop what is known of targets whose node has refused a request for them or cannot be reached."""
        for target in targets:
            match target:
                case Controller():
                    self.controller = None
                case LeaderOf():
                    self.leaders.pop(target, None)
                    self.errors.pop(target.topic, None)
                case CoordinatorOf():
                    self._drop_coordinator(target)
                    self.errors.pop(target, None)

    def _drop_coordinator(self, target: CoordinatorOf) -> None:
        node_id = self.coordinators.pop(target, None)
        if node_id is None:
            return
        self._coordinating[node_id] -= 1
        if not self._coordinating[node_id]:
            del self._coordinating[node_id]
            if node_id not in self._named_nodes:
                self.nodes.pop(node_id, None)

    # --- answers ---

    def add_metadata(self, answer: MetadataResponse, expected: Iterable[LeaderOf]) -> None:
        """Add the answer to Metadata: nodes, the controller and the leaders of the partitions asked for.

        Raises `UnreadableAnswer`.
        """
        self._list(answer.controller_id, ((node.node_id, node.host, node.port) for node in answer.brokers))
        by_topic: dict[str | UUID, list[LeaderOf]] = {}
        for target in expected:
            by_topic.setdefault(target.topic, []).append(target)
        for topic in answer.topics:
            for name in (topic.name, topic.topic_id):
                if name is None or (targets := by_topic.pop(name, None)) is None:
                    continue
                self.errors[name] = topic.error_code if topic.error_code != _LEADER_NOT_AVAILABLE else 0
                if not topic.error_code:
                    leaders = {part.partition_index: part.leader_id for part in topic.partitions}
                    self.leaders.update((target, leaders.get(target.partition)) for target in targets)

    def add_cluster(self, answer: DescribeClusterResponse) -> None:
        """Add the answer to DescribeCluster: nodes and the controller. Raises `UnreadableAnswer`."""
        self._list(answer.controller_id, ((node.broker_id, node.host, node.port) for node in answer.brokers))

    def _list(self, controller: int, nodes: Iterable[tuple[int, str, int]]) -> None:
        """Take nodes in place of all that are known."""
        by_id: dict[int, Address] = {}
        for node_id, host, port in nodes:
            by_id[node_id] = _address(host, port)
            if len(by_id) > MOST_NODES:
                raise UnreadableAnswer(f"expected at most {MOST_NODES:,} nodes of a cluster, got more")
        self.nodes, self._named_nodes = by_id, frozenset(by_id)
        self.controller = controller if controller in by_id else None

    def add_coordinators(self, kind: str, keys: Collection[str], answer: FindCoordinatorResponse) -> None:
        """Add the answer to FindCoordinator, in either form. keys: those asked for; in the old form there is
        one. Raises `UnreadableAnswer`."""
        rows = [(row.key, row.error_code, row.node_id, row.host, row.port) for row in answer.coordinators]
        if not rows:
            (key, *_) = keys
            rows = [(key, answer.error_code, answer.node_id, answer.host, answer.port)]
        expected = set(keys)
        for name, error_code, node_id, host, port in rows:
            if name not in expected:
                continue
            target = CoordinatorOf(kind, name)
            self.errors[target] = error_code
            if not error_code:
                address = _address(host, port)
                self._drop_coordinator(target)
                self.coordinators[target] = node_id
                self._coordinating[node_id] += 1
                self.nodes[node_id] = address


def _address(host: str, port: int) -> Address:
    if len(host) > LONGEST_HOST:
        raise UnreadableAnswer(f"expected a host of at most {LONGEST_HOST} characters, got {len(host):,}")
    return host, port


_LEADER_NOT_AVAILABLE = 5
