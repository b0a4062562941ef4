"""Several brokers in virtual time, one of which coordinates a group, and what a capture of all of them shows.

Strategy: the coordinator is the `World`'s shard; the other brokers know no group. Clients ask any broker who
the coordinator is, and connect to it. A broker that dies ends its connections, and loses what was not
written; one that stalls reads nothing until it goes on, and its timers wait with it. Rules: what a capture
can't show is kept for the comparison: who had which partitions, who died how, when the coordinator stalled,
which topic a name was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.codec import Message
from coordwire.connection.dialect import Direction
from coordwire.coordinator import GroupApis, RequestContext, Shard
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.enums import ErrorCode
from coordwire.messages import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordwire.messages.delete_topics import DeletableTopicResult, DeleteTopicState
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchTopic,
    PartitionData,
)
from coordwire.messages.find_coordinator import Coordinator
from tests.coordinator.stories.world import MS, Connection, World

__all__ = ["Cluster", "Death", "Span"]

BROKERS = tuple(f"192.0.2.{number}:9092" for number in (1, 2, 3))
BY_NAME, BY_ID = 12, 13
"""Versions of Fetch."""

_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


@dataclass(slots=True)
class Span:
    """Of a broker, in milliseconds. asked: when requests came meanwhile that it answers at once, and that it
    did answer afterwards."""

    broker: str
    since: int
    until: int
    asked: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Death:
    """A client's end. how: "closed" if its machine ended its connections, else "open"."""

    time: int
    how: str
    connection: Connection


@dataclass(eq=False)
class _Link(Connection):
    """One connection. is_lost: whether its client looks for the coordinator before it asks again; is_cut:
    whether its broker ended it; asks: whether its client asks for the coordinator on it; is_gone: whether
    its client's machine is gone, and its broker does not know; retry: what its client does if its broker ends
    it before the answer."""

    is_lost: bool = False
    is_cut: bool = False
    asks: bool = False
    is_gone: bool = False
    retry: Callable[[], None] | None = None


