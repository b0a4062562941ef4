"""Bounds that decide: each is tested on both of its sides."""

from __future__ import annotations

import io
import struct

import pytest

from coordwire import limits
from coordwire.capture import framing
from coordwire.capture.flows import Chunk, Closed, Event, Gap
from coordwire.capture.formats.hexdump import HexFrame, read_frames
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.capture.framing import Effort, FrameBody, FrameSplitter, may_be_request
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import AHEAD, BACK
from coordwire.errors import UnreadableRange
from coordwire.messages.keys import FACTS
from tests.capture.streams import read_streams

from . import build

SYN, ACK, FIN, RST = build.SYN, build.ACK, build.FIN, build.RST


def events(*packets: bytes, snap: int = 0) -> list[Event]:
    return list(read_streams(io.BytesIO(build.pcap(packets, snap=snap))))


def losses(*packets: bytes) -> list[tuple[int, int]]:
    return [(event.position, event.length) for event in events(*packets) if isinstance(event, Gap)]


BEGUN = [build.packet(seq=99, flags=SYN), build.packet(b"abc", seq=100)]

# --- reassembly


def test_one_byte_beyond_the_end_may_be_a_fin() -> None:
    """What the other side acknowledged is lost if it is 2 bytes or more: 1 is what a FIN counts."""
    for beyond, lost in ((0, []), (1, []), (2, [(3, 2)])):
        acknowledged = build.packet(back=True, ack=103 + beyond)
        assert losses(*BEGUN, acknowledged, acknowledged) == lost


def test_a_reset_must_be_near() -> None:
    for ahead, resets in (
        (0, True),
        (BACK, True),
        (BACK + 1, False),
        (-BACK, True),
        (-BACK - 1, False),
    ):
        result = events(*BEGUN, build.packet(seq=103 + ahead, flags=RST))
        closed = [event.ending for event in result if isinstance(event, Closed)]
        assert closed == ["rst" if resets else "end"], ahead


def test_bytes_beyond_any_window_begin_a_new_connection() -> None:
    for ahead, new in ((AHEAD, False), (AHEAD + 1, True), (-BACK, False), (-BACK - 1, True)):
        result = events(*BEGUN, build.packet(b"xy", seq=103 + ahead))
        assert ("reused" in [event.ending for event in result if isinstance(event, Closed)]) is new, ahead


def test_pieces_with_a_gap_are_not_joined() -> None:
    """What fills a gap between held pieces is taken, wherever the segment begins that has it."""
    pieces = [build.packet(b"C", seq=105), build.packet(b"EF", seq=107), build.packet(b"D", seq=106)]
    for start in range(103, 108):
        across = build.packet(b"abCDEFg"[start - 103 :], seq=start)
        result = events(*BEGUN, *pieces, across, build.packet(b"ab", seq=103))
        data = b"".join(event.data for event in result if isinstance(event, Chunk))
        assert data == b"abcabCDEFg", start


def test_a_fin_without_bytes_ends_its_flow() -> None:
    (closed,) = [e for e in events(*BEGUN, build.packet(seq=103, flags=FIN | ACK)) if isinstance(e, Closed)]
    assert closed.ending == "fin"


# --- where requests may begin


def header(size: int, client: int, text: bytes, *, key: int = 18, version: int = 0) -> bytes:
    return struct.pack(">ihhih", size, key, version, 1, client) + text


def test_a_client_id_may_fill_its_frame() -> None:
    assert may_be_request(header(15, 5, b"abcde"))
    assert not may_be_request(header(14, 5, b"abcde"))
    assert may_be_request(header(10, -1, b""))
    assert may_be_request(header(10, 0, b""))
    assert not may_be_request(header(10, -2, b""))


def test_a_client_id_is_text_to_its_end() -> None:
    assert not may_be_request(header(15, 5, b"abcd\0"))
    assert may_be_request(header(16, 5, b"abcde\0"))


def test_a_client_id_has_a_greatest_length() -> None:
    most = framing.MAX_CLIENT_ID
    assert may_be_request(header(most + 10, most, b"a" * most))
    assert not may_be_request(header(most + 11, most + 1, b"a" * (most + 1)))


def test_versions_somewhat_newer_may_be() -> None:
    newest = FACTS[18].last + framing.NEWER
    assert may_be_request(header(10, -1, b"", version=newest))
    assert not may_be_request(header(10, -1, b"", version=newest + 1))


def test_what_follows_must_look_alike() -> None:
    first = header(15, 5, b"abcde")
    assert may_be_request(first + header(10, -1, b""))
    assert not may_be_request(first + b"\xff" * 14)
    assert may_be_request(first * 3 + b"\xff" * 14)
    assert not may_be_request(first * 2 + b"\xff" * 14)


def test_a_frame_may_have_its_budget() -> None:
    def cut(size: int) -> list[FrameBody | UnreadableRange]:
        cutter = FrameSplitter(lambda buffer, at, effort: False, in_step=True)
        return cutter.feed(struct.pack(">i", size) + bytes(size), None) + cutter.finish(None)

    with limits(frame=100):
        assert [type(part) for part in cut(100)] == [FrameBody]
        assert [type(part) for part in cut(101)] == [UnreadableRange]


