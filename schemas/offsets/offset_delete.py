"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, String, Struct

OffsetDelete = Api(
    47, "OffsetDelete", versions=(0, 0), flexible=None,
    about="TODO",
    changes={},
)

OffsetDeleteRequestPartition = Struct(
    "partition_index" / Int32 * "TODO",
    about="TODO",
)

OffsetDeleteRequestTopic = Struct(
    "name"       / String                              * "TODO",
    "partitions" / Array(OffsetDeleteRequestPartition) * "TODO",
    about="TODO",
)

OffsetDeleteRequest = OffsetDelete.request(
    "group_id" / String                          * "TODO",
    "topics"   / Array(OffsetDeleteRequestTopic) * "TODO",
)

OffsetDeleteResponsePartition = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

OffsetDeleteResponseTopic = Struct(
    "name"       / String                               * "TODO",
    "partitions" / Array(OffsetDeleteResponsePartition) * "TODO",
    about="TODO",
)

OffsetDeleteResponse = OffsetDelete.response(
    "error_code"       / Int16                            * "TODO",
    "throttle_time_ms" / Int32                            * "TODO",
    "topics"           / Array(OffsetDeleteResponseTopic) * "TODO",
)
