"""Compare our coordinator with Kafka's on random histories: `python -m tests.coordinator.compare SEED COUNT`.

Prints each history's first difference, then what the histories reached. `--keep FILE` stores the histories on
which both agree, for tests without Java; `--steps N` sets their length.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coordwire.logs import decode_log_record
from coordwire.messages import find_message
from tests.coordinator.coverage import Coverage
from tests.coordinator.generator import Generator, history
from tests.coordinator.histories import Outcome, kafka_outcome
from tests.coordinator.kept import KeptHistory, checksum, write_kept
from tests.coordinator.oracle import CoordinatorOracle, oracle
from tests.coordinator.settings import kafka_settings

__all__ = ["Difference", "compared", "first_difference"]

_NOT_OURS = "group-size-counter"
"""A timer for a metric, which we have none of."""


@dataclass(slots=True)
class Difference:
    """The first step of a history whose outcomes differ."""

    seed: int
    number: int
    step: str
    ours: list[str]
    theirs: list[str]

    def __str__(self) -> str:
        ours, theirs = ("\n".join(f"    {line}" for line in lines) for lines in (self.ours, self.theirs))
        return f"history {self.seed}, step {self.number}: {self.step}\n  ours:\n{ours}\n  Kafka's:\n{theirs}"


def compared(kafka: CoordinatorOracle, grown: Generator, seed: int) -> tuple[Difference | None, KeptHistory]:
    """Run a history, which ran on ours, on Kafka's; timers must be the same at its end."""
    begun, *outputs, timers = kafka.run([kafka_settings(seed), *grown.steps, "timers"])
    assert begun == []
    kept: list[tuple[int, str]] = []
    requests = grown.replayer.requests
    for number, (step, ours, lines) in enumerate(zip(grown.steps, grown.outcomes, outputs, strict=True)):
        ours, theirs = ours.sorted(requests), kafka_outcome(lines).sorted(requests)
        if ours != theirs:
            shown = [_shown(outcome, requests) for outcome in (ours, theirs)]
            return Difference(seed, number, _readable(step), *shown), (seed, kept)
        kept.append((checksum(theirs), step))
    due = grown.replayer.deadlines()
    known = sorted(line for line in (line.removeprefix("timer ") for line in timers) if _NOT_OURS not in line)
    if due != known:
        return Difference(seed, len(kept), "timers at the end", due, known), (seed, kept)
    return None, (seed, kept)


def first_difference(seed: int, steps: int = 200) -> Difference | None:
    return compared(oracle(), history(seed, steps), seed)[0]


def _readable(step: str) -> str:
    words = step.split(" ")
    if words[0] != "request":
        return step
    message = find_message(int(words[2]), "request").decode(bytes.fromhex(words[6]), version=int(words[3]))
    return f"request {words[1]} v{words[3]} {message}"


def _shown(outcome: Outcome, requests: dict[int, tuple[int, int]]) -> list[str]:
    lines = []
    for ticket, data in outcome.answers.items():
        api, version = requests[ticket]
        lines.append(f"{ticket}: {find_message(api, 'response').decode(data, version=version)}")
    for key, value in outcome.records:
        record = decode_log_record("consumer_offsets", key, value)
        lines.append(f"{record.key!r} v{record.version} {record.value!r}")
    return lines + outcome.failed + outcome.other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    coverage = Coverage()
    differences = 0

    def agreed() -> Iterator[KeptHistory]:
        nonlocal differences
        for seed in range(options.seed, options.seed + options.count):
            grown = history(seed, options.steps, coverage)
            difference, kept = compared(oracle(), grown, seed)
            if difference is None:
                yield kept
            else:
                differences += 1
                print(difference)

    if options.keep:
        write_kept(options.keep, agreed())
    else:
        for _ in agreed():
            pass
    print("\n".join(coverage.lines()))
    print(f"{options.count} histories of {options.steps} steps: {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
