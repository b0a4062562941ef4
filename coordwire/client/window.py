"""How many bytes of requests may wait for their answers at the same time.

Rules: those that wait enter in their order; a request larger than the limit goes alone; one that is cancelled
while it waits takes nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque

__all__ = ["Window"]


class Window:
    """A limit in bytes, of one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.used_bytes = 0

    async def enter(self, size_bytes: int) -> None:
        """Wait until so many bytes fit, and take them."""
        if not self._waiting and self._fits(size_bytes):
            self.used_bytes += size_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn had come
                self.leave(size_bytes)
            raise

    def leave(self, size_bytes: int) -> None:
        """Give bytes back."""
        self.used_bytes -= size_bytes
        while self._waiting:
            following, turn = self._waiting[0]
            if not turn.done():
                if not self._fits(following):
                    return
                self.used_bytes += following
                turn.set_result(None)
            self._waiting.popleft()

    def _fits(self, size_bytes: int) -> bool:
        return not self.used_bytes or self.used_bytes + size_bytes <= self._limit
