"""Runs one target: `python -m fuzz.json_form [--examples N | --seconds N] [--seed N]`.

Strategy: one run of Hypothesis, or rounds until the time is up, each with the next seed after that of the
round before; the first seed is random unless it is given, and is printed. What fails is shrunk and shown, and
the last line has the command that repeats it. Rule: a target that compares the native extension with Python
fails where the extension is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import cache
from random import SystemRandom
from typing import Any, TypeVar

from hypothesis import HealthCheck, seed, settings

from coordwire._speedups import native

ROUND = 300
"""Examples between two looks at the clock."""

F = TypeVar("F", bound=Callable[..., Any])


def compares_native(fuzz: F) -> F:
    """Mark a target that has nothing to compare where the native extension is missing."""
    fuzz.compares_native = True  # type: ignore[attr-defined]
    return fuzz


def main(
    fuzz: Callable[..., Any], arguments: list[str] | None = None, *, examples: int = ROUND, cases: int = 1
) -> None:
    """Run `fuzz`, a function under `given`, as the command line says, and print how many cases it had.

    examples: between two looks at the clock; cases: in each example.
    """
    name = fuzz.__module__ if fuzz.__module__ != "__main__" else sys.modules["__main__"].__spec__.name  # type: ignore[union-attr]
    parser = argparse.ArgumentParser(description=f"Fuzz {name}.")
    parser.add_argument("--examples", type=int, help="how many inputs, of a round with --seconds (10,000)")
    parser.add_argument("--seconds", type=float, help="for how long, in rounds")
    parser.add_argument("--seed", type=int, help="of the first round (default: a random one)")
    options = parser.parse_args(arguments)
    if native is None and getattr(fuzz, "compares_native", False):
        raise SystemExit(f"{name} compares the native extension, which is not there")
    a_round = options.examples or (10_000 if options.seconds is None else examples)
    limited = with_examples(fuzz, a_round)
    first = current = SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    print(f"{name}: seed {first}", flush=True)
    start = time.monotonic()
    while current == first or (options.seconds is not None and time.monotonic() - start < options.seconds):
        try:
            seed(current)(limited)()
        except BaseException:
            print(f"repeat it: python -m {name} --seed {current} --examples {a_round}", file=sys.stderr)
            raise
        current += 1
    count = (current - first) * a_round * cases
    print(f"nothing found in {time.monotonic() - start:.0f} s, {count:,} cases")


@cache
def with_examples(fuzz: Callable[..., Any], examples: int) -> Callable[..., Any]:
    """The target with so many examples; Hypothesis lets settings be given to a function only once."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=settings().derandomize,  # of the tests' profile
        database=None,
        suppress_health_check=list(HealthCheck),
    )(fuzz)
