"""From one direction's bytes to whole frames, and back into step after a loss or a start in mid-stream.

Strategy: while in step, cut by the size prefix. Out of step, `FrameSplitter` looks for the next place where a
frame may begin: its owner says what may (`fits`: a plausible request; a correlation id that a request has).
Rules: bytes that are passed over are reported once, with position and length; a claimed size is believed only
where the frame's first bytes are plausible too; never more is held than one frame of the budget's size; each
byte is searched once, and decoding on trial is bounded by the bytes passed over (`Effort`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from coordwire.capture.printable import without_numbers
from coordwire.errors import UnreadableRange, counted
from coordwire.frames import PREFIX
from coordwire.limits import current
from coordwire.messages.keys import FACTS

KEEP = 64 << 10
"""Bytes of a passed-over stretch that are kept to be looked at."""

_SIZE = struct.Struct(">i").unpack_from
_HEAD = struct.Struct(">ihhih").unpack_from
HEAD = 14
"""Bytes of a request's size, key, version, correlation id and client id length."""

MAX_CLIENT_ID = 1024
NEWER = 8
"""A request may be this many versions newer than what we know and still be taken for one."""


MID_STREAM = "the capture begins in mid-stream"
"""Why the first bytes of a connection are unreadable whose beginning was not captured."""


@dataclass(slots=True)
class FrameBody:
    """A frame's bytes after its prefix, the position of the prefix, and when the last byte came.

    packet, first_packet: the packets that hold its last and its first byte, None where the input has none.
    """

    data: bytes = field(repr=False)
    position: int
    time_ns: int | None
    packet: int | None = None
    first_packet: int | None = None


SPARE = 256 << 10
TRIES = 4


def part_of(buffer: bytearray, start: int, end: int) -> bytes:
    """A copy of a part. Views are released here: PyPy keeps them, and what is viewed can't be resized."""
    with memoryview(buffer) as view, view[start:end] as part:
        return bytes(part)


class Effort:
    """The budget of a search for frames for decoding on trial: `SPARE` bytes, and `TRIES` for each byte that
    it passes over. So it takes time in proportion to the bytes, whatever sizes they claim.

    remaining: bytes that may be decoded now; refused: places that were not tried for want of them.
    """

    __slots__ = ("refused", "remaining")

    def __init__(self) -> None:
        self.remaining = SPARE
        self.refused = 0

    def spend(self, size: int) -> bool:
        """Whether so many bytes may be decoded on trial."""
        if size > self.remaining:
            self.refused += 1
            return False
        self.remaining -= size
        return True

    def succeeded(self, size: int) -> None:
        """Give back the effort for bytes that were a frame, which is cut and not searched."""
        self.remaining += size


Fits = Callable[[bytearray, int, Effort], bool]
"""Whether a frame may begin at this index; fewer bytes than it wants to see are a no. It isn't asked where
the first byte shows that the size is beyond the budget."""

MayFit = Callable[[bytearray, int, int], bool]
"""Whether a frame may begin at one of the indexes of this range; a no spares the question for each."""

SEARCHED = 1024
"""Indexes of one such range."""


