"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    Struct,
    Uint16,
)

StreamsGroupHeartbeat = Api(
    88, "StreamsGroupHeartbeat", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

KeyValue = Struct(
    "key"   / String * "TODO",
    "value" / String * "TODO",
    about="TODO",
)

TopicInfo = Struct(
    "name"               / String          * "TODO",
    "partitions"         / Int32           * "TODO",
    "replication_factor" / Int16           * "TODO",
    "topic_configs"      / Array(KeyValue) * "TODO",
    about="TODO",
)

CopartitionGroup = Struct(
    "source_topics"             / Array(Int16) * "TODO",
    "source_topic_regex"        / Array(Int16) * "TODO",
    "repartition_source_topics" / Array(Int16) * "TODO",
    about="TODO",
)

Subtopology = Struct(
    "subtopology_id"            / String                  * "TODO",
    "source_topics"             / Array(String)           * "TODO",
    "source_topic_regex"        / Array(String)           * "TODO",
    "state_changelog_topics"    / Array(TopicInfo)        * "TODO",
    "repartition_sink_topics"   / Array(String)           * "TODO",
    "repartition_source_topics" / Array(TopicInfo)        * "TODO",
    "copartition_groups"        / Array(CopartitionGroup) * "TODO",
    about="TODO",
)

Topology = Struct(
    "epoch"         / Int32              * "TODO",
    "subtopologies" / Array(Subtopology) * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatRequestTaskIds = Struct(
    "subtopology_id" / String       * "TODO",
    "partitions"     / Array(Int32) * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatRequestEndpoint = Struct(
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

TaskOffset = Struct(
    "subtopology_id" / String * "TODO",
    "partition"      / Int32  * "TODO",
    "offset"         / Int64  * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatRequest = StreamsGroupHeartbeat.request(
    "group_id"                   / String                                               * "TODO",
    "member_id"                  / String                                               * "TODO",
    "member_epoch"               / Int32                                                * "TODO",
    "endpoint_information_epoch" / Int32                                                * "TODO",
    "instance_id"                / Nullable(String)                                     * "TODO",
    "rack_id"                    / Nullable(String)                                     * "TODO",
    "rebalance_timeout_ms"       / Default(Int32, -1)                                   * "TODO",
    "topology"                   / Nullable(Topology)                                   * "TODO",
    "active_tasks"               / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "TODO",
    "standby_tasks"              / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "TODO",
    "warmup_tasks"               / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "TODO",
    "process_id"                 / Nullable(String)                                     * "TODO",
    "user_endpoint"              / Nullable(StreamsGroupHeartbeatRequestEndpoint)       * "TODO",
    "client_tags"                / Nullable(Array(KeyValue))                            * "TODO",
    "task_offsets"               / Nullable(Array(TaskOffset))                          * "TODO",
    "task_end_offsets"           / Nullable(Array(TaskOffset))                          * "TODO",
    "shutdown_application"       / Boolean                                              * "TODO",
)

Status = Struct(
    "status_code"   / Int8   * "TODO",
    "status_detail" / String * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatResponseTaskIds = Struct(
    "subtopology_id" / String       * "TODO",
    "partitions"     / Array(Int32) * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatResponseEndpoint = Struct(
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

TopicPartition = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

EndpointToPartitions = Struct(
    "user_endpoint"      / StreamsGroupHeartbeatResponseEndpoint * "TODO",
    "active_partitions"  / Array(TopicPartition)                 * "TODO",
    "standby_partitions" / Array(TopicPartition)                 * "TODO",
    about="TODO",
)

StreamsGroupHeartbeatResponse = StreamsGroupHeartbeat.response(
    "throttle_time_ms"            / Int32                                                 * "TODO",
    "error_code"                  / Int16                                                 * "TODO",
    "error_message"               / Nullable(String)                                      * "TODO",
    "member_id"                   / String                                                * "TODO",
    "member_epoch"                / Int32                                                 * "TODO",
    "heartbeat_interval_ms"       / Int32                                                 * "TODO",
    "acceptable_recovery_lag"     / Int32                                                 * "TODO",
    "task_offset_interval_ms"     / Int32                                                 * "TODO",
    "status"                      / Default(Nullable(Array(Status)), [])                  * "TODO",
    "active_tasks"                / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "TODO",
    "standby_tasks"               / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "TODO",
    "warmup_tasks"                / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "TODO",
    "endpoint_information_epoch"  / Int32                                                 * "TODO",
    "partitions_by_user_endpoint" / Nullable(Array(EndpointToPartitions))                 * "TODO",
)
