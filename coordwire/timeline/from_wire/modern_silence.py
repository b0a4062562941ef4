"""Which members are out without a word, in a group whose coordinator assigns.

Strategy: a member is out once it was silent for its session timeout (`member_death` has what is known of
that), or when others have its partitions. Rules: an answer with the epoch that there was, when a removal
would have raised it, shows that all are in: the coordinator has moved unseen, and their sessions began anew.
The next epoch that nothing explains is theirs.
"""

from __future__ import annotations

from typing import Any

from coordwire.timeline.consumer_data import has_pattern, wanted_topics
from coordwire.timeline.from_wire.modern_rebalances import (
    ASSIGNMENT_INTERVAL_NS,
    JOIN,
    NEAR_NS,
    ModernRebalances,
)
from coordwire.timeline.members import Member, Owned
from coordwire.timeline.places import Seen
from coordwire.timeline.rebalance import Why
from coordwire.timeline.rebalance_cause import of_death

__all__ = ["FAR_NS", "ModernSilence", "give_up_by_ns"]

FAR_NS = 1 << 63

MOST_LOOKED_AT = 100
"""In a larger group, who didn't give up partitions in time is not looked for."""


def give_up_by_ns(member: Member) -> int:
    """By when a member must have given up partitions; far off if it needn't, or that isn't known."""
    timeout_ms = member.rebalance_timeout_ms or 0
    if member.revokes_ns is None or timeout_ms <= 0:
        return FAR_NS
    return member.revokes_ns + timeout_ms * 1_000_000


