"""`coordwire simulate`: a group under one of ten designs, in virtual time, with faults by a plan.

simulation_story.py   the run as lines for people, and its figures
sent_lines.py         the messages of a run as lines, and as JSON
several_seeds.py      the same run with several seeds: a line for each, and quantiles

Rules: the same command gives the same bytes. The story and the figures are the output; a capture goes to a
file, which gets its name once the run is over. Status 0: the run took place, whatever happened in
it; 2: usage or I/O.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, BinaryIO

from coordwire.cli import Failure, terminable
from coordwire.designs import DESIGN_NAMES, KAFKA_DESIGNS
from coordwire.files.staged import Staged

if TYPE_CHECKING:
    from coordwire.capture.printable import Pieces
    from coordwire.designs.simulator import PlannedFault
    from coordwire.designs.simulator.runs import DesignRun, SimulatedRun
    from coordwire.designs.simulator.sent_messages import SentMessage

__all__ = ["configure", "run"]

MOST_MEMBERS, MOST_PARTITIONS, MOST_MS = 10_000, 100_000, 86_400_000
MOST_BROKERS, MOST_LATENCY_MS, LEAST_SESSION_MS, MOST_SEEDS = 100, 60_000, 1_001, 10_000
"""Draft 2's coordinators refuse a session timeout of a second."""

