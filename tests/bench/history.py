"""Benchmarks over time: `python -m tests.bench.history` appends a line to history.csv, one for each release.

Rule: a line's times are those of its own machine; ratios to another library, measured in the same rounds, are
what may be compared between lines.
"""

from __future__ import annotations

import csv
import platform
import sys
from datetime import UTC, datetime
from math import prod
from pathlib import Path
from time import process_time

import coordwire
from tests.bench.__main__ import MEANS, cpu, measure
from tests.bench.engine import check_engine
from tests.bench.peers import PEERS, Missing, release
from tests.bench.rows import rows
from tests.proof import commit

FILE = Path(__file__).parent / "history.csv"


def mean(values: list[float]) -> str:
    return f"{prod(values) ** (1 / len(values)):.3f}" if values else ""


def line(rounds: int = 15) -> dict[str, str]:
    """Geometric means over the five messages: µs, and the ratio to each library that is installed."""
    peers = []
    for peer in PEERS:
        try:
            release(peer)
        except Missing as reason:
            print(reason, file=sys.stderr)
        else:
            peers.append(peer)
    times: dict[str, list[float]] = {work: [] for work in MEANS}
    ratios: dict[tuple[str, str], list[float]] = {(work, peer): [] for work in MEANS for peer in PEERS[1:]}
    for row in rows(peers, short=True):
        if row.work not in MEANS:
            continue
        calls = {peer: row.calls[peer] for peer in peers if peer in row.calls}
        values, by_peer = measure(calls, rounds, process_time)
        times[row.work].append(values[PEERS[0]] * row.scale)
        for peer in calls:
            if peer != PEERS[0]:
                ratios[row.work, peer].append(by_peer[peer])
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "version": coordwire.__version__,
        "commit": commit(),
        "engine": coordwire.implementation,
        "python": python,
        "processor": cpu(),
        **{f"{work} (µs)": mean(values) for work, values in times.items()},
        **{f"{work} (× {peer})": mean(values) for (work, peer), values in ratios.items()},
    }


def main() -> None:
    check_engine(PEERS)
    figures = line()
    is_new = not FILE.exists()
    with FILE.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(figures), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(figures)
    print(", ".join(f"{name} {value}" for name, value in figures.items() if value))


if __name__ == "__main__":
    main()