@dataclass
class Cluster(World):
    """stalls, kills: of coordinators, the latter until another one is named; deaths: by client; owned: which
    client had what since when, as which member; lives: which id a topic's name had since when, None if the
    topic was deleted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.coordinator: str | None = BROKERS[0]
        self.down: set[str] = set()
        self.stalls: list[Span] = []
        self.kills: list[Span] = []
        self.deaths: dict[str, Death] = {}
        self.owned: list[tuple[int, str, str, frozenset[tuple[str, int]]]] = []
        self.lives: list[tuple[int, str, UUID | None]] = []
        self.is_moving = False
        self._elsewhere = GroupApis(Shard(now=self.now, config=self.config), TOPIC_GUARDS)
        self._unread: list[Callable[[], None]] = []
        self._links: dict[str, list[_Link]] = {}
        self._ports = iter(range(40_000, 65_000))
        self._created: dict[UUID, int] = {}

    # --- the coordinator's process ---

    def at_broker(self, delay: int, action: Callable[[], None]) -> None:
        def due() -> None:
            if self.is_stalled:
                self._unread.append(action)
            else:
                action()

        self.after(delay, due)

    def stall(self, duration: int) -> None:
        """The coordinator's process stops for a while."""
        if self.is_stalled or self.is_moving or self.coordinator is None:
            return
        self.is_stalled = True
        self.stalls.append(Span(self.coordinator, self.now, self.now + duration))
        self.after(duration, self._goes_on)

    def _goes_on(self) -> None:
        self.is_stalled = False
        self.shard._state.now = self.now  # timers that were due meanwhile are late
        if self.random.random() < 0.5:  # they may come before what waits in its sockets
            self.shard.advance(self.now)
            self.take()
        unread, self._unread = self._unread, []
        for action in unread:
            action()

    def fail_over(self, away: int, loading: int) -> None:
        """Another broker gets the group, and this one lives."""
        if self.is_stalled or self.is_moving:
            return
        self.coordinator = self._other()
        self._load(away, loading)

    def kill_broker(self, away: int, loading: int, back: int) -> None:
        """The coordinator dies. away: until another one is named; back: until it is started again."""
        broker = self.coordinator
        if self.is_stalled or self.is_moving or broker is None or self.down:
            return
        self.down.add(broker)
        self.coordinator = None
        self.kills.append(Span(broker, self.now, self.now + away))
        for links in self._links.values():
            for link in links:
                if link.broker == broker and link.open and not link.is_cut:
                    self._breaks(link)
        heir = self._other()
        self._load(away, loading)
        self.after(away, lambda: setattr(self, "coordinator", heir))
        self.after(back, lambda: self.down.discard(broker))

    def _load(self, away: int, loading: int) -> None:
        self.is_moving = True
        super().fail_over(away, loading)
        self.after(away + loading + 1, lambda: setattr(self, "is_moving", False))

    def _other(self) -> str:
        before = self.coordinator or self.kills[-1].broker
        return self.random.choice([name for name in BROKERS if name != before and name not in self.down])

    def _breaks(self, link: _Link) -> None:
        """A broker's end of a connection is closed."""
        self._end(link, "broker", "rst" if link.retry is not None else "fin")
        link.is_lost = link.is_cut = True
        retry, link.retry = link.retry, None
        if retry is not None:
            self.after(self.random.randint(50, 300), retry)

    def _end(self, link: _Link, sender: Any, kind: Any) -> None:
        if link.is_seen:
            flow = f"{link.address}:{link.port} > {link.broker}"
            self.entries.append(
                ConnectionEnd(
                    capture="run", flow=flow, time_ns=self.now * MS, sender=sender, kind=kind,
                    packet=len(self.entries) + 1,
                )
            )  # fmt: skip

    # --- clients ---

    def ends(self, client: Any) -> None:
        """A client's process is over: its machine ends its connections."""
        self._dies(client, "closed")
        for link in self._links.get(client.name, ()):
            if link.open and not link.is_cut:
                self._end(link, "client", "fin")
            link.open = False

    def vanish(self, client: Any) -> None:
        """A client's machine is gone."""
        client.alive = False
        self._dies(client, "open")
        for link in self._links.get(client.name, ()):
            link.is_gone, link.open = link.open, False
        client.connection.open = False

    def _dies(self, client: Any, how: str) -> None:
        self.deaths.setdefault(client.name, Death(self.now, how, client.connection))
        self.owned.append((self.now, client.name, "", frozenset()))

    def owns(self, client: Any, partitions: frozenset[tuple[str, int]]) -> None:
        self.owned.append((self.now, client.name, client.member_id, partitions))

    def ask_of(self, client: Any, request: Message, version: int, then: Callable[[Any], None]) -> None:
        link = client.connection
        if not isinstance(link, _Link) or link.is_lost:
            link.busy = True
            client.later(0, lambda: self._find(client, lambda: self.ask_of(client, request, version, then)))
            return

        def answered(response: Any) -> None:
            if link.is_cut:
                return  # the connection ended before
            link.retry = None
            if _code(response) in _MOVED and self.coordinator != link.broker:
                link.is_lost = True
            then(response)

        link.retry = lambda: client.later(0, lambda: self.ask_of(client, request, version, then))
        self.ask(link, request, version, answered)

    def _find(self, client: Any, then: Callable[[], None]) -> None:
        """Ask a broker for the coordinator, and connect to it."""
        links = self._links.setdefault(client.name, [])
        living = [name for name in BROKERS if name not in self.down]
        if self.is_stalled and self.coordinator in living:
            living.remove(self.coordinator)
        known = [link for link in links if link.broker in living and not link.is_cut and link.asks]
        if not known:
            known = [self._link(client, self.random.choice(living))]
            known[0].asks = True
            links += known
        asked = known[-1]
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[client.group_id])
        frame = self.frame(asked, request, 4, "request")
        broker = self.coordinator
        if broker is None or broker in self.down:
            coordinator = Coordinator(
                key=client.group_id, node_id=-1, host="", port=-1,
                error_code=int(ErrorCode.COORDINATOR_NOT_AVAILABLE), error_message="",
            )  # fmt: skip
        else:
            host, _, port = broker.partition(":")
            coordinator = Coordinator(
                key=client.group_id, node_id=BROKERS.index(broker), host=host, port=int(port),
                error_code=0, error_message=None,
            )  # fmt: skip
        self.frame(asked, FindCoordinatorResponse(coordinators=[coordinator]), 4, "response", frame)
        if broker is None or broker in self.down:
            client.later(self.random.randint(100, 300), lambda: self._find(client, then))
            return
        client.connection = self._link(client, broker)
        links.append(client.connection)
        client.later(1, then)

    def _link(self, client: Any, broker: str) -> _Link:
        seen = client.connection.is_seen
        return _Link(
            client.name, client.connection.address, port=next(self._ports), broker=broker, is_seen=seen
        )

    # --- requests ---

    def handle(
        self,
        connection: Connection,
        request: Message,
        version: int,
        then: Callable[[Any], None],
        entry: FrameEntry,
    ) -> None:
        if isinstance(connection, _Link) and connection.is_cut:
            return  # it ended meanwhile
        if connection.broker != self.coordinator and isinstance(connection, _Link):
            self._refuse(connection, request, version, then, entry)
        elif self.is_stalled:
            self._unread.append(lambda: self._read(connection, request, version, then, entry))
        else:
            super().handle(connection, request, version, then, entry)

    def _read(
        self,
        connection: Connection,
        request: Message,
        version: int,
        then: Callable[[Any], None],
        entry: FrameEntry,
    ) -> None:
        """Read what waited in the socket of a process that stood still."""
        is_answered = connection.open or (isinstance(connection, _Link) and connection.is_gone)
        if is_answered and type(request).__name__.endswith(("HeartbeatRequest", "CommitRequest")):
            self.stalls[-1].asked.append((entry.time_ns or 0) // MS)
        World.handle(self, connection, request, version, then, entry)

    def _refuse(
        self,
        connection: Connection,
        request: Message,
        version: int,
        then: Callable[[Any], None],
        entry: FrameEntry,
    ) -> None:
        """A broker without the group answers."""
        context = RequestContext(
            client_id=connection.client_id, client_host=f"/{connection.address}", new_id=self.new_id
        )
        handled = type(request).decode(request.encode(version=version), version=version)
        self._elsewhere.handle(handled, version=version, now=self.now, context=context)
        for effect in self._elsewhere.effects():
            self.respond(connection, effect.response, entry, then)  # type: ignore[union-attr]

    def respond(
        self, connection: Connection, response: Message, entry: FrameEntry, then: Callable[[Any], None]
    ) -> None:
        if isinstance(connection, _Link) and connection.is_gone and not connection.is_cut:
            self.frame(connection, response, entry.api_version or 0, "response", entry)
        else:
            super().respond(connection, response, entry, then)

    def frame(
        self,
        connection: Connection,
        message: Message,
        version: int,
        direction: Direction,
        request: FrameEntry | None = None,
    ) -> FrameEntry:
        entry = super().frame(connection, message, version, direction, request)
        entry.packet = entry.first_packet = entry.number
        return entry

    def operator(self) -> Connection:
        living = [name for name in BROKERS if name not in self.down]
        return replace(super().operator(), broker=self.random.choice(living), port=next(self._ports))

    # --- topics and their records ---

    def set_topics(self, partitions: dict[str, int]) -> None:
        known = dict(self.topics)
        super().set_topics(partitions)
        for name in partitions:
            topic_id = self.topics[name].id
            if name not in known:
                self.lives.append((self.now, name, topic_id))
                self._created[topic_id] = self.now

    def _publish(self) -> None:
        if self.is_stalled:
            self._unread.append(super()._publish)
        else:
            super()._publish()

    def delete_topic(self, name: str, *, is_seen: bool) -> None:
        """A topic is deleted, with its offsets."""
        topic = self.topics.pop(name)
        self.lives.append((self.now, name, None))
        self._publish()
        if is_seen:
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)])
            result = DeletableTopicResult(name=name, topic_id=topic.id)
            self.tell(request, DeleteTopicsResponse(responses=[result]), 6)

    def end_of(self, topic_id: UUID, number: int) -> int:
        """The end of a partition: it has a record for every few milliseconds since its topic's beginning."""
        return 100 + (self.now - self._created[topic_id]) // (3 + number)

    def position(self, topic: str, number: int) -> int:
        end = self.end_of(self.topics[topic].id, number)
        return self.random.choice([end, end - end // 10, end // 2])

    def fetch(self, client: Any) -> None:
        """A client asks for more of one of its partitions, and is told where it ends."""
        mine = [(topic, number) for topic, number in sorted(client.owned) if topic in self.topics]
        link = client.connection
        if not mine or not isinstance(link, _Link):
            return
        topic, number = self.random.choice(mine)
        topic_id, end = self.topics[topic].id, self.end_of(self.topics[topic].id, number)
        living = [one for one in self._links[client.name] if one.open and not one.is_cut and one is not link]
        living = [one for one in living if not (self.is_stalled and one.broker == self.coordinator)]
        if not living:
            return
        version = BY_ID if self.random.random() < 0.5 else BY_NAME
        asked: Any = FetchRequest(
            topics=[FetchTopic(topic=topic, topic_id=topic_id, partitions=[FetchPartition(partition=number)])]
        )
        data = PartitionData(partition_index=number, high_watermark=end)
        answer: Any = FetchResponse(
            responses=[FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=[data])]
        )
        asked = FetchRequest.decode(asked.encode(version=version), version=version)
        answer = FetchResponse.decode(answer.encode(version=version), version=version)
        frame = self.frame(living[-1], asked, version, "request")
        self.frame(living[-1], answer, version, "response", frame)


def _code(response: Any) -> int:
    """The error code of an answer, or of its first partition."""
    code: int = getattr(response, "error_code", 0)
    for topic in getattr(response, "topics", None) or ():
        for part in getattr(topic, "partitions", ()):
            code = code or getattr(part, "error_code", 0)
    return code
