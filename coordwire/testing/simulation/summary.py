"""What all seeds of a test have shown: failures by their cause, known ones, faults, and what was seen.

Strategy: each process that runs seeds makes a summary, which travels as JSON and is added to the others'.
Rules: of failures with one cause the first has the report, the others are counted. A known failure that never
occurs, and something that no seed has seen, are failures themselves, or the lists would outlive their causes;
those of a client end with its version.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase

from coordwire.testing.simulation.runs import RunOutcome

__all__ = ["RunSummary"]

_NAMED = 8
"""So many seeds are named."""


@dataclass(slots=True)
class RunSummary:
    """Of some seeds. seeds: how many; failed: those that have failed, by their cause; reports: of each one's
    first; known: seeds by the known failure, also of a client; faults: how often each
    kind struck; reached: in how many seeds each of `world.sometimes`, `always` and `eventually` held."""

    seeds: int = 0
    failed: dict[str, list[int]] = field(default_factory=dict)
    reports: dict[str, str] = field(default_factory=dict)
    known: dict[str, list[int]] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def note(self, outcome: RunOutcome, known: Iterable[str]) -> bool:
        """Take a run in; whether it is the first that has failed with its cause."""
        self.seeds += 1
        self.faults.update(fault.kind for fault in outcome.plan)
        for name, count in outcome.reached.items():
            self.reached[name] += count
        if outcome.failure is None:
            return False
        for pattern in known:
            if fnmatchcase(outcome.reason, pattern):
                self.known.setdefault(pattern, []).append(outcome.seed)
                return False
        if outcome.client_fault:
            self.known.setdefault(outcome.client_fault, []).append(outcome.seed)
            return False
        seeds = self.failed.setdefault(outcome.cause, [])
        seeds.append(outcome.seed)
        return len(seeds) == 1

    def add(self, later: RunSummary) -> None:
        """Add the summary of later seeds."""
        self.seeds += later.seeds
        for seeds_of, later_seeds in ((self.failed, later.failed), (self.known, later.known)):
            for name, seeds in later_seeds.items():
                seeds_of.setdefault(name, []).extend(seeds)
        self.reports = later.reports | self.reports
        self.faults.update(later.faults)
        for name, count in later.reached.items():
            self.reached[name] += count

    def to_json(self) -> str:
        return json.dumps({attribute.name: getattr(self, attribute.name) for attribute in fields(self)})

    @classmethod
    def from_json(cls, text: str) -> RunSummary:
        content = json.loads(text)
        return cls(**content | {name: Counter(content[name]) for name in ("faults", "reached")})

    def failures(self, known: Sequence[str], *, is_whole: bool) -> list[str]:
        """The reports of all causes. is_whole: all seeds of the test have run, so that what none of them has
        shown is one too."""
        texts = []
        for cause, report in self.reports.items():
            further = self.failed[cause][1:]
            title, _, text = report.partition("\n")
            if further:
                title += f"\nso do {len(further)} more of {self.seeds} seeds: {_names(further)}"
            texts.append(f"{title}\n{text}")
        if is_whole:
            texts += [
                f"the known failure {pattern!r} has not occurred in {self.seeds} seeds: take it off the list"
                for pattern in known
                if pattern not in self.known
            ]
            texts += [
                f"{name} held in none of {self.seeds} seeds"
                for name, count in self.reached.items()
                if not count and not name.startswith("always ")  # which has failed itself
            ]
        return texts

    def __str__(self) -> str:
        parts = [f"{self.seeds} seed{'s' * (self.seeds != 1)}"]
        parts += [f"{kind} {_times(count)}" for kind, count in self.faults.most_common()]
        parts += [f"{name} in {count} seed{'s' * (count != 1)}" for name, count in self.reached.items()]
        parts += [f"known: {pattern!r} in seeds {_names(seeds)}" for pattern, seeds in self.known.items()]
        return "; ".join(parts)


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _names(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds[:_NAMED])) + ", …" * (len(seeds) > _NAMED)
