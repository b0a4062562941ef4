"""The members of a group as they were last seen, by their ids and by the names of static ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from coordwire.timeline.events import TopicPartition
from coordwire.timeline.evidence import Seen

__all__ = ["MOST_MEMBERS", "Member", "Members", "Owned"]

MOST_MEMBERS = 10_000
"""So many members of one group are remembered."""

Owned = frozenset[TopicPartition]


@dataclass(slots=True)
class Member:
    """A member as it was last seen. generation: the one it was last in; assigned, owned: None for unknown;
    classic: it speaks the classic protocol; away: it left for now, and its partitions wait for it; parked: a
    JoinGroup or SyncGroup of it waits for its answer, and its session doesn't run; answered_ns: when its last
    JoinGroup was answered; serial: its place among all that ever were in; asked_ns: when its last request
    was seen, answered or not, that its session begins again with; sent_ns: the same of any request; silence:
    from when until when it sent nothing, the last time; revokes_ns:
    since when it shall give up what it has; standby: a streams group's member's standby tasks, as it was last
    given them; standby_changed: and has not reported yet; reason: why it joins, as its last JoinGroup says;
    offers: that one's protocols with their metadata, hashed, None if it wasn't seen; unseen: its requests are
    missing since its last one; unread: where the first of its requests was seen that its coordinator has
    not accepted yet."""

    member_id: str
    client_id: str | None = None
    host: str | None = None
    instance_id: str | None = None
    topics: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    last_seen_ns: int | None = None
    generation: int | None = None
    assigned: Owned | None = None
    owned: Owned | None = None
    classic: bool = False
    away: bool = False
    parked: bool = False
    answered_ns: int | None = None
    asked_ns: int = 0
    sent_ns: int = 0
    silence: tuple[int, int] = (0, 0)
    serial: int = -1
    revokes_ns: int | None = None
    standby: Owned = frozenset()
    standby_changed: bool = False
    reason: str | None = None
    offers: bytes | None = None
    unseen: bool = False
    unread: Seen | None = None

    def subscribe(self, joining: Member) -> None:
        """It subscribes as its JoinGroup says, if that could be read."""
        self.topics = joining.topics or self.topics
        self.protocols = joining.protocols or self.protocols
        self.offers = joining.offers


class Members(OrderedDict[str, Member]):
    """A group's members by their ids, the oldest first; and by the names of static ones. on_drop: called with
    the id of each that is taken out."""

    def __init__(self, on_drop: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.on_drop = on_drop
        self._serial = 0
        self._named: dict[str, dict[str, Member]] = {}

    def of_instance(self, instance_id: str | None) -> Member | None:
        """The oldest of this name."""
        if instance_id is None:
            return None
        return next(iter(self._named.get(instance_id, {}).values()), None)

    def __setitem__(self, member_id: str, member: Member) -> None:
        old = self.get(member_id)
        if old is not None and old.instance_id != member.instance_id:
            self._unname(old)
        if old is None:
            member.serial = self._serial
            self._serial += 1
        else:
            member.serial = old.serial
        super().__setitem__(member_id, member)
        if member.instance_id is not None:
            self._named.setdefault(member.instance_id, {})[member_id] = member

    def __delitem__(self, member_id: str) -> None:
        self._unname(self[member_id])
        super().__delitem__(member_id)
        if self.on_drop is not None:
            self.on_drop(member_id)

    def drop(self, member_id: str) -> None:
        """Take one out, if it is there."""
        if member_id in self:
            del self[member_id]

    def _unname(self, member: Member) -> None:
        if member.instance_id is not None:
            namesakes = self._named[member.instance_id]
            namesakes.pop(member.member_id, None)
            if not namesakes:
                del self._named[member.instance_id]
