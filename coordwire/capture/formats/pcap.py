"""Packets of a capture file: the entrance for both formats, and classic pcap itself.

Strategy: unpack record headers from a window on the input. Both byte orders, micro- and nanoseconds, and
the longer record headers of old patched libpcaps. Rules: every packet that is whole comes out, and whatever
lies between them is an `UnreadableRange`. A record header that can't be true (captured length beyond the snap
length and any packet, a fraction beyond a second) starts a search for the next that can: one whose every
field is sound and which the next record follows, or the end of the file.

Written here and not left to dpkt, because dpkt's readers give times as floats, know the first interface's
link type and clock only, trust every length field, and say neither where a file is cut nor that it is.

`as_pcap` writes frames: Ethernet, IPv4 and TCP around them, one packet a piece. Each connection begins with
its handshake and has ports of its own, unless its ends are given, and ends with a FIN of both sides or an RST
(`CLOSED`, `RESET`); sequence numbers add up; checksums are left 0, as captures on the sending machine have
them.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple, overload

from coordwire.capture.flows import CaptureCounts, Chunk
from coordwire.capture.formats.pcapng import SECTION, read_pcapng
from coordwire.capture.formats.source import InputWindow, Packet, Readable, Walks
from coordwire.errors import Malformed, UnreadableRange

#: magic -> byte order, nanoseconds to a unit of the fraction, size of a record header
MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000, 16),
    b"\xd4\xc3\xb2\xa1": ("<", 1000, 16),
    b"\xa1\xb2\x3c\x4d": (">", 1, 16),
    b"\x4d\x3c\xb2\xa1": ("<", 1, 16),
    b"\xa1\xb2\xcd\x34": (">", 1000, 24),
    b"\x34\xcd\xb2\xa1": ("<", 1000, 24),
}
FILE_HEADER = 24
USUAL = 256 << 10  # libpcap's own greatest snap length
GREATEST = 16 << 20  # what a header's snap length can raise it to
SECOND = 1_000_000_000
DAY = 86_400

_new = tuple.__new__  # a call less than that of the class


@overload
def read_packets(
    stream: Readable | InputWindow, *, counts: CaptureCounts | None = None
) -> Iterator[Packet | UnreadableRange]: ...
@overload
def read_packets(
    stream: Readable | InputWindow,
    *,
    counts: CaptureCounts | None = None,
    walks: Walks | None,
) -> Iterator[Packet | UnreadableRange | list[Chunk]]: ...
def read_packets(
    stream: Readable | InputWindow,
    *,
    counts: CaptureCounts | None = None,
    walks: Walks | None = None,
) -> Iterator[Packet | UnreadableRange | list[Chunk]]:
    """The packets of a pcap or pcapng, in file order, with what couldn't be read between them.

    walks: take what they can; what they made of it comes in its place. Raises `Malformed` for what is not a
    capture.
    """
    source = stream if isinstance(stream, InputWindow) else InputWindow(stream)
    counts = CaptureCounts() if counts is None else counts
    source.grow(0, FILE_HEADER)
    magic = source.buffer[:4]
    if not magic:
        raise Malformed("the capture is empty")
    if magic == SECTION:
        return (yield from read_pcapng(source, counts, walks))
    if magic not in MAGICS:
        raise Malformed(f"expected a pcap or pcapng capture, got a file that starts with {magic.hex(' ')}")
    yield from _read_classic(source, counts, walks)


def _read_classic(
    source: InputWindow, counts: CaptureCounts, walks: Walks | None
) -> Iterator[Packet | UnreadableRange | list[Chunk]]:
    buffer = source.buffer
    order, unit, size = MAGICS[buffer[:4]]
    if len(buffer) < FILE_HEADER:
        yield UnreadableRange(0, len(buffer), f"the file ends within its header: {len(buffer)} of 24 bytes")
        return
    major, minor, snap, link = struct.unpack_from(f"{order}HH8xII", buffer, 4)
    if major != 2:
        raise Malformed(f"pcap version {major}.{minor} is not known", 4)
    link &= 0xFFFF  # the rest describes frame checksums
    limit = min(max(snap, USUAL), GREATEST)
    counts.digits = 6 if unit == 1000 else 9
    unpack = struct.Struct(f"{order}IIII").unpack_from
    search = _Search(order, unit, size, limit)
    walk = None if walks is None else walks.pcap(order, unit, size, limit, link)
    at, end = FILE_HEADER, len(buffer)
    while True:
        if walk is not None:
            at, passed, mark, chunks = walk.advance(buffer, at, counts.packets)
            if passed:
                search.seconds = mark
                counts.packets += passed
                counts.segments += passed
                if chunks:
                    yield chunks
        if at + size > end:
            is_whole = source.grow(at, size)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            if not is_whole:
                if end:
                    reason = f"the file ends within a packet's header: {end} of {size} bytes"
                    yield UnreadableRange(source.base, end, reason)
                return
        seconds, fraction, length, wire = unpack(buffer, at)
        stop = at + size + length
        reason = ""
        if length > limit:
            reason = f"expected a captured length of at most {limit} bytes, got {length}"
        elif fraction >= SECOND:
            reason = f"a timestamp's fraction of {fraction} is not below a second"
        elif not (length or wire or seconds):
            reason = "expected a packet's header, got zeros"
        elif stop > end:
            is_whole = source.grow(at, size + length)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            stop = size + length
            if not is_whole:
                reason = f"the file ends within a packet: {end} of {stop} bytes, its header included"
        if reason:
            position = source.base + at
            yield UnreadableRange(position, search.skip(source, at), reason)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            continue
        search.seconds = seconds
        counts.packets += 1
        captured = buffer[at + size : stop]
        time_ns, wire = seconds * SECOND + fraction * unit, wire if wire > length else length
        yield _new(Packet, (time_ns, link, captured, wire, source.base + at + size, counts.packets))
        at = stop


class _Search:
    """Finds the next record after one that can't be read. seconds: of the last good one, or -1."""

    def __init__(self, order: str, unit: int, size: int, limit: int) -> None:
        self.seconds = -1
        self._size = size
        self._limit = limit
        self._most = SECOND // unit
        self._unpack = struct.Struct(f"{order}IIII").unpack_from
        # The high bytes that sound numbers have, so that the search runs at the speed of `re`.
        top = rb"[\x00-\x0f]" if unit == 1000 else rb"[\x00-\x3b]"
        if order == "<":
            fraction = rb".." + top + rb"\0" if unit == 1000 else rb"..." + top
            number = rb"(?!\0\0\0\0)...[\0\1]"
        else:
            fraction = rb"\0" + top + rb".." if unit == 1000 else top + rb"..."
            number = rb"(?!\0\0\0\0)[\0\1]..."
        self._pattern = re.compile(rb"(?=...." + fraction + number + number + rb")", re.DOTALL)

    def skip(self, source: InputWindow, at: int) -> int:
        """Move the source to the next record; returns the bytes passed over."""
        return source.resync(at, self._pattern, self._reach, self._fits)

    def _reach(self, buffer: bytes, at: int) -> int:
        length: int = self._unpack(buffer, at)[2] if at + 16 <= len(buffer) else 0
        return 2 * self._size + min(length, self._limit)

    def _fits(self, buffer: bytes, at: int) -> bool:
        length = self._sound_length(buffer, at)
        if length < 0:
            return False
        following = at + self._size + length
        if following + self._size > len(buffer):  # the input ends here; a cut one may end within a header
            return following <= len(buffer)
        return self._sound_length(buffer, following) >= 0

    def _sound_length(self, buffer: bytes, at: int) -> int:
        if at + self._size > len(buffer):
            return -1
        seconds, fraction, length, wire = self._unpack(buffer, at)
        near = self.seconds < 0 or abs(seconds - self.seconds) <= DAY
        if near and fraction < self._most and 0 < length <= self._limit and length <= wire <= 2 * GREATEST:
            return int(length)
        return -1


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
_FIN, _SYN, _RST, _PSH, _ACK = 0x01, 0x02, 0x04, 0x08, 0x10
PIECE = 32_000
"""Bytes of a frame in one packet; IPv4 has 64 KB."""


class _Close(bytes):
    """The end of a connection in the place of a frame, which has no bytes."""


CLOSED, RESET = _Close(), _Close()
"""In the place of a frame's bytes: its sender ends the connection, which the other side answers in kind; or
its sender resets it."""


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
    packet that only acknowledges; `CLOSED` or `RESET` is the last of its connection. ends_of: gives the ends
    of a connection."""
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


_CLOSING = [((back, _FIN | _ACK), (not back, _FIN | _ACK), (back, _ACK)) for back in (False, True)]
"""By whether the broker closes: the packets of an orderly end."""


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
        if isinstance(data, _Close):
            sides = ((back, _RST | _ACK),) if data is RESET else _CLOSING[back]
            for side, flags in sides:
                yield time_ns, _packet(ends_of(connection), side, numbers, b"", flags)
            continue
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
    numbers[back] += len(data) + bool(flags & (_SYN | _FIN))
    return _ETHERNET + _IPV4.pack(0x45, 0, 20 + len(segment), 0, 0x4000, 64, 6, 0, *ends) + segment
