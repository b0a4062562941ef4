"""ConsumerGroupDescribe: the state of groups that run the consumer protocol of KIP-848."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    GroupId,
    InstanceId,
    Int8,
    Int32,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Uuid,
)

ConsumerGroupDescribe = Api(
    69, "ConsumerGroupDescribe", versions=(0, 1), flexible=0, coordinator="group",
    doc='For operators: state, epochs, members and assignments of groups of type "consumer". A group of another type is answered with GROUP_ID_NOT_FOUND; DescribeGroups serves classic ones.',
    changes={
        1: "Members have a type: whether they use the classic or the new protocol (KIP-1099).",
    },
    errors={
        **COORDINATOR,
        "INVALID_GROUP_ID": "The group id is empty.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe a topic of the group.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not describe the group.",
        "INVALID_REQUEST": "",
        "GROUP_ID_NOT_FOUND": "The group does not exist, or is not a consumer group.",
    },
)

ConsumerGroupDescribeRequest = ConsumerGroupDescribe.request(
    "group_ids"                     / Array(GroupId) * "The groups to describe; all must have their coordinator on this broker.",
    "include_authorized_operations" / Boolean        * "Whether to report what the client may do with each group.",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic's id, which survives no recreation of the topic.",
    "topic_name" / TopicName    * "Its name when the answer was made.",
    "partitions" / Array(Int32) * "Partition numbers of this topic.",
    doc="Some partitions of one topic.",
)

Assignment = Struct(
    "topic_partitions" / Array(TopicPartitions) * "By topic; empty for a member without partitions.",
    doc="A set of partitions that a member has or shall have.",
)

Member = Struct(
    "member_id"              / MemberId                                    * "The member's id, unique in its group.",
    "instance_id"            / Nullable(InstanceId)                        * "A static member's own name; null for a dynamic one.",
    "rack_id"                / Nullable(String)                            * "The rack that the member reports; null for none.",
    "member_epoch"           / Int32                                       * "The epoch of the assignment that this member has reached.",
    "client_id"              / String                                      * "What the client calls itself in its request headers.",
    "client_host"            / String                                      * "The address that its requests come from.",
    "subscribed_topic_names" / Array(TopicName)                            * "Topics subscribed to by name; may be empty beside a pattern.",
    "subscribed_topic_regex" / Nullable(String)                            * "Pattern (RE2) of topics subscribed to; null or empty for none.",
    "assignment"             / Assignment                                  * "What the member owns now.",
    "target_assignment"      / Assignment                                  * "What it shall own once the group has settled.",
    "member_type"            / Since(1, Default(Int8, -1), ignorable=True) * "0 uses the classic protocol, 1 the new one, -1 unknown (KIP-1099).",
    doc="One member, with the way it still has to go from its assignment to its target.",
)

DescribedGroup = Struct(
    "error_code"            / ErrorCode                      * "0, or why this group is not described.",
    "error_message"         / Nullable(String)               * "More about the error; null for none.",
    "group_id"              / GroupId                        * "The group asked for.",
    "group_state"           / String                         * '"Empty", "Assigning", "Reconciling", "Stable" or "Dead".',
    "group_epoch"           / Int32                          * "Grows whenever members, subscriptions or topics change.",
    "assignment_epoch"      / Int32                          * "The group epoch that the target assignment was computed for.",
    "assignor_name"         / String                         * 'The assignor on the broker that computes the targets, such as "uniform".',
    "members"               / Array(Member)                  * "Everybody in the group; empty on an error.",
    "authorized_operations" / Default(Int32, -2_147_483_648) * "One bit per ACL operation code; -2147483648 if not asked for.",
    doc="One group; while assignment_epoch is below group_epoch, a new target is due.",
)

ConsumerGroupDescribeResponse = ConsumerGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "How long a quota holds the client back, in ms; 0 for not at all.",
    "groups"           / Array(DescribedGroup) * "One answer for each group asked for.",
)
