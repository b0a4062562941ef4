"""Requests of a capture, sent again: a cluster as it was gives equal answers, though its ids are others; of
another one, what differs is found."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.harness import Kafka
from coordwire.capture import Capture, Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.cli.__main__ import main
from coordwire.cli.replay import _print as printed_result
from coordwire.client import ClientSettings, Plain, addresses
from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.errors import Truncated
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    CreateTopicsResponse,
    DescribeConfigsResponse,
    FetchRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    find_message,
)
from coordwire.messages.create_topics import CreatableTopicConfigs, CreatableTopicResult
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, batches, encode_batch
from coordwire.replay import Difference, Replay, ReplayedRequest
from coordwire.replay.differences import differences
from coordwire.replay.identifiers import Identifiers
from coordwire.replay.replay import MOST_FAILURES
from tests.broker.blocking_peer import BlockingPeer
from tests.tap.upstream import Upstream, frame_of


def produced(peer: BlockingPeer) -> None:
    """Three batches of an idempotent producer."""
    made = peer.ask(InitProducerIdRequest(transactional_id=None), 4)
    for sequence in range(3):
        batch = encode_batch(
            [Record(value=b"%d" % sequence, timestamp=1)],
            producer_id=made.producer_id,
            producer_epoch=made.producer_epoch,
            base_sequence=sequence,
            base_offset=0,
        )
        part = PartitionProduceData(index=0, records=batch)
        topic = TopicProduceData(name="orders", partition_data=[part])
        answer = peer.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[topic]), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def used(bootstrap: str) -> None:
    """A group with one member, an idempotent producer, fetches: whatever has ids."""
    with BlockingPeer(bootstrap, "till-3") as peer:
        peer.ask(MetadataRequest(topics=None), 12)
        member = peer.join("payments", "orders", 1)
        assert peer.beat(member) == 0
        assert peer.commit(member, "orders", 0) == 0
        assert peer.beat(member, generation=7) == ErrorCode.ILLEGAL_GENERATION
        produced(peer)
        asked = FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=0
        )
        topic = FetchTopic(topic="orders", partitions=[asked])
        fetch = FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=1 << 20, topics=[topic])
        assert peer.ask(fetch, 12).responses[0].partitions[0].records


@pytest.fixture(scope="module")
def captured() -> Iterator[bytes]:
    with Kafka(topics=["orders"]) as kafka:
        used(kafka.bootstrap)
        yield kafka.traffic.pcap()


@pytest.fixture(scope="module")
def captured_produces() -> Iterator[bytes]:
    with Kafka(topics=["orders"]) as kafka:
        with BlockingPeer(kafka.bootstrap, "till-3") as peer:
            produced(peer)
        yield kafka.traffic.pcap()


def entries(data: bytes) -> Iterator[Entry]:
    return Capture(io.BytesIO(data), "captured").entries()


def replayed(data: bytes, bootstrap: str, **settings: Any) -> tuple[Replay, list[ReplayedRequest]]:
    replay = Replay(ClientSettings(bootstrap=addresses(bootstrap), **settings), timeout_s=5)

    async def run() -> list[ReplayedRequest]:
        return [result async for result in replay.run(entries(data))]

    return replay, asyncio.run(run())


def test_a_cluster_as_it_was_gives_equal_answers(captured: bytes) -> None:
    with Broker.in_thread(topics=["orders"]) as broker:
        with BlockingPeer(broker.bootstrap) as peer:  # so that the next ids are others
            for _ in range(3):
                peer.ask(InitProducerIdRequest(transactional_id=None), 4)
        replay, results = replayed(captured, broker.bootstrap)
    unequal = [result for result in results if not result.is_equal]
    assert [(result.entry.api_name, result.differences, result.error) for result in unequal] == []
    assert len(results) == replay.totals.sent == replay.totals.compared == 11
    assert (replay.totals.differing, replay.totals.failed, replay.totals.skipped) == (0, 0, {})
    assert len(replay.identifiers) >= 3


def test_another_cluster_gives_others(captured: bytes, captured_produces: bytes) -> None:
    with Broker.in_thread(topics={"orders": 2}) as broker:
        replay, results = replayed(captured, broker.bootstrap)
        _, second = replayed(captured_produces, broker.bootstrap)
    (first,) = [result for result in results if not result.is_equal]
    assert first.differences == [Difference("topics[0].partitions", "1 element", "2 elements")]
    assert replay.totals.differing == 1
    place = "responses[0].partition_responses[0].base_offset"
    assert [result.differences for result in second] == [
        [],
        *([Difference(place, number, number + 3)] for number in range(3)),
    ]  # offsets go on


def test_it_authenticates_and_leaves_the_captures_own_out() -> None:
    from coordwire.messages import SaslAuthenticateRequest, SaslHandshakeRequest
    from coordwire.sasl import PlainCredentials

    users = BrokerConfig(users={"ann": "secret"})
    with Kafka(config=users) as kafka:
        with BlockingPeer(kafka.bootstrap) as peer:
            peer.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
            token = PlainCredentials(user="ann", password="secret").encode()
            peer.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
            peer.ask(HeartbeatRequest(group_id="g"), 4)
        data = kafka.traffic.pcap()
    with Broker.in_thread(config=users) as broker:
        replay, results = replayed(data, broker.bootstrap, sasl=Plain("ann", "secret"))
        assert replay.totals.skipped == {"authentication": 2}
        assert [result.is_equal for result in results] == [True]
        _, refused = replayed(data, broker.bootstrap, sasl=Plain("ann", "wrong"))
        assert "refuse" in str(refused[0].error)


def test_what_cannot_be_sent_or_is_not_answered_is_reported(captured: bytes) -> None:
    async def silent() -> list[ReplayedRequest]:
        async with Upstream() as upstream:
            settings = ClientSettings(bootstrap=addresses(upstream.address), connection_timeout_ms=300)
            replay = Replay(settings, timeout_s=0.2)
            results = [result async for result in replay.run(entries(captured))]
            assert replay.totals.failed == len(results) == 11
            return results

    reasons = [str(result.error) for result in asyncio.run(silent())]
    assert all("no connection within 200 ms" in reason for reason in reasons[:MOST_FAILURES])
    assert all("given up after 3 connections" in reason for reason in reasons[MOST_FAILURES:])
    replay, results = replayed(captured, "127.0.0.1:1")
    assert (replay.totals.sent, replay.totals.failed) == (0, 11)
    older = BrokerConfig(as_of="2.0")
    with Broker.in_thread(topics=["orders"], config=older) as broker:
        replay, results = replayed(captured, broker.bootstrap)
    assert any("the broker has no Metadata v12" in str(result.error) for result in results)


def test_a_broker_that_ends_connections_is_reported(captured: bytes) -> None:
    with Broker.in_thread(topics=["orders"]) as broker:
        broker.faults.add("Heartbeat disconnect")
        replay, results = replayed(captured, broker.bootstrap)
    errors = [str(result.error) for result in results if result.error is not None]
    assert errors
    assert "the broker closed the connection" in errors[0]
    assert replay.totals.failed == len(errors)


def test_any_bytes_may_be_a_capture() -> None:
    data = as_pcap([(1, 0, False, frame_of(b"\0\x0c\0\4\0\0\0\1\xff\xff")), (2, 0, True, frame_of(b"x"))])
    with Broker.in_thread() as broker:
        replay, results = replayed(data, broker.bootstrap)
    assert results == []
    assert replay.totals.sent == 0


# --- the parts ---


def test_ids_of_two_answers_are_learned_and_put_in() -> None:
    identifiers = Identifiers()
    request = ProduceRequest(acks=-1)
    from coordwire.messages import InitProducerIdResponse

    identifiers.learn(
        InitProducerIdRequest(),
        InitProducerIdResponse(producer_id=7, producer_epoch=0),
        InitProducerIdResponse(producer_id=9, producer_epoch=3),
        4,
    )
    batch = encode_batch(
        [Record(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=5, base_offset=0
    )
    part = PartitionProduceData(index=0, records=batch + batch[:9])
    request.topic_data = [TopicProduceData(name="t", partition_data=[part])]
    identifiers.update(request, 9)
    records = request.topic_data[0].partition_data[0].records
    assert records is not None
    (changed,) = batches(records)
    assert (changed.producer_id, changed.producer_epoch, changed.base_sequence) == (9, 3, 5)
    assert [record.value for record in changed] == [b"v"]  # its checksum is right
    assert bytes(records).endswith(batch[:9])
    part.records = b"nonsense" * 9
    identifiers.update(request, 9)
    assert request.topic_data[0].partition_data[0].records == b"nonsense" * 9


def metadata(*topics: str, leader: int = 1, host: str = "a") -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=host, port=1)],
        topics=[
            MetadataResponseTopic(
                name=name, partitions=[MetadataResponsePartition(partition_index=0, leader_id=leader)]
            )
            for name in topics
        ],
    )


# --- secrets ---

SECRET = "HUNTER2-SECRET"


def created(*values: str) -> CreateTopicsResponse:
    configs = [CreatableTopicConfigs(name="x.secret", value=value) for value in values]
    return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", configs=configs or None)])


def described(*rows: tuple[str, str | None]) -> DescribeConfigsResponse:
    configs = [DescribeConfigsResourceResult(name=name, value=value) for name, value in rows]
    result = DescribeConfigsResult(resource_type=2, resource_name="t", configs=configs)
    return DescribeConfigsResponse(results=[result])


@pytest.mark.parametrize("format", ["line", "json"])
@pytest.mark.parametrize(
    ("captured", "answered", "place", "is_struct"),
    [
        (created(SECRET), created(), "topics[0].configs", True),
        (created(), created(SECRET), "topics[0].configs", True),
        (
            described(("x.secret", None), ("retention.ms", "5")),
            described(("retention.ms", "5"), ("x.secret", SECRET)),
            "results[0].configs[0].value",
            False,
        ),
        (
            described(("x.secret", SECRET), ("retention.ms", "5")),
            described(("retention.ms", "5"), ("x.secret", None)),
            "results[0].configs[0].value",
            False,
        ),
        (
            described(("x.secret", SECRET)),
            described(("x.secret", SECRET + "2")),
            "results[0].configs[0].value",
            False,
        ),
    ],
)
def test_secrets_of_either_answer_are_not_printed(
    format: str,
    captured: Message,
    answered: Message,
    place: str,
    is_struct: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    key, version = captured.api_key, 7 if isinstance(captured, CreateTopicsResponse) else 4
    assert key is not None
    request = find_message(key, "request")()
    wires = [
        (10**18, 0, False, encode_request(request, version=version, correlation_id=1, client_id="c")),
        (10**18, 0, True, encode_response(captured, version=version, correlation_id=1)),
    ]
    first, response = Capture(io.BytesIO(as_pcap(wires)), "x.pcap").entries()
    assert isinstance(first, FrameEntry)
    assert isinstance(response, FrameEntry)
    places = differences(captured, answered, version)
    result = ReplayedRequest(first, captured, answered, differences=places, response=response)
    for shows in (False, True):
        printed_result(result, places, argparse.Namespace(show_secrets=shows, format=format))
        printed = capsys.readouterr().out
        assert place in printed
        assert (SECRET in printed) is (shows and not is_struct)
        assert ("1 element" in printed) is is_struct


def test_an_error_repeats_no_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    """A length of four bytes may be a piece of a text."""
    wire = encode_request(HeartbeatRequest(group_id="g", member_id="m"), version=4, correlation_id=1)
    (entry,) = Capture(io.BytesIO(as_pcap([(10**18, 0, False, wire)])), "x.pcap").entries()
    assert isinstance(entry, FrameEntry)
    result = ReplayedRequest(entry, error=Truncated("string needs 1213288264 bytes, 4 left", 0))
    printed_result(result, [], argparse.Namespace(show_secrets=False, format="line"))
    assert "needs more than 9999999 bytes" in capsys.readouterr().out


def test_elements_are_compared_by_their_names() -> None:
    assert differences(metadata("a", "b"), metadata("b", "a", host="z"), 12) == []
    assert differences(metadata("a"), metadata("a", leader=2), 12) == [
        Difference("topics[0].partitions[0].leader_id", 1, 2)
    ]
    assert differences(metadata("a", "b"), metadata("a"), 12) == [
        Difference("topics", "2 elements", "1 element")
    ]


# --- the command ---


def test_the_command(
    captured: bytes, captured_produces: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, produces = tmp_path / "captured.pcap", tmp_path / "produces.pcap"
    file.write_bytes(captured)
    produces.write_bytes(captured_produces)
    with Broker.in_thread(topics=["orders"]) as broker:
        words = ["replay", str(file), "--to", broker.bootstrap]
        assert main(words) == 2
        assert "expected --yes" in capsys.readouterr().err
        assert main([*words, "--yes"]) == 0
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "11 requests sent, 11 answers compared, 0 differ, 0 without an answer" in printed.err
        words = ["replay", str(produces), "--to", broker.bootstrap, "--yes"]
        assert main(words) == 1
        assert "responses[0].partition_responses[0].base_offset: 0, now 3" in capsys.readouterr().out
        assert main([*words, "--format", "json"]) == 1
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(line["api"], line["apiVersion"], line["error"]) for line in lines] == [
            ("Produce", 9, None)
        ] * 3
        assert main([*words, "--ignore", "base_offset"]) == 0
        assert main([*words, "--ignore", "responses[].partition_responses[].base_offset"]) == 0
    assert main(["replay", str(file), "--to", "127.0.0.1:1", "--yes", "--timeout", "1"]) == 1
    assert "Metadata v12 till-3: 127.0.0.1:1: " in capsys.readouterr().out
    for wrong in (["no-such", "--to", "h:1"], [str(file), "--to", "a:b:c"]):
        assert main(["replay", *wrong, "--yes"]) == 2
    assert main(["replay", str(file), "--to", "a:1", "--yes", "--timeout", "0"]) == 2
