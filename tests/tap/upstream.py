"""A broker that a test makes up: it keeps what it gets, and answers what the test says."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

Answer = Callable[[bytes], bytes]
"""What goes back for a request's frame, size prefixes included."""


def frame_of(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def frames_in(data: bytes) -> list[bytes]:
    """The frames of a stream, size prefixes included."""
    frames, at = [], 0
    while at < len(data):
        end = at + 4 + struct.unpack_from(">i", data, at)[0]
        frames.append(data[at:end])
        at = end
    return frames


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """A frame, size prefix included."""
    head = await reader.readexactly(4)
    return head + await reader.readexactly(struct.unpack(">i", head)[0])


class Addressed:
    """The address of a tap, for `Peer`."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self.addresses: list[tuple[str, int]] = [(host, int(port))]


class Upstream:
    """A listener; an async context manager. received: all bytes of all connections; answer: to each frame;
    opening: what a connection is sent at once. reads: whether it reads at all."""

    def __init__(
        self, answer: Answer = lambda frame: b"", *, opening: bytes = b"", reads: bool = True
    ) -> None:
        self.received = bytearray()
        self.connections = 0
        self.ended = 0
        self._answer = answer
        self._opening = opening
        self._reads = reads
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        assert self._server is not None
        return f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def stop(self) -> None:
        """End the listener and all connections."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        with suppress(asyncio.CancelledError, ConnectionError):
            if self._opening:
                writer.write(self._opening)
            if not self._reads:
                await asyncio.Event().wait()
            await self._read(reader, writer)
        self.ended += 1
        writer.close()
        self._tasks.discard(task)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        buffer = bytearray()
        while data := await reader.read(1 << 16):
            self.received += data
            buffer += data
            while len(buffer) >= 4 and len(buffer) >= 4 + struct.unpack_from(">i", buffer)[0]:
                end = 4 + struct.unpack_from(">i", buffer)[0]
                frame = bytes(buffer[:end])
                del buffer[:end]
                answer = self._answer(frame)
                if answer:
                    writer.write(answer)
                    await writer.drain()
