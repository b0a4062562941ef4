"""One client's connection: bytes from a transport to requests, answers to bytes.

Strategy: an asyncio protocol around `coordwire.Connection`, whose states are in `link_state`. As with a Kafka
broker, a connection's requests are handled one after the other: while one has no answer, or the client has
not taken its answers, no other is handled. A handler that waits is a coroutine, which continues when its
promise is fulfilled (`cluster.promise`). What was received is handled at once, for one turn; what remains
after that waits for the next turn (`turns`). Rules: `ConnectionMemory` counts what all connections hold, and
decides when reading pauses; nothing that a client sends raises; a request that no broker would answer closes
the connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.promise import HandlerRun
from coordwire.broker.connections.connection_memory import ConnectionMemory
from coordwire.broker.connections.link_state import LinkState
from coordwire.broker.connections.other_protocols import other_protocol
from coordwire.broker.connections.turns import REQUEST, Turns
from coordwire.broker.connections.version_fit import fit, fitted
from coordwire.broker.handlers import ApiCall, Handler, InvalidRequest, offered, unsupported_versions_response
from coordwire.broker.handlers.authorization import authorized
from coordwire.broker.handlers.produce_api import has_error
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.injection.faulted_call import Timer, faulted
from coordwire.broker.security.authentication import AuthenticationFailed, SaslMechanisms, SaslSession
from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import ConnectionFailed, Event, FrameRefused, RequestReceived, TokenReceived
from coordwire.connection.kafka import LastingClient
from coordwire.coordinator.apis import ALWAYS
from coordwire.errors import EncodeError, UnsupportedVersion
from coordwire.frames import RequestFrame
from coordwire.messages import ProduceResponse
from coordwire.versions import ApiKey

if TYPE_CHECKING:
    from coordwire.broker.connections.recorded_connection import ConnectionRecorder, RecordedConnection

log = logging.getLogger("coordwire.broker")

_GATHERED = 1 << 16
"""Bytes of answers that are written at once."""

_UNSENT = 1 << 18
"""The most bytes of answers that may be unsent when the next request is handled."""

_TLS_WRITE = 1 << 18
"""The most bytes given to TLS at once: it encrypts all of them before it counts what is unsent."""

_IDLE, _QUEUED, _RUNNING, _HANDLING, _WAITING, _DRAINING, _STARVED, _CLOSED = LinkState


class Hub(Protocol):
    """The part of the broker that a link needs."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def turns(self) -> Turns: ...

    @property
    def memory(self) -> ConnectionMemory: ...

    @property
    def read_buffer(self) -> memoryview: ...

    @property
    def sasl(self) -> SaslMechanisms: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def recorder(self) -> ConnectionRecorder | None: ...

    def join(self, link: ClientLink) -> bool:
        """A connection was made; whether there may be another."""

    def leave(self, link: ClientLink) -> None:
        """A connection has ended."""

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Run this after some time."""

    def handled(self) -> None:
        """Requests were handled: deadlines may have changed."""


class ClientLink(asyncio.BufferedProtocol):
    """A connection of the node `node`. held_bytes: bytes of memory that it is charged for."""

    __slots__ = (
        "_apis", "_client", "_congested", "_connection", "_gathered", "_granted", "_host", "_hub", "_is_tls",
        "_node", "_opening", "_out", "_peer", "_pending", "_reading", "_received", "_record", "_release",
        "_run", "_sasl", "_spent", "_state", "_transport", "_written", "held_bytes",
    )  # fmt: skip

    def __init__(self, hub: Hub, node: int) -> None:
        self._hub = hub
        self._node = node
        self._connection = Connection("server")
        self._client = LastingClient()
        self._transport: asyncio.Transport | None = None
        self._is_tls = False
        self._record: RecordedConnection | None = None
        self._host = "/127.0.0.1"
        self._peer = "127.0.0.1"
        self._opening = b""
        """The first bytes that came."""
        self._state = _IDLE
        self._reading = True
        """The transport reads."""
        self._congested = False
        """The transport holds bytes that the client has not taken."""
        self._out: list[bytes] = []
        self._gathered = 0
        self._spent = 0
        """The work of this turn."""
        self._granted = 0
        """The size of the frame that is not whole and has a grant of memory."""
        self._received = self._written = 0
        self.held_bytes = 0
        self._pending: RequestReceived | None = None
        """The request that is handled, and has no answer."""
        self._run: HandlerRun[Message | None] | None = None
        """Its handler, if that waits."""
        self._sasl = SaslSession(hub.sasl) if hub.sasl.offered else None
        self._release = hub.cluster.config.release
        self._apis = offered(self._release)

    @property
    def node(self) -> int:
        """The id of the broker that it is a connection of."""
        return self._node

    # --- the transport's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = connected = cast("asyncio.Transport", transport)  # uvloop's is of another class
        connected.set_write_buffer_limits(high=1, low=0)  # what was not taken is always known
        self._is_tls = connected.get_extra_info("sslcontext") is not None
        peer = connected.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._host = f"/{peer[0]}"
            self._peer = f"{peer[0]}:{peer[1]}"
        if not self._hub.join(self):
            self._refuse("there are max_connections already")
            self.abort()
            return
        log.debug("connection from %s", self._peer)
        if self._hub.recorder is not None and isinstance(peer, tuple):
            own = connected.get_extra_info("sockname")
            self._record = self._hub.recorder(peer[:2], own[:2])

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer, size = self._hub.read_buffer, self._hub.memory.read_size
        return buffer if self._granted or size >= len(buffer) else buffer[:size]

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._hub.read_buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """Handle the bytes that came for one turn, unless earlier bytes wait for theirs."""
        if self._record is not None:
            self._record.add(data, to_client=False)
        if not self._received:
            self._opening = data[:8]
        self._received += len(data)
        self._connection.receive_data(data)
        if self._state is _IDLE:
            turns = self._hub.turns
            if turns.may_work:
                self._work(turns.share)
                turns.count_work(self._spent)
            else:
                self._go_on()
                self._account()
        elif self._state is not _CLOSED:
            self._pause()
            self._account()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        log.debug("connection from %s ended", self._peer)
        if self._record is not None:
            ends, reset = self._state is _CLOSED, isinstance(exc, ConnectionResetError)
            self._record.close(by_broker=ends and not reset, aborted=reset)
        self._transport = None
        self._state = _CLOSED
        self._hub.leave(self)
        self._hub.memory.forget(self)
        run, self._run, self._pending = self._run, None, None
        if run is not None:
            run.close()
        self._connection.close()

    def pause_writing(self) -> None:
        self._congested = True

    def resume_writing(self) -> None:
        self._congested = False
        self._hub.memory.take(self)
        if self._state is _DRAINING:
            self._go_on()
        self._account()

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        self._state = _CLOSED
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        """End the connection after what was written."""
        self._flush()
        self._state = _CLOSED
        self._hub.memory.forget(self)
        if self._transport is not None:
            self._transport.close()
            if self._congested:  # until the client has taken it
                self._account()

    # --- memory ---

    @property
    def progress(self) -> int:
        unsent = _unsent(self._transport) if self._transport is not None else 0
        return self._received + self._written - unsent

    def granted(self, size: int) -> None:
        self._granted = size
        self._enter_idle()

    def evict(self, reason: str) -> None:
        log.warning("closed %s: %s", self._peer, reason)
        self.abort()

    def _account(self) -> None:
        """Report the bytes that are held."""
        memory, size = self._hub.memory, 0
        if self._transport is not None and self._state is not _CLOSED:
            size = max(self._connection.buffered, self._granted)
            if self._pending is not None:
                size += self._pending.frame.size
        if self._congested and self._transport is not None:
            memory.hold(self, size + _unsent(self._transport))
            memory.leave(self)
        elif size != self.held_bytes:
            memory.hold(self, size)

    @property
    def _is_full(self) -> bool:
        """Whether the client has to take answers before its next request is handled."""
        most = 0 if self._hub.memory.is_scarce else _UNSENT
        return self._transport is not None and _unsent(self._transport) > most

    # --- turns ---

    def take_turn(self, share: int) -> int:
        if self._state is not _QUEUED:  # it has ended
            return 0
        self._work(share)
        return self._spent

    def _work(self, share: int) -> None:
        """Handle what was received, until the share is used up or a request has to wait."""
        self._state = _RUNNING
        self._spent = 0
        is_exhausted = False
        for event in self._connection.events():
            if not self._take(event):
                self._close()
                break
            if self._gathered > _GATHERED:
                self._flush()
                if self._congested and self._is_full:
                    break
            if self._state is not _RUNNING or self._spent >= share:
                break
        else:
            is_exhausted = True
        self._flush()
        if self._granted and self._spent:
            self._granted = 0
            self._hub.memory.finish(self)
        is_empty = is_exhausted and not self._connection.unread
        if self._state is _RUNNING:
            if not is_exhausted or (self._congested and self._is_full):
                self._go_on()
            elif is_empty:
                self._enter_idle()
            else:
                self._wait_for_data()
        if self.held_bytes or self._congested or not is_empty:
            self._account()
        self._hub.handled()

    def _go_on(self) -> None:
        """Queue for the remaining events, once the client has taken its answers."""
        if self._congested and self._is_full:
            self._state = _DRAINING
        elif self._connection.unread:
            self._state = _QUEUED
            self._hub.turns.add(self)
        else:
            self._enter_idle()

    def _wait_for_data(self) -> None:
        """Read on, unless a large frame has begun and there is no memory for it."""
        granted: int | None = self._granted
        if not granted:
            announced, unread = self._connection.announced, self._connection.unread
            granted = self._hub.memory.admit(self, announced, unread)
        if granted is None:
            self._state = _STARVED
            self._pause()
        else:
            self._granted = granted
            self._enter_idle()

    def _enter_idle(self) -> None:
        self._state = _IDLE
        if not self._reading and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()

    def _take(self, event: Event) -> bool:
        """Handle one event; False if the connection is to be closed."""
        if isinstance(event, RequestReceived) and isinstance(event.frame, RequestFrame):
            return self._request(event, event.frame)
        self._spent += REQUEST
        if isinstance(event, FrameRefused):
            is_question = isinstance(event.error, UnsupportedVersion) and event.api_key == ApiKey.API_VERSIONS
            if is_question and self._allowed(ApiKey.API_VERSIONS):
                answer = unsupported_versions_response(self._release)
                self._write(self._connection.send(answer, request=event))
                return True
            return self._refuse(f"{event.error}")
        if isinstance(event, TokenReceived) and self._sasl is not None:
            return self._token(self._sasl, event.token)
        if isinstance(event, ConnectionFailed):
            return self._refuse(other_protocol(self._opening) or f"{event.error}")
        return False

    def _refuse(self, reason: str) -> bool:
        """Report why the connection is to be closed; False."""
        log.info("refused %s: %s", self._peer, reason)
        return False

    def _token(self, sasl: SaslSession, token: bytes) -> bool:
        """Answer a bare token of SASL; False if the connection is to be closed."""
        try:
            answer = sasl.token(token)
        except AuthenticationFailed:
            return self._refuse("authentication failed")
        self._write(self._connection.send_token(answer))
        if not sasl.is_exchanging:
            self._connection.end_tokens()
        return True

    def _request(self, event: RequestReceived, frame: RequestFrame) -> bool:
        key, version = frame.api_key, frame.api_version
        self._spent += REQUEST + frame.size
        if not self._allowed(key):
            return False
        api = self._apis.get(key)
        if api is None or not api.first <= version <= api.last:
            if key == ApiKey.API_VERSIONS:
                answer = unsupported_versions_response(self._release)
                self._write(self._connection.send(answer, version=0, request=event))
                return True
            return self._refuse(f"{_name(key)} version {version} is not offered")
        sasl = self._sasl
        handler: Handler = api.handler
        if self._sasl is not None and key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
            handler = self._authenticate
        hub = self._hub
        call = ApiCall(
            hub.cluster,
            self._node,
            frame.message,
            version,
            self._client.of(frame),
            self._host,
            memory=hub.memory,
            connection=self,
        )
        if hub.cluster.authorizer is not None or key in ALWAYS:
            handler = partial(authorized, api_key=key, handler=handler)
        if sasl is not None and sasl.user is not None:
            call.user = sasl.user
        self._state, self._pending = _HANDLING, event
        try:
            faults = hub.faults
            result = faulted(faults, call, key, handler, self) if faults.active else handler(call)
            if isinstance(result, Message):
                response: Message | None = result
            else:
                self._run = HandlerRun(result, self._resume)
                response = self._run.advance()
        except Exception as error:
            return self._failed(error, frame)
        if self._state is not _HANDLING:  # a fault has closed it
            return False
        if response is not None:
            self._state = _RUNNING
            return self._send(response)
        self._state = _WAITING
        return True

    def _resume(self) -> None:
        """Continue the handler that waits, and send its answer if it ends."""
        run, event = self._run, self._pending
        if run is None or event is None or not isinstance(event.frame, RequestFrame):
            return
        try:
            response = run.advance()
        except Exception as error:
            self._failed(error, event.frame)
            self._close()
            return
        if response is None or self._state is not _WAITING:
            return
        if not self._send(response):
            self._close()
            return
        self._flush()
        if self._state is _WAITING:
            self._go_on()
            self._account()

    def _failed(self, error: Exception, frame: RequestFrame) -> bool:
        """Report why a handler gave no answer; False, since the connection is to be closed."""
        if isinstance(error, InvalidRequest):
            log.info("connection from %s closed: %s", self._host[1:], error)
        else:
            name, version = type(frame.message).__name__, frame.api_version
            log.error("%s version %d from %s failed", name, version, self._peer, exc_info=error)
        return False

    def _allowed(self, key: int) -> bool:
        """Whether the client may send such a request now."""
        if self._sasl is None or self._sasl.allows(key):
            return True
        return self._refuse(f"{_name(key)} before authentication")

    def _authenticate(self, call: ApiCall) -> Message:
        assert self._sasl is not None
        answer = self._sasl.handle(call.request, call.version)
        assert answer is not None  # both requests of SASL have one
        if self._sasl.ended:
            self._refuse("authentication failed")
        return answer

    # --- for faults ---

    def hang_up(self) -> None:
        """Close the connection; what was answered before is sent."""
        if self._state is _HANDLING:
            self._state = _CLOSED  # which ends the turn
        else:
            self._close()

    def send_half(self, response: Message) -> None:
        """Send the first half of an answer, and close the connection."""
        event = self._pending
        if event is not None and event.expects_response and self._transport is not None:
            fit(response, event.frame.api_version)
            data = self._connection.send(response, request=event)
            self._write(data[: len(data) // 2])
        self.hang_up()

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        return self._hub.call_later(seconds, action)

    def request_handled(self) -> None:
        self._hub.handled()

    def _send(self, response: Message) -> bool:
        """Answer the request that waits; False if the connection is to be closed."""
        event, self._pending, self._run = self._pending, None, None
        if event is None:
            return True
        if not event.expects_response:
            return not (isinstance(response, ProduceResponse) and has_error(response))
        try:
            data = fitted(self._connection, response, event)
        except EncodeError:
            log.exception("the answer to %s cannot be encoded", type(event.request).__name__)
            return False
        self._write(data)
        return self._sasl is None or not self._sasl.ended

    def _write(self, data: bytes) -> None:
        self._out.append(data)
        size = len(data)
        self._gathered += size
        self._spent += size

    def _flush(self) -> None:
        out = self._out
        if not out:
            return
        self._out, self._gathered = [], 0
        transport = self._transport
        if transport is None or _is_closing(transport):  # asyncio warns of each write to it
            self._state = _CLOSED
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        if self._record is not None:
            self._record.add(data, to_client=True)
        self._written += len(data)
        if self._is_tls and len(data) > _TLS_WRITE:
            view = memoryview(data)
            for at in range(0, len(data), _TLS_WRITE):
                transport.write(view[at : at + _TLS_WRITE])
        else:
            transport.write(data)


def _name(api_key: int) -> str:
    """An API's name, for people."""
    try:
        return ApiKey(api_key).name
    except ValueError:
        return f"API key {api_key}"


# A test's own transport may lack methods that the test does not need.


def _unsent(transport: asyncio.Transport) -> int:
    """How many bytes were written that the system has not taken."""
    try:
        return transport.get_write_buffer_size()
    except NotImplementedError:
        return 0


def _is_closing(transport: asyncio.Transport) -> bool:
    try:
        return transport.is_closing()
    except NotImplementedError:
        return False
