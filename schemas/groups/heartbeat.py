"""Heartbeat: a member of a classic group reports that it is alive and learns of rebalances."""

from schemas.vocabulary import Api, ErrorCode, GroupId, InstanceId, Int32, MemberId, Nullable, Since

Heartbeat = Api(
    12, "Heartbeat", versions=(0, 4), flexible=4, coordinator="group", modifies=True,
    doc="Sent several times per session timeout; a member that sends none for longer is removed. REBALANCE_IN_PROGRESS means that the member has to join again.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Static members: group_instance_id (KIP-345).",
        4: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors={
        "COORDINATOR_NOT_AVAILABLE": "The coordinator is not active, or can't write its log.",
        "NOT_COORDINATOR": "Another broker is the coordinator.",
        "ILLEGAL_GENERATION": "The generation is not the group's current one.",
        "INVALID_GROUP_ID": "The group id is empty.",
        "UNKNOWN_MEMBER_ID": "The group does not exist, or does not have the member.",
        "REBALANCE_IN_PROGRESS": "A rebalance has begun: the member must join again.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
    },
)

HeartbeatRequest = Heartbeat.request(
    "group_id"          / GroupId                        * "The member's group.",
    "generation_id"     / Int32                          * "The generation that the member joined.",
    "member_id"         / MemberId                       * "As the coordinator named it on joining.",
    "group_instance_id" / Since(3, Nullable(InstanceId)) * "A static member's own name; null for a dynamic one (KIP-345).",
)

HeartbeatResponse = Heartbeat.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                       * "0, or what the member must react to: REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID, …",
)