def test_decoding_on_trial_is_bounded() -> None:
    """As many bytes as were passed over, times `TRIES`, and `SPARE`; what was refused is reported."""
    tried = []

    def fits(buffer: bytearray, at: int, effort: Effort) -> bool:
        if effort.spend(1000):
            tried.append(at)
        return False

    cutter = FrameSplitter(fits, in_step=False)
    (skipped,) = cutter.feed(bytes(framing.SPARE), None) + cutter.finish(None)
    assert isinstance(skipped, UnreadableRange)
    spent = framing.SPARE + framing.TRIES * (framing.SPARE - framing.HEAD + 1)
    assert len(tried) == spent // 1000
    refused = framing.SPARE - framing.HEAD + 1 - len(tried)
    assert f"not tried: {refused} positions" in skipped.reason


# --- capture files


def record(fraction: int, *, seconds: int = 1, length: int = 4) -> bytes:
    return struct.pack("<IIII", seconds, fraction, length, length) + bytes(length)


@pytest.mark.parametrize("nano", [False, True])
def test_a_fraction_is_less_than_a_second(nano: bool) -> None:
    for fraction, sound in ((10**9 - 1, True), (10**9, False)):
        packets = list(read_packets(io.BytesIO(build.pcap([], nano=nano) + record(fraction))))
        assert isinstance(packets[0], Packet) is sound
        assert sound or isinstance(packets[0], UnreadableRange)


@pytest.mark.parametrize("nano", [False, True])
def test_a_search_wants_a_fraction_in_the_units_of_the_file(nano: bool) -> None:
    most = 10**9 if nano else 10**6
    for fraction, sound in ((most - 1, True), (most, False)):
        data = build.pcap([], nano=nano) + record(2**32 - 1) + record(fraction) + record(0)
        packets = [packet for packet in read_packets(io.BytesIO(data)) if isinstance(packet, Packet)]
        assert len(packets) == 1 + sound


def test_a_search_wants_a_time_near_the_last() -> None:
    for seconds, sound in ((86_401, True), (86_402, False)):
        data = build.pcap([]) + record(0) + record(2**32 - 1) + record(0, seconds=seconds)
        packets = [packet for packet in read_packets(io.BytesIO(data)) if isinstance(packet, Packet)]
        assert len(packets) == 1 + sound


def test_the_greatest_captured_length() -> None:
    most = 256 << 10
    for length, sound in ((most, True), (most + 1, False)):
        (first, *_) = read_packets(io.BytesIO(build.pcap([]) + record(0, length=length)))
        assert isinstance(first, Packet) is sound


def test_the_greatest_block() -> None:
    most = 16 << 20
    for length, sound in ((most, True), (most + 4, False)):
        block = build.block(6, struct.pack("<IIIII", 0, 0, 0, 4, 4) + bytes(length - 32))
        assert len(block) == length
        data = build.section() + build.interface() + block
        packets = [packet for packet in read_packets(io.BytesIO(data)) if isinstance(packet, Packet)]
        assert bool(packets) is sound


def test_a_packet_lies_within_its_block() -> None:
    for captured, sound in ((8, True), (9, False)):
        block = build.block(6, struct.pack("<IIIII", 0, 0, 0, captured, captured) + bytes(8))
        packets = list(read_packets(io.BytesIO(build.section() + build.interface() + block)))
        assert isinstance(packets[0], Packet) is sound


# --- packets


def segment(inner: bytes) -> object:
    data = build.pcap([build.ethernet(inner)])
    return next(iter(read_segments(read_packets(io.BytesIO(data)))))


@pytest.mark.parametrize("options", [b"", b"\1\1\1\1"])
def test_a_tcp_header_has_20_bytes_at_least(options: bytes) -> None:
    for words, sound in ((5, True), (4, False)):
        inner = bytearray(build.tcp(b"abcd"))
        inner[12] = words << 4
        assert isinstance(segment(build.ipv4(bytes(inner), options=options)), UnreadableRange) is not sound


@pytest.mark.parametrize("options", [b"", b"\1\1\1\1"])
def test_a_tcp_header_lies_within_its_packet(options: bytes) -> None:
    for words, sound in ((6, True), (7, False)):
        inner = bytearray(build.tcp(b"abcd"))
        inner[12] = words << 4
        assert isinstance(segment(build.ipv4(bytes(inner), options=options)), UnreadableRange) is not sound
        total = 20 + len(options) + 23
        packet = build.ipv4(bytes(inner), options=options, total=total)
        assert isinstance(segment(packet), UnreadableRange)


def test_an_ip_header_has_20_bytes_at_least() -> None:
    packet = bytearray(build.ipv4(build.tcp(b"abcd")))
    packet[0] = 0x44
    assert isinstance(segment(bytes(packet)), UnreadableRange)


# --- dumps


def test_a_repetition_is_within_the_budget_of_a_frame() -> None:
    for end, sound in ((96, True), (112, True), (128, False)):
        text = b"%08x  " + b"00 " * 16
        lines = [text % 0, text % 16, b"*", b"%08x" % end]
        with limits(frame=112):
            (result,) = read_frames([line + b"\n" for line in lines])
        assert isinstance(result, HexFrame) is sound
        assert not sound or len(result.data if isinstance(result, HexFrame) else b"") == end


def test_a_dump_is_within_the_budget_of_a_frame() -> None:
    """The size prefix apart."""
    for size, sound in ((96, True), (112, False)):
        lines = [b"%08x  " % at + b"00 " * 16 + b"\n" for at in range(0, size, 16)]
        with limits(frame=92):
            (result,) = read_frames(lines)
        assert isinstance(result, HexFrame) is sound
        assert sound or (isinstance(result, UnreadableRange) and "the limit of a frame" in result.reason)
