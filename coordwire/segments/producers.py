"""The producers of a partition and its open transactions, batch by batch, as a broker knows them.

Strategy: what Kafka's `ProducerStateManager` does while it reads a log again: a data batch has what its
producer wrote last and may begin a transaction, a marker ends it; an aborted one becomes an entry of the
transaction index. Rules: nothing is validated (what is in the log was accepted once), and producers don't
expire, which depends on the broker's clock. The first open transaction is found at once: an `OrderedDict`
keeps no trace of those that ended, which a dict's iteration would step over.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from coordwire.errors import counted
from coordwire.messages.control_records import EndTxnMarker
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import ControlType, RecordBatch
from coordwire.segments.indexes import AbortedTransaction

NONE = -1


class Producers:
    """The producers as of some offset of a partition; `add` moves on by a batch.

    entries: of a snapshot, as of where the first batch begins. Copied.

        >>> from coordwire.records import Record, batches, encode_batch
        >>> from coordwire.segments import Producers
        >>> producers = Producers()
        >>> for batch in batches(encode_batch([Record()], producer_id=6, producer_epoch=0, base_sequence=0)):
        ...     _ = producers.add(batch)
        >>> producers
        <Producers: 1 producer, 0 open transactions>
    """

    def __init__(self, entries: Iterable[ProducerEntry] = ()) -> None:
        self._known: dict[int, ProducerEntry] = {}
        self._open: OrderedDict[int, int] = OrderedDict()  # by first offset, which rises
        for entry in sorted(entries, key=lambda entry: entry.current_txn_first_offset):
            before = self._known.get(entry.producer_id)
            if before is not None:  # one producer has one transaction
                self._open.pop(before.current_txn_first_offset, None)
            known = self._known[entry.producer_id] = _fresh(entry.producer_id)
            known.epoch, known.coordinator_epoch = entry.epoch, entry.coordinator_epoch
            known.timestamp = entry.timestamp
            if entry.last_offset >= 0:
                known.last_sequence, known.last_offset = entry.last_sequence, entry.last_offset
                known.offset_delta = entry.offset_delta
            if entry.current_txn_first_offset >= 0:
                known.current_txn_first_offset = entry.current_txn_first_offset
                self._open[entry.current_txn_first_offset] = entry.producer_id

    def __repr__(self) -> str:
        transactions = counted(len(self._open), "open transaction")
        return f"<Producers: {counted(len(self._known), 'producer')}, {transactions}>"

    def add(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Add the next batch; return the transaction that it aborts, if any. Raises as iterating it does."""
        producer_id = batch.producer_id
        if producer_id <= NONE:
            return None
        if batch.is_control:
            return self._end(batch, producer_id)
        entry = self._at_epoch(producer_id, batch.producer_epoch)
        entry.last_sequence, entry.last_offset = batch.last_sequence, batch.last_offset
        entry.offset_delta = batch.last_offset - batch.base_offset
        entry.timestamp = batch.max_timestamp
        if batch.transactional and entry.current_txn_first_offset == NONE:
            entry.current_txn_first_offset = batch.base_offset
            self._open[batch.base_offset] = producer_id
        return None

    def _end(self, batch: RecordBatch, producer_id: int) -> AbortedTransaction | None:
        marker = next(batch.control_records(), None)
        if marker is None or not isinstance(marker.value, EndTxnMarker):
            return None  # compaction has taken the whole transaction
        entry = self._at_epoch(producer_id, batch.producer_epoch)
        entry.coordinator_epoch, entry.timestamp = marker.value.coordinator_epoch, marker.timestamp
        first, entry.current_txn_first_offset = entry.current_txn_first_offset, NONE
        if first == NONE:
            return None
        last = batch.base_offset
        stable = next((start for start, owner in self._open.items() if owner != producer_id), last + 1)
        self._open.pop(first, None)
        if marker.type != ControlType.ABORT:
            return None
        return AbortedTransaction(producer_id, first, last, stable)

    @property
    def first_open(self) -> int | None:
        """The first offset of the oldest transaction that is open; None if none is."""
        return next(iter(self._open), None)

    def entry(self, producer_id: int) -> ProducerEntry | None:
        """A producer's entry, not to be changed."""
        return self._known.get(producer_id)

    def _at_epoch(self, producer_id: int, epoch: int) -> ProducerEntry:
        """A producer's entry, without what it wrote in another epoch."""
        entry = self._known.get(producer_id)
        if entry is None:
            entry = self._known[producer_id] = _fresh(producer_id)
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.last_sequence, entry.last_offset, entry.offset_delta = NONE, NONE, 0
        return entry

    def entries(self) -> list[ProducerEntry]:
        """All producers, in the order in which Kafka writes them: that of Java's `HashMap`."""
        size = 16
        while len(self._known) > size * 3 // 4:
            size *= 2
        return sorted(self._known.values(), key=lambda entry: _hash(entry.producer_id) & size - 1)


def _fresh(producer_id: int) -> ProducerEntry:
    return ProducerEntry(
        producer_id=producer_id,
        epoch=NONE,
        last_sequence=NONE,
        last_offset=NONE,
        timestamp=NONE,
        coordinator_epoch=NONE,
        current_txn_first_offset=NONE,
    )


def _hash(number: int) -> int:
    """The hash that Java's `HashMap` computes from a Long."""
    code = (number ^ number >> 32) & 0xFFFFFFFF
    return code ^ code >> 16
