"""A shard in virtual time, its clients' connections, and the frames that a capture at the broker would hold.

Rules: everything comes from one random generator. A connection has one request at a time; requests and
answers take a few milliseconds, as does an append, which now and then fails. A frame's time is the broker's.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordwire.capture.entries import ConnectionSign, Entry, FrameEntry
from coordwire.codec import Message
from coordwire.connection.dialect import Direction
from coordwire.coordinator import (
    Answer,
    Append,
    CoordinatorConfig,
    GroupApis,
    InternalTopic,
    RequestContext,
    Shard,
    StateRequest,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.coordinator.timeline import ShardTimeline
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.delete_share_group_state import DeleteStateResult
from coordwire.messages.delete_share_group_state import PartitionResult as DeletedPartition
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.timeline.events import GroupEvent

MS = 1_000_000
START = 1_700_000_000_000
"""The first moment, in milliseconds."""

_GROUP_RESOURCE = 32
_METADATA_VERSION = 12
_CONFIGS_VERSION = 4


@dataclass(eq=False)
class Connection:
    """A client's. open: whether the client's machine still takes what comes; is_seen: whether the capture has
    its frames."""

    client_id: str
    address: str
    open: bool = True
    busy: bool = False
    port: int = 1
    broker: str = "broker:9092"
    is_seen: bool = True


@dataclass(slots=True)
class _Request:
    connection: Connection
    entry: FrameEntry
    then: Callable[[Any], None]


@dataclass
class World:
    """What happens is in `entries` and, by the shard itself, in `events`. loaded: when the shard got its
    partition; reloaded: and who was in by its log, in nanoseconds; failed: when writes failed."""

    random: random.Random
    config: CoordinatorConfig
    failures: float = 0.0
    now: int = START
    is_stalled: bool = False
    entries: list[Entry | ConnectionSign] = field(default_factory=list)
    events: list[GroupEvent] = field(default_factory=list)
    topics: dict[str, TopicImage] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.timeline = ShardTimeline()
        self.shard = Shard(now=self.now, config=self.config, listener=self.timeline)
        self._apis = GroupApis(self.shard, TOPIC_GUARDS)
        self.shard.load([], now=self.now)
        self._log: list[LogRecord] = []
        self._numbers = itertools.count()
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._requests: dict[int, _Request] = {}
        self._durable = self.now
        self._version = 0
        self._term = 0
        self.loaded: list[int] = []
        self.reloaded: list[tuple[int, set[str]]] = []
        self.failed: list[int] = []

    # --- time ---

    def after(self, delay: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now + delay, next(self._numbers), action))

    def run(self, until: int) -> None:
        while True:
            due = min(self._queue[0][0] if self._queue else until, until)
            deadline = None if self.is_stalled else self.shard.next_deadline()
            if deadline is not None and deadline <= due:
                self.now = max(self.now, deadline)
                self.shard.advance(self.now)
                self.take()
                continue
            self.now = due
            if not self.is_stalled:
                self.shard.advance(due)
                self.take()
            if not self._queue or self._queue[0][0] > until:
                return
            heapq.heappop(self._queue)[2]()

    def at_broker(self, delay: int, action: Callable[[], None]) -> None:
        """`after`, of what the coordinator's own process does."""
        self.after(delay, action)

    # --- clients ---

    def position(self, topic: str, number: int) -> int:
        """The offset that a client commits of a partition."""
        return 7

    def owns(self, client: Any, partitions: frozenset[tuple[str, int]]) -> None:
        """A client has just these partitions from now on."""

    def ends(self, client: Any) -> None:
        """A client's process is over."""
        client.connection.open = False

    def ask_of(self, client: Any, request: Message, version: int, then: Callable[[Any], None]) -> None:
        """A client's request to its group's coordinator."""
        self.ask(client.connection, request, version, then)

    # --- requests ---

    def ask(
        self, connection: Connection, request: Message, version: int, then: Callable[[Any], None]
    ) -> None:
        connection.busy = True
        self.after(self.random.randint(1, 4), lambda: self._arrive(connection, request, version, then))

    def _arrive(
        self, connection: Connection, request: Message, version: int, then: Callable[[Any], None]
    ) -> None:
        read = type(request).decode(request.encode(version=version), version=version)
        entry = self.frame(connection, read, version, "request")
        self.handle(connection, request, version, then, entry)

    def handle(
        self,
        connection: Connection,
        request: Message,
        version: int,
        then: Callable[[Any], None],
        entry: FrameEntry,
    ) -> None:
        """The coordinator reads a request."""
        context = RequestContext(
            client_id=connection.client_id, client_host=f"/{connection.address}", new_id=self.new_id
        )
        handled = type(request).decode(request.encode(version=version), version=version)
        ticket = self._apis.handle(handled, version=version, now=self.now, context=context)
        self._requests[ticket] = _Request(connection, entry, then)
        self.take()

    def new_id(self) -> str:
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def take(self) -> None:
        """Do what the shard wants done."""
        for effect in self._apis.effects():
            if isinstance(effect, Append):
                self._append(effect)
            elif isinstance(effect, Answer):
                self._answer(self._requests.pop(effect.ticket), effect.response)
                if effect.topics_to_create:
                    self._create(effect.topics_to_create)
            elif isinstance(effect, StateRequest):
                self._persist(effect)
        self.events.extend(self.timeline.events())

    def _append(self, append: Append) -> None:
        self._durable = max(self._durable, self.now + self.random.randint(1, 5))
        fails, term = self.random.random() < self.failures, self._term

        def complete() -> None:
            if term != self._term:
                return
            if fails:
                self.failed.append(self.now)
                self.shard.failed(append.number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=self.now)
            elif append.base_offset == len(self._log):  # else it built on one that failed
                self._log.extend(append.records)
                self.shard.appended(append.number, now=self.now)
            self.take()

        self.at_broker(self._durable - self.now, complete)

    def _persist(self, effect: StateRequest) -> None:
        """The share coordinators do what a share group asks for."""

        def complete() -> None:
            self.shard.persisted(effect.number, _persisted(effect.request), now=self.now)
            self.take()

        self.at_broker(self.random.randint(1, 20), complete)

    def _create(self, topics: Iterable[InternalTopic]) -> None:
        """The internal topics that a streams group lacks."""
        partitions = {topic.name: topic.partitions for topic in topics}

        def complete() -> None:
            missing = {name: count for name, count in partitions.items() if name not in self.topics}
            if missing:
                self.set_topics(missing)

        self.at_broker(self.random.randint(1, 200), complete)

    def _answer(self, request: _Request, response: Message) -> None:
        self.respond(request.connection, response, request.entry, request.then)

    def respond(
        self, connection: Connection, response: Message, entry: FrameEntry, then: Callable[[Any], None]
    ) -> None:
        """The broker answers."""
        version = entry.api_version or 0
        if not connection.open:
            return
        read = type(response).decode(response.encode(version=version), version=version)
        self.frame(connection, read, version, "response", entry)

        def arrives() -> None:
            connection.busy = False
            then(read)

        self.after(self.random.randint(1, 4), arrives)

    def frame(
        self,
        connection: Connection,
        message: Message,
        version: int,
        direction: Direction,
        request: FrameEntry | None = None,
    ) -> FrameEntry:
        ends = f"{connection.address}:{connection.port}", connection.broker
        flow = " > ".join(ends if direction == "request" else ends[::-1])
        entry = FrameEntry(
            capture="run", number=len(self.entries) + 1, flow=flow, time_ns=self.now * MS,
            direction=direction, body=b"", api_key=type(message).api_key, api_version=version,
            body_version=version, correlation_id=1, client_id=connection.client_id, message=message,
            request=request,
        )  # fmt: skip
        if connection.is_seen:
            self.entries.append(entry)
        return entry

    # --- the cluster ---

    def set_topics(self, partitions: dict[str, int]) -> None:
        """Topics by their numbers of partitions; a client asks for them, so that their ids are known."""
        for name, count in partitions.items():
            known = self.topics.get(name)
            topic_id = UUID(int=self.random.getrandbits(128), version=4) if known is None else known.id
            self.topics[name] = TopicImage(topic_id, name, count)
        self._publish()
        listing = [
            MetadataResponseTopic(name=topic.name, topic_id=topic.id) for topic in self.topics.values()
        ]
        self.tell(MetadataRequest(topics=None), MetadataResponse(topics=listing), _METADATA_VERSION)

    def _publish(self) -> None:
        """The coordinator learns of the cluster's topics."""
        self._version += 1
        self.shard.set_topics(TopicsImage(self.topics.values(), version=self._version), now=self.now)
        self.take()

    def show_session_timeout(self, group_id: str, kind: str) -> None:
        """An operator looks at a group's configuration."""
        value = str(self.config.consumer.session_timeout_ms)
        config = DescribeConfigsResourceResult(name=f"{kind}.session.timeout.ms", value=value)
        result = DescribeConfigsResult(
            resource_type=_GROUP_RESOURCE, resource_name=group_id, configs=[config]
        )
        self.tell(DescribeConfigsRequest(), DescribeConfigsResponse(results=[result]), _CONFIGS_VERSION)

    def operator(self) -> Connection:
        """That of who runs the cluster."""
        return Connection("operator", "192.0.2.9")

    def tell(self, request: Message, response: Message, version: int) -> None:
        """An operator asks, and is answered at once."""
        operator = self.operator()
        frame = self.frame(operator, request, version, "request")
        self.frame(operator, response, version, "response", frame)

    def fail_over(self, away: int, loading: int) -> None:
        """The partition goes, and comes back with what was durable."""
        self.shard.unload(now=self.now)
        self._term += 1
        self.take()

        term = self._term

        def load() -> None:
            if term != self._term:
                return  # it went once more meanwhile
            self.shard.load(self._log, now=self.now)
            self.loaded.append(self.now)
            members = {name for group in self.shard.groups.values() for name in group.members}
            self.reloaded.append((self.now * MS, members))
            self.take()

        self.at_broker(away, self.shard.begin_loading)
        self.at_broker(away + loading, load)


def _persisted(request: Message) -> Message:
    """The share coordinators' answer."""
    if isinstance(request, InitializeShareGroupStateRequest):
        return InitializeShareGroupStateResponse(
            results=[
                InitializeStateResult(
                    topic_id=topic.topic_id,
                    partitions=[PartitionResult(partition=part.partition) for part in topic.partitions],
                )
                for topic in request.topics
            ]
        )
    assert isinstance(request, DeleteShareGroupStateRequest)
    return DeleteShareGroupStateResponse(
        results=[
            DeleteStateResult(
                topic_id=topic.topic_id,
                partitions=[DeletedPartition(partition=part.partition) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def names(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partitions by topic."""
    names_of: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        names_of.setdefault(topic, []).append(number)
    return names_of
