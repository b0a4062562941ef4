"""Mutants of the demands: small changes of the code, each of which breaks a row that its test holds.

    python -m tests.designs.mutants [SEED|WORDS]     run the mutants of all rows, of one document, or of the
                                                     rows that begin so (minutes)
    python -m tests.designs.mutants --part I/N       one in N of them, from the I-th on
    python -m tests.designs.mutants --anew           those too that the ledger has as found

Strategy: a row's mutant is a text of its code, and the text that stands there instead;
`tests/designs/mutant_runs.py` runs the tests. What a test found is kept in a ledger outside of git, so that a
run that was stopped goes on, and a run after a change of a row, a code or a test runs what that changed. A
run of all rows that leaves none is noted for the page, with the date of its oldest result.
Rules: the I-th mutant is of the row's I-th code and for its I-th test, or for the last one; its text is in
that code once, and alone there; a mutant of several rows runs once; survivors are not kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterable
from datetime import date

from tests.designs.mutant_runs import FOUND, Outcome, run
from tests.designs.mutated_code import Mutant, mutants, mutated, path_of
from tests.designs.seeds import LAST_RUN, ROOT, TESTS, read

LEDGER = ROOT / "mutants" / "demands.jsonl"
"""A line for each mutant that a test found: its key, how and when."""

PROGRESS_S = 10
"""Between two lines of progress; a terminal shows one line, and each mutant in it."""


# --- the ledger ---


def key(mutant: Mutant) -> str:
    """What a result holds for: the row's own texts, the code's file and the test's."""
    test = ROOT / TESTS / mutant.test.partition("::")[0]
    texts = (
        mutant.code,
        mutant.test,
        mutant.old,
        mutant.new,
        path_of(mutant.code).read_text(),
        test.read_text(),
    )
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def kept() -> dict[str, tuple[Outcome, str]]:
    """How each mutant of the ledger was found, and on which day, by its key."""
    results = {}
    for line in LEDGER.read_text().splitlines() if LEDGER.exists() else ():
        try:
            one = json.loads(line)
        except ValueError:
            continue  # a run was stopped while it wrote this
        results[one["key"]] = Outcome(one["outcome"]), one["date"]
    return results


def keep(mutant_key: str, outcome: Outcome) -> None:
    LEDGER.parent.mkdir(exist_ok=True)
    line = json.dumps({"key": mutant_key, "outcome": outcome, "date": date.today().isoformat()})
    with LEDGER.open("a") as file:
        file.write(line + "\n")


# --- the command ---


class Progress:
    """What a run says of itself: one line that changes at a terminal, one every ten seconds in a file."""

    def __init__(self, count: int) -> None:
        self.count, self.done, self.left = count, 0, 0
        self.began = self.said = time.monotonic()

    def step(self, is_found: bool) -> None:
        self.done += 1
        self.left += not is_found
        now, is_terminal = time.monotonic(), sys.stdout.isatty()
        if is_terminal or now - self.said >= PROGRESS_S or self.done == self.count:
            self.said = now
            end = "\n" if not is_terminal or self.done == self.count else ""
            text = f"{self.done:,} of {self.count:,} run, {self.left:,} not found, {now - self.began:.0f} s"
            print(("\r" if is_terminal else "") + text, end=end, flush=True)


def are_there(chosen: Iterable[Mutant]) -> list[Mutant]:
    """The mutants whose code has their text; prints of the others why not."""
    there = []
    for mutant in chosen:
        try:
            mutated(mutant)
        except LookupError as error:
            print(f"no mutant: {error}", flush=True)
        else:
            there.append(mutant)
    return there


def why(mutant: Mutant, outcome: Outcome) -> str:
    """A line about a mutant that was not found, or that took too long."""
    return {
        Outcome.LATE: f"found by time alone by {mutant.test}: {mutant}",
        Outcome.PASSED: f"not found by {mutant.test}: {mutant}",
        Outcome.UNFIT: f"{mutant.test} fails without a mutant: {mutant}",
        Outcome.UNKNOWN: f"{mutant.test} did not run: {mutant}",
    }[outcome]


def part(text: str) -> tuple[int, int]:
    """I and N."""
    if not re.fullmatch(r"[0-9]+/[1-9][0-9]*", text):
        raise ValueError(text)
    number, _, parts = text.partition("/")
    return int(number), int(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="?", default="")
    parser.add_argument("--part", type=part, default=(0, 1), metavar="I/N")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--anew", action="store_true")
    options = parser.parse_args()
    number, parts = options.part
    demands = [one for one in read()[1] if options.rows in one.seed or one.words.startswith(options.rows)]
    chosen = list(mutants(demands))[number::parts]
    there = are_there(chosen)
    by_key = {key(mutant): mutant for mutant in there}
    days = {} if options.anew else {one: day for one, (_, day) in kept().items() if one in by_key}
    waiting = {mutant: one for one, mutant in by_key.items() if one not in days}
    print(f"{len(chosen):,} mutants, {len(by_key):,} of them different; ", end="")
    print(f"{len(days):,} in the ledger as found; {len(waiting):,} to run", flush=True)
    progress = Progress(len(waiting))
    for mutant, outcome in run(list(waiting), options.jobs):
        if outcome in FOUND:
            keep(waiting[mutant], outcome)
            days[waiting[mutant]] = date.today().isoformat()
        if outcome is not Outcome.FAILED:
            print("\n" * sys.stdout.isatty() + why(mutant, outcome), flush=True)
        progress.step(outcome in FOUND)
    found = sum(key(mutant) in days for mutant in there)
    print(f"{found:,} of {len(chosen):,} mutants are found by their tests")
    if found < len(chosen) or not chosen:
        raise SystemExit(1)
    if not options.rows and parts == 1:
        LAST_RUN.write_text(f"{min(days.values())} {len(chosen)}\n")


if __name__ == "__main__":
    main()
