"""The rebalances of a group whose coordinator assigns: what begins one, and when it is steady.

Strategy: a rebalance begins when something raises the group's epoch, and is steady once all members have
taken up theirs in it (`reconciliation`). What comes after a member has the new epoch begins another, but
joins within a second are one. Rules: what may raise the epoch once more, though no answer shows it yet, is
owed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwire.timeline.consumer_data import has_pattern, id_text, owned
from coordwire.timeline.events import Kind, Leaving, Outcome
from coordwire.timeline.from_wire.member_death import KnownTimeouts, Sessions, SessionTimeout
from coordwire.timeline.from_wire.reconciliation import Reconciliation
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member, Members, Owned
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Rebalance, Why
from coordwire.timeline.rebalance_cause import of_epoch

__all__ = [
    "ASSIGNMENT_INTERVAL_NS",
    "JOIN",
    "JOINS",
    "KEEPS_EPOCH",
    "NEAR_NS",
    "ModernRebalances",
    "is_earlier",
]

JOIN = 0

KEEPS_EPOCH = ("member_rejoined", "static_member_returned")
"""What need not raise the group's epoch."""

MOST_SUPERSEDED = 100
"""A superseded rebalance of more members doesn't list them: each joining of many would list them all."""

MOST_OWED = 100

JOINS = ("first_member", "new_member", "member_rejoined")

ASSIGNMENT_INTERVAL_NS = 1_000_000_000
"""The coordinator assigns at most so often (KIP-1263)."""

NEAR_NS = 100_000_000
"""So late may a heartbeat be."""

LATEST_EPOCH_NS = 2_000_000_000
"""A rebalance that hasn't raised the epoch by then won't: the coordinator assigns at least once a second."""


