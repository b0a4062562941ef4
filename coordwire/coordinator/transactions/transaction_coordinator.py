"""A transaction coordinator over many partitions of `__transaction_state`: a shard for each.

    coordinator = TransactionCoordinator(partitions=50, new_producer_id=new_id)
    coordinator.load(7, records, coordinator_epoch=3); coordinator.unload(7)
    coordinator.advance(now)
    ticket = coordinator.end("payments", 7, 0, committed=True, version=2)
    for effect in coordinator.effects(): ...   TransactionAppend: for its `partition`; `appended` or `failed`
                                               MarkersToWrite: then `marked`; TransactionOutcome
    coordinator.next_deadline()

Strategy: an operation goes to the shard of its transactional id. DescribeTransactions asks the shard of each
id, and ListTransactions all shards. A partition that the coordinator does not have answers NOT_COORDINATOR,
so that a server needs no look-up before it hands on a request.
Rules: those of `TransactionShard`. Set the time with `advance` before an operation. Partitions do not wait
for each other. For DescribeTransactions and ListTransactions, an id that is about to expire is not there
any more. A pattern is matched in turns, since clients
choose both it and the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.group_coordinator import partition_of
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.shard import ShardStatus
from coordwire.coordinator.transactions.effects import TransactionEffect
from coordwire.coordinator.transactions.shard import TransactionShard
from coordwire.coordinator.transactions.transactional_id import Place, TransactionalId, TransactionFacts
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.errors import counted
from coordwire.logs import LogRecord
from coordwire.messages import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordwire.messages.describe_transactions import TopicData, TransactionState
from coordwire.messages.describe_transactions import TransactionState as DescribedTransaction
from coordwire.messages.list_transactions import TransactionState as ListedTransaction
from coordwire.patterns import InvalidPattern, PatternSelection, RegularExpression

_NEVER = 1 << 63


class TransactionCoordinator:
    """The partitions that one node leads; without any until `load`.

    >>> from itertools import count
    >>> from coordwire.coordinator.transactions import TransactionAppend, TransactionCoordinator
    >>> transactions = TransactionCoordinator(partitions=1, new_producer_id=count(1_000).__next__)
    >>> transactions.load(0, [])
    >>> ticket = transactions.init_producer_id("till-1", 60_000)
    >>> for effect in transactions.effects():
    ...     if isinstance(effect, TransactionAppend):  # once the log has it
    ...         transactions.appended(effect.partition, effect.number)
    >>> transactions
    <TransactionCoordinator: 1 of 1 partition, 1 transactional id>
    >>> transactions.ids
    {'till-1': <TransactionalId till-1: Empty, producer 1000, epoch 0>}
    """

    def __init__(
        self,
        *,
        new_producer_id: Callable[[], int],
        partitions: int = 50,
        now: int = 0,
        config: TransactionConfig | None = None,
    ) -> None:
        """partitions: of `__transaction_state`, which can't change. new_producer_id: gives an id that no
        producer has had; it may raise `OSError`. now: the time, in milliseconds. config: Kafka's defaults
        where it is None."""
        self.partitions = partitions
        self._new_producer_id = new_producer_id
        self._now = now
        self._config = config
        self._tickets = count(1)
        self._shards: dict[int, TransactionShard] = {}
        self._absent = self._new_shard(0)
        self._touched: dict[TransactionShard, None] = {}
        self._due = _NEVER

    def __repr__(self) -> str:
        led = sum(shard.status is not ShardStatus.ABSENT for shard in self._shards.values())
        ids = counted(len(self.ids), "transactional id")
        return f"<TransactionCoordinator: {led} of {counted(self.partitions, 'partition')}, {ids}>"

    # --- which shard ---

    def partition_of(self, transactional_id: str) -> int:
        """The number of the partition that a transactional id is in."""
        return partition_of(transactional_id, self.partitions)

    def partitions_of(self, request: DescribeTransactionsRequest) -> list[int]:
        """The partitions of the ids that a request names, each once, in its order."""
        return list(dict.fromkeys(map(self.partition_of, request.transactional_ids)))

    def status(self, partition: int) -> ShardStatus:
        """Whether the coordinator has a partition."""
        shard = self._shards.get(partition)
        return ShardStatus.ABSENT if shard is None else shard.status

    @property
    def ids(self) -> dict[str, TransactionalId]:
        """The transactional ids of all partitions: to look at, not to change."""
        return {name: entry for shard in self._shards.values() for name, entry in shard.ids.items()}

    def _new_shard(self, partition: int) -> TransactionShard:
        return TransactionShard(
            now=self._now,
            config=self._config,
            new_producer_id=self._new_producer_id,
            partition=partition,
            tickets=self._tickets,
        )

    def _shard(self, partition: int) -> TransactionShard:
        """The shard of a partition, made if there is none."""
        shard = self._shards.get(partition)
        if shard is None:
            if not 0 <= partition < self.partitions:
                raise ValueError(f"expected a partition from 0 to {self.partitions - 1}, got {partition}")
            shard = self._shards[partition] = self._new_shard(partition)
        return self._touch(shard)

    def _shard_of(self, transactional_id: str) -> TransactionShard:
        """The shard of an id, at the time of the coordinator."""
        shard = self._touch(self._shards.get(self.partition_of(transactional_id), self._absent))
        shard.advance(self._now)
        return shard

    def _touch(self, shard: TransactionShard) -> TransactionShard:
        """Have the shard's effects given, and its timers looked at."""
        self._touched[shard] = None
        return shard

    # --- partitions ---

    def begin_loading(self, partition: int) -> None:
        """Refuse operations in a partition as a coordinator that loads it; `load` ends that."""
        self._shard(partition).begin_loading()

    def load(self, partition: int, records: Iterable[LogRecord], *, coordinator_epoch: int = 0) -> None:
        """Take a partition with all records of its log; prepared transactions are completed.

        Raises `Malformed` for a record that makes no sense, and what `records` raises.
        """
        shard = self._shard(partition)
        shard.advance(self._now)
        shard.load(records, coordinator_epoch=coordinator_epoch)

    def unload(self, partition: int) -> None:
        """Give up a partition: operations that wait for their records get NOT_COORDINATOR."""
        if partition in self._shards:
            self._shard(partition).unload()

    def appended(self, partition: int, number: int) -> None:
        """The append with this number is durable."""
        self._shard(partition).appended(number)

    def failed(self, partition: int, number: int, error: int) -> None:
        """The append with this number failed, with a broker's error code."""
        self._shard(partition).failed(number, error)

    def marked(self, partition: int, number: int, errors: Mapping[Place, int]) -> None:
        """Report the result of the markers with this number for each of their partitions; 0 for a deleted one
        too.

        A marker that failed is written again, until another coordinator or a newer epoch is in the way.
        """
        self._shard(partition).marked(number, errors)

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
        return self._shard_of(name).init_producer_id(
            name, timeout_ms, expected=expected, two_phase=two_phase, keep_prepared=keep_prepared
        )

    def add_partitions(
        self, name: str, producer_id: int, epoch: int, places: frozenset[Place], *, version: int = 0
    ) -> int:
        """AddPartitionsToTxn, AddOffsetsToTxn: the transaction is going to write to partitions.

        version: 2 if a partition's leader asks, for a producer that leaves that to it.
        """
        return self._shard_of(name).add_partitions(name, producer_id, epoch, places, version=version)

    def verify_partitions(self, name: str, producer_id: int, epoch: int, places: frozenset[Place]) -> int:
        """AddPartitionsToTxn with `verify_only`: whether partitions are in the transaction."""
        return self._shard_of(name).verify_partitions(name, producer_id, epoch, places)

    def end(self, name: str, producer_id: int, epoch: int, *, committed: bool, version: int = 0) -> int:
        """EndTxn. version: 2 if each transaction of the producer has an epoch of its own."""
        return self._shard_of(name).end(name, producer_id, epoch, committed=committed, version=version)

    # --- descriptions and lists ---

    def describe_transactions(self, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
        """The answer to DescribeTransactions, with the ids in the request's order."""
        return DescribeTransactionsResponse(
            transaction_states=[self._described(name) for name in request.transactional_ids]
        )

    def _described(self, name: str) -> TransactionState:
        try:
            return described(name, self._shard_of(name).facts(name))
        except OperationRefused as refusal:
            return TransactionState(error_code=int(refusal.code), transactional_id=name)

    def list_transactions(self, request: ListTransactionsRequest) -> TransactionListing:
        """The answer to ListTransactions, which matches a pattern in turns.

        It has no ids but COORDINATOR_LOAD_IN_PROGRESS while a partition is loaded.
        """
        shards = [shard for _, shard in sorted(self._shards.items())]
        is_loading = any(shard.status is ShardStatus.LOADING for shard in shards)
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_loading else ErrorCode.NONE
        ids = (entry for shard in shards for entry in shard.ids.values())
        return TransactionListing(request, ids, self._now, error=error)

    # --- effects and time ---

    def effects(self) -> Iterator[TransactionEffect]:
        """The effects of all partitions, each once, in the order of each partition."""
        while self._touched:
            shard = next(iter(self._touched))
            yield from shard.effects()
            self._touched.pop(shard, None)
            self._look_at(shard)

    def _look_at(self, shard: TransactionShard) -> None:
        """Note when a shard has something to do next."""
        deadline = shard.next_deadline()
        if deadline is not None and deadline < self._due:
            self._due = deadline

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next, at the earliest."""
        for shard in self._touched:
            self._look_at(shard)
        return None if self._due == _NEVER else self._due

    def advance(self, now: int) -> None:
        """Set the time, in milliseconds, and run the timers of all partitions that are due."""
        self._now = max(self._now, now)
        deadline = self.next_deadline()
        if deadline is None or now < deadline:
            return
        self._due = _NEVER
        for shard in self._shards.values():
            shard.advance(now)
            self._touch(shard)


# --- descriptions and lists ---


_NAMES = {
    TransactionStatus.EMPTY: "Empty",
    TransactionStatus.ONGOING: "Ongoing",
    TransactionStatus.PREPARE_COMMIT: "PrepareCommit",
    TransactionStatus.PREPARE_ABORT: "PrepareAbort",
    TransactionStatus.COMPLETE_COMMIT: "CompleteCommit",
    TransactionStatus.COMPLETE_ABORT: "CompleteAbort",
    TransactionStatus.DEAD: "Dead",
    TransactionStatus.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
_STATUSES = {name: status for status, name in _NAMES.items()}


def described(name: str, facts: TransactionFacts) -> DescribedTransaction:
    """The part of DescribeTransactions' answer that is about one id."""
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(facts.places):
        topics.setdefault(topic, TopicData(topic=topic, partitions=[])).partitions.append(index)
    return DescribedTransaction(
        transactional_id=name,
        transaction_state=_NAMES[facts.status],
        transaction_timeout_ms=facts.timeout_ms,
        transaction_start_time_ms=facts.start_time,
        producer_id=facts.producer_id,
        producer_epoch=facts.producer_epoch,
        topics=list(topics.values()),
    )


class TransactionListing:
    """The answer to a ListTransactions request: `advance` until it `is_done`, then take the `response`.

    >>> from coordwire.coordinator.transactions import TransactionListing
    >>> from coordwire.messages import ListTransactionsRequest
    >>> listing = TransactionListing(ListTransactionsRequest(state_filters=["Ongoing"]), ids=[], now=0)
    >>> listing
    <TransactionListing: done, 0 transactions>
    >>> listing.response.transaction_states
    []
    """

    def __init__(
        self,
        request: ListTransactionsRequest,
        ids: Iterable[TransactionalId],
        now: int,
        *,
        error: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """ids: all that the coordinator has. now: the time, in milliseconds. error: of the coordinator."""
        self.response = ListTransactionsResponse(
            unknown_state_filters=[name for name in request.state_filters if name not in _STATUSES],
            transaction_states=[],
        )
        self._selection: PatternSelection | None = None
        self._transactions: dict[str, ListedTransaction] = {}
        if error:
            self.response = ListTransactionsResponse(error_code=int(error))
            return
        pattern: RegularExpression | None = None
        if request.transactional_id_pattern:
            try:
                pattern = RegularExpression(request.transactional_id_pattern)
            except InvalidPattern:
                self.response.error_code = int(ErrorCode.INVALID_REGULAR_EXPRESSION)
                return
        producer_ids, states = frozenset(request.producer_id_filters), frozenset(request.state_filters)
        least = request.duration_filter
        for entry in ids:
            facts = entry.facts
            if (
                facts.status is not TransactionStatus.DEAD
                and (not producer_ids or facts.producer_id in producer_ids)
                and (not states or _NAMES[facts.status] in states)
                and (least < 0 or now - facts.start_time > least)
            ):
                self._transactions[entry.name] = ListedTransaction(
                    transactional_id=entry.name,
                    producer_id=facts.producer_id,
                    transaction_state=_NAMES[facts.status],
                )
        if pattern is None:
            self.response.transaction_states = list(self._transactions.values())
        else:
            self._selection = PatternSelection(pattern, self._transactions)

    def __repr__(self) -> str:
        state = "done" if self.is_done else "under way"
        transactions = counted(len(self.response.transaction_states), "transaction")
        return f"<TransactionListing: {state}, {transactions}>"

    @property
    def is_done(self) -> bool:
        """Whether the response is whole."""
        return self._selection is None

    def advance(self, amount: int) -> None:
        """Match the pattern with more ids, for about this many steps."""
        selection = self._selection
        if selection is None:
            return
        selection.advance(amount)
        if selection.is_done:
            self.response.transaction_states = [self._transactions[name] for name in selection.names]
            self._selection = None
