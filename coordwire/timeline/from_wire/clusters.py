"""Which cluster each broker belongs to, as answers show: captures of several clusters are several stories.

Strategy: a cluster is known by its id (Metadata, DescribeCluster); where answers have none, by the addresses
of the nodes that they list, which belong together, and by topics: of one name with two ids at the same time
there are two. A broker is an address in a capture, since two networks may have the same addresses; a
connection is of the cluster that its broker named last, else of one that lists its address, that its client
asks, or that its capture began with. Rules: what no answer shows to be of another cluster is of the first;
memory is bounded, and so is the number of clusters.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import NetworkAddress
from coordwire.timeline.evidence import remember
from coordwire.versions import ApiKey

__all__ = ["CLUSTER_APIS", "Clusters", "FoundCluster"]

MOST_CLUSTERS = 100
MOST_BROKERS = MOST_CLIENTS = 10_000
MOST_TOPICS = 100_000
MOST_ANSWERS = 1_000
MOST_NODES = 1_000
"""So many nodes and topics of one answer are looked at."""

AT_ONCE_NS = 10_000_000_000
"""A topic that is listed so long after another of its name is there beside it: no broker is so late."""

_METADATA, _FIND = int(ApiKey.METADATA), int(ApiKey.FIND_COORDINATOR)
_DESCRIBE = int(ApiKey.DESCRIBE_CLUSTER)

CLUSTER_APIS = frozenset((_METADATA, _FIND, _DESCRIBE))
"""The APIs whose answers show clusters."""

BrokerKey = tuple[str, str]
"""A capture, and an address in it."""


class FoundCluster:
    """One. number: from 0 in the order in which they were found; cluster_id: None if no answer has it."""

    def __init__(self, number: int, cluster_id: str | None, address: str) -> None:
        self.number = number
        self.cluster_id = cluster_id
        self._address = address
        self._name: str | None = None

    @property
    def name(self) -> str:
        """Its id, else the address of a broker; it stays what it was when it was first asked for."""
        if self._name is None:
            self._name = self.cluster_id or self._address
        return self._name


class Clusters:
    """All that were found. several: whether there are two or more; changes: how often a broker's changed."""

    def __init__(self) -> None:
        self.every: list[FoundCluster] = []
        self.several = False
        self.changes = 0
        self._ids: dict[str, FoundCluster] = {}
        self._brokers: OrderedDict[BrokerKey, FoundCluster] = OrderedDict()
        self._addresses: OrderedDict[str, FoundCluster] = OrderedDict()
        self._learned: OrderedDict[object, int] = OrderedDict()  # answers, by what had changed then
        self._captures: OrderedDict[str, FoundCluster] = OrderedDict()  # the first of each
        self._clients: OrderedDict[tuple[str, str, str | None], FoundCluster | None] = OrderedDict()
        self._topics: OrderedDict[tuple[int, str], OrderedDict[str, tuple[int, BrokerKey]]] = OrderedDict()

    def learn(self, entry: FrameEntry, message: Any, *, ahead: bool = False) -> None:
        """An answer of one of `CLUSTER_APIS`, read whole. ahead: whether it is read before its time, so that
        what is known stays."""
        request: Any = entry.request
        client, _, address = request.flow.partition(" > ")
        if not address or (entry.api_key != _FIND and message.error_code):
            return
        broker = entry.capture, address
        cluster_id = None if entry.api_key == _FIND else message.cluster_id
        addresses = tuple((node.host, node.port) for node in _nodes(entry, message)[:MOST_NODES])
        origin = entry.capture, client.rpartition(":")[0], entry.client_id
        answer = broker, origin, cluster_id, addresses
        if (cluster_id or entry.api_key == _FIND) and self._learned.get(answer) == self.changes:
            return
        nodes = [str(NetworkAddress(*node)) for node in addresses]
        if entry.api_key == _FIND:
            cluster = self.of(entry.capture, request.flow, entry.client_id)
            if cluster is None or not nodes:
                return
        else:
            cluster = self._cluster_of(cluster_id or None, broker, nodes)
            if cluster is None:
                return
            if not cluster.cluster_id and not ahead:
                self._by_topics(cluster, broker, message, entry.time_ns or 0)
            self._asks(origin, cluster)
        for node in (address, *nodes):
            self._place((entry.capture, node), cluster, ahead=ahead)
        remember(self._captures, entry.capture, self._captures.get(entry.capture, cluster), MOST_BROKERS)
        remember(self._learned, answer, self.changes, MOST_ANSWERS)

    def _cluster_of(self, cluster_id: str | None, broker: BrokerKey, nodes: list[str]) -> FoundCluster | None:
        """The cluster of an answer; None where it shows none."""
        cluster = self._ids.get(cluster_id or "")
        if cluster is not None:
            return cluster
        capture, address = broker
        places = [(capture, node) for node in (address, *nodes)]
        known = [self._brokers[place] for place in places if place in self._brokers]
        known += [self._addresses[node] for node in (*nodes, address) if node in self._addresses]
        if cluster_id is None:
            if not nodes:
                return None
            return known[0] if known else self._new(None, nodes[0])
        cluster = next((cluster for cluster in known if cluster.cluster_id is None), None)
        if cluster is None:
            return self._new(cluster_id, address)
        cluster.cluster_id = cluster_id
        self._ids[cluster_id] = cluster
        return cluster

    def _new(self, cluster_id: str | None, address: str) -> FoundCluster:
        if len(self.every) >= MOST_CLUSTERS:
            return self.every[0]
        cluster = FoundCluster(len(self.every), cluster_id, address)
        self.every.append(cluster)
        self.several = len(self.every) > 1
        if cluster_id is not None:
            self._ids[cluster_id] = cluster
        return cluster

    def _by_topics(self, cluster: FoundCluster, broker: BrokerKey, message: Any, now_ns: int) -> None:
        """An answer without a cluster's id: if it and the answers in another capture go on listing a topic of
        one name with two ids, what that has is another cluster's."""
        for topic in getattr(message, "topics", ())[:MOST_NODES]:
            if not topic.name or not topic.topic_id.int:
                continue
            key, topic_id = (cluster.number, topic.name), str(topic.topic_id)
            ids = self._topics.get(key)
            if ids is None:
                ids = OrderedDict()
                remember(self._topics, key, ids, MOST_TOPICS)
            before = ids.get(topic_id)
            if before is None:
                remember(ids, topic_id, (now_ns, broker), MOST_CLUSTERS)
                continue
            for since_ns, second in list(ids.values()):
                if since_ns > before[0] and now_ns - since_ns >= AT_ONCE_NS and second[0] != broker[0]:
                    self._place(second, self._new(None, f"{second[1]} in {second[0]}"), ahead=False)
                    ids.clear()
                    return

    def _asks(self, client: tuple[str, str, str | None], cluster: FoundCluster) -> None:
        """A client asks brokers of a cluster; one that asks several shows nothing."""
        if self._clients.get(client, cluster) is not cluster:
            remember(self._clients, client, None, MOST_CLIENTS)
            self.changes += 1
        elif client not in self._clients:
            remember(self._clients, client, cluster, MOST_CLIENTS)
            self.changes += 1

    def _place(self, broker: BrokerKey, cluster: FoundCluster, *, ahead: bool) -> None:
        known = self._brokers.get(broker)
        if known is cluster or (ahead and known is not None):
            return
        self.changes += 1
        remember(self._brokers, broker, cluster, MOST_BROKERS)
        remember(self._addresses, broker[1], cluster, MOST_BROKERS)

    def of(self, capture: str, flow: str, client_id: str | None = None) -> FoundCluster | None:
        """The cluster that a connection goes to, by the flow of its requests; None if none is known."""
        client, _, address = flow.partition(" > ")
        return (
            self._brokers.get((capture, address))
            or self._clients.get((capture, client.rpartition(":")[0], client_id))
            or self._captures.get(capture)
            or self._addresses.get(address)
            or (self.every[0] if self.every else None)
        )

    def is_broker(self, capture: str, address: str) -> bool:
        """Whether an address is a broker's, as far as answers show."""
        return (capture, address) in self._brokers or address in self._addresses


def _nodes(entry: FrameEntry, message: Any) -> list[Any]:
    """The nodes that an answer lists, or that it names as coordinators."""
    if entry.api_key != _FIND:
        nodes: list[Any] = message.brokers
        return nodes
    every: Iterable[Any] = message.coordinators or (message,)
    return [node for node in every if not node.error_code and node.host]
