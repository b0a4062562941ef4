"""DescribeLogDirs: what a broker keeps in which directory, and how large it is."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
)

DescribeLogDirs = Api(
    35, "DescribeLogDirs", versions=(0, 5), flexible=2, deprecated=(0, 0), answered_by="every broker",
    doc="Lists the log directories of the broker asked, with the replicas in them (KIP-113).",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "The response has an error for the whole request (KIP-784).",
        4: "The size and the free space of each directory's volume (KIP-827).",
        5: "Whether a directory takes new replicas (KIP-1066).",
    },
    errors=("CLUSTER_AUTHORIZATION_FAILED", "KAFKA_STORAGE_ERROR"),
)

DescribableLogDirTopic = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of its partitions.",
    doc="The partitions of one topic asked about.",
)

DescribeLogDirsRequest = DescribeLogDirs.request(
    "topics" / Default(Nullable(Array(DescribableLogDirTopic)), []) * "Which partitions to list; null for all, empty for none.",
)

DescribeLogDirsPartition = Struct(
    "partition_index" / Int32   * "The partition's number.",
    "partition_size"  / Int64   * "Size of all its log segments here, in bytes.",
    "offset_lag"      / Int64   * "Its lag to the high watermark in records, or a future copy's to the current log.",
    "is_future_key"   / Boolean * "True for a copy on its way in, which will replace the current log.",
    doc="One replica in the directory.",
)

DescribeLogDirsTopic = Struct(
    "name"       / TopicName                       * "The topic's name.",
    "partitions" / Array(DescribeLogDirsPartition) * "Its replicas in this directory.",
    doc="The replicas of one topic.",
)

DescribeLogDirsResult = Struct(
    "error_code"   / ErrorCode                                    * "0, or why this directory could not be read; KAFKA_STORAGE_ERROR if it is offline.",
    "log_dir"      / String                                       * "Absolute path of the directory.",
    "topics"       / Array(DescribeLogDirsTopic)                  * "What it holds, by topic.",
    "total_bytes"  / Since(4, Default(Int64, -1), ignorable=True) * "Size of the volume it lies on, in bytes; -1 if unknown (KIP-827).",
    "usable_bytes" / Since(4, Default(Int64, -1), ignorable=True) * "Free space on that volume, in bytes; -1 if unknown (KIP-827).",
    "is_cordoned"  / Since(5, Boolean, ignorable=True)            * "True: the directory is closed to new replicas.",
    doc="One log directory of the broker.",
)

DescribeLogDirsResponse = DescribeLogDirs.response(
    "throttle_time_ms" / Int32                               * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / Since(3, ErrorCode, ignorable=True) * "0, or why nothing could be described (KIP-784).",
    "results"          / Array(DescribeLogDirsResult)        * "One entry for each log directory.",
)
