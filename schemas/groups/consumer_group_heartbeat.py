"""ConsumerGroupHeartbeat: all that a member of a consumer group sends and receives (KIP-848).

It joins with epoch 0, and leaves with -1, or with -2 if it is static and will be back. Between, a null field
means: as I said last time. On a first heartbeat, and after an error, everything is sent.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    GroupId,
    InstanceId,
    Int32,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Uuid,
)

ConsumerGroupHeartbeat = Api(
    68, "ConsumerGroupHeartbeat", versions=(0, 1), flexible=0, coordinator="group", modifies=True,
    doc="Joins, keeps, reconciles and leaves in one API; it replaces JoinGroup, SyncGroup, Heartbeat and LeaveGroup. The broker assigns, and each member moves at its own pace.",
    changes={
        1: "Topics by pattern (KIP-848); the member chooses its own id before it joins (KIP-1082).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_MEMBER_ID": "The group does not have the member.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe a topic that it subscribes to by name.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "The consumer protocol is not enabled at the broker.",
        "INVALID_REQUEST": "A field is missing or out of range, such as an empty group id, or no subscription on joining.",
        "GROUP_ID_NOT_FOUND": "A member that has joined names a group that does not exist, or the group has another type and can't be converted.",
        "GROUP_MAX_SIZE_REACHED": "The group already has group.consumer.max.size members.",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
        "FENCED_MEMBER_EPOCH": "The member epoch is neither the member's current one, nor the previous one of a member that owns only partitions assigned to it.",
        "UNRELEASED_INSTANCE_ID": "Another member has the group instance id and has not left.",
        "UNSUPPORTED_ASSIGNOR": "The broker does not have the server assignor.",
        "INVALID_REGULAR_EXPRESSION": "The topic pattern is not valid in RE2's syntax.",
    },
)

ConsumerGroupHeartbeatRequestTopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic, by its id.",
    "partitions" / Array(Int32) * "Partition numbers that the member owns.",
    doc="What the member owns of one topic.",
)

ConsumerGroupHeartbeatRequest = ConsumerGroupHeartbeat.request(
    "group_id"               / GroupId                                                       * "The group to join or to stay in.",
    "member_id"              / MemberId                                                      * "In v1 chosen by the member; in v0 empty on joining, then as answered.",
    "member_epoch"           / Int32                                                         * "The epoch last heard; 0 joins, -1 leaves, -2 leaves for now as a static member.",
    "instance_id"            / Nullable(InstanceId)                                          * "A static member's own name; null for a dynamic one.",
    "rack_id"                / Nullable(String)                                              * "The rack the member runs in; null if it has none or said so before.",
    "rebalance_timeout_ms"   / Default(Int32, -1)                                            * "Time to give up revoked partitions, in ms; -1 if unchanged.",
    "subscribed_topic_names" / Nullable(Array(TopicName))                                    * "The topics wanted; null if unchanged.",
    "subscribed_topic_regex" / Since(1, Nullable(String))                                    * "A pattern (RE2) of topics; empty drops it, null if unchanged.",
    "server_assignor"        / Nullable(String)                                              * "The broker's assignor that is preferred; null leaves it to the group.",
    "topic_partitions"       / Nullable(Array(ConsumerGroupHeartbeatRequestTopicPartitions)) * "All that the member owns now; null if unchanged.",
)

ConsumerGroupHeartbeatResponseTopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic, by its id.",
    "partitions" / Array(Int32) * "Partition numbers that the member shall own.",
    doc="What the member shall own of one topic.",
)

Assignment = Struct(
    "topic_partitions" / Array(ConsumerGroupHeartbeatResponseTopicPartitions) * "All of it, not a difference; empty to own nothing.",
    doc="The assignment to move to: revoke first what is missing here, then take up the rest.",
)

ConsumerGroupHeartbeatResponse = ConsumerGroupHeartbeat.response(
    "throttle_time_ms"      / Int32                * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"            / ErrorCode            * "0, or why the heartbeat failed; UNKNOWN_MEMBER_ID and FENCED_MEMBER_EPOCH mean rejoin.",
    "error_message"         / Nullable(String)     * "More about the error; null for none.",
    "member_id"             / Nullable(MemberId)   * "The id to go by; null where it is not repeated, and on an error.",
    "member_epoch"          / Int32                * "The epoch to send with the next heartbeat.",
    "heartbeat_interval_ms" / Int32                * "When the next heartbeat is due, in ms.",
    "assignment"            / Nullable(Assignment) * "The assignment to move to; null if nothing changed.",
)
