"""TODO"""

from schemas.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
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

DescribeGroups = Api(
    15, "DescribeGroups", versions=(0, 6), flexible=5,
    about="TODO",
    changes={},
)

DescribeGroupsRequest = DescribeGroups.request(
    "groups"                        / Array(String)     * "TODO",
    "include_authorized_operations" / Since(3, Boolean) * "TODO",
)

DescribedGroupMember = Struct(
    "member_id"         / String                                     * "TODO",
    "group_instance_id" / Since(4, Nullable(String), ignorable=True) * "TODO",
    "client_id"         / String                                     * "TODO",
    "client_host"       / String                                     * "TODO",
    "member_metadata"   / Embedded(ConsumerProtocolSubscription)     * "TODO",
    "member_assignment" / Embedded(ConsumerProtocolAssignment)       * "TODO",
    about="TODO",
)

DescribedGroup = Struct(
    "error_code"            / Int16                                    * "TODO",
    "error_message"         / Since(6, Nullable(String))               * "TODO",
    "group_id"              / String                                   * "TODO",
    "group_state"           / String                                   * "TODO",
    "protocol_type"         / String                                   * "TODO",
    "protocol_data"         / String                                   * "TODO",
    "members"               / Array(DescribedGroupMember)              * "TODO",
    "authorized_operations" / Since(3, Default(Int32, -2_147_483_648)) * "TODO",
    about="TODO",
)

DescribeGroupsResponse = DescribeGroups.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "TODO",
    "groups"           / Array(DescribedGroup)           * "TODO",
)
