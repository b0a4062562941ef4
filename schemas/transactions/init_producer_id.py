"""TODO"""

from schemas.vocabulary import Api, Boolean, Default, Int16, Int32, Int64, Nullable, Since, String

InitProducerId = Api(
    22, "InitProducerId", versions=(0, 6), flexible=2,
    about="TODO",
    changes={},
)

InitProducerIdRequest = InitProducerId.request(
    "transactional_id"       / Default(Nullable(String), "") * "TODO",
    "transaction_timeout_ms" / Int32                         * "TODO",
    "producer_id"            / Since(3, Default(Int64, -1))  * "TODO",
    "producer_epoch"         / Since(3, Default(Int16, -1))  * "TODO",
    "enable2_pc"             / Since(6, Boolean)             * "TODO",
    "keep_prepared_txn"      / Since(6, Boolean)             * "TODO",
)

InitProducerIdResponse = InitProducerId.response(
    "throttle_time_ms"           / Int32                        * "TODO",
    "error_code"                 / Int16                        * "TODO",
    "producer_id"                / Default(Int64, -1)           * "TODO",
    "producer_epoch"             / Int16                        * "TODO",
    "ongoing_txn_producer_id"    / Since(6, Default(Int64, -1)) * "TODO",
    "ongoing_txn_producer_epoch" / Since(6, Default(Int16, -1)) * "TODO",
)
