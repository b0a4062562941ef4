"""`python -m tests.bench` prints one Markdown table: microseconds a call by library, and the ratios to ours.

Strategy: a round times every library once, back to back, so that what slows the machine slows them all; a
ratio is the median of the rounds' own ratios, a time the fastest round. Rules: the collector runs, as it does
in life; a library that isn't installed is an empty column, never an error.
"""

from __future__ import annotations

import argparse
import platform
import sys
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from statistics import median
from time import perf_counter

from tests.bench.cases import Case, cases
from tests.bench.peers import PEERS, Call, Missing, release, work

_SLICE = 0.02
"""Seconds that one library runs in one round."""


def loops(call: Call, least: float) -> int:
    """How many calls fill a slice of time."""
    count = 1
    while (spent := seconds(call, count)) < least / 4:
        count *= 2
    return max(1, round(count * least / spent))


def seconds(call: Call, count: int) -> float:
    """The time of `count` calls."""
    turns = range(count)
    start = perf_counter()
    for _ in turns:
        call()
    return perf_counter() - start


def measure(calls: dict[str, Call], rounds: int) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds a call (the fastest round) and the ratio to ours (the median of rounds), by library."""
    counts = {peer: loops(call, _SLICE) for peer, call in calls.items()}
    found: dict[str, list[float]] = {peer: [] for peer in calls}
    for turn in range(rounds):
        order = list(calls) if turn % 2 else list(calls)[::-1]
        for peer in order:
            found[peer].append(seconds(calls[peer], counts[peer]) / counts[peer])
    ours = found[PEERS[0]]
    ratios = {
        peer: median(b / a for a, b in zip(ours, theirs, strict=True)) for peer, theirs in found.items()
    }
    return {peer: min(times) for peer, times in found.items()}, ratios


def cpu() -> str:
    """The processor's model, as the system names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def table(peers: list[str], rounds: int, wanted: list[Case]) -> list[str]:
    """The lines of the table."""
    others = [peer for peer in peers if peer != PEERS[0]]
    lines = [
        f"| message, µs a call | | {' | '.join(peers)} | {' | '.join(f'× {peer}' for peer in others)} |",
        f"|---|---|{'---:|' * (len(peers) + len(others))}",
    ]
    every: dict[tuple[str, str], list[float]] = {}
    for number, direction in enumerate(("decode", "encode")):
        for case in wanted:
            times, ratios = measure({peer: work(peer, case)[number] for peer in peers}, rounds)
            cells = [figure(times[peer] * 1e6) for peer in peers] + [f"{ratios[peer]:.2f}" for peer in others]
            lines.append(f"| {case.label} | {direction} | {' | '.join(cells)} |")
            for peer in others:
                every.setdefault((direction, peer), []).append(ratios[peer])
    for direction in ("decode", "encode"):
        means = [every[direction, peer] for peer in others]
        cells = [""] * len(peers) + [f"**{prod(mean) ** (1 / len(mean)):.2f}**" for mean in means]
        lines.append(f"| **geometric mean** | {direction} | {' | '.join(cells)} |")
    return lines


def figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Compare coordwire with its peers."
    )
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds a row (%(default)s)")
    parser.add_argument(
        "--peers", nargs="*", default=PEERS[1:], choices=PEERS[1:], help="compare with these only"
    )
    options = parser.parse_args(arguments)
    peers, releases = [], []
    for peer in (PEERS[0], *options.peers):
        try:
            releases.append(f"{peer} {release(peer)}")
            peers.append(peer)
        except Missing as reason:
            print(reason, file=sys.stderr)
    for line in table(peers, options.rounds, cases()):
        print(line)
    print(
        f"\n{', '.join(releases)}; {platform.python_implementation()} {platform.python_version()}, {cpu()}, "
        f"{datetime.now(UTC):%Y-%m-%d}. × says how many times coordwire is as fast: the median of "
        f"{options.rounds} interleaved rounds; times are those of the fastest round."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
