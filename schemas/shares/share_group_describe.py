"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int16, Int32, Nullable, String, Struct, Uuid

ShareGroupDescribe = Api(
    77, "ShareGroupDescribe", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ShareGroupDescribeRequest = ShareGroupDescribe.request(
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
    "member_id"              / String           * "TODO",
    "rack_id"                / Nullable(String) * "TODO",
    "member_epoch"           / Int32            * "TODO",
    "client_id"              / String           * "TODO",
    "client_host"            / String           * "TODO",
    "subscribed_topic_names" / Array(String)    * "TODO",
    "assignment"             / Assignment       * "TODO",
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

ShareGroupDescribeResponse = ShareGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "TODO",
    "groups"           / Array(DescribedGroup) * "TODO",
)
