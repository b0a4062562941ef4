"""Runs of a test in worlds: a seed, many seeds, a seed twice, and a plan of faults that is shrunk.

Strategy: a failure is shrunk by running its seed again with fewer faults, then with shorter and earlier ones,
as long as it fails in the same way. Rules: a world is gone before the next begins, so that no finalizer of
one runs in another. Two runs of one seed have equal traces, or `Nondeterminism` names the first difference.
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import dropwhile, zip_longest
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from coordwire.broker.harness import Traffic
from coordwire.errors import CoordwireError
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation.asserted import assertion_text
from coordwire.testing.simulation.checkers import CHECKERS, Checker, Violation
from coordwire.testing.simulation.client_faults import client_fault
from coordwire.testing.simulation.faults import DrawnFaults, meaning_of, parse_plan
from coordwire.testing.simulation.surroundings import entered, installed, is_outside, unheard
from coordwire.testing.simulation.trace import without_addresses
from coordwire.testing.simulation.world import SimulatedWorld, Test

if TYPE_CHECKING:
    from coordwire.testing.simulation.given import DrawnValues

__all__ = [
    "HASH_BLOCK",
    "Nondeterminism",
    "RunOutcome",
    "Simulation",
    "command_of_seed",
    "hash_seed_of",
    "is_hash_seed_of",
    "read_faults",
]

HASH_BLOCK = 100
"""So many seeds share one order of hashes: that of Python's strings is fixed when a process begins."""

_SHRINKS = 120
"""How many runs shrinking may take."""

_PLAN_WIDTH = 30
"""Columns of a plan's faults, beside which their meaning is."""

_HERE = str(Path(__file__).parent)
_DURATIONS_MS = (300, 1_000, 3_000, 7_000, 15_000, 30_000)


class Nondeterminism(CoordwireError):
    """Two runs of one seed differ: something in them comes from outside of the world."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How a run has ended. digest: of its trace; events: in it; seconds: of virtual time; plan: the faults
    that happened; lines: the trace, if it was kept; reached: what `world.sometimes`, `always` and
    `eventually` were asked about, and whether it held.

    failure: None if all was well; calls: its traceback. log_lines, pcapng, timeline: of a run that has
    failed, the last two as functions that make them; repeated: the records that it marked as processed more
    than once; client_fault: what a client has done to cause it, if that is known; unfaulted: the reason of a
    failure without any fault, if that is another one. values: those of a test with `@given`, as lines;
    own_values: those that the seed draws, where they were shrunk. unawaited: coroutines that nothing
    awaited, where something else failed.
    """

    seed: int
    digest: str
    events: int
    seconds: float
    plan: tuple[PlannedFault, ...]
    failure: BaseException | None = None
    calls: str = ""
    log_lines: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    client_fault: str = ""
    unfaulted: str = ""
    values: tuple[str, ...] = ()
    own_values: tuple[str, ...] = ()
    unawaited: tuple[str, ...] = ()
    lines: tuple[str, ...] | None = None
    pcapng: Callable[[], bytes] | None = field(default=None, repr=False)
    timeline: Callable[[], list[Any]] | None = field(default=None, repr=False)
    reached: Mapping[str, bool] = field(default_factory=dict)

    @property
    def kind(self) -> tuple[str, ...]:
        """The kind of a failure, by which two are the same."""
        if isinstance(self.failure, Violation):
            return "Violation", self.failure.checker
        return (type(self.failure).__name__,)

    @property
    def cause(self) -> str:
        """What has failed, without what differs from seed to seed: the kind, and the line of an error."""
        *_, line = ["", *(line.strip() for line in self.calls.splitlines() if line.startswith("  File "))]
        return self.kind[-1] if isinstance(self.failure, Violation) else f"{self.kind[-1]} {line}"

    @property
    def reason(self) -> str:
        """The reason of the failure, in a line or more."""
        if isinstance(self.failure, Violation):
            return f"{self.failure.checker}: {self.failure}"
        return f"{type(self.failure).__name__}: {self.failure}"


def hash_seed_of(seed: int) -> int:
    """The PYTHONHASHSEED of a seed: a number of 32 bits, and not 0, which is for no randomness."""
    return seed // HASH_BLOCK % 0xFFFF_FFFF + 1


_NO_RANDOM_ADDRESSES = 0x0040000
"""Linux's ADDR_NO_RANDOMIZE: up to Python 3.11 the hash of None is its address."""

