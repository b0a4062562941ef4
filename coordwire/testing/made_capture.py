"""Frames as a pcap: Ethernet, IPv4 and TCP around them, one packet a piece.

Rules: each connection begins with its handshake and has ports of its own; sequence numbers add up;
checksums are left 0, as captures on the sending machine have them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["as_pcap"]

_GLOBAL = struct.pack("<IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)  # nanoseconds, Ethernet
_RECORD = struct.Struct("<IIII")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_TCP = struct.Struct(">HHIIBBHHH")
_ETHERNET = bytes(12) + b"\x08\x00"
_CLIENT, _BROKER = bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2))
_PORT, _BROKER_PORT = 40_000, 9092
_PSH, _SYN, _ACK = 0x08, 0x02, 0x10
PIECE = 32_000
"""Bytes of a frame in one packet; IPv4 has 64 KB."""

Numbers = list[int]
"""The next sequence numbers of the client and of the broker."""


def as_pcap(frames: Iterable[tuple[int, int, bool, bytes]]) -> bytes:
    """frames: time in nanoseconds, connection, whether it goes to the client, bytes."""
    parts, known = [_GLOBAL], dict[int, Numbers]()
    for time_ns, connection, back, data in frames:
        numbers = known.get(connection)
        if numbers is None:
            numbers = known[connection] = [1000, 5000]
            for answer, flags in ((False, _SYN), (True, _SYN | _ACK), (False, _ACK)):
                parts.append(_packet(time_ns, connection, answer, numbers, b"", flags))
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            parts.append(_packet(time_ns, connection, back, numbers, piece, _PSH | _ACK))
    return b"".join(parts)


def _packet(time_ns: int, connection: int, back: bool, numbers: Numbers, data: bytes, flags: int) -> bytes:
    ports, ends = (_PORT + connection, _BROKER_PORT), (_CLIENT, _BROKER)
    if back:
        ports, ends = ports[::-1], ends[::-1]
    seen = numbers[1 - back] if flags & _ACK else 0
    segment = _TCP.pack(*ports, numbers[back], seen, 5 << 4, flags, 65_535, 0, 0) + data
    numbers[back] += len(data) + bool(flags & _SYN)
    frame = _ETHERNET + _IPV4.pack(0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0, *ends) + segment
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return _RECORD.pack(seconds, rest, len(frame), len(frame)) + frame
