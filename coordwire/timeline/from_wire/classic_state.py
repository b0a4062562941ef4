"""What is known of a classic group, and when its members were heard.

Rules: a session runs from when its member was last answered; it doesn't run while a JoinGroup or SyncGroup of
it waits. A request in a steady group doesn't begin it anew. After a move it does, for all.
"""

from __future__ import annotations

from collections import OrderedDict

from coordwire.timeline.events import Leaving
from coordwire.timeline.from_wire.classic_timers import Departures
from coordwire.timeline.from_wire.joining import Joining
from coordwire.timeline.from_wire.member_death import Sessions
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.places import Seen, remember
from coordwire.timeline.rebalance import Rebalance, Why

__all__ = ["MOST_REPLAYED", "MOST_WAITING", "MS", "NEAR_NS", "ClassicState", "is_heir"]

MOST_WAITING = 10_000
MOST_REPLAYED = 100
"""In a group of more members, what each was refused with is not held against all members' timers."""

MS = 1_000_000

NEAR_NS = 100_000_000
"""A coordinator's clock runs from when it handles a request, not from when its answer was seen."""


class ClassicState(Group):
    """The state of one classic group. waiting: JoinGroups that are not answered yet."""

    def __init__(self, group: str) -> None:
        super().__init__(group, "classic")
        self.waiting = Joining(MOST_WAITING)
        self._causes: OrderedDict[Seen, Why] = OrderedDict()  # JoinGroups that may begin a rebalance
        self._asked: OrderedDict[str, Seen] = OrderedDict()  # the last of each member
        self._leaving: dict[str, tuple[Seen, str | None]] = {}  # whose LeaveGroup waits, with their reasons
        self._left: set[str] = set()  # of those, who is known to have left already
        self._sessions = Sessions(self.members, self.quiet_until_ns)
        self._alive_until_ns = 0  # until then a member's session runs
        self._formed: Rebalance | None = None  # what formed the last generation
        self._formed_ns: int | None = None  # when the last generation was formed
        self._gone_by: Departures = {}  # who must have been out by then
        self._since_ns = 0  # when the first answer of the generation was seen
        self._answered_ns = 0  # when a JoinGroup was last answered with a new generation
        # The last generation that was steady, with what its members subscribed to and said to own.
        self._written: tuple[int | None, dict[str, tuple[Member, tuple[str, ...], Owned | None]]] = None, {}
        self._listed: dict[str, tuple[Member, Seen]] = {}  # by the leader's answer, and not answered yet
        self._presumed: OrderedDict[str, Member] = OrderedDict()  # who was taken to be out, and may be in
        self._moved_coordinator = False
        self._known_from_start = False

    def let_in_listed(self, *, at_end: bool = False) -> None:
        """Something else begins: static members that were listed are in, though their answers weren't seen;
        at the end of the input all are."""
        listed, self._listed = self._listed, {}
        for name, (member, seen) in listed.items():
            if name not in self.members and (at_end or member.instance_id is not None):
                static = self.members.of_instance(member.instance_id)
                if static is not None:
                    self._replace(static, member, seen)
                self.add(member, seen, rejoined=static is not None)
                self._sessions.watch(member)

    def _replace(self, static: Member, heir: Member, place: Seen) -> None:
        """A static member's place is its heir's."""
        del self.members[static.member_id]
        self.inherits(heir, static, place)
        if self.leader == static.member_id:
            self.leader = heir.member_id

    def awaits(self, waiting: Joining) -> None:
        """The JoinGroups of the consumer group that this one was, which are not answered yet."""
        self.waiting = waiting

    def adopt(self) -> None:
        """The members are those of the consumer group that this one was."""
        self._known_from_start = True
        for member in self.members.values():
            self._sessions.watch(member)

    def _is_late(self, place: Seen) -> bool:
        """Whether something is of an earlier generation: after a lost packet, answers come late."""
        return place.time_ns is not None and place.time_ns < self._since_ns

    def _has_moved(self, place: Seen) -> bool:
        """Whether the coordinator has moved since the generation was formed."""
        return self.available_ns >= self._since_ns and not self._is_late(place)

    def _seen(self, member: Member, place: Seen) -> None:
        if self.silent_at(member, place.time_ns):
            self.unavailable(place)  # else it would be out
        member.last_seen_ns = place.time_ns
        member.parked = False
        if self._gone_by:
            self._gone_by.pop(member.member_id, None)
        self._sessions.watch(member)

    def _not_renewed(self, member_id: str, heard_ns: int | None) -> None:
        """A request in a steady group doesn't begin a session anew, which runs since then."""
        member = self.members.get(member_id)
        if member is not None and heard_ns is not None:
            member.last_seen_ns = heard_ns

    def _patience_ns(self) -> int:
        """How long a rebalance of these members waits for them at most; 0 if one of them didn't say."""
        known = [one.rebalance_timeout_ms for one in self.members.values()]
        return 0 if None in known else max((one or 0 for one in known), default=0) * MS

    def remove(
        self, member_id: str, place: Seen, how: Leaving, *, reason: str | None = None, inferred: bool = False
    ) -> None:
        member = self.members.get(member_id)
        super().remove(member_id, place, how, reason=reason, inferred=inferred)
        rebalance = self.rebalance
        if rebalance is not None and rebalance.generation is None and member_id not in rebalance.joined:
            rebalance.gone[member_id] = place.time_ns or 0
        if inferred and member is not None:
            remember(self._presumed, member_id, member, MOST_REPLAYED)


def is_heir(joining: Member, seen: Seen, static: Member) -> bool:
    """Whether a JoinGroup takes a static member's place, which was let in before."""
    same = joining.instance_id is not None and joining.instance_id == static.instance_id
    return same and not joining.member_id and (seen.time_ns or 0) > (static.answered_ns or 0)
