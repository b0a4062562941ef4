"""What a client under test sends, and what it is answered: a relay between it and the scripted broker.

Strategy: a listener for each node; each frame is read whole, noted as a `WireExchange`, and passed on;
an answer that a rule is for is changed first, as a message or as bytes. Rules: what the client sends is
untrusted: a frame has at most `LONGEST` bytes, and one that can't be read is noted as such and passes, so
that the broker answers it. Answers keep the order of their requests.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from coordwire.client.settings import Address
from coordwire.codec import Struct
from coordwire.conformance.cases import code_name
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import PREFIX, decode_request, decode_response, encode_response
from coordwire.messages.headers import RequestHeader
from coordwire.versions import api_name

LONGEST = 100 << 20
"""Bytes of a frame; a client that announces more loses its connection."""

_SIZE = struct.Struct(">i")


@dataclass(slots=True, eq=False)
class WireExchange:
    """A request, and its answer. node, connection: where it came; sent, answered: seconds on the loop's
    clock, `answered` None while there is no answer; request, response: messages, None if unreadable.

    frame: the bytes of the answer, which a rule may replace; pieces: bytes that go at a time, 0 for all at
    once; ends: the connection ends after the answer.
    """

    api: str
    api_key: int
    version: int
    correlation_id: int
    node: int
    connection: int
    sent: float
    request: Any = None
    response: Any = None
    answered: float | None = None
    frame: bytes = field(default=b"", repr=False)
    pieces: int = 0
    ends: bool = False

    @property
    def errors(self) -> set[str]:
        """The names of all errors in the answer."""
        return set() if self.response is None else {code_name(code) for code in _codes(self.response) if code}

    def write(self, header_tags: dict[int, bytes] | None = None, *, version: int | None = None) -> None:
        """Make the frame of the response as it is now."""
        self.frame = encode_response(
            self.response,
            version=self.version if version is None else version,
            correlation_id=self.correlation_id,
            header_tags=header_tags,
        )


def structs_of(value: Struct) -> Iterator[Struct]:
    """A struct and all that are in it."""
    yield value
    for item in value._layout_.fields:
        content = getattr(value, item.name)
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, Struct):
                yield from structs_of(part)


def _codes(response: Struct) -> Iterator[int]:
    for struct_value in structs_of(response):
        for item in struct_value._layout_.fields:
            if item.name.endswith("error_code"):
                yield getattr(struct_value, item.name)


Change = Callable[[WireExchange], None]


@dataclass(slots=True)
class AnswerRule:
    """What is done to answers of an API ("" for all). times: to how many, None for all; condition: to which;
    hits: to how many it was done."""

    api: str
    change: Change
    times: int | None
    condition: Callable[[WireExchange], bool]
    hits: int = 0

    def is_for(self, exchange: WireExchange) -> bool:
        is_left = self.times is None or self.hits < self.times
        return is_left and self.api in ("", exchange.api) and self.condition(exchange)


class Wire:
    """Listeners for nodes; an async context manager. nodes: how many.

    exchanges: all requests, in the order in which they came; ended: connections that are over, by the side
    that ended them: "client" or "broker". `upstream` is to be set to where the nodes listen, in their order.
    """

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.upstream: list[Address] = []
        self.exchanges: list[WireExchange] = []
        self.rules: list[AnswerRule] = []
        self.ended: dict[int, str] = {}
        self._connections = 0
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        for node in range(1, self._nodes + 1):
            self._servers.append(await asyncio.start_server(self._accept(node), "127.0.0.1", 0))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End all connections."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def addresses(self) -> list[Address]:
        """Where clients reach the nodes."""
        return [("127.0.0.1", server.sockets[0].getsockname()[1]) for server in self._servers]

    def rule(
        self,
        api: str,
        change: Change,
        *,
        times: int | None = 1,
        condition: Callable[[WireExchange], bool] = lambda exchange: True,
    ) -> AnswerRule:
        """Change answers from now on."""
        rule = AnswerRule(api, change, times, condition)
        self.rules.append(rule)
        return rule

    # --- connections ---

    def _accept(self, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._connection(node, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accept

    async def _connection(
        self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        number, self._connections = self._connections, self._connections + 1
        waiting: list[WireExchange] = []
        upstream: asyncio.StreamWriter | None = None
        passing: list[asyncio.Future[None]] = []
        try:
            host, port = self.upstream[node - 1]
            answers, upstream = await asyncio.open_connection(host, port)
            passing = [
                asyncio.ensure_future(self._requests(node, number, reader, upstream, waiting)),
                asyncio.ensure_future(self._answers(answers, writer, waiting)),
            ]
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
            self.ended[number] = "client" if passing[0].done() else "broker"
        except OSError:  # the node is down
            self.ended[number] = "broker"
        finally:
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)
            for item in (writer, upstream):
                if item is not None:
                    item.close()

    async def _requests(
        self,
        node: int,
        number: int,
        reader: asyncio.StreamReader,
        upstream: asyncio.StreamWriter,
        waiting: list[WireExchange],
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while (frame := await _frame(reader)) is not None:
                exchange = _exchange(frame, node, number)
                self.exchanges.append(exchange)
                if exchange.api != "Produce" or getattr(exchange.request, "acks", 1) != 0:
                    waiting.append(exchange)
                upstream.write(frame)
                await upstream.drain()

    async def _answers(
        self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter, waiting: list[WireExchange]
    ) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while (frame := await _frame(answers)) is not None and waiting:
                exchange = waiting.pop(0)
                self._answer(exchange, frame)
                step = exchange.pieces or max(len(exchange.frame), 1)
                for position in range(0, len(exchange.frame), step):
                    writer.write(exchange.frame[position : position + step])
                    await writer.drain()
                    if exchange.pieces:
                        await asyncio.sleep(0)
                if exchange.ends:
                    return

    def _answer(self, exchange: WireExchange, frame: bytes) -> None:
        exchange.frame = frame
        with suppress(CoordwireError):
            answer = decode_response(frame, api_key=exchange.api_key, version=exchange.version, strict=False)
            exchange.response = answer.message
        for rule in self.rules:
            if exchange.response is not None and rule.is_for(exchange):
                rule.hits += 1
                rule.change(exchange)
        exchange.answered = asyncio.get_running_loop().time()


async def _frame(reader: asyncio.StreamReader) -> bytes | None:
    """The next frame with its size; None if it announces what no frame has."""
    prefix = await reader.readexactly(PREFIX)
    (size,) = _SIZE.unpack(prefix)
    return prefix + await reader.readexactly(size) if 0 <= size <= LONGEST else None


def _exchange(frame: bytes, node: int, connection: int) -> WireExchange:
    request: Any = None
    try:
        read = decode_request(frame, strict=False)
        header, request = read.header, read.message
    except DecodeError as error:
        partial = error.partial
        header = partial if isinstance(partial, RequestHeader) else RequestHeader(request_api_key=-1)
    key = header.request_api_key
    return WireExchange(
        api_name(key) or str(key),
        key,
        header.request_api_version,
        header.correlation_id,
        node,
        connection,
        asyncio.get_running_loop().time(),
        request,
    )
