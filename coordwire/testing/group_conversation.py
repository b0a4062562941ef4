"""The frames between members and a coordinator, and the state of the group after them.

Strategy: a script (`classic_script`, `consumer_script`) plays the coordinator and lets `Recorder` write down
each request and response as a frame; the final state of the group is the script's own, so that a reader of
the frames can be compared with it. Rules: correlation ids are unique in the whole conversation; time goes
forward; each member has a connection of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from coordwire.capture.formats.pcap_writer import as_pcap
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response

__all__ = ["ConversationCommit", "ConversationFrame", "GroupConversation", "Recorder"]

START_NS = 1_790_000_000_000_000_000
STEP_NS = 1_000_000
"""Between two frames."""


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
    """A list of frames that grows. versions: of each API, by key."""

    def __init__(self, versions: Mapping[int, int]) -> None:
        self.versions = versions
        self.frames: list[ConversationFrame] = []
        self._time = START_NS

    def wait(self, milliseconds: int) -> None:
        """Advance the time."""
        self._time += milliseconds * 1_000_000

    def version(self, api_key: int) -> int:
        """The version of an API in this conversation."""
        return self.versions[api_key]

    def ask(self, connection: int, client_id: str, request: Message) -> ConversationFrame:
        """Record a request that is answered later."""
        key: Any = request.api_key
        version, number = self.versions[key], len(self.frames)
        data = encode_request(request, version=version, correlation_id=number, client_id=client_id)
        return self._add(ConversationFrame(self._time, connection, "request", key, version, number, data))

    def answer(self, request: ConversationFrame, response: Message) -> None:
        """Record the answer to a request."""
        data = encode_response(response, version=request.version, correlation_id=request.correlation_id)
        self._add(request._replace(time_ns=self._time, direction="response", data=data))

    def exchange(self, connection: int, client_id: str, request: Message, response: Message) -> None:
        """Record a request and its answer."""
        self.answer(self.ask(connection, client_id, request), response)

    def _add(self, frame: ConversationFrame) -> ConversationFrame:
        self.frames.append(frame)
        self._time += STEP_NS
        return frame
