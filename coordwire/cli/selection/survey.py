"""What a filter looked at, for where it matches nothing: silence would be taken for an all-clear.

Strategy: while items go by, the values that the filter asks about are gathered; if nothing matched in the
end, a line on standard error has the count of items and these values. Rules: what is gathered is bounded, and
so is the line; nothing is gathered without a filter, or once something has matched.
"""

from __future__ import annotations

__all__ = ["Survey"]

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from coordwire.capture.model import format_time
from coordwire.capture.printable import shown
from coordwire.cli.inputs import note
from coordwire.codec.names import suggestion

MOST_KEPT = 1000
MOST_NAMED = 12
LONGEST = 60
"""Characters of a value in the line."""

Values = Callable[[Any], Iterable[object]]


class Survey:
    """What went by.

    what: the items, in the plural. kinds: by what a value is ("groups"), the values of an item of this kind.
    asked: by the same, what was asked for, to find what was probably meant. time: an item's, in nanoseconds,
    where times were asked for.
    """

    def __init__(
        self,
        what: str,
        kinds: Mapping[str, Values],
        asked: Mapping[str, Iterable[str]] | None = None,
        time: Callable[[Any], int | None] | None = None,
    ) -> None:
        self.total = self.matched = 0
        self._what = what
        self._kinds = [(of, name, Counter[str]()) for name, of in kinds.items()]
        self._asked = asked or {}
        self._time = time
        self._first: int | None = None
        self._last: int | None = None
        self._more: set[str] = set()

    def saw(self, item: Any, matched: bool) -> bool:
        """Take in an item; gives `matched`."""
        self.total += 1
        if matched:
            self.matched += 1
        elif not self.matched:
            self._gather(item)
        return matched

    def _gather(self, item: Any) -> None:
        for values_of, name, seen in self._kinds:
            for value in {one for one in values_of(item) if isinstance(one, str)}:
                if value in seen or len(seen) < MOST_KEPT:
                    seen[value] += 1
                else:
                    self._more.add(name)
        if self._time is not None and (time_ns := self._time(item)) is not None:
            self._first = time_ns if self._first is None else min(self._first, time_ns)
            self._last = time_ns if self._last is None else max(self._last, time_ns)

    def report(self, where: str, digits: int = 6) -> None:
        """Write the line, if nothing of anything matched. where: the input, in words."""
        if self.matched or not self.total:
            return
        parts = [f"0 of {self.total:,} {self._what} matched"]
        parts += [self._named(name, seen) for _, name, seen in self._kinds]
        if self._time is not None:
            if self._first is None or self._last is None:
                parts.append("none has a time")
            else:
                parts.append(
                    f"times seen: {format_time(self._first, digits)} to {format_time(self._last, digits)}"
                )
        note(f"{where}: {'; '.join(parts)}")

    def _named(self, name: str, seen: Counter[str]) -> str:
        if not seen:
            return f"no {name} seen"
        told = [_short(value) for value, _ in seen.most_common(MOST_NAMED)]
        rest = len(seen) - len(told)
        if rest:
            told.append(f"and {'more than ' if name in self._more else ''}{rest:,} more")
        hints = [suggestion(text, seen) for text in self._asked.get(name, ())]
        return f"{name} seen: {', '.join(told)}{shown(next(filter(None, hints), ''))}"


def _short(value: str) -> str:
    text = shown(value) if value else "''"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
