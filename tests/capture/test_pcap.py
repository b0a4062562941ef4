"""Packets out of pcap and pcapng: whole ones come out, and everything else is named with its place."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.flows import CaptureCounts
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import InputWindow, Packet, Readable
from coordwire.errors import CoordwireError, Malformed, UnreadableRange

from . import build

Make = Callable[[list[bytes]], bytes]
DATA = [b"first packet", b"second", b"the third of them", b"4"]


def read(
    data: bytes | Readable, tally: CaptureCounts | None = None
) -> tuple[list[Packet], list[UnreadableRange]]:
    stream = io.BytesIO(data) if isinstance(data, bytes) else data
    items = list(read_packets(stream, counts=tally))
    return [i for i in items if isinstance(i, Packet)], [i for i in items if isinstance(i, UnreadableRange)]


def datas(packets: list[Packet]) -> list[bytes]:
    return [packet.data for packet in packets]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_pcap_in_both_orders_and_resolutions(order: str, nano: bool) -> None:
    capture_counts = CaptureCounts()
    moment = 1_795_229_310_291_288_123
    capture = build.pcap([(moment, b"abc"), (moment + 1000, b"d")], order=order, nano=nano, link=113)
    packets, unreadable = read(capture, capture_counts)
    whole = moment if nano else moment // 1000 * 1000
    assert packets == [Packet(whole, 113, b"abc", 3, 40, 1), Packet(whole + 1000, 113, b"d", 1, 59, 2)]
    assert not unreadable
    assert capture_counts.digits == (9 if nano else 6)
    assert capture_counts.packets == 2


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
        (b"hello world, this is not a capture", "expected a pcap or pcapng capture", 0),
        (b"\xd4\xc3", "expected a pcap or pcapng", 0),
        (struct.pack("<IHH", 0xA1B2C3D4, 7, 4) + bytes(16), "version 7.4", 4),
        (b"\x0a\x0d\x0d\x0a" + bytes(24), "byte-order", 8),
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
    items = list(read_packets(InputWindow(build.Pipe(capture[30:], step), capture[:30])))
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
        expected_ranges = [
            (unreadable_range.position, unreadable_range.length) for unreadable_range in unreadable
        ]
        assert expected_ranges == ([(start, cut - start)] if cut > start else [])


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
        expected_ranges = [
            (unreadable_range.position, unreadable_range.length) for unreadable_range in unreadable
        ]
        assert expected_ranges == ([(start, cut - start)] if cut > start else [])


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
    assert [unreadable_range.length for unreadable_range in unreadable] == [5000]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("length", [3, 0, 13, 0xFFFFFFFC, 1 << 20])
def test_a_hostile_block_length_costs_one_block(order: str, length: int) -> None:
    capture = bytearray(build.pcapng(DATA, order))
    size = 32 + len(build.pad(DATA[0]))
    struct.pack_into(f"{order}I", capture, 48 + 4, length)
    packets, unreadable = read(bytes(capture))
    assert datas(packets) == DATA[1:]
    assert [(unreadable_range.position, unreadable_range.length) for unreadable_range in unreadable] == [
        (48, size)
    ]


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
    capture_counts = CaptureCounts()
    packets, unreadable = read(capture, capture_counts)
    assert [(packet.time_ns, packet.link, packet.data, packet.wire_length) for packet in packets] == [
        (10 * 10**9 + 1, 101, b"a", 1),
        (1_500_000_000, 113, b"b", 1),
        (1_500_000_000, 1, b"ddd", 10),
        (2 * 10**9, 1, b"ee", 2),
        (2 * 10**9, 1, b"ff", 2),
    ]
    assert all(
        capture[packet.position : packet.position + len(packet.data)] == packet.data for packet in packets
    )
    assert [unreadable_range.reason for unreadable_range in unreadable] == [
        "a packet of interface 2, which is not described"
    ]
    assert capture_counts.digits == 9


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
    assert theirs == [(entry.time_ns // 1000, entry.data) for entry in read(capture)[0]]


# --- classic pcap: what is said of each fault, and each bound of a record's header

ORDERS = pytest.mark.parametrize("order", ["<", ">"])
RESOLUTIONS = pytest.mark.parametrize("nano", [False, True])
USUAL, MOST = 256 << 10, 16 << 20


def record(
    data: bytes = b"abcd",
    *,
    order: str = "<",
    seconds: int = 1,
    fraction: int = 0,
    length: int | None = None,
    wire: int | None = None,
) -> bytes:
    length = len(data) if length is None else length
    return struct.pack(f"{order}IIII", seconds, fraction, length, length if wire is None else wire) + data


def found(data: bytes) -> list[tuple[object, ...]]:
    """Packets as (position, bytes), what could not be read as (position, length, reason)."""
    return [
        (item.position, item.data) if isinstance(item, Packet) else (item.position, item.length, item.reason)
        for item in read_packets(io.BytesIO(data))
    ]


@pytest.mark.parametrize(
    ("data", "reason", "position"),
    [
        (b"", "the capture is empty", 0),
        (b"abcdefgh", "expected a pcap or pcapng capture, got a file that starts with 61 62 63 64", 0),
        (struct.pack("<IHH", 0xA1B2C3D4, 1, 9) + bytes(16), "pcap version 1.9 is not known", 4),
    ],
)
def test_what_is_no_capture_is_said_in_full(data: bytes, reason: str, position: int) -> None:
    with pytest.raises(Malformed) as refusal:
        read(data)
    assert (refusal.value.reason, refusal.value.position) == (reason, position)


def test_a_file_that_ends_is_reported_in_full() -> None:
    head = build.pcap([])
    assert found(head[:23]) == [(0, 23, "the file ends within its header: 23 of 24 bytes")]
    assert found(head) == []
    whole = head + record()
    cut = "the file ends within a packet's header: 15 of 16 bytes"
    assert found(whole + record()[:15]) == [(40, b"abcd"), (44, 15, cut)]
    cut = "the file ends within a packet: 19 of 20 bytes, its header included"
    assert found(whole + record()[:19]) == [(40, b"abcd"), (44, 19, cut)]


@ORDERS
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"length": USUAL + 1}, f"expected a captured length of at most {USUAL} bytes, got {USUAL + 1}"),
        ({"fraction": 10**9}, "a timestamp's fraction of 1000000000 is not below a second"),
        ({"seconds": 0, "length": 0, "wire": 0}, "expected a packet's header, got zeros"),
        ({"seconds": 0, "length": 0, "wire": 0, "fraction": 7}, "expected a packet's header, got zeros"),
    ],
)
def test_a_header_that_cannot_be_is_reported_in_full(order: str, fields: dict[str, int], reason: str) -> None:
    good = record(b"good", order=order)
    bad_record = record(b"bad", order=order, **fields)
    capture = build.pcap([], order=order) + good + bad_record + good + good
    assert found(capture) == [(40, b"good"), (44, 19, reason), (79, b"good"), (99, b"good")]


@ORDERS
def test_a_header_with_one_thing_in_it_is_sound(order: str) -> None:
    for fields in ({"seconds": 5, "length": 0}, {"seconds": 0, "length": 0, "wire": 9}):
        capture = build.pcap([], order=order) + record(b"", order=order, **fields)
        assert found(capture) == [(40, b"")]
    assert found(build.pcap([], order=order) + record(b"a", order=order, seconds=0, wire=0)) == [(40, b"a")]


def test_a_snap_length_raises_the_limit_up_to_a_bound() -> None:
    for snap, most in ((0, USUAL), (100, USUAL), (USUAL + 5, USUAL + 5), (MOST, MOST), (MOST + 9, MOST)):
        head = bytearray(build.pcap([]))
        struct.pack_into("<I", head, 16, snap)
        assert found(bytes(head) + record(bytes(most))) == [(40, bytes(most))]
        over = found(bytes(head) + record(b"", length=most + 1))
        reason = f"expected a captured length of at most {most} bytes, got {most + 1}"
        assert over == [(24, 16, reason)]


def test_the_link_type_has_16_bits() -> None:
    head = bytearray(build.pcap([]))
    struct.pack_into("<I", head, 20, 0x5400_0071)
    assert read(bytes(head) + record())[0][0].link == 0x71


def test_a_length_on_the_wire_is_not_below_what_was_captured() -> None:
    for wire, length in ((3, 4), (4, 4), (5, 5)):
        assert read(build.pcap([]) + record(wire=wire))[0][0].wire_length == length


@ORDERS
@RESOLUTIONS
def test_a_time_is_seconds_and_its_fraction(order: str, nano: bool) -> None:
    capture = build.pcap([], order=order, nano=nano) + record(order=order, seconds=7, fraction=89)
    capture_counts = CaptureCounts()
    assert read(capture, capture_counts)[0][0].time_ns == 7 * 10**9 + 89 * (1 if nano else 1000)
    assert (capture_counts.digits, capture_counts.packets) == (9 if nano else 6, 1)


@ORDERS
@RESOLUTIONS
def test_a_search_takes_the_next_record_whose_every_field_is_sound(order: str, nano: bool) -> None:
    """Each field on both sides of its bound, after a record that can't be, with a sound one after it."""

    def taken(data: bytes = b"abcd", **fields: int) -> bool:
        first = record(b"first", order=order, seconds=200_000)
        bad_record = record(b"", order=order, fraction=2**32 - 1)
        last = record(b"last", order=order, seconds=200_000)
        tried = record(data, order=order, **{"seconds": 200_000, **fields})
        capture = build.pcap([], order=order, nano=nano) + first + bad_record + tried + last
        datas = [packet.data for packet in read(capture)[0]]
        assert datas in ([b"first", data, b"last"], [b"first", b"last"])
        return len(datas) == 3

    most = 10**9 if nano else 10**6
    assert taken()
    assert taken(fraction=most - 1)
    assert not taken(fraction=most)
    assert taken(seconds=200_000 + 86_400)
    assert not taken(seconds=200_000 + 86_401)
    assert taken(seconds=200_000 - 86_400)
    assert not taken(seconds=200_000 - 86_401)
    assert not taken(b"", length=0)
    assert taken(wire=4)
    assert not taken(wire=3)
    assert taken(wire=2 * MOST - 1)
    assert not taken(wire=2 * MOST + 1)
    assert taken(bytes(300), fraction=0x10203)
    assert taken(b"z", length=1)


