"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Since, String, Struct

ListGroups = Api(
    16, "ListGroups", versions=(0, 5), flexible=3,
    about="TODO",
    changes={},
)

ListGroupsRequest = ListGroups.request(
    "states_filter" / Since(4, Array(String)) * "TODO",
    "types_filter"  / Since(5, Array(String)) * "TODO",
)

ListedGroup = Struct(
    "group_id"      / String                           * "TODO",
    "protocol_type" / String                           * "TODO",
    "group_state"   / Since(4, String, ignorable=True) * "TODO",
    "group_type"    / Since(5, String, ignorable=True) * "TODO",
    about="TODO",
)

ListGroupsResponse = ListGroups.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "TODO",
    "error_code"       / Int16                           * "TODO",
    "groups"           / Array(ListedGroup)              * "TODO",
)
