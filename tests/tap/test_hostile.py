"""Both sides in bad faith: sizes that are lies, nonsense, half frames, readers that do not read, floods.

Rules: no error leaves the tap, and nothing stays of a connection that has ended; what is held is bounded.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import struct
from typing import Any

import pytest

from coordwire.broker import Broker
from coordwire.broker.connections.turns import REQUEST, ROUND, SLICE
from coordwire.broker.harness.traffic import Traffic
from coordwire.frames import decode_response, encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.metadata import MetadataResponseBroker
from coordwire.tap import Script, Tap, TappedExchange
from coordwire.tap import tap as tap_module
from coordwire.tap.addresses import most_brokers
from coordwire.tap.link import TapLink
from tests.broker.peer import Peer, run
from tests.broker.test_hostile import Sink
from tests.tap.test_passing import answered, connection, requests
from tests.tap.upstream import Addressed, Upstream, frame_of, read_frame

MEGA = 1 << 20


async def until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends."""
    data = b""
    try:
        while piece := await reader.read(1 << 16):
            data += piece
    except ConnectionError:
        pass
    return data


BAD_SIZES = [
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0rest",
    b"\x7f\xff\xff\xff",
    b"GET / HTTP/1.1\r\n",
    b"\x16\x03\x01\x02\0",
]


