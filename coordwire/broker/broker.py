"""`Broker`: a cluster with sockets, in the process that starts it.

    async with Broker(topics={"orders": 6}) as broker:
        client = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)

    with Broker.in_thread(topics={"orders": 6}) as broker:
        client = KafkaProducer(bootstrap_servers=broker.bootstrap)

Strategy: one listener a node on a loopback port, one protocol object a connection, one alarm for all
deadlines; no task runs. Rule: `stop` ends everything that `start` began, also while clients are connected.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.log_cleaning import schedule
from coordwire.broker.connections.client_link import ClientLink
from coordwire.broker.connections.connection_memory import READ_SIZE, ConnectionMemory
from coordwire.broker.connections.other_protocols import reporting
from coordwire.broker.connections.tls_handshakes import accept_tls, close_after, listening
from coordwire.broker.connections.turns import Turns
from coordwire.broker.injection.cluster_moves import ClusterMoves
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.security.authentication import SaslMechanisms
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.broker.thread import BrokerThread
from coordwire.coordinator.topics import bad_name
from coordwire.errors import counted
from coordwire.limits import limits

if TYPE_CHECKING:
    from coordwire.broker.connections.recorded_connection import ConnectionRecorder, Recording

_ITERATIONS = 10
"""Iterations of the loop that `stop` waits for connections to end."""

_ACCEPTED = 16
"""The most connections that are accepted in one iteration of the loop."""


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks, and wait for their end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Broker:
    """A cluster of one or more nodes; an async context manager, or `start` and `stop`.

    topics: names with the number of their partitions, made at the start. nodes: how many, each with a port
    of its own. port: of the first node, 0 for any that is free; the others follow it, or are any too. host:
    where to listen. data: a folder for the logs; None keeps them in memory. tls: for all connections.
    advertised: the addresses that clients are given, one a node in their order, where they are not those that
    the nodes listen on. traffic: gets what goes over the connections. show_secrets: whether it gets
    passwords and tokens too, which else are blanked. faults: what is to go wrong. watchers: called when
    requests were handled or something was due, until they give True.

    `start` raises `OSError` where it cannot listen, `DataFolderError` for a folder that it cannot use.

        >>> import asyncio
        >>> from coordwire.broker import Broker
        >>> from coordwire.client import connect
        >>> from coordwire.messages import MetadataRequest
        >>> async def main() -> list[str]:
        ...     async with Broker(topics={"orders": 6}) as broker:
        ...         async with connect(broker.bootstrap) as client:
        ...             answer = await client.request(MetadataRequest(topics=None))
        ...     return [f"{topic.name}: {len(topic.partitions)}" for topic in answer.topics]
        >>> asyncio.run(main())
        ['orders: 6']
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        nodes: int = 1,
        config: BrokerConfig | None = None,
        data: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        advertised: Sequence[tuple[str, int]] = (),
        traffic: Recording | None = None,
        show_secrets: bool = True,
    ) -> None:
        if nodes < 1:
            raise ValueError(f"expected at least 1 node, got {nodes}")
        if advertised and len(advertised) != nodes:
            raise ValueError(
                f"expected an advertised address for each of {nodes} nodes, got {len(advertised)}"
            )
        self.config = config or BrokerConfig()
        self._topics = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        for name, partitions in self._topics.items():
            reason = bad_name(name)
            if reason is None and partitions < 1:
                reason = f"expected at least 1 partition of {name}, got {partitions}"
            if reason is not None:
                raise ValueError(reason)
        self._nodes = tuple(range(1, nodes + 1))
        self._cluster_id: str | None = None
        self._data = None if data is None else Path(data)
        self._host, self._port, self._tls = host, port, reporting(tls)
        self._advertised = tuple(advertised)
        self._ports: dict[int, int] = {}
        """Where the nodes listen; a node that comes back listens there again."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cluster: ClusterState | None = None
        self._servers: dict[int, asyncio.Server] = {}
        self._accepting: dict[int, list[asyncio.Task[None]]] = {}
        """What shakes hands with the clients of nodes that speak TLS."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_due = 0
        self.links: dict[ClientLink, None] = {}
        self._joined: Counter[int] = Counter()
        self.turns = Turns(self._call_soon)
        self.memory = ConnectionMemory(self.config.memory, self.call_later)
        self.read_buffer = memoryview(bytearray(READ_SIZE))
        self._context = copy_context()
        self.sasl = SaslMechanisms({}, ())
        self.faults = Faults()
        self.moves = ClusterMoves(self, self.faults.waits)
        self.recorder: ConnectionRecorder | None = None
        self._show_secrets = show_secrets
        if traffic is not None:
            self.record(traffic)
        self.watchers: list[Callable[[Broker], object]] = []

    @classmethod
    def in_thread(
        cls,
        *,
        topics: Mapping[str, int] | Iterable[str] = (),
        nodes: int = 1,
        config: BrokerConfig | None = None,
        data: str | Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        advertised: Sequence[tuple[str, int]] = (),
    ) -> BrokerThread:
        """A broker on a thread of its own, for clients that block; a context manager."""
        broker = cls(
            topics=topics,
            nodes=nodes,
            config=config,
            data=data,
            host=host,
            port=port,
            tls=tls,
            advertised=advertised,
        )
        return BrokerThread(broker)

    # --- what users see ---

    def __repr__(self) -> str:
        nodes = counted(len(self._nodes), "node")
        if self._cluster is None:
            return f"<Broker not running: {nodes}>"
        topics, links = len(self._cluster.topics), len(self.links)
        return (
            f"<Broker {self.bootstrap}: {nodes}, {counted(topics, 'topic')}, {counted(links, 'connection')}>"
        )

    @property
    def cluster(self) -> ClusterState:
        """The cluster's state; to be used from the broker's own loop."""
        if self._cluster is None:
            raise RuntimeError("the broker is not running")
        return self._cluster

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where clients find the nodes: where these listen, or what is advertised."""
        return [(node.host, node.port) for node in self.cluster.nodes.values()]

    @property
    def listening(self) -> list[tuple[str, int]]:
        """Where the nodes listen."""
        return [(self._host, port) for port in self._ports.values()]

    @property
    def bootstrap(self) -> str:
        """The addresses as clients' `bootstrap.servers`."""
        return ",".join(
            f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.addresses
        )

    # --- start and stop ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Load the logs, make the topics, listen."""
        if self._cluster is not None:
            raise RuntimeError("the broker is running")
        loop = self._loop = asyncio.get_running_loop()
        self.faults.bind(loop)
        start_time, loop_time = time.time(), loop.time()
        cluster = self._cluster = self._new_cluster(
            lambda: int((start_time + loop.time() - loop_time) * 1000)
        )
        config = self.config
        self.sasl = SaslMechanisms(
            config.users,
            config.sasl_mechanisms if config.authenticates else (),
            scram=cluster.scram,
            clock=cluster.clock,
            max_session_ms=config.max_session_ms,
        )
        try:
            for number in self._nodes:
                self._ports.setdefault(number, self._port + number - 1 if self._port else 0)
                await self.listen(number)
                addresses = self._advertised or self.listening
                cluster.nodes[number].host, cluster.nodes[number].port = addresses[number - 1]
            factor = min(self.config.default_replication_factor, len(self._nodes))
            for name, partitions in self._topics.items():
                if name not in cluster.topics:
                    cluster.create_topic(name, partitions, replication_factor=factor)
            schedule(cluster)
        except BaseException:
            await self.stop()
            raise
        self.handled()

    def _new_cluster(self, clock: Callable[[], int]) -> ClusterState:
        if self._data is None:
            return ClusterState(
                clock=clock, config=self.config, nodes=self._nodes, cluster_id=self._cluster_id
            )
        from coordwire.broker.cluster.disk_logs import open_cluster

        return open_cluster(self._data, clock=clock, config=self.config, nodes=self._nodes)

    async def stop(self) -> None:
        """End all connections and close the logs; nothing happens if it is not running."""
        cluster = self._cluster
        if cluster is None:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for server in self._servers.values():
            server.close()
        try:
            await _ended([task for tasks in self._accepting.values() for task in tasks])
        finally:  # also where it is cancelled
            for link in list(self.links):
                link.abort()
            try:
                for _ in range(_ITERATIONS):  # a transport reports its end on the loop's next turn
                    if not self.links:
                        break
                    await asyncio.sleep(0)
            finally:
                self._accepting.clear()
                self.links.clear()
                self._joined.clear()
                self.turns.clear()
                self.memory.close()
                self._servers.clear()
                self._cluster = None
                self.faults.bind(None)
                cluster.close()

    async def reset(self) -> None:
        """Begin again as it was started, at the same addresses and without faults: all connections end.

        Raises `ValueError` for logs on disk, `OSError` if an address is in use meanwhile.
        """
        if self._data is not None:
            raise ValueError("expected a broker with its logs in memory, got one with a data folder")
        self._cluster_id = self.cluster.cluster_id
        self.moves.forget_nodes()
        self.faults.clear()
        await self.stop()
        await self.start()

    def record(self, traffic: Recording) -> None:
        """Give the bytes of all connections that are made from now on to a recording."""
        # imported here, since it loads what reads captures
        from coordwire.broker.connections.recorded_connection import recorder

        self.recorder = recorder(traffic, show_secrets=self._show_secrets)

    # --- for moves ---

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that the broker runs in."""
        if self._loop is None or self._cluster is None:
            raise RuntimeError("the broker is not running")
        return self._loop

    async def listen(self, number: int) -> None:
        """Let a node listen, on the port that it had. Raises `OSError`."""
        new_link = partial(ClientLink, self, number)
        with limits(frame=self.config.max_frame):  # what connections read runs in this context
            self._context = copy_context()
            server = await self.loop.create_server(
                new_link,
                self._host,
                self._ports[number],
                ssl=self._tls,
                backlog=_ACCEPTED,
                start_serving=False,
            )
            self._servers[number] = server
            bound = [listener for listener in server.sockets if listener.fileno() >= 0]  # else simulated
            if bound and self._tls is not None:
                accepting = self._accepting[number] = []
                for listener in map(listening, bound):
                    task = self.loop.create_task(accept_tls(listener, self._tls, new_link))
                    close_after(task, listener)
                    accepting.append(task)
            else:
                await server.start_serving()
                for listener in bound:  # asyncio accepts as many at once as it lets the system hold
                    listening(listener).close()
        self._ports[number] = server.sockets[0].getsockname()[1]

    async def end_node(self, number: int) -> None:
        """End a node's listener and its connections."""
        self._servers.pop(number).close()
        await _ended(self._accepting.pop(number, []))
        ended = [link for link in self.links if link.node == number]
        for link in ended:
            link.abort()
        for _ in range(_ITERATIONS):
            if self.links.keys().isdisjoint(ended):
                break
            await asyncio.sleep(0)

    # --- for the links ---

    def _call_soon(self, action: Callable[[], None]) -> None:
        assert self._loop is not None
        self._loop.call_soon(action, context=self._context)

    def join(self, link: ClientLink) -> bool:
        """Count a new connection; False if its node has the most that it may have."""
        most = self.config.max_connections
        if most is not None and self._joined[link.node] >= most:
            return False
        self._joined[link.node] += 1
        self.links[link] = None
        return True

    def leave(self, link: ClientLink) -> None:
        if link in self.links:
            self._joined[link.node] -= 1
            del self.links[link]
            self.cluster.share_partitions.disconnected(link.node, link)

    def call_later(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        assert self._loop is not None
        return self._loop.call_later(seconds, action)

    def handled(self) -> None:
        """Set the alarm for the next deadline; one that is set for an earlier time stays."""
        cluster, loop = self._cluster, self._loop
        if cluster is None or loop is None:
            return
        if self.watchers:
            self.watchers = [watcher for watcher in self.watchers if not watcher(self)]
        due = cluster.next_deadline()
        if due is None or (self._alarm is not None and self._alarm_due <= due):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_due = due
        self._alarm = loop.call_later(max(0.0, (due - cluster.clock() + 0.5) / 1000), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._cluster is not None:
            self._cluster.advance()
            self.handled()
