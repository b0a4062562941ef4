"""Frames as a pcap or pcapng: Ethernet, IPv4 and TCP around them, one packet a piece.

Rules: each connection begins with its handshake and has ports of its own, unless its ends are given; sequence
numbers add up; checksums are left 0, as captures on the sending machine have them.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

__all__ = ["Ends", "as_pcap", "pcap_parts", "pcapng_parts"]

_GLOBAL = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)  # nanoseconds, Ethernet
_RECORD = struct.Struct("<IIII")
_SECTION = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)  # of unknown length
_INTERFACE = struct.pack("<IIHHIHHBxxxHHI", 1, 32, 1, 0, 1 << 18, 9, 1, 9, 0, 0, 32)  # the same
_PACKET = struct.Struct("<IIIIIII")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_TCP = struct.Struct(">HHIIBBHHH")
_ETHERNET = bytes(12) + b"\x08\x00"
_CLIENT, _BROKER = "10.0.0.1", "10.0.0.2"
_PORT, _BROKER_PORT = 40_000, 9092
_PSH, _SYN, _ACK = 0x08, 0x02, 0x10
PIECE = 32_000
"""Bytes of a frame in one packet; IPv4 has 64 KB."""


class Ends(NamedTuple):
    """The two ends of a connection; hosts that are not IPv4 addresses are shown as 127.0.0.1."""

    client: str
    client_port: int
    broker: str
    broker_port: int


Numbers = list[int]
"""The next sequence numbers of the client and of the broker."""


def as_pcap(frames: Iterable[tuple[int, int, bool, bytes]]) -> bytes:
    """frames: time in nanoseconds, connection, whether it goes to the client, bytes."""
    return b"".join(pcap_parts(frames))


def _numbered(connection: int) -> Ends:
    return Ends(_CLIENT, _PORT + connection, _BROKER, _BROKER_PORT)


def pcap_parts(
    frames: Iterable[tuple[int, int, bool, bytes]], ends_of: Callable[[int], Ends] = _numbered
) -> Iterator[bytes]:
    """The same piece by piece, for captures that are larger than memory. A frame without bytes becomes a
    packet that only acknowledges. ends_of: gives the ends of a connection."""
    yield _GLOBAL
    for time_ns, packet in _packets(frames, ends_of):
        seconds, nanoseconds = divmod(time_ns, 1_000_000_000)
        yield _RECORD.pack(seconds, nanoseconds, len(packet), len(packet)) + packet


def pcapng_parts(
    frames: Iterable[tuple[int, int, bool, bytes]], ends_of: Callable[[int], Ends] = _numbered
) -> Iterator[bytes]:
    """The same as a pcapng."""
    yield _SECTION + _INTERFACE
    for time_ns, packet in _packets(frames, ends_of):
        padding = bytes(-len(packet) % 4)
        length = _PACKET.size + len(packet) + len(padding) + 4
        high, low = divmod(time_ns, 1 << 32)
        head = _PACKET.pack(6, length, 0, high, low, len(packet), len(packet))
        yield b"".join((head, packet, padding, length.to_bytes(4, "little")))


def _packets(
    frames: Iterable[tuple[int, int, bool, bytes]], ends_of: Callable[[int], Ends]
) -> Iterator[tuple[int, bytes]]:
    """The packets with their times in nanoseconds."""
    known = dict[int, Numbers]()
    for time_ns, connection, back, data in frames:
        numbers = known.get(connection)
        if numbers is None:
            numbers = known[connection] = [1000, 5000]
            for answer, flags in ((False, _SYN), (True, _SYN | _ACK), (False, _ACK)):
                yield time_ns, _packet(ends_of(connection), answer, numbers, b"", flags)
        for at in range(0, max(len(data), 1), PIECE):
            piece = data[at : at + PIECE]
            yield (
                time_ns,
                _packet(ends_of(connection), back, numbers, piece, _ACK | _PSH if piece else _ACK),
            )


@cache
def _address(host: str) -> bytes:
    try:
        return ipaddress.IPv4Address(host).packed
    except ValueError:
        return bytes((127, 0, 0, 1))


def _packet(between: Ends, back: bool, numbers: Numbers, data: bytes, flags: int) -> bytes:
    ports = between.client_port, between.broker_port
    ends = _address(between.client), _address(between.broker)
    if back:
        ports, ends = ports[::-1], ends[::-1]
    acknowledged = numbers[1 - back] if flags & _ACK else 0
    segment = _TCP.pack(*ports, numbers[back], acknowledged, 5 << 4, flags, 65_535, 0, 0) + data
    numbers[back] += len(data) + bool(flags & _SYN)
    return _ETHERNET + _IPV4.pack(0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0, *ends) + segment
