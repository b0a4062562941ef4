"""How InitProducerId and EndTxn are decided, by the id's status and the producer's epoch.

InitProducerId gives the next epoch, or another producer id where the epochs are used up; a producer that is
in a transaction is fenced first. EndTxn follows one of two rules, by the client's version: KIP-98, where the
epoch stays, or KIP-890, where each transaction has an epoch of its own, so that the previous epoch marks a
retry.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.transactions.transactional_id import (
    HIGHEST_EPOCH,
    NO_EPOCH,
    NO_ID,
    TransactionalId,
    TransactionFacts,
    is_exhausted,
)
from coordwire.enums import ErrorCode, TransactionStatus

# --- InitProducerId ---

PREPARED = (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT)
IDLE = (TransactionStatus.EMPTY, TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT)


def validate_begin(
    config: TransactionConfig, name: str, timeout_ms: int, *, two_phase: bool, keep_prepared: bool
) -> None:
    """Refuse a request that is invalid whatever the id's facts are."""
    if not name:
        raise OperationRefused(ErrorCode.INVALID_REQUEST)
    if two_phase and not config.two_phase_commit:
        raise OperationRefused(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if keep_prepared:  # Kafka 4.3 knows the field and does nothing with it
        raise OperationRefused(ErrorCode.UNSUPPORTED_VERSION)
    if timeout_ms <= 0 or (timeout_ms > config.max_timeout_ms and not two_phase):
        raise OperationRefused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)


def begin_of(
    entry: TransactionalId,
    expected: tuple[int, int] | None,
    *,
    timeout_ms: int,
    new_producer_id: Callable[[], int],
    now: int,
) -> TransactionFacts | None:
    """The facts with the next producer; None if the last one is in a transaction, and has to be fenced.

    expected: the id and the epoch that the producer had.
    """
    if entry.pending is not None:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    facts = entry.facts
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
        return entry.next_producer(new_producer_id(), timeout_ms, now, keep_last=expected is not None)
    if is_exhausted(facts.producer_epoch):  # Kafka has no epoch to give either
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)
    return entry.next_epoch(timeout_ms, epoch, now)


def checked_producer(entry: TransactionalId, producer_id: int, epoch: int) -> TransactionFacts:
    """The facts of an id; refuses another producer, and one with another epoch."""
    facts = entry.facts
    if facts.producer_id != producer_id:
        raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if facts.producer_epoch != epoch:
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    if facts.status in PREPARED:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return facts


def _may_be(facts: TransactionFacts, producer_id: int, epoch: int) -> bool:
    """Whether a producer with this id and epoch may continue."""
    return (
        facts.producer_epoch == NO_EPOCH
        or producer_id == facts.producer_id
        or (producer_id == facts.previous_producer_id and is_exhausted(epoch))
    )


# --- EndTxn ---


class EndAction(Enum):
    """The action of an EndTxn."""

    PREPARE = "prepare"
    """The transaction's end is written."""

    PREPARE_EMPTY = "prepare_empty"
    """There is no transaction; an abort is written that raises the epoch."""

    DONE = "done"
    """It was done already."""

    BUSY = "busy"
    """It is being done: CONCURRENT_TRANSACTIONS."""

    INVALID = "invalid"
    """INVALID_TXN_STATE."""


_S, _E = TransactionStatus, EndAction

ENDS: dict[tuple[TransactionStatus, bool], EndAction] = {
    (_S.EMPTY, True): _E.INVALID,
    (_S.EMPTY, False): _E.INVALID,
    (_S.ONGOING, True): _E.PREPARE,
    (_S.ONGOING, False): _E.PREPARE,
    (_S.PREPARE_COMMIT, True): _E.BUSY,
    (_S.PREPARE_COMMIT, False): _E.INVALID,
    (_S.PREPARE_ABORT, True): _E.INVALID,
    (_S.PREPARE_ABORT, False): _E.BUSY,
    (_S.COMPLETE_COMMIT, True): _E.DONE,
    (_S.COMPLETE_COMMIT, False): _E.INVALID,
    (_S.COMPLETE_ABORT, True): _E.INVALID,
    (_S.COMPLETE_ABORT, False): _E.DONE,
}
"""The actions of transaction versions 0 and 1, by status, and whether it is a commit."""

