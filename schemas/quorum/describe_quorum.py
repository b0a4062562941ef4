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
    Uint16,
    Uuid,
)

DescribeQuorum = Api(
    55, "DescribeQuorum", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

DescribeQuorumRequestPartitionData = Struct(
    "partition_index" / Int32 * "TODO",
    about="TODO",
)

DescribeQuorumRequestTopicData = Struct(
    "topic_name" / String                                    * "TODO",
    "partitions" / Array(DescribeQuorumRequestPartitionData) * "TODO",
    about="TODO",
)

DescribeQuorumRequest = DescribeQuorum.request(
    "topics" / Array(DescribeQuorumRequestTopicData) * "TODO",
)

ReplicaState = Struct(
    "replica_id"               / Int32                                        * "TODO",
    "replica_directory_id"     / Since(2, Uuid)                               * "TODO",
    "log_end_offset"           / Int64                                        * "TODO",
    "last_fetch_timestamp"     / Since(1, Default(Int64, -1), ignorable=True) * "TODO",
    "last_caught_up_timestamp" / Since(1, Default(Int64, -1), ignorable=True) * "TODO",
    about="TODO",
)

DescribeQuorumResponsePartitionData = Struct(
    "partition_index" / Int32                                                   * "TODO",
    "error_code"      / Int16                                                   * "TODO",
    "error_message"   / Since(2, Default(Nullable(String), ""), ignorable=True) * "TODO",
    "leader_id"       / Int32                                                   * "TODO",
    "leader_epoch"    / Int32                                                   * "TODO",
    "high_watermark"  / Int64                                                   * "TODO",
    "current_voters"  / Array(ReplicaState)                                     * "TODO",
    "observers"       / Array(ReplicaState)                                     * "TODO",
    about="TODO",
)

DescribeQuorumResponseTopicData = Struct(
    "topic_name" / String                                     * "TODO",
    "partitions" / Array(DescribeQuorumResponsePartitionData) * "TODO",
    about="TODO",
)

Listener = Struct(
    "name" / String * "TODO",
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

Node = Struct(
    "node_id"   / Int32           * "TODO",
    "listeners" / Array(Listener) * "TODO",
    about="TODO",
)

DescribeQuorumResponse = DescribeQuorum.response(
    "error_code"    / Int16                                                   * "TODO",
    "error_message" / Since(2, Default(Nullable(String), ""), ignorable=True) * "TODO",
    "topics"        / Array(DescribeQuorumResponseTopicData)                  * "TODO",
    "nodes"         / Since(2, Array(Node))                                   * "TODO",
)
