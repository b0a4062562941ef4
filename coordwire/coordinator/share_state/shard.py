"""A shard of a share coordinator: one partition of `__share_group_state`, without socket, clock or
randomness.

    ticket = shard.handle(request, now=...)       the five requests of a share coordinator
    for effect in shard.effects(): ...            Append: write it, then `appended` or `failed`; Answer: send
    it shard.snapshot_cold_partitions(now)           every five minutes; `redundant_before` says what may be
    deleted

Strategy: a request is one operation for each partition that it names; its answer follows when all of them are
durable. Most writes are records of what changed; after `updates_per_snapshot` of them comes the whole state.
Rules: nothing that a client sends raises. One call at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.effects import Answer, Append
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.refusal import OperationRefused, error_text, translated
from coordwire.coordinator.releases import RELEASES, full_release, rules_of
from coordwire.coordinator.share_state.model import (
    PartitionKey,
    PersistedState,
    Tracked,
    snapshot_record,
    state_of_snapshot,
    state_of_update,
    tombstone,
    update_record,
)
from coordwire.coordinator.share_state.requests import OPERATIONS, StateOperation
from coordwire.coordinator.snapshots import Snapshots, SnapshotValue, TimelineHashMap
from coordwire.coordinator.timers import Timers
from coordwire.coordinator.topics import TopicsImage
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed
from coordwire.logs import LogRecord
from coordwire.messages import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareStateConfig:
    """The settings of a share coordinator, with Apache Kafka's defaults.

    updates_per_snapshot: records of changes of a partition before its whole state is written. cold_ms: the
    time after which the state of a partition without writes is written again. write_timeout_ms: an operation
    whose records are not durable by then is answered with an error. release: of Apache Kafka, whose texts of
    errors answers have, as `CoordinatorConfig.release`.
    """

    updates_per_snapshot: int = 500
    cold_ms: int = 300_000
    write_timeout_ms: int = 5_000
    release: str = RELEASES[-1]

    def __post_init__(self) -> None:
        object.__setattr__(self, "release", full_release(self.release))


class _Call:
    """A request whose partitions are not all done. results: by topic and partition."""

    __slots__ = ("operation", "remaining", "results", "ticket")

    def __init__(self, ticket: int, operation: StateOperation) -> None:
        self.ticket = ticket
        self.operation = operation
        self.results: HashMap[UUID, HashMap[int, Any]] = HashMap()
        self.remaining = 1

    def response(self) -> Message:
        """The response, whose topics and partitions are in the order of Apache Kafka's hash tables."""
        result = self.operation.result
        return self.operation.response(
            results=[
                result(topic_id=topic_id, partitions=partitions.values())
                for topic_id, partitions in self.results.items()
            ]
        )


Done = Callable[[int], None]
"""Called once with 0 when an operation is durable, or with an error code."""


class _Waiting:
    """An operation that waits for the log."""

    __slots__ = ("answered_parts", "is_complete", "offset", "timer")

    def __init__(self, offset: int, timer: str, answered_parts: Done) -> None:
        self.offset = offset
        self.timer = timer
        self.answered_parts = answered_parts
        self.is_complete = False


