"""What is sent in bad faith: changed requests of every kind, frames that are too long, many connections.

Strategy: a link on a transport that keeps what is written, so that thousands of requests cost little.
Rules: a connection is answered or closed; no handler fails, which it would log as an error, and none leaves
anything.
"""

from __future__ import annotations

import asyncio
import logging
import random
import struct
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest

from coordwire import Connection
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.connections.client_link import ClientLink
from coordwire.broker.handlers import APIS
from coordwire.codec import Struct
from coordwire.codec.walk import fields_of
from coordwire.connection.events import ResponseReceived
from coordwire.enums import ErrorCode
from coordwire.messages import DescribeConfigsRequest, DescribeConfigsResponse, MetadataRequest
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.versions import ApiKey
from tests.broker.peer import Peer, run
from tests.broker.test_apis import requests


class Sink(asyncio.Transport):
    """It keeps what is written, and whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.closed = False

    def write(self, data: Any) -> None:
        self.written += data

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 5) if name in ("peername", "sockname") else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close


def linked(broker: Broker) -> tuple[ClientLink, Sink]:
    link, sink = ClientLink(broker, 1), Sink()
    link.connection_made(sink)
    return link, sink


def changed(data: bytes, source: random.Random) -> bytes:
    """A frame with another body, as long as its prefix says."""
    body = bytearray(data[4:])
    for _ in range(source.choice((1, 1, 2, 5))):
        at = source.randrange(4, len(body))
        match source.randrange(5):
            case 0:
                body[at] = source.randrange(256)
            case 1:
                body[at : at + 4] = source.choice((b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0"))
            case 2:
                del body[at:]
            case 3:
                body[at:at] = source.randbytes(source.choice((1, 2, 9)))
            case _:
                body[at] ^= 1 << source.randrange(8)
        if len(body) <= 5:
            break
    return struct.pack(">i", len(body)) + bytes(body)


@pytest.mark.parametrize("seed", [1])
def test_changed_requests_fail_no_handler(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    """Each API, its first and last version, on a broker that goes on with what is left of them."""

    async def main() -> None:
        source = random.Random(seed)
        caplog.set_level(logging.ERROR)
        async with Broker(topics={"orders": 2}, config=BrokerConfig(offsets_partitions=3)) as broker:
            topic_id = broker.cluster.topics["orders"].id
            for key, api in APIS.items():
                for version in {api.first, api.last}:
                    for request in requests(topic_id, version).get(key, []):
                        frame = Connection("client", client_id="c").send(request, version=version)
                        for _ in range(6):
                            data = changed(frame, source)
                            link, sink = linked(broker)
                            link.data_received(data)
                            assert len(sink.written) < 1 << 20
                            link.connection_lost(None)
                await asyncio.sleep(0)
            assert not broker.links
            async with Peer(broker) as good:
                assert (await good.ask(MetadataRequest(topics=None), 9)).topics
        assert [record.getMessage() for record in caplog.records] == []

    run(main())


def test_random_bytes_fail_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        source = random.Random(7)
        caplog.set_level(logging.ERROR)
        async with Broker(topics={"orders": 2}) as broker:
            for _ in range(2_000):
                link, _ = linked(broker)
                body = source.randbytes(source.choice((0, 1, 8, 9, 60)))
                if body and source.random() < 0.7:
                    body = struct.pack(">hh", source.randrange(90), source.randrange(6)) + body
                link.data_received(struct.pack(">i", len(body)) + body)
                link.connection_lost(None)
            assert not broker.links
        assert caplog.records == []

    run(main())


LONGEST = "y" * 32_767


def text_setters(value: Any, version: int) -> Iterator[Callable[[str], None]]:
    """A setter for each text that a version of a request has."""
    if isinstance(value, list):
        for place, element in enumerate(value):
            if isinstance(element, str):
                yield lambda text, place=place: value.__setitem__(place, text)  # type: ignore[misc]
            else:
                yield from text_setters(element, version)
    elif isinstance(value, Struct):
        for field in filter(lambda field: field.exists(version), fields_of(value)):
            inner = getattr(value, field.name)
            if isinstance(inner, str):
                yield lambda text, name=field.name: setattr(value, name, text)  # type: ignore[misc]
            else:
                yield from text_setters(inner, version)


def with_long_texts(request: Any, version: int) -> Iterator[Any]:
    """Copies of a request in which one text is as long as a string can be, and one in which all are."""
    count = len(list(text_setters(request, version)))
    for chosen in (*((place,) for place in range(count)), range(count)):
        copy = deepcopy(request)
        setters = list(text_setters(copy, version))
        for place in chosen:
            setters[place](LONGEST)
        yield copy


def test_the_longest_texts_are_answered(caplog: pytest.LogCaptureFixture) -> None:
    """Each API and version: an answer can be written, now or later."""

    async def main() -> None:
        caplog.set_level(logging.ERROR)
        async with Broker(topics={"orders": 2}, config=BrokerConfig(offsets_partitions=3)) as broker:
            topic_id = broker.cluster.topics["orders"].id
            cells = [
                (key, version) for key, api in APIS.items() for version in range(api.first, api.last + 1)
            ]
            for key, version in cells:
                for request in requests(topic_id, version).get(key, []):
                    for hostile in with_long_texts(request, version):
                        client = Connection("client", client_id="c")
                        link, sink = linked(broker)
                        link.data_received(client.send(hostile, version=version))
                        await asyncio.sleep(0)
                        client.receive_data(bytes(sink.written))
                        answered = any(isinstance(event, ResponseReceived) for event in client.events())
                        waits = key in (ApiKey.JOIN_GROUP, ApiKey.LIST_TRANSACTIONS) and not sink.closed
                        assert answered or waits, (type(request), version)
                        link.connection_lost(None)

    run(main())
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_an_answer_that_cannot_be_written_is_kafkas_unknown_server_error() -> None:
    async def main() -> None:
        async with Broker(topics={"orders": 2}) as broker, Peer(broker) as client:
            resources = [
                DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
                for name in ("orders", LONGEST)
            ]
            answer = await client.ask(DescribeConfigsRequest(resources=resources), 4)
            assert isinstance(answer, DescribeConfigsResponse)
            assert [(result.resource_name, result.error_code) for result in answer.results] == [
                ("orders", ErrorCode.UNKNOWN_SERVER_ERROR),
                (LONGEST, ErrorCode.UNKNOWN_SERVER_ERROR),
            ]
            assert {result.error_message for result in answer.results} == {None}

    run(main())


def test_a_frame_that_is_announced_too_long_closes_the_connection() -> None:
    """Before its bytes are there."""
    config = BrokerConfig(max_frame=10_000)

    async def main() -> None:
        async with Broker(topics={"orders": 1}, config=config) as broker, Peer(broker) as bad:
            bad.writer.write(struct.pack(">i", 10_001))
            assert await bad.is_closed()
            async with Peer(broker) as good:
                body = bytes(9_000)
                good.writer.write(struct.pack(">i", 10_000) + body)
                await asyncio.sleep(0.02)
                assert len(broker.links) == 1

    run(main())


def test_idle_connections_cost_little() -> None:
    """Counted in Python's own memory: a connection that has asked once takes a few KB."""
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")

    async def main() -> None:
        count = 400
        async with Broker(topics={"orders": 1}) as broker:
            async with Peer(broker) as first:
                await first.ask(MetadataRequest(topics=None), 9)
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            links = []
            frame = Connection("client").send(MetadataRequest(topics=None), version=9)
            for _ in range(count):
                link, sink = linked(broker)
                link.data_received(frame)
                sink.written.clear()
                links.append((link, sink))
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            assert used / count < 10_000
            for link, _ in links:
                link.connection_lost(None)
            assert len(broker.links) <= 1  # the first client's, until its end is seen

    run(main())
