"""TCP segments under every link layer, and what is said of packets that aren't whole."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.flows import CaptureCounts, NetworkAddress
from coordwire.capture.formats.source import Packet
from coordwire.capture.tcp.link import TcpSegment, endpoints, read_segments, reverse_key
from coordwire.errors import UnreadableRange

from .build import ACK, CLIENT, IP4, IP6, PSH, ethernet, ipv4, ipv6, tcp

ONE6, TWO6 = ("2001:db8::1", 1234), ("::1", 9092)
PAYLOAD = b"kafka"
INNER = tcp(PAYLOAD, seq=7, ack=9, flags=ACK | PSH)
V4 = ipv4(INNER)
V6 = ipv6(tcp(PAYLOAD, seq=7, ack=9, flags=ACK | PSH, source=ONE6, destination=TWO6), ONE6, TWO6)


def read(
    data: bytes, link: int = 1, wire: int | None = None, tally: CaptureCounts | None = None
) -> TcpSegment | UnreadableRange | None:
    items = list(read_segments([Packet(5, link, data, wire or len(data), 1000)], tally))
    assert len(items) < 2
    return items[0] if items else None


def segment(data: bytes, link: int = 1, wire: int | None = None) -> TcpSegment:
    item = read(data, link, wire)
    assert isinstance(item, TcpSegment), item
    return item


def refusal(data: bytes, link: int = 1) -> str:
    item = read(data, link)
    assert isinstance(item, UnreadableRange)
    assert (item.position, item.length) == (1000, len(data))
    return item.reason


def sll(kind: bytes, inner: bytes) -> bytes:
    return bytes(14) + kind + inner


def sll2(kind: bytes, inner: bytes) -> bytes:
    return kind + bytes(18) + inner


@pytest.mark.parametrize(
    ("link", "data"),
    [
        (1, ethernet(V4)),
        (1, ethernet(V4, tags=1)),
        (1, ethernet(V4, tags=3)),
        (1, ethernet(V6, IP6)),
        (1, ethernet(V6, IP6, tags=2)),
        *((link, V4) for link in (12, 14, 101, 228)),
        *((link, V6) for link in (12, 14, 101, 229)),
        *((link, struct.pack(order + "I", 2) + V4) for link in (0, 108) for order in "<>"),
        *((link, struct.pack("<I", family) + V6) for link in (0, 108) for family in (24, 28, 30)),
        *((link, struct.pack(">I", family) + V6) for link in (0, 108) for family in (24, 28, 30)),
        (113, sll(IP4, V4)),
        (113, sll(IP6, V6)),
        (113, sll(b"\x81\x00", b"\x00\x07" + IP4 + V4)),
        (276, sll2(IP4, V4)),
        (276, sll2(IP6, V6)),
    ],
)  # fmt: skip
def test_link_layers(link: int, data: bytes) -> None:
    result = segment(data, link)
    assert (result.time_ns, result.sequence, result.acknowledged, result.flags) == (5, 7, 9, ACK | PSH)
    assert (result.payload, result.length) == (PAYLOAD, len(PAYLOAD))
    assert result.position == 1000 + len(data) - len(PAYLOAD)
    source, destination = endpoints(result.key)
    assert source in (NetworkAddress(*CLIENT), NetworkAddress(*ONE6))
    assert endpoints(reverse_key(result.key)) == (destination, source)


def test_padding_is_no_data() -> None:
    assert segment(ethernet(ipv4(tcp())) + bytes(6)).length == 0
    assert segment(ethernet(V4) + b"checksum").payload == PAYLOAD
    assert segment(ethernet(V6, IP6) + b"checksum").payload == PAYLOAD


def test_options_are_stepped_over() -> None:
    assert segment(ethernet(ipv4(INNER, options=bytes(8)))).payload == PAYLOAD
    assert segment(ethernet(ipv4(tcp(PAYLOAD, options=bytes(40))))).payload == PAYLOAD


def test_a_total_length_of_zero_is_left_to_the_card() -> None:
    assert segment(ethernet(ipv4(INNER, total=0))).payload == PAYLOAD
    whole = ethernet(ipv4(INNER, total=0))
    cut = segment(whole[:-2], wire=len(whole))
    assert (cut.payload, cut.length) == (PAYLOAD[:-2], len(PAYLOAD))


def test_a_snap_length_leaves_the_length() -> None:
    whole = ethernet(V4)
    for size in range(54, len(whole)):
        cut = segment(whole[:size], wire=len(whole))
        assert (cut.payload, cut.length) == (PAYLOAD[: size - 54], len(PAYLOAD))
    for size in range(54):
        assert "was cut" in refusal(whole[:size])


def test_extension_headers() -> None:
    inner = tcp(PAYLOAD, source=ONE6, destination=TWO6)
    for kind in (0, 43, 60):
        header = bytes([6, 1]) + bytes(14)
        assert segment(ipv6(header + inner, ONE6, TWO6, following=kind), 101).payload == PAYLOAD
    whole = bytes([6, 0]) + struct.pack(">HI", 0, 1)  # a fragment that is all of it
    assert segment(ipv6(whole + inner, ONE6, TWO6, following=44), 101).payload == PAYLOAD
    for offset in (1, 8, 0x5D9):
        part = bytes([6, 0]) + struct.pack(">HI", offset, 1)
        assert "fragment" in refusal(ipv6(part + inner, ONE6, TWO6, following=44), 101)


@pytest.mark.parametrize("fragment", [0x2000, 0x2001, 1, 185])
def test_fragments_are_never_misread(fragment: int) -> None:
    assert "fragment" in refusal(ethernet(ipv4(INNER, fragment=fragment)))
    assert read(ethernet(ipv4(INNER, fragment=fragment, protocol=17))) is None
    assert segment(ethernet(ipv4(INNER, fragment=0x4000))).payload == PAYLOAD  # "don't fragment"


@pytest.mark.parametrize(
    "data",
    [
        ethernet(b"arp", b"\x08\x06"),
        ethernet(ipv4(bytes(40), protocol=17)),
        ethernet(ipv4(b"", protocol=1)),
        ethernet(ipv6(bytes(8), ONE6, TWO6, following=58), IP6),
    ],
)
def test_other_protocols_are_counted(data: bytes) -> None:
    capture_counts = CaptureCounts()
    assert read(data, tally=capture_counts) is None
    assert (capture_counts.passed_over, capture_counts.segments) == (1, 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (ethernet(b"\x75" + V4[1:]), "IP version 7"),
        (ethernet(b"\x44" + V4[1:]), "IPv4 header of 16 bytes"),
        (ethernet(ipv4(INNER, total=19)), "of 19"),
        (ethernet(ipv4(INNER, total=30)), "TCP header of 20"),
        (ethernet(ipv4(INNER[:12] + b"\x40" + INNER[13:])), "TCP header of 16"),
        (ethernet(ipv4(INNER[:12] + b"\xf0" + INNER[13:])), "TCP header of 60"),
    ],
)
def test_impossible_headers(data: bytes, reason: str) -> None:
    assert reason in refusal(data)


def test_an_unknown_link_type_is_told_once_a_run() -> None:
    packets = [
        Packet(0, 105, b"wifi", 4, 40),
        Packet(0, 105, b"wifi", 4, 60),
        Packet(0, 1, ethernet(V4), 59, 80),
    ]
    first, second = read_segments(packets)
    assert (first.position, isinstance(second, TcpSegment)) == (40, True)
    assert isinstance(first, UnreadableRange)
    assert first.length == 24
    assert "105" in first.reason


@given(
    st.sampled_from([0, 1, 12, 101, 108, 113, 228, 229, 276, 147]),
    st.binary(max_size=120),
    st.integers(0, 70000),
)
def test_any_bytes(link: int, data: bytes, wire: int) -> None:
    read(data, link, max(wire, len(data)))


@given(st.sampled_from([ethernet(V4), ethernet(V6, IP6), ethernet(V4, tags=1)]), st.data())
def test_any_mutation(data: bytes, draw: st.DataObject) -> None:
    changed = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        changed[draw.draw(st.integers(12, len(data) - 1))] = draw.draw(st.integers(0, 255))
    result = read(bytes(changed))
    if isinstance(result, TcpSegment):
        assert len(result.payload) <= result.length
