"""FetchSnapshot: a replica that lags too far loads a snapshot of the metadata, piece by piece (KIP-630)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    Records,
    Secret,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Uuid,
)

FetchSnapshot = Api(
    59, "FetchSnapshot", versions=(0, 1), flexible=0, listeners=("controller",),
    doc="Follows a Fetch that was answered with a snapshot id, because the leader no longer has the log at that place. Asked again and again, from the byte reached, until the whole file is there.",
    changes={
        1: "The replica's directory id, and the addresses of leaders (KIP-853).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH", "SNAPSHOT_NOT_FOUND",
        "POSITION_OUT_OF_RANGE", "INCONSISTENT_CLUSTER_ID",
    ),
)

FetchSnapshotRequestSnapshotId = Struct(
    "end_offset" / Int64 * "The first offset that the snapshot no longer covers.",
    "epoch"      / Int32 * "Leader epoch of the last record covered.",
    doc="What a snapshot covers, which is also its name.",
)

FetchSnapshotRequestPartitionSnapshot = Struct(
    "partition"            / Int32                                     * "The partition's number; 0 for the metadata log.",
    "current_leader_epoch" / Int32                                     * "The epoch that the replica believes current; a wrong one is refused.",
    "snapshot_id"          / FetchSnapshotRequestSnapshotId            * "The snapshot to read.",
    "position"             / Int64                                     * "The byte of the snapshot's file to start from, 0 or more.",
    "replica_directory_id" / Since(1, Tagged(0, Uuid), ignorable=True) * "Directory of the fetching replica's log; all zeros if unknown (KIP-853).",
    doc="The piece of one snapshot that is wanted.",
)

FetchSnapshotRequestTopicSnapshot = Struct(
    "name"       / TopicName                                    * "The topic's name, __cluster_metadata in practice.",
    "partitions" / Array(FetchSnapshotRequestPartitionSnapshot) * "Its partitions.",
    doc="The snapshots wanted of one topic.",
)

FetchSnapshotRequest = FetchSnapshot.request(
    "cluster_id" / Tagged(0, Nullable(String))              * "The cluster meant; null for no check.",
    "replica_id" / Default(BrokerId, -1)                    * "Node id of the replica that fetches; -1 if it has none.",
    "max_bytes"  / Default(Int32, 0x7FFF_FFFF)              * "The most bytes of all snapshots together in one answer.",
    "topics"     / Array(FetchSnapshotRequestTopicSnapshot) * "The snapshots wanted.",
)

FetchSnapshotResponseSnapshotId = Struct(
    "end_offset" / Int64 * "The first offset that the snapshot no longer covers.",
    "epoch"      / Int32 * "Leader epoch of the last record covered.",
    doc="What a snapshot covers, which is also its name.",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / BrokerId * "Node id of the leader; -1 if unknown.",
    "leader_epoch" / Int32    * "The newest epoch that the node knows.",
    doc="The leader as the answering node knows it.",
)

FetchSnapshotResponsePartitionSnapshot = Struct(
    "index"             / Int32                           * "The partition's number.",
    "error_code"        / ErrorCode                       * "0, or why there is no piece, such as SNAPSHOT_NOT_FOUND.",
    "snapshot_id"       / FetchSnapshotResponseSnapshotId * "The snapshot that was read.",
    "current_leader"    / Tagged(0, LeaderIdAndEpoch)     * "Sent if the replica should turn to another leader or epoch.",
    "size"              / Int64                           * "Length of the whole snapshot, in bytes.",
    "position"          / Int64                           * "The byte of the snapshot's file at which this piece starts.",
    "unaligned_records" / Secret(Records)                 * "The piece as it lies in the file; may start and end within a batch.",
    doc="A piece of one snapshot.",
)

FetchSnapshotResponseTopicSnapshot = Struct(
    "name"       / TopicName                                     * "The topic's name.",
    "partitions" / Array(FetchSnapshotResponsePartitionSnapshot) * "One piece for each partition.",
    doc="The pieces of one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId        * "The leader's node id.",
    "host"    / BrokerHost      * "Host name or IP address.",
    "port"    / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="The address of a leader named in the answer.",
)

FetchSnapshotResponse = FetchSnapshot.response(
    "throttle_time_ms" / Int32                                     * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                 * "0, or why the whole request was refused.",
    "topics"           / Array(FetchSnapshotResponseTopicSnapshot) * "The pieces read.",
    "node_endpoints"   / Since(1, Tagged(0, Array(NodeEndpoint)))  * "Addresses of the leaders named above; empty if not known (KIP-853).",
)
