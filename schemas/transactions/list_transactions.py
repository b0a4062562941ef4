"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Nullable, Since, String, Struct

ListTransactions = Api(
    66, "ListTransactions", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

ListTransactionsRequest = ListTransactions.request(
    "state_filters"            / Array(String)                * "TODO",
    "producer_id_filters"      / Array(Int64)                 * "TODO",
    "duration_filter"          / Since(1, Default(Int64, -1)) * "TODO",
    "transactional_id_pattern" / Since(2, Nullable(String))   * "TODO",
)

TransactionState = Struct(
    "transactional_id"  / String * "TODO",
    "producer_id"       / Int64  * "TODO",
    "transaction_state" / String * "TODO",
    about="TODO",
)

ListTransactionsResponse = ListTransactions.response(
    "throttle_time_ms"      / Int32                   * "TODO",
    "error_code"            / Int16                   * "TODO",
    "unknown_state_filters" / Array(String)           * "TODO",
    "transaction_states"    / Array(TransactionState) * "TODO",
)
