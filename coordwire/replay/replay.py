"""`Replay`: the order in which a capture's requests are sent again, the connections, and the answers.

    async for request in Replay(settings).run(capture.entries()):
        print(request.entry, request.differences)

Strategy: the capture says what happened before what. A request is sent once all answers that came before it
in the capture have come, over a connection in the place of the captured one, to the broker that has the id of
the captured one's; the next request does not wait for its answer, unless the capture's did. So a join that
waited for another member does so again. Rules: times are not kept. A request of the older dialects, one that
cannot be read, and what authenticates are left out and counted. An answer has a time limit. A connection has
its own task, which ends with the run; the connections that were idle longest are closed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.client.errors import ClientError, DeadlineExceeded
from coordwire.client.settings import Address, ClientSettings
from coordwire.client.streams import Stream, open_stream
from coordwire.codec import Message
from coordwire.codec.entities import entity_field
from coordwire.codec.walk import FieldSelection
from coordwire.connection.dialect import KAFKA
from coordwire.connection.kafka import is_fire_and_forget
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import encode_request, read_response
from coordwire.replay.differences import Difference, differences
from coordwire.replay.identifiers import Identifiers
from coordwire.versions import ApiKey, VersionRange

__all__ = ["Replay", "ReplayTotals", "ReplayedRequest"]

MOST_CONNECTIONS = 200
MOST_WAITING = 10_000

_SKIPPED = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_HOSTS = FieldSelection(lambda field: field.entity == "broker_host")
_READ = 1 << 16
_Answer = asyncio.Future[Message]


@dataclass(frozen=True, slots=True)
class ReplayedRequest:
    """A request that was sent again, and whose answer is known. entry: the captured request; captured,
    answered: the answers, None where there is none. error: why there is none now. differences: none, if the
    answers are equal."""

    entry: FrameEntry
    captured: Message | None = None
    answered: Message | None = None
    error: CoordwireError | None = None
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        return self.error is None and not self.differences


@dataclass(slots=True)
class ReplayTotals:
    """sent: requests; compared: answers, of which `differing` differ; failed: requests that could not be sent
    or had no answer; skipped: requests that were left out, by reason."""

    sent: int = 0
    compared: int = 0
    differing: int = 0
    failed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


class _Line:
    """One connection to the cluster, in the place of a captured one."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._waiting: dict[int, tuple[int, int, asyncio.Future[Message]]] = {}
        self._next_id = 0
        self.error: CoordwireError | None = None
        self.task = asyncio.get_running_loop().create_task(self._read())

    def send(self, request: Message, version: int, client_id: str | None) -> asyncio.Future[Message] | None:
        """Send a request; its answer, None for one without. Raises `EncodeError`."""
        number, self._next_id = self._next_id, (self._next_id + 1) & 0x7FFF_FFFF
        wire = encode_request(request, version=version, correlation_id=number, client_id=client_id)
        answer: asyncio.Future[Message] | None = None
        if not is_fire_and_forget(request):
            answer = asyncio.get_running_loop().create_future()
            if self.error is not None:
                answer.set_exception(self.error)
                answer.exception()  # it is looked at later, or never
                return answer
            self._waiting[number] = request.api_key or 0, version, answer
        self.stream.writer.write(wire)
        return answer

    async def _read(self) -> None:
        buffer = ReceiveBuffer()
        try:
            while data := await self.stream.reader.read(_READ):
                buffer.append(data)
                while (body := buffer.next_frame()) is not None:
                    self._take(body)
            self.error = ClientError("the broker closed the connection")
        except DecodeError as error:
            self.error = error
        except OSError as error:
            self.error = ClientError(f"the connection failed: {error.strerror or error}")
        for _, _, answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(self.error)
                answer.exception()
        self._waiting.clear()

    def _take(self, body: bytes) -> None:
        waiting = self._waiting.pop(int.from_bytes(body[:4], "big", signed=True), None)
        if waiting is None:
            return
        key, version, answer = waiting
        try:
            message = read_response(body, key, version, strict=False).message
        except DecodeError as error:
            if not answer.done():
                answer.set_exception(error)
                answer.exception()
        else:
            if not answer.done():
                answer.set_result(message)

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.stream.close()


