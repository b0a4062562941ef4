"""pytest's loop over changes, a plugin: `pytest -p tests.c_mutants.runs`, which COORDWIRE_MUTANTS configures.

Strategy: the tests run once as they are, and of each is kept which changes it reached and how long it took.
Then the process is forked for each change, and the child runs the tests that reach it, the quickest first,
until one fails. Rules: a child has SECONDS of processor time; tests beyond MOST are left out; Hypothesis
shrinks nothing.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

SECONDS, MOST = 15, 100

Verdict = str
"""`killed`, `crash`, `timeout`, `survived`, or `unreached`."""


def pytest_collection() -> None:
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", settings.get_profile("quick"), phases=phases)
    settings.load_profile("mutants")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    from coordwire._speedups import native

    assert native is not None
    task = json.loads(Path(os.environ["COORDWIRE_MUTANTS"]).read_text())
    library = ctypes.CDLL(native.__file__)
    chosen = ctypes.c_int.in_dll(library, "coordwire_mutant")
    reached = (ctypes.c_ubyte * task["room"]).in_dll(library, "coordwire_mutants_reached")
    by_change = _reach(session, reached)
    verdicts: dict[int, Verdict] = {}
    started = time.monotonic()
    for done, number in enumerate(task["numbers"]):
        if time.monotonic() - started > task["seconds"]:
            break
        tests = sorted(by_change.get(number, []), key=lambda one: one[0])
        verdicts[number] = (
            _verdict([item for _, item in tests[:MOST]], chosen, number) if tests else "unreached"
        )
        if done % 5 == 0:
            Path(task["results"]).write_text(json.dumps(verdicts))
    Path(task["results"]).write_text(json.dumps(verdicts))
    return True


def _reach(session: pytest.Session, reached: Any) -> dict[int, list[tuple[float, pytest.Item]]]:
    """The tests that reach each change, with their seconds."""
    results: dict[int, list[tuple[float, pytest.Item]]] = {}
    for item in session.items:
        ctypes.memset(reached, 0, len(reached))
        start = time.monotonic()
        reports = runtestprotocol(item, log=False, nextitem=None)
        seconds = time.monotonic() - start
        if any(report.failed for report in reports):
            print(f"{item.nodeid} fails without a change, and judges none", file=sys.stderr, flush=True)
            continue
        for number, flag in enumerate(bytes(reached)):
            if flag:
                results.setdefault(number, []).append((seconds, item))
    return results


def _verdict(items: list[pytest.Item], chosen: Any, number: int) -> Verdict:
    """How a child fares that makes the change."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        chosen.value = number
        for item in items:
            try:
                failed = any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))
            except BaseException:
                failed = True
            if failed:
                os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "timeout" if os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL) else "crash"
    return "killed" if os.WEXITSTATUS(status) else "survived"
