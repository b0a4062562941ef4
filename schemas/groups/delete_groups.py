"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, String, Struct

DeleteGroups = Api(
    42, "DeleteGroups", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

DeleteGroupsRequest = DeleteGroups.request(
    "groups_names" / Array(String) * "TODO",
)

DeletableGroupResult = Struct(
    "group_id"   / String * "TODO",
    "error_code" / Int16  * "TODO",
    about="TODO",
)

DeleteGroupsResponse = DeleteGroups.response(
    "throttle_time_ms" / Int32                       * "TODO",
    "results"          / Array(DeletableGroupResult) * "TODO",
)
