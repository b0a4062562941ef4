"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int8,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

ConsumerGroupDescribe = Api(
    69, "ConsumerGroupDescribe", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ConsumerGroupDescribeRequest = ConsumerGroupDescribe.request(
    "group_ids"                     / Array(String) * "TODO",
    "include_authorized_operations" / Boolean       * "TODO",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "TODO",
    "topic_name" / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

Assignment = Struct(
    "topic_partitions" / Array(TopicPartitions) * "TODO",
    about="TODO",
)

Member = Struct(
    "member_id"              / String                                      * "TODO",
    "instance_id"            / Nullable(String)                            * "TODO",
    "rack_id"                / Nullable(String)                            * "TODO",
    "member_epoch"           / Int32                                       * "TODO",
    "client_id"              / String                                      * "TODO",
    "client_host"            / String                                      * "TODO",
    "subscribed_topic_names" / Array(String)                               * "TODO",
    "subscribed_topic_regex" / Nullable(String)                            * "TODO",
    "assignment"             / Assignment                                  * "TODO",
    "target_assignment"      / Assignment                                  * "TODO",
    "member_type"            / Since(1, Default(Int8, -1), ignorable=True) * "TODO",
    about="TODO",
)

DescribedGroup = Struct(
    "error_code"            / Int16                          * "TODO",
    "error_message"         / Nullable(String)               * "TODO",
    "group_id"              / String                         * "TODO",
    "group_state"           / String                         * "TODO",
    "group_epoch"           / Int32                          * "TODO",
    "assignment_epoch"      / Int32                          * "TODO",
    "assignor_name"         / String                         * "TODO",
    "members"               / Array(Member)                  * "TODO",
    "authorized_operations" / Default(Int32, -2_147_483_648) * "TODO",
    about="TODO",
)

ConsumerGroupDescribeResponse = ConsumerGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "TODO",
    "groups"           / Array(DescribedGroup) * "TODO",
)
