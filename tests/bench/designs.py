"""What each message and each rebalance costs the processor, by design of a coordinator.

    python -m tests.bench.designs [--members 10]

Strategy: the same group runs in simulation for a time, for twice the time, and for that with consumers that
crash and come back; `perf stat` counts the instructions of each run. What the second needs beyond the first
is divided by the messages that it has more; what the third needs beyond the second by the rebalances that it
has more, whose messages this includes. Rules: instructions in place of time, so that other work of the
machine changes nothing; they are those of the whole world, all processes at both ends, ZooKeeper and the
network.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

from coordwire.designs.simulator import parse_faults
from coordwire.designs.simulator.runs import DESIGNS, simulate

QUIET_MS, CRASHES = 300_000, 22
PLAN = "; ".join(f"{40 + 24 * number}s crash consumer-{number % 4 + 1} for 10s" for number in range(CRASHES))
RUNS = (QUIET_MS, ""), (2 * QUIET_MS, ""), (2 * QUIET_MS, PLAN)


class Counts(NamedTuple):
    """Of one run."""

    instructions: int
    messages: int
    rebalances: int


class Costs(NamedTuple):
    """Instructions of a message of a quiet group, and of a rebalance."""

    message: float
    rebalance: float


def run(design: str, members: int, number: int) -> None:
    """What is counted; prints its messages and rebalances."""
    duration_ms, plan = RUNS[number]
    measures = simulate(
        design, members=members, partitions=2 * members, duration_ms=duration_ms, plan=parse_faults(plan)
    ).measures
    print(json.dumps([measures.messages, len(measures.rebalances)]))


def counted(design: str, members: int, number: int) -> Counts:
    """The counts of a run in a process of its own."""
    content = [sys.executable, "-m", "tests.bench.designs", "--inside", design, str(members), str(number)]
    result = subprocess.run(
        ["perf", "stat", "-x", ",", "-e", "instructions:u", *content],
        env={**os.environ, "PYTHONHASHSEED": "0"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Counts(int(result.stderr.split(",")[0]), *json.loads(result.stdout))


def costs(design: str, members: int) -> Costs:
    short, long, changed = (counted(design, members, number) for number in range(len(RUNS)))
    return Costs(
        (long.instructions - short.instructions) / (long.messages - short.messages),
        (changed.instructions - long.instructions) / (changed.rebalances - long.rebalances),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.designs", description=__doc__)
    parser.add_argument("--members", type=int, default=10, help="(10)")
    parser.add_argument("--inside", nargs=3, metavar=("DESIGN", "MEMBERS", "RUN"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        design, members, number = options.inside
        run(design, int(members), int(number))
        return 0
    if shutil.which("perf") is None:
        print("perf isn't installed", file=sys.stderr)
        return 2
    known = {design: costs(design, options.members) for design in DESIGNS}
    classic = known["classic"]
    print("| design | a message, thousand | ÷ classic | a rebalance, million | ÷ classic |")
    print("|---|---:|---:|---:|---:|")
    for design, cost in known.items():
        print(
            f"| {design} | {cost.message / 1e3:,.0f} | {cost.message / classic.message:.2f}"
            f" | {cost.rebalance / 1e6:,.1f} | {cost.rebalance / classic.rebalance:.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
