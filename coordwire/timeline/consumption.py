"""How long partitions had no consumer.

Strategy: a member has its partitions from the moment that it has them until it gives them up, leaves, or was
last seen alive; a partition without any member is idle until the next one has it. Rules: a change costs as
much as what it changes; partitions that never had a consumer are not idle; a gap without times has no length;
memory is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from coordwire.timeline.events import Idle, TopicPartition
from coordwire.timeline.members import Owned

__all__ = ["Consumption"]

MOST_GAPS = 10_000
"""So many gaps are kept between two rebalances."""


_new = tuple.__new__  # a named tuple's own goes through a function


class _Gap(NamedTuple):
    partition: TopicPartition
    since_ns: int
    until_ns: int


class Consumption:
    """The partitions that each member of one group consumes."""

    def __init__(self) -> None:
        self._of: dict[str, Owned] = {}
        self._consumers: dict[TopicPartition, int] = {}
        self._idle: dict[TopicPartition, int] = {}
        self._gaps: list[_Gap] = []

    def has(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """Set the partitions that a member consumes from now on."""
        before = self._of.get(member_id, frozenset())
        if partitions is before:
            return
        for partition in self._in_order(before - partitions):
            self._consumers[partition] -= 1
            if not self._consumers[partition]:
                del self._consumers[partition]
                if time_ns is not None and len(self._idle) < MOST_GAPS:
                    self._idle[partition] = time_ns
        for partition in self._in_order(partitions - before):
            self._consumers[partition] = self._consumers.get(partition, 0) + 1
            since_ns = self._idle.pop(partition, None)
            if since_ns is not None and time_ns is not None and len(self._gaps) < MOST_GAPS:
                self._gaps.append(_new(_Gap, (partition, since_ns, max(time_ns, since_ns))))
        if partitions:
            self._of[member_id] = partitions
        else:
            self._of.pop(member_id, None)

    def _in_order(self, partitions: Owned) -> Iterable[TopicPartition]:
        """The limits of gaps must not choose by the order of a set."""
        most = MOST_GAPS - len(partitions)
        return partitions if len(self._idle) < most and len(self._gaps) < most else sorted(partitions)

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
        return tuple(
            _new(Idle, (*partition, since_ns, until_ns)) for partition, since_ns, until_ns in sorted(gaps)
        )

    def renamed(self, topic: Callable[[str], str]) -> Consumption:
        """A copy with other names of topics; several topics may get the same name."""

        def name(partition: TopicPartition) -> TopicPartition:
            return TopicPartition(topic(partition.topic), partition.partition)

        new = Consumption()
        new._of = {member: frozenset(map(name, partitions)) for member, partitions in self._of.items()}
        new._consumers = Counter(partition for partitions in new._of.values() for partition in partitions)
        for partition, since_ns in self._idle.items():
            name_now = name(partition)
            if name_now not in new._consumers:
                new._idle[name_now] = max(since_ns, new._idle.get(name_now, since_ns))
        new._gaps = [gap._replace(partition=name(gap.partition)) for gap in self._gaps]
        return new
