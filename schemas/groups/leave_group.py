"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Nullable, Since, String, Struct, Until

LeaveGroup = Api(
    13, "LeaveGroup", versions=(0, 5), flexible=4,
    about="TODO",
    changes={},
)

MemberIdentity = Struct(
    "member_id"         / String                                     * "TODO",
    "group_instance_id" / Nullable(String)                           * "TODO",
    "reason"            / Since(5, Nullable(String), ignorable=True) * "TODO",
    about="TODO",
)

LeaveGroupRequest = LeaveGroup.request(
    "group_id"  / String                          * "TODO",
    "member_id" / Until(2, String)                * "TODO",
    "members"   / Since(3, Array(MemberIdentity)) * "TODO",
)

MemberResponse = Struct(
    "member_id"         / String                        * "TODO",
    "group_instance_id" / Default(Nullable(String), "") * "TODO",
    "error_code"        / Int16                         * "TODO",
    about="TODO",
)

LeaveGroupResponse = LeaveGroup.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "TODO",
    "error_code"       / Int16                           * "TODO",
    "members"          / Since(3, Array(MemberResponse)) * "TODO",
)
