"""`python -m tests.bench.instructions` counts what a heartbeat costs in one of many classic groups.

Strategy: valgrind's callgrind runs a coordinator whose groups' heartbeats come in turn, once with so many and
once with twice as many of them; the difference is theirs alone. Rules: no clock, so that other work of the
machine changes nothing; no model of the caches, whose misses differ between runs by half; few groups, as
making one takes valgrind long.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys

from coordwire.coordinator import RequestContext
from tests.bench.coordinator import CLIENT, Bench

_BEATS = 10_000


def beat(groups: int, beats: int) -> None:
    """What is counted."""
    bench = Bench(1 << 30)
    requests = [one for number in range(groups) for one in bench.classic(f"group-{number}", 1)]
    bench.steps.clear()
    context = RequestContext(client_id=CLIENT, client_host="/127.0.0.1", new_id=str)
    handle, effects, now = bench.shard.handle, bench.shard.effects, bench.now
    for _ in range(2 + beats // groups):
        for request in requests:
            handle(request, version=4, now=now, context=context)
            for _effect in effects():
                pass


def counted(groups: int, beats: int) -> int:
    """The instructions of one run."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    content = [sys.executable, "-m", "tests.bench.instructions", "--inside", str(groups), str(beats)]
    surroundings = {**os.environ, "PYTHONHASHSEED": "0"}
    result = subprocess.run(
        [*valgrind, *content], env=surroundings, capture_output=True, text=True, check=True
    )
    (instruction_count,) = re.findall(r"Collected *: (\d+)", result.stderr)
    return int(instruction_count)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.instructions", description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=[10, 1_000], help="(10 1000)")
    parser.add_argument("--inside", type=int, nargs=2, metavar=("GROUPS", "BEATS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        beat(*options.inside)
        return 0
    if shutil.which("valgrind") is None:
        print("valgrind isn't installed", file=sys.stderr)
        return 2
    print("| classic groups | instructions a heartbeat |\n|---|---:|")
    for groups in options.groups:
        beats = max(_BEATS, groups)
        result = (counted(groups, 2 * beats) - counted(groups, beats)) / beats
        print(f"| {groups:,} | {result:,.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
