"""Which members of a classic group are out without a word, when and how.

Strategy: the coordinator's timers are replayed (`classic_timers`) from what was last seen of each member;
what they lead to is reported once something shows it: an answer that a member is unknown, a generation
without it, or the group's next sign of life. Rules: a member that is taken to be out is remembered, as a
generation may show that it is in.
"""

from __future__ import annotations

from coordwire.timeline.events import Leaving
from coordwire.timeline.from_wire.classic_state import MOST_REPLAYED, MS, NEAR_NS, ClassicState, is_heir
from coordwire.timeline.from_wire.classic_timers import Awaited, Departures, Replayed, replayed
from coordwire.timeline.members import Member
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Rebalance

__all__ = ["TIMEOUT", "ClassicSilence"]

TIMEOUT: Leaving = "session_timeout"


class ClassicSilence(ClassicState):
    """Members that go without a word."""

    def _departures(self, until_ns: int | None) -> Departures:
        """Who is out by then because nothing was heard, when and how."""
        return self._replayed(until_ns).gone

    def _departures_formed(self, asked: Seen, place: Seen) -> Departures:
        """The same when a generation was formed, as this first answer to a JoinGroup shows. Sessions may run
        from a little earlier than their last answers."""
        if asked.time_ns is None or place.time_ns is None:
            return {}
        waited = asked.time_ns, place.time_ns - NEAR_NS
        gone = self._replayed(place.time_ns + NEAR_NS, waited).gone
        return {name: (min(when_ns, place.time_ns), how) for name, (when_ns, how) in gone.items()}

    def _replayed(self, until_ns: int | None, waited: tuple[int, int] = (0, 0)) -> Replayed:
        """What the coordinator's timers did until then. waited: see `classic_timers.replayed`."""
        if until_ns is None:
            return Replayed({}, None)
        rebalance, formed = self.rebalance, self._formed
        joins: list[tuple[int, str]] = []
        if rebalance is not None and rebalance.generation is None:
            joins = [(when or 0, name) for name, when in rebalance.joined.items()]
            joins.append((rebalance.began.time_ns or 0, ""))
            joins += self._nameless(rebalance.began.time_ns or 0, until_ns)
            joins = [one for one in joins if one[0] >= self.available_ns]  # what was before, a move has lost
        elif self._causes and len(self._causes) <= MOST_REPLAYED:
            joins = self._unanswered(until_ns)
        known = {name: one for name, one in self._gone_by.items() if name in self.members}
        present = {name: one for name, one in self.members.items() if name not in known}
        asked = frozenset[str]() if formed is None else formed.syncing | formed.synced
        inside = present if formed is None or not formed.named else present.keys() & formed.named
        unsynced = () if formed is None else [one for one in inside if one not in asked]
        awaited = {name: self._awaited(member) for name, member in present.items()}
        absent = rebalance.gone if rebalance is not None and rebalance.generation is None else {}
        awaited |= {name: Awaited(when, 0, 0, static=False) for name, when in absent.items()}
        gone, formed_ns = replayed(
            awaited, unsynced,
            None if formed is None else formed.joined_ns, joins, until_ns, waited=waited,
        )  # fmt: skip
        gone = {name: one for name, one in gone.items() if name not in absent}
        return Replayed({**known, **gone}, formed_ns)

    def _nameless(self, since_ns: int, until_ns: int) -> list[tuple[int, str]]:
        """Static members that wait for their answers, which have their ids, or whose place they take."""
        found = []
        for place, one in self.waiting.items() if len(self.waiting) <= MOST_REPLAYED else ():
            asked_ns = place.time_ns or 0
            if not one.member_id and one.instance_id and since_ns <= asked_ns < until_ns - NEAR_NS:
                static = self.members.of_instance(one.instance_id)
                found.append((asked_ns, one.instance_id if static is None else static.member_id))
        return found

    def _unanswered(self, until_ns: int) -> list[tuple[int, str]]:
        """The JoinGroups that begin a rebalance: one that is refused would have been answered at once."""
        found = []
        for place in self._causes:
            member, asked_ns = self.waiting.get(place), place.time_ns or 0
            if member is not None and max(self.available_ns, self._since_ns) <= asked_ns < until_ns - NEAR_NS:
                static = self.members.of_instance(member.instance_id)
                found.append((asked_ns, member.member_id or ("" if static is None else static.member_id)))
        return found

    def _awaited(self, member: Member) -> Awaited:
        over_ns = None if member.parked else self.quiet_until_ns(member)
        session_ns, patience_ns = member.session_timeout_ms or 0, member.rebalance_timeout_ms or 0
        return Awaited(over_ns, session_ns * MS, patience_ns * MS, member.instance_id is not None)

    def _form_unseen(self, place: Seen) -> None:
        """A generation that its timers formed, with members whose JoinGroups were answered unseen."""
        gone, formed_ns = self._replayed(place.time_ns)
        rebalance = self.rebalance
        for member in self.members.values() if formed_ns is not None else ():
            if member.parked and member.member_id not in gone:
                member.last_seen_ns, member.parked = formed_ns, False
                if rebalance is not None:
                    rebalance.joined.pop(member.member_id, None)

    def _replaced_by(self, static: Member, until_ns: int) -> bool:
        """Whether a JoinGroup took a static member's place before, which is not answered yet."""
        if len(self.waiting) > MOST_REPLAYED:
            return False
        return any(
            (place.time_ns or 0) <= until_ns and is_heir(one, place, static)
            for place, one in self.waiting.items()
        )

    def _all_gone(self, place: Seen) -> None:
        """All members are out."""
        gone = self._departures(place.time_ns)
        for one in sorted(self.members.values(), key=lambda one: one.serial):
            over_ns = self.quiet_until_ns(one) or 0
            when_ns, how = gone.get(one.member_id, (over_ns, TIMEOUT))
            self.remove(one.member_id, place.at(when_ns), how, inferred=True)

    def _went(self, member: Member, rebalance: Rebalance, place: Seen) -> tuple[Leaving, Seen]:
        """How a member went that isn't in the new generation, and when."""
        if member.member_id in self._gone_by:
            when_ns, how = self._gone_by[member.member_id]
            return how, place.at(when_ns)
        how, when = self._how_gone(member, "not_rejoined", place, self.quiet_until_ns(member))
        if how == "not_rejoined" and not rebalance.waited_out(place.time_ns, NEAR_NS):
            how = "session_timeout"  # else the rebalance would still wait for it
        return how, when

    def _how_gone(
        self, member: Member, otherwise: Leaving, place: Seen, over_ns: int | None = None
    ) -> tuple[Leaving, Seen]:
        """How a member must have gone, and when. While its JoinGroup or SyncGroup waits its session doesn't
        run; if it wasn't seen to be answered, it runs from the next generation on. over_ns: when its session
        ends, if unanswered requests count."""
        over_ns = over_ns or self.over_ns(member)
        if over_ns is not None and member.parked:
            waited_ns = (self._formed_ns or 0) - (member.last_seen_ns or 0)
            over_ns = over_ns + waited_ns if waited_ns > 0 else None
        if over_ns is not None and place.time_ns is not None and place.time_ns > over_ns - NEAR_NS:
            return "session_timeout", place.at(over_ns)
        return otherwise, place

    def _why_unknown(self, member: Member, place: Seen) -> tuple[Leaving, Seen]:
        """How a member went that the coordinator doesn't know any more, and when."""
        if len(self.members) <= MOST_REPLAYED and not member.parked:
            gone = self._departures(place.time_ns).get(member.member_id)
            if gone is not None:
                return gone[1], place.at(gone[0])
        how, when = self._how_gone(member, "removed", place)
        if how == "removed" and len(self.members) <= MOST_REPLAYED and place.time_ns is not None:
            when_ns, how = self._departures(place.time_ns).get(member.member_id, (place.time_ns, how))
            when = place.at(when_ns)
        return how, when

    def _drop_unlisted(self, place: Seen) -> None:
        """A generation is over whose members nothing has listed: its leader was gone before it was answered.
        Whom it can't have had is out."""
        rebalance = self._formed
        if rebalance is None or rebalance.named:
            return
        gone, self._gone_by = self._gone_by, {}
        for name, (when_ns, how) in gone.items():
            member = self.members.get(name)
            if member is not None and (self.quiet_ns(member) or 0) <= when_ns:
                self.remove(name, place.at(when_ns), how, inferred=True)
