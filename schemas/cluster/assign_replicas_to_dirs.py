"""AssignReplicasToDirs: a broker reports to the controller which disk holds which replica (KIP-858)."""

from schemas.vocabulary import Api, Array, BrokerId, Default, ErrorCode, Int32, Int64, Struct, Uuid

AssignReplicasToDirs = Api(
    73, "AssignReplicasToDirs", versions=(0, 0), flexible=0, listeners=("controller",), modifies=True,
    doc="Lets the controller know whose leaders are lost when a log directory fails. Sent when the broker has placed or moved replicas.",
    changes={},
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "CLUSTER_AUTHORIZATION_FAILED",
        "NOT_CONTROLLER", "STALE_BROKER_EPOCH", "UNKNOWN_TOPIC_ID",
    ),
)

AssignReplicasToDirsRequestPartitionData = Struct(
    "partition_index" / Int32 * "The partition's number.",
    doc="One replica.",
)

AssignReplicasToDirsRequestTopicData = Struct(
    "topic_id"   / Uuid                                            * "The topic's id.",
    "partitions" / Array(AssignReplicasToDirsRequestPartitionData) * "Its partitions in the directory.",
    doc="The replicas of one topic.",
)

AssignReplicasToDirsRequestDirectoryData = Struct(
    "id"     / Uuid                                        * "The directory's id.",
    "topics" / Array(AssignReplicasToDirsRequestTopicData) * "What it holds, by topic.",
    doc="The replicas in one log directory.",
)

AssignReplicasToDirsRequest = AssignReplicasToDirs.request(
    "broker_id"    / BrokerId                                        * "The broker that reports.",
    "broker_epoch" / Default(Int64, -1)                              * "Its epoch from registration; -1 if it has none.",
    "directories"  / Array(AssignReplicasToDirsRequestDirectoryData) * "The directories with new replicas.",
)

AssignReplicasToDirsResponsePartitionData = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the assignment was not recorded.",
    doc="What became of one replica's assignment.",
)

AssignReplicasToDirsResponseTopicData = Struct(
    "topic_id"   / Uuid                                             * "The topic's id.",
    "partitions" / Array(AssignReplicasToDirsResponsePartitionData) * "One outcome for each partition.",
    doc="What became of one topic's assignments.",
)

AssignReplicasToDirsResponseDirectoryData = Struct(
    "id"     / Uuid                                         * "The directory's id.",
    "topics" / Array(AssignReplicasToDirsResponseTopicData) * "The outcomes by topic.",
    doc="What became of one directory's assignments.",
)

AssignReplicasToDirsResponse = AssignReplicasToDirs.response(
    "throttle_time_ms" / Int32                                            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                                        * "0, or why the whole request was refused, such as STALE_BROKER_EPOCH.",
    "directories"      / Array(AssignReplicasToDirsResponseDirectoryData) * "The outcomes by directory; empty on such an error.",
)
