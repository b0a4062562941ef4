"""Where and when something was seen, and dicts that forget their oldest entry beyond a limit."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, TypeVar

__all__ = ["MemberName", "Seen", "is_before", "remember"]

K = TypeVar("K")
V = TypeVar("V")


class MemberName(NamedTuple):
    """A member by its group's id and its own: another group may have a member of the same id. What is known
    of members of several groups is kept by this."""

    group: str
    member_id: str


class Seen(NamedTuple):
    """When and where something was seen. number: of the frame in its source; packet: in the capture."""

    time_ns: int | None
    source: str
    number: int
    packet: int | None = None

    def at(self, time_ns: int | None) -> Seen:
        """The same place at another time, for what must have happened earlier; never later than seen."""
        if time_ns is None or self.time_ns is None:
            return self
        return self._replace(time_ns=min(time_ns, self.time_ns))


def remember(known: OrderedDict[K, V], key: K, value: V, most: int) -> None:
    """Set a key, and forget the oldest beyond so many. A plain dict would step over all that it has lost."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]


def is_before(place: Seen, reference: Seen) -> bool:
    """Whether one was seen before the other; frames of the same time go by their order."""
    if place.time_ns == reference.time_ns and place.source == reference.source:
        return place.number < reference.number
    return (place.time_ns or 0) < (reference.time_ns or 0)
