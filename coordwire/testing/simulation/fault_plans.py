"""The language of faults: their times, kinds and targets as text, for every simulated world.

    10s crash coordinator-1 for 5s         the process is gone; with a duration it comes back
    20s freeze consumer-2 for 60s          it does nothing (a long garbage collection, a debugger)
    30s cut consumer-1 coordinator-* for 8s   the two can't reach each other
    40s drop consumer-* coordinator-1      their connections break
    50s slow consumer-1 * 200ms for 10s    latency on top of the usual
    60s expire consumer-3                  any other word: what carries it out is the world's matter

One fault a line, or several with `;` between them; `#` begins a comment. Times are `250ms`, `5s`, `2m`, `1h`.
Targets are names of machines, with `*` for any characters; a target that a world does not have is left out.

Rules: `FaultDriver` lets the faults of a plan happen and end; what a network has (`Paths`) is the same in all
worlds, and the rest is the driver's of each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from coordwire.errors import Malformed

__all__ = [
    "FaultDriver",
    "FaultEnd",
    "Paths",
    "PlannedFault",
    "are_between",
    "parse_faults",
    "parse_time",
    "written_faults",
]

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_PAIRS = frozenset({"cut", "block", "drop", "half-open", "slow"})
"""Kinds with two targets; the others have one."""

_LASTING = frozenset({"freeze", "cut", "block", "slow", "skew", "fill", "fail"})
_MOMENTARY = frozenset({"drop", "half-open", "coordinate", "lead"})
_WORDLESS = frozenset({"crash", "freeze", "cut", "block", "drop", "half-open", "fill", "fail"})
_LATENCY = "a latency such as 200ms after slow and its targets"
_SKEW = "a time such as 30s or -30s after skew and its target"


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
                try:
                    plan.append(_fault(part.split()))
                except Malformed as error:
                    raise Malformed(f"line {number}: {error.reason} in {part.strip()!r}") from None
    return sorted(plan, key=lambda fault: fault.at)


def _fault(words: list[str]) -> PlannedFault:
    at = parse_time(words[0])
    if at is None:
        raise Malformed(f"expected a time such as 10s or 250ms, got {words[0]!r}")
    if len(words) < 3:
        raise Malformed("expected TIME KIND TARGET")
    kind, operands, duration = words[1], words[2:], None
    if len(operands) > 2 and operands[-2] == "for":
        duration = parse_time(operands[-1])
        if duration is None:
            raise Malformed(f"expected a duration such as 10s after 'for', got {operands[-1]!r}")
        operands = operands[:-2]
    count = 2 if kind in _PAIRS else 1
    if len(operands) < count:
        raise Malformed(f"expected {count} targets of {kind}, got {len(operands)}")
    if kind in _LASTING and duration is None:
        raise Malformed(f"expected 'for' and a duration after {kind}")
    if kind in _MOMENTARY and duration is not None:
        raise Malformed(f"expected no duration of {kind}")
    fault = PlannedFault(at, kind, tuple(operands[:count]), tuple(operands[count:]), duration)
    expected = _expected_words(fault)
    if expected:
        raise Malformed(f"expected {expected}")
    return fault


def _expected_words(fault: PlannedFault) -> str:
    """What is expected in the place of a fault's words; "" where they are right."""
    words = fault.words
    match fault.kind:
        case "slow":
            return "" if len(words) == 1 and parse_time(words[0]) is not None else _LATENCY
        case "skew":
            is_time = len(words) == 1 and parse_time(words[0].removeprefix("-")) is not None
            return "" if is_time else _SKEW
        case "coordinate":
            return "" if len(words) == 1 else "GROUP after coordinate and its target"
        case "lead":
            is_partition = len(words) == 2 and words[1].isdecimal()
            return "" if is_partition else "TOPIC PARTITION after lead and its target"
    count = len(fault.targets)
    return f"no more than {count} targets of {fault.kind}" if words and fault.kind in _WORDLESS else ""


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


