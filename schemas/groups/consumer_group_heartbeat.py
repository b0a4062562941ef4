"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Nullable, Since, String, Struct, Uuid

ConsumerGroupHeartbeat = Api(
    68, "ConsumerGroupHeartbeat", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ConsumerGroupHeartbeatRequestTopicPartitions = Struct(
    "topic_id"   / Uuid         * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

ConsumerGroupHeartbeatRequest = ConsumerGroupHeartbeat.request(
    "group_id"               / String                                                        * "TODO",
    "member_id"              / String                                                        * "TODO",
    "member_epoch"           / Int32                                                         * "TODO",
    "instance_id"            / Nullable(String)                                              * "TODO",
    "rack_id"                / Nullable(String)                                              * "TODO",
    "rebalance_timeout_ms"   / Default(Int32, -1)                                            * "TODO",
    "subscribed_topic_names" / Nullable(Array(String))                                       * "TODO",
    "subscribed_topic_regex" / Since(1, Nullable(String))                                    * "TODO",
    "server_assignor"        / Nullable(String)                                              * "TODO",
    "topic_partitions"       / Nullable(Array(ConsumerGroupHeartbeatRequestTopicPartitions)) * "TODO",
)

ConsumerGroupHeartbeatResponseTopicPartitions = Struct(
    "topic_id"   / Uuid         * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

Assignment = Struct(
    "topic_partitions" / Array(ConsumerGroupHeartbeatResponseTopicPartitions) * "TODO",
    about="TODO",
)

ConsumerGroupHeartbeatResponse = ConsumerGroupHeartbeat.response(
    "throttle_time_ms"      / Int32                * "TODO",
    "error_code"            / Int16                * "TODO",
    "error_message"         / Nullable(String)     * "TODO",
    "member_id"             / Nullable(String)     * "TODO",
    "member_epoch"          / Int32                * "TODO",
    "heartbeat_interval_ms" / Int32                * "TODO",
    "assignment"            / Nullable(Assignment) * "TODO",
)
