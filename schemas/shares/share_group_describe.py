"""ShareGroupDescribe: an operator looks into share groups."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    GroupId,
    Int32,
    MemberId,
    Nullable,
    String,
    Struct,
    TopicName,
    Uuid,
)

ShareGroupDescribe = Api(
    77, "ShareGroupDescribe", versions=(0, 1), flexible=0, coordinator="group",
    doc="Reports the state, the members and the assignments of share groups (KIP-932).",
    changes={
        1: "Same layout; the stable version after the early access of Kafka 4.0 (KIP-932).",
    },
    errors=(
        *COORDINATOR, "INVALID_GROUP_ID", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "GROUP_ID_NOT_FOUND",
    ),
)

ShareGroupDescribeRequest = ShareGroupDescribe.request(
    "group_ids"                     / Array(GroupId) * "The groups to describe.",
    "include_authorized_operations" / Boolean        * "True asks for authorized_operations.",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "topic_name" / TopicName    * "Its name.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

Assignment = Struct(
    "topic_partitions" / Array(TopicPartitions) * "The partitions, a topic each.",
    doc="What a member reads.",
)

Member = Struct(
    "member_id"              / MemberId         * "The UUID that the member picked.",
    "rack_id"                / Nullable(String) * "Its rack; null if it has none.",
    "member_epoch"           / Int32            * "The epoch that it has reached.",
    "client_id"              / String           * "The client id of its request headers.",
    "client_host"            / String           * "The address that it connects from.",
    "subscribed_topic_names" / Array(TopicName) * "The topics that it wants.",
    "assignment"             / Assignment       * "What it reads now.",
    doc="A member of the group.",
)

DescribedGroup = Struct(
    "error_code"            / ErrorCode                      * "0, or why it is not described.",
    "error_message"         / Nullable(String)               * "Explains the error; null if there is none.",
    "group_id"              / GroupId                        * "Which group.",
    "group_state"           / String                         * '"Empty", "Stable" or "Dead"; empty after an error.',
    "group_epoch"           / Int32                          * "Grows when members, subscriptions or topics change.",
    "assignment_epoch"      / Int32                          * "The group epoch that the target assignment was made for.",
    "assignor_name"         / String                         * 'Who assigns, on the broker; usually "simple".',
    "members"               / Array(Member)                  * "Empty if the group has none.",
    "authorized_operations" / Default(Int32, -2_147_483_648) * "Bits of the operations allowed on it; the least int32 if not asked.",
    doc="A share group.",
)

ShareGroupDescribeResponse = ShareGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "Throttling in ms: 0, or how long the quota holds this client back.",
    "groups"           / Array(DescribedGroup) * "The groups asked for.",
)