class Replay:
    """One replay. settings: of the cluster; timeout_s: for each answer. totals: what was done so far."""

    def __init__(self, settings: ClientSettings, *, timeout_s: float = 30.0) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self.identifiers = Identifiers()
        self.totals = ReplayTotals()
        self._lines: OrderedDict[str, _Line] = OrderedDict()
        self._waiting: OrderedDict[tuple[str, int], tuple[FrameEntry, asyncio.Future[Message]]] = (
            OrderedDict()
        )
        self._captured_nodes: dict[Address, int] = {}
        self._captured_ports: dict[int, int] = {}
        """The same by port alone, for brokers that are named otherwise than their packets have it."""
        self._nodes: dict[int, Address] = {}

    async def run(self, entries: Iterable[Entry]) -> AsyncGenerator[ReplayedRequest, None]:
        """Send the requests; each with what became of it, in the order of the captured answers.

        Raises what `entries` raises.
        """
        try:
            for entry in entries:
                if not isinstance(entry, FrameEntry) or entry.dialect != KAFKA:
                    self.totals.skipped["unreadable"] += 1
                elif entry.direction == "request":
                    failed = await self._request(entry)
                    if failed is not None:
                        yield failed
                else:
                    result = await self._response(entry)
                    if result is not None:
                        yield result
            await self._drain()
        finally:
            while self._lines:
                _, line = self._lines.popitem()
                await line.close()

    # --- requests ---

    async def _request(self, entry: FrameEntry) -> ReplayedRequest | None:
        if entry.token or entry.api_key in _SKIPPED:
            self.totals.skipped["authentication"] += 1
            return None
        if entry.error is not None or entry.message is None or entry.api_version is None:
            self.totals.skipped["unreadable"] += 1
            return None
        request, version = deepcopy(entry.message), entry.api_version
        self.identifiers.update(request, version)
        try:
            line = await self._line(entry)
            offered = line.stream.session.versions.get(entry.api_key or 0, VersionRange(0, -1))
            if version not in offered:
                raise ClientError(f"the broker has no {entry.api_name} v{version}")
            answer = line.send(request, version, entry.client_id)
        except CoordwireError as error:
            self.totals.failed += 1
            return ReplayedRequest(entry, error=error)
        self.totals.sent += 1
        if answer is not None:
            self._waiting[entry.capture, entry.number] = entry, answer
            while len(self._waiting) > MOST_WAITING:
                self._waiting.popitem(last=False)
        return None

    async def _line(self, entry: FrameEntry) -> _Line:
        """The connection in the place of a captured request's. Raises `ClientError`."""
        key = f"{entry.capture} {entry.flow}"
        line = self._lines.get(key)
        if line is not None:
            self._lines.move_to_end(key)
            return line
        while len(self._lines) >= MOST_CONNECTIONS:
            _, oldest = self._lines.popitem(last=False)
            await oldest.close()
        line = self._lines[key] = _Line(await open_stream(self._address(entry), self._settings))
        return line

    def _address(self, entry: FrameEntry) -> Address:
        """Of the broker with the id that the captured one had; else the first of the settings."""
        if entry.connection is not None:
            host, port = entry.connection.broker
            node = self._captured_nodes.get((host, port), self._captured_ports.get(port))
            if node is not None and node in self._nodes:
                return self._nodes[node]
        return self._settings.bootstrap[0]

    # --- responses ---

    async def _response(self, entry: FrameEntry) -> ReplayedRequest | None:
        if entry.request is None:
            return None
        waiting = self._waiting.pop((entry.capture, entry.request.number), None)
        if waiting is None:
            return None
        request, answer = waiting
        try:
            async with asyncio.timeout(self._timeout_s):
                answered = await answer
        except TimeoutError:
            answer.cancel()
            self.totals.failed += 1
            error = DeadlineExceeded(f"no answer within {self._timeout_s:g} s")
            return ReplayedRequest(request, captured=entry.message, error=error)
        except CoordwireError as failure:
            self.totals.failed += 1
            return ReplayedRequest(request, captured=entry.message, error=failure)
        if entry.error is not None or entry.message is None or request.message is None:
            self.totals.skipped["unreadable"] += 1
            return None
        version = entry.body_version if entry.body_version is not None else 0
        for address, node in _brokers(entry.message):
            self._captured_nodes[address] = self._captured_ports[address[1]] = node
        for address, node in _brokers(answered):
            self._nodes[node] = address
        self.totals.compared += 1
        if type(answered) is not type(entry.message):
            return None
        self.identifiers.learn(request.message, entry.message, answered, version)
        places = differences(entry.message, answered, version)
        self.totals.differing += bool(places)
        return ReplayedRequest(request, entry.message, answered, differences=places)

    async def _drain(self) -> None:
        """Let what was sent last go out."""
        for line in self._lines.values():
            try:
                await line.stream.writer.drain()
            except OSError:
                continue


def _brokers(message: Message) -> Iterator[tuple[Address, int]]:
    """The brokers that a response names, with their ids."""
    for place in _HOSTS.places(message):
        owner: Any = place.owner
        cls: Any = type(owner)
        port_name, node_name = entity_field(cls, "broker_port"), entity_field(cls, "broker_id")
        if place.value and port_name and node_name and 0 < getattr(owner, port_name) < 65536:
            yield (place.value, getattr(owner, port_name)), getattr(owner, node_name)
