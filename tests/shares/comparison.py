"""Compare ours with Kafka's on random histories: `python -m tests.shares.comparison KIND SEED COUNT`.

KIND: partition (of a share group), or state (the share coordinator). Prints each history's first difference,
then what the histories reached. `--keep FILE` stores the histories on which both agree, for tests without
Java.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from tests.coordinator.oracle import Program
from tests.coordinator.recorded_histories import RecordedHistory, write_histories
from tests.shares import partition_histories, state_histories
from tests.shares.oracle import PARTITION, STATE, share_oracle


class Grown(Protocol):
    """A history that grew on ours."""

    steps: list[str]
    outcomes: list[list[str]]
    counts: Counter[str]


class Kind(NamedTuple):
    """A kind of histories: how they grow, and what judges them. faults: errors of Kafka's own code."""

    history: Callable[[int, int], Grown]
    normalized: Callable[[Iterable[str]], list[str]]
    program: Program
    steps: int
    faults: tuple[str, ...] = ()
    readable: Callable[[Any, str], str] = lambda grown, line: line

    def has_fault(self, lines: Iterable[str]) -> bool:
        """Whether Kafka's own code has thrown an error; what follows shows nothing."""
        return any(fault in line for line in lines for fault in self.faults)


KINDS = {
    "partition": Kind(
        partition_histories.history,
        partition_histories.normalized,
        PARTITION,
        120,
        ('"floorOffset" is null',),
    ),
    "state": Kind(
        state_histories.history,
        state_histories.normalized,
        STATE,
        120,
        readable=lambda grown, line: state_histories.readable(line, grown.replayer.versions),
    ),
}


def first_difference(kind: Kind, grown: Grown, outputs: Sequence[list[str]]) -> str | None:
    for number, (step, ours, lines) in enumerate(zip(grown.steps, grown.outcomes, outputs, strict=True)):
        if kind.has_fault(lines):
            return None
        expected = kind.normalized(lines)
        actual = kind.normalized(ours)
        if actual != expected:
            texts = []
            for title, own, other in (("ours", actual, expected), ("Kafka's", expected, actual)):
                missing = (line for line in own if line not in other)
                texts += [f"  {title}:", *(f"    {kind.readable(grown, line)}" for line in missing)]
            return "\n".join([f"step {number}: {step[:1_000]}", *texts])
    return None


def checksum(lines: Iterable[str]) -> int:
    """16 bits of what a step led to, as normalized lines."""
    return crc32("\n".join(lines).encode()) & 0xFFFF


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    kind = KINDS[options.kind]
    counts: Counter[str] = Counter()
    differences = steps = 0
    kept: list[RecordedHistory] = []
    for seed in range(options.seed, options.seed + options.count):
        grown = kind.history(seed, options.steps or kind.steps)
        counts += grown.counts
        steps += len(grown.steps)
        outputs = share_oracle(kind.program).run(grown.steps)
        difference = first_difference(kind, grown, outputs)
        if difference is not None:
            differences += 1
            print(f"history {seed}, {difference}", flush=True)
        elif options.keep:
            sound = itertools.takewhile(lambda lines: not kind.has_fault(lines), outputs)
            sums = (checksum(kind.normalized(lines)) for lines in sound)
            kept.append(RecordedHistory(seed, list(zip(sums, grown.steps, strict=False))))
    if options.keep:
        write_histories(options.keep, kept)
    print(", ".join(f"{name} {count}" for name, count in sorted(counts.items())))
    print(f"{options.count} histories with {steps} steps: {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
