"""Packets out of pcap and pcapng: whole ones come out, and everything else is named with its place."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet, Readable
from coordwire.capture.model import CaptureCounts
from coordwire.errors import CoordwireError, Malformed, UnreadableRange

from . import build

Make = Callable[[list[bytes]], bytes]
DATA = [b"first packet", b"second", b"the third of them", b"4"]


def read(
    data: bytes | Readable, tally: CaptureCounts | None = None
) -> tuple[list[Packet], list[UnreadableRange]]:
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    items = list(read_packets(stream, tally=tally))
    return [i for i in items if isinstance(i, Packet)], [i for i in items if isinstance(i, UnreadableRange)]


def datas(packets: list[Packet]) -> list[bytes]:
    return [packet.data for packet in packets]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_in_both_orders_and_resolutions(order: str, nano: bool) -> None:
    tally = CaptureCounts()
    moment = 1_795_229_310_291_288_123
    capture = build.pcap([(moment, b"abc"), (moment + 1000, b"d")], order=order, nano=nano, link=113)
    packets, unreadable = read(capture, tally)
    whole = moment if nano else moment // 1000 * 1000
    assert packets == [Packet(whole, 113, b"abc", 3, 40), Packet(whole + 1000, 113, b"d", 1, 59)]
    assert not unreadable
    assert tally.digits == (9 if nano else 6)
    assert tally.packets == 2


def test_the_snap_length_leaves_the_length_on_the_wire() -> None:
    packets, _ = read(build.pcap([b"0123456789"], snap=4))
    assert (packets[0].data, packets[0].wire_length) == (b"0123", 10)


def test_patched_pcap_has_longer_record_headers() -> None:
    head = struct.pack("<IHHIIII", 0xA1B2CD34, 2, 4, 0, 0, 0, 1)
    record = struct.pack("<IIIIIHBB", 1, 2, 3, 3, 0, 0, 0, 0) + b"abc"
    packets, unreadable = read(head + record * 2)
    assert datas(packets) == [b"abc", b"abc"]
    assert not unreadable


@pytest.mark.parametrize(
    ("data", "reason", "offset"),
    [
        (b"", "empty", 0),
        (b"hello world, this is no capture", "no capture", 0),
        (b"\xd4\xc3", "no capture", 0),
        (struct.pack("<IHH", 0xA1B2C3D4, 7, 4) + bytes(16), "version 7.4", 4),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), "byte order", 8),
    ],
)
def test_no_capture(data: bytes, reason: str, offset: int) -> None:
    with pytest.raises(Malformed, match=reason) as refusal:
        read(data)
    assert refusal.value.position == offset


@pytest.mark.parametrize("make", [build.pcap, build.pcapng])
@pytest.mark.parametrize("step", [1, 5, 1 << 20])
def test_from_a_pipe_and_with_a_head(make: Make, step: int) -> None:
    capture = make(DATA)
    assert datas(read(build.Pipe(capture, step))[0]) == DATA
    items = list(read_packets(build.Pipe(capture[30:], step), head=capture[:30]))
    assert items == list(read_packets(io.BytesIO(capture)))


@pytest.mark.parametrize("order", ["<", ">"])
def test_truncation_at_every_byte(order: str) -> None:
    capture = build.pcap(DATA, order=order)
    ends = [24]
    for data in DATA:
        ends.append(ends[-1] + 16 + len(data))
    for cut in range(4, len(capture)):
        packets, unreadable = read(capture[:cut])
        whole = max((index for index, end in enumerate(ends) if end <= cut), default=0)
        assert datas(packets) == DATA[:whole]
        start = ends[whole] if cut >= 24 else 0
        told = [(each.position, each.length) for each in unreadable]
        assert told == ([(start, cut - start)] if cut > start else [])


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_truncation_at_every_byte(order: str) -> None:
    capture = build.pcapng(DATA, order)
    starts = [0, 28, 48]
    for data in DATA:
        starts.append(starts[-1] + 32 + len(build.pad(data)))
    for cut in range(4, len(capture)):
        packets, unreadable = read(capture[:cut])
        start = max(start for start in starts if start <= cut)
        assert datas(packets) == DATA[: max(0, starts.index(start) - 2)]
        told = [(each.position, each.length) for each in unreadable]
        assert told == ([(start, cut - start)] if cut > start else [])


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x7FFFFFFF, 300 << 10])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_hostile_captured_length_costs_one_packet(order: str, length: int) -> None:
    capture = bytearray(build.pcap(DATA, order=order))
    second = 24 + 16 + len(DATA[0])
    struct.pack_into(f"{order}I", capture, second + 8, length)
    packets, unreadable = read(bytes(capture))
    assert datas(packets) == [DATA[0], *DATA[2:]]
    (bad,) = unreadable
    assert (bad.position, bad.length) == (second, 16 + len(DATA[1]))
    assert str(length) in bad.reason


def test_a_captured_length_beyond_the_end_costs_one_packet() -> None:
    capture = bytearray(build.pcap(DATA))
    struct.pack_into("<I", capture, 24 + 8, 1000)
    packets, unreadable = read(bytes(capture))
    assert datas(packets) == DATA[1:]
    assert (unreadable[0].position, unreadable[0].length) == (24, 16 + len(DATA[0]))


def test_zeros_are_passed_over() -> None:
    packets, unreadable = read(build.pcap(DATA) + bytes(5000) + build.pcap(DATA)[24:])
    assert datas(packets) == DATA * 2
    assert [each.length for each in unreadable] == [5000]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("length", [3, 0, 13, 0xFFFFFFFC, 1 << 20])
def test_a_hostile_block_length_costs_one_block(order: str, length: int) -> None:
    capture = bytearray(build.pcapng(DATA, order))
    size = 32 + len(build.pad(DATA[0]))
    struct.pack_into(f"{order}I", capture, 48 + 4, length)
    packets, unreadable = read(bytes(capture))
    assert datas(packets) == DATA[1:]
    assert [(each.position, each.length) for each in unreadable] == [(48, size)]


def test_lengths_that_differ_cost_one_block() -> None:
    capture = bytearray(build.pcapng(DATA))
    capture[48 + 32 + len(DATA[0]) - 4] ^= 4
    packets, unreadable = read(bytes(capture))
    assert datas(packets) == DATA[1:]
    assert "differ" in unreadable[0].reason


def test_pcapng_interfaces_clocks_and_sections() -> None:
    nano = build.option(9, b"\x09")
    offset = build.option(14, struct.pack("<q", -10))
    binary = build.option(9, b"\x8a")  # 1024ths
    capture = b"".join([
        build.section("<"),
        build.block(0xBAD, b"whatever"),
        build.interface(101, options=build.option(1, b"comment") + nano + offset + build.option(0, b"")),
        build.interface(113, options=binary + b"\x05\x00\xff\xff"),
        build.enhanced(b"a", 20_000_000_001, 0, options=build.option(1, b"x")),
        build.enhanced(b"b", 1536, 1),
        build.enhanced(b"c", 0, 2),
        build.section(">"),
        build.interface(1, snap=3, order=">"),
        build.block(3, struct.pack(">I", 10) + b"dddd", ">"),
        build.block(2, struct.pack(">HHIIII", 0, 9, 0, 2_000_000, 2, 2) + b"ee", ">"),
        build.block(3, struct.pack(">I", 2) + b"ff", ">"),
    ])  # fmt: skip
    tally = CaptureCounts()
    packets, unreadable = read(capture, tally)
    assert [(each.time_ns, each.link, each.data, each.wire_length) for each in packets] == [
        (10 * 10**9 + 1, 101, b"a", 1),
        (1_500_000_000, 113, b"b", 1),
        (1_500_000_000, 1, b"ddd", 10),
        (2 * 10**9, 1, b"ee", 2),
        (2 * 10**9, 1, b"ff", 2),
    ]
    assert all(capture[each.position : each.position + len(each.data)] == each.data for each in packets)
    assert [each.reason for each in unreadable] == ["a packet of interface 2, of which nothing was said"]
    assert tally.digits == 9


@given(
    st.binary(max_size=300),
    st.sampled_from([build.pcap, build.pcapng]),
    st.integers(0, 200),
    st.integers(0, 60),
)
def test_mutations_end_and_account_for_every_byte(junk: bytes, make: Make, at: int, drop: int) -> None:
    good = make(DATA)
    capture = good[:at] + junk + good[at + drop :]
    try:
        packets, unreadable = read(capture)
    except CoordwireError:
        return
    last = 0
    for item in list(read_packets(io.BytesIO(capture))):
        length = len(item.data) if isinstance(item, Packet) else item.length
        assert last <= item.position <= item.position + length <= len(capture)
        last = item.position + length
    assert (packets, unreadable) == read(build.Pipe(capture, 11))


@pytest.mark.parametrize("make", [build.pcap, build.pcapng])
def test_dpkt_reads_the_same(make: Make) -> None:
    dpkt = pytest.importorskip("dpkt")
    capture = make(DATA)
    reader = (dpkt.pcap if make is build.pcap else dpkt.pcapng).Reader(io.BytesIO(capture))
    theirs = [(round(seconds * 10**6), data) for seconds, data in reader]
    assert theirs == [(each.time_ns // 1000, each.data) for each in read(capture)[0]]
