"""Where and when something was seen, and claims about members with their evidence: of the same member and
group, and no later than the claim.

Strategy: an `Evidence` is what one packet shows of one member. A `MemberClaim` is of one member at one
moment, and gives times, packets and silences only of evidence that is its own: what is of another member or
group, or of later, it does not give at all. Endings, deaths and learned session lengths are built from what a
claim gives. Rules: packets have numbers of one capture, and are not cited for what another shows; nothing
raises.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, TypeVar

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


class Evidence(NamedTuple):
    """What a packet shows of a member. of: its group's id and its own; place: when and where."""

    of: MemberName
    place: Seen


class Silence(NamedTuple):
    """A member whose coordinator heard nothing of it, in ns since 1970. Only a `MemberClaim` makes one."""

    of: MemberName
    since_ns: int
    until_ns: int

    @property
    def length_ns(self) -> int:
        """How long it was, in nanoseconds."""
        return self.until_ns - self.since_ns


class MemberClaim(NamedTuple):
    """Something of a member. of: its group's id and its own; at: when it must have been so, and where the
    frame was seen that shows it."""

    of: MemberName
    at: Seen

    def admits(self, evidence: Evidence) -> bool:
        """Whether it is of the same member, and not later."""
        return evidence.of == self.of and (evidence.place.time_ns or 0) <= (self.at.time_ns or 0)

    def latest(self, *evidence: Evidence) -> Evidence | None:
        """The last that it admits, None for none."""
        own = [sighting for sighting in evidence if self.admits(sighting)]
        return max(own, key=lambda sighting: sighting.place.time_ns or 0, default=None)

    def time_ns(self, evidence: Evidence) -> int | None:
        """When the evidence was seen, None if it is not admitted."""
        return evidence.place.time_ns if self.admits(evidence) else None

    def packet(self, evidence: Evidence) -> int | None:
        """The evidence's packet, None if it may not be cited."""
        return cited(evidence.place, self.at) if self.admits(evidence) else None

    def silence(self, since_ns: int | None) -> Silence:
        """The member's silence since then, of no length where a time is not known or later."""
        until_ns = self.at.time_ns or 0
        return Silence(self.of, until_ns if since_ns is None else min(since_ns, until_ns), until_ns)


def cited(place: Seen, at: Seen) -> int | None:
    """The packet of what was seen, for what another frame shows; None if of another capture, or later."""
    if (
        place.source != at.source
        or place.packet is None
        or (at.packet is not None and place.packet > at.packet)
    ):
        return None
    return place.packet
