"""ListGroups: the groups that one broker coordinates."""

from schemas.vocabulary import Api, Array, ErrorCode, GroupId, Int32, Since, String, Struct

ListGroups = Api(
    16, "ListGroups", versions=(0, 5), flexible=3, answered_by="every broker",
    doc="For operators. A broker knows only the groups that it coordinates, so a full list takes one request per broker.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Flexible lengths and tagged fields (KIP-482).",
        4: "States: as a filter, and of each group (KIP-518).",
        5: "Types: as a filter, and of each group (KIP-848).",
    },
    errors={
        "COORDINATOR_LOAD_IN_PROGRESS": "The broker is still loading a coordinator's log.",
        "COORDINATOR_NOT_AVAILABLE": "The broker's coordinator is not active.",
    },
)

ListGroupsRequest = ListGroups.request(
    "states_filter" / Since(4, Array(String)) * "Only groups in these states, in upper or lower case; empty for all (KIP-518).",
    "types_filter"  / Since(5, Array(String)) * 'Only "classic", "consumer", "share" or "streams" groups, in upper or lower case; empty for all (KIP-848).',
)

ListedGroup = Struct(
    "group_id"      / GroupId                          * "The group's id.",
    "protocol_type" / String                           * 'What it is for: "consumer", "connect", …; empty where only offsets are kept.',
    "group_state"   / Since(4, String, ignorable=True) * 'Its state now, in the words of its type, such as "Stable" (KIP-518).',
    "group_type"    / Since(5, String, ignorable=True) * '"classic", "consumer", "share" or "streams" (KIP-848).',
    doc="One group.",
)

ListGroupsResponse = ListGroups.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                       * "0, or why the list is missing or incomplete, such as COORDINATOR_LOAD_IN_PROGRESS.",
    "groups"           / Array(ListedGroup)              * "The groups that pass the filters and that the client may see.",
)
