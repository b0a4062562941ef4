"""`coordwire simulate`: a group under one of eight designs, in virtual time, with faults by a plan.

simulation_story.py   the run as lines for people, and its figures

Rules: the same command gives the same bytes. The story and the figures are the output; a capture goes to a
file, which gets its name once the run is over. Status 0: the run took place, whatever happened in
it; 2: usage or I/O.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from coordwire.cli import Failure, terminable
from coordwire.designs import DESIGN_NAMES
from coordwire.files.staged import Staged

if TYPE_CHECKING:
    from coordwire.designs.simulator import PlannedFault

__all__ = ["configure", "run"]

MOST_MEMBERS, MOST_PARTITIONS, MOST_MS = 10_000, 100_000, 86_400_000
FAULTS = ("crash", "freeze", "cut", "drop", "slow", "leave", "expire", "topic")
"""What a plan can have; the last three are carried out by the processes themselves."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design", metavar="DESIGN", choices=DESIGN_NAMES,
        help=f"{', '.join(DESIGN_NAMES[:-1])} or {DESIGN_NAMES[-1]} (KIP-848)",
    )  # fmt: skip
    parser.add_argument("--members", type=int, default=3, metavar="N", help="how many consumers (3)")
    parser.add_argument("--partitions", type=int, default=6, metavar="N", help="of the topic orders (6)")
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="of all that is random (1)")
    parser.add_argument(
        "--faults", metavar="PLAN|FILE",
        help="what goes wrong: '10s crash consumer-2 for 5s; 20s cut consumer-1 * for 9s', a file with one "
        "fault a line, or random",
    )  # fmt: skip
    parser.add_argument("--duration", default="60s", metavar="TIME", help="virtual time, as 90s or 5m (60s)")
    parser.add_argument("--pcap", type=Path, metavar="FILE", help="keep the messages as a capture")


def run(options: argparse.Namespace) -> int:
    _check("--members", options.members, MOST_MEMBERS)
    _check("--partitions", options.partitions, MOST_PARTITIONS)
    from coordwire.cli.simulate.simulation_story import lines
    from coordwire.cli.terminal import line_writer
    from coordwire.designs.simulator.runs import simulate
    from coordwire.testing.fault_plans import parse_time

    duration = parse_time(options.duration)
    if duration is None or not 0 < duration <= MOST_MS:
        raise Failure(f"simulate: --duration: expected a time such as 60s, to 24h, got {options.duration!r}")
    plan = _plan(options, duration)
    write = line_writer()
    with terminable(), _capture(options.pcap) as file:
        simulated = simulate(
            options.design, members=options.members, partitions=options.partitions, seed=options.seed,
            plan=plan, duration_ms=duration, pcap=file,
        )  # fmt: skip
    write(lines(simulated, options.members, options.partitions, options.seed))
    return 0


def _check(name: str, number: int, most: int) -> None:
    if not 1 <= number <= most:
        raise Failure(f"simulate: {name}: expected 1 to {most}, got {number}")


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


def _plan(options: argparse.Namespace, duration: int) -> list[PlannedFault]:
    from coordwire.designs.simulator import parse_faults
    from coordwire.designs.simulator.runs import comparable_faults
    from coordwire.errors import Malformed

    text = options.faults
    if text is None:
        return []
    if text == "random":
        return comparable_faults(options.seed, members=options.members, duration_ms=duration)
    if not any(char.isspace() for char in text) or Path(text).is_file():
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise Failure(f"simulate: --faults {options.faults}: {reason}") from None
    try:
        plan = parse_faults(text)
    except Malformed as error:
        raise Failure(f"simulate: --faults: {error.reason}") from None
    for fault in plan:
        if fault.kind not in FAULTS:
            kinds = ", ".join(FAULTS[:-1])
            raise Failure(
                f"simulate: --faults: {fault}: expected {kinds} or {FAULTS[-1]}, got {fault.kind!r}"
            )
        if fault.kind == "topic" and not (len(fault.words) == 2 and _is_partition_count(fault.words[1])):
            reason = f"expected TIME topic * orders PARTITIONS, at most {MOST_PARTITIONS}"
            raise Failure(f"simulate: --faults: {fault.at} ms: {reason}")
    return plan


def _is_partition_count(text: str) -> bool:
    return text.isdecimal() and len(text) <= len(str(MOST_PARTITIONS)) and int(text) <= MOST_PARTITIONS
