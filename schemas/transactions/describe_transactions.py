"""DescribeTransactions: what the coordinator knows about single transactions (KIP-664)."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    Int16,
    Int32,
    Int64,
    ProducerId,
    String,
    Struct,
    TopicName,
    TransactionalId,
)

DescribeTransactions = Api(
    65, "DescribeTransactions", versions=(0, 0), flexible=0, coordinator="transaction",
    doc="For operators who look for hanging transactions: state, age, producer and partitions of each. Its coordinator answers for each id.",
    changes={},
    errors=(
        *COORDINATOR, "INVALID_REQUEST", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_NOT_FOUND",
    ),
)

DescribeTransactionsRequest = DescribeTransactions.request(
    "transactional_ids" / Array(TransactionalId) * "Whose transactions to describe.",
)

TopicData = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of its partitions in the transaction.",
    doc="Partitions of one topic.",
)

TransactionState = Struct(
    "error_code"                / ErrorCode        * "0, or why this one is not described.",
    "transactional_id"          / TransactionalId  * "The id asked for.",
    "transaction_state"         / String           * 'Such as "Empty", "Ongoing", "PrepareCommit" or "CompleteAbort".',
    "transaction_timeout_ms"    / Int32            * "Age at which the coordinator aborts it, in ms.",
    "transaction_start_time_ms" / Int64            * "When it began, in ms since the epoch; negative if none is open.",
    "producer_id"               / ProducerId       * "The producer id in use.",
    "producer_epoch"            / Int16            * "The epoch in use.",
    "topics"                    / Array(TopicData) * "Partitions still in the transaction, as far as the client may see their topics.",
    doc="What one transactional id is doing.",
)

DescribeTransactionsResponse = DescribeTransactions.response(
    "throttle_time_ms"   / Int32                   * "How long a quota holds the client back, in ms; 0 for not at all.",
    "transaction_states" / Array(TransactionState) * "One answer for each id asked for.",
)
