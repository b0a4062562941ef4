"""The load of a world: how close together orders come, and how busy is what processes wait for.

    0ms load orders 10ms 4                 orders come four at once, then after 10 ms or so four more
    20s busy * 25 for 10s                  what `world.slow` waits for, and databases, take 25 times as long

Strategy: a load holds from a time on, and is looked up where it matters. A seed that draws
loads draws each when it is first looked for, and adds it to the plan, so that what happened is a plan again.
Rules: without a load in the plan all is steady, so that shrinking, which leaves parts of a plan out, ends
there. A load that nothing has met is not in the plan of a run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from random import Random
from typing import Generic, TypeVar

from coordwire.testing.fault_plans import PlannedFault, parse_time, written_time

__all__ = ["LOADS", "Load", "PacedItems"]

LOADS = "load", "busy"
"""The kinds."""

_PACES = None, 0.01, 0.2, 1.0, 1.0, 3.0
"""What a seed draws: parts of the usual pause; None is steady."""

_BURSTS = 1, 1, 4, 16
_SLOWNESS = 1, 1, 1, 5, 25
_STRETCH_S = 10
"""Seconds for which something is quick or slow."""

_Item = TypeVar("_Item")


class Load:
    """The load of one world. plan: what it is, if no seed draws it; until: seconds until which a seed draws
    it, or None. now: the time; happened: called with what is met first."""

    def __init__(
        self,
        seed: int,
        plan: Iterable[PlannedFault],
        until: float | None,
        now: Callable[[], float],
        happened: Callable[[PlannedFault], None],
    ) -> None:
        self.names: set[str] = set()
        """Of all that was paced."""
        self.unmet = [fault for fault in plan if fault.kind in LOADS]
        self._plan = [*self.unmet]
        self._seed, self._until, self._now, self._happened = seed, until, now, happened
        self._stretches: set[int] = set()
        self._random: dict[str, Random] = {}

    def pauses(self, name: str, every: float) -> Iterator[float]:
        """Seconds between one item and the next, of those with a name. every: the usual."""
        if self._until is not None and name not in self.names:
            self._draw_pace(name, every)
        self.names.add(name)
        random = self._random.setdefault(name, Random(f"pauses/{name}/{self._seed}"))
        in_burst = 1
        while True:
            pace = self._at_present("load", name)
            if pace is None:
                in_burst = 1
                yield every
                continue
            pause_ms, burst = parse_time(pace.words[0]) or 0, int((*pace.words, "1")[1])
            is_over = in_burst >= burst
            in_burst = 1 if is_over else in_burst + 1
            yield random.expovariate(1) * pause_ms / 1000 if is_over else 0.0

    def slowness(self, name: str) -> float:
        """How many times as long as usual something takes that a process waits for, or a database; it is the
        same for some seconds."""
        stretch = int(self._now() // _STRETCH_S)
        random = Random(f"slow/{self._seed}/{stretch}")
        factor = random.choice(_SLOWNESS)
        if self._until is not None and stretch not in self._stretches:
            self._stretches.add(stretch)
            at, end = stretch * _STRETCH_S * 1000, int(self._until * 1000)
            if factor > 1 and at < end:
                duration = min(_STRETCH_S * 1000, end - at)
                self._add(PlannedFault(at, "busy", ("*",), (str(factor),), duration))
        busy = self._at_present("busy", name)
        return (1 if busy is None else int(busy.words[0])) * random.uniform(0.8, 1.2)

    def _draw_pace(self, name: str, every: float) -> None:
        random = Random(f"load/{name}/{self._seed}")
        part, burst = random.choice(_PACES), random.choice(_BURSTS)
        if part is not None:
            pause = written_time(max(round(every * part * burst * 1000), 1))
            words = pause, *((str(burst),) if burst > 1 else ())
            self._add(PlannedFault(int(self._now() * 1000), "load", (name,), words))

    def _add(self, fault: PlannedFault) -> None:
        self._plan.append(fault)
        self.unmet.append(fault)

    def _at_present(self, kind: str, name: str) -> PlannedFault | None:
        """The last load of a kind that holds now for a name."""
        now = self._now() * 1000
        for fault in reversed(self._plan):
            lasts = float("inf") if fault.duration is None else fault.duration
            if (
                fault.kind == kind
                and fault.at <= now < fault.at + lasts
                and fnmatchcase(name, fault.targets[0])
            ):
                if fault in self.unmet:
                    self.unmet.remove(fault)
                    self._happened(fault)
                return fault
        return None


class PacedItems(Generic[_Item]):
    """An asynchronous iterator over items, with pauses between them, of so many seconds."""

    def __init__(self, items: Iterable[_Item], pauses: Iterator[float]) -> None:
        self._items, self._pauses = iter(items), pauses
        self._is_first = True

    def __aiter__(self) -> PacedItems[_Item]:
        return self

    async def __anext__(self) -> _Item:
        for item in self._items:
            if not self._is_first and (pause := next(self._pauses)):
                await asyncio.sleep(pause)
            self._is_first = False
            return item
        raise StopAsyncIteration
