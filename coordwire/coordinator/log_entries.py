"""The entries of a shard's log: records, and the ends of transactions.

    for entry in log_entries(batches): ...      from decoded record batches of the partition
    shard.load(log_entries(batches))

Rules: records are read as by Kafka's loader: a record of an unknown type stays bytes, and control records
other than the ends of transactions are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordwire._dataclasses import dataclass
from coordwire.logs import Log, LogRecord, decode_log_record
from coordwire.messages.control_records import EndTxnMarker
from coordwire.records import ControlType, RecordBatch, control_record

_LOG: Log = "consumer_offsets"
_NO_PRODUCER = -1


@dataclass(frozen=True, slots=True)
class TransactionMarker:
    """The end of a producer's transaction, as decided by the transaction's coordinator.

    coordinator_epoch: of the transaction's coordinator, for the control record.
    """

    committed: bool
    coordinator_epoch: int = 0

    def encoded(self) -> tuple[bytes, bytes | None]:
        """The control record's key and value."""
        kind = ControlType.COMMIT if self.committed else ControlType.ABORT
        record = control_record(kind, EndTxnMarker(coordinator_epoch=self.coordinator_epoch))
        assert record.key is not None
        return record.key, record.value


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One record of the log, with its offset and its batch's producer.

    offset: in the log, of which compaction may leave gaps; producer_id: of the transaction that the record is
    part of or that the marker ends, -1 outside of one.
    """

    offset: int
    record: LogRecord | TransactionMarker
    producer_id: int = _NO_PRODUCER


def log_entries(batches: Iterable[RecordBatch]) -> Iterator[LogEntry]:
    """The entries of a partition's batches.

    Raises `DecodeError` for a record that its type and version can't have, and what reading batches raises.
    """
    for batch in batches:
        if batch.is_control:
            for control in batch.control_records():
                if control.type in (ControlType.COMMIT, ControlType.ABORT):
                    value = control.value
                    epoch = value.coordinator_epoch if isinstance(value, EndTxnMarker) else 0
                    marker = TransactionMarker(control.type is ControlType.COMMIT, epoch)
                    yield LogEntry(offset=control.offset, record=marker, producer_id=batch.producer_id)
            continue
        for record in batch:
            opened = decode_log_record(_LOG, record.key, record.value, strict=False)
            yield LogEntry(offset=record.offset, record=opened, producer_id=batch.producer_id)
