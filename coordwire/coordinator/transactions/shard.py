"""A shard: one partition of `__transaction_state` and the transactional ids in it.

    ticket = shard.end("payments", 7, 0, committed=True, version=2)
    for effect in shard.effects(): ...         TransactionAppend: write it, then `appended` or `failed`;
                                               MarkersToWrite: write them, then `marked`; TransactionOutcome
    shard.next_deadline(); shard.advance(now)  time is an input
    shard.load(records, coordinator_epoch=0)   the partition comes

Rules: as Kafka's coordinator. An id has one change at a time: what comes meanwhile gets
CONCURRENT_TRANSACTIONS. EndTxn is answered when the decision is durable; the markers come after that. Nothing
that a client sends raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.transactions.decisions import (
    PREPARED,
    begin_of,
    checked_producer,
    end_of,
    validate_begin,
)
from coordwire.coordinator.transactions.effects import TransactionOutcome
from coordwire.coordinator.transactions.log import Then, TransactionLog, nothing
from coordwire.coordinator.transactions.records import replayed
from coordwire.coordinator.transactions.transactional_id import (
    NO_TIMEOUT,
    Place,
    TransactionalId,
    TransactionFacts,
)
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.logs import LogRecord

__all__ = ["TransactionShard"]


class TransactionShard(TransactionLog):
    """The coordinator of one partition; it has none until `load`.

    new_producer_id: gives an id that no producer has had; it may raise `OSError`.
    """

    def __init__(
        self, *, new_producer_id: Callable[[], int], now: int = 0, config: TransactionConfig | None = None
    ) -> None:
        super().__init__(config or TransactionConfig(), now)
        self._new_producer_id = new_producer_id
        self._error = ErrorCode.NOT_COORDINATOR
        self._tickets = 0

    # --- the partition comes and goes ---

    def load(self, records: Iterable[LogRecord], *, coordinator_epoch: int = 0) -> None:
        """Take the partition with all records of its log; what was prepared is completed.

        Raises `Malformed` for a record that makes no sense, and what `records` raises.
        """
        self._clear()
        self.ids = replayed(records)
        self.coordinator_epoch = coordinator_epoch
        self._error = ErrorCode.NONE
        for one in self.ids.values():
            self._became(one)
            if one.facts.status in PREPARED:
                self._write_markers(one, one.completed(self.now))

    def unload(self) -> None:
        """Give up the partition: what waits for its record gets NOT_COORDINATOR."""
        writes = self._clear()
        self._error = ErrorCode.NOT_COORDINATOR
        for write in writes:
            write.then(int(self._error))

    # --- operations ---

    def init_producer_id(
        self,
        name: str,
        timeout_ms: int,
        *,
        expected: tuple[int, int] | None = None,
        two_phase: bool = False,
        keep_prepared: bool = False,
    ) -> int:
        """InitProducerId: a producer begins. expected: the id and the epoch that it has had."""
        ticket = self._ticket()

        def operation() -> None:
            validate_begin(self.config, name, timeout_ms, two_phase=two_phase, keep_prepared=keep_prepared)
            self._init(ticket, name, timeout_ms, expected, two_phase)

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def _init(
        self, ticket: int, name: str, timeout_ms: int, expected: tuple[int, int] | None, two_phase: bool
    ) -> None:
        self._check_loaded()
        timeout_ms = NO_TIMEOUT if two_phase else timeout_ms
        one = self.ids.get(name)
        if one is None:
            fresh = TransactionFacts(
                producer_id=self._producer_id(), timeout_ms=timeout_ms, update_time=self.now
            )
            one = self.ids[name] = TransactionalId(name, fresh)
            self._watch_expiration()
        after = begin_of(
            one, expected, timeout_ms=timeout_ms, new_producer_id=self._producer_id, now=self.now
        )
        if after is None:
            self._fence(
                one, lambda error, *_: self._answer(ticket, error or ErrorCode.CONCURRENT_TRANSACTIONS)
            )
            return
        self._append(
            one,
            after,
            lambda error: self._answer(
                ticket,
                error,
                after.producer_id if not error else -1,
                after.producer_epoch if not error else -1,
            ),
        )

    def add_partitions(
        self, name: str, producer_id: int, epoch: int, places: frozenset[Place], *, version: int = 0
    ) -> int:
        """AddPartitionsToTxn, AddOffsetsToTxn: partitions are going to be written to in the transaction.

        version: 2 if a partition's leader asks, for a producer that leaves that to it.
        """
        ticket = self._ticket()

        def operation() -> None:
            one = self._found(name)
            if one.pending is not None:
                raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
            facts = checked_producer(one, producer_id, epoch)
            if facts.status is TransactionStatus.ONGOING and places <= facts.places:
                self._answer(ticket, 0)
                return
            after = one.with_places(places, version, self.now)
            self._append(one, after, lambda error: self._answer(ticket, error))

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def verify_partitions(self, name: str, producer_id: int, epoch: int, places: frozenset[Place]) -> int:
        """AddPartitionsToTxn with `verify_only`: whether partitions are in the transaction."""
        ticket = self._ticket()

        def operation() -> None:
            known = checked_producer(self._found(name), producer_id, epoch).places
            missing = int(ErrorCode.TRANSACTION_ABORTABLE)
            found = {place: 0 if place in known else missing for place in places}
            self._effects.append(TransactionOutcome(ticket=ticket, places=found))

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def end(self, name: str, producer_id: int, epoch: int, *, committed: bool, version: int = 0) -> int:
        """EndTxn. version: 2 if the producer takes an epoch a transaction."""
        ticket = self._ticket()

        def operation() -> None:
            self._end(
                self._found(name),
                producer_id,
                epoch,
                committed,
                True,
                version,
                lambda error, *who: self._answer(ticket, error, *who),
            )

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def facts(self, name: str) -> TransactionFacts:
        """What is known of an id. Raises `OperationRefused`."""
        self._check_loaded()
        if not name:
            raise OperationRefused(ErrorCode.INVALID_REQUEST)
        one = self.ids.get(name)
        if one is None or one.facts.status is TransactionStatus.DEAD:
            raise OperationRefused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return one.facts

    # --- parts of operations ---

    def _ticket(self) -> int:
        self._tickets += 1
        return self._tickets

    def _answer(self, ticket: int, error: int, producer_id: int = -1, epoch: int = -1) -> None:
        self._effects.append(
            TransactionOutcome(
                ticket=ticket, error_code=int(error), producer_id=producer_id, producer_epoch=epoch
            )
        )

    def _try(self, operation: Callable[[], None], refused: Then) -> None:
        try:
            operation()
        except OperationRefused as refusal:
            refused(int(refusal.code))

    def _check_loaded(self) -> None:
        if self._error:
            raise OperationRefused(self._error)

    def _found(self, name: str) -> TransactionalId:
        if not name:
            raise OperationRefused(ErrorCode.INVALID_REQUEST)
        self._check_loaded()
        one = self.ids.get(name)
        if one is None:
            raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return one

    def _producer_id(self) -> int:
        try:
            return self._new_producer_id()
        except OSError as error:
            raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from None

    def _fence(self, one: TransactionalId, then: Callable[..., None]) -> None:
        """Abort the transaction, and shut its producer out."""
        producer_id, epoch = one.facts.producer_id, one.fenced()
        try:
            self._end(one, producer_id, epoch, False, False, self.config.version, then)
        except OperationRefused:
            if one.pending is TransactionStatus.PREPARE_EPOCH_FENCE:
                one.pending = None
            raise

    def _end(
        self,
        one: TransactionalId,
        producer_id: int,
        epoch: int,
        committed: bool,
        from_client: bool,
        version: int,
        then: Callable[..., None],
    ) -> None:
        """then: gets an error, and the producer's id and epoch from now on."""
        old_fence = version < 2 and one.pending is TransactionStatus.PREPARE_EPOCH_FENCE
        prepared = end_of(
            one,
            producer_id,
            epoch,
            committed=committed,
            from_client=from_client,
            version=version,
            new_producer_id=self._producer_id,
            now=self.now,
        )
        if prepared is None:
            facts = one.facts
            then(0, *((facts.producer_id, facts.producer_epoch) if version >= 2 else ()))
            return

        def written(error: int) -> None:
            if error:
                one.failed_fence = one.failed_fence or old_fence
                then(error)
                return
            completed = one.completed(self.now)
            then(0, *((completed.producer_id, completed.producer_epoch) if version >= 2 else ()))
            self._write_markers(one, completed)

        self._append(one, prepared, written)

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._timers.next_deadline()

    def advance(self, now: int) -> None:
        """Time has come to this point; timers that are due run."""
        while (due := self._timers.next_deadline()) is not None and due <= now:
            self.now = max(self.now, due)
            self._timers.pop()()
        self.now = max(self.now, now)

    def _time_over(self, one: TransactionalId) -> None:
        if one.facts.status is not TransactionStatus.ONGOING:
            return
        interval = self.config.abort_interval_ms
        self._timers.set(
            ("timeout", one.name), self._tick(self.now + 1, interval), lambda: self._time_over(one)
        )
        if one.pending is None:
            self._try(lambda: self._fence(one, nothing), nothing)
