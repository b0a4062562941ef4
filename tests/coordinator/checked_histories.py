"""Checked random histories: `python -m tests.coordinator.checked_histories SEED COUNT`, or `--kept`.

Strategy: the requests of a history come from no client that obeys a protocol, so that a shard meets what
simulations never send. Kafka's coordinator answers the kept histories just as ours does; what a checker
finds in them is therefore Kafka's own, and either the checker or the invariant needs an exception that says
so. Only checkers of what a client does (`OwnersOfClients`, `check_converged`) have no place here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import partial

from tests.coordinator.generator import Generator, history
from tests.coordinator.histories import Replayer
from tests.coordinator.invariants import CHECKERS, Violation, WatchedShard
from tests.coordinator.recorded_histories import read_histories
from tests.coordinator.settings import settings


class OffsetsGenerator(Generator):
    """Histories of offsets: transactions that stay open, and hours in which offsets expire."""

    def grow(self, count: int) -> None:
        kinds = [(self._commit, 20), (self._end_transaction, 2), (self._commit_in_transaction, 8)]
        self._kinds = [*kinds, (self._advance, 6), (self._fetch, 4), (self._release, 4), (self._hold, 1)]
        super().grow(count)

    def _advance(self) -> None:
        by = self.random.choice([1_000, 600_000, 1_800_000, 3_600_000])
        self._step(f"advance {self.replayer.now + by}")


def offsets_history(seed: int, count: int) -> Generator:
    generator = OffsetsGenerator(seed)
    generator.grow(count)
    return generator


def watched(seed: int, steps: Iterable[str]) -> tuple[int, Violation | None]:
    """How many steps ran, and what was violated. seed: of the settings."""
    replayer = Replayer(settings(seed), partial(WatchedShard, CHECKERS))
    number = 0
    try:
        for step in steps:
            replayer.run(step)
            number += 1
    except Violation as violation:
        return number, violation
    return number, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=0)
    parser.add_argument("--kept", action="store_true", help="the histories that are kept as data")
    parser.add_argument("--offsets", action="store_true", help="histories of offsets and transactions")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    began, steps, count, wrong = time.process_time(), 0, 0, 0
    grown = offsets_history if options.offsets else history
    histories = (
        ((history.seed, [step for _, step in history.steps]) for history in read_histories())
        if options.kept
        else (
            (seed, grown(seed, options.steps).steps)
            for seed in range(options.seed, options.seed + options.count)
        )
    )
    for seed, requests in histories:
        step_count, violation = watched(seed, requests)
        steps, count = steps + step_count, count + 1
        if violation is not None:
            wrong += 1
            print(f"history {seed}, step {step_count}: {violation}", flush=True)
    seconds = time.process_time() - began
    print(f"{count} histories, {steps:,} steps, {seconds:.0f} s of processor time: {wrong} violations")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
