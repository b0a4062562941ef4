"""The tests of mutants, each in a process of its own.

Strategy: one process, the server, has pytest collect all tests at once, and forks for each mutant: the child
gives the function that the mutant changes its other code, and runs the test until it fails. Whatever is not
found so runs again, in a process that has imported nothing of `coordwire`, and that imports the module with
the other text: a mutant of a constant or a class, and one that is in effect while modules are imported.
Rules: a test that fails, or is skipped, without a mutant finds none. A test finds a mutant by failing, or by
taking much longer than without it, which is told apart. A mutant that cannot be imported is none.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from enum import StrEnum
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, TextIO

from tests.designs.mutated_code import Mutant, changed_code, mutated, path_of
from tests.designs.seeds import ROOT, TESTS

if TYPE_CHECKING:
    import pytest

CONTROL_S = 300
"""The longest that a test may take without a mutant."""

MORE_S = 10
"""With a mutant a test has as long as ten times without it, and this, in seconds of the processor; and three
times as long by the clock."""

COLD_S = 120
"""What a process has that imports all modules."""

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-p", "no:faulthandler"]


class Outcome(StrEnum):
    FAILED = "failed"
    LATE = "late"
    PASSED = "passed"
    """The test does not find the mutant."""
    UNFIT = "unfit"
    """The test fails, or is skipped, without any mutant."""
    UNKNOWN = "unknown"


FOUND = (Outcome.FAILED, Outcome.LATE)


def outcome(status: int) -> Outcome:
    """What a child ended with."""
    code = os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGALRM, -signal.SIGPROF):
        return Outcome.LATE
    return {0: Outcome.PASSED, 1: Outcome.FAILED}.get(code, Outcome.UNKNOWN)


def start(run: Callable[[], int], processor_s: float) -> int:
    """Call a function in a child, which ends with what it returns, or by a signal when it takes too long.
    Returns the child's number."""
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        signal.setitimer(signal.ITIMER_PROF, processor_s)
        signal.setitimer(signal.ITIMER_REAL, 3 * processor_s)
        status = run()
    finally:
        sys.stderr.flush()
        os._exit(status)


def run(chosen: Sequence[Mutant], jobs: int = 1) -> Iterator[tuple[Mutant, Outcome]]:
    """Each mutant and what its test does, in the order in which they end. jobs: how many processes at a
    time."""
    for name in ("construct", "hypothesis", "pytest"):
        import_module(name)  # once for all of them
    assert "coordwire" not in sys.modules  # what has been imported is not imported with another text
    again = []
    for number, result in _serve(chosen, jobs):
        if result in (Outcome.PASSED, Outcome.UNKNOWN):
            again.append(chosen[number])
        else:
            yield chosen[number], result
    yield from _run_cold(again, jobs)


# --- the server ---


def _serve(chosen: Sequence[Mutant], jobs: int) -> Iterator[tuple[int, Outcome]]:
    if not chosen:
        return
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(reading)
        _collect(chosen, jobs, writing)
    os.close(writing)
    with open(reading) as lines:
        for line in lines:
            number, _, result = line.strip().partition(" ")
            yield int(number), Outcome(result)
    if os.waitpid(child, 0)[1]:
        raise RuntimeError("the tests were not collected")


def _collect(chosen: Sequence[Mutant], jobs: int, writing: int) -> None:
    output, status = io.StringIO(), 3
    try:
        import pytest

        with redirect_stdout(output), redirect_stderr(output), open(writing, "w") as results:
            server = _Server(chosen, jobs, results)
            tests = sorted({TESTS + mutant.test for mutant in chosen})
            status = int(pytest.main([*OPTIONS, "--capture=sys", *tests], plugins=[server]))
        if status:
            print(output.getvalue()[-2000:], file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(status)


class _Server:
    """A plugin of pytest that runs mutants in place of the tests."""

    def __init__(self, chosen: Sequence[Mutant], jobs: int, results: TextIO) -> None:
        self.chosen, self.jobs, self.results = chosen, jobs, results
        self.of_test: defaultdict[str, list[int]] = defaultdict(list)
        for number, mutant in enumerate(chosen):
            self.of_test[TESTS + mutant.test].append(number)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items: defaultdict[str, list[pytest.Item]] = defaultdict(list)
        for item in session.items:
            self.items[item.nodeid.partition("[")[0]].append(item)
        self.functions = _functions()
        gc.freeze()
        waiting: list[tuple[str, int]] = [(test, -1) for test in reversed(self.of_test)]
        running: dict[int, tuple[str, int]] = {}
        limits: dict[str, float] = {}
        while waiting or running:
            while waiting and len(running) < self.jobs:
                test, number = waiting.pop()
                child = start(partial(self.status, test, number), limits.get(test, CONTROL_S))
                running[child] = test, number
            child, status, usage = os.wait3(0)
            test, number = running.pop(child)
            result = outcome(status)
            if number >= 0:
                self.tell(number, result)
            elif result is Outcome.PASSED:
                limits[test] = MORE_S + 10 * (usage.ru_utime + usage.ru_stime)
                waiting += [(test, one) for one in reversed(self.of_test[test])]
            else:
                for one in self.of_test[test]:
                    self.tell(one, Outcome.UNFIT)
        return True

    def tell(self, number: int, result: Outcome) -> None:
        print(number, result, file=self.results, flush=True)

    def status(self, test: str, number: int) -> int:
        """In a child: run a test with a mutant, or without one. Returns 0 if it passes, 1 if it fails."""
        items = self.items[test]
        if number < 0:
            return int(not items or not _passes(items))
        self.change(self.chosen[number])
        return int(not _passes(items))

    def change(self, mutant: Mutant) -> None:
        """Give a function its other code. Raises `LookupError` where that is not enough."""
        changed = changed_code(mutant)
        functions = changed and self.functions[str(path_of(mutant.code)), changed[1].co_qualname, changed[0]]
        if not changed or not functions:
            raise LookupError(str(mutant))
        for function in functions:
            function.__code__ = changed[1]


def _functions() -> defaultdict[tuple[str, str, int], list[FunctionType]]:
    """All functions of `coordwire`, by file, name and line."""
    result: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename.startswith(str(ROOT / "coordwire")):
            code = one.__code__
            result[code.co_filename, code.co_qualname, code.co_firstlineno].append(one)
    return result


def _passes(items: Sequence[pytest.Item]) -> bool:
    """Run tests until one fails."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.testsfailed:
            return False
    return True


# --- a process that has imported nothing ---


class _Finder(MetaPathFinder, Loader):
    """Imports one module from another text."""

    def __init__(self, mutant: Mutant) -> None:
        self.path, self.text = path_of(mutant.code), mutated(mutant)
        self.name = "coordwire." + mutant.code.partition(":")[0]

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        return spec_from_file_location(fullname, self.path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)


def _status_cold(mutant: Mutant) -> int:
    import pytest

    sys.meta_path.insert(0, _Finder(mutant))
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        status = int(pytest.main([*OPTIONS, "-x", TESTS + mutant.test]))
    if status not in (0, 1):
        print(output.getvalue()[-2000:], file=sys.stderr)
    return status


def _run_cold(chosen: Sequence[Mutant], jobs: int) -> Iterator[tuple[Mutant, Outcome]]:
    running: dict[int, Mutant] = {}
    waiting = list(reversed(chosen))
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[start(partial(_status_cold, mutant), COLD_S)] = mutant
        child, status = os.wait()
        yield running.pop(child), outcome(status)
