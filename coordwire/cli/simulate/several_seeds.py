"""The same run with several seeds: a line for each, then quantiles of all of them.

Strategy: a run is reduced to its figures as soon as it is over, so that memory does not grow with the lengths
of the runs. Rules: the columns of a line are as wide in every run, since lines are written as runs end.
Times of deaths are counted from the begin of the silence; the line of a run has the longest of each kind. A
quantile is the least value that so many percent of all do not exceed. A run is judged by its end, if it was
left alone for long enough before: every partition has one reader then, in all designs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from coordwire._quantities import duration
from coordwire.capture.printable import Pieces
from coordwire.designs.simulator.runs import METADATA_MS, SimulatedRun
from coordwire.timeline.story.wording import count

PERCENTS = {"p50": 50, "p95": 95, "p99": 99, "most": 100}
ALONE_SESSIONS, ALONE_MS = 5, 30_000
"""Session timeouts, and milliseconds, without a fault, after which a run is judged; after a change of a topic
also the time between two requests for metadata."""

MOST_BROKEN = 20
"""Seeds that are listed with what is broken."""

_COLUMNS = {
    "assigned_ms": "assigned", "detected_ms": "detected", "taken_over_ms": "taken over",
    "orphaned_ms": "no owner", "duplicated_ms": "two owners", "messages": "messages",
}  # fmt: skip
"""The names of the figures, and of their columns."""

_WIDTH = 11


@dataclass(frozen=True, slots=True)
class SeedFigures:
    """Times in milliseconds. assigned: when every partition had had an owner, None for never. detected,
    taken_over: of each death of a consumer with partitions, from its silence on; deaths that were not, or not
    before the consumer was back, are left out. no_owner, two_owners: sums over partitions. broken: what every
    design promises and this run did not keep, or ""."""

    seed: int
    assigned: int | None
    detected: tuple[int, ...]
    taken_over: tuple[int, ...]
    no_owner: int
    two_owners: int
    messages: int
    broken: str

    def values(self) -> dict[str, tuple[int, ...]]:
        """The values of each column."""
        assigned = () if self.assigned is None else (self.assigned,)
        values = (
            assigned, self.detected, self.taken_over, (self.no_owner,), (self.two_owners,), (self.messages,)
        )  # fmt: skip
        return dict(zip(_COLUMNS, values, strict=True))


def run_figures(simulated: SimulatedRun, seed: int, session_ms: int) -> SeedFigures:
    """The figures of a run that is over."""
    measures = simulated.measures
    ends = [(death.silent, death.detected, death.taken_over) for death in measures.deaths]
    return SeedFigures(
        seed,
        measures.assigned_at,
        tuple(end - silent for silent, end, _ in ends if end is not None),
        tuple(end - silent for silent, _, end in ends if end is not None),
        measures.orphaned_ms,
        measures.duplicated_ms,
        measures.messages,
        _broken(simulated, session_ms),
    )


def _broken(simulated: SimulatedRun, session_ms: int) -> str:
    """What is wrong at the end of a run in which something could act and nothing happened for long."""
    world = simulated.run.world
    last = max((time + (fault.duration or 0) for time, fault in world.faults), default=0)
    starts = max((time for node in world.nodes.values() for time in node.started_at), default=0)
    alone = max(ALONE_SESSIONS * session_ms, ALONE_MS)
    alone += METADATA_MS if any(fault.kind == "topic" for _, fault in world.faults) else 0
    if world.now - max(last, starts) < alone:
        return ""
    closed = [(time, fault.targets[0]) for time, fault in world.faults if fault.kind == "leave"]
    acting = {
        name.partition("-")[0]
        for name, node in world.nodes.items()
        if node.is_up
        and not any(time >= node.started_at[-1] and fnmatchcase(name, target) for time, target in closed)
    }
    if acting != {name.partition("-")[0] for name in world.nodes}:
        return ""
    readers = [len(world.ownership.readers(partition)) for partition in world.ownership.partitions]
    none, several = readers.count(0), sum(number > 1 for number in readers)
    parts = [(none, "no owner"), (0 if simulated.run.shares else several, "two owners or more")]
    return " and ".join(
        f"{count(number, 'partition')} with {readers_text}" for number, readers_text in parts if number
    )


def opening_lines(title: str, sizes: str) -> Iterator[Pieces]:
    """The title, and the names of the columns."""
    yield [(title, "api"), (sizes, "note"), ("─" * max(80 - len(title) - len(sizes), 2), "rule")]
    yield [(f"   {'seed':>7}" + "".join(f"{name:>{_WIDTH}}" for name in _COLUMNS.values()), "note")]


def run_line(figures: SeedFigures) -> Pieces:
    """A run's line; the longest of its times."""
    cells = {name: max(values, default=None) for name, values in figures.values().items()}
    return [*_row(str(figures.seed), cells), (" ✗" if figures.broken else "", "error")]


def closing_lines(runs: list[SeedFigures]) -> Iterator[Pieces]:
    """The quantiles, and the seeds of runs that are broken."""
    quantiles = _quantiles(runs)
    yield []
    for part in PERCENTS:
        yield _row(part, {name: known.get(part) for name, known in quantiles.items()})
    broken = [figures for figures in runs if figures.broken]
    if broken:
        yield []
    for figures in broken[:MOST_BROKEN]:
        yield [("   ✗ ", "error"), (f"--seed {figures.seed} ends with {figures.broken}", "error")]
    if len(broken) > MOST_BROKEN:
        yield [(f"   … and {len(broken) - MOST_BROKEN:,} more seeds", "odd")]


def forms(runs: Iterable[SeedFigures]) -> dict[str, object]:
    """The same for programs: each run with the values of its columns, and the quantiles."""
    known = list(runs)
    return {
        "runs": [
            {"seed": figures.seed, **figures.values(), "broken": figures.broken or None} for figures in known
        ],
        "quantiles": _quantiles(known),
    }


def _quantiles(runs: Iterable[SeedFigures]) -> dict[str, dict[str, int]]:
    together: dict[str, list[int]] = {name: [] for name in _COLUMNS}
    for figures in runs:
        for name, values in figures.values().items():
            together[name] += values
    quantiles = {}
    for name, known in together.items():
        known.sort()
        quantiles[name] = {
            part: known[-(-percent * len(known) // 100) - 1] for part, percent in PERCENTS.items() if known
        }
    return quantiles


def _row(name: str, cells: dict[str, int | None]) -> Pieces:
    texts = (_cell(column, cells.get(column)) for column in _COLUMNS)
    return [(f"   {name:>7}", "name"), ("".join(f"{text:>{_WIDTH}}" for text in texts), "plain")]


def _cell(column: str, value: int | None) -> str:
    if value is None:
        return "-"
    if column == "messages":
        return f"{value:,}"
    if column in ("orphaned_ms", "duplicated_ms"):
        return f"{value / 1000:,.3f}"
    return duration(value / 1000) if value else "0 ms"
