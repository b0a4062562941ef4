"""An engine runs units of work: Spark, or processes on this machine.

Strategy: an `Engine` has one operation; `LocalEngine` and the engines of `coordwire.spark.engines` implement
it. Units, attempts, notes, manifest and report are the same functions for both, and the plan of units does
not depend on the engine, so that one finishes what the other began. Rules: neighbouring units share a task,
whose files appear together, so that all workers end at about the same time and stores are asked seldom; a
failed job raises one sentence.
"""

from __future__ import annotations

__all__ = ["Engine", "Progress", "as_tasks"]

from collections.abc import Callable, Sequence
from typing import Protocol

from coordwire.tables.pipeline.units import Job, Unit
from coordwire.tables.readers.splits import OPENING

Progress = Callable[[int, int], None]
"""Called with how many tasks are done, of how many."""

TASK = 32 << 20
"""Bytes that a task reads at least, where there are that many."""

SMALL, MOST_UNITS = 1 << 20, 100
"""Units of together fewer bytes, or than one of them may have, share a task, up to so many, however many
workers there are."""


class Engine(Protocol):
    """Runs units."""

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        """Run the units, in any order, each to its note. Raises `CoordwireError` where the job fails."""


def as_tasks(units: Sequence[Unit], workers: int, split_size: int) -> list[list[Unit]]:
    """Group neighbouring units: enough tasks for workers to end at about the same time, none too small."""
    cost = [unit.part.end - unit.part.start + OPENING for unit in units]
    most = (
        max(TASK, sum(cost) // (1000 * workers))
        if sum(cost) > 4 * workers * TASK
        else (sum(cost) // (4 * workers) + 1)
    )
    tasks: list[list[Unit]] = []
    used = most
    for unit, size in zip(units, cost, strict=True):
        count = len(tasks[-1]) if tasks else MOST_UNITS
        is_small = used + size - (count + 1) * OPENING <= min(SMALL, split_size)
        if count >= MOST_UNITS or (used + size > most and not is_small):
            tasks.append([])
            used = 0
        tasks[-1].append(unit)
        used += size
    return tasks