class ShareStateShard:
    """The share coordinator of one partition; it has none until `load`.

    >>> from uuid import UUID
    >>> from coordwire.coordinator import TopicImage, TopicsImage
    >>> from coordwire.messages import InitializeShareGroupStateRequest
    >>> from coordwire.messages.initialize_share_group_state import InitializeStateData, PartitionData
    >>> from coordwire.coordinator.share_state import ShareStateShard
    >>> shard = ShareStateShard()
    >>> shard.load([])
    >>> shard.set_topics(TopicsImage([TopicImage(UUID(int=7), "orders", 1)]))
    >>> partitions = [PartitionData(partition=0, state_epoch=1, start_offset=5)]
    >>> topics = [InitializeStateData(topic_id=UUID(int=7), partitions=partitions)]
    >>> ticket = shard.handle(InitializeShareGroupStateRequest(group_id="g", topics=topics))
    >>> (append,) = shard.effects()  # to be written to the log
    >>> shard.appended(append.number)
    >>> (answer,) = shard.effects()
    >>> answer.response.results[0].partitions[0].error_code, shard
    (0, <ShareStateShard: 1 state>)
    """

    def __init__(self, *, now: int = 0, config: ShareStateConfig | None = None) -> None:
        self.config = config or ShareStateConfig()
        self._rules = rules_of(self.config.release)
        self.now = now
        self._topics = TopicsImage()
        self._effects: deque[Append | Answer] = deque()
        self._tickets = self._appends = self._timers_set = 0
        self._error = int(ErrorCode.NOT_COORDINATOR)
        self._begin(0)

    def _begin(self, end_offset: int) -> None:
        """Begin without state."""
        self._snapshots = Snapshots()
        self._states: TimelineHashMap[PartitionKey, Tracked] = TimelineHashMap(self._snapshots)
        self._snapshot_offsets: TimelineHashMap[PartitionKey, int] = TimelineHashMap(self._snapshots)
        self._last_snapshot = SnapshotValue(self._snapshots, -1)
        self._timers: Timers[None] = Timers()
        self._pending: deque[Append] = deque()
        self._waiting: deque[_Waiting] = deque()
        self._written = end_offset
        self._snapshots.begin(end_offset)

    def __repr__(self) -> str:
        return f"<ShareStateShard: {len(self._states)} state{'s' * (len(self._states) != 1)}>"

    @property
    def states(self) -> dict[PartitionKey, PersistedState]:
        """The states as they are now, durable or not: to look at."""
        return {key: tracked.state for key, tracked in self._states.items()}

    @property
    def topics(self) -> TopicsImage:
        return self._topics

    def find(self, key: PartitionKey) -> Tracked | None:
        return self._states.get(key)

    # --- requests ---

    def effects(self) -> Iterator[Append | Answer]:
        """The effects, each once, in order."""
        while self._effects:
            yield self._effects.popleft()

    def handle(self, request: Message, *, now: int | None = None) -> int:
        """Take a request, and return the ticket that its `Answer` has. Raises `TypeError` for another one."""
        if now is not None:
            self.advance(now)
        operation = OPERATIONS.get(type(request))
        if operation is None:
            raise TypeError(f"expected a request to a share coordinator, got {type(request).__name__}")
        ticket = self._tickets = self._tickets + 1
        call = _Call(ticket, operation)
        group_id: str = getattr(request, "group_id", "")
        topics: list[Any] = getattr(request, "topics", [])
        if group_id and (operation.allows_empty or all(topic.partitions for topic in topics)):
            for topic in topics:
                for partition in topic.partitions:
                    self._handle_partition(call, group_id, topic.topic_id, partition)
        self._finish(call)
        return ticket

    def _handle_partition(self, call: _Call, group_id: str, topic_id: UUID, data: Any) -> None:
        operation, index = call.operation, data.partition
        places = call.results.find_or_add(topic_id, HashMap)
        places[index] = None
        call.remaining += 1
        key = PartitionKey(group_id, topic_id, index)

        def refuse(error: int, message: str | None) -> None:
            places[index] = operation.partition_result(
                partition=index, error_code=int(error), error_message=message
            )
            self._finish(call)

        if self._error:
            refuse(self._error, operation.failure(self._error, self._rules))
            return
        try:
            record, result = operation.run(self, key, data)
        except OperationRefused as refusal:
            text = error_text(refusal.code, self._rules) or "" if refusal.message is None else refusal.message
            record, result = (
                None,
                operation.partition_result(partition=index, error_code=int(refusal.code), error_message=text),
            )

        def answered_parts(error: int) -> None:
            if error:
                refuse(translated(error), operation.failure(error, self._rules))
                return
            places[index] = result
            self._finish(call)

        self._write([] if record is None else [record], answered_parts)

    def _finish(self, call: _Call) -> None:
        call.remaining -= 1
        if not call.remaining:
            self._effects.append(Answer(call.ticket, call.response()))

    # --- what operations write ---

    def write_record(self, key: PartitionKey, change: PersistedState, *, leads: bool) -> LogRecord:
        """The record of a change of a known partition: an update, or the whole state where that is due.

        leads: whether the change's leader epoch counts.
        """
        tracked = self._states[key]
        state = tracked.state
        leader_epoch = change.leader_epoch if leads and change.leader_epoch != -1 else state.leader_epoch
        if tracked.updates < self.config.updates_per_snapshot:
            update = replace(change, snapshot_epoch=state.snapshot_epoch, leader_epoch=leader_epoch)
            return update_record(key, update)
        snapshot = state.changed(change)
        return snapshot_record(
            key,
            replace(
                snapshot,
                snapshot_epoch=state.snapshot_epoch + 1,
                leader_epoch=leader_epoch,
                created_at=self.now,
                written_at=self.now,
            ),
        )

    # --- the log ---

    def _write(self, records: list[LogRecord], answered_parts: Done) -> None:
        """Append records, and wait until they are durable; without any, wait for earlier ones."""
        if records:
            for offset, record in enumerate(records, self._written):
                self._replay(record, offset)
            self._appends += 1
            append = Append(number=self._appends, base_offset=self._written, records=tuple(records))
            self._written = append.end_offset
            self._snapshots.begin(self._written)
            self._pending.append(append)
            self._effects.append(append)
        elif not self._pending:
            answered_parts(0)
            return
        self._timers_set += 1
        waiting = _Waiting(self._written, f"write-{self._timers_set}", answered_parts)
        self._waiting.append(waiting)
        due = self.now + self.config.write_timeout_ms
        self._timers.set(waiting.timer, due, lambda: self._end(waiting, int(ErrorCode.REQUEST_TIMED_OUT)))

    def _end(self, waiting: _Waiting, error: int) -> None:
        if not waiting.is_complete:
            waiting.is_complete = True
            self._timers.cancel(waiting.timer)
            waiting.answered_parts(error)

    def appended(self, number: int) -> None:
        """The append with this number is durable, and those before it."""
        committed = None
        while self._pending and self._pending[0].number <= number:
            committed = self._pending.popleft().end_offset
        if committed is None:
            return
        self._snapshots.commit(committed)
        while self._waiting and self._waiting[0].offset <= committed:
            self._end(self._waiting.popleft(), 0)

    def failed(self, number: int, error: int) -> None:
        """The append with this number failed, with a broker's error code: it and later ones are taken
        back."""
        taken_back = []
        while self._pending and self._pending[-1].number >= number:
            taken_back.append(self._pending.pop())
        if not taken_back:
            return
        self._written = taken_back[-1].base_offset
        self._drop(taken_back)
        self._snapshots.revert(self._written)
        failed = []
        while self._waiting and self._waiting[-1].offset > self._written:
            failed.append(self._waiting.pop())
        for waiting in reversed(failed):
            self._end(waiting, error)

    def _drop(self, appends: Iterable[Append]) -> None:
        """Remove these appends from the effects that were not taken yet."""
        numbers = {append.number for append in appends}
        effects = [
            effect
            for effect in self._effects
            if not (isinstance(effect, Append) and effect.number in numbers)
        ]
        self._effects = deque(effects)

    def begin_loading(self) -> None:
        """Refuse requests as a coordinator that loads its partition; `load` ends that."""
        if self._error == ErrorCode.NOT_COORDINATOR:
            self._error = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    def load(self, records: Iterable[tuple[int, LogRecord]], *, end_offset: int = 0) -> None:
        """Take the partition with all records of its log, each with its offset.

        Raises `Malformed` for a record without a value that cannot be without one, and what `records` raises;
        the shard does not have the partition then.
        """
        self._begin(0)
        end = end_offset
        try:
            for offset, record in records:
                self._replay(record, offset)
                end = max(end, offset + 1)
        except Exception:
            self._begin(0)
            self._error = int(ErrorCode.NOT_COORDINATOR)
            raise
        self._written = end
        self._snapshots.begin(end)
        self._snapshots.commit(end)
        self._error = 0

    def unload(self) -> None:
        """Give up the partition: what waits gets NOT_COORDINATOR."""
        self._error = int(ErrorCode.NOT_COORDINATOR)
        waiting, self._waiting = self._waiting, deque()
        self._drop(self._pending)
        for operation in waiting:
            self._end(operation, self._error)
        self._begin(0)

    def _replay(self, record: LogRecord, offset: int) -> None:
        """Replay one record; an unknown type changes nothing."""
        match record.key, record.value:
            case ShareSnapshotKey() as key, (ShareSnapshotValue() | None) as value:
                place = PartitionKey(key.group_id, key.topic_id, key.partition)
                self._replay_snapshot(place, value, offset)
            case ShareUpdateKey() as update_key, ShareUpdateValue() as update:
                place = PartitionKey(update_key.group_id, update_key.topic_id, update_key.partition)
                self._replay_update(place, update)
            case ShareUpdateKey(), None:
                raise Malformed(f"record {offset} (ShareUpdateKey) has no value", offset)

    def _replay_snapshot(self, key: PartitionKey, value: ShareSnapshotValue | None, offset: int) -> None:
        self._last_snapshot.set(offset)
        if value is None:
            self._states.pop(key)
            self._snapshot_offsets.pop(key)
            return
        known = self._states.get(key)
        updates = 0 if known is None else known.updates
        self._states[key] = Tracked(
            state_of_snapshot(value),
            value.leader_epoch if known is None else max(known.leader_epoch, value.leader_epoch),
            value.state_epoch
            if known is None or known.state_epoch is None
            else max(known.state_epoch, value.state_epoch),
            0 if updates >= self.config.updates_per_snapshot else updates,
        )
        self._snapshot_offsets[key] = offset

    def _replay_update(self, key: PartitionKey, update: ShareUpdateValue) -> None:
        known = self._states.get(key)
        if known is None:
            self._states[key] = Tracked(state_of_update(update), update.leader_epoch, None, 1)
            return
        leader_epoch = max(known.leader_epoch, update.leader_epoch)
        self._states[key] = Tracked(
            known.state.changed(state_of_update(update)), leader_epoch, known.state_epoch, known.updates + 1
        )

    # --- inputs ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._timers.next_deadline()

    def advance(self, now: int) -> None:
        """Set the time, and answer what has waited too long for the log."""
        while (deadline := self._timers.next_deadline()) is not None and deadline <= now:
            self.now = max(self.now, deadline)
            self._timers.pop()()
        self.now = max(self.now, now)

    def set_topics(self, topics: TopicsImage) -> None:
        """Set the cluster's topics; the states of deleted ones end."""
        deleted = {topic.id for topic in self._topics.missing_from(topics)}
        self._topics = topics
        if deleted and not self._error:
            keys = HashSet.of(key for key in self._states if key.topic_id in deleted)
            self._write([tombstone(key) for key in keys], _nobody_waits)

    def snapshot_cold_partitions(self) -> None:
        """Write the whole state of each partition whose last snapshot is older than `cold_ms`.

        Nothing is written where every state was written so already, as in Apache Kafka.
        """
        states = self._states.items()
        if self._error or all(entry.state.created_at != entry.state.written_at for _, entry in states):
            return
        records = [
            snapshot_record(
                key,
                replace(
                    entry.state,
                    snapshot_epoch=entry.state.snapshot_epoch + 1,
                    written_at=self.now,
                ),
            )
            for key, entry in states
            if self.now - entry.state.written_at >= self.config.cold_ms
        ]
        self._write(records, _nobody_waits)

    @property
    def redundant_before(self) -> int | None:
        """The offset before which no record of the log is needed; None while all are."""
        offsets = [offset for _, offset in self._snapshot_offsets.items()]
        offset = min(offsets, default=self._last_snapshot.value)
        return offset if offset > 0 else None


def _nobody_waits(error: int) -> None:
    """Ignore the outcome of an operation without a client."""
