"""The members of a classic group that went without a request: which, when and how.

Strategy: the coordinator's timers are replayed (`classic_timers`) from what was last seen of each member and
from the last generation. Rules: a session runs while no JoinGroup or SyncGroup of its member waits; if that
one's answer was not seen, it runs from the next generation on. A member whose session timeout is not known
counts as timed out if it was silent for as long as any session lasts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from coordwire.timeline.events import Leaving
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.classic_timers import Awaited, Departures, Replayed, replayed
from coordwire.timeline.members import Member
from coordwire.timeline.rebalance import Rebalance
from coordwire.timeline.session_clocks import SessionClocks

__all__ = ["MOST_REPLAYED", "MS", "NEAR_NS", "SilentMembers"]

MOST_REPLAYED = 100
"""In a group of more members, what each was refused with is not held against all members' timers."""

MS = 1_000_000

NEAR_NS = 100_000_000
"""A coordinator's clock runs from when it handles a request, not from when its answer was seen."""

SHORT_NS = 1_000_000_000
"""A rebalance that took less did not wait for a member."""

SHORTEST_SESSION_NS = 6_000_000_000
"""Kafka's default of `group.min.session.timeout.ms`."""


class SilentMembers:
    """Of one group. formed: the rebalance that formed the last generation, None once no SyncGroup is awaited
    any more; formed_ns: when it was; gone_by: who must have been out by then; heard_before: when each of
    the others was heard last before, in nanoseconds, 0 for never."""

    def __init__(self, members: dict[str, Member], clocks: SessionClocks) -> None:
        self._members, self._clocks = members, clocks
        self.formed: Rebalance | None = None
        self.formed_ns: int | None = None
        self.gone_by: Departures = {}
        self.heard_before: dict[str, int] = {}

    def forms(self, rebalance: Rebalance, departures: Departures, place: Seen) -> None:
        """A generation is formed. departures: who must have been out by then."""
        self.formed, self.formed_ns, self.gone_by = rebalance, place.time_ns, departures

    def are_in(self, named: Collection[str]) -> None:
        """A generation has these members: they were not out by then."""
        if self.gone_by:
            self.gone_by = {name: departure for name, departure in self.gone_by.items() if name not in named}

    def departures(
        self,
        joins: Collection[tuple[int, str]],
        absent: dict[str, int],
        until_ns: int,
        waited: tuple[int, int] = (0, 0),
    ) -> Departures:
        """Who is out by then. The timers are replayed only if one may end by then."""
        if not self.gone_by and not absent and not self._may_end(joins, until_ns):
            return {}
        return self.replayed(joins, absent, until_ns, waited).departures

    def _may_end(self, joins: Collection[tuple[int, str]], until_ns: int) -> bool:
        """Whether a session or a phase may end by then. One that runs has its end; another begins with a
        JoinGroup or with the generation, at the earliest, and lasts as long as the shortest timeout."""
        began_ns = [time_ns for time_ns, _ in joins]
        if self.formed is not None and self.formed.joined_ns is not None:
            began_ns.append(self.formed.joined_ns)
        shortest_ms = (until_ns - min(began_ns, default=until_ns + 1)) // MS
        quiet_until_ns = self._clocks.quiet_until_ns
        for member in self._members.values():
            over_ns = None if member.parked else quiet_until_ns(member)
            if over_ns is not None and over_ns <= until_ns:
                return True
            for timeout_ms in (member.session_timeout_ms, member.rebalance_timeout_ms):
                if timeout_ms and timeout_ms <= shortest_ms:
                    return True
        return False

    def replayed(
        self,
        joins: Iterable[tuple[int, str]],
        absent: dict[str, int],
        until_ns: int,
        waited: tuple[int, int] = (0, 0),
    ) -> Replayed:
        """The effects of the coordinator's timers until then. joins, waited: see `classic_timers.replayed`;
        absent: until when the join phase under way waited for members that are out, and didn't join."""
        formed = self.formed
        known = {name: departure for name, departure in self.gone_by.items() if name in self._members}
        present = {name: member for name, member in self._members.items() if name not in known}
        synced = frozenset[str]() if formed is None else formed.syncing | formed.synced
        expected = present if formed is None or not formed.named else present.keys() & formed.named
        unsynced = () if formed is None else [name for name in expected if name not in synced]
        awaited = {name: self._awaited(member) for name, member in present.items()}
        awaited |= {name: Awaited(absent_ns, 0, 0, static=False) for name, absent_ns in absent.items()}
        joined_ns = None if formed is None else formed.joined_ns
        after = self._clocks.stalls.after
        read_ns = self._clocks.stalls.read_ns
        joins = [(read_ns(join_ns), name) for join_ns, name in joins]
        departures, formed_ns = replayed(
            awaited, unsynced, joined_ns, joins, until_ns, waited=waited, after=after
        )
        departures = {name: departure for name, departure in departures.items() if name not in absent}
        return Replayed({**known, **departures}, formed_ns)

    def _awaited(self, member: Member) -> Awaited:
        over_ns = None if member.parked else self._clocks.quiet_until_ns(member)
        session_ns, patience_ns = member.session_timeout_ms or 0, member.rebalance_timeout_ms or 0
        is_static = member.instance_id is not None
        return Awaited(over_ns, session_ns * MS, patience_ns * MS, is_static, member.asked_ns)

    def departure_from(self, rebalance: Rebalance, member: Member, place: Seen) -> tuple[Leaving, Seen]:
        """How and when a member left that isn't in the generation of a rebalance."""
        if member.member_id in self.gone_by:
            when_ns, departure = self.gone_by[member.member_id]
            return departure, place.at(when_ns)
        over_ns = self._clocks.quiet_until_ns(member)
        departure, moment = self._by_session(member, "not_rejoined", place, over_ns)
        if departure == "not_rejoined" and not rebalance.waited_out(place.time_ns, NEAR_NS):
            is_lost = (member.answered_ns or 0) < self._clocks.available_ns and over_ns is not None
            heard_ns = self.heard_before.get(member.member_id, 0)
            before_ns = self._clocks.stalls.after(heard_ns + (member.session_timeout_ms or 0) * MS)
            if is_lost and heard_ns and member.session_timeout_ms and before_ns < self._clocks.moved_ns:
                return "session_timeout", place.at(before_ns)
            departure = "removed" if is_lost else "session_timeout"  # else it would still be waited for
        began_ns = rebalance.began.time_ns or 0
        is_short = (place.time_ns or 0) - began_ns < SHORT_NS
        if departure == "not_rejoined" and is_short and _was_silent(member, place.at(began_ns)):
            return "session_timeout", place.at(began_ns)  # the rebalance did not wait for it
        return departure, moment

    def departure_of_unknown(
        self, member: Member, departures: Departures, place: Seen
    ) -> tuple[Leaving, Seen]:
        """How and when a member left that the coordinator doesn't know any more. departures: by the
        replayed timers."""
        by_timers = departures.get(member.member_id)
        if by_timers is not None and not member.parked:
            return by_timers[1], place.at(by_timers[0])
        departure, moment = self._by_session(member, "removed", place)
        if departure == "removed" and by_timers is not None:
            departure, moment = by_timers[1], place.at(by_timers[0])
        if departure == "removed" and _was_silent(member, place):
            departure = "session_timeout"
        return departure, moment

    def _by_session(
        self, member: Member, otherwise: Leaving, place: Seen, over_ns: int | None = None
    ) -> tuple[Leaving, Seen]:
        """How and when a member must have left by its session. over_ns: when that ends, if unanswered
        requests count."""
        session_ns = 0 if member.parked else (member.session_timeout_ms or 0) * MS
        over_ns = over_ns or self._clocks.over_before_move_ns(member, session_ns)
        over_ns = over_ns or self._clocks.over_ns(member)
        if over_ns is not None and member.parked:
            waited_ns = (self.formed_ns or 0) - (member.last_seen_ns or 0)
            over_ns = over_ns + waited_ns if waited_ns > 0 else None
        if over_ns is not None and place.time_ns is not None and place.time_ns > over_ns - NEAR_NS:
            return "session_timeout", place.at(over_ns)
        return otherwise, place


def _was_silent(member: Member, place: Seen) -> bool:
    """Whether a member whose session's length isn't known was silent for as long as any lasts."""
    asked_ns = max(member.asked_ns, member.answered_ns or 0)
    if member.session_timeout_ms or not asked_ns or place.time_ns is None:
        return False
    return place.time_ns - asked_ns >= SHORTEST_SESSION_NS