@ORDERS
def test_a_search_believes_what_the_next_record_follows(order: str) -> None:
    """Or the end of the file, which may come within that record's header."""
    head = build.pcap([], order=order) + record(b"", order=order, fraction=2**32 - 1)
    tried = record(b"abcd", order=order)
    for after, sound in (
        (b"", True),
        (b"\xff" * 15, True),
        (b"\xff" * 16, False),
        (record(b"more", order=order), True),
    ):
        packets, _ = read(head + tried + after)
        assert (b"abcd" in [packet.data for packet in packets]) is sound
    assert read(head + tried[:-1])[0] == []


@ORDERS
def test_any_second_will_do_before_the_first_packet(order: str) -> None:
    head = build.pcap([], order=order) + record(b"", order=order, fraction=2**32 - 1)
    for seconds in (0, 1, 2**31, 2**32 - 1):
        assert datas(read(head + record(order=order, seconds=seconds))[0]) == [b"abcd"]


def test_a_search_reads_on_for_a_record_that_is_long() -> None:
    long = bytes(200_000)
    capture = build.pcap([]) + record(b"", fraction=2**32 - 1) + record(long) + record(b"last")
    for step in (1000, 1 << 20):
        packets, unreadable = read(build.Pipe(capture, step))
        assert datas(packets) == [long, b"last"]
        assert [(unreadable_range.position, unreadable_range.length) for unreadable_range in unreadable] == [
            (24, 16)
        ]


