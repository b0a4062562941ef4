"""Compare two coordinators on random histories: `python -m tests.coordinator.comparison SEED COUNT`.

Prints each history's first difference, then what the histories reached. `--keep FILE` stores the histories on
which both agree, for tests without Java; `--steps N` sets their length.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

from coordwire.logs import decode_log_record
from coordwire.messages import find_message
from tests.coordinator.coverage import Coverage
from tests.coordinator.generator import Generator, history
from tests.coordinator.histories import Outcome, kafka_outcome
from tests.coordinator.known_faults import without_known_faults
from tests.coordinator.oracle import RELEASE, RELEASES, oracle
from tests.coordinator.reach import answered_against_reason, unreached
from tests.coordinator.recorded_histories import RecordedHistory, checksum, write_histories
from tests.coordinator.settings import Way, has_streams, kafka_settings, way

_NOT_OURS = "group-size-counter"
"""A timer for a metric, which we have none of."""


@dataclass(slots=True)
class Difference:
    """The first step of a history whose outcomes differ."""

    seed: int
    number: int
    step: str
    actual: list[str]
    expected: list[str]

    def __str__(self) -> str:
        actual, expected = (
            "\n".join(f"    {line}" for line in lines) for lines in (self.actual, self.expected)
        )
        return (
            f"history {self.seed}, step {self.number}: {self.step}\n  ours:\n{actual}\n  Kafka's:\n{expected}"
        )


def commands(grown: Generator, seed: int) -> list[str]:
    """A history for the oracle."""
    return [kafka_settings(seed), *grown.steps, "timers"]


def compared(
    results: list[list[str]], grown: Generator, seed: int, *, keeps: bool = True
) -> tuple[Difference | None, RecordedHistory]:
    """Compare a history, which ran on ours, with what Kafka's said; timers must be the same at its end.

    keeps: whether the steps are to be kept with their outcomes; without that, what is equal byte by byte
    need not be read.
    """
    start, *outputs, timers = results
    assert start == []
    kept = RecordedHistory(seed, [], grown.release)
    requests = grown.replayer.requests
    for number, (step, actual, lines) in enumerate(zip(grown.steps, grown.outcomes, outputs, strict=True)):
        expected = kafka_outcome(lines)
        if not keeps and actual == expected:
            continue
        actual, expected = actual.sorted(requests), expected.sorted(requests)
        if actual != expected:
            expected = without_known_faults(
                grown.replayer.config, grown.steps[: number + 1], actual, expected
            )
            if actual == expected:
                print(f"history {seed}, step {number}: Kafka's fault that is known", flush=True)
        if actual != expected:
            texts = [outcome_lines(outcome, requests) for outcome in (actual, expected)]
            return Difference(seed, number, readable(step), *texts), kept
        kept.steps.append((checksum(expected), step))
    due = grown.replayer.deadlines()
    known = sorted(line for line in (line.removeprefix("timer ") for line in timers) if _NOT_OURS not in line)
    if due != known:
        return Difference(seed, len(grown.steps), "timers at the end", due, known), kept
    return None, kept


def first_difference(
    seed: int, steps: int = 200, make: Callable[..., Generator] = history, release: str = RELEASE
) -> Difference | None:
    """A history's difference. make: makes it."""
    grown = make(seed, steps, None, release)
    return compared(oracle(release).run(commands(grown, seed)), grown, seed)[0]


def readable(step: str) -> str:
    words = step.split(" ")
    if words[0] != "request":
        return step
    body = bytes.fromhex(words[6]) if len(words) > 6 else b""
    message = find_message(int(words[2]), "request").decode(body, version=int(words[3]))
    return f"request {words[1]} v{words[3]} {message}"


def outcome_lines(outcome: Outcome, requests: dict[int, tuple[int, int]]) -> list[str]:
    lines = []
    for ticket, data in outcome.answers.items():
        api, version = requests[ticket]
        lines.append(f"{ticket}: {find_message(api, 'response').decode(data, version=version)}")
    for key, value, *producer, marker in outcome.records:
        if marker:
            lines.append(f"marker {key.hex()} {value!r} of {producer}")
            continue
        record = decode_log_record("consumer_offsets", key, value)
        lines.append(f"{record.key!r} v{record.version} {record.value!r} of {producer}")
    lines += [f"transaction {ticket}: {ending}" for ticket, ending in outcome.ended.items()]
    return lines + outcome.failed + outcome.other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--shares", action="store_true", help="histories of share groups beside others")
    parser.add_argument(
        "--way", choices=[choice.name.lower() for choice in Way], help="histories of this way only"
    )
    parser.add_argument("--streams", action="store_true", help="histories with streams groups only")
    parser.add_argument("--release", choices=RELEASES, default=RELEASE, help="Kafka's, and ours")
    parser.add_argument("--sample", type=int, default=1, help="every which history counts for the coverage")
    options = parser.parse_args()
    coverage = Coverage()
    make = history
    if options.shares:
        from tests.shares.group_histories import share_history

        make = share_history
    differences = 0
    gc.freeze()
    gc.set_threshold(100_000)  # histories are many small objects, most of which live as long as theirs
    seeds: Sequence[int] = range(options.seed, options.seed + options.count)
    if options.streams:
        seeds = list(islice(filter(has_streams, count(options.seed)), options.count))
    if options.way is not None:
        seeds = [seed for seed in seeds if way(seed).name.lower() == options.way]

    def agreed() -> Iterator[RecordedHistory]:
        nonlocal differences
        pending: deque[tuple[int, Generator, Future[list[list[str]]]]] = deque()
        with ThreadPoolExecutor(1) as kafka:  # one history runs on Kafka's while the next grows on ours
            for seed in [*seeds, None]:
                if seed is not None:
                    counts = None if seed % options.sample else coverage
                    grown = make(seed, options.steps, counts, options.release)
                    future = kafka.submit(oracle(options.release).run, commands(grown, seed))
                    pending.append((seed, grown, future))
                if seed is None or len(pending) > 1:
                    known, grown, future = pending.popleft()
                    difference, kept = compared(future.result(), grown, known, keeps=options.keep is not None)
                    if difference is None:
                        yield kept
                    else:
                        differences += 1
                        print(difference, flush=True)

    if options.keep:
        write_histories(options.keep, agreed())
    else:
        for _ in agreed():
            pass
    print("\n".join(coverage.lines()))
    print("not reached: " + (", ".join(unreached(coverage)) or "nothing"))
    print("reached against its reason: " + (", ".join(answered_against_reason(coverage)) or "nothing"))
    print(f"{len(seeds)} histories of {options.steps} steps: {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
