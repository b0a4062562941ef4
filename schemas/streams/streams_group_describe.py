"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    Struct,
    Uint16,
)

StreamsGroupDescribe = Api(
    89, "StreamsGroupDescribe", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

StreamsGroupDescribeRequest = StreamsGroupDescribe.request(
    "group_ids"                     / Array(String) * "TODO",
    "include_authorized_operations" / Boolean       * "TODO",
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

Subtopology = Struct(
    "subtopology_id"            / String           * "TODO",
    "source_topics"             / Array(String)    * "TODO",
    "repartition_sink_topics"   / Array(String)    * "TODO",
    "state_changelog_topics"    / Array(TopicInfo) * "TODO",
    "repartition_source_topics" / Array(TopicInfo) * "TODO",
    about="TODO",
)

Topology = Struct(
    "epoch"         / Int32                        * "TODO",
    "subtopologies" / Nullable(Array(Subtopology)) * "TODO",
    about="TODO",
)

Endpoint = Struct(
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

TaskIds = Struct(
    "subtopology_id" / String       * "TODO",
    "partitions"     / Array(Int32) * "TODO",
    about="TODO",
)

Assignment = Struct(
    "active_tasks"  / Array(TaskIds) * "TODO",
    "standby_tasks" / Array(TaskIds) * "TODO",
    "warmup_tasks"  / Array(TaskIds) * "TODO",
    about="TODO",
)

Member = Struct(
    "member_id"         / String             * "TODO",
    "member_epoch"      / Int32              * "TODO",
    "instance_id"       / Nullable(String)   * "TODO",
    "rack_id"           / Nullable(String)   * "TODO",
    "client_id"         / String             * "TODO",
    "client_host"       / String             * "TODO",
    "topology_epoch"    / Int32              * "TODO",
    "process_id"        / String             * "TODO",
    "user_endpoint"     / Nullable(Endpoint) * "TODO",
    "client_tags"       / Array(KeyValue)    * "TODO",
    "task_offsets"      / Array(TaskOffset)  * "TODO",
    "task_end_offsets"  / Array(TaskOffset)  * "TODO",
    "assignment"        / Assignment         * "TODO",
    "target_assignment" / Assignment         * "TODO",
    "is_classic"        / Boolean            * "TODO",
    about="TODO",
)

DescribedGroup = Struct(
    "error_code"            / Int16                          * "TODO",
    "error_message"         / Nullable(String)               * "TODO",
    "group_id"              / String                         * "TODO",
    "group_state"           / String                         * "TODO",
    "group_epoch"           / Int32                          * "TODO",
    "assignment_epoch"      / Int32                          * "TODO",
    "topology"              / Nullable(Topology)             * "TODO",
    "members"               / Array(Member)                  * "TODO",
    "authorized_operations" / Default(Int32, -2_147_483_648) * "TODO",
    about="TODO",
)

StreamsGroupDescribeResponse = StreamsGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "TODO",
    "groups"           / Array(DescribedGroup) * "TODO",
)
