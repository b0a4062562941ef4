"""The base of all models of a group's members: find the coordinator, ask, time out, own partitions, commit.

Strategy: as Apache Kafka's Java client. One link to the coordinator; where that is lost, or the answer is an
error of another coordinator, the client asks any node for the coordinator again, a little later. Rules: an
answer that comes after its link was given up is ignored. What a client owns it also enters in
`World.ownership`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import Event, ResponseReceived
from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.enums import ErrorCode
from coordwire.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

OwnedPartition: TypeAlias = tuple[str, int]
"""A topic and a partition's number."""

Answered: TypeAlias = Callable[[Any], None]
"""Called with the answer."""

VERSIONS: Mapping[type[Message], int] = {
    FindCoordinatorRequest: 4, MetadataRequest: 12, OffsetCommitRequest: 9, OffsetFetchRequest: 9,
}  # fmt: skip
"""What a client speaks unless its configuration says otherwise."""

_FIND, _PATIENCE, _COMMIT, _METADATA = "find", "patience", "commit", "metadata"
_BACKOFF_MS = 100
_TOPIC_IDS = 10
_GROUPS = 8
_KEYS = 4

REDISCOVER = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Answers after which the client looks for the coordinator again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupClientConfig:
    """The settings of an application, times in milliseconds.

    coordinators: names of the nodes to ask first. regex: a pattern of topics, KIP-848 only. cooperative: the
    classic protocol's incremental rebalance (KIP-429). stubborn: it never gives up a partition that it
    shall give up (a callback that hangs). versions: of requests, where not the newest that the model has.
    assignors: the classic protocol's by name, where they are not range, or cooperative-sticky before range;
    assignment_data: what a custom one adds to each member's assignment. subscription: bytes that a client
    of its own writes in place of the model's.
    """

    group_id: str = "group"
    topics: tuple[str, ...] = ("orders",)
    coordinators: tuple[str, ...] = ("coordinator-1", "coordinator-2")
    instance_id: str | None = None
    client_id: str = "client"
    session_timeout_ms: int = 10_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 20_000
    request_timeout_ms: int = 30_000
    commit_interval_ms: int = 5_000
    metadata_interval_ms: int = 30_000
    cooperative: bool = False
    regex: str | None = None
    assignor: str | None = None
    stubborn: bool = False
    versions: Mapping[type[Message], int] = field(default_factory=dict)
    assignors: tuple[str, ...] = ()
    assignment_data: bytes | None = None
    subscription: bytes | None = None


