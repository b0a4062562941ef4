"""One end of a connection, of any protocol: its buffer, its state, and how it ends.

Strategy: the bytes flow one way: buffer, frame, event. A subclass turns a frame's bytes into an event and
messages into bytes; this class does what all have in common. Rules: as `Connection`'s, which is the public
face of an endpoint. `next_event` is the slow path, which words every refusal; a subclass's `events` may try a
faster one first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from coordwire.codec import Message
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
    SentRequest,
    TokenReceived,
)
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.connection.state import ConnectionState, Transition, illegal, next_state
from coordwire.errors import DecodeError


class Endpoint(ABC):
    """One end of a connection. strict: refuse what Apache Kafka's own decoder would still read."""

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict
        self.state = ConnectionState.OPEN
        self.buffer = ReceiveBuffer()

    @abstractmethod
    def unanswered(self) -> list[SentRequest]:
        """Our requests that wait for their answers, the oldest first."""

    @abstractmethod
    def send(
        self, message: Message, version: int | None, request: RequestReceived | FrameRefused | None
    ) -> bytes:
        """As `Connection.send`."""

    @abstractmethod
    def read(self, body: bytes) -> Event:
        """The event for a frame's bytes after its size prefix."""

    def events(self) -> Iterator[Event]:
        """As `Connection.events`."""
        while (event := self.next_event()) is not None:
            yield event

    def next_event(self) -> Event | None:
        """The next event, one frame at a time."""
        state = self.state
        if state is not ConnectionState.OPEN and state.is_over:
            return None
        try:
            body = self.buffer.next_frame()
        except DecodeError as error:
            return self.fail(error)
        if body is not None:
            if state is ConnectionState.AUTHENTICATING:
                return TokenReceived(token=body)
            return self.read(body)
        return self.close(Transition.PEER_CLOSED) if self.buffer.ended else None

    def fail(self, error: DecodeError) -> ConnectionFailed:
        """End the connection because of its bytes."""
        self.change_state(Transition.FAILED)
        self.buffer.close()
        return ConnectionFailed(error=error)

    def close(self, cause: Transition) -> ConnectionClosed:
        """End the connection, if it has not ended yet."""
        self.change_state(cause)
        return ConnectionClosed(remainder=self.buffer.close(), unanswered=self.unanswered())

    def change_state(self, cause: Transition) -> None:
        """Take the state that follows; the only place where a state changes."""
        self.state = next_state(self.state, cause)

    def expect(self, operation: str, *states: ConnectionState) -> None:
        """Raise `EncodeError` unless the state is one of these."""
        if self.state not in states:
            raise illegal(operation, self.state, *states)
