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
    failed_upgrades,
    failures,
    refused_leaving,
    request_times,
    standby_given,
    subscribed,
    synced,
)

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
        reported: Iterable[GroupEvent],
        *,
        shifted: Iterable[int] = (),
        reloaded: Sequence[tuple[int, set[str]]] = (),
        session_ms: int = 0,
    ) -> None:
        self.excused: Counter[str] = Counter()
        self.end = max((entry.time_ns or 0 for entry in entries if isinstance(entry, FrameEntry)), default=0)
        events = list(events)
        refused = dict(refused_leaving(entries, lambda time_ns: kind_at(events, time_ns) != "classic"))
        cut = min((time_ns for time_ns, modern in refused.values() if modern), default=self.end)
        self.truth = story(
            (event for event in events if ns(event) <= cut), [event for event in reloaded if event[0] <= cut]
        )
        self.reported = story(event for event in reported if ns(event) <= cut)
        self.reloaded = reloaded
        self.is_whole, self.end = cut == self.end, cut
        self.refused = set(refused)
        if not self.is_whole:
            self._excuse(REFUSED)
        frames = [event for event in entries if isinstance(event, FrameEntry) and (event.time_ns or 0) <= cut]
        self.answered = answered(frames)
        self.clients = {event.member_id: event.client_id for event in self.truth.joined}
        self.murky = session_ms + DEPARTURE_MS
        self.marks = [*shifted, *failures(entries)]
        self.synced = synced(entries)
        self.standby_given = list(standby_given(entries))
        self.request_times = request_times(entries)
        self.failed_upgrades = failed_upgrades(entries)
        self.subscribed = list(subscribed(entries))
        self.replaced = {event.member_id for event in self.truth.leavers if event.how == "fenced"}

    def _excuse(self, excuse: str) -> bool:
        self.excused[excuse] += 1
        return True

    def _murky(self, event: GroupEvent) -> bool:
        """Whether a session may have begun anew shortly before, or may seem to have, unseen by any frame."""
        at = ns(event) / MS
        return any(mark - self.murky <= at <= mark + 2 * self.murky for mark in self.marks)

    # --- members ---

    def _joined(self) -> Iterator[Difference]:
        reported = {event.member_id for event in self.reported.joined}
        true = {event.member_id for event in self.truth.joined}
        for event in self.truth.joined:
            if event.member_id in reported or (
                event.member_id not in self.answered and self._excuse(NEVER_ANSWERED)
            ):
                continue
            yield Difference("joined", f"{event.member_id} joined at {at(event)}, which isn't told")
        for event in self.reported.joined:
            if event.member_id not in true and not (self.failed_after(event) and self._excuse(TAKEN_BACK)):
                yield Difference(
                    "joined falsely", f"{event.member_id} is told at {at(event)}, and never was in"
                )

    def failed_after(self, event: GroupEvent) -> bool:
        """Whether the log could not be written just after something."""
        return any(0 <= mark - ns(event) / MS <= NEAR_MS for mark in self.marks)

    def _compare_leavers(self) -> Iterator[Difference]:
        for event in self.truth.leavers:
            if event.how == "fenced" or event.member_id not in self.answered or ns(event) > self.end:
                continue
            matches = [leaver for leaver in self.reported.leavers if leaver.member_id == event.member_id]
            near = [match for match in matches if apart(event, match) <= DEPARTURE_MS]
            if any(other.how in HOW[event.how] for other in near) or self._is_unseen(event, matches):
                continue
            if near:
                yield Difference(
                    f"left {event.how}", f"{event.member_id} at {at(event)}: told as {near[0].how}"
                )
            else:
                times = ", ".join(f"{match.how} {at(match)}" for match in matches) or "nothing"
                yield Difference(f"left {event.how}", f"{event.member_id} went at {at(event)}; told: {times}")
        for event in self.reported.leavers:
            matches = [leaver for leaver in self.truth.leavers if leaver.member_id == event.member_id]
            if any(apart(event, match) <= DEPARTURE_MS for match in matches) or self._comes_again(event):
                continue
            if event.member_id in self.refused or any(self._is_unseen(match, [event]) for match in matches):
                continue
            if event.inferred and (self._murky(event) and self._excuse(SHIFTED)):
                continue
            if event.inferred and self._goes_as_its_heir(event) and self._excuse(NEVER_ANSWERED):
                continue
            times = ", ".join(f"{match.how} {at(match)}" for match in matches) or "it stayed"
            yield Difference(
                f"left falsely {event.how}", f"{event.member_id} told at {at(event)}; true: {times}"
            )

    def _is_unseen(self, leaver: MemberLeft, reported: Sequence[MemberLeft]) -> bool:
        """Whether no frame shows how and when a member went. told: what is told of it."""
        if leaver.member_id in self.refused:
            return self._excuse(REFUSED)
        if leaver.how not in BY_SILENCE:
            return False
        since = self.failed_upgrades.get(leaver.member_id)
        if leaver.how == "not_rejoined" and since is not None and self._is_silent(leaver, since):
            return self._excuse(OUTLIVED)
        late = any(ns(leaver) < mark * MS < ns(other) for mark in self.marks for other in reported)
        if late or self._murky(leaver):
            return self._excuse(SHIFTED)
        if self._beside_unseen(leaver):
            return self._excuse(NEVER_ANSWERED)
        return self._returned(leaver) and self._excuse(BACK)

    def _is_silent(self, leaver: MemberLeft, since: int) -> bool:
        """Whether a member sent nothing from then until it went."""
        return since <= ns(leaver) and not any(
            since < at <= ns(leaver) for at in self.request_times[leaver.member_id]
        )

    def _beside_unseen(self, leaver: MemberLeft) -> bool:
        """Whether a member that was never answered was in, so that others waited for it."""
        unseen = {
            event.member_id: ns(event) for event in self.truth.joined if event.member_id not in self.answered
        }
        leaving_times = {event.member_id: ns(event) for event in self.truth.leavers}
        return any(
            since <= ns(leaver) and leaving_times.get(name, self.end) >= ns(leaver) - self.murky * MS
            for name, since in unseen.items()
        )

    def _returned(self, leaver: MemberLeft) -> bool:
        """Whether a static member was back before anything showed that it had been removed."""
        return leaver.instance_id is not None and any(
            event.instance_id == leaver.instance_id and event.rejoined and ns(event) > ns(leaver)
            for event in self.reported.joined
        )

    def _goes_as_its_heir(self, leaver: MemberLeft) -> bool:
        """Whether another was in a static member's place, never answered, and went as that is said to."""
        fenced = [
            event
            for event in self.truth.leavers
            if event.member_id == leaver.member_id and event.how == "fenced"
        ]
        heirs = {
            event.member_id for event in self.truth.joined
            for old in fenced if event.instance_id == old.instance_id and ns(event) == ns(old)
        } - self.answered  # fmt: skip
        return any(
            event.member_id in heirs and apart(event, leaver) <= DEPARTURE_MS and leaver.how in HOW[event.how]
            for event in self.truth.leavers
        )

    def _comes_again(self, leaver: MemberLeft) -> bool:
        return leaver.how == "fenced" and any(
            event.member_id == leaver.member_id and ns(event) >= ns(leaver) for event in self.reported.joined
        )

    def _came_back_by_a_move(self, member_id: str) -> bool:
        """Whether the log had a member that had left, as both stories have it, when it was loaded."""
        leavings = [
            [event for event in events if event.member_id == member_id and event.how == "left"]
            for events in (self.truth.leavers, self.reported.leavers)
        ]
        return all(leavings) and any(
            member_id in members and all(ns(event) < time_ns for events in leavings for event in events)
            for time_ns, members in self.reloaded
        )

    def _at_the_end(self) -> Iterator[Difference]:
        reported = self.reported.members - self.replaced
        late = self.end - NEAR_MS * MS
        unseen = {event.member_id for event in self.truth.leavers if ns(event) > late} | self.refused
        perhaps = {
            event.member_id for event in self.reported.leavers if event.inferred and self._murky(event)
        }
        missing = (self.truth.members & self.answered) - reported - perhaps
        missing -= {
            event for event in missing if self._came_back_by_a_move(event) and self._excuse(FORGOTTEN)
        }
        silent = [
            event for event in self.truth.leavers if event.how in BY_SILENCE and event.member_id in reported
        ]
        unseen |= {event.member_id for event in silent if self._murky(event) and self._excuse(SHIFTED)}
        false = reported - self.truth.members - unseen
        if missing:
            yield Difference("in at the end", f"{sorted(missing)} are in, which isn't told")
        if false:
            yield Difference("in at the end falsely", f"{sorted(false)} are told as in")
