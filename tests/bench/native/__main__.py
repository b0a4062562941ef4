"""`python -m tests.bench.native` prints one Markdown table: coordwire's time for five messages beside that of
`kafka-protocol` in Rust and of `kmsg` in Go, which it builds.

Strategy: a round times all three back to back, each for a slice of the processor's time that it counts
itself; a ratio is the median of the rounds' own, with the middle half of them beside it. Rules: decoding ends
with the library's own objects, which are freed again within the time; encoding begins with them and ends with
bytes. "Decode and read" also reads every attribute from Python, for which compiled code has no counterpart:
its ratio is to decoding alone.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from statistics import median, quantiles
from time import process_time

from coordwire import implementation
from tests.bench.__main__ import cpu, figure, seconds
from tests.bench.cases import cases
from tests.bench.native.peers import GO, RUST, NativePeer, built
from tests.bench.peers import Call, reading, work
from tests.interop.maven import Unavailable

_SLICE = 0.02
"""Seconds that one library runs in one round."""

Spent = Callable[[int], float]


def _ours(call: Call) -> Spent:
    return lambda count: seconds(call, count, process_time)


def _count(spent: Spent) -> int:
    """How many calls fill a slice."""
    count = 16
    while (time := spent(count)) < _SLICE / 4:
        count *= 2
    return max(1, round(count * _SLICE / time))


def measure(libraries: dict[str, Spent], rounds: int) -> dict[str, list[float]]:
    """Seconds a call in each round, by library."""
    counts = {name: _count(spent) for name, spent in libraries.items()}
    times: dict[str, list[float]] = {name: [] for name in libraries}
    for turn in range(rounds):
        for name in list(libraries)[:: -1 if turn % 2 else 1]:
            times[name].append(libraries[name](counts[name]) / counts[name])
    return times


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.native")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds a row (%(default)s)")
    rounds = parser.parse_args().rounds
    if implementation != "c":
        print("expected the C extension, which is compared", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number, case in enumerate(cases()):
            (folder / str(number)).write_bytes(case.wire)
        natives: dict[str, NativePeer] = {}
        for peer in (RUST, GO):
            try:
                natives[peer] = stack.enter_context(NativePeer(built(peer), folder))
            except Unavailable as reason:
                print(reason, file=sys.stderr)
        _print_table(natives, rounds)
    print(
        f"\n{cpu()}, {datetime.now(UTC):%Y-%m-%d}: the processor's µs a call, of the median round; × says "
        f"how many times coordwire is as fast: the median of {rounds} interleaved rounds, and their middle "
        "half."
    )
    return 0


def _print_table(natives: dict[str, NativePeer], rounds: int) -> None:
    heads = ["message", "work", "coordwire", *natives, *(f"× {peer}" for peer in natives)]
    print(f"| {' | '.join(heads)} |")
    print(f"|---|---|{'---:|' * (1 + 2 * len(natives))}")
    means: dict[tuple[str, str], list[float]] = {}
    for number, case in enumerate(cases()):
        decode, encode = work("coordwire", case)
        calls = {"decode": decode, "decode and read": reading("coordwire", case, decode), "encode": encode}
        for label, call in calls.items():
            there = "encode" if label == "encode" else "decode"
            libraries = {"": _ours(call)} | {
                peer: native.seconds(number, there) for peer, native in natives.items()
            }
            times = measure(libraries, rounds)
            cells = [figure(median(each) * 1e6) for each in times.values()]
            for peer in natives:
                ratios = [b / a for a, b in zip(times[""], times[peer], strict=True)]
                low, middle, high = quantiles(ratios, n=4)
                means.setdefault((label, peer), []).append(middle)
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
            print(f"| {case.label} | {label} | {' | '.join(cells)} |", flush=True)
    for label in ("decode", "decode and read", "encode"):
        cells = [""] * (1 + len(natives))
        cells += [f"**{prod(m) ** (1 / len(m)):.2f}**" for peer in natives if (m := means[label, peer])]
        print(f"| **geometric mean** | {label} | {' | '.join(cells)} |")


if __name__ == "__main__":
    sys.exit(main())