class FrameSplitter:
    """Cuts one direction of a connection. `in_step`: whether the stream is known to begin with a frame;
    `head`: how many bytes `fits` wants to see at least; `may_fit`: None where each index is asked for."""

    __slots__ = (
        "_effort",
        "_end",
        "_packets",
        "_passed",
        "_passed_packets",
        "_sample",
        "at",
        "buffer",
        "counted",
        "fits",
        "head",
        "in_step",
        "may_fit",
        "position",
        "reason",
    )

    def __init__(self, fits: Fits, *, in_step: bool, head: int = HEAD, may_fit: MayFit | None = None) -> None:
        self.fits = fits
        self.may_fit = may_fit
        self.head = head
        self.in_step = in_step
        self.buffer = bytearray()
        self.counted = 0  # bytes of it that its owner has noted
        self.at = 0
        self.position = 0
        self.reason = MID_STREAM
        self._passed = 0
        self._sample = bytearray()
        self._effort = Effort()
        self._end = 0  # bytes of the buffer that make its first frame whole; 0 where that isn't known
        self._packets: list[tuple[int, int]] = []  # of what is held: where a packet's bytes begin, its number
        self._passed_packets: tuple[int | None, int | None] | None = None  # of the first and the last byte

    def feed(
        self, data: bytes, time_ns: int | None, packet: int | None = None
    ) -> list[FrameBody | UnreadableRange]:
        """Take the next bytes, which that packet holds; return the frames and ranges that they completed."""
        if self.only_continues(data, packet):
            return []
        if packet:
            self._arrives(packet)
        self.buffer += data
        parts: list[FrameBody | UnreadableRange] = []
        while True:
            if not self.in_step and not self._search(time_ns, parts):
                break
            body = self._cut(time_ns)
            if body is not None:
                parts.append(body)
            elif self.in_step:
                break
        if self.at:
            del self.buffer[: self.at]
            self.at = 0
        self._end = 0
        if self.in_step and len(self.buffer) >= PREFIX:
            self._end = PREFIX + _SIZE(self.buffer)[0]
            self._packet_of(self.position)  # from now on the first of those that are known
        return parts

    def only_continues(self, data: bytes, packet: int | None) -> bool:
        """Whether more than these bytes is missing of a frame that has begun; if so, they are held, as `feed`
        does with them."""
        buffer = self.buffer
        size = len(buffer)
        if size + len(data) >= self._end:
            return False
        if packet:
            self._packets[1:] = ((self.position + size, packet),)  # the frame's first and last
        buffer += data
        return True

    def _arrives(self, packet: int) -> None:
        """Note where a packet's bytes begin. Of a frame in step nothing between its first and its last packet
        is kept, so that what is kept is bounded."""
        size = len(self.buffer)
        packets = self._packets
        if not size:
            packets.clear()
        elif self.in_step and size >= PREFIX:
            packets[:] = [(self.position, self._packet_of(self.position) or packet)]
        packets.append((self.position + size, packet))

    def _packet_of(self, position: int) -> int | None:
        """The packet of a byte that is held, none before which is asked for again."""
        packets = self._packets
        while len(packets) > 1 and packets[1][0] <= position:
            del packets[0]
        return packets[0][1] if packets else None

    def lose(self, length: int, time_ns: int | None, reason: str) -> list[FrameBody | UnreadableRange]:
        """The capture lacks the next bytes: drop what was begun, and look for a frame after them."""
        parts: list[FrameBody | UnreadableRange] = []
        self._pass(len(self.buffer))
        self._passed += length
        self.position += length
        if self.in_step or not self._sample:
            self.reason = reason
        self._report(time_ns, parts)
        self.in_step = False
        self.reason = "no frame boundary known after lost bytes"
        return parts

    def give_up(self, time_ns: int | None, reason: str) -> list[FrameBody | UnreadableRange]:
        """Pass over what is held, and look for a frame in what follows."""
        parts: list[FrameBody | UnreadableRange] = []
        self.reason = reason
        self._pass(len(self.buffer))
        self._report(time_ns, parts)
        self.in_step = False
        self.reason = "no frame boundary known after abandoned bytes"
        return parts

    def finish(self, time_ns: int | None) -> list[FrameBody | UnreadableRange]:
        """The stream ends: report the bytes of a frame that was never whole."""
        parts: list[FrameBody | UnreadableRange] = []
        remaining = len(self.buffer)
        if not remaining and not self._passed:
            return parts
        if self.in_step and remaining:
            self.reason = f"the stream ends inside a frame: {self._missing()}"
        self._pass(remaining)
        self._report(time_ns, parts)
        return parts

    def _missing(self) -> str:
        if len(self.buffer) < PREFIX:
            return f"{counted(len(self.buffer), 'byte')} of its size prefix"
        return f"{len(self.buffer) - PREFIX} of {counted(_SIZE(self.buffer)[0], 'byte')}"

    def _cut(self, time_ns: int | None) -> FrameBody | None:
        """The frame at the index, if it is whole; a size that can't be puts us out of step."""
        at, have = self.at, len(self.buffer) - self.at
        if have < PREFIX:
            return None
        size = _SIZE(self.buffer, at)[0]
        if not 0 <= size <= current().frame:
            self.in_step = False
            self.reason = without_numbers(f"a size prefix of {size}")
            self._pass(1)
            return None
        if have < PREFIX + size:
            return None
        data = part_of(self.buffer, at + PREFIX, at + PREFIX + size)
        body = FrameBody(data, self.position, time_ns)
        if self._packets:
            body.first_packet = self._packet_of(self.position)
            body.packet = self._packet_of(self.position + PREFIX + size - 1)
        self._step(PREFIX + size)
        return body

    def _search(self, time_ns: int | None, parts: list[FrameBody | UnreadableRange]) -> bool:
        """Pass over bytes until a frame may begin; False if more bytes are needed."""
        buffer, effort, most = self.buffer, self._effort, current().frame >> 24
        end, may_fit = len(buffer) - self.head + 1, self.may_fit
        index = self.at
        range_end = index + 1  # most frames are found at once
        while index < end:
            if index == range_end and may_fit is not None:
                range_end = min(index + SEARCHED, end)
                if not may_fit(buffer, index, range_end):
                    effort.remaining += TRIES * (range_end - index)
                    index = range_end
                    continue
            effort.remaining += TRIES
            if buffer[index] <= most and self.fits(buffer, index, effort):  # or no size can be there
                self._pass(index - self.at)
                self._report(time_ns, parts)
                self.in_step = True
                return True
            index += 1
        self._pass(index - self.at)
        return False

    def _pass(self, count: int) -> None:
        self._end = 0
        if room := KEEP - len(self._sample):
            self._sample += self.buffer[self.at : self.at + min(count, room)]
        if count:
            first = self._passed_packets[0] if self._passed_packets else self._packet_of(self.position)
            self._passed_packets = first, self._packet_of(self.position + count - 1)
        self._passed += count
        self._step(count)

    def _step(self, count: int) -> None:
        self.at += count
        self.position += count
        if self.at >= len(self.buffer):
            self.buffer.clear()
            self.at = 0

    def _report(self, time_ns: int | None, parts: list[FrameBody | UnreadableRange]) -> None:
        if self._passed:
            start = self.position - self._passed
            reason = self.reason
            if refused := self._effort.refused:
                reason += (
                    f"; not tried: {counted(refused, 'position')}, as too many look like a frame's start"
                )
                self._effort.refused = 0
            data = bytes(self._sample)
            first, last = self._passed_packets or (None, None)
            parts.append(
                UnreadableRange(
                    start, self._passed, reason, data, time_ns=time_ns, packet=last, first_packet=first
                )
            )
        self._passed = 0
        self._passed_packets = None
        self._sample.clear()


def may_be_request(buffer: bytes | bytearray, at: int = 0) -> bool:
    """Whether a request's frame may begin here: a key and version that exist, or nearly, a size within the
    budget, a client id that is text. Up to two frames after it, where they are at hand, must look alike."""
    for count in range(3):
        if len(buffer) - at < HEAD:
            return count > 0
        size, key, version, correlation_id, client = _HEAD(buffer, at)
        facts = FACTS.get(key)
        if facts is None or not facts.first <= version <= facts.last + NEWER or correlation_id < 0:
            return False
        if not HEAD - PREFIX <= size <= current().frame or not -1 <= client <= min(MAX_CLIENT_ID, size - 10):
            return False
        if client > 0 and not _is_text(buffer[at + HEAD : at + HEAD + client]):
            return False
        at += PREFIX + size
    return True


def _is_text(data: bytes | bytearray) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError as error:
        return error.end >= len(data) and error.reason == "unexpected end of data"
