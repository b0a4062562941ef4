"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Int64, String, Struct

DescribeTransactions = Api(
    65, "DescribeTransactions", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

DescribeTransactionsRequest = DescribeTransactions.request(
    "transactional_ids" / Array(String) * "TODO",
)

TopicData = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

TransactionState = Struct(
    "error_code"                / Int16            * "TODO",
    "transactional_id"          / String           * "TODO",
    "transaction_state"         / String           * "TODO",
    "transaction_timeout_ms"    / Int32            * "TODO",
    "transaction_start_time_ms" / Int64            * "TODO",
    "producer_id"               / Int64            * "TODO",
    "producer_epoch"            / Int16            * "TODO",
    "topics"                    / Array(TopicData) * "TODO",
    about="TODO",
)

DescribeTransactionsResponse = DescribeTransactions.response(
    "throttle_time_ms"   / Int32                   * "TODO",
    "transaction_states" / Array(TransactionState) * "TODO",
)
