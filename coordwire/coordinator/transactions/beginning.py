"""InitProducerId: what a producer begins with; and who may go on in a transaction.

Rules: as Kafka's coordinator. A producer that begins gets the next epoch, or another id where the epochs are
used up; one that is in a transaction is shut out first.
"""

from __future__ import annotations

from collections.abc import Callable

from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.transactions.transaction_config import TransactionConfig
from coordwire.coordinator.transactions.transactional_id import (
    NO_EPOCH,
    TransactionalId,
    TransactionFacts,
    is_exhausted,
)
from coordwire.enums import ErrorCode, TransactionStatus

__all__ = ["IDLE", "PREPARED", "begin_of", "checked_producer", "validate_begin"]

PREPARED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)
IDLE = (TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)


def validate_begin(
    config: TransactionConfig, name: str, timeout_ms: int, *, two_phase: bool, keep_prepared: bool
) -> None:
    """Refuse what is wrong whatever is known of the id."""
    if not name:
        raise OperationRefused(ErrorCode.INVALID_REQUEST)
    if two_phase and not config.two_phase_commit:
        raise OperationRefused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if keep_prepared:  # Kafka 4.3 knows the field and does nothing with it
        raise OperationRefused(ErrorCode.UNSUPPORTED_VERSION)
    if timeout_ms <= 0 or (timeout_ms > config.max_timeout_ms and not two_phase):
        raise OperationRefused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def begin_of(
    one: TransactionalId,
    expected: tuple[int, int] | None,
    *,
    timeout_ms: int,
    new_producer_id: Callable[[], int],
    now: int,
) -> TransactionFacts | None:
    """The id with its next producer; None where the one before is in a transaction, and is to be fenced.

    expected: the id and the epoch that the producer has had.
    """
    if one.pending is not None:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    facts = one.facts
    if expected is not None and not _may_be(facts, *expected):
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    if facts.status in PREPARED:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if facts.status is TransactionStatus.ONGOING:
        return None
    if facts.status not in IDLE:
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    epoch = None if expected is None else expected[1]
    if is_exhausted(facts.producer_epoch) and epoch in (None, facts.producer_epoch):
        return one.next_producer(new_producer_id(), timeout_ms, now, keep_last=expected is not None)
    if is_exhausted(facts.producer_epoch):  # Kafka has no epoch to give either
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return one.next_epoch(timeout_ms, epoch, now)


def checked_producer(one: TransactionalId, producer_id: int, epoch: int) -> TransactionFacts:
    """What is known of an id that a request is about; refuses another producer, and one that is too late."""
    facts = one.facts
    if facts.producer_id != producer_id:
        raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if facts.producer_epoch != epoch:
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    if facts.status in PREPARED:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return facts


def _may_be(facts: TransactionFacts, producer_id: int, epoch: int) -> bool:
    """Whether a producer that goes by this id and epoch may go on."""
    return (
        facts.producer_epoch == NO_EPOCH
        or producer_id == facts.producer_id
        or (producer_id == facts.previous_producer_id and is_exhausted(epoch))
    )
