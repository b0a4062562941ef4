"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Nullable, String, Struct, Uuid

DeleteShareGroupState = Api(
    86, "DeleteShareGroupState", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

PartitionData = Struct(
    "partition" / Int32 * "TODO",
    about="TODO",
)

DeleteStateData = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

DeleteShareGroupStateRequest = DeleteShareGroupState.request(
    "group_id" / String                 * "TODO",
    "topics"   / Array(DeleteStateData) * "TODO",
)

PartitionResult = Struct(
    "partition"     / Int32            * "TODO",
    "error_code"    / Int16            * "TODO",
    "error_message" / Nullable(String) * "TODO",
    about="TODO",
)

DeleteStateResult = Struct(
    "topic_id"   / Uuid                   * "TODO",
    "partitions" / Array(PartitionResult) * "TODO",
    about="TODO",
)

DeleteShareGroupStateResponse = DeleteShareGroupState.response(
    "results" / Array(DeleteStateResult) * "TODO",
)
