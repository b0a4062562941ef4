"""How a transaction ends: which EndTxn is taken, by the id's status and the producer's epoch.

Two rules: that of KIP-98, where the epoch stays, and that of KIP-890, where each transaction has an epoch of
its own, so that a retry is known by the epoch before. Those are not mixed: the client's version decides.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.transactions.transactional_id import (
    HIGHEST_EPOCH,
    NO_ID,
    TransactionalId,
    TransactionFacts,
    is_exhausted,
)
from coordwire.enums import ErrorCode, TransactionStatus

__all__ = ["ENDS", "ENDS_WITH_EPOCHS", "EndAction", "end_of"]


class EndAction(Enum):
    """What an EndTxn does."""

    PREPARE = "prepare"
    """The transaction's end is written."""

    PREPARE_EMPTY = "prepare_empty"
    """There is none; an abort is written that raises the epoch."""

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
"""By status, and whether it is a commit: transaction versions 0 and 1."""

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
"""By status, whether it is a commit, and whether the epoch is the one before: transaction version 2."""


def end_of(
    one: TransactionalId,
    producer_id: int,
    epoch: int,
    *,
    committed: bool,
    from_client: bool,
    version: int,
    new_producer_id: Callable[[], int],
    now: int,
) -> TransactionFacts | None:
    """What the id becomes; None if it was done already. Raises `OperationRefused`.

    from_client: not by the coordinator itself, which fences with the next epoch.
    """
    fencing = one.pending is TransactionStatus.PREPARE_EPOCH_FENCE
    if version < 2:
        ending = _by_epoch_equal(one, producer_id, epoch, committed, from_client, fencing)
    else:
        ending = _by_next_epoch(one, producer_id, epoch, committed, from_client, fencing)
    if ending is EndAction.DONE:
        return None
    if ending is EndAction.BUSY:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if ending is EndAction.INVALID:
        raise OperationRefused(ErrorCode.INVALID_TXN_STATE)
    following = NO_ID
    if version >= 2 and is_exhausted(one.facts.producer_epoch):
        following = new_producer_id()
    if fencing and not committed:
        one.pending = None
        if version < 2:
            one.fence_at(epoch)
    elif fencing:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return one.prepared(committed, version, following, now, empty=ending is EndAction.PREPARE_EMPTY)


def _by_epoch_equal(
    one: TransactionalId, producer_id: int, epoch: int, committed: bool, from_client: bool, fencing: bool
) -> EndAction:
    facts = one.facts
    if facts.producer_id != producer_id:
        raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if (from_client and epoch != facts.producer_epoch) or epoch < facts.producer_epoch:
        raise OperationRefused(ErrorCode.PRODUCER_FENCED)
    if one.pending is not None and not fencing:
        raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
    return ENDS[facts.status, committed]


def _by_next_epoch(
    one: TransactionalId, producer_id: int, epoch: int, committed: bool, from_client: bool, fencing: bool
) -> EndAction:
    facts = one.facts
    if one.pending is not None and not fencing:
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
