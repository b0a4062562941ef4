"""The values that a filter looked at, reported where nothing matches: silence would look like an all-clear.

Strategy: while items are read, the values that the filter compares are counted; if no item matched in the
end, a line on standard error has the number of items and the most frequent values. Rules: the values and the
line are bounded; nothing is counted without a filter, or after an item has matched.
"""

from __future__ import annotations

__all__ = ["Survey"]

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
        self.total = self.matched = 0
        self._subject = subject
        self._kinds = [(of, name, Counter[str]()) for name, of in kinds.items()]
        self._texts_given = texts_given or {}
        self._time = time
        self._first: int | None = None
        self._last: int | None = None
        self._overflowing: set[str] = set()

    def saw(self, item: Any, matched: bool) -> bool:
        """Count an item. Returns `matched`, whether the filter lets it pass."""
        self.total += 1
        if matched:
            self.matched += 1
        elif not self.matched:
            self._gather(item)
        return matched

    def _gather(self, item: Any) -> None:
        for values_of, name, counts in self._kinds:
            for value in dict.fromkeys(part for part in values_of(item) if isinstance(part, str)):
                if value in counts or len(counts) < MOST_KEPT:
                    counts[value] += 1
                else:
                    self._overflowing.add(name)
        if self._time is not None and (time_ns := self._time(item)) is not None:
            self._first = time_ns if self._first is None else min(self._first, time_ns)
            self._last = time_ns if self._last is None else max(self._last, time_ns)

    def report(self, place: str, digits: int = 6) -> None:
        """Write the line, if no item matched. place: the input, in words."""
        if self.matched or not self.total:
            return
        parts = [f"0 of {self.total:,} {self._subject} matched"]
        parts += [self._named(name, counts) for _, name, counts in self._kinds]
        if self._time is not None:
            if self._first is None or self._last is None:
                parts.append("none has a time")
            else:
                parts.append(
                    f"times seen: {format_time(self._first, digits)} to {format_time(self._last, digits)}"
                )
        note(f"{place}: {'; '.join(parts)}")

    def _named(self, name: str, counts: Counter[str]) -> str:
        if not counts:
            return f"no {name} seen"
        texts = [_short(value) for value, _ in counts.most_common(MOST_NAMED)]
        unnamed = len(counts) - len(texts)
        if unnamed:
            texts.append(f"and {'more than ' if name in self._overflowing else ''}{unnamed:,} more")
        hints = [suggestion(text, counts) for text in self._texts_given.get(name, ())]
        return f"{name} seen: {', '.join(texts)}{shown(next(filter(None, hints), ''))}"


def _short(value: str) -> str:
    text = shown(value) if value else "''"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
