"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Nullable, String, Struct, Uuid

ShareGroupHeartbeat = Api(
    76, "ShareGroupHeartbeat", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ShareGroupHeartbeatRequest = ShareGroupHeartbeat.request(
    "group_id"               / String                  * "TODO",
    "member_id"              / String                  * "TODO",
    "member_epoch"           / Int32                   * "TODO",
    "rack_id"                / Nullable(String)        * "TODO",
    "subscribed_topic_names" / Nullable(Array(String)) * "TODO",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

Assignment = Struct(
    "topic_partitions" / Array(TopicPartitions) * "TODO",
    about="TODO",
)

ShareGroupHeartbeatResponse = ShareGroupHeartbeat.response(
    "throttle_time_ms"      / Int32                * "TODO",
    "error_code"            / Int16                * "TODO",
    "error_message"         / Nullable(String)     * "TODO",
    "member_id"             / Nullable(String)     * "TODO",
    "member_epoch"          / Int32                * "TODO",
    "heartbeat_interval_ms" / Int32                * "TODO",
    "assignment"            / Nullable(Assignment) * "TODO",
)
