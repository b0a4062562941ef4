"""One rebalance that is under way: who joined, who has an assignment, and why it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from coordwire.groups.seen import Seen
from coordwire.groups.timeline_events import Cause

__all__ = ["Rebalance", "Why"]


class Why(NamedTuple):
    """A cause as far as it is known; see `coordwire.groups.timeline_events.RebalanceBegan`."""

    cause: Cause
    member_id: str | None = None
    inferred: bool = False
    detail: str = ""


@dataclass(slots=True)
class Rebalance:
    """One under way. joined: members by the time of their last request to join; synced: those with their
    assignment; unsynced: those who joined and have none, unsynced_named: of `members`; named: `members`, as a
    set; unjoined: those of them who weren't seen joining; slowest: who completed it, where that is known;
    reported: whether its begin is."""

    began: Seen
    why: Why
    generation_before: int | None
    generation: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    joined: dict[str, int | None] = field(default_factory=dict)
    synced: set[str] = field(default_factory=set)
    unsynced: set[str] = field(default_factory=set)
    unsynced_named: set[str] = field(default_factory=set)
    unjoined: set[str] = field(default_factory=set)
    joined_ns: int | None = None
    slowest: str | None = None
    reported: bool = False

    def explain(self, why: Why, place: Seen) -> None:
        """What caused it became known, and that it happened here."""
        self.why = why
        self.began = self.began.at(place.time_ns)

    def join(self, member_id: str, time_ns: int | None) -> None:
        self.joined[member_id] = time_ns
        self.unjoined.discard(member_id)
        if member_id not in self.synced:
            self.unsynced.add(member_id)
            if member_id in self.named:
                self.unsynced_named.add(member_id)

    def withdraw(self, member_id: str) -> None:
        """A request to join was refused."""
        self.joined.pop(member_id, None)
        self.unsynced.discard(member_id)
        self.unsynced_named.discard(member_id)

    def sync(self, member_id: str) -> None:
        self.synced.add(member_id)
        self.unsynced.discard(member_id)
        self.unsynced_named.discard(member_id)

    def name(self, members: tuple[str, ...]) -> None:
        """Its generation's members are known."""
        self.members, self.named = members, frozenset(members)
        self.unjoined = {one for one in members if one not in self.joined}
        self.unsynced_named = {one for one in members if one in self.unsynced}

    @property
    def last_to_join(self) -> str | None:
        """Whom the others waited for; a member that is alone keeps no other waiting."""
        if self.slowest is not None:
            return self.slowest
        if len(self.joined) < 2:
            return None
        return max(self.joined, key=lambda one: self.joined[one] or 0)
