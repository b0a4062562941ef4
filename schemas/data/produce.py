"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Records,
    Since,
    String,
    Struct,
    Tagged,
    Until,
    Uuid,
)

Produce = Api(
    0, "Produce", versions=(0, 13), flexible=9,
    about="TODO",
    changes={},
)

PartitionProduceData = Struct(
    "index"   / Int32             * "TODO",
    "records" / Nullable(Records) * "TODO",
    about="TODO",
)

TopicProduceData = Struct(
    "name"           / Until(12, String, ignorable=True) * "TODO",
    "topic_id"       / Since(13, Uuid, ignorable=True)   * "TODO",
    "partition_data" / Array(PartitionProduceData)       * "TODO",
    about="TODO",
)

ProduceRequest = Produce.request(
    "transactional_id" / Since(3, Nullable(String)) * "TODO",
    "acks"             / Int16                      * "TODO",
    "timeout_ms"       / Int32                      * "TODO",
    "topic_data"       / Array(TopicProduceData)    * "TODO",
)

BatchIndexAndErrorMessage = Struct(
    "batch_index"               / Int32            * "TODO",
    "batch_index_error_message" / Nullable(String) * "TODO",
    about="TODO",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Default(Int32, -1) * "TODO",
    "leader_epoch" / Default(Int32, -1) * "TODO",
    about="TODO",
)

PartitionProduceResponse = Struct(
    "index"              / Int32                                                      * "TODO",
    "error_code"         / Int16                                                      * "TODO",
    "base_offset"        / Int64                                                      * "TODO",
    "log_append_time_ms" / Since(2, Default(Int64, -1), ignorable=True)               * "TODO",
    "log_start_offset"   / Since(5, Default(Int64, -1), ignorable=True)               * "TODO",
    "record_errors"      / Since(8, Array(BatchIndexAndErrorMessage), ignorable=True) * "TODO",
    "error_message"      / Since(8, Nullable(String), ignorable=True)                 * "TODO",
    "current_leader"     / Since(10, Tagged(0, LeaderIdAndEpoch))                     * "TODO",
    about="TODO",
)

TopicProduceResponse = Struct(
    "name"                / Until(12, String, ignorable=True) * "TODO",
    "topic_id"            / Since(13, Uuid, ignorable=True)   * "TODO",
    "partition_responses" / Array(PartitionProduceResponse)   * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32            * "TODO",
    "host"    / String           * "TODO",
    "port"    / Int32            * "TODO",
    "rack"    / Nullable(String) * "TODO",
    about="TODO",
)

ProduceResponse = Produce.response(
    "responses"        / Array(TopicProduceResponse)               * "TODO",
    "throttle_time_ms" / Since(1, Int32, ignorable=True)           * "TODO",
    "node_endpoints"   / Since(10, Tagged(0, Array(NodeEndpoint))) * "TODO",
)
