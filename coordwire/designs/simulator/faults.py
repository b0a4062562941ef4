"""Fault plans: the faults of a run with their times, as data, the same for each design.

    10s crash coordinator-1 for 5s         the process is gone; with a duration it comes back
    20s freeze consumer-2 for 60s          it does nothing (a long garbage collection, a debugger)
    30s cut consumer-1 coordinator-* for 8s   the two can't reach each other
    40s drop consumer-* coordinator-1      their links break
    50s slow consumer-1 * 200ms for 10s    latency on top of the usual
    60s expire consumer-3                  any other word: the process itself carries it out

One fault a line, or several with `;` between them; `#` begins a comment. Times are `250ms`, `5s`, `2m`, `1h`.
Targets are names of nodes, with `*` for any characters; a target that a design does not have is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from coordwire.errors import Malformed

__all__ = ["PlannedFault", "parse_faults", "random_faults", "written_faults"]

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_TARGETS = {"crash": 1, "freeze": 1, "cut": 2, "drop": 2, "slow": 2}
"""How many targets each kind has; kinds that only a process knows have one."""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault. at, duration: milliseconds. words: what a kind wants beside targets: a latency, a topic."""

    at: int
    kind: str
    targets: tuple[str, ...]
    words: tuple[str, ...] = ()
    duration: int | None = None

    def __str__(self) -> str:
        lasts = "" if self.duration is None else f" for {_written(self.duration)}"
        return f"{_written(self.at)} {' '.join((self.kind, *self.targets, *self.words))}{lasts}"


def parse_faults(text: str) -> list[PlannedFault]:
    """A plan in its text form. Raises `Malformed` with the number of the line that can't be read."""
    plan = []
    for number, line in enumerate(text.splitlines(), 1):
        for part in line.partition("#")[0].split(";"):
            if part.strip():
                plan.append(_fault(part.split(), number))
    return sorted(plan, key=lambda fault: fault.at)


def _fault(words: list[str], line: int) -> PlannedFault:
    at = parse_time(words[0])
    if at is None:
        raise Malformed(f"line {line}: expected a time such as 10s or 250ms, got {words[0]!r}")
    if len(words) < 3:
        raise Malformed(f"line {line}: expected TIME KIND TARGET, got {' '.join(words)!r}")
    kind, operands, duration = words[1], words[2:], None
    if len(operands) > 2 and operands[-2] == "for":
        duration = parse_time(operands[-1])
        if duration is None:
            raise Malformed(f"line {line}: expected a duration such as 10s after 'for', got {operands[-1]!r}")
        operands = operands[:-2]
    count = _TARGETS.get(kind, 1)
    if len(operands) < count:
        raise Malformed(f"line {line}: expected {count} targets of {kind}, got {len(operands)}")
    if kind in ("freeze", "cut", "slow") and duration is None:
        raise Malformed(f"line {line}: expected 'for' and a duration after {kind}")
    if kind == "slow" and (len(operands) != 3 or parse_time(operands[2]) is None):
        raise Malformed(f"line {line}: expected a latency such as 200ms after slow and its targets")
    return PlannedFault(at, kind, tuple(operands[:count]), tuple(operands[count:]), duration)


def parse_time(text: str) -> int | None:
    """Milliseconds; None for what is not a time."""
    match = _TIME.fullmatch(text)
    return None if match is None else round(float(match[1]) * _UNITS[match[2]])


def _written(time: int) -> str:
    for unit in ("h", "m", "s"):
        if time and time % _UNITS[unit] == 0:
            return f"{time // _UNITS[unit]}{unit}"
    return f"{time}ms"


def written_faults(plan: Iterable[PlannedFault]) -> str:
    """The text form of a plan, one fault a line."""
    return "".join(f"{fault}\n" for fault in plan)


def random_faults(
    seed: int, *, members: int, coordinators: int = 2, begin: int = 10_000, end: int = 120_000, count: int = 8
) -> list[PlannedFault]:
    """A plan by a seed: crashes, freezes, cuts and drops of consumers and coordinators."""
    random = Random(f"faults/{seed}")
    plan = []
    for _ in range(count):
        at = random.randrange(begin, end, 100)
        consumer = f"consumer-{random.randint(1, members)}"
        coordinator = f"coordinator-{random.randint(1, coordinators)}"
        short, long = random.randrange(500, 8_000, 100), random.randrange(8_000, 60_000, 1_000)
        plan.append(
            random.choice([
                PlannedFault(at, "crash", (consumer,), duration=random.choice([short, long, None])),
                PlannedFault(at, "crash", (coordinator,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (consumer,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (coordinator,), duration=short),
                PlannedFault(at, "cut", (consumer, "coordinator-*"), duration=random.choice([short, long])),
                PlannedFault(at, "drop", (consumer, "coordinator-*")),
                PlannedFault(at, "drop", ("consumer-*", coordinator)),
                PlannedFault(at, "slow", (consumer, "*"), ("300ms",), duration=long),
                PlannedFault(at, "expire", (consumer,)),
            ])
        )  # fmt: skip
    return sorted(plan, key=lambda fault: fault.at)
