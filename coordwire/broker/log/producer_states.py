"""Idempotent producers of a partition: sequences in order, batches sent twice, epochs that were replaced.

Strategy: `coordwire.segments.Producers` follows the log, as a snapshot of it does; beside it the last five
batches of each producer, by which a batch that comes again is known (KIP-98), as `ProducerStateManager` has
them. Rules: `check` changes nothing; `add` is called when the batch is in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from coordwire._dataclasses import dataclass
from coordwire.broker.log.validation import RefusedRecords
from coordwire.enums import ErrorCode
from coordwire.messages.producer_snapshot import ProducerEntry
from coordwire.records import RecordBatch
from coordwire.segments import AbortedTransaction, Producers

KEPT = 5
"""As many batches of a producer are remembered as it may have in flight."""

_HIGHEST = 0x7FFFFFFF
_HIGHEST_EPOCH = 0x7FFF
_EPOCH_A_TRANSACTION = 2
"""The version of transactions in which each has an epoch of its own (KIP-890)."""

_NONE = -1


@dataclass(frozen=True, slots=True)
class KeptBatch:
    """A batch that is in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[KeptBatch] = deque(maxlen=KEPT)


class ProducerStates:
    """The producers of one log. followed: what the log says, for snapshots and transactions."""

    def __init__(self, followed: Producers | None = None) -> None:
        self.followed = followed or Producers()
        self._known: dict[int, _Producer] = {}
        for entry in self.followed.entries():
            known = self._known[entry.producer_id] = _Producer(entry.epoch)
            if entry.last_offset >= 0:
                first = entry.last_sequence - entry.offset_delta & _HIGHEST
                known.batches.append(
                    KeptBatch(
                        first, entry.last_sequence, entry.last_offset - entry.offset_delta, entry.timestamp
                    )
                )

    def check(self, batch: RecordBatch) -> KeptBatch | None:
        """The batch of the log that this one repeats; None if it is to be appended.

        Raises `RefusedRecords` for a replaced epoch, and for a sequence that is not the next one.
        """
        if batch.producer_id <= _NONE:
            return None
        known = self._known.get(batch.producer_id)
        if known is None:
            return None  # a producer whose past is not known may go on anywhere
        epoch, first, last = batch.producer_epoch, batch.base_sequence, batch.last_sequence
        producer = f"producer {batch.producer_id}"
        if epoch < known.epoch:
            raise RefusedRecords(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"{producer} has epoch {known.epoch}, and the batch has epoch {epoch}",
            )
        if epoch > known.epoch:
            if first != 0:
                raise RefusedRecords(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"{producer} begins epoch {epoch} with sequence {first} instead of 0",
                )
            return None
        entry = self.followed.entry(batch.producer_id)
        if entry is not None and entry.current_txn_first_offset >= 0 and not batch.transactional:
            raise RefusedRecords(
                ErrorCode.INVALID_TXN_STATE,
                f"{producer} has an open transaction, and the batch is not part of it",
            )
        for sequence in known.batches:
            if sequence.first_sequence == first and sequence.last_sequence == last:
                return sequence
        before = known.batches[-1].last_sequence if known.batches else _NONE
        following = 0 if before in (_NONE, _HIGHEST) else before + 1
        if first != following:
            raise RefusedRecords(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{producer} sends sequence {first} after {before}",
            )
        return None

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int, version: int) -> None:
        """Whether a transaction's coordinator may end it. version: of transactions.

        Raises `RefusedRecords` for an epoch of the producer or the coordinator that was replaced. Where each
        transaction has an epoch of its own, the marker has the next one; one that is there already may come
        again.
        """
        entry = self.followed.entry(producer_id)
        if entry is None:
            return
        replaced = epoch < entry.epoch
        if version >= _EPOCH_A_TRANSACTION and epoch == entry.epoch:
            replaced = entry.current_txn_first_offset >= 0 and epoch != _HIGHEST_EPOCH
        if replaced:
            raise RefusedRecords(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has epoch {entry.epoch}, and the marker has epoch {epoch}",
            )
        if coordinator_epoch < entry.coordinator_epoch:
            raise RefusedRecords(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"producer {producer_id} has a marker of coordinator epoch {entry.coordinator_epoch}, and"
                f" this one has {coordinator_epoch}",
            )

    def knows(self, producer_id: int) -> bool:
        """Whether the producer has written here before."""
        return self.followed.entry(producer_id) is not None

    def replaced(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has been here in a newer epoch."""
        entry = self.followed.entry(producer_id)
        return entry is not None and epoch < entry.epoch

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction here, in this epoch."""
        entry = self.followed.entry(producer_id)
        return entry is not None and entry.epoch == epoch and entry.current_txn_first_offset >= 0

    def add(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Take in a batch that was appended; the transaction that it aborts, if it does."""
        if batch.producer_id <= _NONE:
            return None
        known = self._known.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._known[batch.producer_id] = _Producer(batch.producer_epoch)
        if not batch.is_control:
            known.batches.append(
                KeptBatch(batch.base_sequence, batch.last_sequence, batch.base_offset, batch.max_timestamp)
            )
        return self.followed.add(batch)

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the oldest open transaction begins; None if none is open."""
        return self.followed.first_open

    def entries(self) -> Iterable[ProducerEntry]:
        """For a snapshot, and for DescribeProducers."""
        return self.followed.entries()
