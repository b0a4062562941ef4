"""Where the story that a capture tells differs from the coordinator's own.

Strategy: the coordinator's events are the truth: who was in, when and how each went; each generation that
became steady, with its members, their assignments and its cause. The timeline's events are looked up among
them, and they among the timeline's. Rules: nothing is asked for that no frame shows
(`docs/explanation/timelines.md` says what that is): a member that was never answered, what passed by between
two frames, what the coordinator did after the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordwire.timeline.events import (
    Cause,
    GroupEvent,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
)
from tests.coordinator.stories.causes import CAUSE_OF, JOINS, Difference, begin_of, cause_of
from tests.coordinator.stories.events import MS, apart, at, ns
from tests.coordinator.stories.excuses import (
    AWAY,
    EMPTIED,
    EXCUSES,
    HASTY,
    NEVER_ANSWERED,
    OUTLIVED,
    OVERTAKEN,
    REPLACED,
    SHIFTED,
    UNRELEASED,
    UNREPORTED,
    UNWRITTEN,
)
from tests.coordinator.stories.members import NEAR_MS, MemberComparison

__all__ = ["EXCUSES", "Comparison", "Difference"]

END_MS = 2_500
"""A member reports within so long what it has taken up: its callbacks, and a heartbeat."""

KEEPS_GENERATION = ("static_member_returned", "member_rejoined")
"""What need not lead to another generation, so that the one that holds is told as steady again."""


class Comparison(MemberComparison):
    """Of members, and of generations."""

    def differences(self) -> Iterator[Difference]:
        yield from self._joined()
        yield from self._left()
        if self.whole:
            yield from self._at_the_end()
        yield from self._generations()

    # --- generations ---

    def _generations(self) -> Iterator[Difference]:
        numbers = {one.ended.generation for one in self.told.steady if one.ended.outcome == "steady"}
        true = {one.ended.generation for one in self.truth.steady}
        passing = {one.generation for one in self.truth.ended}
        for number in sorted(filter(None, numbers)):
            first = next(one.ended for one in self.told.steady if one.ended.generation == number)
            if number in true or number in passing or (self._murky(first) and self._excuse(SHIFTED)):
                continue
            if self.truth.open and self._one_is_away(first) and self._excuse(AWAY):
                continue
            yield Difference("steady falsely", f"generation {number} is told, and never was steady")
        passed: list[RebalanceBegan] = []
        since = 0
        for one in self.truth.steady:
            passed += one.passed
            if ns(one.ended) > self.end - END_MS * MS:
                return
            if one.ended.outcome == "empty":
                continue
            found = self._same(one.ended, since)
            since = ns(one.ended)
            yield from self._generation(one.ended, passed, found)
            passed = []

    def _same(self, true: RebalanceEnded, since: int) -> list[RebalanceEnded]:
        """The rebalances told of a generation; a group that was converted may have counted so before."""
        formed = [one for one in self.truth.ended if one.outcome != "unfinished"]
        again = [one for one in formed if one.generation == true.generation]
        same = [
            one
            for one in self.told.ended
            if one.generation == true.generation
            and one.outcome in ("steady", "superseded", "empty")
            and ns(one) >= since
            and min(again, key=lambda other: apart(one, other)) is true
        ]
        begins = [one for one in same if one.cause not in KEEPS_GENERATION]
        return begins or sorted(same, key=lambda one: apart(one, true))[:1]

    def _emptied(self, true: RebalanceEnded) -> bool:
        """Whether all left before anybody reported that it had taken up what it was given."""
        return any(
            one.outcome == "empty" and (one.began_ns or 0) <= ns(true) <= ns(one) for one in self.told.ended
        )

    def _generation(
        self, true: RebalanceEnded, passed: Sequence[RebalanceBegan], found: Sequence[RebalanceEnded]
    ) -> Iterator[Difference]:
        name = f"{true.kind} generation {true.generation} ({true.cause}, {at(true)})"
        if not found and self._emptied(true) and self._excuse(EMPTIED):
            return
        if not found and not self.answered & set(true.members) and self._excuse(NEVER_ANSWERED):
            return
        if not found and self._unreported(true) and self._excuse(UNREPORTED):
            return
        if not found:
            yield Difference("not told", f"{name} isn't told")
            return
        last = found[-1]
        for one in found[:-1]:
            if one.outcome == "steady" and last.outcome == "steady":
                if last.cause == "session_timeout" and self._murky(last) and self._excuse(SHIFTED):
                    continue
                if self._completes(one, true, last) and self._excuse(UNRELEASED):
                    continue
                yield Difference("steady twice", f"{name} is told as steady at {at(one)} and {at(last)}")
        yield from self._beginning(name, true, passed, found)
        if last.outcome == "steady":
            yield from self._ending(name, true, last)
        else:
            self._excuse(HASTY)

    def _beginning(
        self,
        name: str,
        true: RebalanceEnded,
        passed: Sequence[RebalanceBegan],
        found: Sequence[RebalanceEnded],
    ) -> Iterator[Difference]:
        since = min((ns(one) for one in passed), default=0)
        moved: list[MemberJoined | MemberLeft] = [*self.truth.joined, *self.truth.left]
        moved = [one for one in moved if since <= ns(one) <= ns(true)]
        asked = [one for one in self.subscribed if since <= one[0] <= ns(true)]
        who = {one.member_id for one in passed if one.member_id} | {one.member_id for one in moved}
        who |= {one for _, one in asked}
        also: set[Cause] = set()
        begins = [ns(one) for one in passed]
        if true.kind == "consumer":  # one target is for all that came before it was computed
            left = [one.how for one in moved if isinstance(one, MemberLeft)]
            also = {CAUSE_OF[how] for how in left if how in CAUSE_OF}
            also |= {"new_member" for one in moved if isinstance(one, MemberJoined)}
            also |= {"subscription_changed" for _ in asked}
            begins += [ns(one) for one in moved] + [when for when, _ in asked]
            joined = {
                one.member_id for one in passed if one.cause in JOINS
            }  # a pattern may be resolved later
            begins += [ns(one) for one in self.truth.joined if one.member_id in joined]
        who |= {self.clients.get(one) or "" for one in who}
        wrong = [*cause_of(name, passed, found, who, also, self._excuse)]
        wrong += begin_of(name, passed, begins, found[0])
        if not wrong:
            return
        causes = {one.cause for one in passed} | {one.cause for one in found}
        silent = causes & {"session_timeout", "member_removed", "first_member"}
        ends: list[GroupEvent] = [true, *(one for one in passed if one.cause == "session_timeout")]
        named = found[-1].member_id  # of whom nothing shows when it went
        ends += [one for one in self.truth.left if one.member_id == named and one.how == "session_timeout"]
        if silent and any(map(self._murky, ends)) and self._excuse(SHIFTED):
            return
        if found[-1].cause == "unknown" and any(map(self.failed_after, passed)) and self._excuse(UNWRITTEN):
            return
        unseen = [one for one in passed if one.member_id is not None and one.member_id not in self.answered]
        if unseen and self._excuse(NEVER_ANSWERED):
            return
        if self._out_without_a_rebalance(found[-1]) and self._excuse(OUTLIVED):
            return
        if self._overtaken(found[-1], passed) and self._excuse(OVERTAKEN):
            return
        if found[-1].cause == "first_member" and self._none_was_seen(found[-1]):
            self._excuse(NEVER_ANSWERED)
            return
        yield from wrong

    def _out_without_a_rebalance(self, told: RebalanceEnded) -> bool:
        """Whether the member that a rebalance is said to begin with went, and none began."""
        gone = [
            one for one in self.truth.left if one.member_id == told.member_id and one.how == "not_rejoined"
        ]
        under_way = [(one.began_ns or 0, ns(one)) for one in self.truth.ended]
        return told.cause == "member_removed" and any(
            not any(began <= ns(one) <= ended for began, ended in under_way) for one in gone
        )

    def _overtaken(self, told: RebalanceEnded, passed: Sequence[RebalanceBegan]) -> bool:
        """Whether the static member that a rebalance is said to begin with was let in as another began it."""
        heirs = [one for one in self.truth.joined if one.member_id == told.member_id]
        return told.cause == "static_member_returned" and any(
            apart(heir, one) <= NEAR_MS and one.kind == "classic" and one.member_id != heir.member_id
            for heir in heirs for one in passed[:1]
        )  # fmt: skip

    def _none_was_seen(self, told: RebalanceEnded) -> bool:
        """Whether of the members that were in when one joined, none was ever answered."""
        inside: set[str] = set()
        moved: list[MemberJoined | MemberLeft] = [*self.truth.joined, *self.truth.left]
        for one in sorted(moved, key=ns):
            if ns(one) >= (told.began_ns or 0):
                break
            (inside.add if isinstance(one, MemberJoined) else inside.discard)(one.member_id)
        return not inside & self.answered

    def _ending(self, name: str, true: RebalanceEnded, last: RebalanceEnded) -> Iterator[Difference]:
        if ns(last) < ns(true) and self._waits_for_one_away(true, last) and self._excuse(AWAY):
            return
        latest = max(ns(true), self.synced.get(true.generation, 0), self._reported(true)) + END_MS * MS
        left = any(apart(one, true) < NEAR_MS for one in self.truth.left)  # whom the coordinator waited for
        earliest = ns(last) if left else ns(true) - END_MS * MS
        if not earliest <= ns(last) <= latest and not (self._murky(last) and self._excuse(SHIFTED)):
            yield Difference("end", f"{name}: told as steady at {at(last)}")
        more, less = set(last.members) - set(true.members), set(true.members) - set(last.members)
        less &= self.answered
        has = self._assigned(true)
        given = self._assigned(last)
        if not (more - self.replaced or less or has != given):
            return
        if not self.answered & set(true.members) and self._excuse(NEVER_ANSWERED):
            return
        if self._replaced_meanwhile(more, less, true, last) and self._excuse(REPLACED):
            return
        if more - self.replaced or less:
            yield Difference("members", f"{name}: told {sorted(more)} more, {sorted(less)} less")
        other = {one for one in has.keys() | given.keys() if has.get(one) != given.get(one)}
        if other and not any(self._asks_after(one, true) for one in other) and self._excuse(UNREPORTED):
            return
        if has != given:
            yield Difference("assignments", f"{name}: told {given}, true {has}")

    def _waits_for_one_away(self, true: RebalanceEnded, last: RebalanceEnded) -> bool:
        """Whether a static member had left for now when the others had all that they could get."""
        return self._keeps_for_others(true, last) or any(
            one.how == "left_for_now" and (true.began_ns or 0) <= ns(one) <= ns(true) and ns(one) <= ns(last)
            for one in self.truth.left
        )

    def _keeps_for_others(self, true: RebalanceEnded, told: RebalanceEnded) -> bool:
        """Whether a static member was away then that had what a generation gives to others."""
        back = {one.instance_id: ns(one) for one in self.truth.joined if ns(one) <= ns(told)}
        away = [
            one for one in self.truth.left
            if one.how == "left_for_now" and back.get(one.instance_id, 0) < ns(one) <= ns(told)
        ]  # fmt: skip
        before = [one.ended for one in self.truth.steady if ns(one.ended) <= ns(told)][-1:]
        heirs = {one.member_id: one.instance_id for one in self.truth.joined}
        for one in away:
            had = {part for ended in before for part in self._partitions(ended, {one.member_id})}
            others = {name for name in true.members if heirs.get(name) != one.instance_id}
            if had & self._partitions(true, others):
                return True
        return False

    def _partitions(self, ended: RebalanceEnded, members: set[str]) -> set[TopicPartition]:
        return {part for one in ended.assignments if one.member_id in members for part in one.partitions}

    def _one_is_away(self, told: RebalanceEnded) -> bool:
        """Whether a static member is away that has partitions for others."""
        away = {one.instance_id: one for one in self.truth.left if ns(one) <= ns(told)}
        back = {one.instance_id: ns(one) for one in self.truth.joined if ns(one) <= ns(told)}
        return any(
            one.how == "left_for_now" and back.get(name, 0) < ns(one)
            for name, one in away.items() if name is not None
        )  # fmt: skip

    def _assigned(self, ended: RebalanceEnded) -> dict[str, set[TopicPartition]]:
        return {
            one.member_id: set(one.partitions)
            for one in ended.assignments
            if one.partitions and one.member_id in self.answered
        }

    def _reported(self, true: RebalanceEnded) -> int:
        """When the last of the members had asked twice since: once to be given its share, once to report."""
        times = [[when for when in self.asked.get(one, ()) if when >= ns(true)] for one in true.members]
        return max((one[1] if len(one) > 1 else one[0] for one in times if one), default=0)

    def _unreported(self, true: RebalanceEnded) -> bool:
        """Whether one of the members asked nothing after it was given its share."""
        return not all(self._asks_after(one, true) for one in true.members)

    def _asks_after(self, member_id: str, true: RebalanceEnded) -> bool:
        return any(when > ns(true) for when in self.asked.get(member_id, ()))

    def _completes(self, early: RebalanceEnded, true: RebalanceEnded, late: RebalanceEnded) -> bool:
        """Whether a share was completed, once all seemed steady, by partitions nobody seemed to have."""
        if late.cause != "assignment_changed" or not ns(early) <= ns(true) <= ns(late):
            return False
        classic = [one for one in self.told.ended if one.kind == "classic" and one.outcome == "superseded"]
        since = max((ns(one) for one in classic if ns(one) <= ns(early)), default=0)  # nobody got a share
        known = [one for one in self.told.steady if since <= ns(one.ended) <= ns(early)]
        known = known[-2:]  # that one, and before it
        owned = {
            partition for one in known for share in one.ended.assignments for partition in share.partitions
        }
        return bool(late.moved) and owned.isdisjoint(TopicPartition(*one[:2]) for one in late.moved)

    def _replaced_meanwhile(
        self, more: set[str], less: set[str], true: RebalanceEnded, last: RebalanceEnded
    ) -> bool:
        """Whether the members differ by static ones that were replaced before the end was reported."""
        until = max(ns(last), self._reported(true)) + NEAR_MS * MS
        name_of = {one.member_id: one.instance_id for one in self.truth.joined if one.instance_id is not None}
        heirs = {one.member_id for one in self.truth.joined if ns(true) <= ns(one) <= until} & set(name_of)
        taken = {name_of[one] for one in heirs}
        return bool(less) and all(name_of.get(one) in taken for one in less) and more - self.replaced <= heirs
