"""The JoinGroups of a classic group that wait for their answers, by where they were seen.

Strategy: a dict in their order, and heaps by time for the questions that are asked of all of them; a heap may
name some that wait no longer, which are dropped when they come up. Rules: a question costs a logarithm; no
time counts as 0; the oldest are forgotten.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen, remember

__all__ = ["Joining"]

SPARE = 64
"""So many may be in a heap that wait no longer, on top of as many as wait."""


class Joining:
    """All of one group. most: so many are remembered."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._all: OrderedDict[Seen, Member] = OrderedDict()
        self._first: list[tuple[int, str, int, Seen]] = []
        self._nameless: list[tuple[int, str, int, Seen]] = []  # those without a member id, the latest first

    def __len__(self) -> int:
        return len(self._all)

    def members(self) -> Iterable[Member]:
        """All that wait, the first first."""
        return self._all.values()

    def items(self) -> Iterable[tuple[Seen, Member]]:
        """The same, and where each was seen."""
        return self._all.items()

    def get(self, place: Seen) -> Member | None:
        """The one that was seen there."""
        return self._all.get(place)

    def add(self, place: Seen, member: Member) -> None:
        remember(self._all, place, member, self.most)
        time_ns = place.time_ns or 0
        heappush(self._first, (time_ns, place.source, place.number, place))
        if not member.member_id:
            heappush(self._nameless, (-time_ns, place.source, place.number, place))
        for heap in (self._first, self._nameless):
            if len(heap) > 2 * len(self._all) + SPARE:
                heap[:] = [one for one in heap if one[3] in self._all]
                heapify(heap)

    def pop(self, place: Seen) -> Member | None:
        """The one that was seen there, which waits no longer."""
        return self._all.pop(place, None)

    def forget_before(self, time_ns: int) -> None:
        """The members that asked before a generation was formed, and isn't in it, waits no more."""
        while self._first and self._first[0][0] < time_ns:
            self.pop(heappop(self._first)[3])

    def has_nameless(self, since_ns: int) -> bool:
        """Whether one without a member id has asked since then."""
        heap = self._nameless
        while heap and heap[0][3] not in self._all:
            heappop(heap)
        return bool(heap) and -heap[0][0] >= since_ns
