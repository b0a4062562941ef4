"""A transaction coordinator as a state machine: no socket, no clock, no randomness, with Kafka 4.3's rules.

`TransactionShard` is one partition of `__transaction_state`. Requests and time go in; records to append,
markers to write and outcomes to answer with come out as values.
"""

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.transactions.effects import (
    MarkersToWrite,
    TransactionAppend,
    TransactionEffect,
    TransactionOutcome,
)
from coordwire.coordinator.transactions.shard import TransactionShard
from coordwire.coordinator.transactions.transactional_id import Place, TransactionalId, TransactionFacts

__all__ = [
    "MarkersToWrite",
    "Place",
    "TransactionAppend",
    "TransactionConfig",
    "TransactionEffect",
    "TransactionFacts",
    "TransactionOutcome",
    "TransactionShard",
    "TransactionalId",
]
