"""Scripts of a group's life: its frames, joiners, leavers, commits and final state; the members of a classic
and of a KIP-848 group.

Strategy: a script (`ClassicScript`, `ConsumerScript`) plays the members; `coordwire.coordinator` answers,
and `Recorder` writes down each request and response as a frame. The final state of the group is what its
members were given, so that a reader of the frames can be compared with it. Rules: correlation ids are unique
in the whole conversation; time goes forward, and ends no session; each member has a connection of its own.

Classic group (JoinGroup, SyncGroup, Heartbeat, LeaveGroup): one change at a time, and each ends with the
group stable, all members in one generation; members learn of a rebalance by their heartbeats; the leader
assigns the partitions in turn.

KIP-848 group (ConsumerGroupHeartbeat alone): one change at a time; then members send heartbeats in turn until
each has its target, and has confirmed that. As Kafka's own clients: what was given up, and what was taken, is
in the next heartbeat; the member chooses its id since version 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from uuid import UUID

from coordwire.capture.formats.pcap import as_pcap
from coordwire.codec import Message
from coordwire.codec.primitives import uuid_text
from coordwire.coordinator import (
    Answer,
    Append,
    ConsumerGroupConfig,
    CoordinatorConfig,
    RequestContext,
    Shard,
    TopicImage,
    TopicsImage,
)
from coordwire.coordinator.model.consumer_group import ConsumerGroupState
from coordwire.enums import ErrorCode
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.metadata import (
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.versions import ApiKey

START_NS = 1_790_000_000_000_000_000
STEP_NS = 1_000_000
"""Between two frames."""

TOPIC_ID = UUID("6b0b1b7e-3f52-4c43-9c3e-0d5a2f1c8e11")

Answered: TypeAlias = Callable[[Any], object]

_CONFIG = CoordinatorConfig(
    initial_rebalance_delay_ms=0, consumer=ConsumerGroupConfig(assignment_interval_ms=0)
)


class ConversationFrame(NamedTuple):
    """One frame. time_ns: nanoseconds since 1970; connection: the member's, from 0; version: the request's;
    data: size prefix, header and body."""

    time_ns: int
    connection: int
    direction: Literal["request", "response"]
    api_key: int
    version: int
    correlation_id: int
    data: bytes


class ConversationCommit(NamedTuple):
    """An offset that a member committed."""

    member_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class GroupConversation:
    """The life of a group, or its beginning.

    kind: "classic" (JoinGroup and its kin) or "consumer" (KIP-848). topic, partitions: all members subscribe
    to this one topic. frames: in order. joiners, leavers: member ids, in the order of events. generation: the
    last one, or the group epoch; assignments: the partitions of those who are in at the end. commits: all of
    them were accepted.
    """

    kind: Literal["classic", "consumer"]
    group_id: str
    topic: str
    partitions: int
    frames: tuple[ConversationFrame, ...]
    joiners: tuple[str, ...]
    leavers: tuple[str, ...]
    generation: int
    assignments: Mapping[str, tuple[int, ...]]
    commits: tuple[ConversationCommit, ...]

    def stream(self) -> bytes:
        """All frames, one after the other, as `coordwire decode --input frames` reads them."""
        return b"".join(frame.data for frame in self.frames)

    def pcap(self) -> bytes:
        """The same as a capture with times and one TCP connection a member, for `coordwire.capture.Capture`,
        `coordwire timeline` and Wireshark."""
        return as_pcap(
            (frame.time_ns, frame.connection, frame.direction == "response", frame.data)
            for frame in self.frames
        )


class Recorder:
    """A list of frames that grows, and the coordinator. versions: of each API, by key. topic, partitions: the
    one topic that there is."""

    def __init__(self, versions: Mapping[int, int], topic: str, partitions: int) -> None:
        self.versions = versions
        self.frames: list[ConversationFrame] = []
        self._time = START_NS
        self._shard = Shard(now=0, config=_CONFIG)
        self._shard.set_topics(TopicsImage([TopicImage(TOPIC_ID, topic, partitions)]), now=0)
        self._shard.begin_loading()
        self._shard.load((), now=0)
        self._unanswered: dict[int, tuple[ConversationFrame, Answered]] = {}
        self._member_ids = 0

    def wait(self, milliseconds: int) -> None:
        """Advance the time."""
        self._time += milliseconds * 1_000_000

    def version(self, api_key: int) -> int:
        """The version of an API in this conversation."""
        return self.versions[api_key]

    def group(self, group_id: str) -> Any:
        """The group as its coordinator has it."""
        return self._shard.groups[group_id]

    def ask(self, connection: int, client_id: str, request: Message, answered: Answered) -> None:
        """Record a request, and its answer as soon as the coordinator gives it. answered: called with it."""
        frame = self._request(connection, client_id, request)
        context = RequestContext(client_id=client_id, client_host="/10.0.0.1", new_id=self._new_id)
        ticket = self._shard.handle(request, version=frame.version, now=0, context=context)
        self._unanswered[ticket] = frame, answered
        for effect in self._shard.effects():
            if isinstance(effect, Append):
                self._shard.appended(effect.number, now=0)
            elif isinstance(effect, Answer):
                frame, answered = self._unanswered.pop(effect.ticket)
                self._answer(frame, effect.response)
                answered(effect.response)

    def exchange(self, connection: int, client_id: str, request: Message, response: Message) -> None:
        """Record a request that is not the coordinator's, and its answer."""
        self._answer(self._request(connection, client_id, request), response)

    def _request(self, connection: int, client_id: str, request: Message) -> ConversationFrame:
        key: Any = request.api_key
        version, number = self.versions[key], len(self.frames)
        data = encode_request(request, version=version, correlation_id=number, client_id=client_id)
        return self._add(ConversationFrame(self._time, connection, "request", key, version, number, data))

    def _answer(self, request: ConversationFrame, response: Message) -> None:
        data = encode_response(response, version=request.version, correlation_id=request.correlation_id)
        self._add(request._replace(time_ns=self._time, direction="response", data=data))

    def _add(self, frame: ConversationFrame) -> ConversationFrame:
        self.frames.append(frame)
        self._time += STEP_NS
        return frame

    def _new_id(self) -> str:
        self._member_ids += 1
        return str(UUID(int=self._member_ids))


