"""How many records groups have left to read: committed offsets held against the ends of partitions, as both
are seen.

Strategy: a commit, or one that the coordinator reports, is compared with the newest end of its partition; an
end that moves, with what groups have committed there, at most once a second for each. Rules: memory is
bounded, the oldest is forgotten; a commit in a transaction counts from its end on; a lag below 0 has a
reason, and is measured again once the end is seen after the commit, even where that did not move. A topic
that is deleted, or made anew under its name, has other partitions: offsets of the one before are not compared
with their ends, and go when they are the oldest. An end that comes with the topic's name may be the new
one's, of which nothing is known yet: if a commit is beyond it, that is reported once the topic has not turned
out to be another one for a while.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import islice

from coordwire._speedups.rows import row_maker
from coordwire.timeline.events import LagMeasured, LagReason, TopicPartition
from coordwire.timeline.evidence import Seen, remember

MOST = 100_000
"""So many partitions' ends, and commits, are remembered."""

MOST_AT_ONCE = 100
"""So many groups are compared with an end that moves; of more, those whose turn was longest ago."""

DOUBT_NS = 60_000_000_000
"""For so long a commit beyond an end may be one of the topic before."""

MOST_DOUBTS = 1_000
"""Of one topic, and topics."""

APART_NS = 1_000_000_000
"""Between two lags that differ only by the partition's end."""

Partition = TopicPartition | tuple[TopicPartition, str | int]
"""A partition; of a topic that is another one than before, with its id, or how often it was deleted."""

Commit = tuple[str, Partition]

_measured = row_maker(LagMeasured)

_BEYOND: LagReason = "committed_beyond_end"
_EARLIER: LagReason = "end_seen_earlier"


