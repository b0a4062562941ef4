"""Packets that were pasted without a capture file around them: which bytes are one, and the frames in it.

Strategy: `find_link` tries each link type and believes a packet only where its headers agree with one another
and with the count of bytes; `LonePackets` then has `read_segments` read it, and joins the payloads of a flow
that follow one another. Rules: a Kafka frame is never taken for a packet: the caller tries size prefixes
first, and bytes that decode as a request are not one; what a packet lacks of a frame, or holds instead of
one, is reported with its endpoints.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from coordwire.capture.client_search import find_protocol
from coordwire.capture.flows import CaptureCounts, Flow
from coordwire.capture.formats.source import Packet
from coordwire.capture.framing import FrameBody
from coordwire.capture.tcp.link import (
    COOKED,
    COOKED2,
    ETHERNET,
    EXTENSIONS,
    FRAGMENT,
    IP_PROTOCOLS,
    TCP,
    TcpSegment,
    endpoints,
    find_network,
    read_segments,
    reverse_key,
)
from coordwire.errors import DecodeError, UnreadableRange, counted
from coordwire.frames import PREFIX, read_request
from coordwire.limits import current

RAW, LOOPBACK = 101, 0
LINKS = (ETHERNET, COOKED, COOKED2, LOOPBACK, RAW)
"""The link types that are tried."""

PADDING = 50
"""Bytes that an Ethernet packet may have after what IP says: it is filled up to 60, and has a checksum."""

MOST_COOKED = 4
"""The greatest type of a packet that Linux names: sent, received, broadcast, multicast, of others."""

NEXT_HEADERS = frozenset((TCP, *EXTENSIONS, FRAGMENT, *IP_PROTOCOLS))
_SHORT = struct.Struct("!H").unpack_from
_SIZE = struct.Struct(">i").unpack_from


def find_link(data: bytes) -> int | None:
    """The link type of which these bytes are a whole packet with IP; None if they aren't one."""
    for link in LINKS:
        if link == COOKED and (len(data) < 16 or _SHORT(data)[0] > MOST_COOKED):
            continue
        if link == COOKED2 and (len(data) < 20 or _SHORT(data, 2)[0] or data[10] > MOST_COOKED):
            continue
        at = find_network(link, data)
        if at >= 0 and (_is_ipv4(data, at) or _is_ipv6(data, at)):
            return None if _is_request(data) else link
    return None


def _is_ipv4(data: bytes, at: int) -> bool:
    """Whether an IPv4 header begins here whose lengths and checksum are true. A checksum that the network
    card fills in is 0 on the sender."""
    if len(data) < at + 20 or data[at] >> 4 != 4:
        return False
    header, total = (data[at] & 15) * 4, _SHORT(data, at + 2)[0]
    if header < 20 or at + header > len(data):
        return False
    unfilled = not _SHORT(data, at + 10)[0]
    if not unfilled and _sum(data[at : at + header]) != 0xFFFF:
        return False
    excess = len(data) - at - total
    if not unfilled and (not total or header <= total) and excess <= PADDING:
        return True  # also one that was cut, or whose length is left to the network card
    return (
        header <= total
        and 0 <= excess <= PADDING
        and data[at + 9] in NEXT_HEADERS
        and _is_tcp(data, at, header)
    )


def _is_tcp(data: bytes, at: int, header: int) -> bool:
    """Whether what follows an IPv4 header may be TCP, where its protocol is."""
    start = at + header
    return data[at + 9] != TCP or (len(data) >= start + 20 and data[start + 12] >= 0x50)


def _is_ipv6(data: bytes, at: int) -> bool:
    """Whether an IPv6 header begins here whose length is true. It has no checksum."""
    if len(data) < at + 40 or data[at] >> 4 != 6 or data[at + 6] not in NEXT_HEADERS:
        return False
    if not 0 <= len(data) - at - 40 - _SHORT(data, at + 4)[0] <= PADDING:
        return False
    return data[at + 6] != TCP or (len(data) >= at + 60 and data[at + 52] >= 0x50)


