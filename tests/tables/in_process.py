"""An engine for the pipeline's tests that works in this process, without Spark and other processes."""

from __future__ import annotations

from collections.abc import Sequence

from coordwire.tables.pipeline.engine import Progress
from coordwire.tables.pipeline.units import Job, Unit, run_units


class InProcess:
    """`Engine`. fail: raise this after so many units."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.fail_after = fail_after
        self.done = 0

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        for unit in units:
            if self.done == self.fail_after:
                raise KilledError
            run_units([unit], job)
            self.done += 1


class KilledError(Exception):
    """In the place of a kill."""
