"""The effects of a transaction coordinator, as values."""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.coordinator.effects import encoded_pairs
from coordwire.coordinator.transactions.transactional_id import Place
from coordwire.logs import LogRecord
from coordwire.records import Record, encode_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionAppend:
    """Records for the end of the log, as one batch: confirm with `appended` or `failed`.

    partition: the number of the shard's.
    """

    number: int
    records: tuple[LogRecord, ...]
    partition: int = 0

    def encoded(self) -> list[tuple[bytes, bytes | None]]:
        """Each record's key and value; a value of None is a tombstone."""
        return encoded_pairs(self.records)

    def batch(self, *, timestamp: int, base_offset: int = 0) -> bytes:
        """The record batch to append, without compression. timestamp: of all records, in milliseconds."""
        pairs = self.encoded()
        return encode_batch(
            [Record(timestamp=timestamp, key=key, value=value) for key, value in pairs],
            base_offset=base_offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersToWrite:
    """A marker for the end of each of these partitions: report with `marked`.

    transaction_version: 2 if the producer's epoch is a new one for each transaction. partition: the number of
    the shard's.
    """

    number: int
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    places: frozenset[Place]
    partition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionOutcome:
    """The outcome of the operation with this ticket.

    producer_id, producer_epoch: of the producer from now on, -1 where the operation does not set them.
    places: an error code for each partition, where they differ.
    """

    ticket: int
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    places: dict[Place, int] = field(default_factory=dict)


TransactionEffect: TypeAlias = TransactionAppend | MarkersToWrite | TransactionOutcome
