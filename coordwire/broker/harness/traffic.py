"""`Traffic`: what went over a broker's connections, to look at while it runs and after.

Strategy: each piece of bytes is kept as it came or went, with its time and its connection; everything else
(frames, groups' timelines, a pcap) is made of them when it is asked for, by `coordwire.capture`. Rules: so
many bytes are kept, and no more: `dropped` says how many came later. TLS is taken off: a pcap has plain text.
"""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from coordwire.testing.pcap import Ends, pcap_parts

if TYPE_CHECKING:
    from coordwire.capture import FrameEntry

__all__ = ["Traffic"]

MOST = 64 << 20
"""So many bytes are kept."""

_CONNECTIONS = 20_000


class _Piece(NamedTuple):
    time_ns: int
    connection: int
    to_client: bool
    data: bytes


class Traffic:
    """The bytes of all connections. dropped: those that came when there was no more room."""

    def __init__(self, most: int = MOST) -> None:
        self.dropped = 0
        self._most = most
        self._size = 0
        self._pieces: list[_Piece] = []
        self._ends: list[Ends] = []
        self._ports: set[int] = set()
        self._lock = threading.Lock()
        self._began = time.time_ns() - time.perf_counter_ns()

    # --- for the broker ---

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        """A connection was made; its number."""
        with self._lock:
            self._ports.add(broker[1])
            if len(self._ends) >= _CONNECTIONS:
                return -1
            self._ends.append(Ends(*client, *broker))
            return len(self._ends) - 1

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        """Bytes went over a connection."""
        with self._lock:
            if connection < 0 or self._size + len(data) > self._most:
                self.dropped += len(data)
                return
            self._size += len(data)
            now = self._began + time.perf_counter_ns()
            self._pieces.append(_Piece(now, connection, to_client, bytes(data)))

    # --- to look at ---

    def clear(self) -> None:
        """Drop what was kept so far; connections go on."""
        with self._lock:
            self._pieces, self._size, self.dropped = [], 0, 0

    def pcap(self) -> bytes:
        """All of it as a capture, for Wireshark and `coordwire timeline`."""
        with self._lock:
            pieces, ends = list(self._pieces), list(self._ends)
        return b"".join(pcap_parts(pieces, ends.__getitem__))

    def entries(self) -> Iterator[FrameEntry]:
        """The frames, in the order in which they were complete."""
        if not self._pieces:
            return
        from coordwire.capture import Capture, FrameEntry  # what no test asks for is not loaded

        for entry in Capture(io.BytesIO(self.pcap()), "broker", ports=self._ports).entries():
            if isinstance(entry, FrameEntry):
                yield entry
