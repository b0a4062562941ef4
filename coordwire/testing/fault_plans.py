"""The language of faults: their times, kinds and targets as text, for every simulated world.

    10s crash coordinator-1 for 5s         the process is gone; with a duration it comes back
    20s freeze consumer-2 for 60s          it does nothing (a long garbage collection, a debugger)
    30s cut consumer-1 coordinator-* for 8s   the two can't reach each other
    40s drop consumer-* coordinator-1      their connections break
    50s slow consumer-1 * 200ms for 10s    latency on top of the usual
    60s expire consumer-3                  any other word: what carries it out is the world's matter

One fault a line, or several with `;` between them; `#` begins a comment. Times are `250ms`, `5s`, `2m`, `1h`.
Targets are names of machines, with `*` for any characters; a target that a world does not have is left out.

Rules: `Paths` has what faults do to a network, for all worlds alike; the rest is done by the world itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeAlias

from coordwire.errors import Malformed

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_TIME = re.compile(r"([0-9]{1,12}(?:\.[0-9]+)?)(ms|s|m|h)")
"""Of so many digits that it is a number of milliseconds for every simulated clock."""

FAULT_KINDS: dict[str, tuple[int, bool | None, str, str]] = {
    "crash": (1, None, "", ""),
    "stop": (1, None, "([0-9]{1,6})?", "no more, or a number of awaits"),
    "freeze": (1, True, "", ""),
    "cut": (2, True, "", ""),
    "block": (2, True, "", ""),
    "drop": (2, False, "", ""),
    "half-open": (2, False, f"({_TIME.pattern})?", "a time such as 100s, or nothing,"),
    "slow": (2, True, _TIME.pattern, "a latency such as 200ms"),
    "skew": (1, True, f"-?{_TIME.pattern}", "a time such as 30s or -30s"),
    "coordinate": (1, False, r"\S+", "GROUP"),
    "lead": (1, False, r"\S+ [0-9]{1,10}", "TOPIC PARTITION"),
    "fill": (1, True, "", ""),
    "fail": (1, True, "", ""),
    "inject": (1, None, ".+", "a rule"),
    "load": (1, None, rf"{_TIME.pattern}( [1-9][0-9]{{0,5}})?", "a pause such as 20ms, and how many at once"),
    "busy": (1, None, "[1-9][0-9]{0,5}", "how many times as long as usual"),
}
"""How many targets a kind has; whether it has a duration, None where it may have one; what its words match,
and what they are called."""

_OTHER = 1, None, ".*", ""
_DURATION = "'for' and a duration"


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault. at, duration: milliseconds. words: what a kind wants beside targets: a latency, a topic."""

    at: int
    kind: str
    targets: tuple[str, ...]
    words: tuple[str, ...] = ()
    duration: int | None = None

    def __str__(self) -> str:
        lasts = "" if self.duration is None else f" for {written_time(self.duration)}"
        return f"{written_time(self.at)} {' '.join((self.kind, *self.targets, *self.words))}{lasts}"


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
    count, lasts, pattern, expected = FAULT_KINDS.get(kind, _OTHER)
    targets, fault_words = tuple(operands[:count]), tuple(operands[count:])
    if len(targets) < count:
        raise Malformed(f"expected {count} targets of {kind}, got {len(targets)}")
    if lasts is not None and lasts is (duration is None):
        raise Malformed(f"expected {_DURATION if lasts else 'no duration'} after {kind}")
    if not re.fullmatch(pattern, " ".join(fault_words)):
        place = f"after {kind} and its {'targets' if count > 1 else 'target'}"
        raise Malformed(f"expected {expected} {place}" if pattern else f"expected no more {place}")
    return PlannedFault(at, kind, targets, fault_words, duration)


def parse_time(text: str) -> int | None:
    """Milliseconds; None for what is not a time."""
    match = _TIME.fullmatch(text)
    return None if match is None else round(float(match[1]) * _UNITS[match[2]])


def written_time(time: int) -> str:
    """Milliseconds as a plan has them: 250ms, 5s, 2m, 1h."""
    for unit in ("h", "m", "s"):
        if time and time % _UNITS[unit] == 0:
            return f"{time // _UNITS[unit]}{unit}"
    return f"{time}ms"


def written_faults(plan: Iterable[PlannedFault]) -> str:
    """The text form of a plan, one fault a line."""
    return "".join(f"{fault}\n" for fault in plan)


# --- what faults do ---

FaultEnd: TypeAlias = Callable[[], None]
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
