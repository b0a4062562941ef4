"""Patterns of subscriptions, and the topics that they match."""

from __future__ import annotations

from collections.abc import Iterable

from coordwire._dataclasses import dataclass
from coordwire.patterns import PatternSelection, RegularExpression

_ALL = 1 << 62
"""More work than any resolution is."""


@dataclass(frozen=True, slots=True)
class ResolvedPattern:
    """The topics that match a pattern, sorted. version: of the topics' image that was searched."""

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0


class Resolution:
    """The search for the topics of a group's patterns, which can be divided into turns.

    names: of the topics that are searched, of an image with this version. now: when the resolution begins.
    is_complete: whether `resolved` has every pattern.
    """

    def __init__(
        self, group_id: str, patterns: Iterable[str], names: list[str], *, version: int, now: int
    ) -> None:
        self.group_id = group_id
        self.resolved: dict[str, ResolvedPattern] = {}
        self.is_complete = False
        self._patterns = iter(patterns)
        self._names = names
        self._version = version
        self._start = now
        self._regex = ""
        self._selection: PatternSelection | None = None

    def advance(self, amount: int = _ALL) -> None:
        """Do so much work: a character of a pattern or of a name each, or one instruction of a pattern.

        One pattern's text and one character of a name are not divided.
        """
        while amount > 0:
            if self._selection is None:
                regex = next(self._patterns, None)
                if regex is None:
                    self.is_complete = True
                    return
                self._regex = regex
                self._selection = PatternSelection(RegularExpression(regex), self._names)
                amount -= len(regex)
            amount -= self._selection.advance(amount)
            if self._selection.is_done:
                topics = tuple(sorted(self._selection.names))
                self.resolved[self._regex] = ResolvedPattern(topics, self._version, self._start)
                self._selection = None
