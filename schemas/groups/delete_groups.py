"""DeleteGroups: empty groups vanish, with their committed offsets (KIP-229)."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import Api, Array, ErrorCode, GroupId, Int32, Nullable, Since, String, Struct

DeleteGroups = Api(
    42, "DeleteGroups", versions=(0, 3), flexible=2, coordinator="group", modifies=True,
    doc="For operators: removes groups that have no members, offsets included. Each group succeeds or fails by itself.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "The response explains each error.",
    },
    errors={
        **COORDINATOR,
        "INVALID_GROUP_ID": "",
        "GROUP_AUTHORIZATION_FAILED": "The client may not delete the group.",
        "NON_EMPTY_GROUP": "The group has members.",
        "GROUP_ID_NOT_FOUND": "The group does not exist.",
        "GROUP_DELETION_FAILED": "",
    },
)

DeleteGroupsRequest = DeleteGroups.request(
    "groups_names" / Array(GroupId) * "The groups to delete; all must have their coordinator on this broker.",
)

DeletableGroupResult = Struct(
    "group_id"      / GroupId                                    * "The group asked for.",
    "error_code"    / ErrorCode                                  * "0, or why it stays: NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, …",
    "error_message" / Since(3, Nullable(String), ignorable=True) * "Explains the error; null if there is none.",
    doc="What became of one group.",
)

DeleteGroupsResponse = DeleteGroups.response(
    "throttle_time_ms" / Int32                       * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(DeletableGroupResult) * "One outcome for each group asked for.",
)
