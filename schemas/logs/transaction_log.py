"""Transactional ids and the state of their transactions, in __transaction_state (KIP-98).

A record without a value removes the id, after a long time without use.
"""

from schemas.vocabulary import (
    Array,
    Data,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    ProducerId,
    Since,
    Struct,
    Tagged,
    TopicName,
    TransactionalId,
)

TransactionLogKey = Data("TransactionLogKey", versions=(0, 0), flexible=None, log="transaction_state", record_type=0, role="key", doc="Which transactional id it is.")(
    "transactional_id" / TransactionalId * "The transactional id.",
)

PartitionsSchema = Struct(
    "topic"         / TopicName    * "The topic's name.",
    "partition_ids" / Array(Int32) * "Numbers of its partitions.",
    doc="Partitions of one topic in the transaction.",
)

TransactionLogValue = Data("TransactionLogValue", versions=(0, 1), flexible=1, log="transaction_state", record_type=0, doc="The state of an id's transaction. v1 is flexible (KIP-915).")(
    "producer_id"                          / ProducerId                                     * "The producer id that the id goes by now.",
    "previous_producer_id"                 / Since(1, Tagged(0, Default(ProducerId, -1)))   * "The producer id before, for retries of its last commit; -1 for none (KIP-890).",
    "next_producer_id"                     / Since(1, Tagged(1, Default(ProducerId, -1)))   * "The producer id to follow when this one's epochs run out; -1 for none (KIP-890).",
    "producer_epoch"                       / Int16                                          * "Epoch of the producer id; older ones are fenced off.",
    "next_producer_epoch"                  / Since(1, Tagged(3, Default(Int16, -1)))        * "Epoch that goes with the next producer id; -1 for none.",
    "transaction_timeout_ms"               / Int32                                          * "How long a transaction may stay open, in ms.",
    "transaction_status"                   / Int8                                           * "0 empty, 1 ongoing, 2-3 preparing to commit, abort, 4-5 done so, 6 dead, 7 fencing.",
    "transaction_partitions"               / Default(Nullable(Array(PartitionsSchema)), []) * "Partitions in the open transaction; null for none.",
    "transaction_last_update_timestamp_ms" / Int64                                          * "When this state was reached, in ms since the epoch.",
    "transaction_start_timestamp_ms"       / Int64                                          * "When the transaction began, in ms since the epoch; -1 for never.",
    "client_transaction_version"           / Since(1, Tagged(2, Int16))                     * "transaction.version that the producer goes by; 2: an epoch a transaction (KIP-890).",
)
