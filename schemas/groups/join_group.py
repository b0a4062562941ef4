"""JoinGroup: a member enters its group and learns its generation.

The answer waits until all members have joined, or their rebalance timeout is over. From v4 on a dynamic member's
first request is answered at once with MEMBER_ID_REQUIRED and a member id; it repeats the request with that id.
"""

from schemas._errors import COORDINATOR
from schemas._group_protocol import MemberSubscription
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

JoinGroup = Api(
    11, "JoinGroup", versions=(0, 9), flexible=6, coordinator="group", modifies=True,
    doc="Opens each rebalance of a classic group: the members offer protocols, the coordinator picks one that all of them know, and makes one member the leader. SyncGroup follows.",
    changes={
        1: "A rebalance timeout of its own, apart from the session timeout (KIP-62).",
        2: "The response reports how long it was throttled (KIP-124).",
        3: "Same layout; the broker throttles after it has answered (KIP-219).",
        4: "A first join is answered with MEMBER_ID_REQUIRED and an id (KIP-394).",
        5: "Static members: group_instance_id (KIP-345).",
        6: "Flexible lengths and tagged fields (KIP-482).",
        7: "The response names the protocol type; the protocol's name may be null (KIP-559).",
        8: "The member may say why it joins (KIP-800).",
        9: "A returning static leader may be instructed to skip the assignment (KIP-814).",
    },
    errors={
        **COORDINATOR,
        "INCONSISTENT_GROUP_PROTOCOL": "The protocol type is empty or differs from the group's, no protocol is common to all members, or the group is a share group, or a streams group with members.",
        "INVALID_GROUP_ID": "The group id is empty.",
        "UNKNOWN_MEMBER_ID": "The group does not exist, or does not have the member.",
        "INVALID_SESSION_TIMEOUT": "The session timeout is below group.min.session.timeout.ms or above group.max.session.timeout.ms.",
        "REBALANCE_IN_PROGRESS": "The group was converted to a consumer group while the request waited.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "",
        "MEMBER_ID_REQUIRED": "A dynamic member joins without a member id; the response has the id to join with (from version 4 on).",
        "GROUP_MAX_SIZE_REACHED": "The group already has group.max.size members.",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
    },
)

JoinGroupRequestProtocol = Struct(
    "name"     / String                                 * 'An assignment protocol that the member can run, such as "range".',
    "metadata" / MemberSubscription                     * "Its subscription under this protocol; opaque to the coordinator.",
    doc='One protocol on offer. The metadata is a subscription only where protocol_type is "consumer".',
)

JoinGroupRequest = JoinGroup.request(
    "group_id"             / GroupId                                      * "The group to join.",
    "session_timeout_ms"   / Int32                                        * "Silence after which the member counts as dead, in ms.",
    "rebalance_timeout_ms" / Since(1, Default(Int32, -1), ignorable=True) * "How long a rebalance waits for this member, in ms; v0 uses the session timeout.",
    "member_id"            / MemberId                                     * "Empty on a first join.",
    "group_instance_id"    / Since(5, Nullable(InstanceId))               * "A static member's own name; null for a dynamic one (KIP-345).",
    "protocol_type"        / String                                       * 'What the protocols are for: "consumer", "connect", …',
    "protocols"            / Array(JoinGroupRequestProtocol)              * "Most preferred first.",
    "reason"               / Since(8, Nullable(String), ignorable=True)   * "Why the member joins, for the broker's log; null if not given (KIP-800).",
)

JoinGroupResponseMember = Struct(
    "member_id"         / MemberId                                       * "The member's id, for the leader's answer in SyncGroup.",
    "group_instance_id" / Since(5, Nullable(InstanceId), ignorable=True) * "A static member's own name; null for a dynamic one (KIP-345).",
    "metadata"          / MemberSubscription                             * "Its subscription under the chosen protocol.",
    doc="One member, as the leader needs to know it.",
)

JoinGroupResponse = JoinGroup.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True)            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                  * "0, or why the join was refused.",
    "generation_id"    / Default(Int32, -1)                         * "The generation joined, to be sent from now on; -1 on an error.",
    "protocol_type"    / Since(7, Nullable(String), ignorable=True) * "What the protocols are for; null on an error (KIP-559).",
    "protocol_name"    / Default(Nullable(String, since=7), "")     * "The protocol chosen; null on an error, empty before v7.",
    "leader"           / MemberId                                   * "Member id of the leader; the member that finds its own id here assigns.",
    "skip_assignment"  / Since(9, Boolean)                          * "True: the leader need not assign, the old assignment holds (KIP-814).",
    "member_id"        / MemberId                                   * "The id to go by; with MEMBER_ID_REQUIRED, the one to repeat the request with.",
    "members"          / Array(JoinGroupResponseMember)             * "All members for the leader; empty for the others.",
)
