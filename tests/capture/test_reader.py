"""From any input to entries: conversations, losses, mid-stream starts, and that no byte goes missing."""

from __future__ import annotations

import io
import struct
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordwire import encode_request, encode_response
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import Capture
from coordwire.errors import DecodeError, Malformed, UnknownApi, UnreadableRange
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    ProduceResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from . import build

SYN, ACK, FIN = build.SYN, build.ACK, build.FIN


def request(number: int, group: str = "payments") -> bytes:
    message = HeartbeatRequest(group_id=group, generation_id=number, member_id="m")
    return encode_request(message, version=4, correlation_id=number, client_id="till-3")


def response(number: int) -> bytes:
    return encode_response(HeartbeatResponse(error_code=number), version=4, correlation_id=number)


def conversation(
    client: Iterable[bytes], broker: Iterable[bytes], *, syn: bool = True, drop: frozenset[int] = frozenset()
) -> bytes:
    """A capture: client's and broker's segments in turn, without the dropped ones (numbered over both)."""
    packets = [build.packet(seq=99, flags=SYN), build.packet(back=True, seq=499, ack=100, flags=SYN | ACK)]
    packets = packets if syn else []
    seqs = [100, 500]
    turns = [item for pair in zip(client, broker, strict=True) for item in enumerate(pair)]
    for number, (side, data) in enumerate(turns):
        if number not in drop and data:
            packets.append(build.packet(data, back=bool(side), seq=seqs[side], ack=seqs[1 - side]))
        seqs[side] += len(data)
    for side in (0, 1):
        packets.append(build.packet(back=bool(side), seq=seqs[side], ack=seqs[1 - side], flags=FIN | ACK))
    return build.pcap(packets)


def entries(data: bytes, *, ports: tuple[int, ...] = (), strict: bool = False) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "test", ports=ports, strict=strict).entries())


def frames(found: Iterable[Entry]) -> list[FrameEntry]:
    return [entry for entry in found if isinstance(entry, FrameEntry)]


def test_requests_are_paired_with_their_responses() -> None:
    first, answer, second, last = frames(
        entries(conversation([request(1), request(2)], [response(1), response(2)]))
    )
    assert first.flow == "10.0.0.1:53412 > 10.0.0.2:9092"
    assert (first.api_key, first.api_version, first.client_id, first.number) == (12, 4, "till-3", 1)
    assert answer.request is first
    assert answer.message == HeartbeatResponse(error_code=1)
    assert answer.latency_ns == 1000
    assert last.request is second
    assert last.client_id == "till-3"


def test_pipelined_requests_in_one_segment() -> None:
    together = b"".join(request(n) for n in range(5))
    result = frames(entries(conversation([together], [b"".join(response(n) for n in range(5))])))
    assert [entry.correlation_id for entry in result] == [0, 1, 2, 3, 4] * 2
    assert all(entry.error is None for entry in result)


def test_a_start_in_mid_stream_finds_the_next_request() -> None:
    client = [request(1)[9:] + request(2), request(3)]
    result = entries(conversation(client, [response(1)[5:] + response(2), response(3)], syn=False))
    stretches = [entry for entry in result if isinstance(entry, UnreadableRange)]
    assert [(s.position, s.length) for s in stretches] == [
        (0, len(request(1)) - 9),
        (0, len(response(1)) - 5),
    ]
    assert all("mid-stream" in s.reason for s in stretches)
    assert [(e.direction, e.correlation_id, e.error) for e in frames(result)] == [
        ("request", 2, None),
        ("response", 2, None),
        ("request", 3, None),
        ("response", 3, None),
    ]


def test_a_lost_segment_costs_only_what_it_held() -> None:
    numbers = range(1, 9)
    data = conversation([request(n) for n in numbers], [response(n) for n in numbers], drop=frozenset({4}))
    result = entries(data)
    (gap,) = (entry for entry in result if isinstance(entry, UnreadableRange))
    assert (gap.position, gap.length) == (2 * len(request(1)), len(request(3)))
    orphan = next(e for e in frames(result) if e.direction == "response" and e.correlation_id == 3)
    assert orphan.api_key is None
    assert orphan.error is not None
    assert "no request" in orphan.error.reason
    assert orphan.body == response(3)[4:]
    assert sum(entry.error is None for entry in frames(result)) == 14


def test_what_is_not_kafka_is_left_alone() -> None:
    capture = Capture(
        io.BytesIO(conversation([b"GET / HTTP/1.1\r\n\r\n"], [b"HTTP/1.1 200 OK\r\n\r\n"])), "test"
    )
    assert list(capture.entries()) == []
    assert (capture.summary.connections, capture.summary.kafka) == (1, 0)


