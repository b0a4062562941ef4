"""The log of one partition: it gives offsets, keeps batches, and finds them by offset, time and epoch.

Strategy: the bytes are a `Storage`'s; where they are, which producers wrote them and which leaders, is in
memory. All replicas share the log, so that a record is committed when it is appended: the high watermark is
the log's end, but while too few replicas are in sync (`hold`). The last stable offset is where the oldest
open transaction begins. Rules: a batch is in the log whole or not at all; whole batches are read. `listeners`
are called after the log has changed, so that parked fetches go on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from coordwire._dataclasses import dataclass
from coordwire.broker.log.leader_epochs import LeaderEpochs
from coordwire.broker.log.log_compaction import compacted
from coordwire.broker.log.producer_states import ProducerStates
from coordwire.broker.log.retention import DeletePolicy, LogSegment, count_deleted
from coordwire.broker.log.storage import BatchPlace, BatchTable, MemoryStorage, Storage
from coordwire.broker.log.validation import AppendRules, RefusedRecords, stamped, validated
from coordwire.enums import ErrorCode
from coordwire.errors import CodecUnavailable, CoordwireError
from coordwire.messages.control_records import EndTxnMarker
from coordwire.records import ControlType, RecordBatch, batches, control_record, encode_batch
from coordwire.segments import AbortedTransaction

_NO_TIMESTAMP = -1


@dataclass(frozen=True, slots=True)
class Appended:
    """The outcome of an append. append_time: the broker's time in it, -1 where it has its producer's.
    duplicate: it was in the log already, and is there once. missing_library: why its records were not
    read."""

    base_offset: int
    last_offset: int
    append_time: int
    duplicate: bool = False
    missing_library: str | None = None


@dataclass(frozen=True, slots=True)
class Read:
    """Whole batches. aborted: which of their transactions were, None where all records are asked for."""

    data: bytes
    aborted: list[AbortedTransaction] | None = None


@dataclass(frozen=True, slots=True)
class FoundTime:
    """A record by its time."""

    timestamp: int
    offset: int
    epoch: int


class LogWatch(Protocol):
    """A listener to the place that keeps a log."""

    def before_append(self) -> None:
        """Raise `OSError` if there is no room."""

    def failed(self) -> None:
        """The place has failed."""


@dataclass(slots=True)
class LoadedLog:
    """The content of a storage when it was opened."""

    table: BatchTable
    epochs: LeaderEpochs
    producers: ProducerStates
    aborted: list[AbortedTransaction]
    start_offset: int
    end_offset: int


class PartitionLog:
    """A log; empty, or with what was loaded.

    epoch: of the leader that appends now. listeners: called with the number of new bytes after each append,
    and with 0 after any other change of what can be read. watch: called before each append, and
    after a failure of the storage.
    """

    def __init__(
        self, *, storage: Storage | None = None, epoch: int = 0, loaded: LoadedLog | None = None
    ) -> None:
        self._storage: Storage = MemoryStorage() if storage is None else storage
        if loaded is None:
            loaded = LoadedLog(BatchTable(), LeaderEpochs(), ProducerStates(), [], 0, 0)
        self._table = loaded.table
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self._aborted = loaded.aborted
        self.start_offset = loaded.start_offset
        self.end_offset = loaded.end_offset
        self.synced_offset = loaded.start_offset
        """Before it, all records are on the disk for certain: Kafka's recovery point."""
        self.epoch = max(epoch, self.epochs.latest)
        self.epochs.assign(self.epoch, self.end_offset)
        self.listeners: dict[object, Callable[[int], None]] = {}
        self.watch: LogWatch | None = None
        self._hold_offset: int | None = None

    # --- how far it goes ---

    @property
    def high_watermark(self) -> int:
        """The offset after the last committed record."""
        return self.end_offset if self._hold_offset is None else min(self._hold_offset, self.end_offset)

    def hold(self, is_held: bool) -> None:
        """Whether the high watermark stays where it is, as too few replicas are in sync."""
        if not is_held and self._hold_offset is not None:
            self._hold_offset = None
            self._changed(0)
        elif is_held and self._hold_offset is None:
            self._hold_offset = self.end_offset

    @property
    def last_stable_offset(self) -> int:
        """Up to here every transaction has ended."""
        first = self.producers.first_unstable_offset
        return self.high_watermark if first is None else min(first, self.high_watermark)

    @property
    def size(self) -> int:
        """The bytes of its batches."""
        return self._table.bytes_between(0, len(self._table))

    # --- appending ---

    def append(self, batch: RecordBatch, rules: AppendRules, now: int) -> Appended:
        """Add a producer's batch, or find that it is there. Raises `RefusedRecords`."""
        valid = validated(batch, rules, now)
        duplicate = self.producers.check(batch)
        if duplicate is not None:
            last = duplicate.base_offset + (duplicate.last_sequence - duplicate.first_sequence & 0x7FFFFFFF)
            return Appended(duplicate.base_offset, last, duplicate.timestamp, duplicate=True)
        base = self.end_offset
        data = stamped(valid.data, base, self.epoch, valid.max_timestamp, rules.append_time)
        self._add(data, now)
        append_time = now if rules.append_time else _NO_TIMESTAMP
        return Appended(base, self.end_offset - 1, append_time, missing_library=valid.missing_library)

    def append_own(self, data: bytes) -> Appended:
        """Add a batch that the broker made itself: a coordinator's records, or a transaction's marker.

        Raises `RefusedRecords` where the storage fails.
        """
        base = self.end_offset
        batch = RecordBatch(memoryview(data))
        self._add(stamped(data, base, self.epoch, batch.max_timestamp, False), batch.max_timestamp)
        return Appended(base, self.end_offset - 1, _NO_TIMESTAMP)

    def end_transaction(
        self,
        producer_id: int,
        epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        version: int,
        now: int,
    ) -> Appended:
        """Add a marker, as the transaction's coordinator decided. Raises `RefusedRecords`."""
        self.producers.check_marker(producer_id, epoch, coordinator_epoch, version)
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        value = EndTxnMarker(coordinator_epoch=coordinator_epoch)
        return self.append_own(
            encode_batch(
                [control_record(kind, value, timestamp=now)],
                base_offset=0,
                producer_id=producer_id,
                producer_epoch=epoch,
                transactional=True,
                control=True,
            )
        )

    def _add(self, data: bytes, now: int) -> None:
        batch = RecordBatch(memoryview(data))
        place = BatchPlace(
            batch.base_offset, batch.last_offset, len(data), batch.max_timestamp, batch.partition_leader_epoch
        )
        try:
            if self.watch is not None:
                self.watch.before_append()
            self._storage.append(data, place, self.producers.entries, now)
        except OSError as error:
            self.storage_failed()
            raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        self._table.add(place)
        self.end_offset = place.last_offset + 1
        aborted = self.producers.add(batch)
        if aborted is not None:
            self._aborted.append(aborted)
            self._storage.aborted(aborted)
        self._changed(len(data))

    def sync(self) -> None:
        """Force what was appended to the disk, if the log is on one. Raises `RefusedRecords`."""
        try:
            self._storage.sync()
        except OSError as error:
            self.storage_failed()
            raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        self.synced_offset = self.end_offset

    def storage_failed(self) -> None:
        """What keeps its bytes has raised `OSError`."""
        if self.watch is not None:
            self.watch.failed()

    def _changed(self, size: int) -> None:
        for listener in list(self.listeners.values()):
            listener(size)

    def lead(self, epoch: int) -> None:
        """A leader with a newer epoch appends from now on. Raises `OSError`."""
        if self.epochs.assign(epoch, self.end_offset):
            self.epoch = epoch
            self._storage.epochs_changed(self.epochs.encoded())
            self._changed(0)

    def relocate(self, folder: Path) -> None:
        """Its files are in another folder from now on. Raises `OSError`."""
        self._storage.relocate(folder)

    # --- reading ---

    def limit(self, committed: bool) -> int:
        """How far a reader may read. committed: only transactions that were committed."""
        return self.last_stable_offset if committed else self.high_watermark

    def bytes_after(self, offset: int, limit: int) -> int:
        """How many bytes of whole batches there are from an offset up to a limit."""
        first, end = self._table.reaching(offset), self._table.beginning(limit)
        return self._table.bytes_between(first, end) if first < end else 0

    def read(self, offset: int, most: int, *, committed: bool = False, at_least_one: bool = True) -> Read:
        """Whole batches from the one that reaches an offset on, up to so many bytes.

        at_least_one: give the first batch whatever its size. Raises `RefusedRecords` for an offset outside
        the log.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise RefusedRecords(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within [{self.start_offset}, {self.end_offset}]",
            )
        limit = self.limit(committed)
        first, last = self._table.reaching(offset), self._table.beginning(limit)
        end = self._table.within(first, last, most) if first < last else first
        if end == first and first < last and at_least_one:
            end = first + 1
        data = self._storage.read(first, end) if first < end else b""
        if not committed:
            return Read(data)
        upper = self._table[end - 1].last_offset + 1 if first < end else offset
        return Read(data, self._aborted_within(offset, upper))

    def _aborted_within(self, offset: int, upper: int) -> list[AbortedTransaction]:
        """The aborted transactions that have records between two offsets."""
        first = bisect_left(self._aborted, offset, key=lambda transaction: transaction.last_offset)
        transactions = []
        for number in range(first, len(self._aborted)):
            transaction = self._aborted[number]
            if transaction.first_offset < upper:
                transactions.append(transaction)
            if transaction.last_stable_offset >= upper:
                break  # those that follow begin after that
        return transactions

    def batches(self) -> Iterator[RecordBatch]:
        """All batches, one by one."""
        for number in range(len(self._table)):
            yield from batches(self._storage.read(number, number + 1), check_records=False)

    # --- looking up ---

    def find_time(self, timestamp: int, limit: int) -> FoundTime | None:
        """The first record at or after a time, and before an offset."""
        number = self._table.reaching_time(timestamp)
        if number >= len(self._table):
            return None
        place = self._table[number]
        for later in range(number, len(self._table)):
            place = self._table[later]
            if place.max_timestamp < timestamp:
                continue
            try:
                position = self._time_within(later, timestamp)
            except CoordwireError as error:  # what is on disk has changed
                raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
            if position is not None:
                return position if position.offset < limit else None
        return None

    def _time_within(self, number: int, timestamp: int) -> FoundTime | None:
        """The first record of a batch at or after a time. Raises `CoordwireError`.

        Without the codec's library it is the batch's first record, so that no later one is passed over.
        """
        epoch = self._table[number].epoch
        for batch in batches(self._storage.read(number, number + 1)):
            try:
                for record in batch:
                    if record.timestamp >= timestamp and record.offset >= self.start_offset:
                        return FoundTime(record.timestamp, record.offset, epoch)
            except CodecUnavailable:
                first, latest = batch.base_timestamp, batch.max_timestamp
                stamp = first if timestamp <= first <= latest else latest
                return FoundTime(stamp, max(batch.base_offset, self.start_offset), epoch)
        return None

    def latest_time(self) -> FoundTime | None:
        """The first record with the largest timestamp."""
        number = self._table.latest()
        if number is None or self._table[number].max_timestamp == _NO_TIMESTAMP:
            return None
        return self.find_time(self._table[number].max_timestamp, self.end_offset)

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest leader epoch up to this one, and the offset where it ends; (-1, -1) for none."""
        return self.epochs.end_of(epoch, self.end_offset)

    # --- the start, and the end ---

    def delete_before(self, offset: int) -> int:
        """Let the log begin at an offset, -1 for the high watermark; where it begins then.

        Raises `RefusedRecords` for an offset after the high watermark.
        """
        start = self.high_watermark if offset == -1 else offset
        if not 0 <= start <= self.high_watermark:
            raise RefusedRecords(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not within [0, {self.high_watermark}]",
            )
        if start > self.start_offset:
            self.start_offset = start
            count = self._table.reaching(start)
            self._table.drop_first(count)
            self._storage.drop_first(count, start)
            self.epochs.truncate_start(start)
            self._aborted = [transaction for transaction in self._aborted if transaction.last_offset >= start]
            try:
                self._storage.epochs_changed(self.epochs.encoded())
            except OSError as error:
                raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
            self._changed(0)
        return self.start_offset

    def segments(self) -> list[LogSegment]:
        """Its segments, in their order."""
        return self._storage.segments()

    def remove_old(self, now: int, policies: Iterable[DeletePolicy]) -> bool:
        """Remove the oldest segments, as these policies say, up to the last stable offset; gives whether the
        log begins at another offset then. The active segment is closed first if it is to go. Raises
        `RefusedRecords`."""
        segments = self.segments()
        count = count_deleted(
            segments, policies, now=now, end=self.end_offset, stable=self.last_stable_offset
        )
        if not count:
            return False
        following = self.end_offset if count == len(segments) else segments[count].base_offset
        if count == len(segments):
            try:
                self._storage.roll(following, self.producers.entries())
            except OSError as error:
                self.storage_failed()
                raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        if following > self.start_offset:
            self.delete_before(following)
            return True
        self._storage.drop_first(0, self.start_offset)
        return False

    @property
    def can_compact(self) -> bool:
        """Whether `compact` can be done where its bytes are."""
        return self._storage.can_rewrite

    def compact(self, now: int, *, tombstones_ms: int, lag_ms: int = 0) -> None:
        """Leave the last record of each key, as `log_compaction` says; the last batch stays as it is.

        lag_ms: records that are younger stay, and what follows them. Raises `ValueError` on disk, and
        `RefusedRecords` for batches that cannot be read.
        """
        end = min(self._table.beginning(self.last_stable_offset), len(self._table) - 1)
        for number in range(end):
            if self._table[number].max_timestamp > now - lag_ms:
                end = number
                break
        if end <= 0:
            return
        try:
            old = [
                element
                for number in range(end)
                for element in batches(self._storage.read(number, number + 1))
            ]
            aborted = self._aborted_within(0, old[-1].last_offset + 1)
            remaining = compacted(
                old, aborted, self.producers.followed.entry, now=now, tombstones_ms=tombstones_ms
            )
        except CoordwireError as error:  # damaged since they were checked
            raise RefusedRecords(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
        self._storage.rewrite(0, remaining)
        table = BatchTable()
        emptied: set[int] = set()
        """The last offsets of batches without records, whether they are there or not."""
        for number, data in enumerate(remaining):
            place = self._table[number]
            batch = None if data is None else RecordBatch(memoryview(data))
            if batch is not None:
                table.add(replace(place, size=batch.size, max_timestamp=batch.max_timestamp))
            if batch is None or not batch.count:
                emptied.add(place.last_offset)
        for number in range(end, len(self._table)):
            table.add(self._table[number])
        self._aborted = [
            transaction for transaction in self._aborted if transaction.last_offset not in emptied
        ]
        self._table = table
        self._changed(0)

    def truncate(self, offset: int) -> None:
        """Let the log end before the batch that has an offset; nothing happens if none has.

        What is known of producers is what the batches say that are left. Raises `OSError`.
        """
        first = self._table.reaching(offset)
        count = len(self._table) - first
        if not count:
            return
        end = self._table[first].base_offset
        self._storage.drop_last(count, end)
        self._table.drop_last(count)
        self.end_offset = end
        self.synced_offset = min(self.synced_offset, end)
        self.start_offset = min(self.start_offset, end)
        self.epochs.truncate_end(end)
        self._aborted = [transaction for transaction in self._aborted if transaction.last_offset < end]
        self.producers = ProducerStates()
        for batch in self.batches():
            self.producers.add(batch)
        self._changed(0)

    def close(self) -> None:
        """Write what a restart needs; `synced_offset` says how much of it is on the disk for certain."""
        with suppress(RefusedRecords):
            self.sync()
        self._storage.close(self.end_offset, self.producers.entries())

    def let_go(self) -> None:
        """Close it as if the process had ended."""
        self._storage.let_go()

    def delete(self) -> None:
        """The partition was deleted."""
        self._storage.delete()
        self._changed(0)
