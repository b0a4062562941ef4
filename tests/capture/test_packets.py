"""The numbers of packets and connections: those of Wireshark, for every entry.

Strategy: what tshark found in real captures, recorded in `wireshark.json`; and synthetic captures whose
numbers follow from how they were made.
"""

from __future__ import annotations

import io
import json
import lzma
import random
import struct
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.framing import FrameSplitter
from coordwire.capture.jsonlines import frame_form
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse

from . import build

DATA = Path(__file__).parent.parent / "data"
WIRESHARK: dict[str, list[list[Any]]] = json.loads((DATA / "captures" / "wireshark.json").read_text())
SYN, ACK, RST = build.SYN, build.ACK, build.RST


def read(data: bytes) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x.pcap").entries())


def frames(data: bytes) -> list[FrameEntry]:
    return [entry for entry in read(data) if isinstance(entry, FrameEntry)]


def ask(number: int) -> bytes:
    message = HeartbeatRequest(group_id="payments", member_id=f"m-{number}")
    return encode_request(message, version=4, correlation_id=number, client_id="till")


def answer(number: int) -> bytes:
    return encode_response(HeartbeatResponse(), version=4, correlation_id=number)


def placed(entries: Iterable[FrameEntry]) -> list[tuple[int | None, int | None, int]]:
    return [(e.first_packet, e.packet, e.connection.stream if e.connection else -1) for e in entries]


@pytest.mark.parametrize("name", WIRESHARK)
def test_real_captures_are_numbered_as_wireshark_does(name: str) -> None:
    raw = (DATA / name).read_bytes()
    result: dict[tuple[Any, ...], list[FrameEntry]] = defaultdict(list)
    for entry in frames(lzma.decompress(raw) if name.endswith(".xz") else raw):
        assert entry.connection is not None
        result[entry.packet, entry.connection.stream].append(entry)
    listed = 0
    for packet, first, stream, ids in WIRESHARK[name]:
        entries = result[packet, stream]
        if not any(entry.error or entry.token for entry in entries):  # what tshark can't decode it leaves out
            assert sorted(entry.correlation_id or 0 for entry in entries) == sorted(ids)
        assert min(entry.first_packet or 0 for entry in entries) == first
        listed += 1
    assert listed >= 10


def test_a_frame_has_the_packets_of_its_first_and_its_last_byte() -> None:
    one, two, reply = ask(1), ask(2), answer(1)
    data = one + two
    pieces = [data[:3], data[3 : len(one) + 2], data[len(one) + 2 :]]
    packets = [build.packet(flags=SYN, seq=99)]
    at = 100
    for piece in pieces:
        packets.append(build.packet(piece, seq=at))
        at += len(piece)
    packets.append(build.packet(reply, back=True, seq=500, ack=at))
    result = frames(build.pcap(packets))
    assert placed(result) == [(2, 3, 0), (3, 4, 0), (5, 5, 0)]
    assert result[2].request is result[0]
    form = frame_form(result[2], 6, show_secrets=False)
    names = ("packet", "firstPacket", "connection", "client", "broker", "request", "requestPacket")
    assert [form[name] for name in names] == [5, 5, 0, "10.0.0.1:53412", "10.0.0.2:9092", 1, 3]


def test_packets_of_a_frame_out_of_order_are_those_that_hold_its_ends() -> None:
    data = ask(1)
    packets = [
        build.packet(flags=SYN, seq=99),
        build.packet(data[20:], seq=120),
        build.packet(data[10:20], seq=110),
        build.packet(data[:10], seq=100),
        build.packet(data[:10], seq=100),  # again: the first that was seen counts
    ]
    assert placed(frames(build.pcap(packets))) == [(4, 2, 0)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 13, 14, 15, 40])
