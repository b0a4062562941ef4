"""Packets of a capture file: the entrance for both formats, and classic pcap itself.

Strategy: unpack record headers from a window on the input. Both byte orders, micro- and nanoseconds, and
the longer record headers of old patched libpcaps. Rules: every packet that is whole comes out, and whatever
lies between them is an `UnreadableRange`. A record header that can't be true (captured length beyond the snap
length and any packet, a fraction beyond a second) starts a search for the next that can: one whose every
field is sound and which the next record follows, or the end of the file.

Written here and not left to dpkt, because dpkt's readers give times as floats, know the first interface's
link type and clock only, trust every length field, and say neither where a file is cut nor that it is.
"""

from __future__ import annotations

__all__ = ["MAGICS", "read_packets"]

import re
import struct
from collections.abc import Iterator
from typing import overload

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


@overload
def read_packets(
    stream: Readable, *, head: bytes = b"", counts: CaptureCounts | None = None
) -> Iterator[Packet | UnreadableRange]: ...
@overload
def read_packets(
    stream: Readable, *, head: bytes = b"", counts: CaptureCounts | None = None, walks: Walks | None
) -> Iterator[Packet | UnreadableRange | list[Chunk]]: ...
def read_packets(
    stream: Readable, *, head: bytes = b"", counts: CaptureCounts | None = None, walks: Walks | None = None
) -> Iterator[Packet | UnreadableRange | list[Chunk]]:
    """The packets of a pcap or pcapng, in file order, with what couldn't be read between them.

    head: bytes that were read from the stream already. walks: take what they can; what they made of it comes
    in its place. Raises `Malformed` for what is not a capture.
    """
    source = InputWindow(stream, head)
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
        yield Packet(
            seconds * SECOND + fraction * unit,
            link,
            buffer[at + size : stop],
            wire if wire > length else length,
            source.base + at + size,
            counts.packets,
        )
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