class Lag:
    """Ends and commits as far as they were seen."""

    def __init__(self) -> None:
        self._ends: OrderedDict[Partition, int] = OrderedDict()
        self._committed: OrderedDict[Partition, OrderedDict[str, tuple[int, int]]] = OrderedDict()
        self._reported: OrderedDict[Commit, tuple[int | None, int, LagReason | None]] = OrderedDict()
        self._beyond: OrderedDict[Partition, None] = OrderedDict()  # by an end that was seen earlier
        self._open: OrderedDict[str, OrderedDict[tuple[str, TopicPartition], int]] = OrderedDict()
        self._anew: OrderedDict[str, str | int] = OrderedDict()
        self._lives: OrderedDict[str, int] = OrderedDict()  # of groups that were deleted
        self._deletions = 0
        self.doubts: OrderedDict[str, deque[LagMeasured]] = OrderedDict()

    def made_anew(self, topic: str, topic_id: str) -> None:
        """The topic of this name is the one with this id, and was another one before."""
        remember(self._anew, topic, topic_id, MOST)
        self.doubts.pop(topic, None)

    def group_deleted(self, group: str) -> None:
        """The group was deleted, with what it committed."""
        self._deletions += 1
        remember(self._lives, group, self._deletions, MOST)

    def deleted(self, topic: str) -> None:
        """The topic of this name was deleted."""
        self._deletions += 1
        remember(self._anew, topic, self._deletions, MOST)
        self.doubts.pop(topic, None)

    def _partition(self, name: TopicPartition) -> Partition:
        anew = self._anew.get(name.topic)
        return name if anew is None else (name, anew)

    def committed(
        self, group: str, partition: TopicPartition, offset: int, place: Seen
    ) -> Iterable[LagMeasured]:
        """A group committed, or was given what it had."""
        if offset < 0:
            return ()
        key = self._partition(partition) if self._anew else partition
        groups = self._committed.get(key)
        if groups is None:
            groups = OrderedDict()
            remember(self._committed, key, groups, MOST)
        remember(groups, group, (offset, self._lives.get(group, 0) if self._lives else 0), MOST)
        if key not in self._ends:
            return ()
        measured = self._measure(group, partition, key, place, at_once=True)
        return () if measured is None else (measured,)

    def ends(self, partition: TopicPartition, offset: int, place: Seen) -> Iterable[LagMeasured]:
        """A partition's high watermark."""
        key = self._partition(partition) if self._anew else partition
        if offset < 0 or (self._ends.get(key) == offset and key not in self._beyond):
            return ()
        remember(self._ends, key, offset, MOST)
        self._beyond.pop(key, None)
        groups = self._committed.get(key)
        if groups is None:
            return ()
        every = []
        for group in list(islice(iter(groups), MOST_AT_ONCE)):
            if self._lives and self._is_past(group, groups):
                del groups[group]
                continue
            groups.move_to_end(group)
            measured = self._measure(group, partition, key, place, at_once=False)
            if measured is not None:
                every.append(measured)
        return every

    def certain(self, every: Iterable[LagMeasured]) -> Iterator[LagMeasured]:
        """Those lags that are certain, of some that an end shows by the name of a topic whose id is known: it
        may be another topic by now, and then a commit beyond its end is one of the topic before."""
        for measured in every:
            if measured.reason != _BEYOND:
                yield measured
                continue
            doubts = self.doubts.get(measured.topic)
            if doubts is None:
                doubts = deque(maxlen=MOST_DOUBTS)
                remember(self.doubts, measured.topic, doubts, MOST_DOUBTS)
            doubts.append(measured)

    def settled(self, place: Seen) -> Iterator[LagMeasured]:
        """What was in doubt, and is certain by now."""
        while self.doubts:
            topic, doubts = next(iter(self.doubts.items()))
            if (place.time_ns or 0) - (doubts[0].time_ns or 0) < DOUBT_NS:
                return
            del self.doubts[topic]
            yield from doubts

    def finish(self) -> Iterator[LagMeasured]:
        """What the end of the input leaves in doubt."""
        for doubts in self.doubts.values():
            yield from doubts
        self.doubts.clear()

    def committed_of(self, group: str, partition: TopicPartition) -> int | None:
        """What a group has committed, as far as that was seen."""
        groups = self._committed.get(self._partition(partition) if self._anew else partition)
        if groups is None or group not in groups or self._is_past(group, groups):
            return None
        return groups[group][0]

    def forgotten(self, group: str, partition: TopicPartition) -> None:
        """What a group had committed in a partition was deleted."""
        key = self._partition(partition) if self._anew else partition
        if (groups := self._committed.get(key)) is not None:
            groups.pop(group, None)
        self._reported.pop((group, key), None)

    @property
    def has_ends(self) -> bool:
        """Whether the end of any partition is known, without which no lag is."""
        return bool(self._ends)

    def known(self, group: str, partition: TopicPartition) -> int | None:
        """How many records a group has left to read in a partition, as far as both ends of it are known; 0
        where what it committed is beyond the end."""
        key = self._partition(partition) if self._anew else partition
        end, groups = self._ends.get(key), self._committed.get(key)
        if end is None or groups is None or group not in groups or self._is_past(group, groups):
            return None
        return max(end - groups[group][0], 0)

    def _is_past(self, group: str, groups: OrderedDict[str, tuple[int, int]]) -> bool:
        """Whether what a group committed in a partition went with the group."""
        return groups[group][1] != self._lives.get(group, 0)

    def _measure(
        self, group: str, partition: TopicPartition, key: Partition, place: Seen, *, at_once: bool
    ) -> LagMeasured | None:
        """A group's lag in a partition of which both ends are known, if it is new."""
        end = self._ends[key]
        committed, _ = self._committed[key][group]
        lag, reason = end - committed, None
        if lag < 0:
            reason = _EARLIER if at_once else _BEYOND
        if reason == _EARLIER:
            remember(self._beyond, key, None, MOST)
        before = self._reported.get((group, key))
        if before is None or before[2] != reason:
            at_once = True
        elif before[1] == lag:
            return None
        if before is not None and not at_once and not _later(before[0], place.time_ns):
            return None
        remember(self._reported, (group, key), (place.time_ns, lag, reason), MOST)
        return _measured(group, *place, None, *partition, committed, end, lag, reason)

    # --- transactions ---

    def pending(self, transactional_id: str, group: str, partition: TopicPartition, offset: int) -> None:
        """A commit that holds once its transaction is committed."""
        commits = self._open.get(transactional_id)
        if commits is None:
            commits = OrderedDict()
            remember(self._open, transactional_id, commits, MOST // 100)
        remember(commits, (group, partition), offset, MOST // 100)

    def decided(self, transactional_id: str, committed: bool, place: Seen) -> Iterator[LagMeasured]:
        """A transaction's end."""
        for (group, partition), offset in self._open.pop(transactional_id, {}).items():
            if committed:
                yield from self.committed(group, partition, offset, place)


def _later(before_ns: int | None, now_ns: int | None) -> bool:
    return before_ns is None or now_ns is None or now_ns - before_ns >= APART_NS
