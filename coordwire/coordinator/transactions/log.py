"""The log of a shard: the ids of durable records, and the records and markers on their way; and the records
of `__transaction_state`, written from facts as Kafka does, and read back.

Rules: an id's facts change when their record is durable. Markers follow a durable decision, and are written
again until each partition has them; then the record that completes the transaction is written until it is
durable. Tombstones remove ids that were not used for long.
The partitions of an id without a transaction are null. `last_epoch` is not in a record, so that it is
unknown after a restart, as it is in Kafka. A record of a type or version that is unknown changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.refusal import translated
from coordwire.coordinator.timers import Timers
from coordwire.coordinator.transactions.decisions import IDLE
from coordwire.coordinator.transactions.effects import (
    MarkersToWrite,
    TransactionAppend,
    TransactionEffect,
    TransactionOutcome,
)
from coordwire.coordinator.transactions.transactional_id import (
    NO_TIMEOUT,
    Place,
    TransactionalId,
    TransactionFacts,
)
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.errors import CoordwireError, Malformed
from coordwire.logs import LogRecord, decode_log_record
from coordwire.messages import TransactionLogKey, TransactionLogValue
from coordwire.messages.transaction_log import PartitionsSchema
from coordwire.records import RecordBatch

_FINAL = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""Answers to a marker after which this coordinator leaves the transaction alone."""

_EXPIRATION = "expiration"

OnWritten = Callable[[int], None]
"""Called with 0 when a record is durable, else with an error code."""


def ignore(*_: object) -> None:
    """Do nothing: no operation waits."""


class _Write(NamedTuple):
    """A record on its way.

    facts: of the id when it is durable, None for a tombstone. retry: it is written again until it is durable.
    """

    names: tuple[str, ...]
    facts: TransactionFacts | None
    on_written: OnWritten
    retry: bool = False


