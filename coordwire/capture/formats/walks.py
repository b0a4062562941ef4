"""The native walk over ordinary packets, as the readers of pcap and pcapng start it.

Rules: a reader asks it at each packet; what it leaves (`PacketWalk.advance` stops before it) the reader reads
itself. What a walk needs of the layers above (the streams that it goes on with) is handed in.
"""

from __future__ import annotations

__all__ = ["Walks"]

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coordwire._speedups._native import PacketWalk

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