def test_longer_record_headers_are_searched_too() -> None:
    def patched(data: bytes, fraction: int = 2) -> bytes:
        return struct.pack("<IIIIIHBB", 1, fraction, len(data), len(data), 0, 0, 0, 0) + data

    head = struct.pack("<IHHIIII", 0xA1B2CD34, 2, 4, 0, 0, 0, 1)
    capture = head + patched(b"one") + patched(b"", 2**32 - 1) + patched(b"two") + patched(b"three")
    assert datas(read(capture)[0]) == [b"one", b"two", b"three"]
    cut = "the file ends within a packet's header: 23 of 24 bytes"
    assert found(head + patched(b"")[:-1]) == [(24, 23, cut)]


@ORDERS
def test_a_search_compares_with_the_time_of_the_last_packet_even_if_that_is_0(order: str) -> None:
    head = build.pcap([], order=order) + record(b"first", order=order, seconds=0)
    bad_record = record(b"", order=order, fraction=2**32 - 1)
    for seconds, sound in ((86_400, True), (86_401, False)):
        result = datas(read(head + bad_record + record(b"tried", order=order, seconds=seconds))[0])
        assert result == [b"first", b"tried"][: 1 + sound]


@ORDERS
def test_a_search_takes_a_record_of_line_feeds(order: str) -> None:
    bad_record = record(b"", order=order, fraction=2**32 - 1)
    feeds = b"\n" * 0x0A0A
    tried = record(feeds, order=order, seconds=0x0A0A0A0A, fraction=0x000A0A0A)
    assert datas(read(build.pcap([], order=order) + bad_record + tried + tried)[0]) == [feeds, feeds]


@ORDERS
@pytest.mark.parametrize(
    ("fields", "sound"),
    [
        ({}, True),
        ({"wire": 2 * MOST}, True),
        ({"wire": 2 * MOST + 1}, False),
        ({"length": 0, "wire": 9}, False),
        ({"length": USUAL}, True),
        ({"length": USUAL + 1}, False),
    ],
)
def test_what_follows_a_record_that_is_searched_must_be_sound(
    order: str, fields: dict[str, int], sound: bool
) -> None:
    bad_record = record(b"", order=order, fraction=2**32 - 1)
    follows = record(b"z", order=order, **fields)
    tried = record(b"tried", order=order)
    result = datas(read(build.pcap([], order=order) + bad_record + tried + follows)[0])
    assert (b"tried" in result) is sound


def test_a_search_reads_to_the_end_of_the_header_that_follows() -> None:
    bad_record = record(b"", order=">", fraction=2**32 - 1)
    tried = record(b"tried", order=">", wire=500)
    capture = build.pcap([], order=">") + bad_record + tried + record(bytes(1000), order=">")
    pipe = build.Pipe(capture, 1)
    items = read_packets(pipe)
    assert isinstance(next(items), UnreadableRange)
    packet = next(items)
    assert isinstance(packet, Packet)
    assert packet.data == b"tried"
    remaining = b"".join(iter(lambda: pipe.read(1), b""))
    assert len(capture) - len(remaining) == 40 + len(tried) + 16