class ModernRebalances(Group):
    """The rebalances of one such group. name_of: a topic's name by its id's text; known: all groups' session
    timeouts."""

    def __init__(self, group: str, kind: Kind, name_of: Callable[[str], str], known: KnownTimeouts) -> None:
        super().__init__(group, kind, name_of)
        self.members = Members(self._out)
        self.timeout = SessionTimeout(group, kind, known)
        self.progress = Reconciliation(shared=kind == "share")
        self._sessions = Sessions(self.members, self.quiet_ns)
        self._risen: tuple[int, int] | None = None  # the epochs of a rise that nothing has explained yet
        self._merged: tuple[Why, Seen] | None = None  # the last that raised the epoch together with others
        self._raises = 0  # what raises the epoch, and no answer has shown yet
        self._surplus = 0  # by how much the last rise was more than what was seen to raise it
        self._departures = 0  # since an answer showed the group's epoch
        self._given_ns: int | None = None  # when the target of the rebalance under way was first seen
        self._owed: list[tuple[Why, Seen]] = []  # what will raise the epoch once more, each by one
        self._raised_ns = 0  # when an answer showed a new epoch
        self._unshown: list[tuple[Why, Seen]] = []  # what raises the epoch by one each, and no rise is for
        self._doubted: set[str] = set()  # silent members that were still in when their sessions seemed over

    def _out(self, member_id: str) -> None:
        self.progress.drop(member_id)
        self._doubted.discard(member_id)

    @property
    def _shown_after_ns(self) -> int:
        """A raised epoch shows within so long: in the first answer after the coordinator has assigned."""
        return LATEST_EPOCH_NS + self.timeout.interval_ns

    def _owes(self, why: Why, place: Seen) -> None:
        """Something raises the epoch, though no answer may show that at once."""
        if len(self._owed) < MOST_OWED and (why.member_id, why.cause) not in {
            (one.member_id, one.cause) for one, _ in self._owed
        }:
            self._owed.append((why, place))

    def _raises_later(self, why: Why, place: Seen) -> None:
        """Something raises the epoch by one, in its turn."""
        early_ns = (place.time_ns or 0) - self._shown_after_ns
        self._unshown = [one for one in self._unshown if (one[1].time_ns or 0) >= early_ns]
        if len(self._unshown) < MOST_OWED:
            self._unshown.append((why, place))

    def _raises_alone(self, why: Why, place: Seen) -> None:
        """A static member that is back raises the epoch, as it subscribes to something else: what needed no
        new epoch is over."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.joined_ns is None and rebalance.why.cause in KEEPS_EPOCH:
            self.close("superseded", place)
        self._raises_later(why, place)

    def _has_pattern(self, member_id: str | None) -> bool:
        """Whether a member's joining raises the epoch later, when its pattern is resolved."""
        member = self.members.get(member_id or "")
        return member is not None and has_pattern(member.topics)

    def disturbed(self, why: Why, place: Seen, *, again: bool = False) -> Rebalance:
        """Something raises the epoch: another rebalance, if a member has the epoch of this one already.

        again: whether it was seen before, and only now is known to be one of its own.
        """
        if why.cause not in KEEPS_EPOCH or self.progress.is_complete:
            self._close_even()
        rebalance = self.rebalance
        if why.cause not in KEEPS_EPOCH and why.cause != "assignment_changed" and not again:
            self._raises_later(why, place)
        if rebalance is not None and why.cause in KEEPS_EPOCH:
            self._merged = why, place
            return rebalance
        if why.cause not in KEEPS_EPOCH and not again and not self._has_pattern(why.member_id):
            self._raises += 1
        if self._owed and (place.time_ns or 0) - (self._owed[0][1].time_ns or 0) > self._shown_after_ns:
            self._owed = []  # it would have shown
        if rebalance is not None and self._owed:
            if why.cause != "member_removed":  # else it was out before, and raised the epoch then
                self._owes(why, place)
            self._merged = why, place
            return rebalance  # there may be one target for both
        if rebalance is not None and rebalance.joined_ns is None and rebalance.why.cause in KEEPS_EPOCH:
            self.close("superseded", place)  # it needs no new epoch, and this does
            rebalance = None
        if rebalance is not None and _explains(why, place, rebalance):
            rebalance.explain(why, place)
            return rebalance
        if rebalance is not None and self.progress.even_since is None and _batched(rebalance, why, place):
            self._merged = why, place
            return rebalance
        if rebalance is not None and rebalance.why.cause != "unknown" and rebalance.joined_ns is not None:
            self.close("superseded", place)
        if self.rebalance is not None:
            self._merged = why, place
        else:
            self.progress.begin()
            self._risen, self._owed, self._given_ns = None, [], None
        return self.begin(why, place)

    def departed(self, why: Why, when: Seen, place: Seen) -> None:
        """A member is out."""
        self._departures += 1
        if not self.members:
            if self.generation is not None:  # no member is left whose answer would have the epoch
                self.generation += self._departures
            self.close("empty", when)
            return
        self.disturbed(why, when)
        self.settle(None, place)

    def _close_even(self) -> None:
        """Something else begins: the rebalance under way is over if the group was even."""
        rebalance, even = self.rebalance, self.progress.even_since
        if rebalance is None or even is None or rebalance.why.cause == "unknown" or self._owed:
            return
        if rebalance.joined_ns is not None or rebalance.why.cause in KEEPS_EPOCH:
            self.close("steady", even)

    def remove(
        self, member_id: str, place: Seen, how: Leaving, *, reason: str | None = None, inferred: bool = False
    ) -> None:
        if how != "left_for_now" or self.progress.is_complete:
            self._close_even()  # while its members are those that it was even with
        super().remove(member_id, place, how, reason=reason, inferred=inferred)

    def assign(self, member: Member, partitions: Owned | None) -> None:
        super().assign(member, partitions)
        self.progress.hold(member.member_id, partitions)

    def settle(self, member_id: str | None, place: Seen) -> None:
        """Close the rebalance if all have taken up what they were given."""
        progress, rebalance = self.progress, self.rebalance
        if rebalance is None:
            return
        if progress.is_empty:
            if not self.members:
                self.close("empty", place)
            return  # else those that left for now will be back, or their sessions end
        if member_id is None:
            return
        progress.heard(member_id, self.generation, place)
        even, cause = progress.even_since, rebalance.why.cause
        if even is None or is_earlier(place, rebalance.began):
            return  # an answer that comes late, after a lost packet, says nothing of what began since
        renewed = rebalance.joined_ns is not None or cause == "static_member_returned"
        if self._owed:
            renewed = False  # a member that joined raises the epoch once more
        assigned = progress.has_owners or cause not in JOINS
        if renewed and progress.is_complete and assigned:
            self.close("steady", place)
        elif self.kind == "streams" and not assigned:
            return  # tasks come after the group's initial delay, and after the internal topics
        elif progress.is_confirmed and (renewed or cause in KEEPS_EPOCH or _later(even, place)):
            self._owed = []
            self.close("steady", even)

    def close(self, outcome: Outcome, place: Seen) -> None:
        """End the rebalance under way."""
        rebalance = self.rebalance
        if rebalance is not None:
            if (
                rebalance.why.cause == "member_rejoined"
                and rebalance.joined_ns is None
                and outcome == "steady"
            ):
                outcome = "not_needed"
            rebalance.generation = self.generation
            few = outcome != "superseded" or len(self.members) <= MOST_SUPERSEDED
            rebalance.members = tuple(self.members) if few else ()
            if outcome == "steady" and len(self.members) > 1:
                rebalance.slowest = self.progress.even_by
            if rebalance.why.cause == "unknown" and self._risen is not None:
                rebalance.why = of_epoch(*self._risen)
        self.end(outcome, place)
        if outcome != "superseded":
            self.progress.end()
            self._raises = 0  # what raised it was shown

    def _partitions(self, message: Any) -> Owned | None:
        """What its member owns, by a heartbeat, or its answer that it shall own; None for no change."""
        if self.kind == "streams":
            tasks = message.active_tasks
            return None if tasks is None else owned((one.subtopology_id, one.partitions) for one in tasks)
        inside = getattr(message, "assignment", message)
        topics = None if inside is None else getattr(inside, "topic_partitions", None)
        if topics is None:
            return None
        return owned((id_text(one.topic_id), one.partitions) for one in topics)


def _explains(why: Why, place: Seen, rebalance: Rebalance) -> bool:
    """Whether a session that ended before is why one began that seemed to be the coordinator's own."""
    earlier = (place.time_ns or 0) <= (rebalance.began.time_ns or 0)
    return earlier and why.cause == "session_timeout" and rebalance.why.cause == "assignment_changed"


def _batched(rebalance: Rebalance, why: Why, place: Seen) -> bool:
    """Whether a join is part of a rebalance that another began: the coordinator assigns once for both."""
    both = why.cause in JOINS and rebalance.why.cause in JOINS
    return both and (place.time_ns or 0) - (rebalance.began.time_ns or 0) < ASSIGNMENT_INTERVAL_NS


def is_earlier(place: Seen, began: Seen) -> bool:
    return place.time_ns is not None and began.time_ns is not None and place.time_ns < began.time_ns


def _later(even: Seen, place: Seen) -> bool:
    if even.time_ns is None or place.time_ns is None:
        return False
    return place.time_ns - even.time_ns > LATEST_EPOCH_NS