class GroupScript(ABC):
    """One group's life. `apis`: those that it uses, by key."""

    kind: ClassVar[Literal["classic", "consumer"]]
    apis: ClassVar[tuple[int, ...]]

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        self.recorder = recorder
        self.group_id = group_id
        self.topic = topic
        self.partitions = partitions
        self.joiners: list[str] = []
        self.leavers: list[str] = []
        self.commits: list[ConversationCommit] = []

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members."""

    @abstractmethod
    def join(self) -> None:
        """Add a member, and bring the group to a stable state."""

    @abstractmethod
    def leave(self, index: int) -> None:
        """Remove a member, and bring the others to a stable state. index: of the member, modulo their
        number."""

    @abstractmethod
    def heartbeat(self, index: int) -> None:
        """A member sends a heartbeat."""

    @abstractmethod
    def commit(self, index: int) -> None:
        """A member commits an offset of each of its partitions."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The last generation, or the group epoch."""

    @abstractmethod
    def assignments(self) -> dict[str, tuple[int, ...]]:
        """The partitions of each member."""

    def conversation(self) -> GroupConversation:
        """The frames so far, and the state of the group."""
        return GroupConversation(
            kind=self.kind, group_id=self.group_id, topic=self.topic, partitions=self.partitions,
            frames=tuple(self.recorder.frames), joiners=tuple(self.joiners), leavers=tuple(self.leavers),
            generation=self.generation, assignments=self.assignments(), commits=tuple(self.commits),
        )  # fmt: skip

    def _commit(
        self, connection: int, client_id: str, member_id: str, generation: int, partitions: Iterable[int]
    ) -> None:
        commits = [
            ConversationCommit(member_id, number, 10 * len(self.commits) + number) for number in partitions
        ]
        if not commits:
            return
        self.commits += commits
        requested = [
            OffsetCommitRequestPartition(partition_index=commit.partition, committed_offset=commit.offset)
            for commit in commits
        ]
        self.recorder.ask(
            connection, client_id,
            OffsetCommitRequest(
                group_id=self.group_id, generation_id_or_member_epoch=generation, member_id=member_id,
                topics=[OffsetCommitRequestTopic(name=self.topic, partitions=requested)],
            ),
            lambda response: None,
        )  # fmt: skip


