"""C and Python read the same from any capture: the timeline, all formats of `decode` and the rows of its
tables, of real captures whose packets are changed, cut, dropped, doubled, reordered or moved in time, or that
lack one side's packets. The last line counts the entries that were compared."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from fuzz._engine import COMMANDS, Engine, difference
from fuzz._run import compares_native, main
from tests.recorded import CAPTURES, DATA, RECORDINGS, open_capture

FILES = [
    *CAPTURES,
    *RECORDINGS,
    *sorted((DATA / "engines").glob("*.pcap.xz")),
]
MOST_CHANGES = 12
LONGEST_WINDOW = 400
KINDS = ("bytes", "bytes", "bytes", "bytes", "drop", "drop", "double", "move", "cut", "time", "pause", "side")
VALUES = st.sampled_from((b"\0", b"\0", b"\1", b"\x7f", b"\xff", b"\xff\xff")) | st.binary(
    min_size=1, max_size=4
)
"""What takes the place of a packet's bytes: zeros and the ends of a number's range more often than others."""

HEADERS = 54
"""Bytes of Ethernet's, IP's and TCP's headers without options."""

_PORT = slice(34, 36)
"""Where these have the sender's port."""

MICROSECONDS = 1_000_000
MAGIC = b"\xd4\xc3\xb2\xa1"
_RECORD = struct.Struct("<IIII")
KEPT = Path(".hypothesis/engines.pcap")
"""Where the last capture is kept on which the engines differ: the shortest, once Hypothesis is done."""

compared = 0
"""Entries that were compared."""


class Packet(NamedTuple):
    """A packet of a capture. time: in microseconds; size: on the wire."""

    time: int
    size: int
    data: bytes

    def as_bytes(self) -> bytes:
        seconds, fraction = divmod(self.time, MICROSECONDS)
        return _RECORD.pack(seconds % (1 << 32), fraction, len(self.data), self.size) + self.data


Change = Callable[[list[Packet]], None]


class Changed(bytes):
    """A capture that isn't shown with all of its bytes."""

    def __repr__(self) -> str:
        return f"<a capture of {len(self):,} bytes>"


@cache
def packets_of(path: Path) -> tuple[bytes, list[Packet]]:
    """The header and the packets of a pcap with times in microseconds."""
    with open_capture(path) as stream:
        data = stream.read()
    assert data.startswith(MAGIC), path
    results, at = [], 24
    while at < len(data):
        seconds, fraction, size, original = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        results.append(Packet(seconds * MICROSECONDS + fraction, original, data[at : at + size]))
        at += size
    return data[:24], results


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """One change of a capture's packets; places are fractions of its length."""
    kind = draw(st.sampled_from(KINDS))
    place = draw(st.integers(0, 1 << 16))
    number = draw(st.sampled_from((1, 1, 1, 2, 5, 20)))
    distance = draw(st.integers(-40, 40))
    span = draw(st.sampled_from((1, 1_000, 500_000, 3_000_000, 12_000_000, 90_000_000)))
    value, offset = draw(VALUES), draw(st.integers(0, 1 << 16))

    def change(packets: list[Packet]) -> None:
        at = place * len(packets) >> 16
        if at >= len(packets):
            return
        time, size, data = packets[at]
        if kind == "bytes":
            payload = min(HEADERS, len(data))
            start = payload + (offset * (len(data) - payload) >> 16)
            packets[at] = Packet(time, size, data[:start] + value + data[start + len(value) :])
        elif kind == "drop":
            del packets[at : at + number]
        elif kind == "double":
            packets[at:at] = packets[at : at + number]
        elif kind == "move":
            part = packets[at : at + number]
            del packets[at : at + number]
            place_now = max(at + distance, 0)
            packets[place_now:place_now] = part
        elif kind == "cut":
            packets[at] = Packet(time, size, data[: max(HEADERS, offset * len(data) >> 16)])
        elif kind == "time":
            packets[at] = Packet(max(time + (span if distance > 0 else -span), 0), size, data)
        elif kind == "side":
            packets[:] = [packet for packet in packets if packet.data[_PORT] != data[_PORT]]
        else:
            packets[at:] = [Packet(packet.time + span, packet.size, packet.data) for packet in packets[at:]]

    return change


@st.composite
def captures(draw: st.DrawFn) -> Changed:
    """A real capture or a part of it, changed."""
    header, packets = packets_of(draw(st.sampled_from(FILES)))
    packets = list(packets)
    if draw(st.booleans()):
        start = draw(st.integers(0, 1 << 16)) * len(packets) >> 16
        packets = packets[start : start + draw(st.integers(1, LONGEST_WINDOW))]
    for change in draw(st.lists(changes(), max_size=MOST_CHANGES)):
        change(packets)
    return Changed(header + b"".join(packet.as_bytes() for packet in packets))


@cache
def engines() -> tuple[Engine, Engine]:
    """Their processes."""
    return Engine("c"), Engine("python")


@compares_native
@given(captures(), st.sampled_from((True, True, True, True, True, True, False)))
def fuzz(data: Changed, timeline_only: bool) -> None:
    """Rules: most captures are compared by their timelines alone, which take a tenth of the time."""
    global compared
    pair = engines()
    for engine in pair:
        engine.give(data, ("timeline",) if timeline_only else COMMANDS)
    first, second = (engine.texts() for engine in pair)
    compared += int(first["entries"])
    result = difference(first, second)
    if result:
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(data)
    assert not result, f"{result}\n({KEPT} has the capture)"


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        try:
            main(fuzz)
        finally:
            print(f"{compared:,} entries compared")
