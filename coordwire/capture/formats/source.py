"""A window on the input: the bytes at hand, with their position in the file.

Strategy: readers work on `buffer` by index and call `grow` when it runs short, which drops what lies after
the index and reads on. Rules: forwards only, so that a pipe will do; `read1` where the stream has it, so
that a live capture isn't held back; never more in memory than what a reader asks for and one block.

The native walk over ordinary packets, as the readers of pcap and pcapng start it.

Rules: a reader asks it at each packet; what it leaves (`PacketWalk.advance` stops before it) the reader reads
itself. What a walk needs of the layers above (the streams that it goes on with) is handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from coordwire._speedups._native import PacketWalk

BLOCK = 256 << 10


class Readable(Protocol):
    """An input that can be read; every binary file is one."""

    def read(self, size: int, /) -> bytes | None: ...


class Packet(NamedTuple):
    """A packet as captured.

    link: the link type (see `coordwire.capture.tcp.link`); wire_length: what it measured on the wire, at
    least `len(data)`; position: of its first byte in the file; number: of the packet in the file, from 1, as
    Wireshark counts.
    """

    time_ns: int
    link: int
    data: bytes
    wire_length: int
    position: int
    number: int = 0


class InputWindow:
    """buffer: the bytes at hand; base: the position of its first byte; ended: there is nothing after it.
    pause: called where the stream pauses within what was asked for: goes on with it, if there is more."""

    __slots__ = ("_pause", "_read", "base", "buffer", "ended")

    def __init__(
        self, stream: Readable, head: bytes = b"", base: int = 0, pause: Callable[[], bool] | None = None
    ) -> None:
        self._read: Callable[[int], bytes | None] = getattr(stream, "read1", stream.read)
        self._pause = pause
        self.buffer = head
        self.base = base
        self.ended = False

    def grow(self, start: int, need: int) -> bool:
        """Drop what is before `start`, read until `need` bytes are there; False if the input ends first."""
        parts = [self.buffer[start:]]
        have = len(parts[0])
        while have < need and not self.ended:
            part = self._read(BLOCK)
            if part:
                parts.append(part)
                have += len(part)
            elif not (have and self._pause is not None and self._pause()):
                self.ended = True
        self.buffer = b"".join(parts)
        self.base += start
        return have >= need

    def resync(
        self,
        start: int,
        pattern: re.Pattern[bytes],
        reach: Callable[[bytes, int], int],
        fits: Callable[[bytes, int], bool],
    ) -> int:
        """Move the window's start to the next place after `start` that `pattern` finds and `fits` agrees to.

        reach: how many bytes from there `fits` wants to see; at the input's end it sees fewer.
        Returns the count of bytes passed over, `start` included; the input's end stops the search.
        """
        begin = self.base + start
        at = start + 1
        while True:
            match = pattern.search(self.buffer, at)
            if match is None:
                if self.ended:
                    self.grow(len(self.buffer), 0)
                    return self.base - begin
                keep = max(at, len(self.buffer) - 31)  # no pattern is longer than 32 bytes
                self.grow(keep, len(self.buffer) - keep + 1)
                at = 0
                continue
            at = match.start()
            while not self.ended and at + (need := reach(self.buffer, at)) > len(self.buffer):
                # Half as much again as is kept, so that keeping it costs no more than reading.
                self.grow(at, max(need, (len(self.buffer) - at) * 3 // 2))
                at = 0
            if fits(self.buffer, at):
                self.grow(at, 0)
                return self.base - begin
            at += 1


# --- what walks in C find ---


SHORTEST_HEADER = 16


class Walks:
    """Makes the walks of one capture.

    make: `PacketWalk`; halves: the directions of connections by their keys; half, chunk: their class, and
    that of their bytes.
    """

    def __init__(
        self,
        make: Callable[..., PacketWalk],
        halves: dict[bytes, Any],
        half: type,
        chunk: type[tuple[Any, ...]],
    ) -> None:
        self._make = make
        self._streams = halves, half, chunk

    def pcap(self, order: str, unit: int, header: int, limit: int, link: int) -> PacketWalk:
        """Over the records of a pcap."""
        return self._make(*self._streams, order == ">", unit, header, limit, link, None)

    def pcapng(self, order: str, interfaces: list[Any]) -> PacketWalk:
        """Over the packet blocks of a pcapng's section; its interfaces may be added meanwhile."""
        return self._make(*self._streams, order == ">", 1, SHORTEST_HEADER, 0, 0, interfaces)
