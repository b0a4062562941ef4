"""`--packets 100-200,350,900-`: packets by their numbers, as Wireshark counts them.

Rules: a range includes both ends, and is open where an end is left out; a frame is in it where any of its
packets is, from that of its first byte to that of its last.
"""

from __future__ import annotations

import argparse
import re
from bisect import bisect_left

_PART = re.compile(r"\s*(?:(\d{1,18})|(\d{0,18})\s*-\s*(\d{0,18}))\s*", re.ASCII)
_LAST = 10**18


class PacketRanges:
    """The packets that were asked for: ranges that don't touch, in their order."""

    def __init__(self, text: str) -> None:
        found = []
        for part in text.split(","):
            match = _PART.fullmatch(part)
            if match is None or not (match[1] or match[2] or match[3]):
                raise argparse.ArgumentTypeError(
                    f"{part!r} is not a packet's number or a range of them, such as 100-200"
                )
            low, high = int(match[1] or match[2] or 1), int(match[1] or match[3] or _LAST)
            if low < 1 or high < low:
                reason = "packets are counted from 1" if low < 1 else "its end is before its beginning"
                raise argparse.ArgumentTypeError(f"{part.strip()!r}: {reason}")
            found.append((low, high))
        self._ranges: list[tuple[int, int]] = []
        for low, high in sorted(found):
            if self._ranges and low <= self._ranges[-1][1] + 1:
                self._ranges[-1] = self._ranges[-1][0], max(high, self._ranges[-1][1])
            else:
                self._ranges.append((low, high))
        self._ends = [high for _, high in self._ranges]

    def overlap(self, first: int, last: int) -> bool:
        """Whether any packet from the first to the last was asked for."""
        index = bisect_left(self._ends, first)
        return index < len(self._ranges) and self._ranges[index][0] <= last
