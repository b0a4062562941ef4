"""The members of a group by short numbers, #1, #2, … in the order in which they came, and who they are.

Rules: a member id has one number in the whole story; a client that is in again under another id has another
number. Text from outside reaches the terminal with its control characters escaped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordwire.capture.printable import shown
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft

__all__ = ["MemberNumbers", "Stay"]


@dataclass(slots=True)
class Stay:
    """A member's time in the group. departure: None while it is in; heir: who has its place."""

    joined: MemberJoined | None
    departure: MemberLeft | None = None
    heir: str | None = None

    @property
    def is_in(self) -> bool:
        return self.departure is None and self.heir is None


@dataclass(slots=True)
class MemberNumbers:
    """All members that the events name. stays: by member id, in the order of their numbers."""

    numbers: dict[str, int] = field(default_factory=dict)
    stays: dict[str, Stay] = field(default_factory=dict)

    @classmethod
    def of(cls, members: Iterable[GroupEvent]) -> MemberNumbers:
        """members: the events of who was in, of all times."""
        known = cls()
        instances: dict[str, str] = {}
        for event in sorted(members, key=lambda event: event.time_ns or 0):
            if isinstance(event, MemberJoined):
                known.number(event.member_id)
                known.stays[event.member_id] = Stay(event)
                if event.instance_id is not None:
                    before = instances.get(event.instance_id)
                    if (
                        before is not None
                        and before != event.member_id
                        and known.stays[before].departure is None
                    ):
                        known.stays[before].heir = event.member_id
                    instances[event.instance_id] = event.member_id
            elif isinstance(event, MemberLeft):
                known.number(event.member_id)
                known.stays.setdefault(event.member_id, Stay(None)).departure = event
        return known

    def number(self, member_id: str) -> int:
        return self.numbers.setdefault(member_id, len(self.numbers) + 1)

    def name(self, member_id: str | None, client_id: str | None = None) -> str:
        """A member as it is shown; the client's id for one that never was in."""
        if member_id in self.numbers:
            return f"#{self.numbers[member_id]}"
        return shown(client_id or member_id or "a member")

    def names(self, member_ids: Iterable[str | None]) -> str:
        """Several, in the order of their numbers."""
        known = {member_id for member_id in member_ids if member_id is not None}
        order = sorted(known, key=lambda member_id: (self.numbers.get(member_id, 1 << 30), member_id))
        return " ".join(self.name(member_id) for member_id in order)
