"""Large frames that pass a tap in the pieces in which they come, and those that are held."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.broker.harness.traffic import Traffic
from coordwire.frames import decode_response, encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchTopic,
    NodeEndpoint,
    PartitionData,
)
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.tap import Script
from coordwire.tap.addresses import shows_no_address
from tests.tap.still import StillTap

SIZE = 300_000
PIECE = 50_000
BEAT = encode_request(HeartbeatRequest(group_id="g", member_id="m"), version=4, correlation_id=9)
BEATEN = encode_response(HeartbeatResponse(), version=4, correlation_id=9)


def produced(acks: int, number: int = 1, transactional_id: str | None = None) -> bytes:
    partition = PartitionProduceData(index=0, records=random.Random(number).randbytes(SIZE))
    topic = TopicProduceData(name="t", partition_data=[partition])
    request = ProduceRequest(acks=acks, transactional_id=transactional_id, topic_data=[topic])
    return encode_request(request, version=9, correlation_id=number)


def fetch(version: int = 12, epoch: int = -1) -> bytes:
    topic = FetchTopic(topic="t", topic_id=UUID(int=4), partitions=[FetchPartition(partition=0)])
    if version > 12:
        topic.topic = ""
    else:
        topic.topic_id = UUID(int=0)
    return encode_request(
        FetchRequest(session_epoch=epoch, topics=[topic]), version=version, correlation_id=2
    )


def fetched(version: int = 12, endpoints: list[NodeEndpoint] | None = None, count: int = 1) -> bytes:
    records = random.Random(2).randbytes(SIZE)
    partitions = [PartitionData(partition_index=index, records=records) for index in range(count)]
    topic = FetchableTopicResponse(partitions=partitions)
    if version > 12:
        topic.topic_id = UUID(int=4)
    else:
        topic.topic = "t"
    response = FetchResponse(responses=[topic], node_endpoints=endpoints or [])
    return encode_response(response, version=version, correlation_id=2)


def pieces(data: bytes, size: int = PIECE) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("acks", [1, -1, 0])
def test_a_large_request_passes_before_it_is_whole(acks: int) -> None:
    tap = StillTap()
    link, _, broker = tap.linked()
    data = produced(acks)
    for number, piece in enumerate(pieces(data), 1):
        link.client.data_received(piece)
        tap.run()
        assert bytes(broker.written) == data[: number * PIECE]
        assert link.client.held_bytes < 2 * PIECE
    link.client.data_received(BEAT)
    tap.run()
    assert bytes(broker.written) == data + BEAT
    assert (tap.counts.requests_in, tap.counts.requests_out) == (2, 2)
    answer = encode_response(ProduceResponse(), version=9, correlation_id=1)
    link.broker.data_received(answer)
    tap.run()
    assert tap.counts.unmatched == (acks == 0)  # without acks, no answer is waited for


@pytest.mark.parametrize("version", [12, 17])  # the newer one may name brokers after the records
def test_a_large_response_passes_before_it_is_whole(version: int) -> None:
    traffic = Traffic()
    tap = StillTap(traffic=traffic, show_secrets=True)
    link, client, _ = tap.linked()
    data = fetched(version)
    link.client.data_received(fetch(version))
    tap.run()
    for number, piece in enumerate(pieces(data + BEATEN), 1):
        link.broker.data_received(piece)
        tap.run()
        assert bytes(client.written) == (data + BEATEN)[: number * PIECE]
    assert (tap.counts.responses_in, tap.counts.responses_out, tap.counts.unmatched) == (2, 2, 1)
    assert b"".join(piece for _, _, to_client, piece in traffic._pieces if to_client) == data + BEATEN


@pytest.mark.parametrize("held", ["script", "rule", "a new session", "a broker", "another partition"])
def test_what_has_to_be_read_is_held(held: str) -> None:
    tap = StillTap(script=Script(response=lambda exchange: None) if held == "script" else None)
    if held == "rule":
        tap.faults.add("Fetch topic=t after error=NOT_LEADER_OR_FOLLOWER")
    version = 17 if held in ("a broker", "another partition") else 12
    link, client, _ = tap.linked()
    link.client.data_received(fetch(version, epoch=0 if held == "a new session" else -1))
    tap.run()
    endpoints = [NodeEndpoint(node_id=1, host="h", port=9_092)] if held == "a broker" else []
    data = fetched(version, endpoints, count=2 if held == "another partition" else 1)
    *first, last = pieces(data)
    for piece in first:
        link.broker.data_received(piece)
        tap.run()
        assert not client.written
    link.broker.data_received(last)
    tap.run()
    if held == "a broker":
        answer: Any = decode_response(bytes(client.written), api_key=1, version=17).message
        assert [(node.host, node.port) for node in answer.node_endpoints] == [("127.0.0.1", 9_092)]
    elif held == "rule":
        answer = decode_response(bytes(client.written), api_key=1, version=12).message
        assert answer.responses[0].partitions[0].error_code == 6
    else:
        assert bytes(client.written) == data


@given(
    hosts=st.lists(st.text(max_size=3), max_size=2),
    sizes=st.lists(st.integers(0, 9_000), max_size=3),
    head=st.integers(20, 9_000),
)
def test_first_bytes_that_show_no_address_have_none_after_them(
    hosts: list[str], sizes: list[int], head: int
) -> None:
    partitions = [PartitionData(partition_index=0, records=bytes(size)) for size in sizes]
    endpoints = [NodeEndpoint(node_id=1, host=host, port=1) for host in hosts]
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=UUID(int=4), partitions=partitions)],
        node_endpoints=endpoints,
    )
    data = encode_response(response, version=17, correlation_id=2)
    if shows_no_address(data[:head], 1, 17):
        assert not any(hosts)
    if len(sizes) == 1 and head <= sizes[0] and head > 80 and not hosts:
        assert shows_no_address(data[:head], 1, 17)


def test_an_answer_of_the_tap_waits_for_the_response_before_it() -> None:
    tap = StillTap()
    tap.faults.add("Heartbeat group=g error=REBALANCE_IN_PROGRESS")
    link, client, broker = tap.linked()
    link.client.data_received(fetch())
    data = fetched()
    link.broker.data_received(data[:PIECE])
    tap.run()
    link.client.data_received(BEAT)
    tap.run()
    assert bytes(client.written) == data[:PIECE]
    link.broker.data_received(data[PIECE:])
    tap.run()
    answer = bytes(client.written)[len(data) :]
    assert bytes(client.written)[: len(data)] == data
    response: Any = decode_response(answer, api_key=12, version=4).message
    assert response.error_code == 27
    assert BEAT not in bytes(broker.written)


def test_an_authentication_waits_for_the_request_that_passes() -> None:
    tap = StillTap()
    link, _, broker = tap.linked()
    data = produced(0)
    link.client.data_received(data[:PIECE])
    tap.run()
    link.renew()
    link.client.data_received(data[PIECE:])
    tap.run()
    assert bytes(broker.written) == data


def test_a_produce_whose_acks_come_late_is_held() -> None:
    tap = StillTap()
    link, _, broker = tap.linked()
    data = produced(0, transactional_id="x" * 9_000)
    link.client.data_received(data[:PIECE])
    tap.run()
    assert not broker.written
    link.client.data_received(data[PIECE:])
    tap.run()
    assert bytes(broker.written) == data
    assert tap.counts.unread == 0


def test_an_end_within_a_frame_is_sent_on() -> None:
    tap = StillTap()
    link, client, broker = tap.linked()
    data = produced(1)
    link.client.data_received(data[:PIECE])
    link.client.eof_received()
    tap.run()
    assert bytes(broker.written) == data[:PIECE]
    assert broker.closed
    assert client.closed


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_size_pass_as_the_whole_does(seed: int) -> None:
    rng = random.Random(seed)
    requests = produced(1) + fetch() + BEAT + produced(0, 5) + produced(-1, 6) + BEAT
    answers = b"".join(
        (
            encode_response(ProduceResponse(), version=9, correlation_id=1),
            fetched(),
            BEATEN,
            encode_response(ProduceResponse(), version=9, correlation_id=6),
            BEATEN,
        )
    )
    tap = StillTap()
    link, client, broker = tap.linked()
    for side, data, sink in ((link.client, requests, broker), (link.broker, answers, client)):
        at = 0
        while at < len(data):
            size = rng.choice([1, 3, 60, 5_000, 70_000, 400_000])
            side.data_received(data[at : at + size])
            at += size
            if rng.random() < 0.7:
                tap.run()
        tap.run()
        assert bytes(sink.written) == data
    counts = tap.counts
    assert (counts.requests_in, counts.requests_out) == (6, 6)
    assert (counts.responses_in, counts.responses_out) == (5, 5)
    assert (counts.unread, counts.refused) == (0, 0)
