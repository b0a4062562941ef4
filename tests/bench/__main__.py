"""`python -m tests.bench` prints one Markdown table: what work costs each library, and the ratios to ours.

Strategy: a round times every library once, back to back, so that what slows the machine slows them all; a
ratio is the median of the rounds' own ratios, a time the fastest round's, of the processor. Rules: the
collector runs, as it does in life; a library that isn't installed is an empty column, never an error.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import TypeAlias

from coordwire import implementation
from tests.bench.engine import NATIVE, check_engine
from tests.bench.peers import PEERS, PYTHON, Call, Missing, release
from tests.bench.rows import Row, rows

Clock: TypeAlias = Callable[[], float]

_SLICE = 0.02
"""Seconds that one library runs in one round."""

MEANS = ("decode", "decode and read", "encode")
"""The work of which a mean over the five messages is taken."""


def loops(call: Call, least: float, clock: Clock = perf_counter) -> int:
    """How many calls fill a slice of time."""
    count = 1
    while (spent := seconds(call, count, clock)) < least / 4:
        count *= 2
    return max(1, round(count * least / spent))


def seconds(call: Call, count: int, clock: Clock = perf_counter) -> float:
    """The time of `count` calls."""
    turns = range(count)
    start = clock()
    for _ in turns:
        call()
    return clock() - start


def measure(
    calls: dict[str, Call], rounds: int, clock: Clock = perf_counter
) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds a call (the fastest round) and the ratio to ours (the median of rounds), by library."""
    counts = {peer: loops(call, _SLICE, clock) for peer, call in calls.items()}
    result: dict[str, list[float]] = {peer: [] for peer in calls}
    for turn in range(rounds):
        order = list(calls) if turn % 2 else list(calls)[::-1]
        for peer in order:
            result[peer].append(seconds(calls[peer], counts[peer], clock) / counts[peer])
    ours = result[PEERS[0]]
    ratios = {
        peer: median(b / a for a, b in zip(ours, theirs, strict=True)) for peer, theirs in result.items()
    }
    return {peer: min(times) for peer, times in result.items()}, ratios


def weigh(calls: dict[str, Call], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """The median of what the calls themselves return, and the median ratio to ours, by library."""
    result: dict[str, list[float]] = {peer: [] for peer in calls}
    for _ in range(rounds):
        for peer, call in calls.items():
            result[peer].append(call())
    ours = result[PEERS[0]]
    ratios = {
        peer: median(b / a for a, b in zip(ours, theirs, strict=True)) for peer, theirs in result.items()
    }
    return {peer: median(values) for peer, values in result.items()}, ratios


def cpu() -> str:
    """The processor's model, as the system names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(peers: list[str], rounds: int, wanted: Iterable[Row]) -> list[str]:
    """The lines of the table."""
    others = [peer for peer in peers if peer != PEERS[0]]
    lines = [
        f"| work | | {' | '.join(peers)} | {' | '.join(f'× {peer}' for peer in others)} |",
        f"|---|---|{'---:|' * (len(peers) + len(others))}",
    ]
    every: dict[tuple[str, str], list[float]] = {}
    for row in wanted:
        calls = {peer: row.calls[peer] for peer in peers if peer in row.calls}
        values, ratios = weigh(calls, min(rounds, 5)) if row.weighed else measure(calls, rounds, process_time)
        cells = [figure(values[peer] * row.scale) if peer in values else "" for peer in peers]
        cells += [f"{ratios[peer]:.2f}" if peer in values else "" for peer in others]
        lines.append(f"| {row.label} | {row.work} | {' | '.join(cells)} |")
        for peer in others:
            if peer in ratios and row.work in MEANS:
                every.setdefault((row.work, peer), []).append(ratios[peer])
    for work in MEANS:
        means = [every.get((work, peer)) for peer in others]
        cells = [""] * len(peers) + [f"**{prod(m) ** (1 / len(m)):.2f}**" if m else "" for m in means]
        lines.append(f"| **geometric mean** | {work} | {' | '.join(cells)} |")
    return lines


def figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Compare coordwire with its peers."
    )
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds a row (%(default)s)")
    like = [peer for peer in PEERS[1:] if implementation == "c" or peer not in (PYTHON, *NATIVE)]
    parser.add_argument("--peers", nargs="*", default=like, choices=PEERS[1:], help="compare with these only")
    parser.add_argument("--short", action="store_true", help="the five messages only")
    options = parser.parse_args(arguments)
    check_engine(options.peers)
    peers, releases = [], []
    for peer in (PEERS[0], *options.peers):
        try:
            result = release(peer)
            peers.append(peer)
        except Missing as reason:
            print(reason, file=sys.stderr)
        else:
            releases += [f"{peer} {result}"] if result else []
    for line in table(peers, options.rounds, rows(peers, short=options.short)):
        print(line)
    how = "native code" if implementation == "c" else "Python only"
    print(
        f"\n{', '.join(releases)} ({how}); {platform.python_implementation()} {platform.python_version()}, "
        f"{cpu()}, {datetime.now(UTC):%Y-%m-%d}. The processor's µs a call unless said, of the "
        "fastest round; × says how many times coordwire is as fast, or as small: the median of "
        f"{options.rounds} interleaved rounds."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