class ModernSilence(ModernRebalances):
    """Members that go without a word."""

    def alive_at(self, member: Member, asked: Seen, place: Seen) -> None:
        """A member was heard, and is in."""
        silence_ns = self.silence(member, asked)
        if self.timeout.refutes_absence(silence_ns):
            self.unavailable(asked)  # else it would be out
        elif not member.away:
            self.timeout.survived(silence_ns)
        member.last_seen_ns = place.time_ns
        if self._doubted:
            self._doubted.discard(member.member_id)
        self.watch(member)

    def silence(self, member: Member, place: Seen) -> int:
        """For how long a member was silent to its coordinator, in nanoseconds; 0 where no time is known."""
        heard_ns = self.heard_ns(member)
        return 0 if heard_ns is None or place.time_ns is None else place.time_ns - heard_ns

    def quiet(self, member: Member, place: Seen) -> int:
        """For how long nothing was seen of a member, in nanoseconds; 0 where no time is known."""
        quiet_ns = self.quiet_ns(member)
        return 0 if quiet_ns is None or place.time_ns is None else place.time_ns - quiet_ns

    def watch(self, member: Member) -> None:
        """A member's session runs."""
        self._sessions.watch(member)

    def expire(self, place: Seen, *, at_end: bool = False) -> None:
        """Members whose sessions must be over by now are out."""
        while (first := self.over(place, at_end=at_end)) is not None:
            self.died(first, place, "")

    def over(self, place: Seen, *, at_end: bool = False) -> Member | None:
        """The member whose session was over first, of those that must be over by now."""
        first = self._sessions.first()
        most_ns = self.timeout.most_at_end_ns if at_end else self.timeout.most_ns
        return None if first is None or self.quiet(first, place) <= most_ns else first

    def over_since_ns(self, member: Member) -> int:
        """Since when that is so."""
        return (self.quiet_ns(member) or 0) + self.timeout.most_ns

    def expire_before(self, request: Any, message: Any, asked: Seen) -> None:
        """`expire`, unless the answer to a heartbeat shows that all are in: its epoch is as it was."""
        first = self.over(asked)
        if first is None and not self._doubted:
            return
        epoch, member = self.generation or 0, self.members.get(request.member_id or message.member_id or "")
        settled = self._is_settled(asked)
        if member is None:
            static = self.members.of_instance(getattr(request, "instance_id", None)) is not None
            plain = request.member_epoch == JOIN and not has_pattern(wanted_topics(request) or ())
            epoch += self._departures if static else self._departures + 1  # its own doing
            same = plain and message.member_epoch == epoch
            settled |= self._only_departed
            if plain and settled and not static:
                self._out_before(message.member_epoch - epoch, asked)
        else:
            same = request.member_epoch == epoch == message.member_epoch and self._partitions(message) is None
        if first is not None:
            self._expire_or_doubt(same and settled and not self.would_convert(first), asked)

    def _out_before(self, risen: int, asked: Seen) -> None:
        """The epoch rose by so many more than a member that joins raises it: silent ones were out by then."""
        while risen > 0 and (doubted := self._doubtful()) is not None:
            self.died(doubted, asked, "the group's epoch rose meanwhile", shown=asked)
            risen -= 1

    def would_convert(self, member: Member) -> bool:
        """Whether the group converts once this member is out, so that its epoch stays."""
        return False

    def _is_settled(self, asked: Seen) -> bool:
        """Whether the next answer would show that a member went."""
        since_ns, rebalance, even = self._raised_ns, self.rebalance, self.progress.even_since
        if rebalance is not None:
            if even is None or rebalance.joined_ns is None:
                return False
            since_ns = max(since_ns, even.time_ns or 0)
        return self.kind == "consumer" and since_ns + ASSIGNMENT_INTERVAL_NS < (asked.time_ns or 0)

    @property
    def _only_departed(self) -> bool:
        """Whether nothing but members that left has raised the epoch since an answer showed it."""
        rebalance, merged = self.rebalance, self._merged
        if self.kind != "consumer" or rebalance is None or rebalance.joined_ns is not None or self._owed:
            return False
        return rebalance.why.cause == "member_left" and (merged is None or merged[0].cause == "member_left")

    def _expire_or_doubt(self, same: bool, asked: Seen) -> None:
        """same: whether an answer shows that all are in, or that isn't known. Then the coordinator may have
        moved since those who are silent were heard, and their sessions began anew."""
        if not same:
            self.expire(asked)
            return
        last = None
        while (first := self.over(asked)) is not None and first is not last:
            last = first
            since_ns = self.over_since_ns(first)
            if (asked.time_ns or 0) - since_ns <= NEAR_NS:
                return  # it may be out just now
            self._doubted.add(first.member_id)
            self.unavailable(asked.at(since_ns))

    def _doubtful(self) -> Member | None:
        """Of the silent members that were still in, the one that was heard first."""
        doubted = [self.members[name] for name in self._doubted if name in self.members]
        return min(doubted, key=lambda one: (one.last_seen_ns or 0, one.serial), default=None)

    def died(
        self, member: Member, place: Seen, sign: str, shown: Seen | None = None, *, refused: bool = False
    ) -> None:
        """A member is gone without a word. sign: what shows it; shown: where, if not its silence alone;
        refused: whether that is the answer to a request of its own."""
        rebalance = self.rebalance
        if rebalance is not None and rebalance.why.cause == "unknown" and shown is not None:
            shown = shown.at(rebalance.began.time_ns)
        doubted = member.member_id in self._doubted
        if shown is not None and not member.session_timeout_ms and not doubted:
            self.timeout.ended(self.silence(member, shown))
        when = place
        heard_ns = self.heard_ns(member) if refused else self.quiet_ns(member)
        if heard_ns is not None:
            own_ns = (member.session_timeout_ms or 0) * 1_000_000
            session_ns = own_ns or self.timeout.likely_ns
            if doubted and heard_ns + session_ns > (place.time_ns or 0):  # it went before the move
                heard_ns = max(member.last_seen_ns or 0, member.asked_ns)
            when = (shown or place).at(heard_ns + session_ns)
        self.remove(member.member_id, when, "session_timeout", inferred=True)
        if rebalance is not None and self.rebalance is rebalance and self._is_in_rise(when):
            self._surplus -= 1
            self.settle(None, place)
            return
        self.departed(of_death(member, self.silence(member, shown or place), sign), when, place)

    def _is_in_rise(self, when: Seen) -> bool:
        """Whether the last rise of the epoch was for a member that went then, too."""
        if not self._surplus or not self.members or when.time_ns is None:
            return False
        return self._raised_ns - ASSIGNMENT_INTERVAL_NS <= when.time_ns <= self._raised_ns + NEAR_NS

    def _replaced(self, member: Member, given: Owned, place: Seen) -> None:
        """A member is given what others had: those that were silent meanwhile are gone."""
        names = self.progress.former_owners(member.member_id, given)
        owners = [self.members[name] for name in names if name in self.members]
        for former in sorted(owners, key=lambda one: self.quiet_ns(one) or 0):
            if former.member_id not in self.members:
                continue
            unanswered = former.asked_ns > (former.last_seen_ns or 0)
            if unanswered and not self.timeout.explains(self.quiet(former, place)):
                former.revokes_ns = former.revokes_ns or former.asked_ns  # by an answer that nothing shows
            if self.kind == "consumer" and give_up_by_ns(former) <= (place.time_ns or 0):
                self._removed_stubborn(former, place)
            elif self.timeout.is_replaced(self.quiet(former, place)):
                self.died(former, place, "another member has its partitions", shown=place)

    def _stubborn(self, asked: Seen) -> Member | None:
        """A member that had to give up partitions by then, and didn't."""
        if self.kind != "consumer" or len(self.members) > MOST_LOOKED_AT:
            return None
        late = (one for one in self.members.values() if give_up_by_ns(one) <= (asked.time_ns or 0))
        return min(late, key=give_up_by_ns, default=None)

    def _removed_stubborn(self, member: Member, asked: Seen) -> None:
        when = asked.at(give_up_by_ns(member))
        self.remove(member.member_id, when, "not_rejoined", inferred=True)
        detail = "it didn't give up partitions in time"
        self.departed(Why("member_removed", member.member_id, inferred=True, detail=detail), when, asked)
