"""A shard: one partition of `__transaction_state` and the transactional ids in it.

    ticket = shard.end("payments", 7, 0, committed=True, version=2)
    for effect in shard.effects(): ...         TransactionAppend: write it, then `appended` or `failed`;
                                               MarkersToWrite: write them, then `marked`; TransactionOutcome
    shard.next_deadline(); shard.advance(now)  time is an input
    shard.load(records, coordinator_epoch=0)   the partition comes

Rules: as Kafka's coordinator. An id has one change at a time: a request that comes meanwhile gets
CONCURRENT_TRANSACTIONS. EndTxn is answered when the decision is durable; the markers come after that. Nothing
that a client sends raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.shard import ShardStatus
from coordwire.coordinator.transactions.decisions import (
    PREPARED,
    begin_of,
    checked_producer,
    end_of,
    validate_begin,
)
from coordwire.coordinator.transactions.effects import TransactionEffect, TransactionOutcome
from coordwire.coordinator.transactions.log import OnWritten, TransactionLog, ignore, replayed
from coordwire.coordinator.transactions.transactional_id import (
    NO_TIMEOUT,
    Place,
    TransactionalId,
    TransactionFacts,
)
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.errors import counted
from coordwire.logs import LogRecord

_STATUSES = {
    ErrorCode.NOT_COORDINATOR: ShardStatus.ABSENT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ShardStatus.LOADING,
    ErrorCode.NONE: ShardStatus.ACTIVE,
}


class TransactionShard:
    """The coordinator of one partition; it has none until `load`.

    new_producer_id: gives an id that no producer has had; it may raise `OSError`. partition: its number,
    which appends and markers have; tickets: the numbers of operations, which shards of a coordinator share.

    >>> from coordwire.coordinator.transactions import TransactionShard
    >>> shard = TransactionShard(new_producer_id=lambda: 1_000, partition=7)
    >>> shard.load([])
    >>> shard
    <TransactionShard 7: active, 0 transactional ids>
    """

    def __init__(
        self,
        *,
        new_producer_id: Callable[[], int],
        now: int = 0,
        config: TransactionConfig | None = None,
        partition: int = 0,
        tickets: Iterator[int] | None = None,
    ) -> None:
        self._config = config or TransactionConfig()
        self._log = TransactionLog(self._config, now, self._abort, partition)
        self._new_producer_id = new_producer_id
        self._error = ErrorCode.NOT_COORDINATOR
        self._tickets = count(1) if tickets is None else tickets
        self._partition = partition

    def __repr__(self) -> str:
        ids = counted(len(self.ids), "transactional id")
        return f"<TransactionShard {self._partition}: {self.status.name.lower()}, {ids}>"

    @property
    def now(self) -> int:
        """The time of the shard, in milliseconds."""
        return self._log.now

    @property
    def ids(self) -> Mapping[str, TransactionalId]:
        """The transactional ids by name: to look at, not to change."""
        return self._log.ids

    @property
    def status(self) -> ShardStatus:
        """Whether the shard has its partition."""
        return _STATUSES[self._error]

    def effects(self) -> Iterator[TransactionEffect]:
        """The effects, each once, in order."""
        return self._log.effects()

    # --- the partition comes and goes ---

    def begin_loading(self) -> None:
        """Refuse operations as a coordinator that loads the partition; `load` ends that."""
        if self.status is ShardStatus.ABSENT:
            self._error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def load(self, records: Iterable[LogRecord], *, coordinator_epoch: int = 0) -> None:
        """Take the partition with all records of its log; prepared transactions are completed.

        Raises `Malformed` for a record that makes no sense, and what `records` raises.
        """
        self._log.clear()
        ids = replayed(records)
        self._error = ErrorCode.NONE
        self._log.load(ids, coordinator_epoch)
        for entry in ids.values():
            if entry.facts.status in PREPARED:
                self._log.write_markers(entry, entry.completed(self.now))

    def unload(self) -> None:
        """Give up the partition: operations that wait for their records get NOT_COORDINATOR."""
        callbacks = self._log.clear()
        self._error = ErrorCode.NOT_COORDINATOR
        for on_written in callbacks:
            on_written(int(self._error))

    # --- the log ---

    def appended(self, number: int) -> None:
        """The append with this number is durable."""
        self._log.appended(number)

    def failed(self, number: int, error: int) -> None:
        """The append with this number failed, with a broker's error code."""
        self._log.failed(number, error)

    def marked(self, number: int, errors: Mapping[Place, int]) -> None:
        """Report the result of the markers with this number for each partition; 0 for a deleted one too.

        A marker that failed is written again, until another coordinator or a newer epoch is in the way.
        """
        self._log.marked(number, errors)

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
            validate_begin(self._config, name, timeout_ms, two_phase=two_phase, keep_prepared=keep_prepared)
            self._init(ticket, name, timeout_ms, expected, two_phase)

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def _init(
        self, ticket: int, name: str, timeout_ms: int, expected: tuple[int, int] | None, two_phase: bool
    ) -> None:
        self._check_loaded()
        timeout_ms = NO_TIMEOUT if two_phase else timeout_ms
        entry = self._log.ids.get(name)
        if entry is None:
            facts = TransactionFacts(
                producer_id=self._producer_id(), timeout_ms=timeout_ms, update_time=self.now
            )
            entry = self._log.add(name, facts)
        after = begin_of(
            entry, expected, timeout_ms=timeout_ms, new_producer_id=self._producer_id, now=self.now
        )
        if after is None:
            self._fence(
                entry, lambda error, *_: self._answer(ticket, error or ErrorCode.CONCURRENT_TRANSACTIONS)
            )
            return
        self._log.append(
            entry,
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
        """AddPartitionsToTxn, AddOffsetsToTxn: the transaction is going to write to partitions.

        version: 2 if a partition's leader asks, for a producer that leaves that to it.
        """
        ticket = self._ticket()

        def operation() -> None:
            entry = self._find(name)
            if entry.pending is not None:
                raise OperationRefused(ErrorCode.CONCURRENT_TRANSACTIONS)
            facts = checked_producer(entry, producer_id, epoch)
            if facts.status is TransactionStatus.ONGOING and places <= facts.places:
                self._answer(ticket, 0)
                return
            after = entry.with_places(places, version, self.now)
            self._log.append(entry, after, lambda error: self._answer(ticket, error))

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def verify_partitions(self, name: str, producer_id: int, epoch: int, places: frozenset[Place]) -> int:
        """AddPartitionsToTxn with `verify_only`: whether partitions are in the transaction."""
        ticket = self._ticket()

        def operation() -> None:
            known = checked_producer(self._find(name), producer_id, epoch).places
            missing = int(ErrorCode.TRANSACTION_ABORTABLE)
            errors = {place: 0 if place in known else missing for place in sorted(places)}
            self._log.answer(TransactionOutcome(ticket=ticket, places=errors))

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def end(self, name: str, producer_id: int, epoch: int, *, committed: bool, version: int = 0) -> int:
        """EndTxn. version: 2 if each transaction of the producer has an epoch of its own."""
        ticket = self._ticket()

        def operation() -> None:
            self._end(
                self._find(name),
                producer_id,
                epoch,
                committed,
                True,
                version,
                lambda error, *producer: self._answer(ticket, error, *producer),
            )

        self._try(operation, lambda error: self._answer(ticket, error))
        return ticket

    def facts(self, name: str) -> TransactionFacts:
        """The facts of an id. Raises `OperationRefused`."""
        self._check_loaded()
        if not name:
            raise OperationRefused(ErrorCode.INVALID_REQUEST)
        entry = self._log.ids.get(name)
        if entry is None or entry.facts.status is TransactionStatus.DEAD:
            raise OperationRefused(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return entry.facts

    # --- parts of operations ---

    def _ticket(self) -> int:
        return next(self._tickets)

    def _answer(self, ticket: int, error: int, producer_id: int = -1, epoch: int = -1) -> None:
        self._log.answer(
            TransactionOutcome(
                ticket=ticket, error_code=int(error), producer_id=producer_id, producer_epoch=epoch
            )
        )

    def _try(self, operation: Callable[[], None], on_refusal: OnWritten) -> None:
        try:
            operation()
        except OperationRefused as refusal:
            on_refusal(int(refusal.code))

    def _check_loaded(self) -> None:
        if self._error:
            raise OperationRefused(self._error)

    def _find(self, name: str) -> TransactionalId:
        if not name:
            raise OperationRefused(ErrorCode.INVALID_REQUEST)
        self._check_loaded()
        entry = self._log.ids.get(name)
        if entry is None:
            raise OperationRefused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return entry

    def _producer_id(self) -> int:
        try:
            return self._new_producer_id()
        except OSError as error:
            raise OperationRefused(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error)) from None

    def _abort(self, entry: TransactionalId) -> None:
        """Abort a transaction that has been open for too long."""
        self._try(lambda: self._fence(entry, ignore), ignore)

    def _fence(self, entry: TransactionalId, on_end: Callable[..., None]) -> None:
        """Abort the transaction, and shut its producer out."""
        producer_id, epoch = entry.facts.producer_id, entry.fenced()
        try:
            self._end(entry, producer_id, epoch, False, False, self._config.version, on_end)
        except OperationRefused:
            if entry.pending is TransactionStatus.PREPARE_EPOCH_FENCE:
                entry.pending = None
            raise

    def _end(
        self,
        entry: TransactionalId,
        producer_id: int,
        epoch: int,
        committed: bool,
        from_client: bool,
        version: int,
        on_end: Callable[..., None],
    ) -> None:
        """on_end: gets an error, and the producer's id and epoch from now on."""
        old_fence = version < 2 and entry.pending is TransactionStatus.PREPARE_EPOCH_FENCE
        prepared = end_of(
            entry,
            producer_id,
            epoch,
            committed=committed,
            from_client=from_client,
            version=version,
            new_producer_id=self._producer_id,
            now=self.now,
        )
        if prepared is None:
            facts = entry.facts
            on_end(0, *((facts.producer_id, facts.producer_epoch) if version >= 2 else ()))
            return

        def on_written(error: int) -> None:
            if error:
                entry.failed_fence = entry.failed_fence or old_fence
                on_end(error)
                return
            completed = entry.completed(self.now)
            on_end(0, *((completed.producer_id, completed.producer_epoch) if version >= 2 else ()))
            self._log.write_markers(entry, completed)

        self._log.append(entry, prepared, on_written)

    # --- time ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._log.next_deadline()

    def advance(self, now: int) -> None:
        """Time has come to this point; timers that are due run."""
        self._log.advance(now)
