"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
)

DescribeLogDirs = Api(
    35, "DescribeLogDirs", versions=(0, 4), flexible=2,
    about="TODO",
    changes={},
)

DescribableLogDirTopic = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

DescribeLogDirsRequest = DescribeLogDirs.request(
    "topics" / Default(Nullable(Array(DescribableLogDirTopic)), []) * "TODO",
)

DescribeLogDirsPartition = Struct(
    "partition_index" / Int32   * "TODO",
    "partition_size"  / Int64   * "TODO",
    "offset_lag"      / Int64   * "TODO",
    "is_future_key"   / Boolean * "TODO",
    about="TODO",
)

DescribeLogDirsTopic = Struct(
    "name"       / String                          * "TODO",
    "partitions" / Array(DescribeLogDirsPartition) * "TODO",
    about="TODO",
)

DescribeLogDirsResult = Struct(
    "error_code"   / Int16                                        * "TODO",
    "log_dir"      / String                                       * "TODO",
    "topics"       / Array(DescribeLogDirsTopic)                  * "TODO",
    "total_bytes"  / Since(4, Default(Int64, -1), ignorable=True) * "TODO",
    "usable_bytes" / Since(4, Default(Int64, -1), ignorable=True) * "TODO",
    about="TODO",
)

DescribeLogDirsResponse = DescribeLogDirs.response(
    "throttle_time_ms" / Int32                           * "TODO",
    "error_code"       / Since(3, Int16, ignorable=True) * "TODO",
    "results"          / Array(DescribeLogDirsResult)    * "TODO",
)
