"""ShareGroupHeartbeat: a member of a share group joins, stays and leaves.

Partitions are shared, so no member has to give one up before another gets it: the assignment simply applies.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
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

ShareGroupHeartbeat = Api(
    76, "ShareGroupHeartbeat", versions=(0, 1), flexible=0, coordinator="group", modifies=True,
    doc="Keeps a member in its share group, reports what it wants and returns its assignment (KIP-932).",
    changes={
        1: "Same layout; the stable version after the early access of Kafka 4.0 (KIP-932).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_MEMBER_ID": "The group does not have the member.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe a topic that it subscribes to.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "Share groups are not enabled at the broker.",
        "INVALID_REQUEST": "A field is missing or out of range, such as an empty group id, or no subscription on joining.",
        "GROUP_ID_NOT_FOUND": "A member that has joined names a group that does not exist, or the group is not a share group.",
        "GROUP_MAX_SIZE_REACHED": "The group already has group.share.max.size members.",
        "FENCED_MEMBER_EPOCH": "The member epoch is neither the member's current one nor the previous one.",
    },
)

ShareGroupHeartbeatRequest = ShareGroupHeartbeat.request(
    "group_id"               / GroupId                    * "The share group to be in.",
    "member_id"              / MemberId                   * "A UUID that the member picks itself and keeps for its lifetime.",
    "member_epoch"           / Int32                      * "0 joins, -1 leaves; otherwise the epoch last received.",
    "rack_id"                / Nullable(String)           * "The member's rack; null if it has none or it is unchanged.",
    "subscribed_topic_names" / Nullable(Array(TopicName)) * "Null if unchanged since the last heartbeat.",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

Assignment = Struct(
    "topic_partitions" / Array(TopicPartitions) * "The partitions, a topic each.",
    doc="What a member shall read.",
)

ShareGroupHeartbeatResponse = ShareGroupHeartbeat.response(
    "throttle_time_ms"      / Int32                * "Throttling in ms: 0, or how long the quota holds this client back.",
    "error_code"            / ErrorCode            * "0, or why the heartbeat was refused.",
    "error_message"         / Nullable(String)     * "Explains the error; null if there is none.",
    "member_id"             / Nullable(MemberId)   * "The member that is answered; may be null.",
    "member_epoch"          / Int32                * "To be sent with the next heartbeat.",
    "heartbeat_interval_ms" / Int32                * "When to send the next heartbeat, in ms.",
    "assignment"            / Nullable(Assignment) * "All that the member shall read; null if unchanged.",
)
