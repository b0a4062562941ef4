"""A node that holds the coordinator's shard: requests in, answers out, appends to the cluster's log.

Rules: one request of a link at a time, as a broker reads them: a parked JoinGroup holds up what follows it.
What the shard wants written while the log is busy goes into its next write together, as Kafka's coordinators
gather the records of several requests in one batch. Writes are confirmed in order; after one that failed,
those that built on it are dropped. Clients of the simulation send what a coordinator takes, and nothing
else.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING
from uuid import UUID

from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import Event, RequestReceived
from coordwire.coordinator import Answer, Append, GroupApis, RequestContext, Shard, StateRequest, TopicsImage
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.enums import ErrorCode
from coordwire.frames import RequestFrame
from coordwire.logs import decode_log_record
from coordwire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

if TYPE_CHECKING:
    from coordwire.designs.simulator.kafka.cluster import Cluster

_PORT = 9092
_TIMER = "shard"
_LOADED = "loaded"
_MOST_ANSWERS = 100
_KEYS = 4
"""The first version of FindCoordinator with several keys."""


class _Asker:
    """A link's requests: the one that waits for its answer, and those after it."""

    __slots__ = ("context", "pending", "waiting")

    def __init__(self, context: RequestContext) -> None:
        self.context = context
        self.pending: RequestReceived | None = None
        self.waiting: deque[RequestReceived] = deque()


