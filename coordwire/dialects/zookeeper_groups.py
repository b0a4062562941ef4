"""Groups of the ZooKeeper consumer in recorded traffic, from the nodes that its consumers make and read.

    /consumers/[group]/ids/[consumer]               a consumer is in while its node is there
    /consumers/[group]/owners/[topic]/[partition]   a claim: created, by the thread that it names
    /consumers/[group]/offsets/[topic]/[partition]  a commit: created or set

Strategy: what a server has answered without an error has happened. A consumer's node goes when it is deleted,
when its session is closed, or when that expires: then a list of the group's consumers lacks it that was read
later, or its client learns it when it connects again. A group rebalances from the first change of consumers,
owners or claims on, until nothing was claimed or released for `QUIET_NS`.

Rules: answers without their requests add nothing. A list of consumers counts only if its zxid is that of the
newest registration or later. What is kept is bounded, and the oldest is dropped; the end of a
rebalance, which lists all claims, comes when as many frames about the group as pay for it were seen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from coordwire.capture.entries import ConnectionEnd, FrameEntry
from coordwire.dialects.zookeeper import Registration, StaticTopics
from coordwire.dialects.zookeeper_multi import read_operations
from coordwire.enums.numbers import ZooKeeperErrorCode
from coordwire.errors import DecodeError
from coordwire.timeline.consumer_data import owned
from coordwire.timeline.events import ErrorMet, GroupEvent, OffsetCommitted, TopicPartition
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.group import Group
from coordwire.timeline.members import MOST_MEMBERS, Member
from coordwire.timeline.rebalance import Trigger

QUIET_NS = 1_000_000_000
"""So long after the last claim or release a rebalance is over."""

MOST_GROUPS, MOST_SESSIONS, MOST_CLAIMS = 10_000, 100_000, 100_000
PAID = 16
"""Claims whose listing a frame about the group pays for."""

_CREATES = frozenset(("Create", "Create2", "CreateContainer", "CreateTtl"))
_LISTS = frozenset(("GetChildren", "GetChildren2"))
_PARTS = 6
"""Parts of the longest path that is about a group."""

ConnectionKey = tuple[str, frozenset[str]]


@dataclass(slots=True)
class _Session:
    """A session: its timeout, and the ephemeral nodes that were seen being made in it."""

    timeout_ms: int
    nodes: OrderedDict[tuple[str, ...], None] = field(default_factory=OrderedDict)


@dataclass(slots=True)
class _Consumers:
    """A group, with the thread that has claimed each partition and in which session; sessions: of the
    consumers. changed: when anything was last claimed or released; newest: the zxid of the newest
    registration; paid: claims that may be children."""

    group: Group
    claims: OrderedDict[TopicPartition, tuple[str, int | None]] = field(default_factory=OrderedDict)
    sessions: OrderedDict[str, int | None] = field(default_factory=OrderedDict)
    changed: Seen | None = None
    newest: int = 0
    paid: int = 0

    def owner(self, partition: TopicPartition) -> str | None:
        """The consumer that has claimed a partition."""
        claim = self.claims.get(partition)
        return None if claim is None else _consumer(claim[0])


class ZooKeeperGroups:
    """All groups of ZooKeeper consumers in some captures."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, _Consumers] = OrderedDict()
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._connections: OrderedDict[ConnectionKey, int] = OrderedDict()
        self._unsettled: OrderedDict[str, None] = OrderedDict()

    def feed(self, entry: FrameEntry, place: Seen) -> Iterator[GroupEvent]:
        """What one frame adds."""
        yield from self._settle(place)
        request = entry.request
        if (
            entry.direction != "response"
            or request is None
            or request.message is None
            or request.error is not None
        ):
            return
        request_message, answer, name = request.message, entry.message, entry.api_name or ""
        connection = entry.capture, frozenset(entry.flow.split(" > "))
        client = request.flow.partition(" > ")[0] or None
        if name == "CreateSession":
            yield from self._connected(request_message, answer, connection, place)
            return
        session_id = self._connections.get(connection)
        if name == "CloseSession":
            if session_id is not None:
                yield from self._ended(session_id, place, expired=False)
            return
        for step in _steps(name, request_message, answer):
            yield from self._step(step, session_id, client, place)

    def _step(
        self, step: _Step, session_id: int | None, client: str | None, place: Seen
    ) -> Iterator[GroupEvent]:
        parts = step.path.split("/", _PARTS) if step.path.startswith("/consumers/") else []
        if len(parts) < 4 or not parts[2]:
            return
        _, _, group_id, kind, *names = parts
        known = self._groups.get(group_id)
        if known is None:
            known = _Consumers(Group(group_id, "zookeeper"))
            remember(self._groups, group_id, known, MOST_GROUPS)
        known.paid += PAID
        group = known.group
        key = tuple(parts)
        match kind, names, step.name:
            case "ids", [consumer], "create" if not step.error_code:
                known.newest = max(known.newest, step.zxid)
                self._owns(session_id, key)
                self._joins(known, consumer, step.data, session_id, client, place)
            case "ids", [consumer], "delete" if not step.error_code:
                self._leaves(known, consumer, place, expired=False)
            case "ids", [consumer], "read" if consumer in group.members:
                topics = _topics(step.data)
                member = group.members[consumer]
                member.topics = topics or member.topics
            case "ids", [], "list" if step.zxid >= known.newest and not step.error_code:
                children = dict.fromkeys(step.children)
                for consumer in [name for name in group.members if name not in children]:
                    self._leaves(known, consumer, place, expired=True)
                for consumer in children:
                    if consumer not in group.members:
                        group.begin(
                            Trigger("unknown", inferred=True, detail="a consumer that was there before"),
                            place,
                        )
                        group.add(Member(consumer), place, was_in=True)
                        self._changes(known, place)
            case (("owners" | "owner"), [topic, partition], "create"):
                thread = (step.data or b"").decode("utf-8", "replace")
                if step.error_code == ZooKeeperErrorCode.NODEEXISTS:
                    yield self._refused(known, step, _consumer(thread), topic, partition, place)
                elif not step.error_code:  # NONODE: it makes the nodes above first
                    self._owns(session_id, key)
                    self._claims(known, _partition(topic, partition), thread, session_id, place)
            case (("owners" | "owner"), [topic, partition], "delete") if not step.error_code:
                self._releases(known, _partition(topic, partition), place)
            case "offsets", [topic, partition], ("create" | "set") if not step.error_code:
                yield from group.drain()
                offset = (step.data or b"").decode("ascii", "replace")
                if offset.isascii() and offset.isdecimal() and len(offset) < 20:
                    number = _partition(topic, partition)
                    yield OffsetCommitted(
                        group=group_id, **place._asdict(), member_id=known.owner(number), client_id=None,
                        generation=-1, topic=number.topic, partition=number.partition,
                        offset=int(offset), leader_epoch=-1, metadata=None,
                    )  # fmt: skip
        yield from group.drain()

    # --- sessions ---

    def _connected(
        self, request_message: Any, answer: Any, connection: ConnectionKey, place: Seen
    ) -> Iterator[GroupEvent]:
        """A connection has, or goes on with, a session; or that has expired."""
        if answer.time_out <= 0 or not answer.session_id:
            if request_message.session_id:
                yield from self._ended(request_message.session_id, place, expired=True)
            return
        if request_message.session_id not in (0, answer.session_id):  # the simulation opens another at once
            yield from self._ended(request_message.session_id, place, expired=True)
        session = self._sessions.get(answer.session_id)
        if session is None:
            remember(self._sessions, answer.session_id, _Session(answer.time_out), MOST_SESSIONS)
        else:
            session.timeout_ms = answer.time_out
        remember(self._connections, connection, answer.session_id, MOST_SESSIONS)

    def _ended(self, session_id: int, place: Seen, *, expired: bool) -> Iterator[GroupEvent]:
        """A session is over: its ephemeral nodes are gone."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        touched: dict[str, _Consumers] = {}
        for _, _, group_id, kind, *names in session.nodes:
            known = self._groups.get(group_id)
            if known is None:
                continue
            touched[group_id] = known
            if kind == "ids":
                if known.sessions.get(names[0]) == session_id:
                    self._leaves(known, names[0], place, expired=expired)
            elif known.claims.get(_partition(*names), ("", None))[1] == session_id:
                self._releases(known, _partition(*names), place)
        for known in touched.values():
            yield from known.group.drain()

    def _owns(self, session_id: int | None, key: tuple[str, ...]) -> None:
        session = None if session_id is None else self._sessions.get(session_id)
        if session is not None:
            remember(session.nodes, key, None, MOST_CLAIMS)

    # --- consumers and claims ---

    def _joins(
        self,
        known: _Consumers,
        consumer: str,
        data: bytes | None,
        session_id: int | None,
        client: str | None,
        place: Seen,
    ) -> None:
        group = known.group
        rejoined = consumer in group.members
        cause = Trigger(
            "new_member" if group.members else "first_member", consumer, inferred=not group.members
        )
        session = None if session_id is None else self._sessions.get(session_id)
        member = Member(
            consumer, host=client, topics=_topics(data),
            session_timeout_ms=None if session is None else session.timeout_ms,
        )  # fmt: skip
        group.begin(Trigger("member_rejoined", consumer) if rejoined else cause, place)
        group.add(member, place, rejoined=rejoined)
        remember(known.sessions, consumer, session_id, MOST_MEMBERS)
        self._changes(known, place)

    def _leaves(self, known: _Consumers, consumer: str, place: Seen, *, expired: bool) -> None:
        group = known.group
        if consumer not in group.members:
            return
        group.begin(Trigger("session_timeout" if expired else "member_left", consumer), place)
        group.remove(consumer, place, "session_timeout" if expired else "left", inferred=expired)
        self._changes(known, place)

    def _claims(
        self, known: _Consumers, partition: TopicPartition, thread: str, session_id: int | None, place: Seen
    ) -> None:
        known.group.begin(Trigger("unknown", inferred=True, detail="a partition is claimed"), place)
        remember(known.claims, partition, (thread, session_id), MOST_CLAIMS)
        if known.group.rebalance is not None:
            known.group.rebalance.sync(_consumer(thread))
        self._changes(known, place)

    def _releases(self, known: _Consumers, partition: TopicPartition, place: Seen) -> None:
        if known.claims.pop(partition, None) is not None:
            known.group.begin(Trigger("unknown", inferred=True, detail="a partition is released"), place)
            self._changes(known, place)

    def _refused(
        self, known: _Consumers, step: _Step, consumer: str, topic: str, partition: str, place: Seen
    ) -> ErrorMet:
        number = _partition(topic, partition)
        return ErrorMet(
            group=known.group.group, **place._asdict(), api="Create", error_code=step.error_code,
            member_id=consumer or None, client_id=None, topic=number.topic, partition=number.partition,
            message=f"ZooKeeper: {ZooKeeperErrorCode(step.error_code).name}",
        )  # fmt: skip

    # --- the end of rebalances ---

    def _changes(self, known: _Consumers, place: Seen) -> None:
        known.changed = place
        self._unsettled[known.group.group] = None
        self._unsettled.move_to_end(known.group.group)

    def _settle(self, now: Seen) -> Iterator[GroupEvent]:
        """End the rebalances in which nothing has happened for a while."""
        while self._unsettled and now.time_ns is not None:
            name = next(iter(self._unsettled))
            known = self._groups.get(name)
            if known is not None and known.changed is not None:
                changed_ns = known.changed.time_ns
                if changed_ns is not None and now.time_ns - changed_ns < QUIET_NS:
                    return
                if known.paid < len(known.claims):
                    self._unsettled.move_to_end(name)
                    return
                yield from self._end(known)
            self._unsettled.pop(name, None)

    def _end(self, known: _Consumers) -> Iterator[GroupEvent]:
        group, place = known.group, known.changed
        if place is None or group.rebalance is None:
            return
        known.paid = 0
        parts: dict[str, list[TopicPartition]] = {}
        for partition, (thread, _) in known.claims.items():
            parts.setdefault(_consumer(thread), []).append(partition)
        for name, member in group.members.items():
            group.assign(member, owned((topic, [number]) for topic, number in parts.get(name, ())))
        group.end("steady" if group.members else "empty", place)
        yield from group.drain()

    def end(self, end: ConnectionEnd, place: Seen) -> Iterable[GroupEvent]:
        """The end of a connection adds nothing: a session outlives it."""
        return ()

    def finish(self, place: Seen) -> Iterator[GroupEvent]:
        """The input is at its end: what was claimed stays claimed."""
        for known in self._groups.values():
            yield from self._end(known)
            yield from known.group.drain()


@dataclass(frozen=True, slots=True)
class _Step:
    """What a request did, or failed to do. name: create, set, delete, read or list."""

    name: str
    path: str
    error_code: int
    zxid: int
    data: bytes | None = None
    children: tuple[str, ...] = ()


def _steps(name: str, request_message: Any, answer: Any) -> Iterator[_Step]:
    """What an answered request did; of a multi each operation."""
    code, zxid = answer.error_code, answer.zxid
    path = getattr(request_message, "path", None) or ""
    if name in _CREATES:
        yield _Step("create", path, code, zxid, request_message.data)
    elif name == "SetData":
        yield _Step("set", path, code, zxid, request_message.data)
    elif name == "Delete":
        yield _Step("delete", path, code, zxid)
    elif name == "GetData":
        yield _Step("read", path, code, zxid, answer.data)
    elif name in _LISTS:
        yield _Step("list", path, code, zxid, None, tuple(answer.children or ()))
    elif name == "Multi" and not code:
        try:
            operations = read_operations(request_message.operations, results=False)
            results = read_operations(answer.operations, results=True)
        except DecodeError:
            return
        for operation, result in zip(operations, results, strict=False):
            if result.type >= 0:
                path = getattr(operation.message, "path", None) or ""
                word = {"Delete": "delete", "SetData": "set"}.get(operation.name, "create")
                if operation.name != "Check":
                    yield _Step(word, path, 0, zxid, getattr(operation.message, "data", None))


def _consumer(thread: str) -> str:
    """The consumer of a thread, whose id is the consumer's with the thread's number after it."""
    consumer, dash, number = thread.rpartition("-")
    return consumer if dash and number.isdecimal() else thread


def _partition(topic: str, partition: str) -> TopicPartition:
    """A partition by the parts of its path; "broker-partition" in the oldest form."""
    broker, _, number = partition.rpartition("-")
    if number.isascii() and number.isdecimal() and len(number) < 10:
        return TopicPartition(f"{topic}/{broker}" if broker else topic, int(number))
    return TopicPartition(f"{topic}/{partition}", -1)


def _topics(data: bytes | None) -> tuple[str, ...]:
    """What a consumer reads, by its node: its topics, or its filter."""
    try:
        topic_count = Registration.parse(data or b"").topic_count
    except DecodeError:
        return ()
    return tuple(topic_count.streams) if isinstance(topic_count, StaticTopics) else (topic_count.build(),)
