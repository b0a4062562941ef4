"""A shard's timeline: what happened to its groups, as events, each of which comes out once it is durable.

Strategy: what an operation does is held back with the end of the log after it. It is reported when the log is
durable up to there; what a failed append takes back is dropped. The events of groups whose coordinator
assigns come from their records; of classic groups, which are mutated in place, operations note facts. Rules:
a fact of a classic group that is still there after a revert was not taken back (Apache Kafka's is mutated in
place, too), so it is reported. One of a group that no record has made yet waits for the next append, with
which the group may be lost. Events come out in the order of the log. A record of a
transaction's producer is a commit that holds once a marker says so; each group with such commits has an event
of the marker. The log has no transactional ids: the id of a transaction that was under way when the shard got
its partition is empty.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coordwire.coordinator.effects import Append
from coordwire.coordinator.listener import AppendCause, GroupListener, GroupsInLog, Leaving
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.classic_group import ClassicGroupModel, ClassicMember, Protocols
from coordwire.coordinator.model.consumer_group import ConsumerMember
from coordwire.coordinator.timeline.classic_groups import ClassicGroups, Rebalances
from coordwire.coordinator.timeline.modern_groups import ModernGroups
from coordwire.coordinator.topics import TopicsImage
from coordwire.messages import OffsetCommitKey
from coordwire.timeline.events import GroupEvent, OffsetCommitted, TransactionStep

NO_PRODUCER = -1


@dataclass(slots=True)
class _Transaction:
    """One that is not ended. groups: those that it commits offsets of, in their order."""

    transactional_id: str = ""
    groups: dict[str, None] = field(default_factory=dict)


class ShardCommits:
    """Of all groups."""

    def __init__(self, report: Callable[[GroupEvent], None], rebalances: Rebalances) -> None:
        self._report = report
        self._rebalances = rebalances
        self._transactions: dict[int, _Transaction] = {}

    def load(self, key: OffsetCommitKey, producer_id: int) -> None:
        """A record from before."""
        if producer_id != NO_PRODUCER:
            self._transactions.setdefault(producer_id, _Transaction()).groups[key.group] = None

    def load_end(self, producer_id: int) -> None:
        """A marker from before."""
        self._transactions.pop(producer_id, None)

    def committed(
        self, now: int, key: OffsetCommitKey, value: Any, because: AppendCause, producer_id: int
    ) -> None:
        """A record is durable."""
        if isinstance(value, bytes):
            return
        removed = value is None
        if producer_id != NO_PRODUCER and not removed:
            known = self._transactions.setdefault(producer_id, _Transaction())
            known.transactional_id = because.transactional_id or known.transactional_id
            known.groups[key.group] = None
        self._report(
            OffsetCommitted(
                **self._rebalances.place(key.group, now), member_id=None if removed else because.member_id,
                client_id=None, generation=-1 if removed else because.generation, topic=key.topic,
                partition=key.partition, offset=-1 if removed else value.offset,
                leader_epoch=-1 if removed else value.leader_epoch,
                metadata=None if removed else value.metadata,
                transactional_id=because.transactional_id, removed=removed,
            )
        )  # fmt: skip

    def ended(self, now: int, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """A marker is durable."""
        known = self._transactions.pop(producer_id, None)
        for group_id in () if known is None else known.groups:
            self._report(
                TransactionStep(
                    **self._rebalances.place(group_id, now), step="commit" if committed else "abort",
                    transactional_id="" if known is None else known.transactional_id,
                    producer_id=producer_id, producer_epoch=producer_epoch, error_code=0,
                )
            )  # fmt: skip


@dataclass(slots=True)
class _QueuedEvent:
    """What is not reported yet. group: the classic group that it is about; tell: makes its events."""

    offset: int
    group: ClassicGroupModel | None
    tell: Callable[[], None]


class ShardTimeline(GroupListener):
    """The timeline of one shard: `Shard(listener=timeline)`, and `events` after each call of it."""

    def __init__(self) -> None:
        self._events: deque[GroupEvent] = deque()
        self.reset(TopicsImage())

    def events(self) -> Iterator[GroupEvent]:
        """What happened to groups and is durable, each change once, in the order of the log.

        An event's number is the end of the log that it rests on. A change that a failed append takes back is
        not reported.
        """
        while self._events:
            yield self._events.popleft()

    def reset(self, topics: TopicsImage) -> None:
        report = self._events.append
        self._topics = topics
        self._number = 0
        self._new_events: list[tuple[ClassicGroupModel | None, Callable[[], None]]] = []
        self._queue: deque[_QueuedEvent] = deque()
        self._unlogged: list[_QueuedEvent] = []
        self._rebalances = Rebalances(report, lambda: self._number)
        self._classic = ClassicGroups(self._note, report, self._rebalances)
        self._modern = ModernGroups(report, self._rebalances, lambda: self._topics)
        self._commits = ShardCommits(report, self._rebalances)

    def _note(self, group: ClassicGroupModel | None, tell: Callable[[], None]) -> None:
        """Something happened in the operation that is running."""
        self._new_events.append((group, tell))

    def appends(self, now: int, append: Append, because: AppendCause) -> None:
        self._note(None, lambda: self._appended(now, append, because))

    def _appended(self, now: int, append: Append, because: AppendCause) -> None:
        if append.marker is not None:
            committed = append.marker.committed
            self._commits.ended(now, append.producer_id, append.producer_epoch, committed=committed)
            return
        for record in append.records:
            if isinstance(record.key, OffsetCommitKey):
                self._commits.committed(now, record.key, record.value, because, append.producer_id)
        self._modern.records(now, append.records, because)

    def topics_changed(self, topics: TopicsImage) -> None:
        self._topics = topics

    def replayed(self, entry: LogEntry) -> None:
        record = entry.record
        if isinstance(record, TransactionMarker):
            self._commits.load_end(entry.producer_id)
        elif isinstance(record.key, OffsetCommitKey):
            self._commits.load(record.key, entry.producer_id)
        else:
            self._modern.load(record)

    def loaded(self, now: int) -> None:
        self._modern.loaded(now)

    def settle(self, written: int, committed: int, groups: GroupsInLog) -> None:
        if self._unlogged and self._unlogged[0].offset < written:
            self._queue.extend(replace(item, offset=written) for item in self._unlogged)
            self._unlogged.clear()
        if self._new_events:
            for group, tell in self._new_events:
                unlogged = group is not None and groups.is_new(group.group_id)
                (self._unlogged if unlogged else self._queue).append(_QueuedEvent(written, group, tell))
            self._new_events.clear()
        while self._queue and self._queue[0].offset <= committed:
            item = self._queue.popleft()
            self._number = item.offset
            item.tell()

    def revert(self, base: int, groups: GroupsInLog) -> None:
        remaining: list[_QueuedEvent] = []
        undone = self._unlogged[::-1]
        self._unlogged.clear()
        while self._queue and self._queue[-1].offset > base:
            undone.append(self._queue.pop())
        for item in undone:
            if item.group is not None and groups.get(item.group.group_id) is item.group:
                item.offset = base
                remaining.append(item)
        self._queue.extend(reversed(remaining))

    def unloaded(self, now: int) -> None:
        self._new_events.clear()
        self._queue.clear()
        self._unlogged.clear()
        self._rebalances.finish(now)

    def member_joined(
        self, now: int, group: ClassicGroupModel, member: ClassicMember, replaces: str | None
    ) -> None:
        self._classic.joined(now, group, member, replaces)

    def member_left(
        self,
        now: int,
        group: ClassicGroupModel,
        member: ClassicMember,
        leaving: Leaving,
        reason: str | None = None,
    ) -> None:
        self._classic.departed(now, group, member, leaving, reason)

    def member_rejoined(self, group: ClassicGroupModel, member: ClassicMember, previous: Protocols) -> None:
        self._classic.rejoined(group, member, previous)

    def rebalance_began(self, now: int, group: ClassicGroupModel) -> None:
        self._classic.began(now, group)

    def generation_formed(self, now: int, group: ClassicGroupModel) -> None:
        self._classic.formed(now, group)

    def generation_assigned(self, now: int, group: ClassicGroupModel) -> None:
        self._classic.steady(now, group)

    def became_classic(
        self,
        now: int,
        group: ClassicGroupModel,
        member_id: str | None,
        leavers: Sequence[ConsumerMember] = (),
        leaving: Leaving = "left",
    ) -> None:
        self._classic.converted(now, group, member_id, leavers, leaving)
