"""The events of a `Connection`, one class for each.

Rules: an event carries the frame or error that it is about. In the dialects other than Kafka's, where either
side may send requests, "server" and "client" below are the side that answers and the side that asked; their
frames are `DialectFrame`s, and type ids take the place of api keys. Events are plain slotted classes, not
frozen ones, which take several times as long to make; only their owner changes them.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Generic, Protocol, TypeGuard, TypeVar

from coordwire._dataclasses import dataclass
from coordwire.codec import Message, Request, Response
from coordwire.codec.message import M_co
from coordwire.errors import DecodeError, Deviation
from coordwire.frames import RequestFrame, ResponseFrame
from coordwire.messages.headers import RequestHeader

if TYPE_CHECKING:
    from coordwire.messages.api_versions import ApiVersionsResponse

R = TypeVar("R", bound=Response)

__all__ = [
    "ConnectionClosed",
    "ConnectionFailed",
    "DialectFrame",
    "Event",
    "FrameRefused",
    "RequestReceived",
    "ResponseReceived",
    "SentRequest",
    "TokenReceived",
    "VersionsRefused",
    "is_response_to",
]


class DialectFrame(Protocol[M_co]):
    """A request or response in a protocol other than Kafka's. api_key: its type id there; size: its bytes
    after the prefix."""

    @property
    def dialect(self) -> str: ...
    @property
    def message(self) -> M_co: ...
    @property
    def size(self) -> int: ...
    @property
    def api_key(self) -> int: ...
    @property
    def api_version(self) -> int: ...
    @property
    def api_name(self) -> str: ...
    @property
    def correlation_id(self) -> int: ...
    @property
    def client_id(self) -> str | None: ...
    @property
    def deviations(self) -> list[Deviation]: ...


@dataclass(slots=True)
class SentRequest:
    """A request that a client sent.

    >>> from coordwire import Connection
    >>> from coordwire.messages import HeartbeatRequest
    >>> client = Connection("client")
    >>> data = client.send(HeartbeatRequest(), version=4)
    >>> [(sent.api_key, sent.version, sent.correlation_id) for sent in client.unanswered]
    [(12, 4, 0)]
    """

    message: Message
    api_key: int
    version: int
    correlation_id: int


@dataclass(slots=True)
class RequestReceived:
    """A server received a request. `expects_response` is False where it has no response (Produce with
    acks=0).

        >>> from coordwire import Connection, encode_request
        >>> from coordwire.messages import HeartbeatRequest
        >>> server = Connection("server")
        >>> server.receive_data(encode_request(HeartbeatRequest(group_id="g"), version=4, correlation_id=1))
        >>> [(event.request.group_id, event.frame.api_version) for event in server.events()]
        [('g', 4)]
    """

    frame: RequestFrame | DialectFrame[Message]
    expects_response: bool = True

    @property
    def request(self) -> Message:
        """The request itself."""
        return self.frame.message

    @property
    def deviations(self) -> list[Deviation]:
        """The deviations that lenient decoding tolerated."""
        return self.frame.deviations


@dataclass(slots=True)
class ResponseReceived(Generic[M_co]):
    """A client received the response to `request`. For type checkers, `ResponseReceived[M]` holds a response
    of class M; `is_response_to` finds one.

        >>> from coordwire import Connection, encode_response
        >>> from coordwire.messages import HeartbeatRequest, HeartbeatResponse
        >>> client = Connection("client")
        >>> data = client.send(HeartbeatRequest(group_id="g"), version=4)
        >>> answer = HeartbeatResponse(error_code=27)
        >>> client.receive_data(encode_response(answer, version=4, correlation_id=0))
        >>> [(event.request.message.group_id, event.response.error_code) for event in client.events()]
        [('g', 27)]
    """

    request: SentRequest
    frame: ResponseFrame[M_co] | DialectFrame[M_co]

    @property
    def response(self) -> M_co:
        """The response itself."""
        return self.frame.message

    @property
    def deviations(self) -> list[Deviation]:
        """The deviations that lenient decoding tolerated."""
        return self.frame.deviations


@dataclass(slots=True, kw_only=True)
class VersionsRefused:
    """A broker does not support the version of our ApiVersions request (error code 35).

    retry_with: the newest version that both sides support: what the broker lists for key 18, else 0.
    response: its answer, as far as it could be read; error: why it could not be read further, None if it
    was complete.

        >>> from coordwire import Connection, encode_response
        >>> from coordwire.messages import ApiVersionsRequest, ApiVersionsResponse
        >>> client = Connection("client")
        >>> data = client.send(ApiVersionsRequest(), version=4)
        >>> refusal = ApiVersionsResponse(error_code=35)
        >>> client.receive_data(encode_response(refusal, version=0, correlation_id=0))
        >>> [event.retry_with for event in client.events()]
        [0]
    """

    request: SentRequest
    retry_with: int
    response: ApiVersionsResponse | None
    error: DecodeError | None = None
    deviations: list[Deviation] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class FrameRefused:
    """A whole frame that cannot be decoded; the connection continues after it.

    body: its bytes after the size prefix. error: where, what and why. request: the request that it answers,
    where that is known (clients only). correlation_id: of the request or response, api_key, api_version: of
    the request, where the frame is long enough to hold them. A server may answer the refused request
    (`Connection.send`), once those before it are answered.

        >>> from coordwire import Connection
        >>> server = Connection("server")
        >>> server.receive_data(bytes.fromhex("0000000a 03e7 0000 00000001 ffff"))
        >>> [(event.api_key, type(event.error).__name__) for event in server.events()]
        [(999, 'UnknownApi')]
    """

    body: bytes
    error: DecodeError
    request: SentRequest | None = None
    correlation_id: int | None = None
    api_key: int | None = None
    api_version: int | None = None
    after: RequestHeader | None = field(default=None, repr=False, compare=False)
    """Of the last request that waited for its answer when this one was refused."""


@dataclass(slots=True, kw_only=True)
class TokenReceived:
    """An opaque SASL token, sent without a header between a SaslHandshake v0 and the end of the mechanism.

    >>> from coordwire import Connection, encode_request
    >>> from coordwire.messages import SaslHandshakeRequest, SaslHandshakeResponse
    >>> server = Connection("server")
    >>> request = SaslHandshakeRequest(mechanism="PLAIN")
    >>> server.receive_data(encode_request(request, version=0, correlation_id=0))
    >>> (handshake,) = server.events()
    >>> data = server.send(SaslHandshakeResponse(mechanisms=["PLAIN"]), request=handshake)
    >>> server.receive_data(bytes.fromhex("00000003") + b"n,,")
    >>> list(server.events())
    [TokenReceived(token=b'n,,')]
    """

    token: bytes


@dataclass(slots=True, kw_only=True)
class ConnectionFailed:
    """The stream cannot be split into frames any more (a negative or too large size); nothing follows.

    >>> from coordwire import Connection
    >>> server = Connection("server")
    >>> server.receive_data(b"GET / HTTP/1.1")
    >>> [f"{type(event).__name__}: {event.error}" for event in server.events()]
    ['ConnectionFailed: a frame of 1195725856 bytes exceeds the budget of 104857600 at byte 0']
    """

    error: DecodeError


@dataclass(slots=True, kw_only=True)
class ConnectionClosed:
    """The connection was closed: by the peer as an event, by us as the result of `Connection.close`.

    remainder: received bytes that no event has given, such as those of an incomplete frame. unanswered: our
    requests that still waited.

        >>> from coordwire import Connection
        >>> server = Connection("server")
        >>> server.receive_data(bytes.fromhex("0000000a 000c"))
        >>> server.receive_data(b"")
        >>> [event.remainder.hex() for event in server.events()]
        ['0000000a000c']
    """

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


def is_response_to(
    event: Event | None, request: Request[R] | type[Request[R]]
) -> TypeGuard[ResponseReceived[R]]:
    """Whether an event is the response to this request, or to a request of this class.

    A type checker then knows the class of `event.response`. For Kafka's own requests only: those of the other
    dialects do not name a response.
    """
    if not isinstance(event, ResponseReceived):
        return False
    sent = event.request.message
    return isinstance(sent, request) if isinstance(request, type) else sent is request
