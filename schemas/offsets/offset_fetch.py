"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
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

OffsetFetch = Api(
    9, "OffsetFetch", versions=(0, 10), flexible=6,
    about="TODO",
    changes={},
)

OffsetFetchRequestTopic = Struct(
    "name"              / String       * "TODO",
    "partition_indexes" / Array(Int32) * "TODO",
    about="TODO",
)

OffsetFetchRequestTopics = Struct(
    "name"              / Until(9, String, ignorable=True) * "TODO",
    "topic_id"          / Since(10, Uuid, ignorable=True)  * "TODO",
    "partition_indexes" / Array(Int32)                     * "TODO",
    about="TODO",
)

OffsetFetchRequestGroup = Struct(
    "group_id"     / String                                                 * "TODO",
    "member_id"    / Since(9, Nullable(String), ignorable=True)             * "TODO",
    "member_epoch" / Since(9, Default(Int32, -1), ignorable=True)           * "TODO",
    "topics"       / Default(Nullable(Array(OffsetFetchRequestTopics)), []) * "TODO",
    about="TODO",
)

OffsetFetchRequest = OffsetFetch.request(
    "group_id"       / Until(7, String)                                                 * "TODO",
    "topics"         / Until(7, Default(Nullable(Array(OffsetFetchRequestTopic), since=2), [])) * "TODO",
    "groups"         / Since(8, Array(OffsetFetchRequestGroup))                         * "TODO",
    "require_stable" / Since(7, Boolean)                                                * "TODO",
)

OffsetFetchResponsePartition = Struct(
    "partition_index"        / Int32                                        * "TODO",
    "committed_offset"       / Int64                                        * "TODO",
    "committed_leader_epoch" / Since(5, Default(Int32, -1), ignorable=True) * "TODO",
    "metadata"               / Default(Nullable(String), "")                * "TODO",
    "error_code"             / Int16                                        * "TODO",
    about="TODO",
)

OffsetFetchResponseTopic = Struct(
    "name"       / String                              * "TODO",
    "partitions" / Array(OffsetFetchResponsePartition) * "TODO",
    about="TODO",
)

OffsetFetchResponsePartitions = Struct(
    "partition_index"        / Int32                         * "TODO",
    "committed_offset"       / Int64                         * "TODO",
    "committed_leader_epoch" / Default(Int32, -1)            * "TODO",
    "metadata"               / Default(Nullable(String), "") * "TODO",
    "error_code"             / Int16                         * "TODO",
    about="TODO",
)

OffsetFetchResponseTopics = Struct(
    "name"       / Until(9, String, ignorable=True)     * "TODO",
    "topic_id"   / Since(10, Uuid, ignorable=True)      * "TODO",
    "partitions" / Array(OffsetFetchResponsePartitions) * "TODO",
    about="TODO",
)

OffsetFetchResponseGroup = Struct(
    "group_id"   / String                           * "TODO",
    "topics"     / Array(OffsetFetchResponseTopics) * "TODO",
    "error_code" / Int16                            * "TODO",
    about="TODO",
)

OffsetFetchResponse = OffsetFetch.response(
    "throttle_time_ms" / Since(3, Int32, ignorable=True)           * "TODO",
    "topics"           / Until(7, Array(OffsetFetchResponseTopic)) * "TODO",
    "error_code"       / Between(2, 7, Int16, ignorable=True)      * "TODO",
    "groups"           / Since(8, Array(OffsetFetchResponseGroup)) * "TODO",
)
