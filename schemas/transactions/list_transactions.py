"""ListTransactions: the transactional ids that one broker coordinates (KIP-664)."""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    ProducerId,
    Since,
    String,
    Struct,
    TransactionalId,
)

ListTransactions = Api(
    66, "ListTransactions", versions=(0, 2), flexible=0, answered_by="every broker",
    doc="For operators. A broker knows only the ids that it coordinates, so a full list takes one request per broker.",
    changes={
        1: "A filter by age (KIP-994).",
        2: "A filter by a pattern of ids (KIP-1152).",
    },
    errors=("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "INVALID_REGULAR_EXPRESSION"),
)

ListTransactionsRequest = ListTransactions.request(
    "state_filters"            / Array(String)                * "Only transactions in these states; empty for all.",
    "producer_id_filters"      / Array(ProducerId)            * "Only those of these producer ids; empty for all.",
    "duration_filter"          / Since(1, Default(Int64, -1)) * "Only those that run longer than this, in ms; -1 for all (KIP-994).",
    "transactional_id_pattern" / Since(2, Nullable(String))   * "Only ids that this pattern matches (RE2); null or empty for all (KIP-1152).",
)

TransactionState = Struct(
    "transactional_id"  / TransactionalId * "Whose transaction it is.",
    "producer_id"       / ProducerId      * "The producer id in use.",
    "transaction_state" / String          * 'Such as "Empty", "Ongoing", "PrepareCommit" or "CompleteAbort".',
    doc="One transactional id in brief; DescribeTransactions returns more.",
)

ListTransactionsResponse = ListTransactions.response(
    "throttle_time_ms"      / Int32                   * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"            / ErrorCode               * "0, or why the list is missing, such as COORDINATOR_LOAD_IN_PROGRESS.",
    "unknown_state_filters" / Array(String)           * "Those of the states asked for that this coordinator has never heard of.",
    "transaction_states"    / Array(TransactionState) * "What passes all filters and what the client may see.",
)
