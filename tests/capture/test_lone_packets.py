"""Packets pasted as hex: the frames in them, in every link type, and what is not a packet."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture import Capture
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.capture.tcp.lone_packets import PADDING, find_link
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.limits import limits
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, MetadataRequest, ProduceRequest
from coordwire.testing.strategies import frames

from . import build

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
REQUEST = encode_request(HeartbeatRequest(group_id="payments"), version=4, correlation_id=7, client_id="till")
RESPONSE = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)
SIX = ("2001:db8::1", 53412), ("2001:db8::2", 9092)
TCP = build.tcp(REQUEST)
IP4 = build.ipv4(TCP)
IP6 = build.ipv6(build.tcp(REQUEST, source=SIX[0], destination=SIX[1]), *SIX)


def read(*packets: bytes) -> list[Entry]:
    text = "\n".join(packet.hex() for packet in packets).encode()
    return list(Capture(io.BytesIO(text), "paste").entries())


def reasons(*packets: bytes) -> list[str]:
    entries = read(*packets)
    assert all(isinstance(entry, UnreadableRange) for entry in entries)
    return [entry.reason for entry in entries if isinstance(entry, UnreadableRange)]


def checked(packet: bytes, at: int = 14) -> bytes:
    """A packet whose IPv4 header has its checksum."""
    words = struct.unpack_from("!10H", packet, at)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return packet[: at + 10] + struct.pack("!H", 0xFFFF - total) + packet[at + 12 :]


@pytest.mark.parametrize(
    "packet",
    [
        build.ethernet(IP4),
        build.ethernet(checked(IP4, 0)),
        build.ethernet(IP6, build.IP6),
        build.ethernet(IP4, tags=1),
        build.ethernet(IP4, tags=2),
        build.ethernet(IP4) + bytes(4),
        build.ethernet(build.ipv4(TCP, options=b"\x01" * 8)),
        build.ethernet(build.ipv4(build.tcp(REQUEST, options=b"\x01" * 12))),
        IP4,
        IP6,
        struct.pack("<I", 2) + IP4,
        struct.pack(">I", 2) + IP4,
        struct.pack("<I", 30) + IP6,
        struct.pack("!HHHQH", 0, 1, 6, 0, 0x0800) + IP4,
        struct.pack("!HHHQH", 4, 772, 6, 0, 0x86DD) + IP6,
        struct.pack("!HHIHBBQ", 0x0800, 0, 2, 1, 4, 6, 0) + IP4,
    ],
)
def test_every_link_type(packet: bytes) -> None:
    (entry,) = read(packet)
    assert isinstance(entry, FrameEntry)
    assert entry.error is None
    assert entry.api_name == "Heartbeat"
    assert entry.body == REQUEST[4:]
    assert entry.flow in ("10.0.0.1:53412 > 10.0.0.2:9092", "[2001:db8::1]:53412 > [2001:db8::2]:9092")


def test_a_response_after_its_request_and_other_connections() -> None:
    other = ("10.0.0.9", 4444), build.BROKER
    metadata = encode_request(MetadataRequest(), version=12, correlation_id=7)
    second = build.ethernet(build.ipv4(build.tcp(metadata, source=other[0]), *other))
    request, _, response = read(build.packet(REQUEST), second, build.packet(RESPONSE, back=True, seq=5))
    assert isinstance(response, FrameEntry)
    assert response.request is request
    assert response.message == HeartbeatResponse(error_code=27)


def test_a_frame_in_several_packets() -> None:
    parts = [build.packet(REQUEST[:9], seq=0xFFFFFFFC), build.packet(REQUEST[9:20], seq=5)]
    assert len(REQUEST) > 20
    last = build.packet(REQUEST[20:] + REQUEST, seq=16)
    entries = read(*parts, last)
    assert [entry.body for entry in entries if isinstance(entry, FrameEntry)] == [REQUEST[4:]] * 2
    (reason,) = reasons(*parts)
    assert "it holds the first 20 bytes of a frame of" in reason
    # a packet that doesn't follow the one before it
    reason, inner = reasons(parts[0], build.packet(b"\xff" * 8, seq=99))
    assert "it holds the first 9 bytes" in reason
    assert "its frame may have begun in an earlier packet" in inner


def test_what_holds_no_frame_says_so() -> None:
    assert reasons(build.packet(flags=build.SYN)) == [
        "a TCP packet without data, 10.0.0.1:53412 > 10.0.0.2:9092"
    ]
    assert len(read(build.packet(flags=build.SYN), build.packet(REQUEST, seq=1))) == 1
    datagram = struct.pack("!HHHH", 5353, 53, 12, 0) + b"test"
    assert reasons(build.ethernet(build.ipv4(datagram, protocol=17))) == [
        "a packet of UDP port 53: Kafka uses TCP"
    ]
    hello = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + bytes(40)
    assert "a TCP packet with TLS, 10.0.0.1:53412 > 10.0.0.2:9092" in reasons(build.packet(hello))[0]
    cut = checked(build.packet(REQUEST))[:-9]
    assert "it holds the first" in reasons(cut)[0]


def test_no_more_than_a_frame_is_held() -> None:
    ports = range(1000, 1040)
    packets = [
        build.ethernet(build.ipv4(build.tcp(b"\0\0\x03\xe8" + bytes(700), source=("10.0.0.1", port))))
        for port in ports
    ]
    with limits(frame=2000):
        assert len(reasons(*packets)) == len(ports)


@pytest.mark.parametrize(
    "change",
    [
        lambda packet: packet[:12] + b"\x08\x06" + packet[14:],  # another ethertype
        lambda packet: packet[:14] + b"\x55" + packet[15:],  # another IP version
        lambda packet: packet[:14] + b"\x44" + packet[15:],  # too short a header
        lambda packet: packet[:-1],  # shorter than IP says
        lambda packet: packet + bytes(PADDING + 1),
        lambda packet: packet[:46] + b"\x40" + packet[47:],  # too short a header of TCP
        lambda packet: packet[:24] + b"\x01\x02" + packet[26:],  # a checksum that is wrong
        lambda packet: packet[:10],
        lambda packet: b"",
    ],
)
def test_headers_that_do_not_agree_are_no_packet(change: object) -> None:
    packet = build.packet(REQUEST)
    assert find_link(packet) == 1
    assert find_link(change(packet)) is None  # type: ignore[operator]


@given(frames())
def test_no_frame_is_taken_for_a_packet(frame: bytes) -> None:
    assert find_link(frame) is None
    assert find_link(frame[4:]) is None


@given(st.binary(max_size=120), st.sampled_from([IP4, IP6]), st.data())
def test_any_bytes_become_entries(noise: bytes, packet: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(packet)))
    for text in (noise, packet[:at] + noise, noise[:16] + packet):
        find_link(text)
        if text:
            assert read(text)


def test_a_request_whose_bytes_could_be_headers_is_a_request() -> None:
    """Produce v2 begins as a loopback packet with IPv4 does: its correlation id is the start of the header,
    its client id most of what follows."""
    request = ProduceRequest(acks=1, timeout_ms=5)
    client = "\0\0@\x06\0\0" + "\n\0\0\x01" * 2 + "#\x04#\x04" + "\0" * 8 + "P" + "\0" * 9
    size = len(encode_request(request, version=2, correlation_id=0, client_id=client)) - 8
    correlation_id = 0x45000000 | size
    body = encode_request(request, version=2, correlation_id=correlation_id, client_id=client)[4:]
    packet = body[:-1] + bytes([body[-1] ^ 1])  # its count of topics is wrong
    assert find_link(packet) == 0
    assert find_link(body) is None
    (entry,) = read(body)
    assert isinstance(entry, FrameEntry)
    assert entry.body == body
    assert entry.flow == ""


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_captured_packets(path: Path) -> None:
    """The packets of captures, pasted one a line, give the frames of the captures."""
    with path.open("rb") as stream:
        packets = [packet for packet in read_packets(stream) if isinstance(packet, Packet)]
    assert {find_link(packet.data) for packet in packets} == {1}
    with path.open("rb") as stream:
        bodies = [entry.body for entry in Capture(stream, "").entries() if isinstance(entry, FrameEntry)]
    pasted = [
        entry.body for entry in read(*(packet.data for packet in packets)) if isinstance(entry, FrameEntry)
    ]
    assert set(bodies) <= set(pasted)
