"""DeleteGroups: empty groups vanish, with their committed offsets (KIP-229)."""

from schemas.vocabulary import Api, Array, Int16, Int32, String, Struct

DeleteGroups = Api(
    42, "DeleteGroups", versions=(0, 2), flexible=2, coordinator="group",
    about="For operators: removes groups that have no members, offsets included. Each group succeeds or fails by itself.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
)

DeleteGroupsRequest = DeleteGroups.request(
    "groups_names" / Array(String) * "The groups to delete; all must have their coordinator on this broker.",
)

DeletableGroupResult = Struct(
    "group_id"   / String * "The group asked for.",
    "error_code" / Int16  * "0, or why it stays: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, …",
    about="What became of one group.",
)

DeleteGroupsResponse = DeleteGroups.response(
    "throttle_time_ms" / Int32                       * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(DeletableGroupResult) * "One outcome for each group asked for.",
)