def test_in_any_pieces_and_out_of_step_the_packets_are_those_of_the_bytes(size: int) -> None:
    noise = bytes([0xFF] * 7)
    data = noise + ask(1) + ask(2) + b"\xff\xff\xff\xff\xff" + ask(3)
    head = ask(1)[:6]
    cutter = FrameSplitter(lambda buffer, at, effort: buffer[at : at + 6] == head, in_step=False)
    results = []
    for number, at in enumerate(range(0, len(data), size), 1):
        results += cutter.feed(data[at : at + size], None, number)
    results += cutter.finish(None)
    frame = len(ask(1))
    starts = [7, 7 + frame, 12 + 2 * frame]
    bodies = [part for part in results if not isinstance(part, UnreadableRange)]
    assert [(body.first_packet, body.packet) for body in bodies] == [
        (start // size + 1, (start + frame - 1) // size + 1) for start in starts
    ]
    passed = [part for part in results if isinstance(part, UnreadableRange)]
    assert [(part.first_packet, part.packet) for part in passed] == [
        (part.position // size + 1, (part.position + part.length - 1) // size + 1) for part in passed
    ]
    assert sum(part.length for part in passed) == 12


def test_a_large_frame_in_many_packets_keeps_the_first_only() -> None:
    cutter = FrameSplitter(lambda buffer, at, effort: True, in_step=True)
    assert cutter.feed(struct.pack(">i", 5000), None, 1) == []
    for number in range(2, 5001):
        assert cutter.feed(b"x", None, number) == []
        assert len(cutter._packets) <= 2
    (body,) = cutter.feed(b"x", None, 5001)
    assert not isinstance(body, UnreadableRange)
    assert (body.first_packet, body.packet) == (1, 5001)


def test_connections_are_numbered_from_their_first_packet_whatever_it_holds() -> None:
    other = ("10.0.0.3", 1000)
    third = ("10.0.0.4", 1000)

    def packet(source: Any, target: Any, payload: bytes = b"", seq: int = 0, flags: int = ACK) -> bytes:
        return build.ethernet(
            build.ipv4(
                build.tcp(payload, seq=seq, flags=flags, source=source, destination=target), source, target
            )
        )

    broker = build.BROKER
    packets = [
        packet(other, broker, seq=50),  # stream 0: without data at first
        packet(broker, third, seq=7, flags=RST),  # stream 1: never any
        packet(build.CLIENT, broker, seq=99, flags=SYN),  # stream 2
        packet(build.CLIENT, broker, ask(1), seq=100),
        packet(broker, other, seq=1, flags=ACK),
        packet(other, broker, ask(2), seq=51),
        packet(build.CLIENT, broker, seq=5000, flags=SYN),  # stream 3: the same ports again
        packet(build.CLIENT, broker, ask(3), seq=5001),
        packet(third, broker, seq=900, flags=SYN),  # still stream 1: this direction was not seen before
        packet(third, broker, ask(4), seq=901),
        packet(other, broker, seq=99_999, flags=SYN),  # stream 4: not the number that its packets had
        packet(other, broker, ask(5), seq=100_000),
    ]
    assert placed(frames(build.pcap(packets))) == [(4, 4, 2), (6, 6, 0), (8, 8, 3), (10, 10, 1), (12, 12, 4)]


def test_a_pcapng_counts_what_wireshark_lists() -> None:
    data = [build.packet(flags=SYN, seq=99), build.packet(ask(1), seq=100)]
    journal = build.block(9, b"__REALTIME_TIMESTAMP=1700000000000000\n")
    custom = build.block(0xBAD, struct.pack("<I", 12345))
    names = build.block(4, bytes(4))
    interfaces = build.interface() + build.interface(options=build.option(9, b"\x09"))
    capture = (
        build.section() + interfaces + names + journal + build.enhanced(data[0], 1, number=1)
        + custom + build.enhanced(data[1], 2, number=0)
    )  # fmt: skip
    assert placed(frames(capture)) == [(4, 4, 0)]


def test_packets_that_cannot_be_read_have_their_numbers() -> None:
    short = build.packet(ask(1), seq=100)[:40]
    result = read(build.pcap([build.packet(flags=SYN, seq=99), short, build.packet(ask(1), seq=100)]))
    (bad,) = [entry for entry in result if isinstance(entry, UnreadableRange)]
    assert (bad.first_packet, bad.packet) == (2, 2)
    foreign = read(build.pcap([b"wifi", b"wifi"], link=105))
    (run,) = [entry for entry in foreign if isinstance(entry, UnreadableRange)]
    assert (run.first_packet, run.packet) == (1, 2)


def test_inputs_without_packets_have_no_numbers() -> None:
    for name, data in (
        ("frames", ask(1) + answer(1)),
        ("hex", (ask(1).hex() + "\n" + answer(1).hex()).encode()),
    ):
        results = [*Capture(io.BytesIO(data), "x", input=name).entries()]  # type: ignore[arg-type]
        for entry in results:
            assert isinstance(entry, FrameEntry)
            assert (entry.packet, entry.first_packet, entry.connection) == (None, None, None)
            form = frame_form(entry, 6, show_secrets=False)
            assert not {"packet", "firstPacket", "connection", "client", "broker"} & form.keys()
            assert form.get("request") == (1 if entry.direction == "response" else None)


def test_an_answer_at_the_beginning_of_the_next_file_has_its_packet() -> None:
    syn = build.packet(flags=SYN, seq=99)
    first = build.pcap([syn, build.packet(ask(1), seq=100)])
    second = build.pcap(
        [build.packet(answer(1), back=True, seq=1), build.packet(ask(2), seq=100 + len(ask(1)))]
    )
    results = [e for e in rejoined([*read(first), *read(second)]) if isinstance(e, FrameEntry)]
    late = next(entry for entry in results if entry.direction == "response")
    assert (late.packet, late.first_packet) == (1, 1)


def test_shuffled_packets_keep_their_own_numbers() -> None:
    data = b"".join(ask(number) for number in range(40))
    where = list(range(0, len(data), 23))
    order = random.Random(5).sample(where, len(where))
    packets = [build.packet(flags=SYN, seq=99)]
    packets += [build.packet(data[at : at + 23], seq=100 + at) for at in order]
    holder = {at: index for index, at in enumerate(order, 2)}
    result = frames(build.pcap(packets))
    assert len(result) == 40
    at = 0
    for number, entry in enumerate(result):
        end = at + len(ask(number))
        assert (entry.first_packet, entry.packet) == (holder[at // 23 * 23], holder[(end - 1) // 23 * 23])
        at = end
