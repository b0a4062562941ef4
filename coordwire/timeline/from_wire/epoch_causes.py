"""The causes of a group's epochs, where its coordinator assigns, and which of them an answer has shown.

Strategy: the coordinator may raise the epoch once for several causes, or for each in its turn, and an answer
shows only by how much it rose. The rebalance under way explains its first rise; what is owed explains the
next ones; what was counted to it together with others (`merged`) may have raised it once more. Rules: a cause
that has not shown within the coordinator's interval and that of heartbeats raised nothing; what is remembered
is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import TopicPartition
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.member_death import SessionTimeout
from coordwire.timeline.members import Owned
from coordwire.timeline.rebalance import Rebalance, Trigger
from coordwire.timeline.rebalance_cause import of_epoch

__all__ = ["ASSIGNMENT_INTERVAL_NS", "LATEST_EPOCH_NS", "NEAR_NS", "EpochCauses", "UnseenMembers"]

MOST_OWED = 100

ASSIGNMENT_INTERVAL_NS = 1_000_000_000
"""The coordinator assigns at most so often (KIP-1263)."""

NEAR_NS = 100_000_000
"""So late may a heartbeat be."""

LATEST_EPOCH_NS = 2_000_000_000
"""A rebalance that hasn't raised the epoch by then won't: the coordinator assigns at least once a second."""


@dataclass(slots=True)
class UnseenMembers:
    """One rise of the epoch, of which no member that was seen is the cause: whether there was one that was in
    before the input began, and of which no frame shows anything.

    Strategy: a member's first assignment in the new epoch is new to it in part: a consumer asks for the
    committed offsets of just that part, or reports what it had before. If it had other partitions of the same
    topic, the new ones had another owner, whose session is over: its leaving would have been seen. If the
    members had nothing, and are given more partitions of one topic than sessions can have ended, they had no
    owner: the coordinator has new topics for its members.

    Rules: a session that ends raises the epoch by one; an assignor shares a topic's partitions among all that
    subscribe to it; a member that is given something of which it may have had all, or more, concludes
    nothing; nor does a rise with a change of topics in the capture.

    assigned: the first assignments that were seen; new: what of each is new to its member, as far as that is
    known.
    """

    before: int
    after: int
    assigned: dict[str, Owned] = field(default_factory=dict)
    new: dict[str, Owned] = field(default_factory=dict)

    def gives(self, member_id: str, partitions: Owned) -> None:
        """A member's first assignment."""
        self.assigned.setdefault(member_id, partitions)

    def reports(self, member_id: str, owned: Owned) -> None:
        """A member reports to own this, perhaps what it had before."""
        assigned = self.assigned.get(member_id)
        if assigned is not None and owned < assigned:
            self.new.setdefault(member_id, assigned - owned)

    def asks_offsets(self, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """A member asks for committed offsets. A topic that has another name here is the only one given."""
        assigned = self.assigned.get(member_id, frozenset())
        topics = {partition.topic for partition in assigned}
        topic = next(iter(topics)) if len(topics) == 1 else ""
        asked_about = {
            partition if partition.topic in topics else TopicPartition(topic, partition.partition)
            for partition in partitions
        }
        if asked_about and asked_about <= assigned:
            self.new.setdefault(member_id, frozenset(asked_about))

    def cause(self) -> Trigger | None:
        """Why the epoch rose, if the assignments show it."""
        rise = f"the group's epoch rose from {self.before} to {self.after}"
        for member_id, new in self.new.items() if self.new.keys() == self.assigned.keys() else ():
            had = {partition.topic for partition in self.assigned[member_id] - new}
            parts = sum(partition.topic in had for partition in new)
            if parts:
                share = f"{parts} more partition{'s' if parts > 1 else ''} of topics that it shared"
                detail = f"{rise}, and a member is given {share}: their owner was in before the capture"
                return Trigger("session_timeout", inferred=True, detail=detail)
        if self.new == {name: partitions for name, partitions in self.assigned.items() if partitions}:
            of_topics = Counter(partition.topic for new in self.new.values() for partition in new)
            if max(of_topics.values(), default=0) > self.after - self.before:
                return of_epoch(self.before, self.after, "its members had nothing before")
        return None


@dataclass(slots=True)
class EpochCauses:
    """Of one group. timeout: has the interval of its heartbeats.

    owed: what will raise the epoch once more, each by one; unshown: what raises the epoch by one each, and no
    rise is for; merged: the last that raised the epoch together with others; risen: the epochs of a rise that
    nothing has explained yet; unseen: what the last rise shows of members that were not seen, if none that
    was caused it; raises: how often something raised the epoch that no answer has shown yet; surplus: by how
    much the last rise was more than what was seen to raise it; departures: members that went since an answer
    showed the epoch; given_ns: when the target of the rebalance under way was first seen; raised_ns: when an
    answer showed a new epoch.
    """

    timeout: SessionTimeout
    owed: list[tuple[Trigger, Seen]] = field(default_factory=list)
    unshown: list[tuple[Trigger, Seen]] = field(default_factory=list)
    merged: tuple[Trigger, Seen] | None = None
    risen: tuple[int, int] | None = None
    unseen: UnseenMembers | None = None
    raises: int = 0
    surplus: int = 0
    departures: int = 0
    given_ns: int | None = None
    raised_ns: int = 0

    def begin(self) -> None:
        """A rebalance begins."""
        self.risen, self.unseen, self.owed, self.given_ns = None, None, [], None

    # --- what raises the epoch ---

    @property
    def _shown_after_ns(self) -> int:
        """A raised epoch shows within so long: in the first answer after the coordinator has assigned."""
        return LATEST_EPOCH_NS + self.timeout.interval_ns

    def owe(self, trigger: Trigger, place: Seen) -> None:
        """Something raises the epoch, though no answer may show that at once."""
        if len(self.owed) < MOST_OWED and (trigger.member_id, trigger.cause) not in {
            (owed.member_id, owed.cause) for owed, _ in self.owed
        }:
            self.owed.append((trigger, place))

    def drop_late(self, place: Seen) -> None:
        """What is owed by now would have shown if it is too old."""
        if self.owed and (place.time_ns or 0) - (self.owed[0][1].time_ns or 0) > self._shown_after_ns:
            self.owed = []

    def raise_later(self, trigger: Trigger, place: Seen) -> None:
        """Something raises the epoch by one, in its turn."""
        early_ns = (place.time_ns or 0) - self._shown_after_ns
        self.unshown = [entry for entry in self.unshown if (entry[1].time_ns or 0) >= early_ns]
        if len(self.unshown) < MOST_OWED:
            self.unshown.append((trigger, place))

    def early_ns(self, place: Seen) -> int:
        """What raised the epoch before then was shown by now."""
        return (place.time_ns or 0) - ASSIGNMENT_INTERVAL_NS - self.timeout.interval_ns - NEAR_NS

    def not_shown_yet(self, place: Seen) -> tuple[Trigger, Seen] | None:
        """The first cause that raises the epoch in its turn, and that no rise was for."""
        early_ns = self.early_ns(place)
        return next((entry for entry in self.unshown if (entry[1].time_ns or 0) >= early_ns), None)

    # --- an answer shows a rise ---

    def settle_merged(self, risen: int, rebalance: Rebalance | None) -> None:
        """What raised the epoch together with others is in a rise for certain if that is by several, or of a
        rebalance that began afterwards."""
        merged = self.merged
        if merged is None:
            return
        if risen > 1:
            is_shown = risen >= self.raises
        else:
            later = (merged[1].time_ns or 0) < (0 if rebalance is None else rebalance.began.time_ns or 0)
            is_shown = rebalance is not None and rebalance.joined_ns is None and later
        if is_shown:
            self.merged = None

    def pay_first(
        self,
        risen: int,
        rebalance: Rebalance | None,
        *,
        is_known: bool,
        resolves_later: Callable[[str | None], bool],
    ) -> None:
        """The epoch rose, for the first time since the rebalance under way began: what came after its target
        was seen will raise it once more. is_known: whether the epoch before is; resolves_later: whether a
        member's joining raises it later, when its pattern is resolved."""
        given_ns = self.given_ns
        if not is_known or given_ns is None:
            departed = is_known and risen <= self.departures  # which explain it
            self.owed = [entry for entry in self.owed if departed and resolves_later(entry[0].member_id)]
            return
        own_id = None if rebalance is None else rebalance.trigger.member_id
        later = [(trigger, moment) for trigger, moment in self.owed if (moment.time_ns or 0) > given_ns]
        self.owed = [entry for entry in later if entry[0].member_id != own_id][risen - 1 :]

    def turn_of(self, member_id: str, request_place: Seen) -> int:
        """Whose turn it is of those that raise the epoch: the member's own, if this answers its joining."""
        own = (
            n
            for n, (trigger, moment) in enumerate(self.owed)
            if trigger.member_id == member_id and moment == request_place
        )
        return next(own, 0)

    def show(self, before: int | None, epoch: int, place: Seen) -> None:
        """An answer has shown this epoch, for whatever raised it."""
        risen = epoch - (before or 0)
        unseen = risen - self.raises
        self.surplus = max(unseen, 0) if before is not None else 0
        self.raises = max(-unseen, 0)
        del self.unshown[:risen]
        self.departures, self.raised_ns = 0, place.time_ns or 0

    # --- what a rise says of members ---

    def was_for(self, moment: Seen) -> bool:
        """Whether the last rise of the epoch was for a member that went then, too."""
        if not self.surplus or moment.time_ns is None:
            return False
        return self.raised_ns - ASSIGNMENT_INTERVAL_NS <= moment.time_ns <= self.raised_ns + NEAR_NS

    def only_departed(self, rebalance: Rebalance | None) -> bool:
        """Whether nothing but members that left has raised the epoch since an answer showed it."""
        if rebalance is None or rebalance.joined_ns is not None or self.owed:
            return False
        causes = {rebalance.trigger.cause} | (set() if self.merged is None else {self.merged[0].cause})
        return causes <= {"member_left", "session_timeout"}