class TransactionLog:
    """The ids of a partition, with what is on its way to the log, and the timers that go with their facts.

    abort: aborts a transaction that has been open for too long. partition: the number of the shard's.
    """

    def __init__(
        self,
        config: TransactionConfig,
        now: int,
        abort: Callable[[TransactionalId], None],
        partition: int = 0,
    ) -> None:
        self.config = config
        self._partition = partition
        self.now = now
        self.ids: dict[str, TransactionalId] = {}
        self._abort = abort
        self._coordinator_epoch = 0
        self._start = now
        self._effects: deque[TransactionEffect] = deque()
        self._timers: Timers[None] = Timers()
        self._numbers = 0
        self._writes: dict[int, _Write] = {}
        self._markers: dict[int, tuple[TransactionalId, TransactionFacts]] = {}

    def effects(self) -> Iterator[TransactionEffect]:
        """The effects, each once, in order."""
        while self._effects:
            yield self._effects.popleft()

    def answer(self, outcome: TransactionOutcome) -> None:
        self._effects.append(outcome)

    # --- the partition comes and goes ---

    def load(self, ids: dict[str, TransactionalId], coordinator_epoch: int) -> None:
        """Take these ids in place of all others."""
        self.clear()
        self.ids = ids
        self._coordinator_epoch = coordinator_epoch
        for entry in ids.values():
            self._set_timers(entry)

    def clear(self) -> list[OnWritten]:
        """Drop all ids; give the operations that waited for records."""
        callbacks = [write.on_written for write in self._writes.values()]
        self.ids = {}
        self._writes, self._markers, self._timers = {}, {}, Timers()
        return callbacks

    def add(self, name: str, facts: TransactionFacts) -> TransactionalId:
        """Add an id, of which there is no record yet."""
        entry = self.ids[name] = TransactionalId(name, facts)
        self._watch_expiration()
        return entry

    # --- records ---

    def append(
        self,
        entry: TransactionalId,
        facts: TransactionFacts,
        on_written: OnWritten = ignore,
        *,
        retry: bool = False,
    ) -> None:
        """Write a record with the next facts of an id, which it has when the record is durable."""
        record = record_of(entry.name, facts, self.config.version)
        self._submit(_Write((entry.name,), facts, on_written, retry), record)

    def _submit(self, write: _Write, *records: LogRecord) -> None:
        self._numbers += 1
        self._writes[self._numbers] = write
        self._effects.append(
            TransactionAppend(number=self._numbers, records=records, partition=self._partition)
        )

    def appended(self, number: int) -> None:
        """The append with this number is durable."""
        write = self._writes.pop(number, None)
        if write is None:
            return
        if write.facts is None:
            for name in write.names:
                del self.ids[name]
            if not self.ids:
                self._timers.cancel(_EXPIRATION)
        else:
            entry = self.ids[write.names[0]]
            entry.facts, entry.pending = write.facts, None
            self._set_timers(entry)
        write.on_written(0)

    def failed(self, number: int, error: int) -> None:
        """The append with this number failed, with a broker's error code."""
        write = self._writes.pop(number, None)
        if write is None:
            return
        code = translated(error)
        if write.retry and write.facts is not None:
            facts, entry = write.facts, self.ids[write.names[0]]
            self._timers.set(
                ("complete", entry.name),
                self.now + self.config.retry_ms,
                lambda: self.append(entry, facts, write.on_written, retry=True),
            )
            return
        for name in write.names:
            self.ids[name].pending = None
        write.on_written(code)

    # --- markers ---

    def write_markers(self, entry: TransactionalId, completed: TransactionFacts) -> None:
        """Write the markers of a decision, then the record of the completed transaction."""
        facts = entry.facts
        if not facts.places:
            self.append(entry, completed, retry=True)
            return
        self._numbers += 1
        self._markers[self._numbers] = (entry, completed)
        self._effects.append(
            MarkersToWrite(
                number=self._numbers,
                transactional_id=entry.name,
                producer_id=facts.producer_id,
                producer_epoch=facts.producer_epoch,
                committed=facts.status is TransactionStatus.PREPARE_COMMIT,
                coordinator_epoch=self._coordinator_epoch,
                transaction_version=facts.version,
                places=facts.places,
                partition=self._partition,
            )
        )

    def marked(self, number: int, errors: Mapping[Place, int]) -> None:
        """Report the result of the markers with this number for each partition; 0 for a deleted one too.

        A marker that failed is written again, until another coordinator or a newer epoch is in the way.
        """
        markers = self._markers.pop(number, None)
        if markers is None:
            return
        entry, completed = markers
        entry.marked([place for place, error in errors.items() if not error])
        if any(error in _FINAL for error in errors.values()):
            return
        if not entry.facts.places:
            self.append(entry, completed, retry=True)
            return
        self._timers.set(
            ("markers", entry.name),
            self.now + self.config.retry_ms,
            lambda: self.write_markers(entry, completed),
        )

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._timers.next_deadline()

    def advance(self, now: int) -> None:
        """Time has come to this point; timers that are due run."""
        while (due := self._timers.next_deadline()) is not None and due <= now:
            self.now = max(self.now, due)
            self._timers.pop()()
        self.now = max(self.now, now)

    def _tick(self, due: int, interval: int) -> int:
        """The first check at or after a time; checks come at this interval from the start on."""
        return self._start + max(1, -((self._start - due) // interval)) * interval

    def _set_timers(self, entry: TransactionalId) -> None:
        """Set the timers that go with an id's facts."""
        facts = entry.facts
        if facts.status is TransactionStatus.ONGOING and facts.timeout_ms != NO_TIMEOUT:
            self._limit(entry, facts.start_time + facts.timeout_ms + 1)
        else:
            self._timers.cancel(("timeout", entry.name))
        self._watch_expiration()

    def _limit(self, entry: TransactionalId, due: int) -> None:
        """Have a transaction aborted by the first check at or after this time."""
        deadline = self._tick(due, self.config.abort_interval_ms)
        self._timers.set(("timeout", entry.name), deadline, lambda: self._end_overdue(entry))

    def _end_overdue(self, entry: TransactionalId) -> None:
        if entry.facts.status is not TransactionStatus.ONGOING:
            return
        self._limit(entry, self.now + 1)
        if entry.pending is None:
            self._abort(entry)

    def _watch_expiration(self) -> None:
        if not self._timers.is_set(_EXPIRATION):
            interval = self.config.expiration_interval_ms
            self._timers.set(_EXPIRATION, self._tick(self.now + 1, interval), self._expire)

    def _expire(self) -> None:
        """Remove the ids that were not used for long."""
        latest = self.now - self.config.expiration_ms
        unused = [
            entry
            for entry in self.ids.values()
            if entry.pending is None and entry.facts.status in IDLE and entry.facts.update_time <= latest
        ]
        for entry in unused:
            entry.expires()
        if unused:
            names = tuple(entry.name for entry in unused)
            self._submit(_Write(names, None, ignore), *map(tombstone_of, names))
        if self.ids:
            self._watch_expiration()


# --- records ---


def record_of(name: str, facts: TransactionFacts, version: int) -> LogRecord:
    """The record of these facts. version: the level of transaction.version."""
    flexible = version >= 1
    places: list[PartitionsSchema] | None = None
    if facts.status is not TransactionStatus.EMPTY:
        places = []
        for topic, index in sorted(facts.places):
            if not places or places[-1].topic != topic:
                places.append(PartitionsSchema(topic=topic, partition_ids=[]))
            places[-1].partition_ids.append(index)
    value = TransactionLogValue(
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_status=int(facts.status),
        transaction_partitions=places,
        transaction_last_update_timestamp_ms=facts.update_time,
        transaction_start_timestamp_ms=facts.start_time,
    )
    if flexible:
        value.previous_producer_id = facts.previous_producer_id
        value.next_producer_id = facts.next_producer_id
        value.client_transaction_version = facts.version
    return LogRecord(
        log="transaction_state",
        type=0,
        key=TransactionLogKey(transactional_id=name),
        value=value,
        version=1 if flexible else 0,
    )


def tombstone_of(name: str) -> LogRecord:
    """The record that removes an id."""
    return LogRecord(log="transaction_state", type=0, key=TransactionLogKey(transactional_id=name))


def transaction_records(batches: Iterable[RecordBatch]) -> Iterable[LogRecord]:
    """The records of a partition's batches. Raises what reading and decoding them raises."""
    for batch in batches:
        if not batch.is_control:
            for record in batch:
                yield decode_log_record("transaction_state", record.key, record.value, strict=False)


def replayed(records: Iterable[LogRecord]) -> dict[str, TransactionalId]:
    """The ids after these records. Raises `Malformed` for a status that does not exist."""
    ids: dict[str, TransactionalId] = {}
    for number, record in enumerate(records):
        match record.key, record.value:
            case TransactionLogKey(transactional_id=name), None:
                ids.pop(name, None)
            case TransactionLogKey(transactional_id=name), TransactionLogValue() as value:
                status = TransactionStatus(value.transaction_status)
                if not status.known:
                    raise _unknown(number, value.transaction_status)
                ids[name] = TransactionalId(name, _facts(value, status))
    return ids


def _unknown(number: int, status: int) -> CoordwireError:
    return Malformed(f"record {number}: expected the status of a transaction (0 to 7), got {status}", 0)


def _facts(value: TransactionLogValue, status: TransactionStatus) -> TransactionFacts:
    partitions = value.transaction_partitions or []
    return TransactionFacts(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        status=status,
        places=frozenset((topic.topic, index) for topic in partitions for index in topic.partition_ids),
        start_time=value.transaction_start_timestamp_ms,
        update_time=value.transaction_last_update_timestamp_ms,
        version=value.client_transaction_version,
    )
