"""What a watch cannot see now, since when and why: a broker, a part of the log, an end of a partition, a tap.

Strategy: who asks says for a subject that it fails, or that it was seen; a subject's problem lasts from its
first failure until it was seen, or until nothing asks for it. Rules: a problem is reported when it begins,
when its reason changes, and when it ends; there is one for a subject at most, and a bounded number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

ProblemKind = Literal["cluster", "broker", "log", "end", "tap"]
"""The cluster's topics and leaders; one broker; a partition of the groups' log, or all of it; the end of a
partition that a group has committed an offset of; the capture of a tap."""

MOST_PROBLEMS = 100_000
LONGEST_REASON = 300


class ProblemSubject(NamedTuple):
    """What is not seen. topic, partition: of a log or an end; node: the id of a broker."""

    kind: ProblemKind
    topic: str | None = None
    partition: int | None = None
    node: int | None = None

    def __str__(self) -> str:
        if self.kind == "broker":
            return f"broker {self.node}"
        if self.topic is None:
            return self.kind
        place = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"end of {place}" if self.kind == "end" else place


@dataclass(frozen=True, slots=True)
class Problem:
    """ended_ns: None as long as it lasts."""

    subject: ProblemSubject
    reason: str
    since_ns: int
    ended_ns: int | None = None


class Problems:
    """The problems that last, and the news of them. now_ns: the time, since 1970 UTC."""

    def __init__(self, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._now_ns = now_ns
        self._known: dict[ProblemSubject, Problem] = {}
        self._news: list[Problem] = []

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, subject: ProblemSubject) -> bool:
        return subject in self._known

    def __iter__(self) -> Iterator[Problem]:
        return iter(self._known.values())  # the oldest first

    def begin(self, subject: ProblemSubject, reason: str) -> None:
        """A subject cannot be seen."""
        reason = reason[:LONGEST_REASON]
        known = self._known.get(subject)
        if known is None and len(self._known) >= MOST_PROBLEMS:
            return
        if known is None or known.reason != reason:
            since_ns = self._now_ns() if known is None else known.since_ns
            self._known[subject] = Problem(subject, reason, since_ns)
            self._news.append(self._known[subject])

    def end(self, subject: ProblemSubject) -> None:
        """A subject was seen, or is not asked for."""
        known = self._known.pop(subject, None)
        if known is not None:
            self._news.append(replace(known, ended_ns=self._now_ns()))

    def end_others(self, kind: ProblemKind, subjects: Collection[ProblemSubject]) -> None:
        """Of this kind, only these are asked for."""
        for subject in [known for known in self._known if known.kind == kind and known not in subjects]:
            self.end(subject)

    def news(self) -> list[Problem]:
        """What has begun, changed and ended since the last call."""
        news, self._news = self._news, []
        return news