_LAUNCH = f"""
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).personality({_NO_RANDOM_ADDRESSES})
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def is_hash_seed_of(seed: int) -> bool:
    """Whether this process has the order of hashes of a seed."""
    if os.environ.get("PYTHONHASHSEED") != str(hash_seed_of(seed)):
        return False
    if sys.version_info >= (3, 12) or sys.platform != "linux":
        return True
    return bool(ctypes.CDLL(None).personality(0xFFFF_FFFF) & _NO_RANDOM_ADDRESSES)


def command_of_seed(seed: int, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """The command and the environment of a Python with the order of hashes of a seed."""
    environment = os.environ | {"PYTHONHASHSEED": str(hash_seed_of(seed))}
    return [sys.executable, "-c", _LAUNCH, *arguments], environment


_FaultsArgument = str | Iterable[str] | DrawnFaults | Sequence[PlannedFault] | None


def read_faults(
    faults: _FaultsArgument, *, until: float = 60.0, most: int = 8
) -> DrawnFaults | list[PlannedFault]:
    """What a test has said about faults: "any", kinds of `KINDS`, or a plan. Raises `Malformed`,
    `ValueError`, `TypeError`."""
    if faults is None:
        return []
    if isinstance(faults, DrawnFaults):
        return faults
    if isinstance(faults, str):
        if faults == "any":
            return DrawnFaults(until=until, most=most)
        is_word = faults.replace("_", "").replace("-", "").isalpha()  # a plan begins with a time
        return DrawnFaults((faults,), until, most) if is_word else parse_plan(faults)
    if not isinstance(faults, Iterable):
        raise TypeError(f"expected faults as text, kinds, a plan or None, got {faults!r}")
    elements = list(faults)
    planned = [element for element in elements if isinstance(element, PlannedFault)]
    if len(planned) == len(elements):
        return planned
    return DrawnFaults(tuple(str(element) for element in elements), until, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """A test, and the worlds that it runs in. Its arguments are those of `SimulatedWorld`.

    drawn_values: arguments of the test that seeds draw; values: these instead.
    """

    test: Test
    faults: DrawnFaults | Sequence[PlannedFault] = ()
    nodes: int = 3
    settings: Mapping[str, Any] = field(default_factory=dict)
    allow: tuple[str, ...] = ()
    checkers: tuple[type[Checker], ...] = CHECKERS
    limit: float = 86_400.0
    cooldown: float | None = None
    reorder: int = 0
    drawn_values: DrawnValues | None = None
    values: Mapping[str, Any] | None = None

    def run(self, seed: int, *, keep_trace: bool = False, keep_frames: bool = False) -> RunOutcome:
        """One run. keep_frames: the failure has those of the test's own code, for a debugger."""
        values = self.values or {}
        if self.values is None and self.drawn_values is not None:
            values = self.drawn_values.draw(seed)
        with installed():
            outcome = self._run(seed, values, keep_trace, keep_frames)
        return replace(outcome, values=tuple(f"{name} = {values[name]!r}" for name in sorted(values)))

    def _run(self, seed: int, values: Mapping[str, Any], keep_trace: bool, keep_frames: bool) -> RunOutcome:
        test = partial(self.test, **deepcopy(dict(values)))  # which may change them
        world = SimulatedWorld(
            seed,
            faults=self.faults,
            nodes=self.nodes,
            settings=self.settings,
            allow=self.allow,
            checkers=self.checkers,
            limit=self.limit,
            cooldown=self.cooldown,
            reorder=self.reorder,
            keep_trace=keep_trace,
        )
        with entered(world, seed):
            world.run(test)
        with unheard():
            outcome = _outcome_of(world, keep_frames)
            del world, test  # and what its coroutines do when they are closed
        return outcome

    def check(self, seed: int) -> RunOutcome:
        """Run a seed twice. Raises `Nondeterminism` where the runs differ."""
        first, second = self.run(seed, keep_trace=True), self.run(seed, keep_trace=True)
        for number, (first_line, second_line) in enumerate(
            zip_longest(first.lines or (), second.lines or ()), 1
        ):
            if first_line != second_line:
                raise Nondeterminism(
                    f"two runs of seed {seed} differ from event {number} on: something in them comes from "
                    f"outside of the simulated world\n  first run:  {first_line}\n  second run: {second_line}"
                )
        return replace(first, lines=None)

    def shrink(self, failed: RunOutcome, *, runs: int = _SHRINKS) -> RunOutcome:
        """The run with the fewest faults that fails in the same way, of those that were tried; then the one
        with the simplest values, of which there are twice as many tries."""
        best = self._shrink_plan(failed, runs)
        if self.drawn_values is None or self.values is not None:
            return best
        remaining = 2 * runs

        def fails(values: Mapping[str, Any]) -> bool:
            nonlocal remaining
            remaining -= 1
            return remaining >= 0 and with_plan(values).kind == failed.kind

        def with_plan(values: Mapping[str, Any]) -> RunOutcome:
            return replace(self, faults=best.plan, values=values).run(failed.seed)

        simplest = with_plan(self.drawn_values.shrink(failed.seed, fails))
        return replace(simplest, plan=best.plan, unfaulted=best.unfaulted, own_values=failed.values)

    def _shrink_plan(self, failed: RunOutcome, runs: int) -> RunOutcome:
        best = failed
        remaining = runs
        unfaulted = ""

        def try_plan(plan: Sequence[PlannedFault]) -> bool:
            nonlocal best, remaining, unfaulted
            if remaining <= 0:
                return False
            remaining -= 1
            outcome = replace(self, faults=_by_time(plan)).run(failed.seed)
            if outcome.failure is None or outcome.kind != failed.kind:
                unfaulted = outcome.reason if outcome.failure is not None and not plan else unfaulted
                return False
            best = replace(outcome, plan=_by_time(plan), unfaulted=unfaulted)
            return True

        if not failed.plan or not (try_plan([]) or try_plan(failed.plan)):
            return best
        size = max(len(best.plan) // 2, 1)
        while best.plan:
            plan = best.plan
            for at in range(0, len(plan), size):
                if try_plan([*plan[:at], *plan[at + size :]]):
                    break
            else:
                if size == 1:
                    break
                size //= 2
                continue
            size = min(size, max(len(best.plan) // 2, 1))
        for number in range(len(best.plan)):
            for duration in _DURATIONS_MS:
                fault = best.plan[number]
                if fault.duration is None or duration >= fault.duration:
                    break
                if try_plan(_with(best.plan, number, replace(fault, duration=duration))):
                    break
        for number in range(len(best.plan)):
            fault = best.plan[number]
            simpler = _simpler(fault)
            if simpler != fault:
                try_plan(_with(best.plan, number, simpler))
        return best


def _outcome_of(world: SimulatedWorld, keep_frames: bool) -> RunOutcome:
    trace, failure = world.trace, world.failure
    outcome = RunOutcome(
        world.seed,
        trace.digest,
        trace.count,
        world.now,
        _by_time(world.driver.inflicted) if hasattr(world, "driver") else (),
        lines=None if trace.lines is None else tuple(trace.lines),
        reached=world.reached,
    )
    if failure is None:
        return outcome
    if isinstance(failure, AssertionError) and not str(failure):
        text = assertion_text(failure.__traceback__, is_outside)
        failure.args = (without_addresses(text),) if text else ()
    traffic = world.kafka.traffic if hasattr(world, "kafka") else None  # which does not keep the world
    fault = client_fault(failure, traffic)  # which goes by the frames
    return replace(
        outcome,
        failure=failure,
        calls=_calls(failure, keep_frames),
        log_lines=tuple(world.log_lines),
        repeated=tuple(world.repeated),
        client_fault=fault,
        unawaited=tuple(world.unawaited),
        pcapng=None if traffic is None else traffic.pcapng,
        timeline=None if traffic is None else partial(_events, traffic, world.network.by_address),
    )


def _events(traffic: Traffic, processes: Mapping[str, str]) -> list[Any]:
    """The events of groups, whose members have the names of their processes, by address, in place of client
    ids."""
    from coordwire.timeline import timeline  # what no failure asks for is not loaded
    from coordwire.timeline.events import MemberJoined

    events: list[Any] = [*timeline(traffic.entries())]
    names = {
        event.member_id: processes.get(event.host.partition(":")[0], event.client_id)
        for event in events
        if isinstance(event, MemberJoined) and event.host is not None
    }
    return [
        replace(event, client_id=names[event.member_id])
        if hasattr(event, "client_id") and getattr(event, "member_id", None) in names
        else event
        for event in events
    ]


def _calls(failure: BaseException, keep_frames: bool) -> str:
    """The calls of a failure, which does not refer to its world any more, or only by its own frames."""
    frames = failure.__traceback__
    entries = traceback.extract_tb(failure.__traceback__)
    calls = [entry for entry in entries if not entry.filename.startswith(_HERE)]
    calls = [*dropwhile(lambda entry: not is_outside(entry.filename), calls)]
    failure.__traceback__ = failure.__context__ = failure.__cause__ = None
    if keep_frames:
        failure.__traceback__ = _own_frames(frames)
    return "".join(traceback.format_list(calls))


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package."""
    if frames is None:
        return None
    below = _own_frames(frames.tb_next)
    if frames.tb_frame.f_code.co_filename.startswith(_HERE):
        return below
    return TracebackType(below, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)


def _simpler(fault: PlannedFault) -> PlannedFault:
    """A fault at a whole second; a load without bursts, or one that is less slow."""
    if fault.kind == "load":
        return replace(fault, words=fault.words[:1])
    if fault.kind == "busy":
        return replace(fault, words=("5",))
    return replace(fault, at=max(fault.at // 1_000 * 1_000, 1_000))


def _by_time(plan: Iterable[PlannedFault]) -> tuple[PlannedFault, ...]:
    return tuple(sorted(plan, key=lambda fault: fault.at))


def _with(plan: Sequence[PlannedFault], number: int, fault: PlannedFault) -> list[PlannedFault]:
    return [*plan[:number], fault, *plan[number + 1 :]]


def plan_text(plan: Iterable[PlannedFault], indent: str = "") -> str:
    """A plan as lines, with comments that say what is not plain."""
    lines = [(str(fault), meaning_of(fault)) for fault in plan]
    width = min(max((len(text) for text, meaning in lines if meaning), default=0), _PLAN_WIDTH)
    return "".join(
        f"{indent}{f'{text:{width}}  # {meaning}' if meaning else text}\n" for text, meaning in lines
    )
