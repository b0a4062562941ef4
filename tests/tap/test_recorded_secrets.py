"""What a tap records without secrets: frames that are whole, cut, damaged, out of order, and those of
faults."""

from __future__ import annotations

import io
import random
from uuid import UUID

import pytest

from coordwire.broker.harness.traffic import Traffic
from coordwire.capture import Capture, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ConfigRecord,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchTopic, PartitionData
from coordwire.records import Record, encode_batch
from fuzz.tap_secrets import check
from tests.damaged_conversations import damaged_frames
from tests.tap.still import StillTap

SECRET = "HUNTER2-HUNTER2-HUNTER2"
LOG, LOG_ID = "__cluster_metadata", UUID(int=1)


def answered(message: Message, version: int, number: int = 1) -> tuple[bool, bytes]:
    return True, encode_response(message, version=version, correlation_id=number)


def requested(message: Message, version: int, number: int = 1) -> tuple[bool, bytes]:
    return False, encode_request(message, version=version, correlation_id=number, client_id="till-3")


def configs() -> DescribeConfigsResponse:
    config = DescribeConfigsResourceResult(name="ssl.key.password", value=SECRET, documentation="d" * 60)
    result = DescribeConfigsResult(resource_type=4, resource_name="1", configs=[config])
    return DescribeConfigsResponse(results=[result])


def fetched(name: str, number: UUID, value: bytes) -> FetchResponse:
    part = PartitionData(partition_index=0, records=encode_batch([Record(value=value)]))
    return FetchResponse(responses=[FetchableTopicResponse(topic=name, topic_id=number, partitions=[part])])


def fetch(name: str, number: UUID) -> FetchRequest:
    topic = FetchTopic(topic=name, topic_id=number, partitions=[FetchPartition(partition=0)])
    return FetchRequest(topics=[topic], session_epoch=-1)


def recorded(frames: list[tuple[bool, bytes]], rule: str = "") -> tuple[list[bytes], Traffic]:
    """What a tap records of frames in each direction, whole frames or the part of one at the end."""
    traffic = Traffic()
    tap = StillTap(traffic=traffic)
    if rule:
        tap.faults.add(rule)
    link, client, _ = tap.linked()
    for back, frame in frames:
        if not client.closed:
            tap.in_context((link.broker if back else link.client).data_received, frame)
            tap.run()
    for side in (link.broker, link.client) if frames[-1][0] else (link.client, link.broker):
        if not client.closed:
            side.connection_lost(None)
            tap.run()
    link.abort()
    return [b"".join(piece for _, _, to, piece in traffic._pieces if to is back) for back in (False, True)], (
        traffic
    )


def read(traffic: Traffic) -> list[FrameEntry]:
    entries = list(Capture(io.BytesIO(as_pcap(traffic._pieces)), "saved").entries())
    assert all(isinstance(entry, FrameEntry) for entry in entries)
    return entries  # type: ignore[return-value]


HANDSHAKE = [
    requested(SaslHandshakeRequest(mechanism="PLAIN"), 1),
    answered(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1),
]
AUTHENTICATE = requested(SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + SECRET.encode()), 2, 2)
CONFIGS = [requested(DescribeConfigsRequest(), 4), answered(configs(), 4)]
RECORD = ConfigRecord(resource_type=2, resource_name="t", name="ssl.key.password", value=SECRET)
VALUE = b"\1\4\0" + RECORD.encode(version=0)


def changed(frame: tuple[bool, bytes], at: int, data: bytes) -> tuple[bool, bytes]:
    return frame[0], frame[1][:at] + data + frame[1][at + len(data) :]


