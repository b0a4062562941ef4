"""One rebalance that is under way: who joined, who has an assignment, and why it began."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from coordwire.timeline.events import Cause
from coordwire.timeline.evidence import Seen, is_before
from coordwire.timeline.members import Member


class Trigger(NamedTuple):
    """A cause as far as it is known; see `coordwire.timeline.events.RebalanceBegan`. asker: the member that
    asks to be let in and has no id yet, whose client's id others may have too; follows: whether it is a
    JoinGroup that a steady group merely answers."""

    cause: Cause
    member_id: str | None = None
    inferred: bool = False
    detail: str = ""
    client_id: str | None = None
    asker: Member | None = None
    follows: bool = False


@dataclass(slots=True)
class Rebalance:
    """One under way. joined: members by the time of their last request to join; syncing: those who asked
    for their assignment; synced: those who have it; unsynced: those who joined and have none,
    unsynced_named: of `members`; named: `members`, as a set; unjoined: those of them who weren't seen
    joining; slowest: who completed it, where that is known; patience_ns: how long it waits for members at
    most, 0 if one of them didn't say; heir: a static member in the place of one that never asked for its
    assignment; led: whether its leader sent all assignments; stable: where a member first got its own,
    synced_ns: when one last did; reported: whether its begin is; absent: until when it waited for members
    that are out, and didn't join; after_ns: when the generation before was formed; heirs: who has whose place
    of `members` by now."""

    began: Seen
    trigger: Trigger
    generation_before: int | None
    generation: int | None = None
    protocol: str | None = None
    leader: str | None = None
    members: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()
    joined: dict[str, int | None] = field(default_factory=dict)
    synced: set[str] = field(default_factory=set)
    syncing: set[str] = field(default_factory=set)
    unsynced: set[str] = field(default_factory=set)
    unsynced_named: set[str] = field(default_factory=set)
    unjoined: set[str] = field(default_factory=set)
    joined_ns: int | None = None
    slowest: str | None = None
    patience_ns: int = 0
    heir: str | None = None
    led: bool = False
    stable: Seen | None = None
    synced_ns: int | None = None
    reported: bool = False
    absent: dict[str, int] = field(default_factory=dict)
    after_ns: int = 0
    heirs: dict[str, str] = field(default_factory=dict)

    @property
    def is_unexplained(self) -> bool:
        """Whether nothing that was seen says why it began."""
        return self.trigger.cause == "unknown" and self.trigger.inferred

    def is_stable_at(self, place: Seen) -> bool:
        """Whether its coordinator had all assignments by then."""
        return self.stable is not None and is_before(self.stable, place)

    def explain(self, trigger: Trigger, place: Seen) -> None:
        """What caused it became known, and that it happened here."""
        self.trigger = trigger
        self.began = self.began.at(place.time_ns)

    def join(self, member_id: str, time_ns: int | None) -> None:
        self.joined[member_id] = time_ns
        self.unjoined.discard(member_id)
        if member_id not in self.synced:
            self.unsynced.add(member_id)
            if member_id in self.named:
                self.unsynced_named.add(member_id)

    def over_ns(self, since_ns: int | None) -> int | None:
        """When it no longer waits for members, if it waits since then."""
        return since_ns + self.patience_ns if since_ns is not None and self.patience_ns else None

    def waited_out(self, time_ns: int | None, near_ns: int) -> bool:
        """Whether its join phase may have lasted as long as it can."""
        began_ns = self.began.time_ns
        if not self.patience_ns or began_ns is None or time_ns is None:
            return True
        return time_ns - began_ns > self.patience_ns - near_ns

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
        self.unjoined = {member_id for member_id in members if member_id not in self.joined}
        self.unsynced_named = {member_id for member_id in members if member_id in self.unsynced}

    def replace(self, static: str, heir: str) -> None:
        """Another has a static member's place in the generation."""
        if static in self.named:
            self.heirs[static] = heir
        for first in [first for first, last in self.heirs.items() if last == static]:
            self.heirs[first] = heir

    @property
    def members_now(self) -> tuple[str, ...]:
        """Those of its generation, with the heirs of static ones."""
        heirs = self.heirs
        return tuple(heirs.get(member_id, member_id) for member_id in self.members) if heirs else self.members

    @property
    def last_to_join(self) -> str | None:
        """Whom the others waited for; a member that is alone keeps no other waiting."""
        if self.slowest is not None:
            return self.slowest
        if len(self.joined) < 2:
            return None
        return max(self.joined, key=lambda member_id: self.joined[member_id] or 0)
