"""Claims about members, and their evidence: of the same member and group, and no later than the claim.

Strategy: an `Evidence` is what one packet shows of one member. A `MemberClaim` is of one member at one
moment, and gives times, packets and silences only of evidence that is its own: what is of another member or
group, or of later, it does not give at all. Endings, deaths and learned session lengths are built from what a
claim gives. Rules: packets have numbers of one capture, and are not cited for what another shows; nothing
raises.
"""

from __future__ import annotations

from typing import NamedTuple

from coordwire.timeline.sightings import MemberName, Seen

__all__ = ["Evidence", "MemberClaim", "Silence", "cited"]


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
