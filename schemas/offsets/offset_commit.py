"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

OffsetCommit = Api(
    8, "OffsetCommit", versions=(0, 10), flexible=8,
    about="TODO",
    changes={},
)

OffsetCommitRequestPartition = Struct(
    "partition_index"        / Int32                                        * "TODO",
    "committed_offset"       / Int64                                        * "TODO",
    "committed_leader_epoch" / Since(6, Default(Int32, -1), ignorable=True) * "TODO",
    "commit_timestamp"       / Between(1, 1, Default(Int64, -1))            * "TODO",
    "committed_metadata"     / Default(Nullable(String), "")                * "TODO",
    about="TODO",
)

OffsetCommitRequestTopic = Struct(
    "name"       / Until(9, String, ignorable=True)    * "TODO",
    "topic_id"   / Since(10, Uuid, ignorable=True)     * "TODO",
    "partitions" / Array(OffsetCommitRequestPartition) * "TODO",
    about="TODO",
)

OffsetCommitRequest = OffsetCommit.request(
    "group_id"                      / String                                            * "TODO",
    "generation_id_or_member_epoch" / Since(1, Default(Int32, -1), ignorable=True)      * "TODO",
    "member_id"                     / Since(1, String, ignorable=True)                  * "TODO",
    "group_instance_id"             / Since(7, Nullable(String))                        * "TODO",
    "retention_time_ms"             / Between(2, 4, Default(Int64, -1), ignorable=True) * "TODO",
    "topics"                        / Array(OffsetCommitRequestTopic)                   * "TODO",
)

OffsetCommitResponsePartition = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

OffsetCommitResponseTopic = Struct(
    "name"       / Until(9, String, ignorable=True)     * "TODO",
    "topic_id"   / Since(10, Uuid, ignorable=True)      * "TODO",
    "partitions" / Array(OffsetCommitResponsePartition) * "TODO",
    about="TODO",
)

OffsetCommitResponse = OffsetCommit.response(
    "throttle_time_ms" / Since(3, Int32, ignorable=True)  * "TODO",
    "topics"           / Array(OffsetCommitResponseTopic) * "TODO",
)