# --- a classic group ---


PREFIX = b"\0\0"
"""The version of the consumer protocol before a subscription or an assignment: 0."""

SESSION_MS, REBALANCE_MS = 45_000, 300_000


@dataclass(slots=True)
class _ClassicMember:
    """connection: its number. member_id: "" until it has one."""

    client_id: str
    connection: int
    member_id: str = ""
    leads: bool = False
    partitions: tuple[int, ...] = ()


class ClassicScript(GroupScript):
    """One group."""

    kind = "classic"
    apis = (
        ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_COMMIT,
    )  # fmt: skip

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, group_id, topic, partitions)
        self._members: list[_ClassicMember] = []
        subscription = ConsumerProtocolSubscription(topics=[topic])
        self._metadata = PREFIX + subscription.encode(version=0)

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def generation(self) -> int:
        return int(self.recorder.group(self.group_id).generation)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.partitions for member in self._members}

    def join(self) -> None:
        number = len(self.joiners)
        member = _ClassicMember(f"client-{number}", number)
        self._members.append(member)
        self._join(member)
        self._rebalance(self._members[:-1])
        self.joiners.append(member.member_id)

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        request = LeaveGroupRequest(group_id=self.group_id)
        if self.recorder.version(ApiKey.LEAVE_GROUP) >= 3:
            request.members = [MemberIdentity(member_id=member.member_id)]
        else:
            request.member_id = member.member_id
        self.recorder.ask(member.connection, member.client_id, request, lambda response: None)
        self._rebalance(self._members)

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)])

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, self.generation,
                     member.partitions)  # fmt: skip

    # --- a rebalance ---

    def _rebalance(self, older_members: list[_ClassicMember]) -> None:
        """The members that are in learn of it and join too; then all get their assignment."""
        for member in older_members:
            self._heartbeat(member)
        for member in self._members:
            self._sync(member)

    def _heartbeat(self, member: _ClassicMember) -> None:
        def answered(response: HeartbeatResponse) -> None:
            if response.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
                self._join(member)

        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=member.member_id
        )
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _join(self, member: _ClassicMember) -> None:
        def answered(response: JoinGroupResponse) -> None:
            member.member_id = response.member_id
            member.leads = response.leader == response.member_id
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._join(member)

        request = JoinGroupRequest(
            group_id=self.group_id, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=member.member_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=self._metadata)],
        )  # fmt: skip
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _sync(self, member: _ClassicMember) -> None:
        def answered(response: SyncGroupResponse) -> None:
            assignment = ConsumerProtocolAssignment.decode(response.assignment[len(PREFIX) :], version=0)
            topics = assignment.assigned_partitions
            member.partitions = tuple(number for topic in topics for number in topic.partitions)

        named = self.recorder.version(ApiKey.SYNC_GROUP) >= 5
        request = SyncGroupRequest(
            group_id=self.group_id, generation_id=self.generation, member_id=member.member_id,
            protocol_type="consumer" if named else None, protocol_name="range" if named else None,
            assignments=self._assignments() if member.leads else [],
        )  # fmt: skip
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _assignments(self) -> list[SyncGroupRequestAssignment]:
        rows = []
        for number, member in enumerate(self._members):
            partitions = list(range(number, self.partitions, len(self._members)))
            owned = ConsumerProtocolAssignmentTopicPartition(topic=self.topic, partitions=partitions)
            assignment = ConsumerProtocolAssignment(assigned_partitions=[owned] if partitions else [])
            data = PREFIX + assignment.encode(version=0)
            rows.append(SyncGroupRequestAssignment(member_id=member.member_id, assignment=data))
        return rows


