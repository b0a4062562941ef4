"""The values that a filter looked at, reported where nothing matches: silence would look like an all-clear.

Strategy: while items are read, the values that the filter compares are counted; if no item matched in the
end, a line on standard error has the number of items and the most frequent values. Rules: the values and the
line are bounded; nothing is counted without a filter, or after an item has matched.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.printable import shown
from coordwire.cli.inputs import note
from coordwire.codec.names import suggestion

MOST_KEPT = 1000
MOST_NAMED = 12
LONGEST = 60
"""Characters of a value in the line."""

Values = Callable[[Any], Iterable[object]]


@dataclass(slots=True)
class SurveyCounts:
    """What a survey has counted. values: by kind, how often each was met; overflowing: kinds with more values
    than are kept; first, last: times in nanoseconds."""

    total: int = 0
    matched: int = 0
    values: dict[str, Counter[str]] = field(default_factory=dict)
    overflowing: set[str] = field(default_factory=set)
    first: int | None = None
    last: int | None = None

    def count(self, kind: str, value: str, times: int = 1) -> None:
        """Count a value that was met."""
        counts = self.values[kind]
        if value in counts or len(counts) < MOST_KEPT:
            counts[value] += times
        else:
            self.overflowing.add(kind)

    def reach(self, time_ns: int) -> None:
        """Count an item of this time."""
        self.first = time_ns if self.first is None else min(self.first, time_ns)
        self.last = time_ns if self.last is None else max(self.last, time_ns)

    def add(self, later: SurveyCounts) -> None:
        """Add what was counted of later items."""
        if not self.matched:
            for kind, counts in later.values.items():
                for value, times in counts.items():
                    self.count(kind, value, times)
            self.overflowing |= later.overflowing
            for time_ns in (later.first, later.last):
                if time_ns is not None:
                    self.reach(time_ns)
        self.total += later.total
        self.matched += later.matched


class Survey:
    """The items and values that a filter looked at.

    subject: the items, in the plural. kinds: by the kind of a value ("groups"), a function that gives an
    item's values of that kind. texts_given: by kind, the texts of the filter, to suggest the name that was
    probably meant. time: an item's time in nanoseconds, where the filter selects times.
    """

    def __init__(
        self,
        subject: str,
        kinds: Mapping[str, Values],
        texts_given: Mapping[str, Iterable[str]] | None = None,
        time: Callable[[Any], int | None] | None = None,
    ) -> None:
        self._subject = subject
        self._kinds = dict(kinds)
        self._texts_given = texts_given or {}
        self._time = time
        self.counts = self._none()

    @property
    def is_timed(self) -> bool:
        """Whether the filter selects times."""
        return self._time is not None

    def _none(self) -> SurveyCounts:
        return SurveyCounts(values={kind: Counter() for kind in self._kinds})

    def take(self) -> SurveyCounts:
        """What was counted so far; the survey begins again."""
        counts, self.counts = self.counts, self._none()
        return counts

    def saw(self, item: Any, matched: bool) -> bool:
        """Count an item. Returns `matched`, whether the filter lets it pass."""
        counts = self.counts
        counts.total += 1
        if matched:
            counts.matched += 1
        elif not counts.matched:
            self._gather(item)
        return matched

    def _gather(self, item: Any) -> None:
        for kind, values_of in self._kinds.items():
            for value in dict.fromkeys(part for part in values_of(item) if isinstance(part, str)):
                self.counts.count(kind, value)
        if self._time is not None and (time_ns := self._time(item)) is not None:
            self.counts.reach(time_ns)

    def report(self, place: str, digits: int = 6) -> None:
        """Write the line, if no item matched. place: the input, in words."""
        counts = self.counts
        if counts.matched or not counts.total:
            return
        parts = [f"0 of {counts.total:,} {self._subject} matched"]
        parts += [self._named(kind, values) for kind, values in counts.values.items()]
        if self._time is not None:
            if counts.first is None or counts.last is None:
                parts.append("none has a time")
            else:
                parts.append(
                    f"times seen: {format_time(counts.first, digits)} to {format_time(counts.last, digits)}"
                )
        note(f"{place}: {'; '.join(parts)}")

    def _named(self, name: str, counts: Counter[str]) -> str:
        if not counts:
            return f"no {name} seen"
        texts = [_short(value) for value, _ in counts.most_common(MOST_NAMED)]
        unnamed = len(counts) - len(texts)
        if unnamed:
            texts.append(f"and {'more than ' if name in self.counts.overflowing else ''}{unnamed:,} more")
        hints = [suggestion(text, counts) for text in self._texts_given.get(name, ())]
        return f"{name} seen: {', '.join(texts)}{shown(next(filter(None, hints), ''))}"


def _short(value: str) -> str:
    text = shown(value) if value else "''"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
