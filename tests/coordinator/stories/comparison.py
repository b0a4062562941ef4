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
    HASTY,
    NEVER_ANSWERED,
    OUTLIVED,
    OVERTAKEN,
    REPLACED,
    SHIFTED,
    STANDBY,
    UNRELEASED,
    UNREPORTED,
    UNWRITTEN,
)
from tests.coordinator.stories.members import NEAR_MS, MemberComparison

END_MS = 2_500
"""A member reports within so long what it has taken up: its callbacks, and a heartbeat."""

KEEPS_GENERATION = ("static_member_returned", "member_rejoined")
"""What need not lead to another generation, so that the one that holds is told as steady again."""


class Comparison(MemberComparison):
    """Of members, and of generations."""

    def differences(self) -> Iterator[Difference]:
        yield from self._joined()
        yield from self._compare_leavers()
        if self.is_whole:
            yield from self._at_the_end()
        yield from self._generations()

    # --- generations ---

    def _generations(self) -> Iterator[Difference]:
        numbers = {
            event.ended.generation for event in self.reported.steady if event.ended.outcome == "steady"
        }
        true = {event.ended.generation for event in self.truth.steady}
        passing = {event.generation for event in self.truth.ended}
        for number in sorted(filter(None, numbers)):
            first = next(event.ended for event in self.reported.steady if event.ended.generation == number)
            if number in true or number in passing or (self._murky(first) and self._excuse(SHIFTED)):
                continue
            if self.truth.open and self._one_is_away(first) and self._excuse(AWAY):
                continue
            yield Difference("steady falsely", f"generation {number} is told, and never was steady")
        passed: list[RebalanceBegan] = []
        since = 0
        for event in self.truth.steady:
            passed += event.passed
            if ns(event.ended) > self.end - END_MS * MS:
                return
            if event.ended.outcome == "empty":
                continue
            rebalances = self._matching(event.ended, since)
            since = ns(event.ended)
            yield from self._generation(event.ended, passed, rebalances)
            passed = []

    def _matching(self, true: RebalanceEnded, since: int) -> list[RebalanceEnded]:
        """The rebalances told of a generation; a group that was converted may have counted so before."""
        formed = [event for event in self.truth.ended if event.outcome != "unfinished"]
        of_generation = [event for event in formed if event.generation == true.generation]
        matches = [
            event
            for event in self.reported.ended
            if event.generation == true.generation
            and event.outcome in ("steady", "superseded", "empty")
            and ns(event) >= since
            and min(of_generation, key=lambda other: apart(event, other)) is true
        ]
        begins = [event for event in matches if event.cause not in KEEPS_GENERATION]
        return begins or sorted(matches, key=lambda event: apart(event, true))[:1]

    def _emptied(self, true: RebalanceEnded) -> bool:
        """Whether all left before anybody reported that it had taken up what it was given."""
        return any(
            event.outcome == "empty" and (event.began_ns or 0) <= ns(true) <= ns(event)
            for event in self.reported.ended
        )

    def _generation(
        self, true: RebalanceEnded, passed: Sequence[RebalanceBegan], rebalances: Sequence[RebalanceEnded]
    ) -> Iterator[Difference]:
        name = f"{true.kind} generation {true.generation} ({true.cause}, {at(true)})"
        if not rebalances and self._emptied(true) and self._excuse(EMPTIED):
            return
        if not rebalances and not self.answered & set(true.members) and self._excuse(NEVER_ANSWERED):
            return
        if not rebalances and self._unreported(true) and self._excuse(UNREPORTED):
            return
        if not rebalances:
            yield Difference("not told", f"{name} isn't told")
            return
        last = rebalances[-1]
        for event in rebalances[:-1]:
            if event.outcome == "steady" and last.outcome == "steady":
                if last.cause == "session_timeout" and self._murky(last) and self._excuse(SHIFTED):
                    continue
                if self._completes(event, true, last) and self._excuse(UNRELEASED):
                    continue
                yield Difference("steady twice", f"{name} is told as steady at {at(event)} and {at(last)}")
        yield from self._beginning(name, true, passed, rebalances)
        if last.outcome == "steady":
            yield from self._ending(name, true, last)
        else:
            self._excuse(HASTY)

    def _beginning(
        self,
        name: str,
        true: RebalanceEnded,
        passed: Sequence[RebalanceBegan],
        rebalances: Sequence[RebalanceEnded],
    ) -> Iterator[Difference]:
        since = min((ns(event) for event in passed), default=0)
        moved: list[MemberJoined | MemberLeft] = [*self.truth.joined, *self.truth.leavers]
        moved = [event for event in moved if since <= ns(event) <= ns(true)]
        subscriptions = [event for event in self.subscribed if since <= event[0] <= ns(true)]
        member_ids = {event.member_id for event in passed if event.member_id} | {
            event.member_id for event in moved
        }
        member_ids |= {event for _, event in subscriptions}
        also: set[Cause] = set()
        begins = [ns(event) for event in passed]
        if true.kind != "classic":  # one target is for all that came before it was computed
            leavings = [event.how for event in moved if isinstance(event, MemberLeft)]
            also = {CAUSE_OF[leaving] for leaving in leavings if leaving in CAUSE_OF}
            also |= {"new_member" for event in moved if isinstance(event, MemberJoined)}
            also |= {"subscription_changed" for _ in subscriptions}
            begins += [ns(event) for event in moved] + [time_ns for time_ns, _ in subscriptions]
            joined = {
                event.member_id for event in passed if event.cause in JOINS
            }  # a pattern may be resolved later
            begins += [ns(event) for event in self.truth.joined if event.member_id in joined]
        member_ids |= {self.clients.get(event) or "" for event in member_ids}
        wrong = [*cause_of(name, passed, rebalances, member_ids, also, self._excuse)]
        wrong += begin_of(name, passed, begins, rebalances[0])
        if not wrong:
            return
        causes = {event.cause for event in passed} | {event.cause for event in rebalances}
        silent = causes & {"session_timeout", "member_removed", "first_member"}
        ends: list[GroupEvent] = [true, *(event for event in passed if event.cause == "session_timeout")]
        named = rebalances[-1].member_id  # of whom nothing shows when it went
        ends += [
            event
            for event in self.truth.leavers
            if event.member_id == named and event.how == "session_timeout"
        ]
        if silent and any(map(self._murky, ends)) and self._excuse(SHIFTED):
            return
        if (
            rebalances[-1].cause == "unknown"
            and any(map(self.failed_after, passed))
            and self._excuse(UNWRITTEN)
        ):
            return
        unseen = [
            event for event in passed if event.member_id is not None and event.member_id not in self.answered
        ]
        if unseen and self._excuse(NEVER_ANSWERED):
            return
        if self._out_without_a_rebalance(rebalances[-1]) and self._excuse(OUTLIVED):
            return
        if self._overtaken(rebalances[-1], passed) and self._excuse(OVERTAKEN):
            return
        if rebalances[-1].cause == "first_member" and self._none_was_seen(rebalances[-1]):
            self._excuse(NEVER_ANSWERED)
            return
        yield from wrong

    def _out_without_a_rebalance(self, reported: RebalanceEnded) -> bool:
        """Whether the member that a rebalance is said to begin with went, and none began."""
        leavings = [
            event
            for event in self.truth.leavers
            if event.member_id == reported.member_id and event.how == "not_rejoined"
        ]
        under_way = [(event.began_ns or 0, ns(event)) for event in self.truth.ended]
        return reported.cause == "member_removed" and any(
            not any(began <= ns(event) <= ended for began, ended in under_way) for event in leavings
        )

    def _overtaken(self, reported: RebalanceEnded, passed: Sequence[RebalanceBegan]) -> bool:
        """Whether the static member that a rebalance is said to begin with was let in as another began it."""
        heirs = [event for event in self.truth.joined if event.member_id == reported.member_id]
        return reported.cause == "static_member_returned" and any(
            apart(heir, event) <= NEAR_MS and event.kind == "classic" and event.member_id != heir.member_id
            for heir in heirs for event in passed[:1]
        )  # fmt: skip

    def _none_was_seen(self, reported: RebalanceEnded) -> bool:
        """Whether of the members that were in when one joined, none was ever answered."""
        present: set[str] = set()
        moved: list[MemberJoined | MemberLeft] = [*self.truth.joined, *self.truth.leavers]
        for event in sorted(moved, key=ns):
            if ns(event) >= (reported.began_ns or 0):
                break
            (present.add if isinstance(event, MemberJoined) else present.discard)(event.member_id)
        return not present & self.answered

    def _ending(self, name: str, true: RebalanceEnded, last: RebalanceEnded) -> Iterator[Difference]:
        if ns(last) < ns(true) and self._waits_for_one_away(true, last) and self._excuse(AWAY):
            return
        if ns(last) < ns(true) and self._gives_standby(true) and self._excuse(STANDBY):
            return
        latest = max(ns(true), self.synced.get(true.generation, 0), self._reported(true)) + END_MS * MS
        has_leaver = any(
            apart(event, true) < NEAR_MS for event in self.truth.leavers
        )  # whom the coordinator waited for
        earliest = ns(last) if has_leaver else ns(true) - END_MS * MS
        if not earliest <= ns(last) <= latest and not (self._murky(last) and self._excuse(SHIFTED)):
            yield Difference("end", f"{name}: told as steady at {at(last)}")
        surplus, less = set(last.members) - set(true.members), set(true.members) - set(last.members)
        less &= self.answered
        has, assigned = self._assigned(true), self._assigned(last)
        out = (less | (has.keys() - assigned.keys())) & self._out_by_a_move(last)
        if out and self._excuse(SHIFTED):
            less -= out
            has = {member_id: partitions for member_id, partitions in has.items() if member_id not in out}
        if not (surplus - self.replaced or less or has != assigned):
            return
        if not self.answered & set(true.members) and self._excuse(NEVER_ANSWERED):
            return
        if self._replaced_meanwhile(surplus, less, true, last) and self._excuse(REPLACED):
            return
        if surplus - self.replaced or less:
            yield Difference("members", f"{name}: told {sorted(surplus)} more, {sorted(less)} less")
        other = {event for event in has.keys() | assigned.keys() if has.get(event) != assigned.get(event)}
        if other and not any(self._asks_after(event, true) for event in other) and self._excuse(UNREPORTED):
            return
        if has != assigned:
            yield Difference("assignments", f"{name}: told {assigned}, true {has}")

    def _waits_for_one_away(self, true: RebalanceEnded, last: RebalanceEnded) -> bool:
        """Whether a static member had left for now when the others had all that they could get."""
        return self._keeps_for_others(true, last) or any(
            event.how == "left_for_now"
            and (true.began_ns or 0) <= ns(event) <= ns(true)
            and ns(event) <= ns(last)
            for event in self.truth.leavers
        )

    def _out_by_a_move(self, reported: RebalanceEnded) -> set[str]:
        """Who is reported out by then, and may have been in: a move began its session again. What it has is
        not known either, until it is given something else."""
        return {
            event.member_id for event in self.reported.leavers
            if event.inferred and ns(event) <= ns(reported) and self._murky(event)
        }  # fmt: skip

    def _gives_standby(self, true: RebalanceEnded) -> bool:
        """Whether a generation was steady once a member was given standby tasks."""
        return any(0 <= given_ns - ns(true) <= NEAR_MS * MS for given_ns in self.standby_given)

    def _keeps_for_others(self, true: RebalanceEnded, reported: RebalanceEnded) -> bool:
        """Whether a static member was away then that had what a generation gives to others."""
        back = {event.instance_id: ns(event) for event in self.truth.joined if ns(event) <= ns(reported)}
        away = [
            event for event in self.truth.leavers
            if event.how == "left_for_now" and back.get(event.instance_id, 0) < ns(event) <= ns(reported)
        ]  # fmt: skip
        before = [event.ended for event in self.truth.steady if ns(event.ended) <= ns(reported)][-1:]
        heirs = {event.member_id: event.instance_id for event in self.truth.joined}
        for event in away:
            had = {part for ended in before for part in self._partitions(ended, {event.member_id})}
            other_members = {name for name in true.members if heirs.get(name) != event.instance_id}
            if had & self._partitions(true, other_members):
                return True
        return False

    def _partitions(self, ended: RebalanceEnded, members: set[str]) -> set[TopicPartition]:
        return {
            part for event in ended.assignments if event.member_id in members for part in event.partitions
        }

    def _one_is_away(self, reported: RebalanceEnded) -> bool:
        """Whether a static member is away that has partitions for others."""
        away = {event.instance_id: event for event in self.truth.leavers if ns(event) <= ns(reported)}
        back = {event.instance_id: ns(event) for event in self.truth.joined if ns(event) <= ns(reported)}
        return any(
            event.how == "left_for_now" and back.get(name, 0) < ns(event)
            for name, event in away.items() if name is not None
        )  # fmt: skip

    def _assigned(self, ended: RebalanceEnded) -> dict[str, set[TopicPartition]]:
        return {
            event.member_id: set(event.partitions)
            for event in ended.assignments
            if event.partitions and event.member_id in self.answered
        }

    def _reported(self, true: RebalanceEnded) -> int:
        """When the last of the members had asked twice since: once to be given its share, once to report."""
        times = [
            [time_ns for time_ns in self.request_times.get(event, ()) if time_ns >= ns(true)]
            for event in true.members
        ]
        return max((event[1] if len(event) > 1 else event[0] for event in times if event), default=0)

    def _unreported(self, true: RebalanceEnded) -> bool:
        """Whether one of the members asked nothing after it was given its share."""
        return not all(self._asks_after(event, true) for event in true.members)

    def _asks_after(self, member_id: str, true: RebalanceEnded) -> bool:
        return any(time_ns > ns(true) for time_ns in self.request_times.get(member_id, ()))

    def _completes(self, early: RebalanceEnded, true: RebalanceEnded, late: RebalanceEnded) -> bool:
        """Whether a share was completed, once all seemed steady, by partitions nobody seemed to have."""
        if late.cause != "assignment_changed" or not ns(early) <= ns(true) <= ns(late):
            return False
        classic = [
            event
            for event in self.reported.ended
            if event.kind == "classic" and event.outcome == "superseded"
        ]
        since = max(
            (ns(event) for event in classic if ns(event) <= ns(early)), default=0
        )  # nobody got a share
        known = [event for event in self.reported.steady if since <= ns(event.ended) <= ns(early)]
        known = known[-2:]  # that one, and before it
        owned = {
            partition
            for event in known
            for share in event.ended.assignments
            for partition in share.partitions
        }
        return bool(late.moved) and owned.isdisjoint(TopicPartition(*event[:2]) for event in late.moved)

    def _replaced_meanwhile(
        self, surplus: set[str], less: set[str], true: RebalanceEnded, last: RebalanceEnded
    ) -> bool:
        """Whether the members differ by static ones that were replaced before the end was reported."""
        until = max(ns(last), self._reported(true)) + NEAR_MS * MS
        name_of = {
            event.member_id: event.instance_id for event in self.truth.joined if event.instance_id is not None
        }
        heirs = {event.member_id for event in self.truth.joined if ns(true) <= ns(event) <= until} & set(
            name_of
        )
        instances = {name_of[event] for event in heirs}
        return (
            bool(less)
            and all(name_of.get(event) in instances for event in less)
            and surplus - self.replaced <= heirs
        )
