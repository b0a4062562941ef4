"""A broker of the drafts: it registers in ZooKeeper, knows the cluster, and is a candidate for coordinator.

Source: the first draft ("On Coordinator Startup", "On Coordinator Failover") and the detailed design
(sections 1, 5, 10 and 12.7). Strategy: one procedure keeps the list of brokers, one for each office tries to
create its node, and watches it in any case. An office is the coordination of a subset of the groups; there is
one for all groups unless the settings have several, which the brokers that live divide by their order. Rules:
the elected broker starts its coordinator; one whose node is gone, or whose session has expired, resets it.
Until ZooKeeper reports that, a broker counts as elected even when its session is over: the documents give it
no way to know. An office stays with its broker as long as that lives.

Beside its own node it writes the cluster's id, that of the first broker that starts without one, and the
topics that it has. A topic's node is persistent; the state of each of its partitions, which names the broker
as its leader, goes with the broker's session, as the implementation page has it.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from coordwire.connection.events import RequestReceived
from coordwire.coordinator.timers import TimerKey
from coordwire.designs.drafts.actions import DraftPartition, EndSession, OpenSession
from coordwire.designs.drafts.draft_settings import BrokerAddress, BrokerSettings
from coordwire.designs.drafts.machine import Machine, Procedure, Steps, Wait
from coordwire.designs.drafts.zookeeper_operations import (
    CreateNode,
    DeleteNode,
    GetChildren,
    GetData,
    NodeExists,
    OperationOutcome,
    WatchEvent,
)
from coordwire.designs.drafts.zookeeper_steps import ensure_parents, read_partitions
from coordwire.dialects.zookeeper import Broker, ClusterId, Coordinator, OldBroker, PartitionState, Topic
from coordwire.errors import DecodeError


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


_COORDINATORS_CLIENT = 1
_CLUSTER = "cluster"
_TOPICS = "topics"
_SHUTDOWN = "shutdown"
_IDS = "/brokers/ids"
_TOPICS_PATH = "/brokers/topics"


class DraftBroker(Machine):
    """One broker of any draft. offices: those that it was elected to, as far as it knows."""

    def __init__(self, settings: BrokerSettings, *, now: int = 0) -> None:
        super().__init__(now=now)
        self.settings = settings
        self.brokers: dict[int, BrokerAddress] = {}
        self.cluster_id = ""
        self._topics = dict(settings.topics)
        self.offices: set[int] = set()
        self.is_shut_down = False
        self._coordinator_ids: dict[int, int] = {}
        self._may_be_elected = settings.coordinators == 1
        self.partitions: dict[str, list[str]] = {}
        """The partitions of every topic, as its watch last showed them, once `read_topics` was called."""
        self._existing: set[DraftPartition] | None = None
        self._changed: set[str] = set()
        self._ids_changed = False
        self._client = _COORDINATORS_CLIENT if settings.coordinator_has_client else 0
        self.coordinator_session = 0
        """The number of the ZooKeeper session that its coordinator has."""

    # --- inputs ---

    def run(self, key: TimerKey, procedure: Procedure, *, client: int | None = None) -> None:
        """As a machine does; by default with the coordinator's ZooKeeper client."""
        super().run(key, procedure, client=self._client if client is None else client)

    def on_start(self) -> None:
        if not self.settings.zookeeper_enabled:
            self.brokers = {self.settings.broker_id: self.settings.address}
            return
        self.run(_CLUSTER, self._keep_cluster(), client=0)
        if not self._client:
            self.coordinator_session = self.session
            self.start_coordinator()
        elif not self.coordinator_session:
            self.do(OpenSession(self._client))

    def start_coordinator(self) -> None:
        """Initialize the ConsumerCoordinator (section 12.7): its elector."""
        for office in range(self.settings.coordinators):
            self.run(_election(office), self._elect(office))
        if not self._may_be_elected:
            self.after("elections", self.settings.election_delay_ms, self._begin_elections)

    def _begin_elections(self) -> None:
        self._may_be_elected = True
        self._wake_elections()

    def on_new_session(self) -> None:
        """handleNewSession of the broker's client: register again. Without another client, the coordinator's
        too: reset the state, listen again, elect again."""
        if not self._client:
            self._reset_coordinator()
        if not self.is_shut_down:
            self.on_start()

    def session_opened(self, session: int, client: int) -> None:
        """The coordinator's client has its session, or a new one: handleNewSession."""
        self.coordinator_session = session
        self._reset_coordinator()
        if not self.is_shut_down:
            self.start_coordinator()

    def _reset_coordinator(self) -> None:
        self._resign_all()
        self._coordinator_ids = {}

    def zookeeper_event(self, event: WatchEvent) -> None:
        if event.path.startswith(Coordinator.path()):
            self._wake_elections()
        elif event.path == _IDS:
            self._ids_changed = True
            self.wake(_CLUSTER)
        elif event.path.startswith(_TOPICS_PATH):
            self._changed.add(event.path)
            self.wake(_TOPICS)

    def create_topic(self, name: str, partitions: int) -> None:
        """A topic is created on this broker, which registers it."""
        self._topics[name] = partitions
        if self.settings.zookeeper_enabled:
            self.run((_TOPICS, name), self._register_topics({name: partitions}), client=0)

    # --- what a draft adds ---

    def on_elected(self, office: int) -> None:
        """coordinatorStartup."""

    def on_resigned(self, office: int) -> None:
        """Clear what the coordinator knows of the groups of an office."""

    def on_topics_changed(self, topics: set[str]) -> None:
        """These topics are new, or have other partitions."""

    # --- the cluster ---

    def _register_topics(self, topics: Mapping[str, int]) -> Procedure:
        yield from register_topics(self.settings.broker_id, topics)

    def _keep_cluster(self) -> Procedure:
        own = Broker.path(self.settings.broker_id)
        node = Broker(host=self.settings.address.host, port=self.settings.address.port, timestamp=self.now)
        yield from ensure_parents(own)
        if self.settings.new_cluster_id is not None:
            self.cluster_id = yield from keep_cluster_id(self.settings.new_cluster_id)
        has_registered = False
        while True:
            self._ids_changed = False
            registration = yield CreateNode(own, node.build(), ephemeral=True)
            if not registration.ok and (yield from self._is_in_use(own)):
                self.note("BrokerIdInUse", own)
                self.is_shut_down = True
                for office in range(self.settings.coordinators):
                    self.end(_election(office))
                self._resign_all()
                self._end_sessions()
                return
            if not has_registered:
                has_registered = True
                yield from register_topics(self.settings.broker_id, self._topics)
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

    def _is_in_use(self, path: str) -> Steps:
        """Whether the broker's id is that of another broker: of one at another address. The same address is
        this broker's, whose session before a restart is not over yet."""
        node = yield GetData(path)
        if not node.ok or (node.stat is not None and node.stat.ephemeral_owner == self.session):
            return False
        return _address(node) != self.settings.address

    def on_cluster(self) -> None:
        """The list of brokers may have changed: the candidate for an office may be another."""
        if self.settings.coordinators > 1:
            self._wake_elections()

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

    def drop_topics(self) -> None:
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

    @property
    def coordinates(self) -> bool:
        """Whether it coordinates any group."""
        return bool(self.offices)

    def office_of(self, group_id: str | None) -> int:
        """The office that a group belongs to: by its name's hash, as the documents have it of handlers."""
        if self.settings.coordinators == 1:
            return 0
        return zlib.crc32((group_id or "").encode("utf-8", "surrogatepass")) % self.settings.coordinators

    def coordinates_group(self, group_id: str | None) -> bool:
        """Whether it is the group's coordinator, as far as it knows."""
        return self.office_of(group_id) in self.offices

    def coordinator_of(self, group_id: str | None = None) -> int:
        """The broker id of a group's coordinator; -1 if none is known that lives."""
        number = self._coordinator_ids.get(self.office_of(group_id), -1)
        return number if number in self.brokers else -1

    def _path(self, office: int) -> str:
        path = Coordinator.path()
        return path if self.settings.coordinators == 1 else f"{path}s/{office}"

    def _is_candidate(self, office: int) -> bool:
        """Whether it tries to get an office: each has one broker of those that live that does."""
        if self.settings.coordinators == 1:
            return True
        living = sorted(self.brokers)
        return (
            self._may_be_elected and bool(living) and living[office % len(living)] == self.settings.broker_id
        )

    def _wake_elections(self) -> None:
        for office in range(self.settings.coordinators):
            self.wake(_election(office))

    def _elect(self, office: int) -> Procedure:
        """The elector: the broker that creates the node is the coordinator; all watch it."""
        path, node = self._path(office), Coordinator(self.settings.broker_id).build()
        yield from ensure_parents(path)
        while True:
            is_candidate = self._is_candidate(office)
            if is_candidate:
                yield CreateNode(path, node, ephemeral=True)
            outcome = yield GetData(path, watch=True)
            if outcome.ok:
                self._know_coordinator(office, outcome)
            elif is_candidate or (yield NodeExists(path, watch=True)).ok:
                continue
            else:
                self._coordinator_ids.pop(office, None)
                self._resign(office)
            if is_candidate or not self._is_candidate(office):
                yield Wait()

    def _know_coordinator(self, office: int, outcome: OperationOutcome) -> None:
        assert outcome.stat is not None
        try:
            self._coordinator_ids[office] = Coordinator.parse(outcome.data).broker_id
        except DecodeError as error:
            self.note("UnreadableNode", f"{self._path(office)}: {error}")
            self._coordinator_ids.pop(office, None)
        if outcome.stat.ephemeral_owner != self.coordinator_session:
            self._resign(office)
        elif office not in self.offices:
            self.offices.add(office)
            self.note("Elected", str(self.settings.broker_id))
            self.on_elected(office)

    def _resign(self, office: int) -> None:
        if office in self.offices:
            self.offices.discard(office)
            self.note("Resigned", str(self.settings.broker_id))
            self.on_resigned(office)

    def _resign_all(self) -> None:
        for office in sorted(self.offices):
            self._resign(office)

    # --- shutdown ---

    def shut_down(self) -> None:
        """End in an orderly way (section 12.7): first the elector, then the scheduler of pings, the committer
        and the handlers, which is what resigning ends; the server's sockets and its session last."""
        self.is_shut_down = True
        for office in range(self.settings.coordinators):
            self.end(_election(office))
        self.end(_CLUSTER)
        self.run(_SHUTDOWN, self._shut_down())

    def _shut_down(self) -> Procedure:
        for office in sorted(self.offices):
            yield DeleteNode(self._path(office))
        self._resign_all()
        if self.settings.zookeeper_enabled:
            yield DeleteNode(Broker.path(self.settings.broker_id))
        self.note("ShutDown", str(self.settings.broker_id))
        self._end_sessions()

    def _end_sessions(self) -> None:
        if self._client and self.coordinator_session:
            self.do(EndSession(self._client))
        self.do(EndSession())

    # --- connections ---

    def on_request(self, connection: int, event: RequestReceived) -> None:
        request: Any = event.request
        handler = getattr(self, f"_on_{type(request).__name__}", None)
        if self.is_shut_down:
            self.disconnect(connection)
            self.closed(connection)
        elif handler is None:
            self._out_of_state(connection, request)
        else:
            handler(connection, event, request)


def _election(office: int) -> tuple[str, str]:
    return "election", str(office)


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
