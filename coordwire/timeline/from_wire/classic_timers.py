"""The timers of a classic group's coordinator, replayed: when its silent members are out.

Strategy: no frame shows that a timer ended, but the length of each timer is known. A session that ends, or a
sync phase that is over with members that never asked for their assignment, begins a join phase. That ends
when all have joined, or when the longest rebalance timeout is over: dynamic members that have not joined are
out then, and a generation is formed, in which all sessions and a sync phase begin again. Rules: a member
whose JoinGroup or SyncGroup waits has no session; static members stay until their sessions end, and a join
phase that none has joined waits for that; what is unknown ends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush
from typing import NamedTuple

from coordwire.timeline.events import Leaving

__all__ = ["Awaited", "Departures", "Replayed", "replayed"]

MOST_GENERATIONS = 100
"""So many generations that formed unseen are replayed: each looks at all members."""

Departures = dict[str, tuple[int, Leaving]]
"""When and how each member went, by its id, in their order."""


class Replayed(NamedTuple):
    """The departures that the timers caused, and the last generation that they formed."""

    departures: Departures
    formed_ns: int | None


class Awaited(NamedTuple):
    """A member by its timers, all in nanoseconds. over_ns: when its session ends, None while a request of it
    waits; session_ns, patience_ns: its timeouts, 0 for unknown; asked_ns: when its last request was seen that
    restarts its session, 0 for none."""

    over_ns: int | None
    session_ns: int
    patience_ns: int
    static: bool
    asked_ns: int = 0

    def next_over_ns(self, now_ns: int) -> int:
        """When a session ends that begins now, or with a later request, whose answer may be missing."""
        return max(now_ns, self.asked_ns) + self.session_ns


_STRANGER = Awaited(None, 0, 0, static=False)


def replayed(
    members: Mapping[str, Awaited], unsynced: Iterable[str], formed_ns: int | None,
    joins: Iterable[tuple[int, str]], until_ns: int, *, waited: tuple[int, int] = (0, 0),
    after: Callable[[int], int] = int,
) -> Replayed:  # fmt: skip
    """The members that are out by then, and when the last generation was formed that no frame shows.

    formed_ns: when the last known one was; unsynced: who didn't ask for its assignment in that; joins:
    JoinGroups since then, and when each was seen; without a name, another reason to join again. waited: from
    when until when no generation was formed, as one JoinGroup waited that long for its answer.
    """
    timers = _Timers(members, waited, after)
    if formed_ns is not None:
        timers.sync_phase(formed_ns, unsynced)
    timers.run(sorted(joins, reverse=True), until_ns)
    return Replayed(timers.departures, timers.formed_ns)


class _Timers:
    def __init__(
        self, members: Mapping[str, Awaited], waited: tuple[int, int], after: Callable[[int], int]
    ) -> None:
        self.present = dict(members)
        self._waited, self._after = waited, after
        self.departures: Departures = {}
        self.formed_ns: int | None = None
        self._ends: dict[str, int | None] = {}
        self._heap: list[tuple[int, str]] = []
        for name, member in members.items():
            self._ends_at(name, member.over_ns)
        self._joining = False
        self._over_ns: int | None = None  # the phase's end
        self._awaited: set[str] = set()  # who has still to join, or to ask for its assignment
        self._patience_ns = 0
        self._generations = 0

    def _ends_at(self, name: str, over_ns: int | None) -> None:
        over_ns = over_ns and self._after(over_ns)
        self._ends[name] = over_ns
        if over_ns is not None:
            heappush(self._heap, (over_ns, name))

    def _phase(self, now_ns: int) -> None:
        """A phase begins, which lasts as long as the most patient member says; one may have said nothing."""
        known = [
            member.patience_ns for member in self.present.values() if member.session_ns or member.patience_ns
        ]
        self._patience_ns = 0 if 0 in known else max(known, default=0)
        self._over_ns = self._after(now_ns + self._patience_ns) if self._patience_ns else None

    def sync_phase(self, formed_ns: int, unsynced: Iterable[str]) -> None:
        self._joining, self._awaited = False, {name for name in unsynced if name in self.present}
        self._phase(formed_ns)
        if not self._awaited:
            self._over_ns = None

    def _disturbed(self, now_ns: int) -> None:
        """Members shall join again; each SyncGroup that waits is answered so, and its session begins."""
        for name, member in self.present.items():
            if self._ends[name] is None and member.session_ns:
                self._ends_at(name, member.next_over_ns(now_ns))
        self._joining, self._awaited = True, set(self.present)
        self._phase(now_ns)

    def _formed(self, now_ns: int) -> None:
        if self._waited[0] <= now_ns < self._waited[1]:
            return  # one is awaited that nothing showed
        self._generations += 1
        self.formed_ns = now_ns
        for name, member in self.present.items():
            self._ends_at(name, member.next_over_ns(now_ns) if member.session_ns else None)
        self.sync_phase(now_ns, self.present)

    def _first_end_ns(self) -> int | None:
        heap = self._heap
        while heap and (heap[0][1] not in self.present or self._ends[heap[0][1]] != heap[0][0]):
            heappop(heap)
        return heap[0][0] if heap else None

    def run(self, joins: list[tuple[int, str]], until_ns: int) -> None:
        """joins: the last first."""
        while self.present and self._generations < MOST_GENERATIONS:
            join_ns = joins[-1][0] if joins else None
            end_ns, over_ns = self._first_end_ns(), self._over_ns
            now_ns = min(
                (time_ns for time_ns in (join_ns, end_ns, over_ns) if time_ns is not None),
                default=until_ns + 1,
            )
            if now_ns > until_ns:
                return
            if now_ns == end_ns:  # its timer is the older one
                self._session_over(heappop(self._heap)[1], now_ns)
            elif now_ns == over_ns:
                self._phase_over(now_ns)
            else:
                self._joins(joins.pop()[1], now_ns)

    def _out(self, name: str, now_ns: int, departure: Leaving) -> None:
        member = self.present.pop(name)
        self._awaited.discard(name)
        if member is not _STRANGER:
            self.departures[name] = now_ns, departure

    def _session_over(self, name: str, now_ns: int) -> None:
        self._out(name, now_ns, "session_timeout")
        if not self._joining:
            self._disturbed(now_ns)
        elif not self._awaited and self.present:
            self._formed(now_ns)

    def _phase_over(self, now_ns: int) -> None:
        self._over_ns = None
        if not self._joining:
            for name in [name for name in self.present if name in self._awaited]:
                self._out(name, now_ns, "not_rejoined")
            self._disturbed(now_ns)
            return
        for name in [name for name in self.present if name in self._awaited]:
            if not self.present[name].static:
                self._out(name, now_ns, "not_rejoined")
        if len(self._awaited) < len(self.present):
            self._formed(now_ns)

    def _joins(self, name: str, now_ns: int) -> None:
        if not self._joining:
            self._disturbed(now_ns)
        if not name:
            return
        self.present.setdefault(name, _STRANGER)
        self._ends[name] = None
        self._awaited.discard(name)
        if self._over_ns is None and self._patience_ns:
            self._over_ns = self._after(now_ns + self._patience_ns)
        if not self._awaited:
            self._formed(now_ns)
