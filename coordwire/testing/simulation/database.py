"""A database of a simulated world, whose answers get lost as those of a real one do.

Strategy: it is a machine of its own, asked over the world's network, so that each fault of the network can
come between a process and it. What is asked is a function of its rows, which is carried out as a whole when
the request has arrived and the database has had its time. Rules: a process has a connection, and another one
after it has failed. One that gets an error, or dies, does not know whether its request was carried out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any, TypeVar, cast

from coordwire.testing.simulation.loop import PROCESS, LoopProcess
from coordwire.testing.simulation.network import Network

__all__ = ["Database"]

_NUMBER = 8
"""Bytes of a request."""

_Answer = TypeVar("_Answer")


class Database:
    """A database. rows: its content; name: of its machine, by which faults find it; usual: gives the seconds
    that an answer takes at present.

    >>> from coordwire.testing.simulation import Simulation
    >>> async def test(kafka, world):
    ...     books = world.database("books")
    ...     print(await books.run(lambda rows: rows.setdefault("tea", 3)), books)
    >>> Simulation(test=test).run(7).failure
    3 <Database books: 1 rows>
    """

    def __init__(self, network: Network, seed: int, name: str, usual: Callable[[], float]) -> None:
        self.name = name
        self.rows: dict[Any, Any] = {}
        self._network = network
        self._random = Random(f"database/{name}/{seed}")
        self._usual = usual
        self._numbers = count()
        self._requests: dict[int, _Request] = {}
        """Those that were not carried out, or not yet."""
        self._clients: dict[LoopProcess | None, _Client] = {}
        machine = network.add(name)
        # Its connections belong to no process.
        self._port = Context().run(network.listen_at, machine, partial(_Session, self))

    def __repr__(self) -> str:
        return f"<Database {self.name}: {len(self.rows)} rows>"

    async def run(self, work: Callable[[dict[Any, Any]], _Answer], *, within: float = 5.0) -> _Answer:
        """What a function of the rows gives, which the database carries out as a whole. within: seconds.

        Raises what the function raises, which must not have changed anything by then; `OSError` and
        `TimeoutError` where the connection fails, after which the work may be done or not.
        """
        number = next(self._numbers)
        request = _Request(work)
        async with asyncio.timeout(within):
            client = await self._connected()
            self._requests[number] = request
            try:
                await client.ask(number)
            except asyncio.CancelledError:  # also when the time is over
                client.close()
                raise
        if request.error is not None:
            raise request.error
        return cast("_Answer", request.answer)

    async def _connected(self) -> _Client:
        """The connection of the process that asks."""
        process = PROCESS.get()
        client = self._clients.get(process)
        if client is None or client.is_lost:
            loop = self._network.loop
            self._clients = {
                process: client for process, client in self._clients.items() if not client.is_lost
            }
            _, protocol = await loop.create_connection(_Client, self.name, self._port)
            client = self._clients[process] = cast("_Client", protocol)
        return client

    def answer_later(self, number: int, transport: asyncio.Transport) -> None:
        """Carry a request out when its time has passed."""
        delay = self._usual() * self._random.uniform(0.5, 1.5)
        self._network.loop.call_later(delay, self._answer, number, transport)

    def _answer(self, number: int, transport: asyncio.Transport) -> None:
        request = self._requests.pop(number)
        try:
            request.answer = request.work(self.rows)
        except Exception as error:
            request.error = error
        transport.write(number.to_bytes(_NUMBER))


@dataclass(slots=True)
class _Request:
    """What is asked, and what it has given once it was carried out."""

    work: Callable[[dict[Any, Any]], Any]
    answer: Any = None
    error: BaseException | None = None


class _Numbers(asyncio.Protocol):
    """An end of a connection, on which numbers come and go."""

    def __init__(self) -> None:
        self._bytes = b""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._bytes += data
        while len(self._bytes) >= _NUMBER:
            number, self._bytes = int.from_bytes(self._bytes[:_NUMBER]), self._bytes[_NUMBER:]
            self.received(number)

    def received(self, number: int) -> None:
        raise NotImplementedError


class _Client(_Numbers):
    """A process's end. is_lost: another one is needed."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        self._waiting: dict[int, asyncio.Future[None]] = {}

    def ask(self, number: int) -> asyncio.Future[None]:
        """Done when the answer is there."""
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.transport.write(number.to_bytes(_NUMBER))
        return future

    def received(self, number: int) -> None:
        future = self._waiting.pop(number)
        if not future.done():
            future.set_result(None)

    def close(self) -> None:
        self.is_lost = True
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(exc or ConnectionResetError("the database has closed the connection"))


class _Session(_Numbers):
    """The database's end."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self._database = database

    def received(self, number: int) -> None:
        self._database.answer_later(number, self.transport)
