"""The native walk over ordinary packets beside the chain of generators: the same events, from any input."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire._speedups import native
from coordwire.capture import reader as streams
from coordwire.capture.flows import CaptureCounts, Chunk, Event
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Walks
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import FlowTable, HalfStream, reassemble
from tests.capture import build
from tests.capture.build import Pipe
from tests.capture.streams import read_streams

pytestmark = pytest.mark.skipif(native is None, reason="there is no native half to compare with")

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))
HEADER, RECORD = 24, 16


def events(data: bytes, *, step: int = 0) -> tuple[list[Event], CaptureCounts]:
    capture_counts = CaptureCounts()
    stream: Any = Pipe(data, step) if step else io.BytesIO(data)
    return list(read_streams(stream, counts=capture_counts)), capture_counts


def both(data: bytes, monkeypatch: pytest.MonkeyPatch, *, step: int = 0) -> int:
    """Read with and without the walk; how many packets the walk took."""
    assert native is not None
    walk_counts = []

    class Watched:
        def __init__(self, *arguments: Any) -> None:
            self._walk = native.PacketWalk(*arguments)  # type: ignore[union-attr]

        def advance(self, buffer: bytes, at: int, number: int) -> tuple[int, int, int, list[Any]]:
            result: tuple[int, int, int, list[Any]] = self._walk.advance(buffer, at, number)
            walk_counts.append(result[1])
            return result

    with monkeypatch.context() as patch:
        patch.setattr(streams, "native", type("Native", (), {"PacketWalk": Watched}))
        walked = events(data, step=step)
        patch.setattr(streams, "native", None)
        assert walked == events(data)
    return sum(walk_counts)


def records(data: bytes) -> Iterator[bytes]:
    at = HEADER
    while at < len(data):
        end = at + RECORD + int.from_bytes(data[at + 8 : at + 12], "little")
        yield data[at:end]
        at = end


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Packets lost, repeated, exchanged, cut, or bits flipped."""
    kept = list(records(data))
    match rng.randrange(5):
        case 0:
            kept = [one for one in kept if rng.random() > 0.05]
        case 1:
            kept = [copy for one in kept for copy in [one] * rng.choice((1, 1, 1, 2))]
        case 2:
            for _ in range(len(kept) // 10):
                at = rng.randrange(len(kept) - 1)
                kept[at : at + 2] = kept[at : at + 2][::-1]
        case 3:
            for at in range(0, len(kept), 9):
                size = rng.randrange(len(kept[at]) - RECORD)
                head = kept[at][:8] + struct.pack("<I", size) + kept[at][12:RECORD]
                kept[at] = head + kept[at][RECORD : RECORD + size]
        case _:
            flipped = bytearray(b"".join(kept))
            for _ in range(4):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            return data[:HEADER] + bytes(flipped)
    return data[:HEADER] + b"".join(kept)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_captures(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = path.read_bytes()
    packets = sum(1 for _ in records(data))
    assert both(data, monkeypatch) > packets // 3
    rng = random.Random(path.name)
    both(damaged(data, rng), monkeypatch, step=rng.choice((0, 0, 61)))


def conversation() -> Iterator[bytes]:
    yield build.tcp(flags=build.SYN, seq=99)
    for number in range(20):
        yield build.tcp(b"%05d" % number, seq=100 + 5 * number, ack=7, flags=build.ACK | build.PSH)


def wrapped(link: int, segment: bytes, *, six: bool) -> bytes:
    """The segment in IP, and that behind the header of a link type."""
    ends = (("fe80::1", 1), ("fe80::2", 2)) if six else (build.CLIENT, build.BROKER)
    packet = build.ipv6(segment, *ends) if six else build.ipv4(segment)
    kind = build.IP6 if six else build.IP4
    heads = {1: bytes(12) + kind, 113: bytes(14) + kind, 276: kind + bytes(18), 101: b"", 12: b""}
    heads[0] = struct.pack("<I", 30 if six else 2)
    return heads[link] + packet


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize("link", [1, 113, 276, 101, 12, 0])
@pytest.mark.parametrize("order", "<>")
def test_wrappings(link: int, six: bool, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    packets = [wrapped(link, segment, six=six) for segment in conversation()]
    walk_counts = 0 if link == 0 else 20
    for nano in (False, True):
        assert both(build.pcap(packets, order=order, nano=nano, link=link), monkeypatch) == walk_counts
    clock = build.option(9, b"\x09", order=order)
    for options in (b"", clock, build.option(14, struct.pack(f"{order}q", -5), order=order) + clock):
        head = build.section(order) + build.interface(link, order=order, options=options)
        blocks = [build.enhanced(data, 10**7 + 3, order=order) for data in packets]
        result = both(head + b"".join(blocks), monkeypatch)
        assert result == (walk_counts if len(options) < 16 else 0)


def framed(link: int, packets: list[bytes]) -> tuple[bytes, int, int]:
    """A capture of a link type, with where the record of the last packet but one begins and ends: as a pcap,
    and Ethernet as a pcapng too, which the link -1 stands for."""
    if link >= 0:
        data = build.pcap(packets, link=link)
        sizes = [RECORD + len(packet) for packet in packets]
        at = HEADER + sum(sizes[:-2])
        return data, at, at + sizes[-2]
    head = build.section() + build.interface()
    blocks = [build.enhanced(packet, 10**6 + index) for index, packet in enumerate(packets)]
    at = len(head) + sum(map(len, blocks[:-2]))
    return head + b"".join(blocks), at, at + len(blocks[-2])


@pytest.mark.parametrize(
    ("link", "six"),
    [(1, False), (1, True), (113, False), (276, False), (276, True), (101, False), (-1, False)],
)
def test_each_byte_of_a_packet(link: int, six: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a byte of a packet or of its record's head says more or less, and where the capture may end."""
    parts = [build.tcp(flags=build.SYN, seq=99)]
    parts += [build.tcp(b"%03d" % number, seq=100 + 3 * number, ack=9 + number) for number in range(4)]
    packets = [wrapped(max(link, 1), part, six=six) for part in parts]
    if link == 1:  # a tag between the addresses and the protocol
        packets = [packet[:12] + b"\x81\x00\x00\x07" + packet[12:] for packet in packets]
    data, start, end = framed(link, packets)
    assert both(data, monkeypatch) == 4
    for at in range(start, end):
        near = {data[at] + 1 & 255, data[at] - 1 & 255, data[at] ^ 128, 0, 255}
        for value in (set(range(256)) if at < start + HEADER else near) - {data[at]}:
            both(data[:at] + bytes([value]) + data[at + 1 :], monkeypatch)
        both(data[:at], monkeypatch)


@pytest.mark.parametrize("link", [1, 113, 276, 101])
def test_each_length_that_was_kept_of_a_packet(link: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for six in (False, True):
        parts = [build.tcp(flags=build.SYN, seq=99), build.tcp(b"abc", seq=100), build.tcp(b"de", seq=103)]
        opened, packet, last = (wrapped(link, part, six=six) for part in parts)
        for size in range(len(packet) + 1):
            assert both(build.pcap([opened, packet[:size], last], link=link), monkeypatch) <= 2


@pytest.mark.parametrize("kind", ["8100", "88a8", "9100", "9200"])
def test_each_kind_of_a_tag(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tag = bytes.fromhex(kind) + b"\0\7"
    packets = [wrapped(1, part, six=False) for part in conversation()]
    tagged = [packet[:12] + tag + packet[12:] for packet in packets]
    assert both(build.pcap(tagged), monkeypatch) == 20


@pytest.mark.parametrize(
    ("options", "clock", "walked"),
    [
        (build.option(9, b"\0"), 5, 20),  # whole seconds
        (build.option(9, b"\x0a"), 5, 0),  # parts of a nanosecond
        (build.option(14, struct.pack("<q", 7)), 5, 20),
        (build.option(14, struct.pack("<q", 1 << 40)), 5, 0),  # 2^40 seconds are more than 64 bits of ns
        (build.option(14, struct.pack("<q", 9 * 10**9)), 2**60 // 1000, 0),
        (b"", (2**63 - 1) // 1000 - 30, 20),
        (b"", (2**63 - 1) // 1000 + 1, 0),
    ],
)
def test_clocks_of_an_interface(
    options: bytes, clock: int, walked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [build.enhanced(packet, clock + n) for n, packet in enumerate(map(ethernet, conversation()))]
    data = build.section() + build.interface(options=options) + b"".join(blocks)
    assert both(data, monkeypatch) == walked


def ethernet(segment: bytes) -> bytes:
    return wrapped(1, segment, six=False)


@pytest.mark.parametrize("nanoseconds", [10**9 - 1, 10**9, 10**9 + 1])
def test_fractions_of_a_second(nanoseconds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    packets = list(map(ethernet, conversation()))
    data = bytearray(build.pcap(packets, nano=True))
    at = HEADER + RECORD + len(packets[0]) + 4
    data[at : at + 4] = struct.pack("<I", nanoseconds)
    assert both(bytes(data), monkeypatch) <= 20


@pytest.mark.parametrize(
    "interface",
    [None, 5, (), (1, 0, 1000, 1), (1, 0, 1000, 2, 0), (1, 0, 0, 1, 0), (1, 0, 1000, 1, -1),
     (-1, 0, 1000, 1, 0), (1 << 32, 0, 1000, 1, 0), (1 << 70, 0, 1000, 1, 0), (1, 0, 10**9 + 1, 1, 0)],
)  # fmt: skip
def test_an_interface_is_checked_when_it_is_read(interface: object) -> None:
    assert native is not None
    table = FlowTable()
    first = build.pcap([build.packet(b"ab", seq=1)])
    next(reassemble(read_segments(read_packets(io.BytesIO(first))), table))
    block = build.enhanced(build.packet(b"cd", seq=3))
    for given, taken in ((interface, 0), ((1, 0, 1000, 1, 0), 1)):
        walk = native.PacketWalk(table.halves, HalfStream, Chunk, False, 1, 16, 1 << 18, 0, [given])
        assert walk.advance(block, 0, 1)[1] == taken


def test_acknowledgements_and_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acknowledgements that fall, repeat and wrap, and a direction that waits while the other goes on."""
    for numbers in ((5, 9, 7, 7, 9), (0, 0xFFFFFFFF, 3, 0x80000002, 0x80000003), (0x7FFFFFFF, 0xFFFFFFFF, 0)):
        packets = [build.packet(flags=build.SYN, seq=99)]
        packets += [build.packet(b"ab", seq=100 + 2 * n, ack=ack) for n, ack in enumerate(numbers)]
        assert both(build.pcap(packets), monkeypatch) == len(numbers)
        packets[0:0] = [build.packet(b"answer", back=True, seq=numbers[0])]
        packets[4:4] = [build.packet(b"late", back=True, seq=numbers[0] + 12)]
        both(build.pcap(packets), monkeypatch)
        packets.append(build.packet(b"answer", back=True, seq=numbers[0] + 6))
        both(build.pcap(packets), monkeypatch)


def test_no_header_begins_before_its_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last byte of a record would be the first of an IP header, in a packet of another protocol."""
    opened = build.packet(flags=build.SYN, seq=99)
    stray = build.ipv4(build.tcp(bytes(29), seq=103))[1:]
    assert stray[12:14] == bytes(2)
    data = build.pcap([opened, build.packet(b"abc", seq=100), stray], order=">", wire=0x45)
    assert both(data, monkeypatch) == 1


def test_tags_and_other_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = list(conversation())
    tagged = [build.ethernet(build.ipv4(part), tags=2) for part in parts]
    assert both(build.pcap(tagged), monkeypatch) == 20
    between = build.ethernet(build.ipv4(bytes(30), protocol=17))
    mixed = [packet for one in tagged for packet in (one, between, build.ethernet(bytes(30), b"\x08\x06"))]
    assert both(build.pcap(mixed), monkeypatch) == 20


def test_lengths_left_to_the_network_card(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [build.ethernet(build.ipv4(one, total=0)) for one in conversation()]
    assert both(build.pcap(parts), monkeypatch) == 20
    assert both(build.pcapng(parts), monkeypatch) == 20
    assert both(build.pcap(parts, wire=1 << 16), monkeypatch) == 0


def test_sequence_numbers_that_wrap(monkeypatch: pytest.MonkeyPatch) -> None:
    start = 0xFFFFFFF0
    parts = [build.packet(flags=build.SYN, seq=start)]
    parts += [build.packet(b"%05d" % n, seq=start + 1 + 5 * n, ack=start + n) for n in range(20)]
    assert both(build.pcap(parts), monkeypatch) == 20


def test_a_clock_goes_on_after_a_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simple packet block has the time of the packet before."""
    parts = [build.packet(b"ab", seq=1 + 2 * n) for n in range(5)]
    blocks = [build.enhanced(data, 1000 + n) for n, data in enumerate(parts[:4])]
    simple = build.block(3, struct.pack("<I", len(parts[4])) + build.pad(parts[4]))
    data = build.section() + build.interface() + b"".join(blocks) + simple
    assert both(data, monkeypatch) == 3
    assert [event.time_ns for event in events(data)[0] if isinstance(event, Chunk)] == [
        1_000_000, 1_001_000, 1_002_000, 1_003_000, 1_003_000,
    ]  # fmt: skip


def test_what_is_no_layout_is_refused() -> None:

    assert native is not None
    good: list[Any] = [{}, HalfStream, Chunk, False, 1000, 16, 1 << 18, 1, None]
    native.PacketWalk(*good)
    wrong = [(0, []), (1, int), (1, 1), (2, int), (2, list), (4, 0), (4, 1001), (5, 8), (8, ())]
    for index, value in wrong:
        with pytest.raises((TypeError, AttributeError)):
            native.PacketWalk(*good[:index], value, *good[index + 1 :])
    walk = native.PacketWalk(*good)
    for at in (-1, 4):
        with pytest.raises(ValueError, match="not in the buffer"):
            walk.advance(b"abc", at, 0)


@pytest.mark.parametrize("slot", ["next", "offset", "acknowledged", "peer", "waiting", "flow"])
@pytest.mark.parametrize("value", [None, "x", -1, 1 << 70])
def test_slots_are_checked_when_they_are_read(slot: str, value: object) -> None:
    """Nothing that Python may put there makes the walk take a packet wrongly, or crash."""

    assert native is not None
    table = FlowTable()
    first = build.pcap([build.packet(b"ab", seq=1)])

    events = reassemble(read_segments(read_packets(io.BytesIO(first))), table)
    next(events)
    (half,) = {id(one): one for one in table.halves.values() if one.started}.values()
    setattr(half, slot, value)
    walk = Walks(native.PacketWalk, table.halves, HalfStream, Chunk).pcap("<", 1000, 16, 1 << 18, 1)
    data = build.pcap([build.packet(b"cd", seq=3)])
    walk_counts = walk.advance(data, HEADER, 1)[1]
    assert walk_counts == (slot == "flow" or (slot == "acknowledged" and value == -1))
