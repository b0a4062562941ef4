"""The result of compaction: the last record of each key, by the rules of Kafka's cleaner.

Strategy: two passes over the batches up to a limit; the first finds the last offset of each key, the second
writes each batch again with the records that stay, at their offsets. Rules: records of aborted transactions
go; a record without a key goes. A tombstone stays until the batch's delete horizon, which the first
compaction after it sets, is over; so does the marker of a transaction that has no other batch left. The last
batch of a producer stays without its records, for its sequence, and its last marker where it has written
nothing else, for its epoch (`Cleaner.cleanInto`). A batch that loses nothing keeps its bytes. So does a batch
whose codec's library is not installed: its keys are not known, so the tombstones after it stay too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from coordwire._dataclasses import dataclass
from coordwire.errors import CodecUnavailable
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import Record, RecordBatch, encode_batch
from coordwire.segments import AbortedTransaction


@dataclass(slots=True)
class _Transactions:
    """Which transactions are aborted where the scan is. waiting: those that begin later, the next one last.
    open: those that have records that stay."""

    waiting: list[AbortedTransaction]
    aborted: set[int] = field(default_factory=set)
    open: set[int] = field(default_factory=set)

    def reach(self, batch: RecordBatch) -> None:
        while self.waiting and self.waiting[-1].first_offset <= batch.last_offset:
            self.aborted.add(self.waiting.pop().producer_id)

    def drops(self, batch: RecordBatch) -> bool:
        return batch.transactional and batch.producer_id in self.aborted

    def end(self, batch: RecordBatch) -> bool:
        """A marker is reached; whether its transaction has other records."""
        self.aborted.discard(batch.producer_id)
        stays = batch.producer_id in self.open
        self.open.discard(batch.producer_id)
        return stays


def _scan(
    batches: Iterable[RecordBatch], aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[RecordBatch, _Transactions]]:
    state = _Transactions(sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True))
    for batch in batches:
        state.reach(batch)
        yield batch, state


def compacted(
    batches: Sequence[RecordBatch],
    aborted: Sequence[AbortedTransaction],
    producer: Callable[[int], ProducerEntry | None],
    *,
    now: int,
    tombstones_ms: int,
) -> list[bytes | None]:
    """Each batch's bytes as they are now; None for one of which nothing is left.

    aborted: the aborted transactions among them. producer: what the whole log says of one. tombstones_ms: how
    long a tombstone stays.
    """
    last: dict[bytes, int] = {}
    unread = len(batches)
    """The first batch that cannot be read."""
    for number, (batch, state) in enumerate(_scan(batches, aborted)):
        if batch.is_control:
            state.end(batch)
        elif not state.drops(batch):
            records = _records(batch)
            if records is None:
                unread = min(unread, number)
            else:
                last |= {bytes(record.key): record.offset for record in records if record.key is not None}
    remaining: list[bytes | None] = []
    for number, (batch, state) in enumerate(_scan(batches, aborted)):
        over = batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= now
        if batch.is_control:
            goes = not state.end(batch)
            if not batch.count or (goes and over):
                remaining.append(_emptied(batch, producer(batch.producer_id)))
            else:
                remaining.append(_written(batch, list(batch), goes, now + tombstones_ms))
            continue
        records = [] if state.drops(batch) else _records(batch)
        if records is None:
            remaining.append(bytes(batch.raw))
            if batch.transactional:
                state.open.add(batch.producer_id)
            continue
        remaining_records = [
            element for element in records if _stays(element, last, over and number < unread)
        ]
        if not remaining_records:
            remaining.append(_emptied(batch, producer(batch.producer_id)))
            if batch.transactional and remaining[-1] is not None:
                state.open.add(batch.producer_id)  # without its marker a restart would find it open
            continue
        if batch.transactional:
            state.open.add(batch.producer_id)
        removed = any(element.value is None for element in remaining_records)
        if len(remaining_records) == len(records) and not removed:
            remaining.append(bytes(batch.raw))
        else:
            remaining.append(_written(batch, remaining_records, removed, now + tombstones_ms))
    return remaining


def _records(batch: RecordBatch) -> list[Record] | None:
    """Its records; None without the codec's library."""
    try:
        return list(batch)
    except CodecUnavailable:
        return None


def _stays(record: Record, last: dict[bytes, int], over: bool) -> bool:
    if record.key is None or last[bytes(record.key)] != record.offset:
        return False
    return record.value is not None or not over


def _emptied(batch: RecordBatch, entry: ProducerEntry | None) -> bytes | None:
    """A batch without its records, if it is what the log has last of its producer; else nothing."""
    if entry is None:
        return None
    has_data = entry.last_offset >= 0
    if has_data and batch.last_offset != entry.last_offset:
        return None
    if not has_data and not (batch.is_control and batch.producer_epoch == entry.epoch):
        return None
    return bytes(batch.raw) if not batch.count else _encoded(batch, (), None)


def _written(batch: RecordBatch, records: list[Record], removed: bool, horizon: int) -> bytes:
    """A batch with these of its records. removed: they are there to say that others are gone."""
    known = batch.delete_horizon_ms
    if len(records) == batch.count and (known is not None or not removed):
        return bytes(batch.raw)
    return _encoded(batch, records, known if known is not None or not removed else horizon)


def _encoded(batch: RecordBatch, records: Sequence[Record], horizon: int | None) -> bytes:
    """A batch with these of its records, and with the delete horizon if there is one."""
    times: dict[str, Any] = {}
    if not records or batch.timestamp_type != "CreateTime":
        times = {"timestamp_type": batch.timestamp_type, "max_timestamp": batch.max_timestamp}
    return encode_batch(
        records,
        base_offset=batch.base_offset,
        last_offset=batch.last_offset,
        codec=batch.codec if records else "none",
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        transactional=batch.transactional,
        control=batch.is_control,
        partition_leader_epoch=batch.partition_leader_epoch,
        delete_horizon_ms=horizon,
        **times,
    )
