"""SyncGroup: the leader hands in the assignment, every member takes its share.

In a rebalance the coordinator sends no answer until the leader's request has come.
"""

from schemas._group_protocol import MemberAssignment
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    GroupId,
    InstanceId,
    Int32,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
)

SyncGroup = Api(
    14, "SyncGroup", versions=(0, 5), flexible=4, coordinator="group", modifies=True,
    doc="Closes each rebalance of a classic group, after JoinGroup. The coordinator passes the leader's bytes on and does not look inside.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Static members: group_instance_id (KIP-345).",
        4: "Flexible lengths and tagged fields (KIP-482).",
        5: "Both sides name protocol type and protocol, to be checked (KIP-559).",
    },
    errors={
        "COORDINATOR_NOT_AVAILABLE": "The coordinator is not active, or can't write its log.",
        "NOT_COORDINATOR": "Another broker is the coordinator.",
        "ILLEGAL_GENERATION": "The generation is not the group's current one.",
        "INCONSISTENT_GROUP_PROTOCOL": "The protocol type or name differs from the group's, or is missing (from version 5 on).",
        "INVALID_GROUP_ID": "The group id is empty.",
        "UNKNOWN_MEMBER_ID": "The group does not exist, or does not have the member.",
        "REBALANCE_IN_PROGRESS": "Another rebalance has begun, or the coordinator is still loading its log: the member must join again.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
    },
)

SyncGroupRequestAssignment = Struct(
    "member_id"  / MemberId         * "Who it is for.",
    "assignment" / MemberAssignment * "What this member shall work on; a consumer's partitions.",
    doc="The share of one member.",
)

SyncGroupRequest = SyncGroup.request(
    "group_id"          / GroupId                                    * "The member's group.",
    "generation_id"     / Int32                                      * "The generation that the member joined.",
    "member_id"         / MemberId                                   * "As the coordinator named it on joining.",
    "group_instance_id" / Since(3, Nullable(InstanceId))             * "A static member's own name; null for a dynamic one (KIP-345).",
    "protocol_type"     / Since(5, Nullable(String), ignorable=True) * "As JoinGroup answered, checked by the coordinator; null to skip that (KIP-559).",
    "protocol_name"     / Since(5, Nullable(String), ignorable=True) * "As JoinGroup answered, checked by the coordinator; null to skip that (KIP-559).",
    "assignments"       / Array(SyncGroupRequestAssignment)          * "Everybody's share, from the leader; empty from the others.",
)

SyncGroupResponse = SyncGroup.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                  * "0, or why there is no assignment; REBALANCE_IN_PROGRESS means join again.",
    "protocol_type"    / Since(5, Nullable(String), ignorable=True) * "What the protocols are for; null on an error (KIP-559).",
    "protocol_name"    / Since(5, Nullable(String), ignorable=True) * "The protocol that the assignment is in; null on an error (KIP-559).",
    "assignment"       / MemberAssignment                           * "This member's share; empty on an error or for nothing to do.",
)
