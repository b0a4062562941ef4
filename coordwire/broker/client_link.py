"""One client's connection: bytes from a transport to requests, answers to bytes.

Strategy: an asyncio protocol around `coordwire.Connection`. As with a Kafka broker, a connection's requests
are handled one after the other: while one has no answer, or the client does not read its answers, nothing
more is read from it. So what a connection holds is bounded: one frame and what was read with it, one answer,
and the transport's buffer. Rules: nothing that a client sends raises; what no broker would answer closes the
connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from coordwire.broker.authentication import AuthenticationFailed, SaslMechanisms, SaslSession
from coordwire.broker.cluster_state import ClusterState
from coordwire.broker.fitting import fit
from coordwire.broker.handlers import ApiCall, Handler, offered, unsupported_versions_response
from coordwire.broker.handlers.produce_api import has_error
from coordwire.broker.injection.fault_registry import Faults
from coordwire.broker.injection.faulted_call import Timer, faulted
from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.errors import EncodeError, NotInVersion, UnsupportedVersion
from coordwire.events import Event, FrameRefused, RequestReceived, TokenReceived
from coordwire.frames import RequestFrame
from coordwire.messages import ProduceResponse
from coordwire.versions import ApiKey

__all__ = ["ClientLink", "Hub", "Recording"]

log = logging.getLogger("coordwire.broker")

_GATHERED = 1 << 16
"""So many bytes of answers are written at once."""

_HIGH_WATER = 1 << 20
"""So many bytes may wait for a client that does not read, beside the answer that crossed the line."""


class Recording(Protocol):
    """What keeps the bytes of connections."""

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        """A connection was made; its number."""

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        """Bytes went over a connection."""


class Hub(Protocol):
    """What a link needs of the broker that it belongs to."""

    @property
    def cluster(self) -> ClusterState: ...

    @property
    def links(self) -> set[ClientLink]: ...

    @property
    def sasl(self) -> SaslMechanisms: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def traffic(self) -> Recording | None: ...

    def call_soon(self, action: Callable[[], None]) -> None:
        """Run this when the current call is done."""

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Run this after some time."""

    def handled(self) -> None:
        """Requests were handled: deadlines may have changed."""


