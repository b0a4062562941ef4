"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int16, Int32, Nullable, String, Struct, Uuid

DescribeTopicPartitions = Api(
    75, "DescribeTopicPartitions", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

TopicRequest = Struct(
    "name" / String * "TODO",
    about="TODO",
)

DescribeTopicPartitionsRequestCursor = Struct(
    "topic_name"      / String * "TODO",
    "partition_index" / Int32  * "TODO",
    about="TODO",
)

DescribeTopicPartitionsRequest = DescribeTopicPartitions.request(
    "topics"                   / Array(TopicRequest)                            * "TODO",
    "response_partition_limit" / Default(Int32, 2000)                           * "TODO",
    "cursor"                   / Nullable(DescribeTopicPartitionsRequestCursor) * "TODO",
)

DescribeTopicPartitionsResponsePartition = Struct(
    "error_code"               / Int16                  * "TODO",
    "partition_index"          / Int32                  * "TODO",
    "leader_id"                / Int32                  * "TODO",
    "leader_epoch"             / Default(Int32, -1)     * "TODO",
    "replica_nodes"            / Array(Int32)           * "TODO",
    "isr_nodes"                / Array(Int32)           * "TODO",
    "eligible_leader_replicas" / Nullable(Array(Int32)) * "TODO",
    "last_known_elr"           / Nullable(Array(Int32)) * "TODO",
    "offline_replicas"         / Array(Int32)           * "TODO",
    about="TODO",
)

DescribeTopicPartitionsResponseTopic = Struct(
    "error_code"                  / Int16                                           * "TODO",
    "name"                        / Default(Nullable(String), "")                   * "TODO",
    "topic_id"                    / Uuid                                            * "TODO",
    "is_internal"                 / Boolean                                         * "TODO",
    "partitions"                  / Array(DescribeTopicPartitionsResponsePartition) * "TODO",
    "topic_authorized_operations" / Default(Int32, -2_147_483_648)                  * "TODO",
    about="TODO",
)

DescribeTopicPartitionsResponseCursor = Struct(
    "topic_name"      / String * "TODO",
    "partition_index" / Int32  * "TODO",
    about="TODO",
)

DescribeTopicPartitionsResponse = DescribeTopicPartitions.response(
    "throttle_time_ms" / Int32                                           * "TODO",
    "topics"           / Array(DescribeTopicPartitionsResponseTopic)     * "TODO",
    "next_cursor"      / Nullable(DescribeTopicPartitionsResponseCursor) * "TODO",
)