# --- a KIP-848 group ---


JOIN, LEAVE = 0, -1
"""Epochs by which a member joins and leaves."""


@dataclass(slots=True)
class _ConsumerMember:
    """connection: its number; owned: what it has, sorted; reports: its next heartbeat says so."""

    member_id: str
    client_id: str
    connection: int
    epoch: int = JOIN
    owned: tuple[int, ...] = ()
    reports: bool = False


class ConsumerScript(GroupScript):
    """One group."""

    kind = "consumer"
    apis = (ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.METADATA, ApiKey.OFFSET_COMMIT)

    def __init__(self, recorder: Recorder, group_id: str, topic: str, partitions: int) -> None:
        super().__init__(recorder, group_id, topic, partitions)
        self._members: list[_ConsumerMember] = []

    @property
    def size(self) -> int:
        return len(self._members)

    @property
    def generation(self) -> int:
        return int(self.recorder.group(self.group_id).epoch)

    def assignments(self) -> dict[str, tuple[int, ...]]:
        return {member.member_id: member.owned for member in self._members}

    def join(self) -> None:
        number = len(self.joiners)
        member_id = uuid_text(UUID(int=(number + 1) << 64 | 0x4848))
        has_own_id = self.recorder.version(ApiKey.CONSUMER_GROUP_HEARTBEAT) >= 1
        member = _ConsumerMember(member_id if has_own_id else "", f"client-{number}", number)
        self._metadata(member)
        self._heartbeat(
            member, rebalance_timeout_ms=REBALANCE_MS, subscribed_topic_names=[self.topic],
            topic_partitions=[],
        )  # fmt: skip
        self.joiners.append(member.member_id)
        self._members.append(member)
        self._reconcile()

    def leave(self, index: int) -> None:
        member = self._members.pop(index % len(self._members))
        self.leavers.append(member.member_id)
        member.epoch, member.reports = LEAVE, False
        self._heartbeat(member)
        self._reconcile()

    def heartbeat(self, index: int) -> None:
        self._heartbeat(self._members[index % len(self._members)])

    def commit(self, index: int) -> None:
        member = self._members[index % len(self._members)]
        self._commit(member.connection, member.client_id, member.member_id, member.epoch, member.owned)

    def _reconcile(self) -> None:
        """Bring the group to a stable state."""
        while self._members and not self._is_stable():
            for member in self._members:
                self._heartbeat(member)

    def _is_stable(self) -> bool:
        is_stable = self.recorder.group(self.group_id).state is ConsumerGroupState.STABLE
        return is_stable and not any(member.reports for member in self._members)

    def _heartbeat(self, member: _ConsumerMember, **fields: Any) -> None:
        def answered(response: ConsumerGroupHeartbeatResponse) -> None:
            member.member_id = response.member_id or member.member_id
            member.epoch = response.member_epoch
            if response.assignment is not None:
                topics = response.assignment.topic_partitions
                member.owned = tuple(sorted(number for topic in topics for number in topic.partitions))
                member.reports = True

        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id, member_id=member.member_id, member_epoch=member.epoch, **fields
        )
        if member.reports:
            topic = ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=TOPIC_ID, partitions=list(member.owned)
            )
            request.topic_partitions, member.reports = [topic] if member.owned else [], False
        self.recorder.ask(member.connection, member.client_id, request, answered)

    def _metadata(self, member: _ConsumerMember) -> None:
        """The member asks for the topic, whose id heartbeats use."""
        partitions = [
            MetadataResponsePartition(partition_index=number, leader_id=1, leader_epoch=0, replica_nodes=[1],
                                      isr_nodes=[1])
            for number in range(self.partitions)
        ]  # fmt: skip
        self.recorder.exchange(
            member.connection, member.client_id,
            MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)]),
            MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host="10.0.0.2", port=9092)], controller_id=1,
                topics=[MetadataResponseTopic(name=self.topic, topic_id=TOPIC_ID, partitions=partitions)],
            ),
        )  # fmt: skip
