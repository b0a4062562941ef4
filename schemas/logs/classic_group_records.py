"""Classic groups, in __consumer_offsets: the whole group in one record, written at the end of each rebalance.

A record without a value means that the group is gone.
"""

from schemas._group_protocol import MemberAssignment, MemberSubscription
from schemas.vocabulary import (
    Array,
    Data,
    Default,
    GroupId,
    InstanceId,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
)

GroupMetadataKey = Data("GroupMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=2, role="key", doc="Which group it is.")(
    "group" / GroupId * "The group's id.",
)

MemberMetadata = Struct(
    "member_id"         / MemberId                                       * "The member's id.",
    "group_instance_id" / Since(3, Nullable(InstanceId), ignorable=True) * "A static member's own name; null for a dynamic one (KIP-345).",
    "client_id"         / String                                         * "What the member's client calls itself.",
    "client_host"       / String                                         * "The address that the member last came from.",
    "rebalance_timeout" / Since(1, Default(Int32, -1), ignorable=True)   * "How long a rebalance waits for it, in ms; -1: the session timeout holds.",
    "session_timeout"   / Int32                                          * "Silence after which it counts as dead, in ms.",
    "subscription"      / MemberSubscription                             * "What it offered under the chosen protocol; opaque to the coordinator.",
    "assignment"        / MemberAssignment                               * "What the leader gave it; opaque to the coordinator.",
    doc="One member of the generation.",
)

GroupMetadataValue = Data("GroupMetadataValue", versions=(0, 4), flexible=4, log="consumer_offsets", record_type=2, doc="A classic group with its members and their assignments. v1 added the rebalance timeout, v2 the time of the state, v3 static members (KIP-345); v4 is flexible (KIP-915).")(
    "protocol_type"           / String                                       * 'What the group is for: "consumer", "connect", …; empty for none.',
    "generation"              / Int32                                        * "Number of the rebalances so far, which members must name.",
    "protocol"                / Default(Nullable(String), "")                * "The protocol chosen; null while the group has no members.",
    "leader"                  / Default(Nullable(MemberId), "")              * "Member id of the leader; null while the group has no members.",
    "current_state_timestamp" / Since(2, Default(Int64, -1), ignorable=True) * "Since when the group is in its state, in ms since the epoch; -1 if unknown.",
    "members"                 / Array(MemberMetadata)                        * "All members; empty for a group that is kept for its offsets.",
)
