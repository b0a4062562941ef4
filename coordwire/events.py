"""What a `Connection` says has happened, one class an event.

Rules: an event carries the frame or error that it is about; nothing that came from the peer raises. In the
dialects other than Kafka's, where either side may ask, "server" and "client" below are who answers and who
asked; frames are `DraftFrame`s, and their type ids stand for api keys.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordwire.codec import Message
from coordwire.draft_frames import DraftFrame
from coordwire.errors import DecodeError, Deviation
from coordwire.frames import RequestFrame, ResponseFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class SentRequest:
    """A request that a client sent and whose answer it may wait for."""

    message: Message
    api_key: int
    version: int
    correlation_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReceived:
    """A server got a request. `expects_response` is False where nobody answers it (Produce with acks=0)."""

    frame: RequestFrame | DraftFrame
    expects_response: bool = True

    @property
    def request(self) -> Message:
        return self.frame.message

    @property
    def deviations(self) -> list[Deviation]:
        return self.frame.deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseReceived:
    """A client got the answer to `request`."""

    request: SentRequest
    frame: ResponseFrame | DraftFrame

    @property
    def response(self) -> Message:
        return self.frame.message

    @property
    def deviations(self) -> list[Deviation]:
        return self.frame.deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsRefused:
    """A broker doesn't know the version of our ApiVersions request (error 35).

    retry_with: the newest version that both sides know: the broker's own word if it lists key 18, else 0.
    response: its answer, as far as it could be read; error: why not further, None if it was whole.
    """

    request: SentRequest
    retry_with: int
    response: Message | None
    error: DecodeError | None = None
    deviations: list[Deviation] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRefused:
    """A whole frame that can't be decoded; the connection goes on behind it.

    body: its bytes behind the size prefix; error: why, where and what; request: the request that it answers,
    where that is known (clients only); correlation_id: of the request or answer, where it could be read.
    """

    body: bytes
    error: DecodeError
    request: SentRequest | None = None
    correlation_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenReceived:
    """An opaque SASL token, which stands without any header between a SaslHandshake v0 and its end."""

    token: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFailed:
    """The stream can't be cut into frames any more (a negative or too large size); nothing follows."""

    error: DecodeError


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionClosed:
    """The peer closed. `remainder`: bytes of a frame that never became whole; `unanswered`: requests that
    still waited (clients only)."""

    remainder: bytes
    unanswered: list[SentRequest]


Event = (
    RequestReceived
    | ResponseReceived
    | VersionsRefused
    | FrameRefused
    | TokenReceived
    | ConnectionFailed
    | ConnectionClosed
)
