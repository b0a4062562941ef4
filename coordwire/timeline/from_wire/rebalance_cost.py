"""The lag of partitions without a consumer, before the end of a rebalance and after it.

Strategy: when a rebalance ends, the lag of each partition that it left idle is noted as it was measured last;
the first end of the partition that is seen afterwards (its new owner fetches) gives the lag after. The cost
is reported once all have one, or another rebalance begins, or the input ends. Rules: partitions without both
don't count; memory is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from coordwire.timeline.events import (
    GroupEvent,
    RebalanceBegan,
    RebalanceCost,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.evidence import Seen, remember
from coordwire.timeline.lag import Lag

__all__ = ["COSTLY", "Costs"]

MOST_GROUPS = 10_000
MOST_PARTITIONS = 1_000
"""So many partitions of one rebalance are measured."""

COSTLY = frozenset((RebalanceBegan, RebalanceEnded))
"""The events that `Costs.see` says more of."""


@dataclass(slots=True)
class _Open:
    """A rebalance that ended, whose lag isn't all known."""

    place: Seen
    generation: int | None
    before: dict[TopicPartition, int]
    after: dict[TopicPartition, int] = field(default_factory=dict)


class Costs:
    """Of all groups."""

    def __init__(self, lag: Lag) -> None:
        self._lag = lag
        self._open: OrderedDict[str, _Open] = OrderedDict()
        self._waiting: dict[TopicPartition, dict[str, None]] = {}

    def see(self, event: GroupEvent) -> list[GroupEvent]:
        """An event of a group, and the costs that are known by then."""
        if isinstance(event, RebalanceBegan):
            return [*self._reported(event.group), event]
        if isinstance(event, RebalanceEnded) and event.idle:
            costs = self._reported(event.group)
            self._measure(event)
            return [event, *costs]
        return [event]

    def _measure(self, event: RebalanceEnded) -> None:
        if not self._lag.has_ends:
            return
        before = {}
        for gap in event.idle[:MOST_PARTITIONS]:
            partition = TopicPartition(gap.topic, gap.partition)
            lag = self._lag.known(event.group, partition)
            if lag is not None:
                before[partition] = lag
        if not before:
            return
        place = Seen(event.time_ns, event.source, event.number, event.packet)
        if len(self._open) >= MOST_GROUPS:
            self._forget(next(iter(self._open)))
        remember(self._open, event.group, _Open(place, event.generation, before), MOST_GROUPS)
        for partition in before:
            self._waiting.setdefault(partition, {})[event.group] = None

    def ends(self, partition: TopicPartition) -> Iterable[GroupEvent]:
        """The end of a partition was seen."""
        return self._measured(partition) if partition in self._waiting else ()

    def _measured(self, partition: TopicPartition) -> Iterator[GroupEvent]:
        """The costs that are known once the end of a partition was seen."""
        for group in self._waiting.pop(partition):
            cost = self._open[group]
            cost.after[partition] = self._lag.known(group, partition) or 0
            if len(cost.after) == len(cost.before):
                yield from self._report(group)

    def finish(self) -> Iterator[GroupEvent]:
        """The input is at its end."""
        for group in list(self._open):
            yield from self._report(group)

    def _reported(self, group: str) -> list[GroupEvent]:
        return [*self._report(group)] if group in self._open else []

    def _report(self, group: str) -> Iterator[GroupEvent]:
        cost = self._forget(group)
        if cost is not None and cost.after:
            yield RebalanceCost(
                group=group, **cost.place._asdict(), generation=cost.generation,
                partitions=len(cost.after),
                lag_before=sum(cost.before[partition] for partition in cost.after),
                lag_after=sum(cost.after.values()),
            )  # fmt: skip

    def _forget(self, group: str) -> _Open | None:
        cost = self._open.pop(group, None)
        for partition in cost.before if cost is not None else ():
            groups = self._waiting.get(partition)
            if groups is not None:
                groups.pop(group, None)
                if not groups:
                    del self._waiting[partition]
        return cost
