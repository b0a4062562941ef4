"""Captures of exchanges, and a broker without sockets for their replay."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from coordwire import Connection, decode_request, encode_request, encode_response
from coordwire.capture import Capture, Entry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.client import ClientSettings
from coordwire.client.opening import Session
from coordwire.client.streams import Stream
from coordwire.codec import Message
from coordwire.messages import ApiVersionsResponse
from coordwire.messages.keys import FACTS
from coordwire.replay import Replay, ReplayedRequest
from coordwire.replay import replay as replay_module
from coordwire.versions import VersionRange

SETTINGS = ClientSettings(bootstrap=(("broker", 9092),))


@dataclass(frozen=True, slots=True)
class Exchange:
    """request, response: None where the capture has none. connection: its number. late: whether the response
    comes after all requests."""

    request: Message
    response: Message | None = None
    version: int = 4
    connection: int = 0
    late: bool = False


def entries(exchanges: Iterable[Exchange]) -> list[Entry]:
    """The entries of a capture that has these exchanges."""
    frames: list[tuple[int, int, bool, bytes]] = []
    late: list[tuple[int, int, bool, bytes]] = []
    for number, exchange in enumerate(exchanges):
        wire = encode_request(
            exchange.request, version=exchange.version, correlation_id=number, client_id="c"
        )
        frames.append((number, exchange.connection, False, wire))
        if exchange.response is not None:
            wire = encode_response(exchange.response, version=exchange.version, correlation_id=number)
            (late if exchange.late else frames).append((number, exchange.connection, True, wire))
    return list(Capture(io.BytesIO(as_pcap([*frames, *late])), "captured").entries())


class _Writer:
    """A connection whose broker answers each frame at once, by a function."""

    def __init__(self, react: Callable[[Message], Message | None]) -> None:
        self.reader = asyncio.StreamReader()
        self.transport: Any = self
        self._react = react

    def write(self, wire: bytes) -> None:
        frame = decode_request(wire)
        answer = self._react(frame.message)
        if answer is not None:
            number, version = frame.correlation_id, frame.api_version
            self.reader.feed_data(encode_response(answer, version=version, correlation_id=number))

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def abort(self) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        pass

    async def wait_closed(self) -> None:
        pass


@contextmanager
def answering(react: Callable[[Message], Message | None]) -> Iterator[None]:
    """Let replays have a broker that answers by a function."""
    session = Session(
        versions={key: VersionRange(facts.first, facts.last) for key, facts in FACTS.items()},
        lifetime_ms=0,
        response=ApiVersionsResponse(),
    )

    async def opened(address: tuple[str, int], settings: ClientSettings) -> Stream:
        writer: Any = _Writer(react)
        return Stream(address, writer.reader, writer, Connection("client"), session)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "open_stream", opened)
        yield


def outcome(
    captured: Iterable[Entry], settings: ClientSettings = SETTINGS, timeout_s: float = 20.0
) -> tuple[Replay, list[ReplayedRequest]]:
    """A replay after its end, and its results. It must end in 20 seconds."""
    replay = Replay(settings, timeout_s=timeout_s)

    async def run() -> list[ReplayedRequest]:
        async with asyncio.timeout(20):
            return [result async for result in replay.run(captured)]

    return replay, asyncio.run(run())
