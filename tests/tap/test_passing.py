"""What passes through a tap: all bytes as they are, but for brokers' addresses, and versions that nobody here
can read."""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from coordwire import Connection, decode_response
from coordwire.broker import Broker
from coordwire.client.settings import Address
from coordwire.codec.walk import walk
from coordwire.frames import encode_request, encode_response, read_request, read_response
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    find_message,
)
from coordwire.messages.api_versions import ApiVersion
from coordwire.messages.keys import FACTS, ApiKey
from coordwire.messages.metadata import MetadataResponseBroker
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.tap import Tap, TooManyBrokers
from coordwire.tap.addresses import BrokerAddresses, names_brokers
from tests.broker.peer import Peer, run
from tests.filled_requests import KEEP, filled
from tests.growth import assert_linear
from tests.tap.upstream import Addressed, Upstream, frame_of, frames_in, read_frame


@pytest.fixture(autouse=True)
def _nothing_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No frame fails, and no callback of the loop."""
    yield
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def with_addresses(cls: Any, version: int) -> Any:
    """A response whose arrays have two elements, with an address wherever a broker may be named."""

    def value(path: tuple[str, ...], field: Any, number: int) -> Any:
        if field.entity == "broker_host":
            return "kafka.example"
        if field.entity == "broker_port":
            return 9000 + number
        if field.entity == "broker_id":
            return number
        return f"text {number}" if field.type == "string" and not field.array else KEEP

    return filled(cls, version, (), [0, 1], value)


PLACES = [
    (key, version)
    for key, facts in FACTS.items()
    for version in range(facts.first, facts.last + 1)
    if names_brokers(key, version)
]


def test_the_responses_that_name_brokers_are_found_by_their_schemas() -> None:
    assert {ApiKey(key).name for key, _ in PLACES} >= {
        "METADATA", "FIND_COORDINATOR", "DESCRIBE_CLUSTER", "PRODUCE", "FETCH", "SHARE_FETCH",
        "SHARE_ACKNOWLEDGE", "DESCRIBE_QUORUM", "VOTE", "FETCH_SNAPSHOT", "UPDATE_RAFT_VOTER",
    }  # fmt: skip
    assert (ApiKey.PRODUCE, 9) not in PLACES
    assert not names_brokers(ApiKey.HEARTBEAT, 4)
    assert not names_brokers(9_999, 0)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{FACTS[place[0]].name} {place[1]}")
def test_every_address_is_rewritten_and_nothing_else(place: tuple[int, int]) -> None:
    key, version = place
    asked: list[Address] = []

    def listen(broker: Address) -> Address:
        asked.append(broker)
        return "127.0.0.1", broker[1] + 10_000

    response = with_addresses(find_message(key, "response"), version)
    wire = response.encode(version=version)
    changed = type(response).decode(wire, version=version)
    hosts = [field for _, _, field, _ in walk(changed, version) if field.entity == "broker_host"]
    addresses = BrokerAddresses(listen, asked.remove)
    assert addresses.rewrite(changed, version) is bool(hosts)
    for before, after in zip(walk(response, version), walk(changed, version), strict=True):
        if before.field.entity == "broker_host":
            assert after.value == "127.0.0.1"
        elif before.field.entity == "broker_port":
            assert after.value == before.value + 10_000
        elif before.field.struct is None:
            assert after.value == before.value
    assert len(asked) == len(set(asked)) == len(addresses)
    assert b"kafka.example" not in changed.encode(version=version)


def test_what_is_no_address_stays() -> None:
    answer = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="", port=9092)])
    answer.brokers += [MetadataResponseBroker(node_id=2, host="h", port=port) for port in (-1, 0, 70_000)]
    before = answer.encode(version=12)
    assert not BrokerAddresses(lambda broker: broker, print).rewrite(answer, 12)
    assert answer.encode(version=12) == before


def test_there_is_a_bound_of_brokers() -> None:
    listening: list[Address] = []

    def listen(broker: Address) -> Address:
        listening.append(broker)
        return broker

    def name(*ports: int) -> list[int]:
        """The ports that are listened for after a response that names these."""
        brokers = [MetadataResponseBroker(node_id=port, host="h", port=port) for port in ports]
        addresses.rewrite(MetadataResponse(brokers=brokers), 12)
        return [port for _, port in listening]

    addresses = BrokerAddresses(listen, listening.remove, [("h", 9)], most=3)
    assert addresses.local(("h", 9)) == ("h", 9)
    assert name(1, 2, 1) == [9, 1, 2]
    with pytest.raises(TooManyBrokers, match="more than 3 brokers"):
        name(2, 3, 4)
    assert name(1) == [9, 1, 2]  # as before
    assert name(3) == [9, 1, 3]  # 2 was named longest ago
    assert name(4, 5) == [9, 4, 5]
    assert len(addresses) == 3
    assert addresses.node(("h", 1)) == -1


@pytest.mark.growth
def test_work_for_addresses_that_change_is_linear() -> None:
    def rewritten(responses: int) -> None:
        addresses = BrokerAddresses(lambda broker: broker, lambda broker: None, [("h", 9)], most=50)
        for number in range(responses):
            brokers = [
                MetadataResponseBroker(node_id=index, host=f"h{number}", port=index + 1)
                for index in range(40)
            ]
            addresses.rewrite(MetadataResponse(brokers=brokers), 12)

    assert_linear(lambda n: n, rewritten, 10)


def requests() -> Iterator[bytes]:
    """A request of every API in every version, and of what is unknown."""
    number = 0
    for key, facts in FACTS.items():
        for version in range(facts.first, facts.last + 1):
            if (key, version) == (ApiKey.SASL_HANDSHAKE, 0):
                continue  # after it come bare tokens
            number += 1
            message = find_message(key, "request")()
            if isinstance(message, ProduceRequest):
                message.acks = -1
            yield encode_request(message, version=version, correlation_id=number, client_id="c")
    for key, version in ((9_999, 3), (3, 99), (0, 99)):
        number += 1
        yield frame_of(struct.pack(">hhi", key, version, number) + b"\0\1c" + b"rest")
    yield frame_of(b"")
    yield frame_of(b"short")


def answered(frame: bytes) -> bytes:
    """An answer of its API, without addresses; of an unknown one, some bytes."""
    if len(frame) < 12:
        return b""
    key, version, number = struct.unpack_from(">hhi", frame, 4)
    facts = FACTS.get(key)
    if facts is None or not facts.first <= version <= facts.last:
        return frame_of(struct.pack(">i", number) + b"whatever")
    return encode_response(find_message(key, "response")(), version=version, correlation_id=number)


def test_frames_pass_byte_for_byte() -> None:
    frames = list(requests())

    async def main() -> None:
        async with Upstream(answered) as upstream, Tap(upstream.address) as tap:
            host, _, port = tap.bootstrap.split(",")[0].rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            data = b"".join(frames)
            for at in range(0, len(data), 997):
                writer.write(data[at : at + 997])
                await writer.drain()
            answers = [await read_frame(reader) for frame in frames if answered(frame)]
            assert bytes(upstream.received) == data
            assert answers == [answered(frame) for frame in frames if answered(frame)]
            counts = tap.counts
            assert counts.requests_in == counts.requests_out == len(frames)
            assert counts.responses_in == counts.responses_out == len(answers)
            assert (counts.changed, counts.unmatched, counts.refused) == ({}, 0, 0)
            assert counts.unread == 3  # a Produce and a Metadata of unknown versions, and its answer
            writer.close()

    run(main())


def test_addresses_become_local_ones_that_lead_to_the_brokers() -> None:
    async def main() -> None:
        async with (
            Broker(topics={"orders": 3}, nodes=3) as broker,
            Tap(broker.bootstrap.split(",")[0]) as tap,
        ):
            async with Peer(broker) as peer, Peer(Addressed(tap.bootstrap)) as tapped:
                direct = await peer.ask(MetadataRequest(topics=None), 12)
                answer = await tapped.ask(MetadataRequest(topics=None), 12)
            assert [node.node_id for node in answer.brokers] == [1, 2, 3]
            places = {(node.host, node.port) for node in answer.brokers}
            assert not places & {(node.host, node.port) for node in direct.brokers}
            assert len(places) == len(tap.addresses) == 3
            assert f"127.0.0.1:{answer.brokers[0].port}" == tap.bootstrap
            for node in answer.brokers:
                async with Peer(Addressed(f"127.0.0.1:{node.port}")) as peer:
                    assert (await peer.ask(MetadataRequest(topics=[]), 12)).brokers == answer.brokers
            assert [tap.addresses.node(place) for place, _ in tap.addresses.items()] == [1, 2, 3]
            assert tap.counts.changed == {"addresses": 4}
            answer.brokers = direct.brokers
            assert answer == direct

    run(main())


def test_versions_that_have_to_be_read_are_those_that_can_be() -> None:
    offered = [(ApiKey.METADATA, 99), (ApiKey.HEARTBEAT, 99), (ApiKey.API_VERSIONS, 99), (9_999, 99)]
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=key, min_version=0, max_version=last) for key, last in offered]
    )

    def answer(frame: bytes) -> bytes:
        return encode_response(response, version=3, correlation_id=0)

    async def asked(tap: Tap) -> dict[int, int]:
        async with Peer(Addressed(tap.bootstrap)) as peer:
            answer = await peer.ask(ApiVersionsRequest(), 3)
            return {api.api_key: api.max_version for api in answer.api_keys}

    async def main() -> None:
        newest = FACTS[ApiKey.METADATA].last
        async with Upstream(answer) as upstream, Tap(upstream.address) as tap:
            assert await asked(tap) == dict(offered) | {ApiKey.METADATA: newest}
            tap.faults.add("Heartbeat lose optional")
            heartbeat = FACTS[ApiKey.HEARTBEAT].last
            assert await asked(tap) == dict(offered) | {
                ApiKey.METADATA: newest,
                ApiKey.HEARTBEAT: heartbeat,
            }
            assert tap.counts.changed == {"versions": 2}

    run(main())


def test_requests_without_an_answer_wait_for_none() -> None:
    part = PartitionProduceData(index=0, records=b"")
    silent = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[part])])
    sent = encode_request(silent, version=9, correlation_id=7, client_id="c")
    request = encode_request(HeartbeatRequest(), version=4, correlation_id=8)

    def answer(frame: bytes) -> bytes:
        return b"" if frame == sent else answered(frame)

    async def main() -> None:
        async with Upstream(answer) as upstream, Tap(upstream.address) as tap:
            reader, writer = await connection(tap)
            writer.write(sent * 20_000 + request)  # more than may wait
            assert await read_frame(reader) == answered(request)
            assert bytes(upstream.received) == sent * 20_000 + request
            writer.close()

    run(main())


async def connection(tap: Tap) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = tap.bootstrap.split(",")[0].rpartition(":")
    return await asyncio.open_connection(host, int(port))


def test_bare_tokens_pass_until_a_request_comes() -> None:
    """After a SaslHandshake v0; what looks like a request among them is a token only if it cannot be one."""
    handshake = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), version=0, correlation_id=1)
    accepted = encode_response(SaslHandshakeResponse(mechanisms=["PLAIN"]), version=0, correlation_id=1)
    tokens = [frame_of(b"\0alice\0secret"), frame_of(b"")]
    request = encode_request(MetadataRequest(topics=None), version=12, correlation_id=2)
    named = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=1)])
    answer = encode_response(named, version=12, correlation_id=2)
    replies = {handshake: accepted, tokens[0]: frame_of(b"again"), tokens[1]: frame_of(b""), request: answer}

    async def main() -> None:
        async with Upstream(replies.__getitem__) as upstream, Tap(upstream.address) as tap:
            reader, writer = await connection(tap)
            writer.write(b"".join((handshake, *tokens, request)))
            assert await read_frame(reader) == accepted
            assert await read_frame(reader) == replies[tokens[0]]
            assert await read_frame(reader) == replies[tokens[1]]
            wire = await read_frame(reader)
            response = decode_response(wire, request_class=MetadataRequest, version=12).message
            assert response.brokers[0].host == "127.0.0.1"
            assert bytes(upstream.received) == b"".join((handshake, *tokens, request))
            writer.close()

    run(main())


def test_what_comes_before_an_end_is_sent_on() -> None:
    half = encode_request(HeartbeatRequest(), version=4, correlation_id=1)[:-3]

    async def main() -> None:
        async with Upstream() as upstream, Tap(upstream.address) as tap:
            _, writer = await connection(tap)
            writer.write(half)
            writer.write_eof()
            while bytes(upstream.received) != half or not upstream.ended:
                await asyncio.sleep(0.01)
            writer.close()
            while tap.connections:
                await asyncio.sleep(0.01)

        async with Upstream(lambda frame: half) as upstream, Tap(upstream.address) as tap:
            reader, writer = await connection(tap)
            writer.write(encode_request(HeartbeatRequest(), version=4, correlation_id=1))
            while not upstream.received:
                await asyncio.sleep(0.01)
            for task in list(upstream._tasks):
                task.cancel()
            assert await reader.read() == half
            writer.close()

    run(main())


def test_a_response_keeps_its_unknown_tags_and_versions() -> None:
    """What is encoded again differs in the addresses alone."""
    named = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="host.example", port=9092)])
    named.tags = {77: b"unknown"}
    named.brokers[0].tags = {9: b"more"}
    wire = encode_response(named, version=12, correlation_id=0, header_tags={5: b"header"})

    async def main() -> None:
        async with Upstream(lambda frame: wire) as upstream, Tap(upstream.address) as tap:
            reader, writer = await connection(tap)
            writer.write(encode_request(MetadataRequest(), version=12, correlation_id=0))
            passed = await read_frame(reader)
            frame = read_response(passed[4:], ApiKey.METADATA, 12)
            assert frame.header.tags == {5: b"header"}
            assert isinstance(frame.message, MetadataResponse)
            frame.message.brokers[0].host, frame.message.brokers[0].port = "host.example", 9092
            assert frame.message == named
            writer.close()

    run(main())


def test_it_starts_again_and_refuses_to_start_twice() -> None:
    async def main() -> None:
        async with Broker() as broker:
            tap = Tap(broker.bootstrap)
            for _ in range(2):
                await tap.start()
                with pytest.raises(RuntimeError, match="is running"):
                    await tap.start()
                async with Peer(Addressed(tap.bootstrap)) as peer:
                    assert (await peer.ask(HeartbeatRequest(), 4)).error_code
                await tap.stop()
                await tap.stop()
            with pytest.raises(RuntimeError, match="not running"):
                _ = tap.bootstrap

    run(main())


def test_ports_follow_the_first() -> None:
    async def main() -> None:
        async with Broker(nodes=3) as broker, Tap(broker.bootstrap) as first:
            taken = int(first.bootstrap.split(",")[0].rpartition(":")[2])
            with pytest.raises(OSError, match="in use"):
                await Tap(broker.bootstrap, port=taken).start()

    run(main())


def test_a_thread_has_a_tap() -> None:
    async def main(bootstrap: str) -> None:
        async with Peer(Addressed(bootstrap)) as peer:
            assert isinstance(await peer.ask(HeartbeatRequest(), 4), HeartbeatResponse)

    with Broker.in_thread() as broker, Tap.in_thread(broker.bootstrap) as tap:
        run(main(tap.bootstrap))
        assert tap.counts.requests_out == 1
    assert frames_in(frame_of(b"a") + frame_of(b"b")) == [frame_of(b"a"), frame_of(b"b")]
    assert read_request(Connection("client").send(HeartbeatRequest(), version=4)[4:]).api_version == 4
