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
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coordwire.broker import BrokerConfig
from coordwire.codec.names import suggestion
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation.checkers import CHECKERS, Checker
from coordwire.testing.simulation.faults import DrawnFaults
from coordwire.testing.simulation.kafka import SimulatedKafka
from coordwire.testing.simulation.runs import (
    Nondeterminism,
    RunOutcome,
    Simulation,
    hash_seed_of,
    is_hash_seed_of,
    plan_text,
    read_faults,
)
from coordwire.testing.simulation.summary import RunSummary
from coordwire.testing.simulation.surroundings import EXITS, Exit
from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["FIXTURE", "RunOptions", "SimulationFailed", "kafka_simulation"]

FIXTURE = "kafka_simulation_options"
"""The fixture by which the pytest plugin gives a test its options."""

_LOG_LINES = 60
_SHOWN_LINES = 12
"""So many lines of the log, and of the groups, are shown where a file has all of them."""

_HEAD = "── "
"""Before the name of a group, where its story begins."""

_CLOCK = re.compile(r"(?<!\S)(\d\d):(\d\d):(\d\d\.\d{3})(?!\S)")

_CHATTER = re.compile(r"[\s\d.]+ \S+ +INFO +(?:aiokafka|kafka)\b")
"""What a client logs of its usual work, which the groups show too."""

_PACKAGES = "coordwire", "aiokafka", "kafka-python", "faststream", "anyio"
"""Those that a report names, if they are in use: what a seed does depends on their versions."""

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
            report = summary.reports[outcome.cause] = _report(outcome, shrunk, options)
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


def _report(failed: RunOutcome, shrunk: RunOutcome, options: RunOptions) -> str:
    """What a person needs to understand a failure."""
    lines = [f"seed {failed.seed} fails: {failed.kind[-1]}, after {shrunk.seconds:.1f} s of virtual time"]
    lines += [
        "",
        shrunk.reason,
        "",
        *_calls_and_plan(failed, shrunk),
        *_values(shrunk),
        "",
        *_commands(failed, shrunk, options),
    ]
    story = [] if options.story is None or shrunk.timeline is None else [*options.story(shrunk.timeline())]
    parts = {
        "Records that were processed more than once": [*shrunk.repeated],
        "The groups, in seconds of virtual time": [*map(_in_seconds, story)],
        "The log": [*shrunk.log_lines],
    }
    if options.folder is None:
        lines += [line for title, content in parts.items() for line in _part(title, content, _LOG_LINES)]
        return "\n".join(lines)
    options.folder.mkdir(parents=True, exist_ok=True)
    path = options.folder / f"seed-{failed.seed}.txt"
    for title, content in parts.items():
        short_content = [line for line in _concerned(content, shrunk.reason) if not _CHATTER.match(line)]
        lines += _part(title, short_content, _SHOWN_LINES, options.width)
    all_lines = [line for part in parts.items() for line in _part(*part, len(part[1]))]
    path.write_text("\n".join([*lines, *all_lines]))
    lines += ["", "All of it:", f"    {path}"]
    if options.folder is not None and shrunk.pcapng is not None:
        path = options.folder / f"seed-{failed.seed}.pcapng"
        path.write_bytes(shrunk.pcapng())
        lines += ["", "All bytes, for Wireshark, coordwire decode and coordwire timeline:", f"    {path}"]
    return "\n".join(lines)


def _concerned(lines: list[str], reason: str) -> list[str]:
    """The stories of the groups that a reason names; all lines, if there are none."""
    stories, is_named = [], False
    for line in lines:
        if line.startswith(_HEAD):
            name = line.removeprefix(_HEAD).partition(" ")[0]
            is_named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", reason) is not None
        if is_named:
            stories.append(line)
    return stories or lines


def _in_seconds(line: str) -> str:
    """A line of a story with the seconds that log and faults have, in place of the time of day."""
    return _CLOCK.sub(lambda clock: f"{_seconds_of(*clock.groups()):12.3f}", line)


