"""Whether a timeline has the members that were in, and how and when each went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.timeline.events import GroupEvent, MemberLeft
from tests.coordinator.stories.causes import Difference
from tests.coordinator.stories.events import MS, apart, at, kind_at, ns, story
from tests.coordinator.stories.excuses import (
    BACK,
    FORGOTTEN,
    NEVER_ANSWERED,
    OUTLIVED,
    REFUSED,
    SHIFTED,
    TAKEN_BACK,
)
from tests.coordinator.stories.frames import (
    answered,
    asked,
    failed_upgrades,
    failures,
    refused_leaving,
    subscribed,
    synced,
)

__all__ = ["NEAR_MS", "MemberComparison"]

DEPARTURE_MS = 1_300
"""How near a departure that nobody announced is told: a heartbeat's interval, and whole seconds."""

NEAR_MS = 50

BY_SILENCE = ("session_timeout", "not_rejoined")

HOW = {
    "left": {"left"},
    "left_for_now": {"left_for_now"},
    "session_timeout": {"session_timeout"},
    "not_rejoined": {"not_rejoined", "removed", "session_timeout"},
    "removed": {"removed", "session_timeout"},
}


class MemberComparison:
    """events: the coordinator's; told: what the timeline made of the entries. shifted: when sessions may have
    begun anew, in milliseconds: the coordinator was moved, or a write failed; reloaded: when it loaded the
    group, in nanoseconds, and who was in by the log; session_ms: the longest session. excused: how often each
    of `EXCUSES` is why something isn't asked for."""

    def __init__(
        self,
        entries: Sequence[Entry],
        events: Iterable[GroupEvent],
        told: Iterable[GroupEvent],
        *,
        shifted: Iterable[int] = (),
        reloaded: Sequence[tuple[int, set[str]]] = (),
        session_ms: int = 0,
    ) -> None:
        self.excused: Counter[str] = Counter()
        self.end = max((entry.time_ns or 0 for entry in entries if isinstance(entry, FrameEntry)), default=0)
        events = list(events)
        refused = dict(refused_leaving(entries, lambda when: kind_at(events, when) == "consumer"))
        cut = min((when for when, modern in refused.values() if modern), default=self.end)
        self.truth = story(
            (one for one in events if ns(one) <= cut), [one for one in reloaded if one[0] <= cut]
        )
        self.told = story(one for one in told if ns(one) <= cut)
        self.reloaded = reloaded
        self.whole, self.end = cut == self.end, cut
        self.refused = set(refused)
        if not self.whole:
            self._excuse(REFUSED)
        seen = [one for one in entries if isinstance(one, FrameEntry) and (one.time_ns or 0) <= cut]
        self.answered = answered(seen)
        self.clients = {one.member_id: one.client_id for one in self.truth.joined}
        self.murky = session_ms + DEPARTURE_MS
        self.marks = [*shifted, *failures(entries)]
        self.synced = synced(entries)
        self.asked = asked(entries)
        self.failed_upgrades = failed_upgrades(entries)
        self.subscribed = list(subscribed(entries))
        self.replaced = {one.member_id for one in self.truth.left if one.how == "fenced"}

    def _excuse(self, why: str) -> bool:
        self.excused[why] += 1
        return True

    def _murky(self, event: GroupEvent) -> bool:
        """Whether a session may have begun anew shortly before, or may seem to have, unseen by any frame."""
        at = ns(event) / MS
        return any(mark - self.murky <= at <= mark + 2 * self.murky for mark in self.marks)

    # --- members ---

    def _joined(self) -> Iterator[Difference]:
        told = {one.member_id for one in self.told.joined}
        true = {one.member_id for one in self.truth.joined}
        for one in self.truth.joined:
            if one.member_id in told or (one.member_id not in self.answered and self._excuse(NEVER_ANSWERED)):
                continue
            yield Difference("joined", f"{one.member_id} joined at {at(one)}, which isn't told")
        for one in self.told.joined:
            if one.member_id not in true and not (self.failed_after(one) and self._excuse(TAKEN_BACK)):
                yield Difference("joined falsely", f"{one.member_id} is told at {at(one)}, and never was in")

    def failed_after(self, event: GroupEvent) -> bool:
        """Whether the log could not be written just after something."""
        return any(0 <= mark - ns(event) / MS <= NEAR_MS for mark in self.marks)

    def _left(self) -> Iterator[Difference]:
        for one in self.truth.left:
            if one.how == "fenced" or one.member_id not in self.answered or ns(one) > self.end:
                continue
            same = [other for other in self.told.left if other.member_id == one.member_id]
            near = [other for other in same if apart(one, other) <= DEPARTURE_MS]
            if any(other.how in HOW[one.how] for other in near) or self._left_unseen(one, same):
                continue
            if near:
                yield Difference(f"left {one.how}", f"{one.member_id} at {at(one)}: told as {near[0].how}")
            else:
                times = ", ".join(f"{other.how} {at(other)}" for other in same) or "nothing"
                yield Difference(f"left {one.how}", f"{one.member_id} went at {at(one)}; told: {times}")
        for one in self.told.left:
            same = [other for other in self.truth.left if other.member_id == one.member_id]
            if any(apart(one, other) <= DEPARTURE_MS for other in same) or self._comes_again(one):
                continue
            if one.member_id in self.refused or any(self._left_unseen(other, [one]) for other in same):
                continue
            if one.inferred and (self._murky(one) and self._excuse(SHIFTED)):
                continue
            if one.inferred and self._goes_as_its_heir(one) and self._excuse(NEVER_ANSWERED):
                continue
            times = ", ".join(f"{other.how} {at(other)}" for other in same) or "it stayed"
            yield Difference(f"left falsely {one.how}", f"{one.member_id} told at {at(one)}; true: {times}")

    def _left_unseen(self, gone: MemberLeft, told: Sequence[MemberLeft]) -> bool:
        """Whether no frame shows how and when a member went. told: what is told of it."""
        if gone.member_id in self.refused:
            return self._excuse(REFUSED)
        if gone.how not in BY_SILENCE:
            return False
        since = self.failed_upgrades.get(gone.member_id)
        if gone.how == "not_rejoined" and since is not None and self._asked_nothing(gone, since):
            return self._excuse(OUTLIVED)
        late = any(ns(gone) < mark * MS < ns(other) for mark in self.marks for other in told)
        if late or self._murky(gone):
            return self._excuse(SHIFTED)
        if self._beside_unseen(gone):
            return self._excuse(NEVER_ANSWERED)
        return self._returned(gone) and self._excuse(BACK)

    def _asked_nothing(self, gone: MemberLeft, since: int) -> bool:
        """Whether a member sent nothing from then until it went."""
        return since <= ns(gone) and not any(since < at <= ns(gone) for at in self.asked[gone.member_id])

    def _beside_unseen(self, gone: MemberLeft) -> bool:
        """Whether a member that was never answered was in, so that others waited for it."""
        unseen = {one.member_id: ns(one) for one in self.truth.joined if one.member_id not in self.answered}
        left = {one.member_id: ns(one) for one in self.truth.left}
        return any(
            since <= ns(gone) and left.get(name, self.end) >= ns(gone) - self.murky * MS
            for name, since in unseen.items()
        )

    def _returned(self, gone: MemberLeft) -> bool:
        """Whether a static member was back before anything showed that it had been removed."""
        return gone.instance_id is not None and any(
            one.instance_id == gone.instance_id and one.rejoined and ns(one) > ns(gone)
            for one in self.told.joined
        )

    def _goes_as_its_heir(self, gone: MemberLeft) -> bool:
        """Whether another was in a static member's place, never answered, and went as that is said to."""
        fenced = [one for one in self.truth.left if one.member_id == gone.member_id and one.how == "fenced"]
        heirs = {
            one.member_id for one in self.truth.joined
            for old in fenced if one.instance_id == old.instance_id and ns(one) == ns(old)
        } - self.answered  # fmt: skip
        return any(
            one.member_id in heirs and apart(one, gone) <= DEPARTURE_MS and gone.how in HOW[one.how]
            for one in self.truth.left
        )

    def _comes_again(self, gone: MemberLeft) -> bool:
        return gone.how == "fenced" and any(
            one.member_id == gone.member_id and ns(one) >= ns(gone) for one in self.told.joined
        )

    def _came_back_by_a_move(self, member_id: str) -> bool:
        """Whether the log had a member that had left, as both stories have it, when it was loaded."""
        left = [
            [one for one in events if one.member_id == member_id and one.how == "left"]
            for events in (self.truth.left, self.told.left)
        ]
        return all(left) and any(
            member_id in members and all(ns(one) < when for events in left for one in events)
            for when, members in self.reloaded
        )

    def _at_the_end(self) -> Iterator[Difference]:
        told = self.told.members - self.replaced
        late = self.end - NEAR_MS * MS
        unseen = {one.member_id for one in self.truth.left if ns(one) > late} | self.refused
        perhaps = {one.member_id for one in self.told.left if one.inferred and self._murky(one)}
        missing = (self.truth.members & self.answered) - told - perhaps
        missing -= {one for one in missing if self._came_back_by_a_move(one) and self._excuse(FORGOTTEN)}
        silent = [one for one in self.truth.left if one.how in BY_SILENCE and one.member_id in told]
        unseen |= {one.member_id for one in silent if self._murky(one) and self._excuse(SHIFTED)}
        false = told - self.truth.members - unseen
        if missing:
            yield Difference("in at the end", f"{sorted(missing)} are in, which isn't told")
        if false:
            yield Difference("in at the end falsely", f"{sorted(false)} are told as in")
