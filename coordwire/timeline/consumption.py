"""How long partitions had no consumer.

Strategy: a member has its partitions from the moment that it has them until it gives them up, leaves, or was
last seen alive; a partition without any member is idle until the next one has it. That a member was last seen
alive some time ago may be known only after others had what it has: of what others have beside the first, the
times are kept. Rules: a change costs as much as what it changes; partitions that never had a consumer are not
idle; a gap without times has no length; memory is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from coordwire.timeline.events import Idle, TopicPartition
from coordwire.timeline.evidence import remember
from coordwire.timeline.members import Owned

MOST_GAPS = 10_000
"""So many gaps are kept between two rebalances."""

MOST_ENDED = 1_000
"""So many members that are out are remembered."""

MOST_PAST = 10
"""So many consumers of a partition are remembered that had it while another one did."""

_NOTHING: Owned = frozenset()
_EVER = 1 << 63
_new = tuple.__new__  # a named tuple's own goes through a function


@dataclass(slots=True)
class _Sharers:
    """Who has a partition beside its first consumer, and since when; past: the same of those who had it."""

    since: OrderedDict[str, int] = field(default_factory=OrderedDict)
    past: list[tuple[int, int]] = field(default_factory=list)


class Consumption:
    """The partitions that each member of one group consumes."""

    def __init__(self) -> None:
        self._of: dict[str, Owned] = {}
        self._consumed: set[TopicPartition] = set()
        self._sharers: dict[TopicPartition, _Sharers] = {}
        self._idle: dict[TopicPartition, int] = {}
        self._ended: OrderedDict[str, tuple[Owned, int, int]] = OrderedDict()
        self._gaps: list[Idle] = []

    def has(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """Set the partitions that a member consumes from now on."""
        before = self._of.get(member_id, _NOTHING)
        if partitions is before:
            return
        if before:
            self._give_up(member_id, before - partitions if partitions else before, time_ns)
        if partitions:
            self._take_up(member_id, partitions - before if before else partitions, time_ns)
            self._of[member_id] = partitions
        else:
            self._of.pop(member_id, None)

    def _give_up(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """One consumer less; the limit of gaps must not choose by the order of a set."""
        if self._sharers and (shared := sorted(part for part in partitions if part in self._sharers)):
            partitions -= frozenset(shared)
            for partition in shared:
                self._leaves_to_sharers(member_id, partition, time_ns)
        self._consumed -= partitions
        if time_ns is None:
            return
        if len(self._idle) + len(partitions) <= MOST_GAPS:
            self._idle |= dict.fromkeys(partitions, time_ns)
        else:
            self._idle |= dict.fromkeys(sorted(partitions)[: MOST_GAPS - len(self._idle)], time_ns)

    def _leaves_to_sharers(self, member_id: str, partition: TopicPartition, time_ns: int | None) -> None:
        """A partition has one of its consumers less, which may have been the only one for a while."""
        sharers = self._sharers[partition]
        since_ns = sharers.since.pop(member_id, None)
        if since_ns is not None:
            if time_ns is not None and time_ns > since_ns:
                sharers.past.append((since_ns, time_ns))
                del sharers.past[:-MOST_PAST]
            if not sharers.since and not sharers.past:
                del self._sharers[partition]
            return
        first = next(iter(sharers.since), None)
        spans, next_ns = sorted(sharers.past), 0
        if first is not None:  # the next of them is the first now
            next_ns = sharers.since.pop(first)
            spans = sorted([*spans, (next_ns, _EVER)])
        idle_ns = time_ns
        for begin_ns, end_ns in spans if idle_ns is not None else ():
            if idle_ns is not None and end_ns > idle_ns:
                self._was_idle(partition, idle_ns, begin_ns)
                idle_ns = end_ns
        sharers.past = []
        if first is None:
            self._consumed.discard(partition)
            if idle_ns is not None and len(self._idle) < MOST_GAPS:
                self._idle[partition] = idle_ns
        elif time_ns is not None:
            told_ns = max(time_ns, next_ns)  # what was idle before is among the gaps
            sharers.past = [(0, told_ns), *(span for span in spans if told_ns < span[1] != _EVER)]
            del sharers.past[MOST_PAST:]
        if not sharers.since and not sharers.past:
            del self._sharers[partition]

    def _was_idle(self, partition: TopicPartition, since_ns: int, until_ns: int) -> None:
        if until_ns > since_ns and len(self._gaps) < MOST_GAPS:
            self._gaps.append(_new(Idle, (*partition, since_ns, until_ns)))

    def _take_up(self, member_id: str, partitions: Owned, time_ns: int | None) -> None:
        """One consumer more."""
        if not self._consumed.isdisjoint(partitions):
            for partition in self._consumed & partitions:
                self._sharers.setdefault(partition, _Sharers()).since[member_id] = time_ns or 0
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

    def ends(self, member_id: str, time_ns: int | None, *, session_ns: int = 0) -> None:
        """Take all partitions away from a member. session_ns: a request of it within so long after that shows
        that it lived on; 0 for none."""
        if member_id in self._of:
            if time_ns is not None and session_ns:
                remember(self._ended, member_id, (self._of[member_id], time_ns, session_ns), MOST_ENDED)
            self.has(member_id, frozenset(), time_ns)

    def asks(self, member_id: str, time_ns: int | None) -> None:
        """A member that is out sent a request: it was silent until then, or lived on."""
        if member_id not in self._ended or time_ns is None:
            return
        partitions, since_ns, session_ns = self._ended[member_id]
        self.lived_until(member_id, time_ns if time_ns - since_ns <= session_ns else None)
        if time_ns - since_ns <= session_ns:
            self._ended[member_id] = partitions, max(since_ns, time_ns), session_ns

    def lived_until(self, member_id: str, time_ns: int | None) -> None:
        """A member that is out consumed until then, and not only until it was taken to be out: what is idle
        since that time is so for less."""
        partitions, since_ns, _ = self._ended.pop(member_id, (_NOTHING, 0, 0))
        if time_ns is None or time_ns <= since_ns:
            return
        for partition in partitions:
            if self._idle.get(partition) == since_ns:
                self._idle[partition] = time_ns

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
            for partition in [part for part in partitions if part in self._sharers] if self._sharers else ():
                since = self._sharers[partition].since
                if member_id in since:
                    since[heir] = since.pop(member_id)

    def take_gaps(self) -> tuple[Idle, ...]:
        """The gaps that closed since the last call, by partition."""
        gaps, self._gaps = self._gaps, []
        return tuple(sorted(gaps))

    def open_gaps(self, partitions: Iterable[TopicPartition], time_ns: int | None) -> tuple[Idle, ...]:
        """The gaps of some partitions that have no consumer by then, as long as they are by then."""
        idle = ((partition, self._idle.get(partition)) for partition in sorted(partitions))
        return tuple(
            _new(Idle, (*partition, since_ns, time_ns))
            for partition, since_ns in idle
            if since_ns is not None and time_ns is not None and since_ns < time_ns
        )

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