class ClientLink(asyncio.Protocol):
    """A connection of the node `node`."""

    __slots__ = (
        "_apis", "_busy", "_call", "_connection", "_draining", "_gathered", "_handling", "_host", "_hub",
        "_node", "_number", "_out", "_pending", "_reading", "_refused", "_release", "_sasl", "_traffic",
        "_transport",
    )  # fmt: skip

    def __init__(self, hub: Hub, node: int) -> None:
        self._hub = hub
        self._node = node
        self._connection = Connection("server")
        self._transport: asyncio.Transport | None = None
        self._traffic: Recording | None = None
        self._number = -1
        self._host = "/127.0.0.1"
        self._handling = False
        """A handler is running."""
        self._refused = False
        """What the handler that is running answered cannot be sent."""
        self._busy = False
        """A request waits for its answer, which comes later."""
        self._draining = False
        """The client does not read what it was sent."""
        self._reading = True
        self._out: list[bytes] = []
        self._gathered = 0
        self._call: ApiCall | None = None
        self._pending: RequestReceived | None = None
        self._sasl = SaslSession(hub.sasl) if hub.sasl.offered else None
        self._release = hub.cluster.config.as_of
        self._apis = offered(self._release)

    @property
    def node(self) -> int:
        """The id of the broker that it is a connection of."""
        return self._node

    # --- the transport's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_HIGH_WATER)
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple):
            self._host = f"/{peer[0]}"
        self._hub.links.add(self)
        self._traffic = self._hub.traffic
        if self._traffic is not None and isinstance(peer, tuple):
            own = transport.get_extra_info("sockname")
            self._number = self._traffic.opened(peer[:2], own[:2])

    def data_received(self, data: bytes) -> None:
        if self._traffic is not None:
            self._traffic.add(self._number, data, to_client=False)
        self._connection.receive_data(data)
        if self._busy or self._draining:
            self._pause()
        else:
            self._process()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._hub.links.discard(self)
        call, self._call, self._pending = self._call, None, None
        if call is not None and call.on_close is not None:
            call.on_close()
        self._connection.close()

    def pause_writing(self) -> None:
        self._draining = True

    def resume_writing(self) -> None:
        self._draining = False
        self._hub.call_soon(self._process)

    def _pause(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def abort(self) -> None:
        """End the connection at once; what was not sent is lost."""
        if self._transport is not None:
            self._transport.abort()

    def _close(self) -> None:
        """End the connection after what was written."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    # --- requests ---

    def _process(self) -> None:
        """Handle what was received, until a request has to wait."""
        if self._transport is None or self._busy or self._draining:
            return
        for event in self._connection.events():
            if not self._take(event):
                self._close()
                return
            if self._gathered > _GATHERED:
                self._flush()
            if self._busy or self._draining:
                break
        self._flush()
        if not (self._busy or self._draining or self._reading) and self._transport is not None:
            self._reading = True
            self._transport.resume_reading()
        self._hub.handled()

    def _take(self, event: Event) -> bool:
        """Handle one event; False if the connection is to be closed."""
        if isinstance(event, RequestReceived) and isinstance(event.frame, RequestFrame):
            return self._request(event, event.frame)
        if isinstance(event, FrameRefused):
            is_question = isinstance(event.error, UnsupportedVersion) and event.api_key == ApiKey.API_VERSIONS
            if is_question and self._allowed(ApiKey.API_VERSIONS):
                answer = unsupported_versions_response(self._release)
                self._write(self._connection.send(answer, request=event))
                return True
            log.info("connection from %s closed: %s", self._host[1:], event.error)
        elif isinstance(event, TokenReceived) and self._sasl is not None:
            return self._token(self._sasl, event.token)
        return False

    def _token(self, sasl: SaslSession, token: bytes) -> bool:
        """Answer a bare token of SASL; False if the connection is to be closed."""
        try:
            answer = sasl.token(token)
        except AuthenticationFailed:
            log.info("connection from %s closed: authentication failed", self._host[1:])
            return False
        self._write(self._connection.send_token(answer))
        if not sasl.is_exchanging:
            self._connection.end_tokens()
        return True

    def _request(self, event: RequestReceived, frame: RequestFrame) -> bool:
        key, version = frame.api_key, frame.api_version
        if not self._allowed(key):
            return False
        api = self._apis.get(key)
        if api is None or not api.first <= version <= api.last:
            if key == ApiKey.API_VERSIONS:
                answer = unsupported_versions_response(self._release)
                self._write(self._connection.send(answer, version=0, request=event))
                return True
            log.info("connection from %s closed: no version %d of api key %d", self._host[1:], version, key)
            return False
        handler: Handler = api.handler
        if self._sasl is not None and key in (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE):
            handler = self._authenticate
        client = frame.header.client_id
        cluster = self._hub.cluster
        call = ApiCall(cluster, self._node, frame.message, version, client, self._host, self._answer)
        self._busy, self._call, self._pending = True, call, event
        self._handling, self._refused = True, False
        try:
            faults = self._hub.faults
            response = faulted(faults, call, key, handler, self) if faults.active else handler(call)
        except Exception:
            log.exception("%s version %d from %s failed", type(frame.message).__name__, version, self._host)
            return False
        finally:
            self._handling = False
        if response is not None:
            return self._send(response)
        return not self._refused

    def _allowed(self, key: int) -> bool:
        """Whether the client may send such a request now."""
        if self._sasl is None or self._sasl.allows(key):
            return True
        log.info("connection from %s closed: api key %d before authentication", self._host[1:], key)
        return False

    def _authenticate(self, call: ApiCall) -> Message | None:
        return self._sasl.handle(call.request, call.version) if self._sasl is not None else None

    # --- for faults ---

    def hang_up(self) -> None:
        """Close the connection; what was answered before is sent."""
        if self._handling:
            self._refused = True
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

    def worked(self) -> None:
        self._hub.handled()

    def _send(self, response: Message) -> bool:
        """Answer the request that waits; False if the connection is to be closed."""
        event, self._pending = self._pending, None
        self._busy, self._call = False, None
        if event is None:
            return True
        if not event.expects_response:
            return not (isinstance(response, ProduceResponse) and has_error(response))
        try:
            try:
                data = self._connection.send(response, request=event)
            except NotInVersion:
                fit(response, event.frame.api_version)
                data = self._connection.send(response, request=event)
            self._write(data)
        except EncodeError:
            log.exception("the answer to %s cannot be encoded", type(event.request).__name__)
            return False
        return self._sasl is None or not self._sasl.ended

    def _answer(self, response: Message) -> None:
        """An answer that a handler did not give at once, or gave by `ApiCall.reply`."""
        if self._transport is None:
            return
        sent = self._send(response)
        if self._handling:  # at once after all: `_process` goes on
            self._refused = not sent
        elif sent:
            self._flush()
            self._hub.call_soon(self._process)
        else:
            self._close()

    def _write(self, data: bytes) -> None:
        self._out.append(data)
        self._gathered += len(data)

    def _flush(self) -> None:
        out = self._out
        if out and self._transport is not None:
            data = out[0] if len(out) == 1 else b"".join(out)
            if self._traffic is not None:
                self._traffic.add(self._number, data, to_client=True)
            self._transport.write(data)
        self._out, self._gathered = [], 0
