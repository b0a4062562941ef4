"""LeaveGroup: members go at once, without waiting for their session to end.

Up to v2 a member takes leave itself; from v3 on anybody entitled may take leave for several.
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
    Until,
)

LeaveGroup = Api(
    13, "LeaveGroup", versions=(0, 5), flexible=4, coordinator="group", modifies=True,
    doc="Ends memberships of a classic group; a rebalance follows. Operators use it to remove static members, who don't take leave when they stop.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Several members at once, static ones by their names (KIP-345).",
        4: "Flexible lengths and tagged fields (KIP-482).",
        5: "Each member may have a reason (KIP-800).",
    },
    errors={
        **COORDINATOR,
        "INVALID_GROUP_ID": "The group id is empty.",
        "UNKNOWN_MEMBER_ID": "The group does not exist, or does not have the member.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
    },
)

MemberIdentity = Struct(
    "member_id"         / MemberId                                   * "The member's id; empty to go by group_instance_id alone.",
    "group_instance_id" / Nullable(InstanceId)                       * "A static member's own name; null for a dynamic one.",
    "reason"            / Since(5, Nullable(String), ignorable=True) * "Why it leaves, for the broker's log; null if not given (KIP-800).",
    doc="One member that leaves.",
)

LeaveGroupRequest = LeaveGroup.request(
    "group_id"  / GroupId                         * "The group to leave.",
    "member_id" / Until(2, MemberId)              * "The one who leaves; v3+ has members.",
    "members"   / Since(3, Array(MemberIdentity)) * "All who leave (KIP-345).",
)

MemberResponse = Struct(
    "member_id"         / MemberId                          * "As in the request.",
    "group_instance_id" / Default(Nullable(InstanceId), "") * "As in the request.",
    "error_code"        / ErrorCode                         * "0, or why this member could not leave.",
    doc="What became of one member.",
)

LeaveGroupResponse = LeaveGroup.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                       * "0, or why no member left; v3+ also has errors of single members.",
    "members"          / Since(3, Array(MemberResponse)) * "One outcome for each member of the request.",
)
