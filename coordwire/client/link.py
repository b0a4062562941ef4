"""One connection to a broker with asyncio: requests go out as they come, answers go to those who wait.

Strategy: one task reads; a request waits on a future, by its correlation id. A session with an end is renewed
before a request that comes after most of its time (KIP-368), while other requests wait. Rules: an answer that
does not come within the request's time ends the connection, since those after it would wait as long, and so
does a request whose bytes the broker does not take; then every request that waits gets the reason. A request
is written once the broker has taken those before it. `close` leaves no task. Of the bytes of requests only so
many wait at the same time: they enter in their order, a request larger than the limit goes alone, and one
that is cancelled while it waits takes nothing. So do large answers, by the sizes that they announce.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

from coordwire.client.authentication import Ask, BlockingCall, SendToken, authenticate
from coordwire.client.cluster import KnownCluster
from coordwire.client.errors import BrokerUnreachable, ClientError, UnreadableAnswer
from coordwire.client.opening import ended
from coordwire.client.requests import Delivered, Fit, fit_version
from coordwire.client.settings import Address, ClientSettings, shown_address
from coordwire.client.streams import READ_SIZE, Stream, open_stream, run_call
from coordwire.codec import Message, Response
from coordwire.connection.events import Event, ResponseReceived
from coordwire.connection.kafka import is_fire_and_forget

MOST_LINKS = 200
"""Connections of one client; those that were idle longest are closed."""

MOST_RECEIVED = 256 << 20
"""Bytes of large frames that all connections of a client receive at the same time."""

LARGE = 1 << 20
"""The bytes of a frame from which on it waits until others leave room."""


class Window:
    """A limit in bytes, of one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.used_bytes = 0

    async def enter(self, size_bytes: int) -> None:
        """Wait until so many bytes fit, and take them."""
        if not self._waiting and self._fits(size_bytes):
            self.used_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn had come
                self.leave(size_bytes)
            raise

    def leave(self, size_bytes: int) -> None:
        """Give bytes back."""
        self.used_bytes -= size_bytes
        while self._waiting:
            following, turn = self._waiting[0]
            if not turn.done():
                if not self._fits(following):
                    return
                self.used_bytes += following
                turn.set_result(None)
            self._waiting.popleft()

    def _fits(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self._limit


_CORRELATION_ID = struct.Struct(">i")
_ID_POSITION = 8
_RENEWAL = 0.85
"""The part of a session's time after which it is renewed, as in Kafka's clients (85 to 95 %)."""


def renewal_ms(lifetime_ms: int) -> float:
    """After how many ms a session is renewed; infinity where it has no end."""
    return lifetime_ms * _RENEWAL if lifetime_ms > 0 else float("inf")


class _Link(Protocol):
    """A connection, as far as it matters whether it is kept."""

    @property
    def is_open(self) -> bool: ...
    @property
    def is_idle(self) -> bool: ...


def surplus_links(
    links: Mapping[Address, _Link], settings: ClientSettings, cluster: KnownCluster
) -> list[Address]:
    """The connections to end before another is opened: those that are over; idle ones to brokers that are
    not known any more; of too many, those that were idle longest. links: the one used last is the last."""
    surplus = [address for address, link in links.items() if not link.is_open]
    idle = [address for address, link in links.items() if link.is_open and link.is_idle]
    if len(links) > len(settings.bootstrap) + len(cluster.nodes):
        known = {*settings.bootstrap, *cluster.nodes.values()}
        surplus += [address for address in idle if address not in known]
        idle = [address for address in idle if address in known]
    return surplus + idle[: max(0, len(links) - len(surplus) - MOST_LINKS + 1)]


class BrokerLink:
    """A connection that has begun. Made by `BrokerLink.open`."""

    def __init__(self, stream: Stream, settings: ClientSettings, window: Window, received: Window) -> None:
        self.address = stream.address
        self.session = stream.session
        self._stream = stream
        self._settings = settings
        self._window = window
        self._received = received
        self._waiting: dict[int, asyncio.Future[Response]] = {}
        self._failure: ClientError | None = None
        self._requests = 0
        self._lock = asyncio.Lock()
        self._renewal = self._next_renewal(stream.session.lifetime_ms)
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, address: Address, settings: ClientSettings, window: Window, received: Window
    ) -> BrokerLink:
        """Connect to a broker. window, received: the bytes that all connections of a client have in flight,
        of requests and of large answers. Raises `ClientError`."""
        return cls(await open_stream(address, settings), settings, window, received)

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._failure is None

    @property
    def is_idle(self) -> bool:
        """Whether no request is on its way."""
        return not self._requests

    async def request(self, message: Message, version: int | None = None) -> Delivered:
        """The answer to a request. version: None for the newest that fits.

        Produce with acks=0 has no answer: an empty one, once its bytes are sent. Raises `ClientError`,
        `EncodeError`.
        """
        fit = self._fit(message, version)
        self._requests += 1
        try:
            await self._window.enter(fit.size_bytes)
            try:
                return await self._request(message, fit.version)
            finally:
                self._window.leave(fit.size_bytes)
        finally:
            self._requests -= 1

    async def _request(self, message: Message, version: int) -> Delivered:
        async with self._lock:
            if asyncio.get_running_loop().time() >= self._renewal:
                await self._renew()
            async with self._limited():
                await self._drain()
                number = self._send(message, version)
                if number is None:
                    await self._drain()
                    return Delivered(_no_answer(message), version)
        return Delivered(await self._answer(number), version)

    async def close(self) -> None:
        """End the connection; what waits gets `BrokerUnreachable`."""
        closed = BrokerUnreachable(f"{shown_address(self.address)}: the client closed the connection")
        self._end(self._failure or closed)
        self._task.cancel()
        try:
            await asyncio.wait([self._task])
        finally:  # also where it is cancelled
            await self._stream.close()

    def abort(self) -> None:
        """End the connection at once, where there is no time for `close`."""
        self._fail(BrokerUnreachable(f"{shown_address(self.address)}: the client closed the connection"))
        self._task.cancel()

    # --- sending ---

    def _fit(self, message: Message, version: int | None) -> Fit:
        try:
            return fit_version(message, self.session.versions, version)
        except ClientError as error:
            error.reword(f"{shown_address(self.address)}: {error.reason}")
            raise

    def _send(self, message: Message, version: int) -> int | None:
        """Send a request; the correlation id of its answer, None where it has none."""
        if self._failure is not None:
            raise BrokerUnreachable(self._failure.reason)
        data = self._stream.connection.send(message, version=version)
        self._stream.writer.write(data)
        if is_fire_and_forget(message):
            return None
        number: int = _CORRELATION_ID.unpack_from(data, _ID_POSITION)[0]
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return number

    async def _drain(self) -> None:
        with suppress(OSError):
            await self._stream.writer.drain()

    async def _answer(self, number: int) -> Response:
        try:
            async with self._limited():
                return await self._waiting[number]
        finally:
            self._waiting.pop(number, None)

    @asynccontextmanager
    async def _limited(self) -> AsyncIterator[None]:
        """End the connection where the broker takes longer than it may."""
        limit = self._settings.request_timeout_ms
        try:
            async with asyncio.timeout(limit / 1000):
                yield
        except TimeoutError:
            silence = f"{shown_address(self.address)}: no answer within {limit} ms"
            self._fail(BrokerUnreachable(silence, sent=True))
            raise BrokerUnreachable(silence, sent=True) from None

    async def _renew(self) -> None:
        """Authenticate again, as the same user."""
        sasl = self._settings.sasl
        assert sasl is not None  # or the session has no end
        steps = authenticate(sasl, self.session.versions)
        try:
            step = next(steps)
            while True:
                result: Any
                if isinstance(step, BlockingCall):
                    result = await run_call(step)
                elif isinstance(step, Ask):
                    number = self._send(step.message, step.version)
                    assert number is not None
                    result = await self._answer(number)
                else:
                    assert not isinstance(step, SendToken)  # of brokers whose sessions have no end
                step = steps.send(result)
        except StopIteration as end:
            self._renewal = self._next_renewal(end.value)
        except BaseException as error:  # the broker waits in the middle of an authentication
            place = shown_address(self.address)
            failure = BrokerUnreachable(f"{place}: the session was not renewed")
            self._fail(error if isinstance(error, ClientError) else failure)
            raise

    def _next_renewal(self, lifetime_ms: int) -> float:
        return asyncio.get_running_loop().time() + renewal_ms(lifetime_ms) / 1000

    # --- receiving ---

    async def _read(self) -> None:
        connection, reader = self._stream.connection, self._stream.reader
        granted, end = 0, None
        limit = self._settings.request_timeout_ms
        try:
            while self._failure is None:
                async with asyncio.timeout_at(end):
                    data = await reader.read(READ_SIZE)
                connection.receive_data(data)
                for event in connection.events():
                    self._receive(event)
                announced = connection.announced if connection.announced > LARGE else 0
                if announced != granted:
                    self._received.leave(granted)
                    granted, end = 0, None
                    if announced:
                        await self._received.enter(announced)
                        granted, end = announced, asyncio.get_running_loop().time() + limit / 1000
        except TimeoutError as error:
            reason = error.strerror or f"no large answer within {limit} ms"
            self._fail(BrokerUnreachable(f"{shown_address(self.address)}: {reason}", sent=True))
        except (OSError, EOFError) as error:
            reason = str(error) or type(error).__name__
            self._fail(BrokerUnreachable(f"{shown_address(self.address)}: {reason}", sent=True))
        finally:
            self._received.leave(granted)

    def _receive(self, event: Event) -> None:
        if isinstance(event, ResponseReceived):
            answer = self._waiting.get(event.request.correlation_id)
            if answer is not None and not answer.done():
                response = event.response
                assert isinstance(response, Response)
                answer.set_result(response)
            return
        failure = ended(event)
        failure.reword(f"{shown_address(self.address)}: {failure.reason}")
        request = getattr(event, "request", None)
        answer = None if request is None else self._waiting.get(request.correlation_id)
        if isinstance(failure, UnreadableAnswer) and answer is not None:
            if not answer.done():
                answer.set_exception(failure)
            return
        self._fail(failure)

    def _fail(self, failure: ClientError) -> None:
        """End the connection at once: all that wait get the reason."""
        self._stream.writer.transport.abort()
        self._end(failure)

    def _end(self, failure: ClientError) -> None:
        """Send nothing more: all that wait get the reason."""
        if self._failure is None:
            self._failure = failure
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(_copied_failure(failure))
                answer.exception()  # or asyncio warns of one whose request was cancelled
        self._waiting.clear()


def _copied_failure(failure: ClientError) -> ClientError:
    """An error of its own for each that waits."""
    if isinstance(failure, BrokerUnreachable):
        return BrokerUnreachable(failure.reason, sent=True)
    return type(failure)(failure.reason)


def _no_answer(message: Message) -> Response:
    """An empty response, to a request that has none."""
    response: Response = message.response_class()  # type: ignore[attr-defined]
    return response