def _seconds_of(hours: str, minutes: str, seconds: str) -> float:
    return int(hours) * 3_600 + int(minutes) * 60 + float(seconds)


def _part(title: str, content: list[str], count: int, width: int | None = None) -> list[str]:
    """The last lines of a part of the report, cut to a width."""
    if not content:
        return []
    note = f", the last {count} of {len(content)} lines" if len(content) > count else ""
    return ["", f"{title}{note}:", *(f"    {_cut(line, width)}" for line in content[-count:])]


def _cut(line: str, width: int | None) -> str:
    return line if width is None or len(line) <= width else f"{line[: width - 2]} …"


def _calls_and_plan(failed: RunOutcome, shrunk: RunOutcome) -> list[str]:
    lines = [*shrunk.calls.rstrip().splitlines(), ""] if shrunk.calls else []
    count = len(shrunk.plan)
    if not failed.plan:
        return [*lines, "No fault happened."]
    if not count:
        return [*lines, "It fails without any fault, too."]
    faults_text = "this fault" if count == 1 else f"these {count} faults"
    if failed.plan and shrunk.unfaulted:
        lines += [f"Without any fault it fails, too, by {shrunk.unfaulted}", ""]
    alone = f" alone, of {len(failed.plan)}" if count < len(failed.plan) else ""
    return [*lines, f"With {faults_text}{alone}:", "", plan_text(shrunk.plan, "    ").rstrip()]


def _values(shrunk: RunOutcome) -> list[str]:
    """The arguments that were drawn."""
    if not shrunk.values:
        return []
    lines = [
        line if line == own else f"{line} (the seed draws {own.partition(' = ')[2]})"
        for line, own in zip(shrunk.values, shrunk.own_values or shrunk.values, strict=True)
    ]
    return ["", "With these values:", "", *(f"    {line}" for line in lines)]


def _commands(failed: RunOutcome, shrunk: RunOutcome, options: RunOptions) -> list[str]:
    """How the seed runs again, and with what it gives the same bytes."""
    lines = []
    if options.command:
        lines += ["To run it again:", f"    {options.command} --kafka-seeds {failed.seed}"]
        if shrunk.plan:
            text = "; ".join(map(str, shrunk.plan))
            lines.append("and with the faults above alone:")
            lines.append(f"    {options.command} --kafka-seeds {failed.seed} --kafka-faults '{text}'")
        lines.append("")
    packages = (*_PACKAGES, "hypothesis") if shrunk.values else _PACKAGES
    lines.append(f"This was {', '.join(_versions(options.code, packages))}.")
    if not is_hash_seed_of(failed.seed):
        prefix = "" if sys.version_info >= (3, 12) else "setarch -R with "
        lines.append(
            "Its order of hashes was this process's own: run again, a test in which sets of texts are gone "
            "through may pass, or fail otherwise. "
            f"It has its own under pytest, or {prefix}PYTHONHASHSEED={hash_seed_of(failed.seed)}."
        )
    return lines


def _versions(code: Path | None, packages: Iterable[str] = _PACKAGES) -> list[str]:
    """What a seed's bytes depend on: the commit of the code, if git knows it, Python, and packages."""
    versions = [f"Python {platform.python_version()}"]
    for name in packages:
        if name.replace("kafka-python", "kafka") in sys.modules:
            with suppress(PackageNotFoundError):
                versions.append(f"{name} {version(name)}")
    commit, status = _git(code, "rev-parse", "--short=12", "HEAD"), _git(code, "status", "--porcelain")
    if commit:
        versions.insert(0, f"commit {commit.strip()}{' with changes' if status else ''}")
    return versions


def _git(folder: Path | None, *arguments: str) -> str:
    """What git says, or nothing."""
    command = ["git", "-C", str(folder or "."), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