TOKENS = [(False, b"\0\0\0\x1e\0alice\0" + SECRET.encode()), (True, b"\0\0\0\x17" + SECRET.encode())]
CASES = {
    "a request": [*HANDSHAKE, AUTHENTICATE],
    "a request that is cut": [*HANDSHAKE, (False, AUTHENTICATE[1][:-1])],
    "an answer": CONFIGS,
    "an answer that is cut": [CONFIGS[0], (True, CONFIGS[1][1][:-3])],
    "another API": [*HANDSHAKE, changed(AUTHENTICATE, 4, b"\0\x0c")],
    "another version": [*HANDSHAKE, changed(AUTHENTICATE, 6, b"\0\x09")],
    "an unknown API": [*HANDSHAKE, changed(AUTHENTICATE, 4, b"\x7f\0")],
    "another answer": [CONFIGS[0], changed(CONFIGS[1], 4, b"\0\0\0\x63")],
    "an answer first": [CONFIGS[1], CONFIGS[0]],
    "tokens": [
        requested(SaslHandshakeRequest(mechanism="PLAIN"), 0),
        answered(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0),
        *TOKENS,
    ],
    "tokens first": [TOKENS[1], TOKENS[0], *HANDSHAKE],
    "a large answer": [
        requested(fetch(LOG, UUID(int=0)), 12),
        answered(fetched(LOG, UUID(int=0), VALUE + bytes(300_000)), 12),
    ],
    **{
        f"the metadata log in v{version}": [
            requested(fetch(name, number), version),
            answered(fetched(name, number, VALUE), version),
        ]
        for version, name, number in (
            (4, LOG, UUID(int=0)),
            (12, LOG, UUID(int=0)),
            (13, "", LOG_ID),
            (17, "", LOG_ID),
        )
    },
}


@pytest.mark.parametrize("name", CASES)
def test_no_secret_is_recorded_and_nothing_lacks(name: str) -> None:
    frames = CASES[name]
    data, _ = recorded(frames)
    for back in (False, True):
        sent = b"".join(frame for to, frame in frames if to is back)
        assert len(data[back]) == len(sent)
        assert SECRET.encode()[:8] not in data[back]


@pytest.mark.parametrize("rule", ["DescribeConfigs half", "DescribeConfigs after half"])
def test_half_an_answer_of_a_fault_has_no_secret(rule: str) -> None:
    data, _ = recorded(CONFIGS, rule)
    assert SECRET.encode()[:8] not in data[True]
    assert data[True][:4] == CONFIGS[1][1][:4] or not data[True]


def test_what_has_no_secret_is_recorded_as_it_is() -> None:
    records = b"r" * 200_000
    frames = [
        requested(HeartbeatRequest(group_id="g", member_id="m"), 4, 1),
        requested(MetadataRequest(), 12, 2),
        answered(HeartbeatResponse(), 4, 1),
        (True, answered(MetadataResponse(cluster_id="c"), 12, 2)[1]),
        requested(fetch("orders", UUID(int=0)), 12, 3),
        answered(fetched("orders", UUID(int=0), records), 12, 3),
    ]
    data, _ = recorded(frames)
    assert data == [b"".join(frame for to, frame in frames if to is back) for back in (False, True)]


def test_fields_are_replaced_in_place() -> None:
    """A frame is not encoded again: an unknown tagged field keeps its place and its length."""
    request = SaslAuthenticateRequest(auth_bytes=SECRET.encode(), tags={9: b"unknown"})
    _, wire = requested(request, 2, 0x7EDCBA98)
    data, _ = recorded([(False, wire)])
    assert data[False] == wire.replace(SECRET.encode(), bytes(len(SECRET))).replace(b"unknown", bytes(7))


def test_a_capture_without_secrets_says_what_it_lacks() -> None:
    _, traffic = recorded([*HANDSHAKE, AUTHENTICATE])
    entry = read(traffic)[-1]
    assert entry.api_name == "SaslAuthenticate"
    assert entry.client_id == "till-3"
    assert withheld(entry).paths == ("auth_bytes",)
    _, traffic = recorded([*HANDSHAKE, changed(AUTHENTICATE, 20, b"\xff")])
    entry = read(traffic)[-1]
    assert (entry.api_name, entry.size) == ("SaslAuthenticate", len(AUTHENTICATE[1]) - 4)
    assert entry.error is not None


@pytest.mark.parametrize("seed", range(40))
def test_undamaged_connections_are_read_as_they_passed(seed: int) -> None:
    frames = [(back, bytes(frame)) for back, frame in damaged_frames(random.Random(seed), 0)]
    _, traffic = recorded(frames)
    entries = read(traffic)
    assert len(entries) == len(frames)
    assert [entry for entry in entries if entry.error is not None] == []


@pytest.mark.parametrize("seed", [*range(0, 400, 20), 1006000, 1007550, 1035320])
def test_damaged_connections(seed: int) -> None:
    for number in range(20):
        check(seed + number)
