"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Since, String, Struct

OffsetForLeaderEpoch = Api(
    23, "OffsetForLeaderEpoch", versions=(0, 4), flexible=4,
    about="TODO",
    changes={},
)

OffsetForLeaderPartition = Struct(
    "partition"            / Int32                                        * "TODO",
    "current_leader_epoch" / Since(2, Default(Int32, -1), ignorable=True) * "TODO",
    "leader_epoch"         / Int32                                        * "TODO",
    about="TODO",
)

OffsetForLeaderTopic = Struct(
    "topic"      / String                          * "TODO",
    "partitions" / Array(OffsetForLeaderPartition) * "TODO",
    about="TODO",
)

OffsetForLeaderEpochRequest = OffsetForLeaderEpoch.request(
    "replica_id" / Since(3, Default(Int32, -2), ignorable=True) * "TODO",
    "topics"     / Array(OffsetForLeaderTopic)                  * "TODO",
)

EpochEndOffset = Struct(
    "error_code"   / Int16                                        * "TODO",
    "partition"    / Int32                                        * "TODO",
    "leader_epoch" / Since(1, Default(Int32, -1), ignorable=True) * "TODO",
    "end_offset"   / Default(Int64, -1)                           * "TODO",
    about="TODO",
)

OffsetForLeaderTopicResult = Struct(
    "topic"      / String                * "TODO",
    "partitions" / Array(EpochEndOffset) * "TODO",
    about="TODO",
)

OffsetForLeaderEpochResponse = OffsetForLeaderEpoch.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True)   * "TODO",
    "topics"           / Array(OffsetForLeaderTopicResult) * "TODO",
)
