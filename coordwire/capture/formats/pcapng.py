"""Packets of a pcapng file.

Strategy: walk the blocks; a section sets the byte order and drops the interfaces, an interface sets link
type, clock and snap length, the three kinds of packet block give packets, all others are stepped over,
options of no interest too. Rules: a block counts only if both its length fields agree; otherwise it is an
`UnreadableRange`, and the reader searches for the next block of a known type, on a boundary of four bytes,
whose lengths agree. Why dpkt doesn't do it: see `coordwire.capture.formats.pcap`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import ceil, log10
from typing import NamedTuple

from coordwire.capture.flows import CaptureCounts, Chunk
from coordwire.capture.formats.source import InputWindow, Packet, Walks
from coordwire.errors import Malformed, UnreadableRange, counted

SECTION = b"\x0a\x0d\x0d\x0a"
ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
INTERFACE, OLD_PACKET, SIMPLE_PACKET, PACKET = 1, 2, 3, 6
KNOWN = (1, 2, 3, 4, 5, 6, 9, 10, 0xBAD, 0x40000BAD)
LISTED = (9, 0xBAD, 0x40000BAD, 0x204, 0x216, 0x221)
"""Blocks without a packet that Wireshark counts as one: a journal's, custom ones, sysdig's."""

TSRESOL, TSOFFSET = 9, 14
GREATEST = 16 << 20  # of a block, as in Wireshark
INTERFACES = 65_536  # of a section; more would only fill memory
SECOND = 1_000_000_000
LEAST = {INTERFACE: 20, OLD_PACKET: 32, SIMPLE_PACKET: 16, PACKET: 32}


class _Interface(NamedTuple):
    """A time stamp t is t * times // parts + start, in nanoseconds."""

    link: int
    snap: int
    times: int
    parts: int
    start: int
    digits: int


class _Section:
    """Byte order and interfaces of the section at hand."""

    def __init__(self, order: str, position: int) -> None:
        self.position = position
        self.interfaces: list[_Interface] = []
        self.order = order
        self.head = struct.Struct(f"{order}II").unpack_from
        self.number = struct.Struct(f"{order}I").unpack_from
        self.packet = struct.Struct(f"{order}IIIII").unpack_from
        self.old_packet = struct.Struct(f"{order}HHIIII").unpack_from
        kinds = b"|".join(re.escape(struct.pack(f"{order}I", kind)) for kind in KNOWN)
        self.pattern = re.compile(b"(?:" + kinds + b"|" + SECTION + b")", re.DOTALL)

    def skip(self, source: InputWindow, at: int) -> int:
        """Move the source to the next sound block; returns the bytes passed over."""

        def reach(buffer: bytes, at: int) -> int:
            return max(_length(self, buffer, at), 12)

        def fits(buffer: bytes, at: int) -> bool:
            if (source.base + at - self.position) % 4:
                return False
            length = _length(self, buffer, at)
            return length > 0 and _agrees(self, buffer, at, length)

        return source.resync(at, self.pattern, reach, fits)


def _order(section: _Section, buffer: bytes, at: int) -> str:
    if buffer[at : at + 4] == SECTION:
        return ORDERS.get(buffer[at + 8 : at + 12], "")
    return section.order


def _length(section: _Section, buffer: bytes, at: int) -> int:
    """The length that a block says it has; 0 if that can't be."""
    order = _order(section, buffer, at)
    if not order or at + 12 > len(buffer):
        return 0
    length: int = struct.unpack_from(f"{order}I", buffer, at + 4)[0]
    return length if 12 <= length <= GREATEST and not length % 4 else 0


def _agrees(section: _Section, buffer: bytes, at: int, length: int) -> bool:
    return buffer[at + 4 : at + 8] == buffer[at + length - 4 : at + length]


