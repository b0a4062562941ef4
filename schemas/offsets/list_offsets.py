"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Int64, Since, String, Struct, Until

ListOffsets = Api(
    2, "ListOffsets", versions=(0, 11), flexible=6,
    about="TODO",
    changes={},
)

ListOffsetsPartition = Struct(
    "partition_index"      / Int32                                        * "TODO",
    "current_leader_epoch" / Since(4, Default(Int32, -1), ignorable=True) * "TODO",
    "timestamp"            / Int64                                        * "TODO",
    "max_num_offsets"      / Until(0, Default(Int32, 1))                  * "TODO",
    about="TODO",
)

ListOffsetsTopic = Struct(
    "name"       / String                      * "TODO",
    "partitions" / Array(ListOffsetsPartition) * "TODO",
    about="TODO",
)

ListOffsetsRequest = ListOffsets.request(
    "replica_id"      / Int32                            * "TODO",
    "isolation_level" / Since(2, Int8)                   * "TODO",
    "topics"          / Array(ListOffsetsTopic)          * "TODO",
    "timeout_ms"      / Since(10, Int32, ignorable=True) * "TODO",
)

ListOffsetsPartitionResponse = Struct(
    "partition_index"   / Int32                        * "TODO",
    "error_code"        / Int16                        * "TODO",
    "old_style_offsets" / Until(0, Array(Int64))       * "TODO",
    "timestamp"         / Since(1, Default(Int64, -1)) * "TODO",
    "offset"            / Since(1, Default(Int64, -1)) * "TODO",
    "leader_epoch"      / Since(4, Default(Int32, -1)) * "TODO",
    about="TODO",
)

ListOffsetsTopicResponse = Struct(
    "name"       / String                              * "TODO",
    "partitions" / Array(ListOffsetsPartitionResponse) * "TODO",
    about="TODO",
)

ListOffsetsResponse = ListOffsets.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True) * "TODO",
    "topics"           / Array(ListOffsetsTopicResponse) * "TODO",
)
