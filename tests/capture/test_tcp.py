"""Streams out of segments: the same bytes whatever order they came in, and exact losses."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture.flows import (
    CaptureCounts,
    Chunk,
    Closed,
    Event,
    Flow,
    Gap,
    NetworkAddress,
    Opened,
)
from coordwire.capture.formats.source import Packet
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import MOST_PATIENCE, PATIENCE_NS, FlowTable, reassemble
from coordwire.errors import UnreadableRange
from tests.capture.streams import read_streams

from .build import ACK, BROKER, CLIENT, FIN, RST, SYN, packet, pcap, pcapng

SERVER = NetworkAddress(*BROKER)


@dataclass
class Stream:
    """What the events of one flow come to; checks that they join without a gap."""

    data: bytes = b""
    losses: list[tuple[int, int]] = field(default_factory=list)
    opened: bool = False
    closed: str = ""
    offset: int = 0


def follow(events: Iterable[Event]) -> dict[Flow, Stream]:
    streams: dict[Flow, Stream] = {}
    for event in events:
        if isinstance(event, UnreadableRange):
            continue
        stream = streams.setdefault(event.flow, Stream())
        assert not stream.closed, "an event after the flow's end"
        match event:
            case Opened(server=server):
                assert not stream.opened
                assert server == SERVER
                stream.opened = True
            case Chunk(position=offset, data=data):
                assert offset == stream.offset
                assert data
                stream.data += data
                stream.offset += len(data)
            case Gap(position=offset, length=length):
                assert offset == stream.offset
                assert length > 0
                stream.losses.append((offset, length))
                stream.offset += length
            case Closed(ending=ending):
                stream.closed = ending
    assert all(stream.closed for stream in streams.values())
    return streams


def run(packets: Iterable[bytes], tally: CaptureCounts | None = None) -> list[Event]:
    return list(read_streams(io.BytesIO(pcap(packets)), counts=tally))


def streams(packets: Iterable[bytes]) -> list[Stream]:
    return list(follow(run(packets)).values())


def handshake(client: int = 100, server: int = 900) -> list[bytes]:
    return [
        packet(seq=client, flags=SYN),
        packet(back=True, seq=server, ack=client + 1, flags=SYN | ACK),
        packet(seq=client + 1, ack=server + 1),
    ]


def test_a_conversation() -> None:
    events = run([
        *handshake(),
        packet(b"ping", seq=101, ack=901),
        packet(b"pong", back=True, seq=901, ack=105),
        packet(seq=105, ack=905, flags=FIN | ACK),
        packet(back=True, seq=905, ack=106, flags=FIN | ACK),
        packet(seq=106, ack=906),
    ])  # fmt: skip
    flow = Flow(NetworkAddress(*CLIENT), SERVER, 0)
    back = flow.reverse
    second = 10**9
    assert events == [
        Opened(flow, second, SERVER),
        Opened(back, second + 1000, SERVER),
        Chunk(flow, second + 3000, 0, b"ping", 4),
        Chunk(back, second + 4000, 0, b"pong", 5),
        Closed(flow, second + 5000, "fin"),
        Closed(back, second + 6000, "fin"),
    ]
    assert str(flow) == "10.0.0.1:53412 > 10.0.0.2:9092"


@st.composite
def disordered(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, bytes]]]:
    """A stream, its first sequence number, and segments that hold all of it, some of it often."""
    data = draw(st.binary(min_size=1, max_size=400))
    start = draw(st.sampled_from([0, 1, 2**31 - 50, 2**32 - 1, 2**32 - 100]) | st.integers(0, 2**32 - 1))
    cuts = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=20))})
    segments = [(a, data[a:b]) for a, b in pairwise(cuts)]
    for _ in range(draw(st.integers(0, 8))):
        a = draw(st.integers(0, len(data) - 1))
        segments.append((a, data[a : a + draw(st.integers(1, 100))]))
    shuffle = random.Random(draw(st.integers(0, 2**32)))
    window = draw(st.sampled_from([1, 4, 40]))
    order = sorted(range(len(segments)), key=lambda index: index + shuffle.random() * window)
    return data, start, [segments[index] for index in order]


@given(disordered(), st.booleans())
def test_any_order_gives_the_same_bytes(
    case: tuple[bytes, int, list[tuple[int, bytes]]], twice: bool
) -> None:
    data, start, segments = case
    packets = handshake(start - 1)
    packets += [packet(part, seq=start + at, ack=901) for at, part in segments]
    packets.append(packet(seq=start + len(data), ack=901, flags=FIN | ACK))
    if twice:
        packets = [each for each in packets for _ in range(2)]
    there, back = streams(packets)
    assert (there.data, there.losses, there.closed) == (data, [], "fin")
    assert (back.data, back.losses) == (b"", [])


@given(disordered(), st.data())
def test_what_is_missing_is_told_exactly(
    case: tuple[bytes, int, list[tuple[int, bytes]]], draw: st.DataObject
) -> None:
    data, start, segments = case
    kept = [segment for segment in segments if draw.draw(st.booleans())]
    seen = {at + index for at, part in kept for index in range(len(part))}
    packets = handshake(start - 1)
    packets += [packet(part, seq=start + at, ack=901) for at, part in kept]
    packets.append(packet(seq=start + len(data), ack=901, flags=FIN | ACK))
    there, _ = streams(packets)
    assert there.data == bytes(each for index, each in enumerate(data) if index in seen)
    lost = {offset + index for offset, length in there.losses for index in range(length)}
    assert lost == set(range(len(data))) - seen


def test_first_seen_bytes_win() -> None:
    there, _ = streams([
        *handshake(),
        packet(b"AB", seq=101),
        packet(b"xyCD", seq=101),
        packet(b"GH", seq=107),
        packet(b"uvwxyz", seq=105),
    ])  # fmt: skip
    assert there.data == b"ABCDuvGHyz"


@pytest.mark.parametrize("wait_ns", [PATIENCE_NS // 5, 0], ids=["in time", "without times"])
def test_an_acknowledged_hole_is_given_up_soon(wait_ns: int) -> None:
    packets = [*handshake(), packet(b"one", seq=101, ack=901), packet(b"three", seq=107, ack=901)]
    packets += [packet(back=True, seq=901, ack=112)] * (6 if wait_ns else MOST_PATIENCE + 1)
    times = [10**9 + 1000 * index + max(index - 4, 0) * wait_ns for index in range(len(packets))]
    segments = read_segments(
        Packet(time_ns, 1, data, len(data), 0, number)
        for number, (time_ns, data) in enumerate(zip(times, packets, strict=True), 1)
    )
    before_end: list[Event] = []
    table = FlowTable()
    for segment in segments:
        assert not isinstance(segment, UnreadableRange | list)
        before_end += table.receive(segment, table.halves.get(segment.key))
    assert Gap in map(type, before_end)
    packets += [packet(b"four", seq=112, ack=901)]
    events = [each for each in run(packets) if isinstance(each, Chunk | Gap)]
    assert [(type(event), event.position) for event in events] == [
        (Chunk, 0),
        (Gap, 3),
        (Chunk, 6),
        (Chunk, 11),
    ]
    assert isinstance(events[1], Gap)
    assert events[1].length == 3
    assert events[2].time_ns == 10**9 + 4000, "a packet after a skipped gap keeps its own time"


@pytest.mark.parametrize("has_own_times", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_packets_that_are_milliseconds_out_of_order(seed: int, has_own_times: bool) -> None:
    """Data that was captured after its acknowledgement was captured, however many packets are between."""
    data = random.Random(seed).randbytes(200 * 100)
    sent: list[tuple[int, bytes]] = []
    for index in range(200):
        time_ns, end = 2 * 10**9 + 100_000 * index, 100 * (index + 1)
        sent.append((time_ns, packet(data[end - 100 : end], seq=1 + end, ack=901)))
        sent.append((time_ns + 20_000, packet(back=True, seq=901, ack=101 + end)))
    shift = random.Random(seed).randrange
    captured = sorted(sent, key=lambda item: item[0] + shift(4_000_000))
    if not has_own_times:
        captured = [(time_ns, frame) for (time_ns, _), (_, frame) in zip(sent, captured, strict=True)]
    start = [(10**9 + 1000 * index, opening) for index, opening in enumerate(handshake())]
    stream, _ = follow(read_streams(io.BytesIO(pcap([*start, *captured])))).values()
    assert (stream.data, stream.losses) == (data, [])


def test_a_hole_is_filled_by_a_retransmission_in_time() -> None:
    packets = [*handshake(), packet(b"three", seq=104, ack=901)]
    packets += [packet(back=True, seq=901, ack=109)] * 2
    packets += [packet(b"one", seq=101, ack=901)]
    chunks = [chunk for chunk in run(packets) if isinstance(chunk, Chunk)]
    assert [(chunk.time_ns, chunk.data) for chunk in chunks] == [
        (10**9 + 6000, b"one"),
        (10**9 + 6000, b"three"),
    ]


def test_acknowledged_bytes_at_the_end_are_lost() -> None:
    packets = [*handshake(), packet(b"one", seq=101), packet(back=True, seq=901, ack=204)]
    there, _ = streams([*packets, packet(b"answer", back=True, seq=901, ack=204)])
    assert (there.data, there.losses) == (b"one", [(3, 100)])


def test_an_acknowledgement_captured_just_before_its_data_is_not_a_loss() -> None:
    packets = [*handshake(), packet(b"one", seq=101), packet(back=True, seq=901, ack=107)]
    there, _ = streams(packets)
    assert (there.data, there.losses) == (b"one", [])
    there, _ = streams([*packets, packet(b"two", seq=104, ack=901)])
    assert (there.data, there.losses) == (b"onetwo", [])


def test_the_window_bounds_what_is_held() -> None:
    parts = [packet(b"x" * 100, seq=1000 + 100 * index) for index in range(100)]
    segments = read_segments(
        Packet(0, 1, each, len(each), 0) for each in [*handshake(), packet(b"first", seq=101), *parts]
    )
    events = list(reassemble(segments, FlowTable(window=5000)))
    lost = [index for index, gap in enumerate(events) if isinstance(gap, Gap)]
    assert len(lost) == 1
    assert len(events) - lost[0] > 50, "given up when the window was full, not at the end"
    there = next(iter(follow(events).values()))
    assert (len(there.data), there.losses) == (10_005, [(5, 894)])


def test_too_many_segments_are_not_held() -> None:
    parts = [packet(b"x", seq=1000 + 2 * index) for index in range(5000)]
    there, _ = streams([*handshake(), *parts])
    assert (len(there.data), len(there.losses)) == (5000, 5000)


def test_probes_add_nothing() -> None:
    packets = [
        *handshake(),
        packet(b"data", seq=101),
        packet(b"\0", seq=104),  # keep-alive
        packet(seq=104),
        packet(b"m", seq=105),  # a window probe with the next byte
        packet(b"more", seq=105),
    ]
    there, _ = streams(packets)
    assert there.data == b"datamore"


def test_from_the_middle() -> None:
    packets = [
        packet(seq=5000, ack=70),
        packet(b"\0", seq=4999, ack=70),
        packet(b"request", seq=5000, ack=70),
        packet(b"response", back=True, seq=70, ack=5007),
        packet(b"before", seq=4994, ack=70),
    ]
    events = run(packets)
    there, back = follow(events).values()
    assert (there.data, there.opened, there.closed) == (b"request", False, "end")
    assert back.data == b"response"
    (before,) = (unreadable for unreadable in events if isinstance(unreadable, UnreadableRange))
    assert before.length == 6
    assert pcap(packets)[before.position :][:6] == b"before"


def test_one_direction_only() -> None:
    packets = [*handshake(), packet(b"a", seq=101), packet(b"b", seq=102)]
    del packets[1]
    assert [stream.data for stream in streams(packets)] == [b"ab"]


@pytest.mark.parametrize("ended", [True, False])
def test_ports_are_used_again(ended: bool) -> None:
    packets = [*handshake(), packet(b"old", seq=101, ack=901)]
    if ended:
        packets += [packet(seq=104, flags=FIN | ACK), packet(back=True, seq=901, ack=105, flags=FIN | ACK)]
    packets += [*handshake(70_000, 80_000), packet(b"new", seq=70_001, ack=80_001), packet(b"old", seq=101)]
    result = follow(run(packets))
    data = {(flow.connection, flow.destination.port): stream.data for flow, stream in result.items()}
    assert (data[0, 9092], data[1, 9092]) == (b"old", b"new")
    assert [stream.closed for stream in result.values()][:2] == (["fin"] * 2 if ended else ["reused"] * 2)


def test_ports_are_used_again_unseen() -> None:
    packets = [
        *handshake(),
        packet(b"old", seq=101),
        packet(b"new", seq=101 + 2**31),
        packet(b"er", seq=104 + 2**31),
    ]
    result = follow(run(packets))
    assert [each.data for each in result.values() if each.data] == [b"old", b"newer"]


def test_a_syn_behind_its_first_bytes() -> None:
    syn, answer, ready = handshake()
    there, back = streams([packet(b"data", seq=101, ack=901), answer, syn, ready, packet(b"more", seq=105)])
    assert (there.data, there.opened, back.opened) == (b"datamore", True, True)


def test_a_reset_ends_its_own_side() -> None:
    packets = [
        *handshake(),
        packet(b"req", seq=101, ack=901),
        packet(b"held", seq=110, ack=901),
        packet(seq=116, flags=RST),
        packet(b"in flight", back=True, seq=901, ack=104),
    ]
    there, back = streams(packets)
    assert (there.data, there.losses, there.closed) == (b"reqheld", [(3, 6), (13, 2)], "rst")
    assert (back.data, back.closed) == (b"in flight", "end")


def test_a_refused_connection() -> None:
    packets = [packet(seq=100, flags=SYN), packet(back=True, ack=101, flags=RST | ACK)]
    there, back = streams(packets)
    assert (there.opened, back.opened, back.closed) == (True, False, "rst")


def test_a_snap_length_is_a_loss() -> None:
    parts = [packet(b"0123456789", seq=101 + 10 * index) for index in (0, 2, 1)]
    events = list(read_streams(io.BytesIO(pcap([*handshake(), *parts], snap=58))))
    there = next(iter(follow(events).values()))
    assert (there.data, there.losses) == (b"0123" * 3, [(4, 6), (14, 6), (24, 6)])


def test_connections_are_forgotten_in_time() -> None:
    def many() -> Iterable[Packet]:
        for index in range(2000):
            data = bytearray(packet(b"data", seq=index * 1000))
            data[34:36] = index.to_bytes(2, "big")
            yield Packet(index, 1, bytes(data), len(data), 0)

    events = list(reassemble(read_segments(many()), FlowTable(flows=100)))
    result = follow(events)
    assert len(result) == 2000
    assert sum(stream.closed == "forgotten" for stream in result.values()) >= 1900


def test_a_port_that_talks_to_itself() -> None:
    data = packet(b"echo", seq=1)
    loop = data[:26] + bytes([127, 0, 0, 1]) * 2 + b"\x23\x84" * 2 + data[38:]
    assert [stream.data for stream in streams([loop, loop])] == [b"echo"]


def test_counts() -> None:
    capture_counts = CaptureCounts()
    run([*handshake(), packet(b"x", seq=101), packet(b"x", seq=101)], capture_counts)
    assert (
        capture_counts.packets,
        capture_counts.segments,
        capture_counts.repeated,
        capture_counts.passed_over,
    ) == (5, 5, 1, 0)


flags = st.sampled_from([ACK, ACK, ACK, SYN, SYN | ACK, FIN | ACK, RST, RST | ACK, FIN | SYN | RST, 0])
numbers = st.integers(0, 40) | st.sampled_from([2**31, 2**32 - 1, 2**28, 2**24 + 3, 12345])
packets = st.builds(
    lambda payload, back, seq, ack, flags: packet(payload, back=back, seq=seq, ack=ack, flags=flags),
    st.binary(max_size=20),
    st.booleans(),
    numbers,
    numbers,
    flags,
)


@settings(max_examples=300)
@given(st.lists(packets, max_size=40), st.sampled_from([0, 60, 70]))
def test_any_packets_keep_the_promises(packets: list[bytes], snap: int) -> None:
    events: list[Event] = list(read_streams(io.BytesIO(pcap(packets, snap=snap))))
    for event in events:
        if isinstance(event, Opened):
            assert event.server in (event.flow.source, event.flow.destination)
    follow(event for event in events if not isinstance(event, Opened))


@given(st.binary(max_size=100), st.sampled_from([pcap, pcapng]), st.integers(0, 600), st.integers(0, 100))
def test_mutated_captures_end(junk: bytes, make: Callable[[list[bytes]], bytes], at: int, drop: int) -> None:
    whole = [*handshake(), packet(b"request", seq=101), packet(b"response", back=True, seq=901, ack=108)]
    capture = make(whole)
    at = 24 + at % (len(capture) - 24)
    list(read_streams(io.BytesIO(capture[:at] + junk + capture[at + drop :])))