def read_pcapng(
    source: InputWindow, counts: CaptureCounts, walks: Walks | None = None
) -> Iterator[Packet | UnreadableRange | list[Chunk]]:
    """The packets of a pcapng whose first bytes are in the window. walks: as for `read_packets`."""
    order = ORDERS.get(source.buffer[8:12])
    if order is None:
        if len(source.buffer) < 12:
            reason = f"the file ends within its header: {len(source.buffer)} of 28 bytes"
            yield UnreadableRange(0, len(source.buffer), reason)
            return
        raise Malformed(f"not a pcapng: expected a byte-order magic, got {source.buffer[8:12].hex(' ')}", 8)
    section = _Section(order, 0)
    counts.digits = 0  # each interface raises it
    clock = 0  # simple packets have no time: they take that of the packet before
    walk = None if walks is None else walks.pcapng(order, section.interfaces)
    buffer, at, end = source.buffer, 0, len(source.buffer)
    while True:
        if walk is not None:
            at, passed, mark, chunks = walk.advance(buffer, at, counts.packets)
            if passed:
                clock = mark
                counts.packets += passed
                counts.segments += passed
                if chunks:
                    yield chunks
        if at + 12 > end:
            is_whole = source.grow(at, 12)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            if not is_whole:
                if end:
                    reason = f"the file ends within a block's header: {end} of 12 bytes"
                    yield UnreadableRange(source.base, end, reason)
                return
        kind, length = section.head(buffer, at)
        reason = ""
        if buffer[at : at + 4] == SECTION:
            order = ORDERS.get(buffer[at + 8 : at + 12])
            if order is None:
                reason = f"expected a byte-order magic, got {buffer[at + 8 : at + 12].hex(' ')}"
            else:
                length = struct.unpack_from(f"{order}I", buffer, at + 4)[0]
        if reason:
            pass
        elif length < 12 or length % 4 or length > GREATEST:
            reason = f"a block length of {length} is not a multiple of 4 from 12 to {GREATEST}"
        elif at + length > end:
            is_whole = source.grow(at, length)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            if not is_whole:
                reason = f"the file ends within a block: {end} of {length} bytes"
        if not reason and not _agrees(section, buffer, at, length):
            last = buffer[at + length - 4 : at + length]
            reason = f"a block's lengths differ: {buffer[at + 4 : at + 8].hex()} before, {last.hex()} after"
        if reason:
            position = source.base + at
            yield UnreadableRange(position, section.skip(source, at), reason)
            buffer, at, end = source.buffer, 0, len(source.buffer)
            continue

        if buffer[at : at + 4] == SECTION:
            major, minor = struct.unpack_from(f"{order}HH", buffer, at + 12) if length >= 28 else (0, 0)
            if major != 1:
                reason = f"expected a section of version 1, got version {major}.{minor} in {length} bytes"
            section = _Section(order or section.order, source.base + at)
            walk = None if walks is None else walks.pcapng(section.order, section.interfaces)
        elif length < LEAST.get(kind, 12):
            reason = f"a block of type {kind} needs at least {LEAST[kind]} bytes, got {length}"
        elif kind == INTERFACE:
            if len(section.interfaces) < INTERFACES:
                interface = _interface(section.order, buffer[at : at + length])
                section.interfaces.append(interface)
                counts.digits = max(counts.digits, interface.digits)
            else:
                reason = f"more than {INTERFACES} interfaces in one section"
        elif kind in (PACKET, OLD_PACKET, SIMPLE_PACKET):
            if kind == PACKET:
                number, high, low, captured, wire = section.packet(buffer, at + 8)
                first = at + 28
            elif kind == OLD_PACKET:
                number, _, high, low, captured, wire = section.old_packet(buffer, at + 8)
                first = at + 28
            else:
                number, high, low = 0, -1, 0
                wire = captured = section.number(buffer, at + 8)[0]
                first = at + 12
            room = at + length - 4 - first
            if number >= len(section.interfaces):
                reason = f"a packet of interface {number}, which is not described"
            else:
                link, snap, times, parts, start, _ = section.interfaces[number]
                if high < 0:
                    captured = min(captured, snap or captured, room)
                else:
                    clock = (high << 32 | low) * times // parts + start
                if captured <= room:
                    counts.packets += 1
                    data = buffer[first : first + captured]
                    position = source.base + first
                    yield Packet(clock, link, data, max(wire, captured), position, counts.packets)
                else:
                    reason = f"a packet of {counted(captured, 'byte')} in a block of {length}"
        elif kind in LISTED:
            counts.packets += 1
        if reason:
            yield UnreadableRange(source.base + at, length, reason)
        at += length


def _interface(order: str, block: bytes) -> _Interface:
    link, snap = struct.unpack_from(f"{order}HxxI", block, 8)
    parts, digits, start = 1_000_000, 6, 0
    at = 16
    while at + 4 <= len(block) - 4:
        code, length = struct.unpack_from(f"{order}HH", block, at)
        value = block[at + 4 : min(at + 4 + length, len(block) - 4)]
        if code == 0:
            break
        if code == TSRESOL and len(value) == 1:
            power = value[0] & 0x7F
            binary = value[0] & 0x80
            parts = 2**power if binary else 10**power
            digits = min(9, ceil(power * log10(2)) if binary else power)
        elif code == TSOFFSET and len(value) == 8:
            start = struct.unpack(f"{order}q", value)[0] * SECOND
        at += 4 + (length + 3 & ~3)
    if SECOND % parts == 0:
        return _Interface(link, snap, SECOND // parts, 1, start, digits)
    return _Interface(link, snap, SECOND, parts, start, digits)