FAULTS = ("crash", "freeze", "cut", "drop", "slow", "leave", "expire", "topic")
"""What a plan can have; the last three are carried out by the processes themselves."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design", metavar="DESIGN", choices=DESIGN_NAMES,
        help=f"{', '.join(DESIGN_NAMES[:-1])} or {DESIGN_NAMES[-1]} (groups of KIP-848, 932, 1071)",
    )  # fmt: skip
    parser.add_argument("--members", type=int, default=3, metavar="N", help="how many consumers (3)")
    parser.add_argument("--partitions", type=int, default=6, metavar="N", help="of the topic orders (6)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is random (1)")
    parser.add_argument(
        "--seeds", type=int, metavar="N",
        help="run N seeds, from --seed on: a line for each, and quantiles of all",
    )  # fmt: skip
    parser.add_argument(
        "--faults", metavar="PLAN|FILE",
        help="what goes wrong: '10s crash consumer-2 for 5s; 20s cut consumer-1 * for 9s', a file with one "
        "fault a line, or random",
    )  # fmt: skip
    parser.add_argument("--brokers", type=int, default=2, metavar="N", help="candidates for coordinator (2)")
    parser.add_argument(
        "--groups", type=int, default=1, metavar="N", help="among which the consumers are divided (1)"
    )
    parser.add_argument("--session-timeout", default="6s", metavar="TIME", help="of each consumer (6s)")
    parser.add_argument(
        "--latency",
        default="1ms-5ms",
        metavar="TIME[-TIME]",
        help="least and greatest latency of one way (1ms-5ms)",
    )
    parser.add_argument("--format", choices=("story", "json"), default="story",
                        help="json: the figures, times in milliseconds")  # fmt: skip
    parser.add_argument("--duration", default="60s", metavar="TIME", help="virtual time, as 90s or 5m (60s)")
    parser.add_argument(
        "--records", action="store_true",
        help="store records, which consumers fetch: how many they got twice, or never",
    )  # fmt: skip
    parser.add_argument(
        "--flow", nargs="?", const="", metavar="FROM-TO",
        help="also every message, of the whole run or those on their way within 20s-25s; with --format json "
        "a line each",
    )  # fmt: skip
    parser.add_argument("--pcap", type=Path, metavar="FILE", help="keep the messages as a capture")


def run(options: argparse.Namespace) -> int:
    _check("--members", options.members, MOST_MEMBERS)
    _check("--partitions", options.partitions, MOST_PARTITIONS)
    _check("--brokers", options.brokers, MOST_BROKERS)
    _check("--groups", options.groups, options.members)
    if options.records and options.design == "share":
        raise Failure("simulate: --records: members of a share group fetch in a way that is not simulated")
    if options.seeds is not None:
        _check("--seeds", options.seeds, MOST_SEEDS)
        if options.pcap is not None:
            raise Failure("simulate: --pcap keeps one run, and --seeds makes several")
        if options.flow is not None or options.records:
            name = "--records" if options.records else "--flow"
            raise Failure(f"simulate: {name} shows one run, and --seeds makes several")
    from coordwire.cli import progress
    from coordwire.cli.simulate.simulation_story import lines
    from coordwire.cli.terminal import line_writer
    from coordwire.testing.fault_plans import parse_time

    duration = parse_time(options.duration)
    if duration is None or not 0 < duration <= MOST_MS:
        raise Failure(f"simulate: --duration: expected a time such as 60s, to 24h, got {options.duration!r}")
    session = parse_time(options.session_timeout)
    if session is None or not LEAST_SESSION_MS <= session <= MOST_MS:
        reason = f"expected a time above 1s, to 24h, got {options.session_timeout!r}"
        raise Failure(f"simulate: --session-timeout: {reason}")
    latency = _latency(options.latency)
    window = _window(options.flow, duration)
    run_one = partial(_simulated, options, duration, session, latency)
    write = line_writer()
    progress.quietly()
    if options.seeds is not None:
        with terminable():
            _run_seeds(options, duration, session, run_one, write)
        return 0
    with terminable(), _capture(options.pcap) as file, TemporaryFile() as sent_file:
        prepare = None if window is None else partial(_keep_sent, sent_file, window[1])
        simulated = run_one(options.seed, pcap=file, prepare=prepare)
        progress.end()
        messages = () if window is None else _sent(simulated, window[0])
        if options.format == "json":
            from coordwire.cli.simulate.sent_lines import sent_forms

            forms = chain(sent_forms(messages), [_figures(simulated, options)])
            write([(json.dumps(form), "plain")] for form in forms)
            return 0
        flow: Iterable[tuple[int, Pieces]] = ()
        if window is not None:
            from coordwire.cli.simulate.sent_lines import sent_lines

            flow = sent_lines(messages, latency[1], window[1])
        write(lines(simulated, options.members, options.partitions, options.seed, flow))
    return 0


def _simulated(
    options: argparse.Namespace, duration: int, session: int, latency: tuple[int, int], seed: int,
    pcap: BinaryIO | None = None, prepare: Callable[[DesignRun], None] | None = None,
) -> SimulatedRun:  # fmt: skip
    """A run with a seed, which reports how far it has come."""
    from coordwire.cli import progress
    from coordwire.designs.simulator.runs import simulate

    name = f"{options.design}, seed {seed}"
    return simulate(
        options.design, members=options.members, partitions=options.partitions, seed=seed,
        plan=_plan(options, duration, seed), duration_ms=duration, pcap=pcap, coordinators=options.brokers,
        groups=options.groups, session_ms=session, latency=latency, prepare=prepare,
        messages=options.records,
        on_time=lambda time: progress.report(name, time, duration),
    )  # fmt: skip


def _run_seeds(
    options: argparse.Namespace, duration: int, session: int, run_one: Callable[[int], SimulatedRun],
    write: Callable[[Iterable[Pieces]], None],
) -> None:  # fmt: skip
    from coordwire.cli import progress
    from coordwire.cli.simulate import several_seeds
    from coordwire.cli.simulate.simulation_story import run_sizes

    is_story = options.format == "story"
    seeds = range(options.seed, options.seed + options.seeds)
    runs = []
    for seed in seeds:
        runs.append(several_seeds.run_figures(run_one(seed), seed, session))
        if is_story:
            progress.clear()
            if seed == seeds[0]:
                named = f"seeds {seed} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seed}"
                sizes = run_sizes(options.members, options.partitions, named, duration)
                write(several_seeds.opening_lines(f"── {options.design} ", sizes))
            write([several_seeds.run_line(runs[-1])])
    progress.end()
    if is_story:
        write(several_seeds.closing_lines(runs))
        return
    sizes_form = {name: getattr(options, name) for name in ("design", "members", "partitions")}
    write([[(json.dumps(sizes_form | {"duration_ms": duration} | several_seeds.forms(runs)), "plain")]])


def _check(name: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise Failure(f"simulate: {name}: expected 1 to {most}, got {number}")


def _latency(text: str) -> tuple[int, int]:
    """The least and the greatest."""
    from coordwire.testing.fault_plans import parse_time

    least, dash, most = text.partition("-")
    times = parse_time(least), parse_time(most if dash else least)
    if times[0] is None or times[1] is None or not times[0] <= times[1] <= MOST_LATENCY_MS:
        raise Failure(f"simulate: --latency: expected a time, or two such as 1ms-5ms, to 1m, got {text!r}")
    return times[0], times[1]


def _window(text: str | None, duration: int) -> tuple[int, int] | None:
    """The first and the last time in which messages that are on their way are shown."""
    from coordwire.testing.fault_plans import parse_time

    if not text:
        return None if text is None else (0, duration)
    begin, end = (parse_time(part) for part in (text.partition("-")[::2]))
    if begin is None or end is None or begin > end:
        raise Failure(f"simulate: --flow: expected two times such as 20s-25s, got {text!r}")
    if begin > duration:
        raise Failure(f"simulate: --flow: expected a time before the end, got {text!r}")
    return begin, end


def _keep_sent(file: BinaryIO, until: int, known: DesignRun) -> None:
    from coordwire.designs.simulator.sent_messages import SentMessages

    known.world.sent = SentMessages(file, until)


def _sent(simulated: SimulatedRun, begin: int) -> Iterator[SentMessage]:
    """What was on its way from a time on."""
    from coordwire.dialects import find_alternative, find_dialect

    world, dialect = simulated.run.world, simulated.run.dialect
    assert world.sent is not None
    return world.sent.read(find_dialect(dialect), find_alternative(dialect), begin)


def _figures(simulated: SimulatedRun, options: argparse.Namespace) -> dict[str, object]:
    """The run's figures for programs; a rebalance's owners are in the story alone."""
    figures = asdict(simulated.measures)
    for rebalance in figures["rebalances"]:
        rebalance["owners"] = len(rebalance["owners"])
    figures["lengths_ms"] = simulated.measures.lengths_ms
    if not options.records:
        del figures["deliveries"]
    sizes = {name: getattr(options, name) for name in ("design", "members", "partitions", "seed")}
    return sizes | figures


@contextmanager
def _capture(path: Path | None) -> Iterator[BinaryIO | None]:
    """A file to write, which takes its name at the end, or is removed; a pipe or a device as it is."""
    if path is None:
        yield None
        return
    try:
        if path.exists() and not path.is_file():
            with path.open("wb") as file:
                yield file
            return
        path.parent.stat()  # a folder is not made here
        with Staged(path.parent) as files:
            with files.new(path.name) as file:
                yield file
            files.commit(replace=True)
    except OSError as error:
        raise Failure(f"simulate: --pcap {path}: {error.strerror or error}") from None


def _plan(options: argparse.Namespace, duration: int, seed: int) -> list[PlannedFault]:
    from coordwire.coordinator.topics import bad_name
    from coordwire.designs.simulator import parse_faults
    from coordwire.designs.simulator.runs import comparable_faults
    from coordwire.errors import Malformed

    text = options.faults
    if text is None:
        return []
    if text == "random":
        random_plan = comparable_faults(seed, members=options.members, duration_ms=duration)
        return [fault for fault in random_plan if fault.at < duration]
    if not any(char.isspace() for char in text) or _is_file(text):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise Failure(f"simulate: --faults {options.faults}: {reason}") from None
    try:
        plan = parse_faults(text)
    except Malformed as error:
        raise Failure(f"simulate: --faults: {error.reason}") from None
    nodes = [f"consumer-{number}" for number in range(1, options.members + 1)]
    nodes += [f"coordinator-{number}" for number in range(1, options.brokers + 1)]
    nodes += ["zookeeper"] if options.design not in KAFKA_DESIGNS else []
    for fault in plan:
        if fault.kind not in FAULTS:
            kinds = ", ".join(FAULTS[:-1])
            raise Failure(
                f"simulate: --faults: {fault}: expected {kinds} or {FAULTS[-1]}, got {fault.kind!r}"
            )
        if fault.kind == "topic":
            if not (len(fault.words) == 2 and _is_partition_count(fault.words[1])):
                reason = f"expected TIME topic * orders PARTITIONS, at most {MOST_PARTITIONS}"
                raise Failure(f"simulate: --faults: {fault.at} ms: {reason}")
            if problem := bad_name(fault.words[0]):
                raise Failure(f"simulate: --faults: {fault.at} ms: {problem}")
        if fault.at >= duration:
            raise Failure(f"simulate: --faults: {fault}: expected a time before the end, {options.duration}")
        for target in fault.targets:
            if not any(fnmatchcase(name, target) for name in nodes):
                known = f"consumer-1 to -{options.members}, coordinator-1 to -{options.brokers}"
                known += ", zookeeper" if nodes[-1] == "zookeeper" else ""
                raise Failure(f"simulate: --faults: {fault}: expected {known}, or a pattern, got {target!r}")
    return plan


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # a plan that is longer than names of files
        return False


def _is_partition_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MOST_PARTITIONS)) and int(text) <= MOST_PARTITIONS
