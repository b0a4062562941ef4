"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Int16, Int32, Int64, Since, String, Struct, Until

AddPartitionsToTxn = Api(
    24, "AddPartitionsToTxn", versions=(0, 5), flexible=3,
    about="TODO",
    changes={},
)

AddPartitionsToTxnTopic = Struct(
    "name"       / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

AddPartitionsToTxnTransaction = Struct(
    "transactional_id" / String                         * "TODO",
    "producer_id"      / Int64                          * "TODO",
    "producer_epoch"   / Int16                          * "TODO",
    "verify_only"      / Boolean                        * "TODO",
    "topics"           / Array(AddPartitionsToTxnTopic) * "TODO",
    about="TODO",
)

AddPartitionsToTxnRequest = AddPartitionsToTxn.request(
    "transactions"                  / Since(4, Array(AddPartitionsToTxnTransaction)) * "TODO",
    "v3_and_below_transactional_id" / Until(3, String)                               * "TODO",
    "v3_and_below_producer_id"      / Until(3, Int64)                                * "TODO",
    "v3_and_below_producer_epoch"   / Until(3, Int16)                                * "TODO",
    "v3_and_below_topics"           / Until(3, Array(AddPartitionsToTxnTopic))       * "TODO",
)

AddPartitionsToTxnPartitionResult = Struct(
    "partition_index"      / Int32 * "TODO",
    "partition_error_code" / Int16 * "TODO",
    about="TODO",
)

AddPartitionsToTxnTopicResult = Struct(
    "name"                 / String                                   * "TODO",
    "results_by_partition" / Array(AddPartitionsToTxnPartitionResult) * "TODO",
    about="TODO",
)

AddPartitionsToTxnResult = Struct(
    "transactional_id" / String                               * "TODO",
    "topic_results"    / Array(AddPartitionsToTxnTopicResult) * "TODO",
    about="TODO",
)

AddPartitionsToTxnResponse = AddPartitionsToTxn.response(
    "throttle_time_ms"              / Int32                                          * "TODO",
    "error_code"                    / Since(4, Int16, ignorable=True)                * "TODO",
    "results_by_transaction"        / Since(4, Array(AddPartitionsToTxnResult))      * "TODO",
    "results_by_topic_v3_and_below" / Until(3, Array(AddPartitionsToTxnTopicResult)) * "TODO",
)
