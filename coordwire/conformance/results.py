"""Results of cases: verdicts, addresses, and lists of known failures.

Strategy: a run yields a `CaseResult` for each case; `Results` counts them and compares them with the
implementer's list. Rules: a list can't go stale: a case in it that doesn't fail, or that is not there, fails
the run as an unlisted failure does. `corrected` writes the list that the run would pass with; comments and
the cases that were not run stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from coordwire import __version__

KINDS = ("codec", "broker", "client")
"""What is judged."""


class CaseVerdict(StrEnum):
    """How a case ended. strict pass: as Apache Kafka, in all that can be seen; pass: within the rule;
    partial: within the rule, as far as the answer shows; skipped: what the implementation doesn't have."""

    STRICT_PASS = "strict pass"
    PASS = "pass"
    PARTIAL = "partial"
    FAIL = "fail"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case's result. address: names with / between them; reason: of a verdict that is not a pass;
    recommended: the protocol doesn't demand it, so that a failure doesn't fail the run; output: what the
    implementation wrote to standard error meanwhile."""

    address: str
    verdict: CaseVerdict
    reason: str = ""
    seconds: float = 0.0
    recommended: bool = False
    output: str = ""

    @property
    def has_failed(self) -> bool:
        return self.verdict is CaseVerdict.FAIL and not self.recommended


def is_selected(address: str, patterns: Sequence[str]) -> bool:
    """Whether a case is among those that patterns name: each names all that is below it, and * in it is any
    text between two slashes. No patterns name all."""
    return not patterns or any(
        _is_below(address.split("/"), pattern.strip("/").split("/")) for pattern in patterns
    )


def _is_below(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    pairs = zip(parts, pattern, strict=False)
    return len(parts) >= len(pattern) and all(fnmatchcase(part, glob) for part, glob in pairs)


class KnownFailures:
    """A list of cases that fail. text: an address a line; # begins a comment, after an address too."""

    def __init__(self, text: str = "") -> None:
        self._lines = text.splitlines()
        self.addresses = {address for line in self._lines if (address := _address(line))}

    def corrected(self, results: Results) -> str:
        """The list with which this run has neither failures nor stale lines."""
        stale = {address for address, _ in results.stale}
        lines = [line for line in self._lines if _address(line) not in stale]
        added = [result.address for result in results.unexpected]
        return "".join(f"{line}\n" for line in [*lines, *added])


def _address(line: str) -> str:
    return line.partition("#")[0].strip()


@dataclass(slots=True)
class Results:
    """The results of a run. kind: of what was judged, one of `KINDS`; subject: what that is, with its
    version; patterns: what was selected; notes: what a reader of the counts must know; date: of the run;
    suite: what judged."""

    kind: str
    subject: str
    known: KnownFailures = field(default_factory=KnownFailures)
    patterns: Sequence[str] = ()
    cases: list[CaseResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    date: datetime = field(default_factory=lambda: datetime.now(UTC))
    suite: str = f"coordwire {__version__}"

    @property
    def failures(self) -> Iterator[CaseResult]:
        return (result for result in self.cases if result.has_failed)

    @property
    def unexpected(self) -> list[CaseResult]:
        """Failures that are not known."""
        return [result for result in self.failures if result.address not in self.known.addresses]

    @property
    def stale(self) -> list[tuple[str, str]]:
        """Lines of the list of known failures that are wrong: the address, and why."""
        verdicts = {result.address: result for result in self.cases}
        return [
            (address, "there is no such case" if result is None else f"the verdict is {result.verdict}")
            for address in sorted(self.known.addresses)
            if is_selected(address, self.patterns)
            and not ((result := verdicts.get(address)) is not None and result.has_failed)
        ]

    @property
    def passed(self) -> bool:
        """Whether every failure is known, and every known failure fails."""
        return not self.unexpected and not self.stale

    def counts(self) -> dict[str, dict[CaseVerdict, int]]:
        """The number of cases by the first part of their address and by verdict."""
        counts: dict[str, dict[CaseVerdict, int]] = {}
        for result in self.cases:
            row = counts.setdefault(result.address.partition("/")[0], dict.fromkeys(CaseVerdict, 0))
            row[result.verdict] += 1
        return counts

    def extend(self, results: Iterable[CaseResult]) -> None:
        """Take results as they come."""
        self.cases.extend(results)