class CoordinatorProcess(Process):
    """One broker. shard: without a partition while another node leads it. is_closing: it shuts down, and will
    not lead again."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.is_closing = False

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        self.shard: Shard = self.cluster.new_shard(node.now)
        self._apis = GroupApis(self.shard, TOPIC_GUARDS)
        self._links: dict[int, Link] = {}
        self._epoch = -1
        self._writes: deque[Append] = deque()
        self._writing: list[Append] = []
        self._settling = False
        self._metadata_of: TopicsImage | None = None
        self._answers: dict[tuple[str, ...] | None, MetadataResponse] = {}
        self.on_leadership()

    # --- the partition ---

    def on_leadership(self) -> None:
        """Another node leads the partition, or this one does in a new epoch."""
        cluster, now = self.cluster, self.node.now
        if self._epoch == cluster.leader_epoch:
            return
        self._drop_writes()
        self.shard.unload(now=now)
        self._settle()
        self.node.cancel_timer(_LOADED)
        self._epoch = cluster.leader_epoch
        if cluster.leader == self.node.name:
            self.shard.begin_loading()
            self.node.set_timer(_LOADED, now + cluster.load_ms)

    def on_topics(self) -> None:
        """The cluster's topics changed."""
        self.shard.set_topics(self.cluster.topics, now=self.node.now)
        self._settle()

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """`topic NAME PARTITIONS`: a topic has this many partitions now; `leave`: a shutdown in its order,
        before which another node leads the partition."""
        if kind == "leave":
            self.is_closing = True
            self.cluster.hand_over(self.node.name)
        elif kind == "topic" and len(words) == 2 and words[1].isdecimal():
            self.cluster.set_partitions(words[0], int(words[1]))

    def on_timer(self, key: str) -> None:
        if key == _LOADED:
            log = self.cluster.log
            self.cluster.loaded.append((self.node.now, self.node.name))
            records = (decode_log_record("consumer_offsets", key, value) for key, value in log)
            self.shard.load(records, now=self.node.now)
        else:
            self.shard.advance(self.node.now)
        self._settle()

    def _settle(self) -> None:
        """Carry out what the shard wants. An answer lets the next request of its link in, whose effects
        follow in this same loop: thousands of members may be answered at once."""
        if self._settling:
            return
        shard, node = self.shard, self.node
        self._settling = True
        for effect in self._apis.effects():
            if isinstance(effect, Append):
                self._writes.append(effect)
                if not self._writing:
                    self._write_later()
            elif isinstance(effect, Answer):
                link = self._links.pop(effect.ticket, None)
                if link is not None:
                    self._answer(link, effect.response)
            elif isinstance(effect, StateRequest):
                self.cluster.ask_share_coordinator(effect, self)
        self._settling = False
        due = shard.next_deadline()
        if due is not None:
            node.set_timer(_TIMER, due)

    def _write_later(self) -> None:
        """The log is free for what waits for it."""
        node, cluster, writes = self.node, self.cluster, self._writes
        takes = node.random.randint(*cluster.write_ms) + cluster.slow_ms
        most = cluster.most_together
        self._writing = [writes.popleft() for _ in range(min(len(writes), most or len(writes)))]
        node.world.clock.at(node.now + takes, self._write, self._writing, self._epoch)

    def _drop_writes(self) -> None:
        self._writes.clear()
        self._writing = []

    def _write(self, batch: list[Append], epoch: int) -> None:
        """The log takes a write, or refuses it, if it still waits."""
        if self.node.process is not self or self._writing is not batch:
            return
        error = self.cluster.append(epoch, [record for append in batch for record in append.encoded()])
        if self.node.is_frozen:
            self.node.call(self._written, batch, error)
        else:
            delay = self.node.random.randint(0, 1)
            self.node.world.clock.at(self.node.now + delay, self._written, batch, error)

    def _written(self, batch: list[Append], error: ErrorCode | None) -> None:
        if self.node.process is not self or self._writing is not batch:
            return
        if self.node.is_frozen:
            self.node.call(self._written, batch, error)
            return
        self.shard.advance(self.node.now)
        self._settle()
        if self._writing is not batch:
            return
        if error is None:
            self._writing = []
            self.shard.appended(batch[-1].number, now=self.node.now)
        else:
            self._drop_writes()
            self.shard.failed(batch[0].number, int(error), now=self.node.now)
        if self._writes:
            self._write_later()
        self._settle()

    def persisted(self, number: int, response: Message) -> None:
        """The share coordinator answers."""
        if self.node.process is self:
            self.shard.persisted(number, response, now=self.node.now)
            self._settle()

    # --- requests ---

    def on_accept(self, link: Link) -> None:
        link.connection = Connection("server")
        host = "/" + link.peer_address.rpartition(":")[0]
        link.context = _Asker(RequestContext(client_id="", client_host=host, new_id=self._new_id))

    def on_event(self, link: Link, event: Event) -> None:
        if not isinstance(event, RequestReceived):
            link.close()
            return
        asker: _Asker = link.context
        if asker.pending is None:
            self._take(link, asker, event)
        else:
            asker.waiting.append(event)

    def _take(self, link: Link, asker: _Asker, event: RequestReceived) -> None:
        asker.pending = event
        frame = event.frame
        assert isinstance(frame, RequestFrame)
        request = frame.message
        if isinstance(request, FindCoordinatorRequest):
            self._answer(link, self._coordinator(request, frame.api_version))
        elif isinstance(request, MetadataRequest):
            self._answer(link, self._metadata(request))
        else:
            context, client_id = asker.context, frame.header.client_id
            if context.client_id != client_id:
                context = asker.context = RequestContext(
                    client_id=client_id, client_host=context.client_host, new_id=self._new_id
                )
            ticket = self._apis.handle(request, version=frame.api_version, now=self.node.now, context=context)
            self._links[ticket] = link
            self._settle()

    def _answer(self, link: Link, response: Message) -> None:
        asker: _Asker = link.context
        event, asker.pending = asker.pending, None
        if not link.is_open or event is None:
            return
        link.send_message(response, request=event)
        if asker.waiting:
            self._take(link, asker, asker.waiting.popleft())

    def on_close(self, link: Link) -> None:
        asker: _Asker = link.context
        asker.waiting.clear()

    def _new_id(self) -> str:
        return str(UUID(int=self.node.random.getrandbits(128), version=4))

    def _coordinator(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        cluster = self.cluster
        number, host = cluster.number(cluster.leader), self.node.world.nodes[cluster.leader].host
        if version < _KEYS:
            return FindCoordinatorResponse(node_id=number, host=host, port=_PORT, error_message=None)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=number, host=host, port=_PORT, error_message=None)
                for key in request.coordinator_keys
            ]
        )

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        """The answer for these topics; made once for all who ask, until the topics change."""
        cluster = self.cluster
        names = None if request.topics is None else tuple(topic.name or "" for topic in request.topics)
        if self._metadata_of is not cluster.topics:
            self._metadata_of = cluster.topics
            self._answers.clear()
        answer = self._answers.get(names)
        if answer is None:
            if len(self._answers) >= _MOST_ANSWERS:
                self._answers.clear()
            answer = self._answers[names] = self._make_metadata(names)
        return answer

    def _make_metadata(self, requested: tuple[str, ...] | None) -> MetadataResponse:
        cluster, topics = self.cluster, []
        names = cluster.topics.names if requested is None else requested
        for name in names:
            topic = cluster.topics.find(name)
            if topic is None:
                error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                topics.append(MetadataResponseTopic(name=name, error_code=error))
                continue
            partitions = [
                MetadataResponsePartition(
                    partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1]
                )
                for index in range(topic.partitions)
            ]
            topics.append(MetadataResponseTopic(name=name, topic_id=topic.id, partitions=partitions))
        brokers = [
            MetadataResponseBroker(
                node_id=cluster.number(name), host=self.node.world.nodes[name].host, port=_PORT
            )
            for name in cluster.names
        ]
        return MetadataResponse(brokers=brokers, cluster_id="simulated", controller_id=1, topics=topics)
