"""TODO"""

from schemas.consumer_protocol import ConsumerProtocolSubscription
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Embedded,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
)

JoinGroup = Api(
    11, "JoinGroup", versions=(0, 9), flexible=6,
    about="TODO",
    changes={},
)

JoinGroupRequestProtocol = Struct(
    "name"     / String                                 * "TODO",
    "metadata" / Embedded(ConsumerProtocolSubscription) * "TODO",
    about="TODO",
)

JoinGroupRequest = JoinGroup.request(
    "group_id"             / String                                       * "TODO",
    "session_timeout_ms"   / Int32                                        * "TODO",
    "rebalance_timeout_ms" / Since(1, Default(Int32, -1), ignorable=True) * "TODO",
    "member_id"            / String                                       * "TODO",
    "group_instance_id"    / Since(5, Nullable(String))                   * "TODO",
    "protocol_type"        / String                                       * "TODO",
    "protocols"            / Array(JoinGroupRequestProtocol)              * "TODO",
    "reason"               / Since(8, Nullable(String), ignorable=True)   * "TODO",
)

JoinGroupResponseMember = Struct(
    "member_id"         / String                                     * "TODO",
    "group_instance_id" / Since(5, Nullable(String), ignorable=True) * "TODO",
    "metadata"          / Embedded(ConsumerProtocolSubscription)     * "TODO",
    about="TODO",
)

JoinGroupResponse = JoinGroup.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True)            * "TODO",
    "error_code"       / Int16                                      * "TODO",
    "generation_id"    / Default(Int32, -1)                         * "TODO",
    "protocol_type"    / Since(7, Nullable(String), ignorable=True) * "TODO",
    "protocol_name"    / Default(Nullable(String, since=7), "")     * "TODO",
    "leader"           / String                                     * "TODO",
    "skip_assignment"  / Since(9, Boolean)                          * "TODO",
    "member_id"        / String                                     * "TODO",
    "members"          / Array(JoinGroupResponseMember)             * "TODO",
)
