"""A broker's traffic as a capture, written while it happens."""

from __future__ import annotations

import io
import struct
import threading
import tracemalloc
from typing import Any

from coordwire import Connection
from coordwire.broker.harness.traffic import LiveTraffic, Traffic
from coordwire.capture import Capture, FrameEntry
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.messages import HeartbeatRequest


class Kept(io.BytesIO):
    """It keeps its bytes when it is closed."""

    def close(self) -> None:
        pass


class Gone(io.RawIOBase):
    """A pipe without a reader."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise BrokenPipeError


def frames(data: bytes) -> list[str]:
    entries = Capture(io.BytesIO(data), "live", ports={9092}).entries()
    return [entry.message.group_id for entry in entries if isinstance(entry, FrameEntry)]  # type: ignore[union-attr]


def heartbeat(group: str) -> bytes:
    return Connection("client").send(HeartbeatRequest(group_id=group, member_id="m"), version=4)


def test_what_was_sent_is_in_the_capture() -> None:
    out = Kept()
    ended: list[int] = []
    live = LiveTraffic(out, then=lambda: ended.append(1))
    numbers = [live.opened(("127.0.0.1", 5000 + at), ("127.0.0.1", 9092)) for at in range(2)]
    live.add(numbers[0], heartbeat("a")[:9], to_client=False)
    live.add(numbers[1], heartbeat("b"), to_client=False)
    live.add(numbers[0], heartbeat("a")[9:], to_client=False)
    live.close()
    assert sorted(frames(out.getvalue())) == ["a", "b"]
    assert (live.lost, ended) == (0, [1])


def test_the_end_of_a_connection_is_in_the_capture_with_its_sequence_numbers() -> None:
    out = Kept()
    live = LiveTraffic(out)
    number = live.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092))
    live.add(number, b"abc", to_client=False)
    live.ended(number, to_client=True, aborted=False)
    live.close()
    packets = list(read_packets(Kept(out.getvalue())))
    tcp = [struct.unpack_from(">HHIIBB", packet.data, 34) for packet in packets if isinstance(packet, Packet)]
    first, broker, client, last = ((fields[0], *fields[2:4], fields[5]) for fields in tcp[3:])
    assert first == (5000, 1001, 5001, 0x18)
    assert broker == (9092, 5001, 1004, 0x11)
    assert client == (5000, 1004, 5002, 0x11)
    assert last == (9092, 5002, 1005, 0x10)


def test_a_connection_that_lost_a_piece_is_written_no_more() -> None:
    out = Kept()
    live = LiveTraffic(out, most=1_000)
    numbers = [live.opened(("127.0.0.1", 5000 + at), ("127.0.0.1", 9092)) for at in range(2)]
    live.add(numbers[0], bytes(1_001), to_client=False)
    live.add(numbers[0], heartbeat("a"), to_client=False)
    live.add(numbers[1], heartbeat("b"), to_client=False)
    live.close()
    assert frames(out.getvalue()) == ["b"]
    assert live.lost == 1


def test_a_connection_whose_end_is_lost_is_not_whole() -> None:
    live = LiveTraffic(Kept(), most=100)
    live.ended(live.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092)), to_client=True, aborted=False)
    live.close()
    assert live.lost == 1


class Stuck(Kept):
    """A reader that has stopped, until `go_on`."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def write(self, data: Any) -> int:
        self.go_on.wait()
        return super().write(data)


def test_the_bound_counts_what_small_pieces_cost() -> None:
    out, most = Stuck(), 1 << 20
    live, traffic = LiveTraffic(out, most=most), Traffic(most=most)
    number = live.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092))
    traffic.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092))
    tracemalloc.start()
    try:
        while not live.lost:
            live.add(number, bytes(3), to_client=False)
        waiting, _ = tracemalloc.get_traced_memory()
        while not traffic.dropped:
            traffic.add(number, bytes(3), to_client=False)
        total, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        out.go_on.set()
        live.close()
    assert most / 2 < waiting < most
    assert most / 2 < total - waiting < most


def test_a_reader_that_has_gone_ends_the_writing_only() -> None:
    live = LiveTraffic(Gone())  # type: ignore[arg-type]
    number = live.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092))
    for _ in range(3):
        live.add(number, heartbeat("a"), to_client=False)
    live.close()
    assert isinstance(live.failure, BrokenPipeError)
