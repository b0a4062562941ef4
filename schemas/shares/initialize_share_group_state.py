"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, Int64, Nullable, String, Struct, Uuid

InitializeShareGroupState = Api(
    83, "InitializeShareGroupState", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

PartitionData = Struct(
    "partition"    / Int32 * "TODO",
    "state_epoch"  / Int32 * "TODO",
    "start_offset" / Int64 * "TODO",
    about="TODO",
)

InitializeStateData = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

InitializeShareGroupStateRequest = InitializeShareGroupState.request(
    "group_id" / String                     * "TODO",
    "topics"   / Array(InitializeStateData) * "TODO",
)

PartitionResult = Struct(
    "partition"     / Int32            * "TODO",
    "error_code"    / Int16            * "TODO",
    "error_message" / Nullable(String) * "TODO",
    about="TODO",
)

InitializeStateResult = Struct(
    "topic_id"   / Uuid                   * "TODO",
    "partitions" / Array(PartitionResult) * "TODO",
    about="TODO",
)

InitializeShareGroupStateResponse = InitializeShareGroupState.response(
    "results" / Array(InitializeStateResult) * "TODO",
)
