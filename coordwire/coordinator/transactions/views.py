"""What a transaction coordinator says of its transactional ids: DescribeTransactions and ListTransactions.

Rules: an id that is about to expire is not there any more. A pattern is matched in turns, since clients
choose both it and the ids.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.coordinator.transactions.transactional_id import TransactionalId, TransactionFacts
from coordwire.enums import ErrorCode, TransactionStatus
from coordwire.messages import ListTransactionsRequest, ListTransactionsResponse
from coordwire.messages.describe_transactions import TopicData
from coordwire.messages.describe_transactions import TransactionState as DescribedTransaction
from coordwire.messages.list_transactions import TransactionState as ListedTransaction
from coordwire.patterns import InvalidPattern, PatternSelection, RegularExpression

__all__ = ["TransactionListing", "described"]

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
    """The answer to a ListTransactions request: `advance` until it `is_done`, then take the `response`."""

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
