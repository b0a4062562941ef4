"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Nullable, String, Struct

DescribeProducers = Api(
    61, "DescribeProducers", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

TopicRequest = Struct(
    "name"              / String       * "TODO",
    "partition_indexes" / Array(Int32) * "TODO",
    about="TODO",
)

DescribeProducersRequest = DescribeProducers.request(
    "topics" / Array(TopicRequest) * "TODO",
)

ProducerState = Struct(
    "producer_id"              / Int64              * "TODO",
    "producer_epoch"           / Int32              * "TODO",
    "last_sequence"            / Default(Int32, -1) * "TODO",
    "last_timestamp"           / Default(Int64, -1) * "TODO",
    "coordinator_epoch"        / Int32              * "TODO",
    "current_txn_start_offset" / Default(Int64, -1) * "TODO",
    about="TODO",
)

PartitionResponse = Struct(
    "partition_index"  / Int32                * "TODO",
    "error_code"       / Int16                * "TODO",
    "error_message"    / Nullable(String)     * "TODO",
    "active_producers" / Array(ProducerState) * "TODO",
    about="TODO",
)

TopicResponse = Struct(
    "name"       / String                   * "TODO",
    "partitions" / Array(PartitionResponse) * "TODO",
    about="TODO",
)

DescribeProducersResponse = DescribeProducers.response(
    "throttle_time_ms" / Int32                * "TODO",
    "topics"           / Array(TopicResponse) * "TODO",
)