def _sum(header: bytes) -> int:
    """The sum of a header's 16-bit words as its checksum counts it: 0xFFFF where it is right."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    return (total & 0xFFFF) + (total >> 16)


def _is_request(data: bytes) -> bool:
    """Whether these bytes are a Kafka request without its size prefix, whatever else they look like."""
    try:
        read_request(data, strict=False)
    except DecodeError:
        return False
    return True


class PacketFrame(NamedTuple):
    """A frame in packets. connection: the same for both directions of one; flow: its endpoints in words."""

    body: FrameBody
    connection: bytes
    flow: str


class _OpenFrame(NamedTuple):
    """A flow's bytes of a frame that isn't whole. sequence: of the byte that is missing; position: of the
    text of its first packet."""

    sequence: int
    data: bytes
    position: int
    length: int


class LonePackets:
    """The frames in packets that come one by one. Never more is held than the bytes of one frame, for all
    flows; what is given up for that is reported. Packets without data, such as those that only acknowledge,
    are reported where there is nothing else."""

    def __init__(self) -> None:
        self._open_frames: dict[bytes, _OpenFrame] = {}
        self._held_bytes = 0
        self._empty: UnreadableRange | None = None
        self._has_data = False

    def feed(
        self, data: bytes, link: int, position: int, length: int
    ) -> Iterator[PacketFrame | UnreadableRange]:
        """Take a packet, whose text is at `position`; the frames it completes, and what can't be read."""
        counts = CaptureCounts()
        for segment in read_segments([Packet(0, link, data, len(data), 0)], counts):
            if isinstance(segment, UnreadableRange):
                yield UnreadableRange(position, length, f"a packet: {segment.reason}")
            elif isinstance(segment, TcpSegment):
                yield from self._segment(segment, position, length)
        for protocol in counts.other_protocols:
            yield UnreadableRange(position, length, f"a packet of {protocol}: Kafka uses TCP")

    def _segment(
        self, segment: TcpSegment, position: int, length: int
    ) -> Iterator[PacketFrame | UnreadableRange]:
        key, payload, name = segment.key, segment.payload, _name(segment.key)
        before = self._open_frames.get(key)
        if not payload:
            reason = f"a TCP packet without data, {name}"
            self._empty = self._empty or UnreadableRange(position, length, reason, flow=name)
            return
        self._has_data = True
        if before is not None:
            self._drop(key)
            if before.sequence == segment.sequence:
                payload, position, length = before.data + payload, before.position, before.length
            else:
                yield _incomplete(before, name)
        elif protocol := find_protocol([payload]):
            reason = f"a TCP packet with {protocol}, {name}: not Kafka, or Kafka inside of it"
            yield UnreadableRange(position, length, reason, flow=name)
            return
        at = 0
        while at < len(payload):
            size = _SIZE(payload, at)[0] if len(payload) - at >= PREFIX else 0
            if not 0 <= size <= current().frame:
                reason = (
                    f"a TCP packet, {name}: expected a frame's size at byte {at:,} of its "
                    f"{counted(len(payload), 'byte')} of data, got {size}; its frame may have begun in an "
                    "earlier packet"
                )
                yield UnreadableRange(position, length, reason, flow=name)
                return
            if len(payload) - at < PREFIX + size or len(payload) - at < PREFIX:
                break
            body = FrameBody(payload[at + PREFIX : at + PREFIX + size], position, None)
            yield PacketFrame(body, min(key, reverse_key(key)), name)
            at += PREFIX + size
        if at < len(payload):
            sequence = segment.sequence + segment.length & 0xFFFFFFFF
            yield from self._keep(key, _OpenFrame(sequence, payload[at:], position, length))

    def _keep(self, key: bytes, frame: _OpenFrame) -> Iterator[UnreadableRange]:
        self._open_frames[key] = frame
        self._held_bytes += len(frame.data)
        while self._held_bytes > current().frame + PREFIX and self._open_frames:
            yield self._give_up(next(iter(self._open_frames)))

    def _drop(self, key: bytes) -> _OpenFrame:
        frame = self._open_frames.pop(key)
        self._held_bytes -= len(frame.data)
        return frame

    def _give_up(self, key: bytes) -> UnreadableRange:
        return _incomplete(self._drop(key), _name(key))

    def finish(self) -> Iterator[UnreadableRange]:
        """What is left of frames whose other packets did not come; a packet without data, if all were."""
        if self._empty is not None and not self._has_data:
            yield self._empty
        while self._open_frames:
            yield self._give_up(next(iter(self._open_frames)))


def _incomplete(open_frame: _OpenFrame, name: str) -> UnreadableRange:
    data = open_frame.data
    frame = "a frame" if len(data) < PREFIX else f"a frame of {counted(_SIZE(data)[0], 'byte')}"
    reason = (
        f"a TCP packet, {name}: it holds the first {counted(len(data), 'byte')} of {frame}, or an inner part "
        "of one; give the packets after it too, one a line, or decode the capture"
    )
    return UnreadableRange(open_frame.position, open_frame.length, reason, flow=name)


def _name(key: bytes) -> str:
    return str(Flow(*endpoints(key)))
