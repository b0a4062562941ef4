"""`RecordedConnection`: a connection's bytes as they are recorded, without secrets: captures are shared.

Strategy: bytes are recorded as they pass; unless secrets are asked for, `BlankedFrames` decides what is kept.
Rule: the part of a frame waits until the frame is whole, or the connection ends.
"""

from __future__ import annotations

from typing import Protocol

from coordwire.broker.connections.blanked_frames import BlankedFrames
from coordwire.capture.pending_requests import PendingRequests

__all__ = ["MOST_REQUESTS", "RecordedConnection", "Recording"]

MOST_REQUESTS = 16 << 20
"""The bytes of requests that wait until their answers are recorded, all connections together."""


class Recording(Protocol):
    """A recording of the bytes of connections."""

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        """A connection was made; its number."""

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        """Bytes went over a connection."""


class RecordedConnection:
    """A connection. waiting: where requests wait for their answers; None if secrets are recorded too."""

    __slots__ = ("_frames", "_number", "_traffic")

    def __init__(
        self,
        traffic: Recording,
        client: tuple[str, int],
        broker: tuple[str, int],
        waiting: PendingRequests | None,
    ) -> None:
        self._traffic = traffic
        self._number = traffic.opened(client, broker)
        self._frames = None if waiting is None else BlankedFrames(waiting)

    @property
    def needs_frames(self) -> bool:
        """Whether it records whole frames, not the pieces of one."""
        return self._frames is not None

    def add(self, data: bytes, *, to_client: bool) -> None:
        """Record the next bytes of a direction."""
        if self._frames is not None:
            data = self._frames.blank(data, to_client=to_client)
        if data:
            self._traffic.add(self._number, data, to_client=to_client)

    def close(self) -> None:
        """Record the frames that the connection ends in; nothing follows."""
        if self._frames is None:
            return
        for to_client in (False, True):
            remainder = self._frames.close(to_client=to_client)
            if remainder:
                self._traffic.add(self._number, remainder, to_client=to_client)
