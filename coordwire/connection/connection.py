"""One connection without its socket: bytes in, events out; messages in, bytes out. For both sides.

Strategy: a `Connection` is the public face of one endpoint: Kafka's own client or server, or a side of an
older dialect. `events()` reads one frame at a time, so that what the caller sends between two events (the
answer to a SaslHandshake) applies to the next. Rules: no I/O and no clock; chunk boundaries never matter;
nothing that a peer sends raises, it becomes an event; what the caller does wrong raises `EncodeError` and
changes nothing. Lenient by default, as real brokers and clients are.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Literal

from coordwire.codec import Message
from coordwire.codec.message import Buffer
from coordwire.connection.dialect import AnyDialect
from coordwire.connection.endpoint import Endpoint
from coordwire.connection.events import ConnectionClosed, Event, FrameRefused, RequestReceived, SentRequest
from coordwire.connection.kafka import KafkaClient, KafkaServer, encode_token
from coordwire.connection.state import ConnectionState, Transition
from coordwire.errors import counted


class Role(Enum):
    """Which side of the connection this is.

    >>> from coordwire import Connection, Role
    >>> Connection(Role.SERVER).role
    <Role.SERVER: 'server'>
    """

    CLIENT = "client"
    SERVER = "server"


class Connection:
    """The state of one connection.

    role: which side this is, `Role.CLIENT` or "client", `Role.SERVER` or "server". client_id: what a client's
    requests carry. strict: refuse what Apache Kafka's own decoder would still read, which else is in the
    frame's `deviations`. The size of a frame is limited by `coordwire.limits(frame=…)`.

    dialect: the protocol, if it is not Kafka's (`coordwire.dialects`). There either side may send
    requests. Raises `ValueError` for an unknown role.

        >>> from coordwire import Connection
        >>> from coordwire.messages import HeartbeatRequest, HeartbeatResponse
        >>> client, server = Connection("client", client_id="till-3"), Connection("server")
        >>> server.receive_data(client.send(HeartbeatRequest(group_id="g"), version=4))
        >>> (received,) = server.events()
        >>> client.receive_data(server.send(HeartbeatResponse(error_code=27), request=received))
        >>> [event.response.error_code for event in client.events()]
        [27]
        >>> client
        <Connection client open: 0 unanswered, 0 bytes unread>
    """

    def __init__(
        self,
        role: Role | Literal["client", "server"],
        *,
        client_id: str | None = None,
        strict: bool = False,
        dialect: AnyDialect | None = None,
    ) -> None:
        self.role = _role(role)
        self._client_id = client_id
        self._endpoint: Endpoint
        if dialect is not None:
            self._endpoint = dialect.endpoint(self.role.value, client_id=client_id, strict=strict)
        elif self.role is Role.CLIENT:
            self._endpoint = KafkaClient(client_id, strict=strict)
        else:
            self._endpoint = KafkaServer(strict=strict)
        self._append, self._send = self._endpoint.buffer.append, self._endpoint.send

    def __repr__(self) -> str:
        waiting, unread = len(self.unanswered), counted(self.unread, "byte")
        return f"<Connection {self.role.value} {self.state.value}: {waiting} unanswered, {unread} unread>"

    @property
    def client_id(self) -> str | None:
        """The client id of a client's requests."""
        return self._client_id

    @property
    def strict(self) -> bool:
        """Whether what lenient decoding would tolerate is refused."""
        return self._endpoint.strict

    @property
    def state(self) -> ConnectionState:
        """The state: what the connection can do next."""
        return self._endpoint.state

    @property
    def unanswered(self) -> list[SentRequest]:
        """Our requests that wait for their answers, the oldest first."""
        return self._endpoint.unanswered()

    @property
    def unread(self) -> int:
        """Bytes received that no event has given yet: not 0 while a frame has begun and not ended."""
        return len(self._endpoint.buffer)

    @property
    def buffered(self) -> int:
        """Bytes of memory that hold what was received: at most twice the unread ones, once there are no more
        events."""
        return self._endpoint.buffer.buffered

    @property
    def announced(self) -> int:
        """The size of the frame that comes next, with its prefix; 0 while that is not known."""
        return self._endpoint.buffer.announced

    # --- receiving ---

    def receive_data(self, data: Buffer) -> None:
        """Add what the socket returned; b"" means that the peer closed. `events()` then gives what it was.

        Once the connection has ended, data is ignored.
        """
        self._append(data)

    def events(self) -> Iterator[Event]:
        """The events since the last call. Ends when more bytes are needed."""
        return self._endpoint.events()

    def next_event(self) -> Event | None:
        """The next event, None if more bytes are needed or the connection has ended.

        In a server's state HANDSHAKING None too, until the SaslHandshake is answered: whether tokens or
        requests follow it depends on the answer.
        """
        return next(self._endpoint.events(), None)

    # --- sending ---

    def send(
        self,
        message: Message,
        *,
        version: int | None = None,
        request: RequestReceived | FrameRefused | None = None,
    ) -> bytes:
        """The bytes to send for a message.

        A client gives the `version`; the connection numbers the request and waits for its answer. A server
        gives the `request` that it answers, and a `version` only where that differs from the request's (an
        ApiVersions refusal: 0). Responses go out in the order of their requests. A request that was refused
        (`FrameRefused`) may be answered too: an ApiVersions of a version that this package doesn't know gets
        its answer in version 0, from which clients learn what to ask with (KIP-511).

        In the other dialects either side may send requests; a response gives the `request` that it answers,
        and neither needs a `version`, except a response that may or may not have offsets, when no
        registration has decided it.

        Raises `EncodeError` if the message cannot be encoded, or not in this state; then nothing has changed.
        """
        return self._send(message, version, request)

    def send_token(self, token: bytes) -> bytes:
        """The bytes of a bare SASL token, between a SaslHandshake v0 and `end_tokens`.

        Raises `EncodeError` in any state but AUTHENTICATING.
        """
        self._endpoint.expect("send_token", ConnectionState.AUTHENTICATING)
        return encode_token(token)

    def end_tokens(self) -> None:
        """Note that the SASL mechanism is done: from now on frames have headers again.

        Raises `EncodeError` in any state but AUTHENTICATING.
        """
        self._endpoint.expect("end_tokens", ConnectionState.AUTHENTICATING)
        self._endpoint.change_state(Transition.TOKENS_ENDED)

    def close(self) -> ConnectionClosed:
        """Note that we close: nothing more is sent or received.

        Returns what was not read, and our requests that have no answer. A connection that has ended keeps its
        state.
        """
        return self._endpoint.close(Transition.CLOSED)


def _role(role: object) -> Role:
    for known in Role:
        if role is known or role == known.value:
            return known
    raise ValueError(f'expected Role.CLIENT, Role.SERVER, "client" or "server" as role, got {role!r}')
