"""DescribeGroups: state and members of classic groups.

Up to v5 a group that does not exist is described as "Dead", without an error.
"""

from schemas._errors import COORDINATOR
from schemas._group_protocol import MemberAssignment, MemberSubscription
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
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
)

DescribeGroups = Api(
    15, "DescribeGroups", versions=(0, 6), flexible=5, coordinator="group",
    doc="For operators: the state, protocol and members of classic groups, of any protocol type. ConsumerGroupDescribe and its kin serve the newer types.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "On request, what the client may do with each group (KIP-430).",
        4: "Static members: group_instance_id (KIP-345).",
        5: "Flexible lengths and tagged fields (KIP-482).",
        6: 'An error message; a missing group gets GROUP_ID_NOT_FOUND, no longer only the state "Dead" (KIP-1043).',
    },
    errors={
        **COORDINATOR,
        "INVALID_GROUP_ID": "",
        "GROUP_AUTHORIZATION_FAILED": "The client may not describe the group.",
        "GROUP_ID_NOT_FOUND": "The group does not exist, or is not a classic group (from version 6 on).",
    },
)

DescribeGroupsRequest = DescribeGroups.request(
    "groups"                        / Array(GroupId)    * "The groups to describe; all must have their coordinator on this broker.",
    "include_authorized_operations" / Since(3, Boolean) * "Whether to report what the client may do with each group (KIP-430).",
)

DescribedGroupMember = Struct(
    "member_id"         / MemberId                                       * "The member's id, unique in its group.",
    "group_instance_id" / Since(4, Nullable(InstanceId), ignorable=True) * "A static member's own name; null for a dynamic one (KIP-345).",
    "client_id"         / String                                         * "What the client calls itself in its request headers.",
    "client_host"       / String                                         * "The address that its requests come from.",
    "member_metadata"   / MemberSubscription                             * "Its subscription to the chosen protocol; empty unless the group is stable.",
    "member_assignment" / MemberAssignment                               * "What the leader gave it; empty unless the group is stable.",
    doc="One member. The two byte fields have the format of the protocol type, a consumer's by default.",
)

DescribedGroup = Struct(
    "error_code"            / ErrorCode                                * "0, or why this group is not described; of a missing one 0 up to v5, GROUP_ID_NOT_FOUND since v6.",
    "error_message"         / Since(6, Nullable(String))               * "More about the error; null for none (KIP-1043).",
    "group_id"              / GroupId                                  * "The group asked for.",
    "group_state"           / String                                   * '"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"; "Dead" of a missing group, in all versions.',
    "protocol_type"         / String                                   * 'What the group is for: "consumer", "connect", …; empty if it never had members.',
    "protocol_data"         / String                                   * 'The assignment protocol that was chosen, such as "range"; empty unless stable.',
    "members"               / Array(DescribedGroupMember)              * "Everybody in the group.",
    "authorized_operations" / Since(3, Default(Int32, -2_147_483_648)) * "One bit per ACL operation code; -2147483648 if not asked for (KIP-430).",
    doc="One group as its coordinator sees it.",
)

DescribeGroupsResponse = DescribeGroups.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "How long a quota holds the client back, in ms; 0 for not at all.",
    "groups"           / Array(DescribedGroup)           * "One answer for each group asked for.",
)
