"""The packets that a capture beside the listeners would have, and a capture file of them.

Rules: times are the simulation's; a file adds microseconds where several packets have one millisecond, so
that their order is that of the times. Checksums are 0, as captures on the sending machine have them.
"""

from __future__ import annotations

import struct
from typing import BinaryIO, Literal, NamedTuple

from coordwire.errors import counted

EPOCH_MS = 1_790_000_000_000
"""What the simulation's time 0 is in a capture file, in milliseconds since 1970."""

_GLOBAL = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)  # microseconds, Ethernet
_RECORD = struct.Struct("<IIII")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_TCP = struct.Struct(">HHIIBBHHH")
_ETHERNET = bytes(12) + b"\x08\x00"
_FIN, _SYN, _PSH, _ACK = 0x01, 0x02, 0x08, 0x10
_PIECE = 32_000
"""Bytes in one packet; IPv4 has 64 KB."""

_US = 1_000_000


class TapRecord(NamedTuple):
    """Something that happened on a link.

    time: in milliseconds. client, server: addresses with ports; the server is the listener. to_client: which
    way it goes. data: bytes, those of whole messages as the processes sent them.
    """

    time: int
    link: int
    client: str
    server: str
    to_client: bool
    kind: Literal["open", "data", "close"]
    data: bytes


class TapRecords(list[TapRecord]):
    """A tap that keeps what it sees.

    >>> from coordwire.designs.simulator import TapRecords, World
    >>> from coordwire.designs.simulator.runs import add_design
    >>> records = TapRecords()
    >>> world = World(tap=records)
    >>> design = add_design(world, "classic", members=1)
    >>> world.run(5_000)
    True
    >>> sorted({record.kind for record in records})
    ['close', 'data', 'open']
    """

    def __call__(self, record: TapRecord) -> None:
        self.append(record)


class _Ends:
    """A link's two ends: addresses, and the next sequence numbers of client and server."""

    __slots__ = ("addresses", "numbers", "ports")

    def __init__(self, record: TapRecord) -> None:
        ends = [address.rsplit(":", 1) for address in (record.client, record.server)]
        self.addresses = tuple(bytes(map(int, host.split("."))) for host, _ in ends)
        self.ports = tuple(int(port) for _, port in ends)
        self.numbers = [1000, 5000]


class PcapWriter:
    """A tap that writes a capture file: Ethernet, IPv4 and TCP around the bytes. packets: their number.

    >>> import io
    >>> from coordwire.capture import Capture
    >>> from coordwire.designs.simulator import PcapWriter, World
    >>> from coordwire.designs.simulator.runs import add_design
    >>> file = io.BytesIO()
    >>> world = World(tap=PcapWriter(file))
    >>> design = add_design(world, "consumer", members=1)
    >>> world.run(5_000)
    True
    >>> frames = Capture(io.BytesIO(file.getvalue()), "run").entries()
    >>> next(frames).api_name
    'FindCoordinator'
    """

    def __repr__(self) -> str:
        return f"<PcapWriter: {counted(self.packets, 'packet')} of {counted(len(self._links), 'link')}>"

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._links: dict[int, _Ends] = {}
        self._last = 0
        self.packets = 0
        file.write(_GLOBAL)

    def __call__(self, record: TapRecord) -> None:
        ends = self._links.get(record.link)
        if ends is None:
            ends = self._links[record.link] = _Ends(record)
            for back, flags in ((False, _SYN), (True, _SYN | _ACK), (False, _ACK)):
                self._packet(record.time, ends, back, b"", flags)
        if record.kind == "close":
            self._packet(record.time, ends, record.to_client, b"", _FIN | _ACK)
        for at in range(0, len(record.data), _PIECE):
            piece = record.data[at : at + _PIECE]
            self._packet(record.time, ends, record.to_client, piece, _PSH | _ACK)

    def _packet(self, time: int, ends: _Ends, back: bool, data: bytes, flags: int) -> None:
        numbers, way = ends.numbers, -1 if back else 1
        acked = numbers[1 - back] if flags & _ACK else 0
        segment = _TCP.pack(*ends.ports[::way], numbers[back], acked, 5 << 4, flags, 65_535, 0, 0) + data
        numbers[back] = (numbers[back] + len(data) + bool(flags & (_SYN | _FIN))) & 0xFFFF_FFFF
        size = 20 + len(segment)
        packet = _IPV4.pack(0x45, 0, size, 0, 0x4000, 64, 6, 0, *ends.addresses[::way]) + segment
        microseconds = max(self._last + 1, (EPOCH_MS + time) * 1000)
        self._last = microseconds
        seconds, remainder = divmod(microseconds, _US)
        frame = _ETHERNET + packet
        self._file.write(_RECORD.pack(seconds, remainder, len(frame), len(frame)) + frame)
        self.packets += 1
