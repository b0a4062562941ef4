"""`LiveTraffic`: what goes over a broker's connections, written as a pcap while it happens.

Strategy: the broker puts pieces into a queue, and a thread of its own writes them as packets, so that a slow
reader does not hold the broker up. Rules: so many bytes wait at most; a connection that has lost a piece to
that bound is not written any more, as its stream would be read wrongly, and `lost` counts such connections.
A reader that has gone ends the writing, not the broker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import BinaryIO, TypeAlias

from coordwire.testing.pcap import Ends, pcap_parts

__all__ = ["LiveTraffic"]

_MOST = 64 << 20
_Piece: TypeAlias = tuple[int, int, bool, bytes]


class LiveTraffic:
    """Writes to `out` until `close`. then: called after that."""

    def __init__(self, out: BinaryIO, *, most: int = _MOST, then: Callable[[], object] | None = None) -> None:
        self._out = out
        self._then = then
        self._most = most
        self._waiting = 0
        self._ends: list[Ends] = []
        self._lost: set[int] = set()
        self._queue: SimpleQueue[_Piece | None] = SimpleQueue()
        self._lock = Lock()
        self._thread = Thread(target=self._write, name="coordwire-pcap", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Connections that are not whole in the capture."""
        return len(self._lost)

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        self._ends.append(Ends(*client, *broker))
        return len(self._ends) - 1

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        with self._lock:
            if connection < 0 or connection in self._lost:
                return
            if self._waiting + len(data) > self._most:
                self._lost.add(connection)
                return
            self._waiting += len(data)
        self._queue.put((time.time_ns(), connection, to_client, bytes(data)))

    def close(self) -> None:
        """Write what waits, and end."""
        self._queue.put(None)
        self._thread.join()
        with suppress(OSError):
            self._out.close()
        if self._then is not None:
            self._then()

    def _pieces(self) -> Iterator[_Piece]:
        while True:
            if self._queue.empty():
                self._out.flush()
            piece = self._queue.get()
            if piece is None:
                return
            with self._lock:
                self._waiting -= len(piece[3])
            yield piece

    def _write(self) -> None:
        parts = pcap_parts(self._pieces(), self._ends.__getitem__)
        try:
            for part in parts:
                self._out.write(part)
            self._out.flush()
        except OSError:  # the reader has gone; what comes is dropped
            while self._queue.get() is not None:
                pass