ENDS_WITH_EPOCHS: dict[tuple[TransactionStatus, bool, bool], EndAction] = {
    **{
        (status, committed, retried): ending
        for (status, committed), ending in ENDS.items()
        for retried in (False, True)
    },
    (_S.EMPTY, False, False): _E.PREPARE_EMPTY,
    (_S.EMPTY, False, True): _E.PREPARE_EMPTY,
    (_S.COMPLETE_COMMIT, True, False): _E.INVALID,
    (_S.COMPLETE_COMMIT, False, False): _E.PREPARE_EMPTY,
    (_S.COMPLETE_ABORT, False, False): _E.PREPARE_EMPTY,
}
"""The actions of version 2, by status, whether it is a commit, and whether the epoch is the previous one."""


def end_of(
    entry: TransactionalId,
    producer_id: int,
    epoch: int,
    *,
    committed: bool,
    from_client: bool,
    version: int,
    new_producer_id: Callable[[], int],
    now: int,
) -> TransactionFacts | None:
    """The next facts of the id; None if the transaction ended already. Raises `OperationRefused`.

    from_client: False for the coordinator itself, which fences with the next epoch.
    """
    fencing = entry.pending is TransactionStatus.PREPARE_EPOCH_FENCE
    if version < 2:
        ending = _by_epoch_equal(entry, producer_id, epoch, committed, from_client, fencing)
    else:
        ending = _by_next_epoch(entry, producer_id, epoch, committed, from_client, fencing)
    if ending is EndAction.DONE:
        return None
    if ending is EndAction.BUSY:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if ending is EndAction.INVALID:
        raise OperationRefused(ErrorCode.INVALID_TXN_STATE)
    following = NO_ID
    if version >= 2 and is_exhausted(entry.facts.producer_epoch):
        following = new_producer_id()
    if fencing and not committed:
        entry.pending = None
        if version < 2:
            entry.fence_at(epoch)
    elif fencing:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return entry.prepared(committed, version, following, now, empty=ending is EndAction.PREPARE_EMPTY)


def _by_epoch_equal(
    entry: TransactionalId, producer_id: int, epoch: int, committed: bool, from_client: bool, fencing: bool
) -> EndAction:
    facts = entry.facts
    if facts.producer_id != producer_id:
        raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if (from_client and epoch != facts.producer_epoch) or epoch < facts.producer_epoch:
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    if entry.pending is not None and not fencing:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return ENDS[facts.status, committed]


def _by_next_epoch(
    entry: TransactionalId, producer_id: int, epoch: int, committed: bool, from_client: bool, fencing: bool
) -> EndAction:
    facts = entry.facts
    if entry.pending is not None and not fencing:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    over = (
        not fencing
        and facts.previous_producer_id == producer_id
        and epoch == HIGHEST_EPOCH - 1
        and facts.producer_epoch == 0
    )
    retried = not fencing and facts.producer_epoch == epoch + 1
    if facts.producer_id != producer_id and not over:
        raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    current = epoch == facts.producer_epoch
    if fencing:
        valid = (not from_client or current) and epoch >= facts.producer_epoch
    elif facts.status in (TransactionStatus.PREPARE_COMMIT, TransactionStatus.PREPARE_ABORT):
        valid = retried
    elif facts.status in (TransactionStatus.COMPLETE_COMMIT, TransactionStatus.COMPLETE_ABORT):
        valid = retried or over or current
    else:
        valid = current
    if not valid:
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    return ENDS_WITH_EPOCHS[facts.status, committed, retried or over]
