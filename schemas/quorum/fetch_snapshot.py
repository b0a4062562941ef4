"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Records,
    Since,
    String,
    Struct,
    Tagged,
    Uint16,
    Uuid,
)

FetchSnapshot = Api(
    59, "FetchSnapshot", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

FetchSnapshotRequestSnapshotId = Struct(
    "end_offset" / Int64 * "TODO",
    "epoch"      / Int32 * "TODO",
    about="TODO",
)

FetchSnapshotRequestPartitionSnapshot = Struct(
    "partition"            / Int32                                     * "TODO",
    "current_leader_epoch" / Int32                                     * "TODO",
    "snapshot_id"          / FetchSnapshotRequestSnapshotId            * "TODO",
    "position"             / Int64                                     * "TODO",
    "replica_directory_id" / Since(1, Tagged(0, Uuid), ignorable=True) * "TODO",
    about="TODO",
)

FetchSnapshotRequestTopicSnapshot = Struct(
    "name"       / String                                       * "TODO",
    "partitions" / Array(FetchSnapshotRequestPartitionSnapshot) * "TODO",
    about="TODO",
)

FetchSnapshotRequest = FetchSnapshot.request(
    "cluster_id" / Tagged(0, Nullable(String))              * "TODO",
    "replica_id" / Default(Int32, -1)                       * "TODO",
    "max_bytes"  / Default(Int32, 0x7FFF_FFFF)              * "TODO",
    "topics"     / Array(FetchSnapshotRequestTopicSnapshot) * "TODO",
)

FetchSnapshotResponseSnapshotId = Struct(
    "end_offset" / Int64 * "TODO",
    "epoch"      / Int32 * "TODO",
    about="TODO",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Int32 * "TODO",
    "leader_epoch" / Int32 * "TODO",
    about="TODO",
)

FetchSnapshotResponsePartitionSnapshot = Struct(
    "index"             / Int32                           * "TODO",
    "error_code"        / Int16                           * "TODO",
    "snapshot_id"       / FetchSnapshotResponseSnapshotId * "TODO",
    "current_leader"    / Tagged(0, LeaderIdAndEpoch)     * "TODO",
    "size"              / Int64                           * "TODO",
    "position"          / Int64                           * "TODO",
    "unaligned_records" / Records                         * "TODO",
    about="TODO",
)

FetchSnapshotResponseTopicSnapshot = Struct(
    "name"       / String                                        * "TODO",
    "partitions" / Array(FetchSnapshotResponsePartitionSnapshot) * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32  * "TODO",
    "host"    / String * "TODO",
    "port"    / Uint16 * "TODO",
    about="TODO",
)

FetchSnapshotResponse = FetchSnapshot.response(
    "throttle_time_ms" / Int32                                     * "TODO",
    "error_code"       / Int16                                     * "TODO",
    "topics"           / Array(FetchSnapshotResponseTopicSnapshot) * "TODO",
    "node_endpoints"   / Since(1, Tagged(0, Array(NodeEndpoint)))  * "TODO",
)
