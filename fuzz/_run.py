"""Runs one target: `python -m fuzz.json_form [--examples N | --seconds N]`.

Strategy: one run of Hypothesis, or rounds until the time is up; what fails is shrunk, shown, and kept in
`.hypothesis/`, from where the next run starts. Ends with Hypothesis's traceback at the first failure.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

ROUND = 300
"""Examples between two looks at the clock."""


def main(
    fuzz: Callable[..., Any], arguments: list[str] | None = None, *, examples: int = ROUND, cases: int = 1
) -> None:
    """Run `fuzz`, a function under `given`, as the command line says, and print how many cases it had.

    examples: between two looks at the clock; cases: in each example.
    """
    parser = argparse.ArgumentParser(description=f"Fuzz {fuzz.__module__}.")
    parser.add_argument("--examples", type=int, default=10_000, help="how many inputs (default: %(default)s)")
    parser.add_argument("--seconds", type=float, help="for how long instead")
    options = parser.parse_args(arguments)
    a_round = options.examples if options.seconds is None else examples
    limited = with_examples(fuzz, a_round)
    start = time.monotonic()
    limited()
    rounds = 1
    while options.seconds is not None and time.monotonic() - start < options.seconds:
        limited()
        rounds += 1
    print(f"nothing found in {time.monotonic() - start:.0f} s, {rounds * a_round * cases:,} cases")


@cache
def with_examples(fuzz: Callable[..., Any], examples: int) -> Callable[..., Any]:
    """The target with so many examples; Hypothesis lets settings be given to a function only once."""
    repeatable = settings().derandomize  # the tests' profile; from the command line every run is another
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=repeatable,
        database=None if repeatable else DirectoryBasedExampleDatabase(".hypothesis/examples"),
        suppress_health_check=list(HealthCheck),
    )(fuzz)
