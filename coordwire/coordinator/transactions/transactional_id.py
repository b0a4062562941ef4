"""A transactional id: its facts, and the next facts that it may have.

Strategy: the facts are one immutable value; a change makes the value that holds once its record is durable,
and until then the id has a pending status. Rules: one change at a time; a status follows only those in
`BEFORE`. The epochs are those of KIP-360 and KIP-890: -1 where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode, TransactionStatus

Place: TypeAlias = tuple[str, int]
"""A topic and the number of its partition."""

NO_ID = -1
NO_EPOCH = -1
HIGHEST_EPOCH = 0x7FFF
NO_TIMEOUT = 0x7FFFFFFF
"""The timeout of a transaction that another system ends (KIP-939)."""

_S = TransactionStatus

BEFORE: Mapping[TransactionStatus, frozenset[TransactionStatus]] = {
    _S.EMPTY: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
    _S.PREPARE_ABORT: frozenset(
        {_S.ONGOING, _S.PREPARE_EPOCH_FENCE, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}
    ),
    _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
    _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
    _S.DEAD: frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT}),
    _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
}
"""The statuses that each may follow."""


def is_exhausted(epoch: int) -> bool:
    """Whether a producer id has no further epoch to give; the last one is kept for fencing."""
    return epoch >= HIGHEST_EPOCH - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFacts:
    """The state of a transactional id in the log.

    previous_producer_id: before the last change; next_producer_id: after the one that is prepared.
    last_epoch: that a retry of InitProducerId may still have. start_time: -1 outside of a transaction.
    version: of transactions, as the client that made the last change knows them.
    """

    producer_id: int
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID
    producer_epoch: int = NO_EPOCH
    last_epoch: int = NO_EPOCH
    timeout_ms: int
    status: TransactionStatus = TransactionStatus.EMPTY
    places: frozenset[Place] = frozenset()
    start_time: int = -1
    update_time: int
    version: int = 0


class TransactionalId:
    """One id.

    pending: the next status, whose record is on its way. failed_fence: whether an epoch was raised without a
    record, so that it is not raised again.

    >>> from coordwire.coordinator.transactions import TransactionalId, TransactionFacts
    >>> facts = TransactionFacts(producer_id=1_000, producer_epoch=3, timeout_ms=60_000, update_time=0)
    >>> TransactionalId("till-1", facts)
    <TransactionalId till-1: Empty, producer 1000, epoch 3>
    """

    __slots__ = ("facts", "failed_fence", "name", "pending")

    def __init__(self, name: str, facts: TransactionFacts) -> None:
        self.name = name
        self.facts = facts
        self.pending: TransactionStatus | None = None
        self.failed_fence = False

    def __repr__(self) -> str:
        facts = self.facts
        status = facts.status.name.title().replace("_", "")
        producer = f"producer {facts.producer_id}, epoch {facts.producer_epoch}"
        return f"<TransactionalId {self.name}: {status}, {producer}>"

    def _change(self, status: TransactionStatus, **changes: object) -> TransactionFacts:
        """The facts once their record is durable."""
        assert self.pending is None
        assert self.facts.status in BEFORE[status]
        self.pending = status
        return replace(
            self.facts,
            status=status,
            previous_producer_id=self.facts.producer_id,
            **changes,  # type: ignore[arg-type]
        )

    # --- next facts ---

    def next_epoch(self, timeout_ms: int, expected: int | None, now: int) -> TransactionFacts:
        """A producer begins with this id. expected: the epoch in its request.

        Raises `OperationRefused` for an epoch that was replaced.
        """
        facts = self.facts
        epoch, last = facts.producer_epoch + 1, NO_EPOCH
        if expected is not None:
            if facts.producer_epoch == NO_EPOCH or expected == facts.producer_epoch:
                last = facts.producer_epoch
            elif expected == facts.last_epoch:  # a retry: the epoch was given already
                epoch, last = facts.producer_epoch, facts.last_epoch
            else:
                raise OperationRefused(ErrorCode.PRODUCER_FENCED)
        return self._next_begin(timeout_ms, now, producer_epoch=epoch, last_epoch=last)

    def next_producer(
        self, producer_id: int, timeout_ms: int, now: int, *, keep_last: bool
    ) -> TransactionFacts:
        """The epochs of the producer id are used up: the producer gets another id."""
        last = self.facts.producer_epoch if keep_last else NO_EPOCH
        return self._next_begin(timeout_ms, now, producer_id=producer_id, producer_epoch=0, last_epoch=last)

    def _next_begin(self, timeout_ms: int, now: int, **changes: int) -> TransactionFacts:
        return self._change(
            TransactionStatus.EMPTY,
            timeout_ms=timeout_ms,
            places=frozenset(),
            start_time=-1,
            update_time=now,
            **changes,
        )

    def with_places(self, places: frozenset[Place], version: int, now: int) -> TransactionFacts:
        """Partitions join the transaction, which begins with the first of them."""
        facts = self.facts
        return self._change(
            TransactionStatus.ONGOING,
            places=facts.places | places,
            start_time=facts.start_time if facts.status is TransactionStatus.ONGOING else now,
            update_time=now,
            version=version,
        )

    def fenced(self) -> int:
        """Begin the abort by another than the producer, and return the epoch for that."""
        facts = self.facts
        keep = self.failed_fence or facts.producer_epoch == HIGHEST_EPOCH
        self._change(TransactionStatus.PREPARE_EPOCH_FENCE)
        return facts.producer_epoch if keep else facts.producer_epoch + 1

    def fence_at(self, epoch: int) -> None:
        """Set the producer's epoch before a record has it: transaction versions 0 and 1."""
        self.facts = replace(self.facts, producer_epoch=epoch, last_epoch=NO_EPOCH)

    def prepared(
        self, committed: bool, version: int, next_producer_id: int, now: int, *, empty: bool = False
    ) -> TransactionFacts:
        """The transaction's end is decided. empty: the abort only raises the epoch, without a transaction."""
        facts = self.facts
        epoch, last = facts.producer_epoch, facts.last_epoch
        if version >= 2:
            last = epoch
            if committed or epoch != HIGHEST_EPOCH:
                epoch += 1
        return self._change(
            TransactionStatus.PREPARE_COMMIT if committed else TransactionStatus.PREPARE_ABORT,
            producer_epoch=epoch,
            last_epoch=last,
            start_time=now if empty else facts.start_time,
            next_producer_id=next_producer_id,
            update_time=now,
            version=version,
        )

    def completed(self, now: int) -> TransactionFacts:
        """All markers are written."""
        facts = self.facts
        self.failed_fence = False
        producer_id, epoch = facts.producer_id, facts.producer_epoch
        if facts.version >= 2 and facts.next_producer_id != NO_ID:
            producer_id, epoch = facts.next_producer_id, 0
        committed = facts.status is TransactionStatus.PREPARE_COMMIT
        return self._change(
            TransactionStatus.COMPLETE_COMMIT if committed else TransactionStatus.COMPLETE_ABORT,
            producer_id=producer_id,
            producer_epoch=epoch,
            next_producer_id=NO_ID,
            places=frozenset(),
            update_time=now,
        )

    def expires(self) -> None:
        """Begin the removal of the id."""
        self._change(TransactionStatus.DEAD, places=frozenset())

    def marked(self, places: Iterable[Place]) -> None:
        """Partitions have their markers."""
        self.facts = replace(self.facts, places=self.facts.places.difference(places))
