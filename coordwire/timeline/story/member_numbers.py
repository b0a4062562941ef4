"""The members of a group by short numbers, #1, #2, … in the order in which they came, and who they are.

Rules: a member id has one number in the whole story; a client that is in again under another id has another
number. A number has the client's id beside it, "#2 (till)", one for several members of it. Text from outside
reaches the terminal with its control characters escaped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby

from coordwire.capture.printable import shown
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft

__all__ = ["MemberNumbers", "Stay"]

LONG_CLIENT = 24
"""Characters of a client's id that are beside a number."""

MOST_NAMED = 20
"""Members that are named together; of more the others are counted."""


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

    numbers: OrderedDict[str, int] = field(default_factory=OrderedDict)
    stays: OrderedDict[str, Stay] = field(default_factory=OrderedDict)
    _instances: dict[str, str] = field(default_factory=dict)
    _numbered: int = 0

    @classmethod
    def of(cls, members: Iterable[GroupEvent]) -> MemberNumbers:
        """members: the events of who was in, of all times."""
        known = cls()
        known.add(members)
        return known

    def add(self, members: Iterable[GroupEvent]) -> None:
        """Take in further events of who was in. Numbers stay: those of these come after all before."""
        for event in sorted(members, key=lambda event: event.time_ns or 0):
            if isinstance(event, MemberJoined):
                self.number(event.member_id)
                self.stays[event.member_id] = Stay(event)
                if event.instance_id is not None:
                    self._take_place(event.instance_id, event.member_id)
            elif isinstance(event, MemberLeft):
                self.number(event.member_id)
                self.stays.setdefault(event.member_id, Stay(None)).departure = event

    def _take_place(self, instance_id: str, member_id: str) -> None:
        """A static member takes the place of the one that had its name before."""
        before = self._instances.get(instance_id, member_id)
        stay = self.stays.get(before)
        if before != member_id and stay is not None and stay.departure is None:
            stay.heir = member_id
        self._instances[instance_id] = member_id

    def forget(self, most: int) -> None:
        """Forget those that came first, beyond so many; the others keep their numbers."""
        while len(self.numbers) > most:
            member_id, _ = self.numbers.popitem(last=False)
            stay = self.stays.pop(member_id, None)
            instance_id = stay.joined.instance_id if stay is not None and stay.joined is not None else None
            if instance_id is not None and self._instances.get(instance_id) == member_id:
                del self._instances[instance_id]

    def number(self, member_id: str) -> int:
        number = self.numbers.get(member_id)
        if number is None:
            self._numbered += 1
            number = self.numbers[member_id] = self._numbered
        return number

    def client(self, member_id: str) -> str:
        """The client id of a member that was in; "" if it is not known."""
        stay = self.stays.get(member_id)
        event = None if stay is None else stay.joined or stay.departure
        return (event.client_id or "") if event is not None else ""

    def name(self, member_id: str | None, client_id: str | None = None) -> str:
        """A member as it is shown; the client's id for one that never was in."""
        if member_id in self.numbers:
            return self.names((member_id,))
        return shown(client_id or member_id or "a member")

    def names(self, member_ids: Iterable[str | None]) -> str:
        """Several, in the order of their numbers: "#1 #2 (till), #5 (web)"."""
        known = {member_id for member_id in member_ids if member_id is not None}
        unknown = sorted(known - self.numbers.keys())[:MOST_NAMED]
        order = sorted(known & self.numbers.keys(), key=self.numbers.__getitem__)[: MOST_NAMED - len(unknown)]
        texts = []
        for client, members in groupby(order, self.client):
            numbers = " ".join(f"#{self.numbers[member_id]}" for member_id in members)
            texts.append(f"{numbers} ({shown(_short(client))})" if client else numbers)
        unnamed = len(known) - len(order) - len(unknown)
        return ", ".join([*texts, *map(shown, unknown)]) + (f" and {unnamed:,} more" if unnamed else "")


def _short(client: str) -> str:
    """A client's id; a long one is cut after one of its parts, if that leaves half of it or more."""
    if len(client) <= LONG_CLIENT:
        return client
    parts = [end for end in range(LONG_CLIENT // 2, LONG_CLIENT + 1) if client[end - 1] in "-._"]
    return f"{client[: parts[-1] if parts else LONG_CLIENT]}…"
