"""`kafka_simulation`: a test that runs in many simulated worlds, one a seed.

    @kafka_simulation(seeds=200, faults="any", topics={"orders": 4})
    async def test_every_order_is_booked_once(kafka, world): ...

Strategy: the decorated test is a plain function, whose parameters are those of the test without `kafka` and
`world`, so that pytest gives it its fixtures. All seeds run; of the failures with one cause the first is
shrunk and reported. Rules: the order of hashes belongs to a seed, so each hundred seeds need a process of
their own. The pytest plugin starts these; a plain call runs in the process that there is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from coordwire.broker import BrokerConfig
from coordwire.codec.names import suggestion
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation.checkers import CHECKERS, Checker
from coordwire.testing.simulation.faults import DrawnFaults
from coordwire.testing.simulation.kafka import SimulatedKafka
from coordwire.testing.simulation.report import report_of
from coordwire.testing.simulation.runs import (
    Nondeterminism,
    Simulation,
    hash_seed_of,
    is_hash_seed_of,
    read_faults,
)
from coordwire.testing.simulation.summary import RunSummary
from coordwire.testing.simulation.surroundings import EXITS, Exit
from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["FIXTURE", "RunOptions", "SimulationFailed", "kafka_simulation"]

FIXTURE = "kafka_simulation_options"
"""The fixture by which the pytest plugin gives a test its options."""

_Function = Callable[..., Coroutine[Any, Any, object] | None]
"""None is what `@given` declares."""


class SimulationFailed(AssertionError):
    """A seed has failed. The text is the report."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a decorated test runs. seeds: instead of its own; faults: a plan instead of its own; repeat: how
    many seeds run twice, instead of its own.

    folder: where the log and the capture of a failed seed go; command: which runs a seed again, without its
    number. run_elsewhere: runs seeds in a process that has their order of hashes; None to run all here; jobs:
    how many of these at once. deliver: takes the summary, instead of a failure, for the process that has
    started this one. is_debugged: the first failure is raised with the frames of the test's own code. story:
    the lines of a timeline; width: columns of what is shown of them and of the log. code: a folder of the
    repository that is tested.
    """

    seeds: Sequence[int] | None = None
    faults: str | None = None
    repeat: int | None = None
    folder: Path | None = None
    command: str = ""
    run_elsewhere: Callable[[Sequence[int], int], RunSummary] | None = None
    jobs: int = 1
    deliver: Callable[[RunSummary], None] | None = None
    is_debugged: bool = False
    story: Callable[[list[Any]], Iterable[str]] | None = None
    width: int = 110
    code: Path | None = None


def kafka_simulation(
    *,
    seeds: int | Iterable[int] = 100,
    faults: str | Iterable[str] | DrawnFaults | Sequence[PlannedFault] | None = "any",
    until: float = 60.0,
    most: int = 8,
    nodes: int = 3,
    allow: Iterable[Exit] = (),
    checkers: Iterable[type[Checker]] = (),
    without: Iterable[type[Checker]] = (),
    limit: float = 86_400.0,
    cooldown: float | None = None,
    known: Iterable[str] = (),
    reorder: int = 0,
    repeat: int = 1,
    **settings: Any,
) -> Callable[[_Function], Callable[..., None]]:
    """A decorator for tests that take `kafka` and `world`.

    seeds: their number, or themselves. faults: "any", kinds of `KINDS`, a plan as text, or None. until:
    seconds, when drawn faults are over; most: the most of them. nodes: of the broker. allow: ways out of the
    world. checkers: more of them; without: built-in ones that are not wanted. limit: seconds that a world may
    take; cooldown: those after the test until its processes get SIGTERM, or None for as long as something is
    under way: until 30 s without an event, at most 120. known: failures that are none, as
    patterns of their reasons with `*`; one that occurs in no seed fails the test. reorder: how
    many orders between steps of tasks a mistake needs at most that is looked for beyond asyncio's own order;
    0 keeps that. repeat: how many seeds run
    twice, to find what is not deterministic. settings: those of the fixture `kafka`, such as `topics`; the
    broker has Kafka's own defaults, as time costs nothing.

    Raises `ValueError`, `TypeError` and `Malformed` for wrong arguments.
    """
    numbers = _seeds(seeds)
    for name, value, least in (("nodes", nodes, 1), ("reorder", reorder, 0), ("repeat", repeat, 0)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"expected {name} to be a whole number of at least {least}, got {value!r}")
    if not limit > 0:
        raise ValueError(f"expected a limit of more than 0 s, got {limit!r}")
    if cooldown is not None and not 0 <= cooldown < limit:
        raise ValueError(f"expected a cooldown of at least 0 s, and less than the limit, got {cooldown!r}")
    if isinstance(known, str):
        raise TypeError(f"expected known failures as patterns, got the text {known!r}")
    patterns = tuple(known)
    _check_settings(settings)
    plan = read_faults(faults, until=until, most=most)
    ways = tuple(allow)
    for way in ways:
        if way not in EXITS:
            hint = suggestion(way, EXITS)
            raise ValueError(f"expected ways out of {', '.join(EXITS)}, got {way!r}{hint}")
    unwanted = _checkers("without", without)
    for checker in unwanted:
        if checker not in CHECKERS:
            raise ValueError(f"expected checkers that are built in, got {checker.__name__}")
    all_checkers = tuple(
        checker
        for checker in dict.fromkeys((*CHECKERS, *_checkers("checkers", checkers)))
        if checker not in unwanted
    )

    def decorate(function: _Function) -> Callable[..., None]:
        drawn_values = None
        if getattr(function, "is_hypothesis_test", False):
            from coordwire.testing.simulation.given import DrawnValues  # Hypothesis need not be installed

            drawn_values = DrawnValues(function)
            function = drawn_values.function
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"expected a coroutine function (async def), got {function!r}")
        parameters = inspect.signature(function).parameters
        for name in ("kafka", "world"):
            if name not in parameters:
                raise TypeError(f"expected {function.__name__} to have a parameter {name}")

        @functools.wraps(function)
        def run_all(**fixtures: Any) -> None:
            options: RunOptions = fixtures.pop(FIXTURE, None) or RunOptions()
            if options.code is None:
                options = replace(options, code=Path(inspect.getfile(function)).parent)

            async def test(kafka: SimulatedKafka, world: SimulatedWorld, **values: Any) -> None:
                await function(kafka=kafka, world=world, **fixtures, **values)

            simulation = Simulation(
                test=test,
                faults=plan if options.faults is None else read_faults(options.faults),
                nodes=nodes,
                settings=settings,
                allow=ways,
                checkers=all_checkers,
                limit=limit,
                cooldown=cooldown,
                reorder=reorder,
                drawn_values=drawn_values,
            )
            summary = _run(
                simulation,
                numbers if options.seeds is None else options.seeds,
                repeat if options.repeat is None else options.repeat,
                patterns,
                options,
            )
            if options.deliver is not None:
                options.deliver(summary)
                return
            print(summary)
            is_whole = options.seeds is None and options.faults is None
            if failures := summary.failures(patterns, is_whole=is_whole):
                raise SimulationFailed("\n\n\n".join(failures))

        filled = {"kafka", "world", *(() if drawn_values is None else drawn_values.names)}
        fixtures_wanted = [parameter for name, parameter in parameters.items() if name not in filled]
        own = inspect.Parameter(FIXTURE, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run_all.__signature__ = inspect.Signature([own, *fixtures_wanted])  # type: ignore[attr-defined]
        return run_all

    return decorate


def _check_settings(settings: Iterable[str]) -> None:
    """Refuse a name that is neither an argument here nor a setting of the fixture."""
    known = {field.name for field in fields(BrokerConfig)} | {
        "topics",
        "config",
        "data",
        "kafka_defaults",
        "tls",
    }
    for name in settings:
        if name not in known:
            own = [*inspect.signature(kafka_simulation).parameters]
            hint = suggestion(name, own) or suggestion(name, known)
            raise TypeError(f"expected an argument of kafka_simulation or a setting, got {name!r}{hint}")


def _seeds(seeds: int | Iterable[int]) -> Sequence[int]:
    numbers = range(seeds) if isinstance(seeds, int) else list(seeds)
    for number in numbers if isinstance(numbers, list) else ():
        if not isinstance(number, int) or number < 0:
            raise ValueError(f"expected seeds of at least 0, got {number!r}")
    if not numbers:
        raise ValueError(f"expected at least one seed, got {seeds!r}")
    return numbers


def _checkers(name: str, classes: Iterable[type[Checker]]) -> tuple[type[Checker], ...]:
    if isinstance(classes, Iterable):
        classes = tuple(classes)
        if all(isinstance(checker, type) and issubclass(checker, Checker) for checker in classes):
            return classes
    raise TypeError(f"expected {name} to be subclasses of Checker, got {classes!r}")


def _run(
    simulation: Simulation, seeds: Sequence[int], repeat: int, known: Sequence[str], options: RunOptions
) -> RunSummary:
    """Run all seeds."""
    summary = RunSummary()
    elsewhere: list[tuple[Sequence[int], int]] = []
    for block in _blocks(seeds, options.jobs):
        twice = min(repeat, len(block))
        repeat -= twice
        if options.run_elsewhere is None or (options.jobs == 1 and is_hash_seed_of(block[0])):
            _run_block(simulation, block, twice, known, options, summary)
        else:
            elsewhere.append((block, twice))
    if options.run_elsewhere is not None:
        with ThreadPoolExecutor(options.jobs) as pool:
            for part in [pool.submit(options.run_elsewhere, *block) for block in elsewhere]:
                summary.add(part.result())
    return summary


def _run_block(
    simulation: Simulation,
    block: Sequence[int],
    repeat: int,
    known: Sequence[str],
    options: RunOptions,
    summary: RunSummary,
) -> None:
    for number, seed in enumerate(block):
        try:
            outcome = simulation.check(seed) if number < repeat else simulation.run(seed)
        except Nondeterminism as error:
            summary.seeds += 1
            summary.failed.setdefault("Nondeterminism", []).append(seed)
            report = f"seed {seed} fails: Nondeterminism\n\n{error}"
            summary.reports.setdefault("Nondeterminism", report)
            continue
        if summary.note(outcome, known):
            shrunk = simulation.shrink(outcome)
            report = summary.reports[outcome.cause] = report_of(outcome, shrunk, options)
            if options.is_debugged:
                debugged = replace(simulation, faults=shrunk.plan).run(seed, keep_frames=True)
                frames = None if debugged.failure is None else debugged.failure.__traceback__
                raise SimulationFailed(report).with_traceback(frames)


def _blocks(seeds: Iterable[int], jobs: int) -> list[list[int]]:
    """The seeds by the process that they need, in parts for so many jobs."""
    blocks: dict[int, list[int]] = {}
    for seed in seeds:
        blocks.setdefault(hash_seed_of(seed), []).append(seed)
    size = -(-sum(map(len, blocks.values())) // jobs)
    return [block[at : at + size] for block in blocks.values() for at in range(0, len(block), size)]
