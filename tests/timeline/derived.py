"""Captures that are not whole, made from one that is: packets are missing, cut short, or of one side.

Strategy: a classic little-endian pcap of Ethernet and IPv4 is split into its packets, and written again
without some of them or without their ends. Rules: what is dropped depends on nothing but the packet's number,
so that a test sees the same each time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["DERIVED", "begins_late", "loses", "one_side", "packets", "snapped", "written"]

_FILE, _PACKET = 24, struct.Struct("<IIII")


class Packet(NamedTuple):
    """One of a capture. micros: its time; to_broker: whether a client sent it."""

    micros: int
    original: int
    data: bytes
    to_broker: bool

    @property
    def payload(self) -> int:
        """How many bytes of TCP payload it has."""
        header = 14 + (self.data[14] & 15) * 4
        return int.from_bytes(self.data[16:18], "big") + 14 - header - (self.data[header + 12] >> 4) * 4


def packets(capture: bytes) -> list[Packet]:
    rows = list(_rows(capture))
    asked = [_ports(data) for _, _, data in rows if _is_first(data)]
    assert asked, "no connection begins in this capture"
    broker = asked[0][1]
    return [Packet(micros, original, data, _ports(data)[1] == broker) for micros, original, data in rows]


def _rows(capture: bytes) -> Iterator[tuple[int, int, bytes]]:
    assert capture[:4] == b"\xd4\xc3\xb2\xa1", "expected a little-endian pcap of microseconds"
    position = _FILE
    while position < len(capture):
        seconds, micros, length, original = _PACKET.unpack_from(capture, position)
        position += _PACKET.size
        yield seconds * 1_000_000 + micros, original, capture[position : position + length]
        position += length


def _ports(data: bytes) -> tuple[int, int]:
    source, target = struct.unpack_from(">HH", data, 14 + (data[14] & 15) * 4)
    return source, target


def _is_first(data: bytes) -> bool:
    """Whether it is a client's SYN."""
    return data[14 + (data[14] & 15) * 4 + 13] & 0x12 == 0x02


def written(capture: bytes, kept: list[Packet]) -> bytes:
    rows = (
        _PACKET.pack(one.micros // 1_000_000, one.micros % 1_000_000, len(one.data), one.original) + one.data
        for one in kept
    )
    return capture[:_FILE] + b"".join(rows)


def loses(capture: bytes, one_in: int = 23) -> bytes:
    """Every so many of the packets with data are lost."""
    kept, seen = [], 0
    for packet in packets(capture):
        seen += packet.payload > 0
        if packet.payload <= 0 or seen % one_in:
            kept.append(packet)
    return written(capture, kept)


def begins_late(capture: bytes, part: float = 0.5) -> bytes:
    """It begins in the middle."""
    every = packets(capture)
    first, last = every[0].micros, every[-1].micros
    return written(capture, [one for one in every if one.micros >= first + (last - first) * part])


def one_side(capture: bytes, requests: bool) -> bytes:
    """Only what clients sent, or only what the broker did."""
    return written(capture, [packet for packet in packets(capture) if packet.to_broker is requests])


def snapped(capture: bytes, length: int = 160) -> bytes:
    """No packet has more bytes than these."""
    return written(capture, [packet._replace(data=packet.data[:length]) for packet in packets(capture)])


DERIVED: dict[str, Callable[[bytes], bytes]] = {
    "lost packets": loses,
    "begins in the middle": begins_late,
    "requests only": lambda capture: one_side(capture, True),
    "responses only": lambda capture: one_side(capture, False),
    "snapped": snapped,
}