@pytest.mark.parametrize("data", BAD_SIZES)
def test_a_size_that_no_frame_has_ends_the_connection(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordwire.tap")

    async def main() -> None:
        async with Upstream() as upstream, Tap(upstream.address, max_frame=MEGA) as tap:
            reader, writer = await connection(tap)
            writer.write(data)
            assert await closed(reader) == b""
            assert upstream.received == b""
            assert (tap.counts.refused, tap.connections, tap.memory.used) == (1, 0, 0)
            writer.close()

    run(main())
    assert "from the client" in caplog.text


@pytest.mark.parametrize("data", BAD_SIZES)
def test_a_broker_may_send_anything(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordwire.tap")

    async def main() -> None:
        async with Upstream(opening=data) as upstream, Tap(upstream.address, max_frame=MEGA) as tap:
            reader, writer = await connection(tap)
            assert await closed(reader) == b""
            assert (tap.counts.refused, tap.connections, tap.memory.used) == (1, 0, 0)
            writer.close()

    run(main())
    assert "from the broker" in caplog.text


def test_answers_to_nothing_pass() -> None:
    async def main() -> None:
        opening = frame_of(b"") + frame_of(b"nobody asked")
        async with Upstream(opening=opening) as upstream, Tap(upstream.address) as tap:
            reader, writer = await connection(tap)
            assert await read_frame(reader) == frame_of(b"")
            assert await read_frame(reader) == frame_of(b"nobody asked")
            assert tap.counts.unmatched == 2
            writer.close()

    run(main())


@pytest.mark.parametrize("upstream", ["127.0.0.1:1", "a..b:1", "no.such.host.invalid:9092", f"{'x' * 300}:1"])
def test_a_broker_that_is_not_there(upstream: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordwire.tap")

    async def main() -> None:
        async with Tap(upstream) as tap:
            reader, writer = await connection(tap)
            writer.write(encode_request(HeartbeatRequest(), version=4, correlation_id=1))
            assert await closed(reader) == b""
            assert (tap.counts.refused, tap.connections) == (1, 0)
            writer.close()

    run(main())
    assert "cannot be reached" in caplog.text


def test_a_broker_that_names_too_many_ends_the_connection() -> None:
    brokers = [MetadataResponseBroker(node_id=n, host="h", port=n + 1) for n in range(1_100)]
    wire = encode_response(MetadataResponse(brokers=brokers), version=12, correlation_id=1)

    async def main() -> None:
        async with Upstream(lambda frame: wire) as upstream, Tap(upstream.address) as tap:
            tap.addresses._most = 20  # as many sockets less
            reader, writer = await connection(tap)
            writer.write(encode_request(MetadataRequest(), version=12, correlation_id=1))
            assert await closed(reader) == b""
            assert (len(tap.addresses), len(tap._listeners), tap.counts.refused) == (1, 1, 1)
            writer.close()

    run(main())


def changed(rng: random.Random, frame: bytes) -> bytes:
    """A frame with some of its bytes changed, cut or repeated; the size prefix is right."""
    body = bytearray(frame[4:])
    for _ in range(rng.randrange(1, 4)):
        if not body:
            break
        at = rng.randrange(len(body))
        what = rng.randrange(4)
        if what == 0:
            body[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 1:
            del body[at : at + rng.randrange(1, 9)]
        elif what == 2:
            body[at:at] = body[at : at + rng.randrange(1, 9)]
        else:
            body[at : at + 4] = struct.pack(">i", rng.choice((-1, 0, 1 << 30, rng.randrange(1 << 16))))
    return frame_of(bytes(body))


def test_changed_frames_of_every_kind_never_fail(caplog: pytest.LogCaptureFixture) -> None:
    """Requests and answers of every API, changed, with rules, a script and a recording."""
    rng = random.Random(5)
    frames = list(requests())
    script = Script(request=lambda exchange: None, response=lambda exchange: None)

    async def main() -> None:
        async with Upstream() as upstream, Tap(upstream.address, script=script, traffic=Traffic()) as tap:
            tap.addresses._most = 30
            tap.faults.add("* times=all probability=0.2 error=NOT_COORDINATOR")
            tap.faults.add("Fetch topic=orders times=all after error=NOT_LEADER_OR_FOLLOWER optional")
            unconnected: Any = lambda link: asyncio.ensure_future(asyncio.sleep(0))  # noqa: E731
            tap.connect = unconnected  # type: ignore[method-assign]
            for _ in range(300):
                link = TapLink(tap, tap.upstream[0])
                link.client.connection_made(Sink())
                link.broker.connection_made(Sink())
                link.coupled()
                for _ in range(10):
                    frame = rng.choice(frames)
                    link.client.data_received(changed(rng, frame) if rng.random() < 0.8 else frame)
                    answer = answered(frame)
                    if answer and not link._is_over:
                        link.broker.data_received(changed(rng, answer) if rng.random() < 0.8 else answer)
                link.abort()
                link.client.connection_lost(None)
                link.broker.connection_lost(None)
                await asyncio.sleep(0)
            assert tap.connections == 0
            assert tap.memory.used == 0
            assert tap.counts.requests_in > 1_000

    run(main())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def fetched(size: int, number: int) -> bytes:
    part = PartitionData(partition_index=0, records=bytes(size))
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[part])])
    return encode_response(response, version=12, correlation_id=number)


def test_a_client_that_does_not_read_stops_the_broker() -> None:
    request = encode_request(FetchRequest(), version=12, correlation_id=1)
    answer = fetched(MEGA, 1)

    async def main() -> None:
        async with Upstream(lambda frame: answer) as upstream, Tap(upstream.address) as tap:
            _, writer = await connection(tap)
            transport: Any = writer.transport
            transport.pause_reading()
            writer.write(request * 200)
            await until(lambda: tap.counts.responses_in)
            highest = 0
            for _ in range(60):
                await asyncio.sleep(0.01)
                highest = max(highest, tap.memory.used)
            assert 0 < tap.counts.responses_in < 100
            assert highest <= 4 * MEGA
            transport.abort()
            await until(lambda: not tap.connections)
            assert tap.memory.used == 0

    run(main())


def test_a_broker_that_does_not_read_stops_the_client() -> None:
    request = encode_request(HeartbeatRequest(member_id="m" * 30_000), version=4, correlation_id=1)

    async def main() -> None:
        async with Upstream(reads=False) as upstream, Tap(upstream.address) as tap:
            _, writer = await connection(tap)
            writer.write(request * 3_000)
            await until(lambda: tap.counts.requests_in and tap.memory.used)
            highest = tap.memory.used
            for _ in range(60):
                await asyncio.sleep(0.01)
                highest = max(highest, tap.memory.used)
            assert 0 < tap.counts.requests_in < 1_500
            assert 0 < highest <= 2 * MEGA
            await upstream.stop()
            await until(lambda: not tap.connections)
            assert tap.memory.used == 0
            writer.transport.abort()

    run(main())


def test_requests_that_nobody_answers_are_bounded() -> None:
    request = encode_request(HeartbeatRequest(member_id="m" * 3_000), version=4, correlation_id=0)[4:]

    async def flooded(script: Script) -> int:
        async with Upstream() as upstream, Tap(upstream.address, script=script) as tap:
            _, writer = await connection(tap)
            numbers = map(struct.Struct(">i").pack, range(30_000))
            writer.write(b"".join(frame_of(request[:4] + number + request[8:]) for number in numbers))
            await asyncio.sleep(0.5)
            requests_in = tap.counts.requests_in
            await upstream.stop()
            await until(lambda: not tap.connections)
            writer.transport.abort()
            return requests_in

    async def main() -> None:
        kept: list[TappedExchange] = []
        assert await flooded(Script()) <= 10_000
        assert await flooded(Script(request=kept.append)) <= 2_000

    run(main())


def test_a_client_that_leaves_is_noticed_while_a_rule_holds_its_request() -> None:
    async def main() -> None:
        async with Broker() as broker, Tap(broker.bootstrap) as tap:
            fault = tap.faults.add("Heartbeat hold")
            _, writer = await connection(tap)
            writer.write(encode_request(HeartbeatRequest(), version=4, correlation_id=1))
            await until(lambda: fault.held)
            writer.transport.abort()
            await until(lambda: not tap.connections and not broker.links)
            assert (fault.held, tap.counts.requests_out) == (0, 0)

    run(main())


def test_a_flood_delays_another_client_by_less_than_a_round() -> None:
    request = encode_request(HeartbeatRequest(member_id="flood"), version=4, correlation_id=1)
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=1)

    async def main() -> None:
        async with Upstream(lambda frame: answer) as upstream, Tap(upstream.address) as tap:
            floods = [await connection(tap) for _ in range(20)]
            async with Peer(Addressed(tap.bootstrap)) as peer:
                await until(lambda: len(tap.turns) == 0)
                took = []
                for _ in range(20):
                    for _, writer in floods:
                        writer.write(request * 2_000)
                    before = tap.counts.requests_in
                    peer.send(HeartbeatRequest(), 4)
                    await peer.reader.readexactly(
                        len(encode_response(HeartbeatResponse(), version=4, correlation_id=0))
                    )
                    took.append(tap.counts.requests_in - before)
                most = (ROUND + 2 * SLICE) // REQUEST
                assert sorted(took)[len(took) // 2] <= 2 * most
            for _, writer in floods:
                writer.transport.abort()
            await until(lambda: not tap.connections)

    run(main())


def test_listeners_for_brokers_that_changed_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap_module, "most_brokers", lambda: 4)
    rounds = iter(range(1, 100))

    def changing(frame: bytes) -> bytes:
        number = next(rounds)
        brokers = [
            MetadataResponseBroker(node_id=node, host=f"10.0.0.{number}", port=node) for node in range(1, 4)
        ]
        return encode_response(MetadataResponse(brokers=brokers), version=12, correlation_id=0)

    async def main() -> None:
        async with Upstream(changing) as upstream, Tap(upstream.address) as tap:
            places: list[list[tuple[str, int]]] = []
            reader, writer = await connection(tap)
            for _ in range(20):
                writer.write(encode_request(MetadataRequest(), version=12, correlation_id=0))
                frame = await read_frame(reader)
                answer = decode_response(frame, api_key=3, version=12).message
                assert isinstance(answer, MetadataResponse)
                places.append([(broker.host, broker.port) for broker in answer.brokers])
            await until(lambda: len(tap._servers) == len(tap._listeners) == len(tap.addresses) == 4)
            for place in places[-1]:
                (await asyncio.open_connection(*place))[1].close()
            for place in set(places[0]) - set(places[-1]):
                with pytest.raises(ConnectionRefusedError):
                    await asyncio.open_connection(*place)
            writer.close()
            await until(lambda: not tap.connections)

    run(main())


def test_files_are_left_to_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    for files, expected in ((1_024, 256), (1 << 20, 1_000), (resource.RLIM_INFINITY, 1_000)):
        monkeypatch.setattr(resource, "getrlimit", lambda kind, files=files: (files, files))
        assert most_brokers() == expected


def test_nothing_is_left_of_connections() -> None:
    def objects() -> int:
        gc.collect()
        return sum(isinstance(entry, TapLink) for entry in gc.get_objects())

    async def main() -> None:
        async with Broker(nodes=3) as broker, Tap(broker.bootstrap, traffic=Traffic()) as tap:
            for number in range(30):
                reader, writer = await connection(tap)
                writer.write(encode_request(MetadataRequest(), version=12, correlation_id=number))
                if number % 3:
                    await read_frame(reader)
                if number % 2:
                    writer.transport.abort()
                else:
                    writer.close()
            await until(lambda: not tap.connections and not broker.links)
            await asyncio.sleep(0.05)
            assert tap.memory.used == 0
            assert objects() == 0
            assert tap.counts.connections == 30

    run(main())
