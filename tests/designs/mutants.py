"""Mutants of the demands: small changes of the code, each of which breaks a row that its test holds.

    python -m tests.designs.mutants [SEED|WORDS]     run the mutants of all rows, of one document, or of the
                                                     rows that begin so (minutes)
    python -m tests.designs.mutants --part I/N       one in N of them, from the I-th on

Strategy: a row's mutant is a text of its code, and the text that stands there instead. A process that has
imported pytest, and nothing of `coordwire`, forks for each mutant; there the module is imported with the
other text, and the row's test runs. A run of all that finds all is noted for the page, with its date.
Rules: the I-th mutant is of the row's I-th code and for its I-th test, or for the last one; its text is in
that code once, and alone there; a test finds a mutant by failing, or by waiting for what does not happen; a
mutant that cannot be imported is none.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from tests.designs.seeds import LAST_RUN, ROOT, TESTS, Demand, read

LONGEST_S = 60
"""A test that lasts longer with a mutant has found it."""

FAILED = 1
"""What pytest ends with when a test failed, and nothing else went wrong."""

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that breaks a demand. code: where it is, as in the row; old, new: the texts; test: which one
    has to fail."""

    demand: Demand
    code: str
    test: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.demand.seed} “{self.demand.words}”: {self.old!r} -> {self.new!r} in {self.code}"


def mutants(demands: Sequence[Demand]) -> Iterator[Mutant]:
    """Those of all rows, in their order."""
    for demand in demands:
        for number, (old, new) in enumerate(demand.mutants):
            code = demand.code[min(number, len(demand.code) - 1)]
            yield Mutant(demand, code, demand.tests[min(number, len(demand.tests) - 1)], old, new)


# --- the text of a module with a mutant ---


def path_of(code: str) -> Path:
    """The file of a row's code."""
    path = ROOT.joinpath("coordwire", *code.partition(":")[0].split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _parsed(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text()
    return text, ast.parse(text)


def _named(body: Sequence[ast.stmt], name: str) -> Definition:
    for one in reversed(body):  # after its overloads
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", one)]
        names = [part for target in targets for part in getattr(target, "elts", [target])]
        if isinstance(one, Definition) and name in [
            getattr(part, "id", getattr(part, "name", "")) for part in names
        ]:
            return one
    raise LookupError(f"no definition of {name}")


def span(code: str) -> tuple[int, int]:
    """Where the definition of a row's code begins and ends in its file, in characters. Raises `LookupError`
    where the file does not define it."""
    text, tree = _parsed(path_of(code))
    body: Sequence[ast.stmt] = tree.body
    for part in code.partition(":")[2].split("."):
        found = _named(body, part)
        body = getattr(found, "body", ())
    lines = text.splitlines(keepends=True)
    first = min([found.lineno, *(one.lineno for one in getattr(found, "decorator_list", ()))])
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[: found.end_lineno]))


def mutated(mutant: Mutant) -> str:
    """The text of the module. Raises `LookupError` where the code does not have the old text exactly once."""
    begin, end = span(mutant.code)
    text = _parsed(path_of(mutant.code))[0]
    if (count := text.count(mutant.old, begin, end)) != 1:
        raise LookupError(f"{count} times in its code: {mutant}")
    at = text.index(mutant.old, begin)
    return text[:at] + mutant.new + text[at + len(mutant.old) :]


def is_there(mutant: Mutant) -> bool:
    """Whether the code has its text; prints why not."""
    try:
        mutated(mutant)
    except LookupError as error:
        print(f"no mutant: {error}", flush=True)
        return False
    return True


class _Finder(MetaPathFinder, Loader):
    """Imports one module from another text."""

    def __init__(self, mutant: Mutant) -> None:
        self.path, self.text = path_of(mutant.code), mutated(mutant)
        module = "coordwire." + mutant.code.partition(":")[0]
        self.name = module

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


# --- the tests with a mutant ---


def start(mutant: Mutant) -> int:
    """Run a mutant's test in a process of its own, whose number is returned."""
    child = os.fork()
    if child:
        return child
    status = 3
    signal.alarm(LONGEST_S)
    try:
        import pytest

        sys.meta_path.insert(0, _Finder(mutant))
        output = io.StringIO()
        with redirect_stdout(output), redirect_stderr(output):
            options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
            status = int(pytest.main([*options, TESTS + mutant.test]))
        if status not in (0, FAILED):
            print(output.getvalue()[-2000:], file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(status)


def is_found(status: int) -> bool:
    """Whether a test found its mutant, by what its process ended with."""
    return os.waitstatus_to_exitcode(status) in (FAILED, -signal.SIGALRM)


def survivors(chosen: Sequence[Mutant], jobs: int = 1) -> Iterator[Mutant]:
    """The mutants whose test does not find them. jobs: how many processes at a time."""
    for name in ("construct", "hypothesis", "pytest"):
        import_module(name)  # once for all of them
    assert "coordwire" not in sys.modules  # what has been imported is not imported with another text
    running: dict[int, Mutant] = {}
    waiting = list(reversed(chosen))
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[start(mutant)] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        if not is_found(status):
            yield mutant


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
    options = parser.parse_args()
    number, parts = options.part
    demands = [one for one in read()[1] if options.rows in one.seed or one.words.startswith(options.rows)]
    chosen = list(mutants(demands))[number::parts]
    there = [mutant for mutant in chosen if is_there(mutant)]
    kept = len(chosen) - len(there)
    for mutant in survivors(there, options.jobs):
        kept += 1
        print(f"not found by {mutant.test}: {mutant}", flush=True)
    print(f"{len(chosen) - kept} of {len(chosen)} mutants are found by their tests")
    if kept or not chosen:
        raise SystemExit(1)
    if not options.rows and parts == 1:
        LAST_RUN.write_text(f"{date.today().isoformat()} {len(chosen)}\n")


if __name__ == "__main__":
    main()
