"""A shard's story: what happened to its groups, as events, each of which comes out once it is durable.

Strategy: what an operation does is held back with the end of the log after it. It is reported when the log is
durable up to there; what a failed append takes back is dropped. Consumer groups' events come from their
records; of classic groups, which are mutated in place, operations note facts. Rules: a fact of a classic
group that is still there after a revert was not taken back (Apache Kafka's is mutated in place, too), so it
is reported. One of a group that no record has made yet waits for the next append, with which the group may be
lost. Events come out in the order of the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from coordwire.coordinator.because import BY_ITSELF, Because
from coordwire.coordinator.effects import Append
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.classic_group import ClassicGroupModel
from coordwire.coordinator.story.classic_story import ClassicStory
from coordwire.coordinator.story.commit_story import CommitStory
from coordwire.coordinator.story.consumer_story import ConsumerStory
from coordwire.coordinator.story.rebalances import Rebalances
from coordwire.coordinator.topics import TopicsImage
from coordwire.group_events import GroupEvent
from coordwire.messages import OffsetCommitKey

__all__ = ["Story"]


class _Groups(Protocol):
    def get(self, key: str, /) -> object | None: ...

    def is_new(self, key: str, /) -> bool: ...


@dataclass(slots=True)
class _Held:
    """What is not reported yet. group: the classic group that it is about; tell: makes its events."""

    offset: int
    group: ClassicGroupModel | None
    tell: Callable[[], None]


class Story:
    """The story of one shard, for as long as it has its partition. topics: names of topics by their ids."""

    def __init__(self, topics: TopicsImage, events: deque[GroupEvent]) -> None:
        self.topics = topics
        self._number = 0
        self._noted: list[tuple[ClassicGroupModel | None, Callable[[], None]]] = []
        self._held: deque[_Held] = deque()
        self._unlogged: list[_Held] = []
        self.rebalances = Rebalances(events.append, lambda: self._number)
        self.classic = ClassicStory(self.note, events.append, self.rebalances)
        self._consumer = ConsumerStory(events.append, self.rebalances, lambda: self.topics)
        self._commits = CommitStory(events.append, self.rebalances)

    def note(self, group: ClassicGroupModel | None, tell: Callable[[], None]) -> None:
        """Something happened in the operation that is running."""
        self._noted.append((group, tell))

    def appends(self, now: int, append: Append, because: Because | None) -> None:
        """The operation that is running appends this."""
        self.note(None, lambda: self._appended(now, append, because or BY_ITSELF))

    def _appended(self, now: int, append: Append, because: Because) -> None:
        if append.marker is not None:
            committed = append.marker.committed
            self._commits.ended(now, append.producer_id, append.producer_epoch, committed=committed)
            return
        for record in append.records:
            if isinstance(record.key, OffsetCommitKey):
                self._commits.committed(now, record.key, record.value, because, append.producer_id)
        self._consumer.records(now, append.records, because)

    def loads(self, entry: LogEntry) -> None:
        """What was in the log before the shard had it: no event."""
        record = entry.record
        if isinstance(record, TransactionMarker):
            self._commits.load_end(entry.producer_id)
        elif isinstance(record.key, OffsetCommitKey):
            self._commits.load(record.key, entry.producer_id)
        else:
            self._consumer.load(record)

    def loaded(self, now: int) -> None:
        """That was all."""
        self._consumer.loaded(now)

    def hold(self, written: int, committed: int, groups: _Groups) -> None:
        """An operation is over, and the log ends here; report what is durable."""
        if self._unlogged and self._unlogged[0].offset < written:
            self._held.extend(replace(held, offset=written) for held in self._unlogged)
            self._unlogged.clear()
        if self._noted:
            for group, tell in self._noted:
                unlogged = group is not None and groups.is_new(group.group_id)
                (self._unlogged if unlogged else self._held).append(_Held(written, group, tell))
            self._noted.clear()
        while self._held and self._held[0].offset <= committed:
            held = self._held.popleft()
            self._number = held.offset
            held.tell()

    def revert(self, base: int, groups: _Groups) -> None:
        """Appends from this offset on failed, and what they changed is taken back."""
        kept: list[_Held] = []
        undone = self._unlogged[::-1]
        self._unlogged.clear()
        while self._held and self._held[-1].offset > base:
            undone.append(self._held.pop())
        for held in undone:
            if held.group is not None and groups.get(held.group.group_id) is held.group:
                held.offset = base
                kept.append(held)
        self._held.extend(reversed(kept))

    def give_up(self, now: int) -> None:
        """The shard gives up its partition; what is not durable is another's to decide."""
        self._noted.clear()
        self._held.clear()
        self._unlogged.clear()
        self.rebalances.finish(now)
