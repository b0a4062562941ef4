"""A connection that is made anew when it is needed, to this broker or a later one on its port.

Rule: what a client may repeat is repeated; any other error is `Wrong`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from coordwire import Connection
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.enums import ErrorCode
from coordwire.messages import FindCoordinatorRequest, OffsetFetchRequest
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup

TOPIC, LEDGER, PARTITIONS = "orders", "ledger", 3
READ, COMMITTED, CLASSIC, CONSUMER = "ledger-readers", "committer", "classic-members", "consumer-members"

WAIT = 30
"""Seconds for which an error is repeated."""


class Wrong(Exception):
    """What must not be."""


class Stopped(Exception):
    """All is done."""


class Link:
    """A connection that is made anew when it is needed. calls, losses: answers, and requests without."""

    def __init__(self, port: int, stop: asyncio.Event) -> None:
        self._port, self._stop = port, stop
        self._connection: Connection | None = None
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self.calls = self.losses = 0

    async def once(self, request: Message, version: int) -> Any:
        """The answer; raises `OSError` where there is none."""
        try:
            if self._connection is None:
                self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
                self._connection = Connection("client", client_id="kills")
            self._writer.write(self._connection.send(request, version=version))
            while (event := self._connection.next_event()) is None:
                data = await self._reader.read(1 << 16)
                if not data:
                    raise ConnectionResetError
                self._connection.receive_data(data)
        except OSError:
            self.close()
            self.losses += 1
            raise
        if not isinstance(event, ResponseReceived):
            raise Wrong(f"{type(request).__name__}: {event}")
        self.calls += 1
        return event.response

    async def ask(self, request: Message, version: int) -> Any:
        """The answer, of this broker or a later one. Raises `Stopped`."""
        while True:
            self.check()
            try:
                return await self.once(request, version)
            except OSError:
                await asyncio.sleep(0.02)

    def check(self) -> None:
        """Raises `Stopped` if no more is to be done."""
        if self._stop.is_set():
            raise Stopped

    def close(self) -> None:
        if self._connection is not None:
            self._writer.close()
            self._connection = None


def expect(what: str, code: int, *allowed: int) -> None:
    if code not in (0, *allowed):
        raise Wrong(f"{what}: error {ErrorCode(code).name}")


async def again(act: Callable[[], Awaitable[int]], what: str, *retried: int) -> int:
    """Repeat while there are errors that a client repeats, for WAIT seconds from the first on; 0."""
    deadline: float | None = None  # `act` may wait for brokers that live too short a time to answer
    while True:
        code = await act()
        if code not in retried:
            expect(what, code)
            return code
        if deadline is None:
            deadline = time.monotonic() + WAIT
        elif time.monotonic() > deadline:
            raise Wrong(f"{what}: {ErrorCode(code).name} for {WAIT} s")
        await asyncio.sleep(0.01)


async def committed(link: Link, group: str, topic: str) -> int:
    """The offset of partition 0, -1 for none; with transactions that are under way it is waited for."""
    request = OffsetFetchRequest(
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)], require_stable=True
    )
    result = -1
    await link.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4)  # makes its topic, as for a client

    async def fetch() -> int:
        nonlocal result
        answer = (await link.ask(request, 8)).groups[0]
        parts = [part for one in answer.topics if one.name == topic for part in one.partitions]
        result = parts[0].committed_offset if parts else -1
        return int(answer.error_code or (parts[0].error_code if parts else 0))

    await again(fetch, "OffsetFetch", ErrorCode.UNSTABLE_OFFSET_COMMIT)
    return result