def test_a_named_port_is_believed() -> None:
    result = entries(conversation([b"", b"x"], [response(1), response(2)]), ports=(9092,))
    assert [(e.direction, e.api_key, e.correlation_id) for e in frames(result)] == [
        ("response", None, 1),
        ("response", None, 2),
    ]
    assert [s.reason for s in result if isinstance(s, UnreadableRange)] == [
        "the stream ends inside a frame: 1 byte of its size prefix"
    ]
    assert entries(conversation([request(1)], [response(1)]), ports=(1234,)) == []


def test_a_broker_that_answers_without_being_asked_to() -> None:
    produce = encode_request(ProduceRequest(acks=0), version=9, correlation_id=1)
    answer = encode_response(ProduceResponse(), version=9, correlation_id=1)
    _, got = frames(entries(conversation([produce], [answer])))
    assert got.message == ProduceResponse()


def test_bare_sasl_tokens_are_told_from_frames() -> None:
    hello = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), version=0, correlation_id=1)
    answer = encode_response(SaslHandshakeResponse(mechanisms=["PLAIN"]), version=0, correlation_id=1)
    token = b"\0me\0secret"
    client = [hello, struct.pack(">i", len(token)) + token, request(2)]
    result = frames(entries(conversation(client, [answer, b"\0\0\0\0", response(2)])))
    assert [entry.token for entry in result] == [False, False, True, True, False, False]
    assert all(entry.error is None for entry in result)
    assert result[2].body == token


def test_an_api_that_nobody_knows() -> None:
    odd = struct.pack(">ihhih3s", 13, 4321, 7, 9, 3, b"new")
    asked, answered = frames(entries(conversation([odd], [b"\0\0\0\6\0\0\0\x09ab"])))
    for entry in (asked, answered):
        assert isinstance(entry.error, UnknownApi)
        assert (entry.api_key, entry.api_version, entry.correlation_id, entry.client_id) == (
            4321,
            7,
            9,
            "new",
        )


def test_the_same_frames_in_every_format() -> None:
    stream = [data for n in range(3) for data in (request(n), response(n))]
    expected = [e.message for e in frames(entries(conversation(stream[::2], stream[1::2])))]
    lines = "\n".join(data.hex() for data in stream)
    for text in (lines.encode(), lines.upper().encode(), b"".join(stream)):
        result = entries(text)
        assert [e.message for e in frames(result)] == expected
        assert not [e for e in result if isinstance(e, UnreadableRange)]


def test_hex_that_is_none_is_said_with_its_place() -> None:
    result = entries(f"{request(1).hex()}\nxyz\n{request(2).hex()}\n".encode())
    assert [type(entry) for entry in result] == [FrameEntry, UnreadableRange, FrameEntry]
    assert "line 2" in result[1].reason if isinstance(result[1], UnreadableRange) else False


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"\x7fELF\2\1\1" + bytes(60), "not a readable format"),
        (b"hello there\n", "not a readable"),
    ],
)
def test_what_is_no_capture(data: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        entries(data)


@given(
    st.lists(st.integers(2, 60), min_size=1, max_size=30),
    st.frozensets(st.integers(0, 40), max_size=6),
    st.booleans(),
    st.integers(0, 20),
)
def test_every_byte_is_in_one_entry(cuts: list[int], drop: frozenset[int], syn: bool, skip: int) -> None:
    streams = [b"".join(make(n) for n in range(12))[0 if syn else skip :] for make in (request, response)]
    pieces: list[list[bytes]] = [[], []]
    for side, stream in enumerate(streams):
        at = 0
        for cut in [*cuts, *[100] * 40]:
            pieces[side].append(stream[at : at + cut])
            at += cut
    result = entries(conversation(*pieces, syn=syn, drop=drop), ports=(9092,))
    for side, port in ((0, 9092), (1, 53412)):
        mine = [e for e in result if e.flow.endswith(f":{port}")]
        total = sum(e.size + 4 if isinstance(e, FrameEntry) else e.length for e in mine)
        lead = 0 if syn else next((sum(map(len, pieces[side][:n])) for n, p in enumerate(pieces[side])
                                   if p and 2 * n + side not in drop), len(streams[side]))  # fmt: skip
        assert total == len(streams[side]) - lead
        at = 0
        for entry in mine:
            if isinstance(entry, UnreadableRange):
                assert entry.position == at
            at += entry.size + 4 if isinstance(entry, FrameEntry) else entry.length


@given(st.binary(max_size=400))
@example(noise=b"\xfd7zXZ\0")  # compressed data that is cut short: `Truncated`
def test_whatever_the_bytes_nothing_else_is_raised(noise: bytes) -> None:
    for data in (noise, request(1) + noise, noise + request(1), conversation([request(1) + noise], [noise])):
        for strict in (True, False):
            try:
                result = entries(data, strict=strict)
            except DecodeError:
                continue
            assert all(isinstance(entry, (FrameEntry, UnreadableRange)) for entry in result)
