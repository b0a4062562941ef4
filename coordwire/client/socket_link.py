"""Connections to brokers with a blocking socket, for scripts: what `coordwire.client.streams` and
`coordwire.client.link` do with asyncio.

Strategy: the same generators move the bytes; `SocketLink` sends a request, then waits for its answer. Rules:
as those of `coordwire.client.link`, but that requests do not overlap. Each wait is limited by what is left of
the whole request's time; a time that is over ends the connection, since its answer may still come; what fails
leaves no socket open; every failure is a `ClientError`.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from coordwire.client.authentication import Ask, BlockingCall, authenticate
from coordwire.client.background import start_call
from coordwire.client.errors import BrokerUnreachable, ClientError, located
from coordwire.client.link import renewal_ms
from coordwire.client.opening import Session, Transfer, ended, opening
from coordwire.client.requests import Delivered, fit_version
from coordwire.client.settings import Address, ClientSettings, shown_address
from coordwire.codec import Message, Response
from coordwire.connection import Connection
from coordwire.connection.events import ResponseReceived
from coordwire.connection.kafka import is_fire_and_forget

T = TypeVar("T")
READ_SIZE = 1 << 16


@dataclass(slots=True)
class OpenSocket:
    """A connection that has begun: its socket, its protocol state, and what the beginning has found."""

    address: Address
    socket: socket.socket
    connection: Connection
    session: Session

    def close(self) -> None:
        """End the connection."""
        with suppress(OSError):
            self.socket.close()


Remaining = Callable[[], float]
"""The seconds that are left; raises `TimeoutError` where none are."""


def time_limit(seconds: float) -> Remaining:
    """What is left of a time that begins now."""
    end = time.monotonic() + seconds

    def remaining() -> float:
        seconds_left = end - time.monotonic()
        if seconds_left <= 0:
            raise TimeoutError
        return seconds_left

    return remaining


def open_socket(address: Address, settings: ClientSettings, remaining: Remaining | None = None) -> OpenSocket:
    """Connect to a broker, with TLS and SASL as the settings have it. remaining: the time of the whole
    request, where that is less than a connection's.

    Raises `BrokerUnreachable`, `AuthenticationRefused`, `UnreadableAnswer`, `VersionUnavailable`; the reason
    names the address.
    """
    connection = Connection("client", client_id=settings.client_id)
    own_remaining = time_limit(settings.connection_timeout_ms / 1000)
    limit = own_remaining if remaining is None else lambda: min(own_remaining(), remaining())
    raw: socket.socket | None = None
    try:
        raw = _connected(address, limit)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if settings.tls is not None:
            raw.settimeout(limit())
            raw = settings.tls.wrap_socket(raw, server_hostname=address[0])
        session = run_transfer(opening(connection, settings.sasl), raw, limit)
        return OpenSocket(address, raw, connection, session)
    except BaseException as error:
        if raw is not None:
            raw.close()
        if isinstance(error, TimeoutError) and remaining is not None:
            remaining()  # raises where it is the time of the whole request that is over
        raise located(
            error,
            shown_address(address),
            limit_ms=settings.connection_timeout_ms,
            has_tls=settings.tls is not None,
        ) from None


def _connected(address: Address, remaining: Remaining) -> socket.socket:
    """A socket that is connected to the first of a host's addresses that accepts it."""
    host, port = address
    resolved = start_call(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    failure = OSError("the host has no address")
    places = resolved.result(remaining())
    for number, (family, kind, protocol, _, place) in enumerate(places):
        connecting = socket.socket(family, kind, protocol)
        try:
            connecting.settimeout(remaining() / (len(places) - number))
            connecting.connect(place)
        except OSError as error:
            connecting.close()
            failure = error
        else:
            return connecting
    raise failure


def run_transfer(transfer: Transfer[T], connected: socket.socket, remaining: Remaining) -> T:
    """Run a generator that sends and receives bytes. remaining: the seconds that are left."""
    try:
        step = next(transfer)
        while True:
            if isinstance(step, BlockingCall):
                step = transfer.send(run_call(step, remaining))
                continue
            _send_all(connected, step, remaining)
            connected.settimeout(remaining())
            step = transfer.send(connected.recv(READ_SIZE))
    except StopIteration as end:
        result: T = end.value
        return result


def run_call(call: BlockingCall, remaining: Remaining) -> Any:
    """The result of a function, awaited where it is awaitable. Raises `TimeoutError`."""

    async def awaited(result: Any) -> Any:
        return await result

    def run() -> Any:
        result = call.function()
        return asyncio.run(awaited(result)) if inspect.isawaitable(result) else result

    return start_call(run).result(remaining())


def _send_all(connected: socket.socket, data: bytes, remaining: Remaining) -> None:
    """Send bytes in the time that is left, of which `sendall` with TLS gives each piece all."""
    unsent = memoryview(data)
    while unsent:
        connected.settimeout(remaining())
        unsent = unsent[connected.send(unsent) :]


class SocketLink:
    """A connection that has begun. Made by `SocketLink.open`."""

    def __init__(self, opened: OpenSocket, settings: ClientSettings) -> None:
        self.address = opened.address
        self.session = opened.session
        self.is_open = self.is_idle = True
        self._opened = opened
        self._settings = settings
        self._no_answer: Response | None = None
        self._version = 0
        self._end = 0.0
        self._renewal = self._next_renewal(opened.session.lifetime_ms)

    @classmethod
    def open(cls, address: Address, settings: ClientSettings, remaining: Remaining) -> SocketLink:
        """Connect to a broker. Raises `ClientError`."""
        return cls(open_socket(address, settings, remaining), settings)

    def close(self) -> None:
        """End the connection."""
        self.is_open = False
        self._opened.close()

    def send(self, message: Message, version: int | None, remaining: Remaining) -> None:
        """Send a request. version: None for the newest that fits. Raises `ClientError`, `EncodeError`."""
        try:
            fit = fit_version(message, self.session.versions, version)
        except ClientError as error:
            error.reword(f"{shown_address(self.address)}: {error.reason}")
            raise
        self._check_peer()
        if time.monotonic() >= self._renewal:
            self._renew(remaining)
        self._write(message, fit.version, remaining)
        self._version, self.is_idle = fit.version, False
        self._no_answer = message.response_class() if is_fire_and_forget(message) else None  # type: ignore[attr-defined]

    def receive(self, remaining: Remaining) -> Delivered:
        """The answer to the request that was sent last. Raises `ClientError`."""
        self.is_idle = True
        if self._no_answer is not None:
            return Delivered(self._no_answer, self._version)
        return Delivered(self._read(remaining), self._version)

    def _check_peer(self) -> None:
        """Raise `BrokerUnreachable` where the broker has closed the connection since the last answer."""
        try:
            self._opened.socket.setblocking(False)
            self._opened.connection.receive_data(self._opened.socket.recv(READ_SIZE))
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError as error:
            raise self._failure(error, sent=False) from None
        if (event := self._opened.connection.next_event()) is not None:
            self.close()
            raise BrokerUnreachable(f"{shown_address(self.address)}: {ended(event).reason}")

    def _write(self, message: Message, version: int, remaining: Remaining) -> None:
        data = self._opened.connection.send(message, version=version)
        self._end = time.monotonic() + self._settings.request_timeout_ms / 1000
        try:
            _send_all(self._opened.socket, data, lambda: self._seconds(remaining))
        except OSError as error:
            raise self._failure(error) from None

    def _read(self, remaining: Remaining) -> Response:
        connection = self._opened.connection
        while (event := connection.next_event()) is None:
            try:
                self._opened.socket.settimeout(self._seconds(remaining))
                connection.receive_data(self._opened.socket.recv(READ_SIZE))
            except OSError as error:
                raise self._failure(error) from None
        if isinstance(event, ResponseReceived):
            response = event.response
            assert isinstance(response, Response)
            return response
        failure = ended(event)
        failure.reword(f"{shown_address(self.address)}: {failure.reason}")
        self.close()
        raise failure

    def _seconds(self, remaining: Remaining) -> float:
        seconds = min(self._end - time.monotonic(), remaining())
        if seconds <= 0:
            raise TimeoutError
        return seconds

    def _failure(self, error: OSError, *, sent: bool = True) -> Exception:
        """The client's error for the system's; the same one where the time of the whole request is over."""
        self.close()
        place = shown_address(self.address)
        if not isinstance(error, TimeoutError) or error.errno is not None:
            return BrokerUnreachable(f"{place}: {error.strerror or type(error).__name__}", sent=sent)
        if time.monotonic() < self._end:
            return error
        return BrokerUnreachable(
            f"{place}: no answer within {self._settings.request_timeout_ms} ms", sent=True
        )

    def _renew(self, remaining: Remaining) -> None:
        """Authenticate again, as the same user (KIP-368)."""
        sasl = self._settings.sasl
        assert sasl is not None  # or the session has no end
        steps = authenticate(sasl, self.session.versions)
        try:
            step = next(steps)
            while True:
                if isinstance(step, BlockingCall):
                    step = steps.send(run_call(step, remaining))
                    continue
                assert isinstance(step, Ask)  # bare tokens are of brokers whose sessions have no end
                self._write(step.message, step.version, remaining)
                step = steps.send(self._read(remaining))
        except StopIteration as end:
            self._renewal = self._next_renewal(end.value)
        except BaseException:  # the broker waits in the middle of an authentication
            self.close()
            raise

    def _next_renewal(self, lifetime_ms: int) -> float:
        return time.monotonic() + renewal_ms(lifetime_ms) / 1000
