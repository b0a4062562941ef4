"""A broker of the drafts: it registers in ZooKeeper, knows the cluster, and is a candidate for coordinator.

Source: the first draft ("On Coordinator Startup", "On Coordinator Failover") and the detailed design
(sections 5 and 10). Strategy: two procedures: the one keeps the list of brokers, the other tries to create
the coordinator's node, and watches it in any case. Rules: the elected broker starts its coordinator; one
whose node is gone, or whose session has expired, resets it. Until ZooKeeper reports that, a broker counts as
elected even when its session is over: the documents give it no way to know.
"""

from __future__ import annotations

from typing import Any

from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.designs.drafts.machine import Machine, Procedure, Steps, Wait
from coordwire.designs.drafts.ownership_nodes import read_partitions
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    GetChildren,
    GetData,
    OperationOutcome,
    WatchEvent,
)
from coordwire.designs.drafts.zookeeper_steps import ensure_parents
from coordwire.designs.zookeeper import Broker, Coordinator, OldBroker
from coordwire.errors import DecodeError

__all__ = ["DraftBroker"]

_CLUSTER = "cluster"
_ELECTION = "election"
_TOPICS = "topics"
_IDS = "/brokers/ids"
_TOPICS_PATH = "/brokers/topics"


class DraftBroker(Machine):
    """One broker of any draft. coordinates: whether it is elected, as far as it knows."""

    def __init__(self, settings: BrokerSettings, *, now: int = 0) -> None:
        super().__init__(now=now)
        self.settings = settings
        self.brokers: dict[int, BrokerAddress] = {}
        self.coordinator_id = -1
        self.coordinates = False
        self.partitions: dict[str, list[str]] = {}
        """The partitions of every topic, as its watch last showed them, once `read_topics` was called."""
        self._existing: set[DraftPartition] | None = None
        self._changed: set[str] = set()
        self._ids_changed = False

    # --- inputs ---

    def on_start(self) -> None:
        self.run(_CLUSTER, self._keep_cluster())
        self.run(_ELECTION, self._elect())

    def on_new_session(self) -> None:
        """handleNewSession: reset the state, listen again, elect again."""
        self._resign()
        self.coordinator_id = -1
        self.on_start()

    def zookeeper_event(self, event: WatchEvent) -> None:
        if event.path == Coordinator.path():
            self.wake(_ELECTION)
        elif event.path == _IDS:
            self._ids_changed = True
            self.wake(_CLUSTER)
        elif event.path.startswith(_TOPICS_PATH):
            self._changed.add(event.path)
            self.wake(_TOPICS)

    # --- what a draft adds ---

    def on_elected(self) -> None:
        """coordinatorStartup."""

    def on_resigned(self) -> None:
        """Clear what the coordinator knows."""

    def on_topics_changed(self, topics: set[str]) -> None:
        """These topics are new, or have other partitions."""

    # --- the cluster ---

    def _keep_cluster(self) -> Procedure:
        own = Broker.path(self.settings.broker_id)
        node = Broker(host=self.settings.address.host, port=self.settings.address.port, timestamp=self.now)
        yield from ensure_parents(own)
        while True:
            self._ids_changed = False
            yield CreateNode(own, node.build(), ephemeral=True)
            ids = yield GetChildren(_IDS, watch=True)
            registrations = (
                (yield tuple(GetData(f"{_IDS}/{name}") for name in ids.children)) if ids.children else ()
            )
            self.brokers = {
                int(name): address
                for name, outcome in zip(ids.children, registrations, strict=True)
                if name.isdecimal() and len(name) < 10 and (address := _address(outcome)) is not None
            }
            self.on_cluster()
            if str(self.settings.broker_id) in ids.children and not self._ids_changed:
                yield Wait()  # a watch that fired while the nodes were read was not waited for

    def on_cluster(self) -> None:
        """The list of brokers may have changed."""

    # --- topics ---

    def read_topics(self) -> Steps:
        """Read and watch all topics; gives those that are new, or have other partitions."""
        topics = yield GetChildren(_TOPICS_PATH, watch=True)
        known = self.partitions
        self.partitions = yield from read_partitions(topics.children, watch=True)
        self._existing = None
        return {name for name, partition_ids in self.partitions.items() if known.get(name) != partition_ids}

    def exists(self, partition: DraftPartition) -> bool:
        """Whether there is such a partition; every response to a ping asks it of each of its partitions."""
        if self._existing is None:
            self._existing = {
                DraftPartition(topic, name) for topic, names in self.partitions.items() for name in names
            }
        return partition in self._existing

    def watch_topics(self) -> None:
        """Keep the topics that were read as they are in ZooKeeper."""
        self.run(_TOPICS, self._watch_topics())

    def forget_topics(self) -> None:
        self.end(_TOPICS)
        self.partitions = {}
        self._existing = None
        self._changed = set()

    def _watch_topics(self) -> Procedure:
        while True:
            if not self._changed:
                yield Wait()
            paths, self._changed = self._changed, set()
            if _TOPICS_PATH in paths:
                changed = yield from self.read_topics()
            else:
                names = sorted(path.rpartition("/")[2] for path in paths)
                read = yield from read_partitions(names, watch=True)
                changed = {
                    name for name, partition_ids in read.items() if self.partitions.get(name) != partition_ids
                }
                self.partitions |= read
                self._existing = None
            if changed:
                self.on_topics_changed(changed)

    # --- the election ---

    def _elect(self) -> Procedure:
        """The elector: the broker that creates the node is the coordinator; all watch it."""
        path, node = Coordinator.path(), Coordinator(self.settings.broker_id).build()
        yield from ensure_parents(path)
        while True:
            yield CreateNode(path, node, ephemeral=True)
            outcome = yield GetData(path, watch=True)
            if not outcome.ok:
                continue
            try:
                self.coordinator_id = Coordinator.parse(outcome.data).broker_id
            except DecodeError as error:
                self.note("UnreadableNode", f"{path}: {error}")
                self.coordinator_id = -1
            if outcome.stat.ephemeral_owner != self.session:
                self._resign()
            elif not self.coordinates:
                self.coordinates = True
                self.note("Elected", str(self.settings.broker_id))
                self.on_elected()
            yield Wait()

    def _resign(self) -> None:
        if self.coordinates:
            self.coordinates = False
            self.note("Resigned", str(self.settings.broker_id))
            self.on_resigned()

    # --- connections ---

    def on_request(self, connection: int, event: RequestReceived) -> None:
        request: Any = event.request
        handler = getattr(self, f"_on_{type(request).__name__}", None)
        if handler is None:
            self._out_of_state(connection, request)
        else:
            handler(connection, event, request)


def _address(outcome: OperationOutcome) -> BrokerAddress | None:
    """Where a broker listens; None for a node that is gone or cannot be read."""
    try:
        if not outcome.ok:
            return None
        node = Broker.parse(outcome.data)
    except DecodeError:
        return _old_address(outcome.data)
    return BrokerAddress(node.host or "", node.port)


def _old_address(data: bytes) -> BrokerAddress | None:
    try:
        host, _, port = OldBroker.parse(data).host.rpartition(":")
    except DecodeError:
        return None
    return BrokerAddress(host, int(port)) if port.isdecimal() and len(port) < 6 else None
