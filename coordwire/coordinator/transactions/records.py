"""Records of `__transaction_state`: written from facts as Kafka does, and read back.

Rules: the partitions of an id without a transaction are null. `last_epoch` is not in a record, so that it is
unknown after a restart, as it is in Kafka. A record of a type or version that is unknown changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.coordinator.transactions.transactional_id import TransactionalId, TransactionFacts
from coordwire.enums import TransactionStatus
from coordwire.errors import CoordwireError, Malformed
from coordwire.logs import LogRecord, decode_log_record
from coordwire.messages import TransactionLogKey, TransactionLogValue
from coordwire.messages.transaction_log import PartitionsSchema
from coordwire.records import RecordBatch

__all__ = ["record_of", "replayed", "tombstone_of", "transaction_records"]


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
