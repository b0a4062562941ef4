"""How long partitions had no consumer.

Strategy: a member has its partitions from the moment that it has them until it gives them up, leaves, or was
last seen alive; a partition without any member is idle until the next one has it. Rules: a change costs as
much as what it changes; partitions that never had a consumer are not idle; a gap without times has no length;
memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable

from coordwire.timeline.events import Idle, TopicPartition
from coordwire.timeline.members import Owned

__all__ = ["Consumption"]

MOST_GAPS = 10_000
"""So many gaps are kept between two rebalances."""


_NOTHING: Owned = frozenset()
_new = tuple.__new__  # a named tuple's own goes through a function


class Consumption:
    """The partitions that each member of one group consumes."""

    def __init__(self) -> None:
        self._of: dict[str, Owned] = {}
        self._consumed: set[TopicPartition] = set()
        self._spare_consumers: dict[TopicPartition, int] = {}  # of those that have several: all but one
        self._idle: dict[TopicPartition, int] = {}
        self._gaps: list[Idle] = []

    def has(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """Set the partitions that a member consumes from now on."""
        before = self._of.get(member_id, _NOTHING)
        if partitions is before:
            return
        if before:
            self._give_up(before - partitions if partitions else before, time_ns)
        if partitions:
            self._take_up(partitions - before if before else partitions, time_ns)
            self._of[member_id] = partitions
        else:
            self._of.pop(member_id, None)

    def _give_up(self, partitions: Owned, time_ns: int | None) -> None:
        """One consumer less; the limit of gaps must not choose by the order of a set."""
        if self._spare_consumers:
            partitions = frozenset(filter(self._is_last, partitions))
        self._consumed -= partitions
        if time_ns is None:
            return
        if len(self._idle) + len(partitions) <= MOST_GAPS:
            self._idle |= dict.fromkeys(partitions, time_ns)
        else:
            self._idle |= dict.fromkeys(sorted(partitions)[: MOST_GAPS - len(self._idle)], time_ns)

    def _is_last(self, partition: TopicPartition) -> bool:
        """Whether a consumer that gives up a partition was its only one."""
        spare = self._spare_consumers.get(partition)
        if spare is None:
            return True
        if spare > 1:
            self._spare_consumers[partition] = spare - 1
        else:
            del self._spare_consumers[partition]
        return False

    def _take_up(self, partitions: Owned, time_ns: int | None) -> None:
        """One consumer more."""
        if not self._consumed.isdisjoint(partitions):
            for partition in self._consumed & partitions:
                self._spare_consumers[partition] = self._spare_consumers.get(partition, 0) + 1
        self._consumed |= partitions
        if not self._idle:
            return
        end, gaps = self._idle.pop, self._gaps
        for partition in partitions if len(gaps) + len(partitions) <= MOST_GAPS else sorted(partitions):
            since_ns = end(partition, None)
            if since_ns is not None and time_ns is not None and len(gaps) < MOST_GAPS:
                until_ns = time_ns if time_ns > since_ns else since_ns
                gaps.append(_new(Idle, (*partition, since_ns, until_ns)))

    def keeps(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """Take the partitions away from a member that aren't among these."""
        before = self._of.get(member_id)
        if before is not None and not before <= partitions:
            self.has(member_id, before & partitions, time_ns)

    def ends(self, member_id: str, time_ns: int | None) -> None:
        """Take all partitions away from a member."""
        if member_id in self._of:
            self.has(member_id, frozenset(), time_ns)

    def passes(self, member_id: str, heir: str, until_ns: int | None, time_ns: int | None) -> None:
        """A static member's partitions are its heir's from time_ns on. until_ns: until when it consumed them,
        None for until then."""
        if member_id not in self._of or member_id == heir:
            return
        partitions = self._of[member_id]
        if until_ns is not None:
            self.ends(member_id, until_ns)
            self.has(heir, partitions, time_ns)
        else:
            self._of[heir] = self._of.pop(member_id)

    def take_gaps(self) -> tuple[Idle, ...]:
        """The gaps that closed since the last call, by partition."""
        gaps, self._gaps = self._gaps, []
        return tuple(sorted(gaps))

    def renamed(self, topic: Callable[[str], str]) -> Consumption:
        """A copy with other names of topics; several topics may get the same name."""

        def name(partition: TopicPartition) -> TopicPartition:
            return TopicPartition(topic(partition.topic), partition.partition)

        new = Consumption()
        for member_id, partitions in self._of.items():
            new.has(member_id, frozenset(map(name, partitions)), None)
        for partition, since_ns in self._idle.items():
            name_now = name(partition)
            if name_now not in new._consumed:
                new._idle[name_now] = max(since_ns, new._idle.get(name_now, since_ns))
        new._gaps = [gap._replace(topic=topic(gap.topic)) for gap in self._gaps]
        return new
