"""A transaction coordinator as a state machine: no socket, no clock, no randomness, with Kafka 4.3's rules.

`TransactionCoordinator` is many partitions of `__transaction_state`, `TransactionShard` one. Operations and
time go in; records to append, markers to write and outcomes to answer with come out as values.
"""

from coordwire.coordinator.config import TransactionConfig
from coordwire.coordinator.transactions.effects import (
    MarkersToWrite,
    TransactionAppend,
    TransactionEffect,
    TransactionOutcome,
)
from coordwire.coordinator.transactions.shard import TransactionShard
from coordwire.coordinator.transactions.transaction_coordinator import (
    TransactionCoordinator,
    TransactionListing,
)
from coordwire.coordinator.transactions.transactional_id import Place, TransactionalId, TransactionFacts

__all__ = [
    "MarkersToWrite",
    "Place",
    "TransactionAppend",
    "TransactionConfig",
    "TransactionCoordinator",
    "TransactionEffect",
    "TransactionFacts",
    "TransactionListing",
    "TransactionOutcome",
    "TransactionShard",
    "TransactionalId",
]
