"""A client for tests: coordwire's own connection over a socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from coordwire import Connection, Response
from coordwire.codec import Request
from coordwire.connection.events import ResponseReceived

R = TypeVar("R", bound=Response)
T = TypeVar("T")


def run(
    main: Coroutine[Any, Any, T], loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None
) -> T:
    """Run a test's coroutine; what it leaves fails the test."""

    async def watched() -> T:
        async with asyncio.timeout(20):
            result = await main
        await asyncio.sleep(0)
        remaining = asyncio.all_tasks() - {asyncio.current_task()}
        assert not remaining
        return result

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        return runner.run(watched())


class Nodes(Protocol):
    """A broker, or what stands for one."""

    @property
    def addresses(self) -> list[tuple[str, int]]: ...


class Peer:
    """One connection to a node."""

    def __init__(
        self,
        broker: Nodes,
        node: int = 1,
        client_id: str = "peer",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address = broker.addresses[node - 1]
        self._tls = tls
        self.connection = Connection("client", client_id=client_id)
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(*self._address, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    def send(self, request: Request[Any], version: int) -> None:
        self.writer.write(self.connection.send(request, version=version))

    async def receive(self) -> Any:
        """The next answer."""
        while (event := self.connection.next_event()) is None:
            data = await self.reader.read(1 << 16)
            if not data:
                raise ConnectionResetError("the broker has closed the connection")
            self.connection.receive_data(data)
        assert isinstance(event, ResponseReceived)
        assert not event.deviations
        return event.response

    async def ask(self, request: Request[R], version: int) -> R:
        """The answer to a request."""
        self.send(request, version)
        response: R = await self.receive()
        return response

    async def is_closed(self) -> bool:
        """Whether the broker has ended the connection, after what it may have sent."""
        try:
            while await self.reader.read(1 << 16):
                pass
        except ConnectionError:
            pass
        return True
