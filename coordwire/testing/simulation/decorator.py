"""`kafka_simulation`: a test that runs in many simulated worlds, one a seed.

    @kafka_simulation(seeds=200, faults="any", topics={"orders": 4})
    async def test_every_order_is_booked_once(kafka, world): ...

Strategy: the decorated test is a plain function, whose parameters are those of the test without `kafka` and
`world`, so that pytest gives it its fixtures. The seeds run one after the other until one fails; that one is
shrunk and reported. Rules: the order of hashes belongs to a seed, so each hundred seeds need a process of
their own. The pytest plugin starts these; a plain call runs in the process that there is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coordwire.designs.simulator.faults import PlannedFault
from coordwire.testing.simulation.checkers import CHECKERS, Checker
from coordwire.testing.simulation.faults import DrawnFaults
from coordwire.testing.simulation.kafka import SimulatedKafka
from coordwire.testing.simulation.runs import (
    RunOutcome,
    Simulation,
    hash_seed_of,
    is_hash_seed_of,
    plan_text,
    read_faults,
)
from coordwire.testing.simulation.surroundings import EXITS, Exit
from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["FIXTURE", "RunOptions", "SimulationFailed", "kafka_simulation"]

FIXTURE = "kafka_simulation_options"
"""The fixture by which the pytest plugin gives a test its options."""

_LOG_LINES = 60

_Function = Callable[..., Coroutine[Any, Any, object]]


class SimulationFailed(AssertionError):
    """A seed has failed. The text is the report."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a decorated test runs. seeds: instead of its own; faults: a plan instead of its own; repeat: how
    many seeds run twice, instead of its own.

    folder: where the capture of a failed seed goes; command: which runs a seed again, without its number.
    run_elsewhere: runs seeds in a process that has their order of hashes, and gives the report of a failure;
    None to run all here. story: the lines of a timeline.
    """

    seeds: Sequence[int] | None = None
    faults: str | None = None
    repeat: int | None = None
    folder: Path | None = None
    command: str = ""
    run_elsewhere: Callable[[Sequence[int], int], str | None] | None = None
    story: Callable[[list[Any]], Iterable[str]] | None = None


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
    repeat: int = 1,
    **settings: Any,
) -> Callable[[_Function], Callable[..., None]]:
    """A decorator for tests that take `kafka` and `world`.

    seeds: their number, or themselves. faults: "any", kinds of `KINDS`, a plan as text, or None. until:
    seconds, when drawn faults are over; most: the most of them. nodes: of the broker. allow: ways out of the
    world. checkers: more of them; without: built-in ones that are not wanted. limit: seconds that a world may
    take. repeat: how many seeds run twice, to find what is not deterministic. settings: those of the fixture
    `kafka`, such as `topics`; the broker has Kafka's own defaults, as time costs nothing.

    Raises `ValueError`, `TypeError` and `Malformed` for wrong arguments.
    """
    numbers = _seeds(seeds)
    for name, value, least in (("nodes", nodes, 1), ("repeat", repeat, 0)):
        if not isinstance(value, int) or value < least:
            raise ValueError(f"expected {name} to be a whole number of at least {least}, got {value!r}")
    if not limit > 0:
        raise ValueError(f"expected a limit of more than 0 s, got {limit!r}")
    plan = read_faults(faults, until=until, most=most)
    ways = tuple(allow)
    for way in ways:
        if way not in EXITS:
            raise ValueError(f"expected ways out of {', '.join(EXITS)}, got {way!r}")
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
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"expected a coroutine function, got {function!r}")
        parameters = inspect.signature(function).parameters
        for name in ("kafka", "world"):
            if name not in parameters:
                raise TypeError(f"expected {function.__name__} to have a parameter {name}")

        @functools.wraps(function)
        def run_all(**fixtures: Any) -> None:
            options: RunOptions = fixtures.pop(FIXTURE, None) or RunOptions()

            async def test(kafka: SimulatedKafka, world: SimulatedWorld) -> None:
                await function(kafka=kafka, world=world, **fixtures)

            simulation = Simulation(
                test=test,
                faults=plan if options.faults is None else read_faults(options.faults),
                nodes=nodes,
                settings=settings,
                allow=ways,
                checkers=all_checkers,
                limit=limit,
            )
            _run(
                simulation,
                numbers if options.seeds is None else options.seeds,
                repeat if options.repeat is None else options.repeat,
                options,
            )

        fixtures_wanted = [
            parameter for name, parameter in parameters.items() if name not in ("kafka", "world")
        ]
        own = inspect.Parameter(FIXTURE, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        run_all.__signature__ = inspect.Signature([own, *fixtures_wanted])  # type: ignore[attr-defined]
        return run_all

    return decorate


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


def _run(simulation: Simulation, seeds: Sequence[int], repeat: int, options: RunOptions) -> None:
    """Run the seeds until one fails."""
    for block in _blocks(seeds):
        if options.run_elsewhere is None or is_hash_seed_of(block[0]):
            for number, seed in enumerate(block):
                outcome = simulation.check(seed) if number < repeat else simulation.run(seed)
                if outcome.failure is not None:
                    shrunk = simulation.shrink(outcome)
                    raise SimulationFailed(_report(outcome, shrunk, options)) from outcome.failure
        else:
            report = options.run_elsewhere(block, min(repeat, len(block)))
            if report is not None:
                raise SimulationFailed(report)
        repeat = max(repeat - len(block), 0)


def _blocks(seeds: Iterable[int]) -> list[list[int]]:
    """The seeds by the process that they need."""
    blocks: dict[int, list[int]] = {}
    for seed in seeds:
        blocks.setdefault(hash_seed_of(seed), []).append(seed)
    return list(blocks.values())


def _report(failed: RunOutcome, shrunk: RunOutcome, options: RunOptions) -> str:
    """What a person needs to understand a failure."""
    lines = [f"seed {failed.seed} fails after {shrunk.seconds:.1f} s of virtual time", "", shrunk.reason, ""]
    if shrunk.calls:
        lines += [*shrunk.calls.rstrip().splitlines(), ""]
    count = len(shrunk.plan)
    if not failed.plan:
        lines.append("No fault happened.")
    elif not count:
        lines.append("It fails without any fault, too.")
    else:
        faults_text = "this fault" if count == 1 else f"these {count} faults"
        alone = f" alone, of {len(failed.plan)}" if count < len(failed.plan) else ""
        lines.append(f"With {faults_text}{alone}:")
        lines += ["", plan_text(shrunk.plan, "    ").rstrip()]
    if options.command:
        lines += ["", "Again:", f"    {options.command} --kafka-seeds {failed.seed}"]
        if count:
            text = "; ".join(map(str, shrunk.plan))
            lines.append("and with these faults alone:")
            lines.append(f"    {options.command} --kafka-seeds {failed.seed} --kafka-faults '{text}'")
    if options.story is not None and shrunk.timeline is not None:
        lines += ["", "The groups:", *(f"    {line}" for line in options.story(shrunk.timeline()))]
    lines += ["", f"The log's last {_LOG_LINES} lines, in virtual time:"]
    lines += [f"    {line}" for line in shrunk.log_lines[-_LOG_LINES:]] or ["    (none)"]
    if options.folder is not None and shrunk.pcapng is not None:
        path = options.folder / f"seed-{failed.seed}.pcapng"
        options.folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(shrunk.pcapng())
        lines += ["", f"capture: {path} (coordwire timeline, coordwire decode, Wireshark)"]
    return "\n".join(lines)
