"""One coordinator writes a log, another goes on from it: `python -m tests.coordinator.failover SEED COUNT`.

Strategy: a history runs on ours and on Kafka's. At a random step both give up their partition; ours loads
what Kafka's wrote, and Kafka's what ours wrote, each after the same change (`log_changes`: compacted, cut,
of an older or a newer release). The history goes on, and what comes out must be equal: in ours from Kafka's
log and from its own, and in Kafka's from ours and from its own.

`--keep FILE` stores the histories, which need no Java to be run again: each has its log in the step `load`.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.coordinator.comparison import Difference, outcome_lines, readable
from tests.coordinator.coverage import Coverage
from tests.coordinator.generator import Generator
from tests.coordinator.histories import Outcome, Record, Replayer, entry_from_text, kafka_outcome
from tests.coordinator.log_changes import CHANGES, Log, load_step
from tests.coordinator.oracle import RELEASE, RELEASES, CoordinatorOracle, oracle
from tests.coordinator.recorded_histories import RecordedHistory, checksum, write_histories
from tests.coordinator.settings import kafka_settings, settings

_EARLIEST, _LATEST = 30, 120


def kafka_log(steps: Sequence[str], outputs: Sequence[Sequence[str]]) -> Log:
    """Kafka's log after these steps, from what its coordinator said."""
    end, records = 0, list[tuple[int, Record]]()
    for step, lines in zip(steps, outputs, strict=True):
        words = step.split(" ")
        if words[0] == "load" and len(words) > 1:
            end, records = int(words[1]), [entry_from_text(word) for word in words[2:]]
        for record in kafka_outcome(lines).records:
            records.append((end, record))
            end += 1
    return end, records


def in_the_order_of(other: Log, log: Log) -> Log:
    """The log, with runs of records that the other has in another order in that order: where it is free, as
    with tombstones of one request, both then lose the same records when they are cut."""
    end, records = log
    ordered, aligned = list[tuple[int, Record]](), 0
    run: Counter[Record] = Counter()
    for (offset, own), (_, kafkas_record) in zip(records, other[1], strict=False):
        ordered.append((offset, kafkas_record))
        run[own] += 1
        run[kafkas_record] -= 1
        if not any(run.values()):
            aligned = len(ordered)
    return end, [*ordered[:aligned], *records[aligned:]]


class Failover:
    """One history with a failover in it. change: what became of the log between."""

    def __init__(
        self, seed: int, steps: int, coverage: Coverage | None = None, release: str = RELEASE
    ) -> None:
        self.seed, self.release = seed, release
        self._coverage = coverage
        self._steps = steps
        chance = random.Random(seed ^ 0x5EED)
        self._at = chance.randint(_EARLIEST, min(_LATEST, steps - 10))
        (self.change,) = chance.choices(list(CHANGES), [weight for _, weight in CHANGES.values()])
        self._number = chance.getrandbits(32)

    def _changed(self, log: Log) -> Log:
        return CHANGES[self.change][0](random.Random(self._number), log)

    def run(self, kafka: CoordinatorOracle) -> tuple[Difference | None, RecordedHistory]:
        grown = Generator(self.seed, self._coverage, self.release)
        grown.grow(self._at)
        before = list(grown.steps)
        outputs = kafka.run([kafka_settings(self.seed), *before])[1:]
        kafkas = kafka_log(before, outputs)
        own_step = load_step(self._changed(in_the_order_of(kafkas, grown.replayer.whole_log)))
        kafkas_step = load_step(self._changed(kafkas))
        grown.fail_over(kafkas_step)
        grown.grow_to(self._steps)
        after = grown.steps[len(before) :]
        from_ours = [own_step if step == kafkas_step else step for step in after]
        expected = [outcome.sorted(grown.replayer.requests) for outcome in grown.outcomes[len(before) :]]
        checksums: list[tuple[int, str]] = []
        for steps in (from_ours, after):
            outcome = kafka.run([kafka_settings(self.seed), *before, *steps])[1:]
            outcomes = [kafka_outcome(lines).sorted(grown.replayer.requests) for lines in outcome]
            difference = self._difference(after, expected, outcomes[len(before) :], grown, "Kafka's")
            if difference is not None:
                return difference, RecordedHistory(self.seed, [], self.release)
            checksums = [
                (checksum(outcome), step) for outcome, step in zip(outcomes, [*before, *steps], strict=True)
            ]
        replayer = Replayer(settings(self.seed, self.release))
        outcomes_after = [replayer.run(step).sorted(replayer.requests) for step in [*before, *from_ours]]
        difference = self._difference(after, expected, outcomes_after[len(before) :], grown, "its own log")
        return difference, RecordedHistory(self.seed, checksums, self.release)

    def _difference(
        self,
        steps: list[str],
        actual: list[Outcome],
        expected: list[Outcome],
        grown: Generator,
        coordinator: str,
    ) -> Difference | None:
        requests = grown.replayer.requests
        for number, (step, result, other) in enumerate(zip(steps, actual, expected, strict=True), self._at):
            if result != other:
                texts = [outcome_lines(outcome, requests) for outcome in (result, other)]
                name = (
                    f"after a failover at {self._at} ({self.change}), {coordinator}: {readable(step)[:2_000]}"
                )
                return Difference(self.seed, number, name, *texts)
        return None


def failover(
    seed: int, steps: int = 200, coverage: Coverage | None = None, release: str = RELEASE
) -> Failover:
    return Failover(seed, steps, coverage, release)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--release", choices=RELEASES, default=RELEASE)
    options = parser.parse_args()
    changes: Counter[str] = Counter()
    differences = 0

    def agreed() -> Iterator[RecordedHistory]:
        nonlocal differences
        for seed in range(options.seed, options.seed + options.count):
            run = failover(seed, options.steps, None, options.release)
            changes[run.change] += 1
            difference, checksums = run.run(oracle(options.release))
            if difference is None:
                yield checksums
            else:
                differences += 1
                print(difference, flush=True)

    if options.keep:
        write_histories(options.keep, agreed())
    else:
        for _ in agreed():
            pass
    print("logs: " + ", ".join(f"{name} {count}" for name, count in sorted(changes.items())))
    print(f"{options.count} failovers in histories of {options.steps} steps: {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
