"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

DescribeShareGroupOffsets = Api(
    90, "DescribeShareGroupOffsets", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

DescribeShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

DescribeShareGroupOffsetsRequestGroup = Struct(
    "group_id" / String                                                           * "TODO",
    "topics"   / Default(Nullable(Array(DescribeShareGroupOffsetsRequestTopic)), []) * "TODO",
    about="TODO",
)

DescribeShareGroupOffsetsRequest = DescribeShareGroupOffsets.request(
    "groups" / Array(DescribeShareGroupOffsetsRequestGroup) * "TODO",
)

DescribeShareGroupOffsetsResponsePartition = Struct(
    "partition_index" / Int32                                        * "TODO",
    "start_offset"    / Int64                                        * "TODO",
    "leader_epoch"    / Int32                                        * "TODO",
    "lag"             / Since(1, Default(Int64, -1), ignorable=True) * "TODO",
    "error_code"      / Int16                                        * "TODO",
    "error_message"   / Nullable(String)                             * "TODO",
    about="TODO",
)

DescribeShareGroupOffsetsResponseTopic = Struct(
    "topic_name" / String                                            * "TODO",
    "topic_id"   / Uuid                                              * "TODO",
    "partitions" / Array(DescribeShareGroupOffsetsResponsePartition) * "TODO",
    about="TODO",
)

DescribeShareGroupOffsetsResponseGroup = Struct(
    "group_id"      / String                                        * "TODO",
    "topics"        / Array(DescribeShareGroupOffsetsResponseTopic) * "TODO",
    "error_code"    / Int16                                         * "TODO",
    "error_message" / Nullable(String)                              * "TODO",
    about="TODO",
)

DescribeShareGroupOffsetsResponse = DescribeShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                         * "TODO",
    "groups"           / Array(DescribeShareGroupOffsetsResponseGroup) * "TODO",
)
