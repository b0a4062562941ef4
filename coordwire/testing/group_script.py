"""The base of the scripts of a group's life: its frames, joiners, leavers, commits, and the final state.

Strategy: a script (`classic_script`, `consumer_script`) plays the members; `coordwire.coordinator` answers,
and `Recorder` writes down each request and response as a frame. The final state of the group is what its
members were given, so that a reader of the frames can be compared with it. Rules: correlation ids are unique
in the whole conversation; time goes forward, and ends no session; each member has a connection of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias
from uuid import UUID

from coordwire.capture.formats.pcap import as_pcap
from coordwire.codec import Message
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
from coordwire.frames import encode_request, encode_response
from coordwire.messages import OffsetCommitRequest
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic

__all__ = ["ConversationCommit", "ConversationFrame", "GroupConversation", "GroupScript", "Recorder"]

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