# --- what faults do ---

FaultEnd: TypeAlias = Callable[[], object]
"""What ends a fault."""


class Paths:
    """Which machines of a network do not reach each other now, and which are slow, by patterns of names.

    Latencies are milliseconds. changed: called when machines can, or cannot, reach each other from now on.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._cuts: list[tuple[str, str, bool]] = []
        """Two patterns, and whether bytes of the second are cut too."""
        self._slow: list[tuple[str, str, int]] = []

    def is_cut(self, sender: str, receiver: str) -> bool:
        """Whether bytes do not get from one machine to another."""
        return bool(self._cuts) and any(
            are_between(sender, receiver, first, second)
            or (is_both_ways and are_between(receiver, sender, first, second))
            for first, second, is_both_ways in self._cuts
        )

    def extra_ms(self, sender: str, receiver: str) -> int:
        """The latency on top of the usual."""
        if not self._slow:
            return 0
        return sum(
            extra_ms
            for first, second, extra_ms in self._slow
            if are_between(sender, receiver, first, second) or are_between(receiver, sender, first, second)
        )

    def cut(self, first: str, second: str, *, is_both_ways: bool = True) -> FaultEnd:
        entry = (first, second, is_both_ways)
        self._cuts.append(entry)
        self._changed()

        def mend() -> None:
            self._cuts.remove(entry)
            self._changed()

        return mend

    def slow(self, first: str, second: str, extra_ms: int) -> FaultEnd:
        entry = (first, second, extra_ms)
        self._slow.append(entry)
        return lambda: self._slow.remove(entry)


def are_between(sender: str, receiver: str, first: str, second: str) -> bool:
    """Whether the names of a sender and a receiver match two patterns."""
    return fnmatchcase(sender, first) and fnmatchcase(receiver, second)


class FaultDriver:
    """Lets faults happen in a world, and end. inflicted: those that happened, as a plan.

    call_at, call_after: call a function at a time, and after one, in milliseconds.
    """

    def __init__(
        self, paths: Paths, call_at: Callable[..., object], call_after: Callable[..., object]
    ) -> None:
        self.inflicted: list[PlannedFault] = []
        self._paths = paths
        self._call_at, self._call_after = call_at, call_after
        self._open: dict[int, FaultEnd] = {}
        self._opened = 0

    def plan(self, faults: Iterable[PlannedFault]) -> None:
        for fault in faults:
            self._call_at(fault.at, self.inflict, fault)

    def inflict(self, fault: PlannedFault) -> None:
        """A fault happens now."""
        self.inflicted.append(fault)
        self.report(f"{fault}")
        for end in self._begin(fault):
            if fault.duration is not None or fault.kind == "inject":
                self._opened += 1
                self._open[self._opened] = end
            if fault.duration is not None:
                self._call_after(fault.duration, self._end, self._opened)

    def finish(self) -> None:
        """All faults are over."""
        for end in list(self._open.values()):
            end()

    def _end(self, key: int) -> None:
        end = self._open.pop(key, None)
        if end is not None:
            self.report("")
            end()

    def _begin(self, fault: PlannedFault) -> list[FaultEnd]:
        first, second = fault.targets[0], fault.targets[-1]
        match fault.kind:
            case "cut" | "block":
                return [self._paths.cut(first, second, is_both_ways=fault.kind == "cut")]
            case "slow":
                extra_ms = parse_time(fault.words[0])
                assert extra_ms is not None
                return [self._paths.slow(first, second, extra_ms)]
            case "drop":
                self.drop(first, second)
                return []
        return self.begin(fault)

    def report(self, text: str) -> None:
        """A fault has begun, or one is over (no text)."""

    def drop(self, first: str, second: str) -> None:
        """Break off the connections between machines."""
        raise NotImplementedError

    def begin(self, fault: PlannedFault) -> list[FaultEnd]:
        """Let a fault of another kind begin; what ends it, for each machine."""
        raise NotImplementedError