class GroupClient(Process):
    """A member's client. owned: partitions with the offset of the next record to read.

    is_done: it has failed for good, or left; it then sends nothing more. failure: the error with which it
    failed, and its text, "" where the answer has none. reads_offsets: it begins where the group committed.
    """

    reads_offsets = True

    def __init__(self, config: GroupClientConfig) -> None:
        self.config = config
        self.topics = config.topics
        self.owned: dict[OwnedPartition, int] = {}
        self._unknown: set[OwnedPartition] = set()
        self.partitions: dict[str, int] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.member_id = ""
        self.epoch = -1
        self.is_done = False
        self.failure: tuple[ErrorCode, str] | None = None
        self.link: Link | None = None
        self._has_coordinator = False
        self._callbacks: dict[int, tuple[Answered, int]] = {}

    # --- what kinds of clients do each in their own way ---

    def begin(self) -> None:
        """The coordinator is found, for the first time or again."""
        raise NotImplementedError

    def end_session(self) -> None:
        """The link to the coordinator is gone; what was asked has no answer."""

    def leave(self) -> None:
        """The application closes the consumer."""
        raise NotImplementedError

    def resubscribe(self) -> None:
        """The application subscribes to other topics; `topics` has them."""

    def topics_changed(self) -> None:
        """The metadata shows other partitions than before."""

    # --- the process ---

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        self._find()

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        """`leave`; `subscribe TOPIC...`, which a client with a pattern ignores."""
        if self.is_done:
            return
        if kind == "leave":
            self.leave()
        elif kind == "subscribe" and self.config.regex is None:
            self.topics = words
            self.resubscribe()

    def on_timer(self, key: str) -> None:
        if self.is_done:
            return
        if key == _FIND:
            self._find()
        elif key == _PATIENCE:
            self._check_patience()
        elif key == _COMMIT:
            self.commit()
            self.node.set_timer(_COMMIT, self.node.now + self.config.commit_interval_ms)
        elif key == _METADATA:
            self.ask_metadata()
        else:
            self.on_client_timer(key)

    def on_client_timer(self, key: str) -> None:
        """A timer of the client's own kind."""

    def stop(self) -> None:
        """The client is done: it owns nothing and sends nothing more."""
        self.is_done = True
        self.drop(list(self.owned))
        if self.link is not None:
            self.link.close()
            self.link = None

    def fail(self, error: ErrorCode, text: str = "") -> None:
        """The client can't go on after this answer."""
        self.failure = error, text
        self.stop()

    # --- the coordinator ---

    @property
    def has_coordinator(self) -> bool:
        return self._has_coordinator

    def version(self, kind: type[Message]) -> int:
        version = self.config.versions.get(kind)
        return VERSIONS[kind] if version is None else version

    def _connect(self, name: str) -> None:
        self.link = self.node.connect(name, connection=Connection("client", client_id=self.config.client_id))

    def _find(self) -> None:
        if self.link is None:
            self._connect(self.node.random.choice(self.config.coordinators))
            # Where the node does not answer at all, another one may.
            self.node.set_timer(_PATIENCE, self.node.now + self.config.request_timeout_ms)

    def on_open(self, link: Link) -> None:
        if link is not self.link:
            link.close()
            return
        group_id, version = self.config.group_id, self.version(FindCoordinatorRequest)
        request = (
            FindCoordinatorRequest(coordinator_keys=[group_id])
            if version >= _KEYS
            else FindCoordinatorRequest(key=group_id)
        )
        self.ask(request, self._use_coordinator)

    def _use_coordinator(self, response: FindCoordinatorResponse) -> None:
        link = self.link
        assert link is not None
        number = response.coordinators[0].node_id if response.coordinators else response.node_id
        name = f"coordinator-{number}"
        if number < 1:
            self.lose_coordinator()
        elif link.peer != name:
            link.close()
            self._connect(name)
        elif not self._has_coordinator:
            self._has_coordinator = True
            self.ask_metadata()
            if self.config.commit_interval_ms:
                self.node.set_timer(_COMMIT, self.node.now + self.config.commit_interval_ms)
            self.begin()
            if self.node.world.messages is not None and self._unknown:
                self._fetch_offsets(sorted(self._unknown))

    def lose_coordinator(self) -> None:
        """Look for the coordinator again, a little later."""
        link, self.link = self.link, None
        self._has_coordinator = False
        self._callbacks.clear()
        if link is not None:
            link.close()
        self.end_session()
        if not self.is_done:
            self.node.set_timer(_FIND, self.node.now + _BACKOFF_MS)

    def on_close(self, link: Link) -> None:
        if link is self.link:
            self.lose_coordinator()

    # --- requests ---

    def ask(self, request: Message, answered: Answered, *, timeout_ms: int | None = None) -> None:
        """Send a request; its answer goes to `answered`, unless the link is given up before."""
        link = self.link
        if link is None or not link.is_open:
            return
        timeout = self.config.request_timeout_ms if timeout_ms is None else timeout_ms
        due = self.node.now + timeout
        self._callbacks[id(request)] = (answered, due)
        link.send_message(request, version=self.version(type(request)))
        if len(self._callbacks) == 1:
            self.node.set_timer(_PATIENCE, due)

    def on_event(self, link: Link, event: Event) -> None:
        if link is not self.link:
            return
        if not isinstance(event, ResponseReceived):
            self.lose_coordinator()
            return
        callback = self._callbacks.pop(id(event.request.message), None)
        if callback is not None:
            callback[0](event.response)

    def _check_patience(self) -> None:
        link, now = self.link, self.node.now
        if self._callbacks:
            due = min(due for _, due in self._callbacks.values())
            if due <= now:
                self.lose_coordinator()
            else:
                self.node.set_timer(_PATIENCE, due)
        elif link is not None and not link.is_open:
            self.lose_coordinator()

    # --- topics ---

    def topics_to_know(self) -> list[str]:
        """The topics whose partitions matter to this client."""
        return list(self.topics)

    def ask_metadata(self, then: Callable[[], None] | None = None) -> None:
        topics = [MetadataRequestTopic(name=name) for name in self.topics_to_know()]
        is_pattern = self.config.regex is not None
        request = MetadataRequest(topics=None if is_pattern else topics, allow_auto_topic_creation=False)

        def answered(response: MetadataResponse) -> None:
            self._learn_topics(response)
            if then is not None:
                then()

        self.ask(request, answered)
        self.node.set_timer(_METADATA, self.node.now + self.config.metadata_interval_ms)

    def _learn_topics(self, response: MetadataResponse) -> None:
        partitions = {topic.name or "": len(topic.partitions) for topic in response.topics}
        self.topic_ids.update({topic.name or "": topic.topic_id for topic in response.topics})
        if partitions != self.partitions:
            known, self.partitions = self.partitions, partitions
            if known:
                self.topics_changed()

    # --- partitions ---

    def take(self, partitions: list[OwnedPartition]) -> None:
        """Begin to read partitions, from the offsets that the group committed."""
        new = [partition for partition in partitions if partition not in self.owned]
        for partition in new:
            self.owned[partition] = 0
            self.node.world.ownership.take(self.node.name, (self.config.group_id, *partition))
        if new and self.reads_offsets:
            self._unknown |= set(new)
            self._fetch_offsets(new)

    def drop(self, partitions: list[OwnedPartition]) -> None:
        """End to read partitions."""
        for partition in partitions:
            self._unknown.discard(partition)
            if self.owned.pop(partition, None) is not None:
                self.node.world.ownership.release(self.node.name, (self.config.group_id, *partition))

    def positions(self) -> dict[tuple[str, str, int], int]:
        """Those of which it knows what the group has committed."""
        return {
            (self.config.group_id, *partition): offset
            for partition, offset in self.owned.items()
            if partition not in self._unknown
        }

    def consumed(self, partition: tuple[str, str, int], offset: int) -> None:
        if partition[1:] in self.owned:
            self.owned[partition[1:]] = offset

    def _fetch_offsets(self, partitions: list[OwnedPartition]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        version = self.version(OffsetFetchRequest)
        request = OffsetFetchRequest()
        if version < _GROUPS:
            request.group_id = self.config.group_id
            request.topics = [
                OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic.items()
            ]
        else:
            topics = [
                OffsetFetchRequestTopics(
                    name="" if version >= _TOPIC_IDS else topic,
                    topic_id=self.topic_ids.get(topic, UUID(int=0)),
                    partition_indexes=indexes,
                )
                for topic, indexes in by_topic.items()
            ]
            member_id, epoch = self.fetching_member()
            request.groups = [
                OffsetFetchRequestGroup(
                    group_id=self.config.group_id, topics=topics, member_id=member_id, member_epoch=epoch
                )
            ]
        self.ask(request, self._fetched)

    def fetching_member(self) -> tuple[str | None, int]:
        """The member id and epoch of an OffsetFetch."""
        return None, -1

    def _fetched(self, response: OffsetFetchResponse) -> None:
        names = {topic_id: name for name, topic_id in self.topic_ids.items()}
        owners: list[Any] = [response, *response.groups]
        for owner in owners:
            for topic in owner.topics:
                name = topic.name or names.get(topic.topic_id, "")
                for partition in topic.partitions:
                    key = name, partition.partition_index
                    self._unknown.discard(key)
                    if key in self.owned and partition.committed_offset > self.owned[key]:
                        self.owned[key] = partition.committed_offset

    def commit(self, on_done: Callable[[], None] | None = None) -> None:
        """Commit what was read; `on_done` is called after the answer, with or without an error; at once if
        no answer is due."""
        if not self.owned or not self.has_coordinator or not self.may_commit():
            if on_done is not None:
                on_done()
            return
        by_id = self.version(OffsetCommitRequest) >= _TOPIC_IDS
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for topic, partition in self.owned:
            if self.node.world.messages is None:
                self.owned[topic, partition] += 1 + self.node.random.randrange(3)
            if topic not in topics:
                topics[topic] = OffsetCommitRequestTopic(name="" if by_id else topic)
                if by_id:
                    topics[topic].topic_id = self.topic_ids.get(topic, UUID(int=0))
            topics[topic].partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=self.owned[topic, partition],
                    committed_metadata="",
                )
            )  # fmt: skip
        request = OffsetCommitRequest(
            group_id=self.config.group_id, generation_id_or_member_epoch=self.epoch, member_id=self.member_id,
            group_instance_id=self.config.instance_id, topics=list(topics.values()),
        )  # fmt: skip

        def answered(response: OffsetCommitResponse) -> None:
            errors = [partition.error_code for topic in response.topics for partition in topic.partitions]
            self.committed(next((ErrorCode(error) for error in errors if error), None))
            if on_done is not None:
                on_done()

        self.ask(request, answered)

    def may_commit(self) -> bool:
        """Whether the client is a member, as far as it knows."""
        return bool(self.member_id) and self.epoch >= 0

    def committed(self, error: ErrorCode | None) -> None:
        """A commit was answered; the first of its partitions' errors."""
        if error in REDISCOVER:
            self.lose_coordinator()
