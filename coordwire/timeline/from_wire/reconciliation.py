"""The members' progress in a group whose coordinator assigns: each one's epoch and partitions.

Strategy: counters that each change keeps up to date, so that no question looks at all members. The group is
even when all members are in one epoch and have reported to own what they were given. It is also complete when
no partition waits for its next owner; a partition may stay without one (no member subscribes to its topic any
longer), so that each member's next heartbeat without a change counts as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coordwire.timeline.events import TopicPartition
from coordwire.timeline.evidence import Seen
from coordwire.timeline.members import Member, Owned

__all__ = ["Reconciliation"]


_NONE = object()


class Reconciliation:
    """Of one group. shared: whether partitions have several owners at a time; even_since: since when the
    group is even, and by whom it became so."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._late: set[str] = set()  # who hasn't reported what it was given
        self._epochs: Counter[int | None] = Counter()
        self._epoch_of: dict[str, int | None] = {}
        self._partitions: dict[str, Owned] = {}
        self._holder: dict[TopicPartition, str] = {}
        self._lost: set[TopicPartition] = set()
        self._round = 0
        self._report_rounds: dict[str, int] = {}  # the round in which each was heard last
        self._heard_now = 0
        self.even_since: Seen | None = None
        self.even_by: str | None = None

    # --- members ---

    @property
    def is_empty(self) -> bool:
        """Whether no member is in, those that are away apart."""
        return not self._epoch_of

    def note(self, member: Member) -> None:
        """Count a member as it is now."""
        name, epoch = member.member_id, member.generation
        if self._epoch_of.get(name, _NONE) != epoch:
            self._uncount(name)
            self._epoch_of[name] = epoch
            self._epochs[epoch] += 1
        if member.standby_changed or (member.assigned is not None and member.owned is not member.assigned):
            self._late.add(name)
        else:
            self._late.discard(name)

    def is_late(self, member_id: str, generation: int | None) -> bool:
        """Whether a member is not in this epoch, or has not reported what it was given in it."""
        return member_id in self._late or self._epoch_of.get(member_id) != generation

    def leaves(self, member_id: str) -> None:
        """A member counts no more; what it has waits for it."""
        self._uncount(member_id)
        self._late.discard(member_id)
        if self._report_rounds.pop(member_id, 0) == self._round:
            self._heard_now -= 1

    def drop(self, member_id: str) -> None:
        """A member is out, and what it had is free."""
        self.leaves(member_id)
        self.hold(member_id, None)

    def _uncount(self, name: str) -> None:
        if name in self._epoch_of:
            epoch = self._epoch_of.pop(name)
            self._epochs[epoch] -= 1
            if not self._epochs[epoch]:
                del self._epochs[epoch]

    # --- partitions ---

    def hold(self, member_id: str, partitions: Owned | None) -> None:
        """A member has these and no others."""
        before = self._partitions.pop(member_id, frozenset())
        if partitions is before:
            self._partitions[member_id] = before
            return
        for partition in before - (partitions or frozenset()):
            if self._holder.get(partition) == member_id:
                del self._holder[partition]
                self._lost.add(partition)
        if partitions:
            self._partitions[member_id] = partitions
            for partition in partitions:
                self._holder[partition] = member_id
            self._lost -= partitions

    def free(self, standby: Owned) -> None:
        """Standby tasks are given up; those without an owner wait for one, which may be the same member."""
        self._lost.update(task for task in standby if task not in self._holder)

    @property
    def lost(self) -> frozenset[TopicPartition]:
        """The partitions that lost their owner."""
        return frozenset(self._lost)

    @property
    def has_owners(self) -> bool:
        """Whether any member has any partition."""
        return bool(self._holder)

    def is_exclusive(self, member_id: str) -> bool:
        """Whether a member has partitions that no other can have at the same time."""
        return not self._shared and bool(self._partitions.get(member_id))

    def former_owners(self, member_id: str, partitions: Owned) -> Iterator[str]:
        """The owners of partitions that a member gets, which weren't seen to give them up."""
        if not self._shared:
            before = self._partitions.get(member_id, frozenset())
            owners = (self._holder.get(partition) for partition in sorted(partitions - before))
            yield from dict.fromkeys(owner for owner in owners if owner is not None and owner != member_id)

    # --- the group ---

    def note_report(self, member_id: str, generation: int | None, place: Seen) -> None:
        """A member's heartbeat was counted; see whether the group is even with it."""
        if self._late or len(self._epochs) != 1 or generation not in self._epochs:
            self.even_since = None
            return
        if self.even_since is None:
            self.even_since, self.even_by = place, member_id
            self._round += 1
            self._heard_now = 0
        elif member_id in self._epoch_of and self._report_rounds.get(member_id) != self._round:
            self._report_rounds[member_id] = self._round
            self._heard_now += 1

    @property
    def is_complete(self) -> bool:
        """Whether the group is even, and no partition waits for an owner."""
        return self.even_since is not None and (self._shared or not self._lost)

    @property
    def is_confirmed(self) -> bool:
        """Whether all members have sent a heartbeat since the group is even."""
        return self.even_since is not None and self._heard_now >= len(self._epoch_of)

    def begin(self) -> None:
        """A rebalance begins: the group isn't even until a heartbeat says so."""
        self.even_since = None

    def end(self) -> None:
        """A rebalance is over."""
        self.even_since = self.even_by = None
        self._lost.clear()
