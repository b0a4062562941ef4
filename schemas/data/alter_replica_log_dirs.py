"""AlterReplicaLogDirs: moves replicas between the disks of one broker."""

from schemas.vocabulary import Api, Array, ErrorCode, Int32, String, Struct, TopicName

AlterReplicaLogDirs = Api(
    34, "AlterReplicaLogDirs", versions=(0, 2), flexible=2, deprecated=(0, 0),
    answered_by="broker of the replicas", modifies=True,
    doc="Orders the broker asked to keep its replicas in other log directories (KIP-113). The answer does not wait for the copying; DescribeLogDirs shows how far it is.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "REPLICA_NOT_AVAILABLE", "CLUSTER_AUTHORIZATION_FAILED",
        "KAFKA_STORAGE_ERROR", "LOG_DIR_NOT_FOUND",
    ),
)

AlterReplicaLogDirTopic = Struct(
    "name"       / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions to move.",
    doc="The partitions of one topic that go to the directory.",
)

AlterReplicaLogDir = Struct(
    "path"   / String                         * "Absolute path of the target, one of the broker's log.dirs.",
    "topics" / Array(AlterReplicaLogDirTopic) * "The partitions to keep there, by topic.",
    doc="One target directory, and what goes into it.",
)

AlterReplicaLogDirsRequest = AlterReplicaLogDirs.request(
    "dirs" / Array(AlterReplicaLogDir) * "The moves, by target directory.",
)

AlterReplicaLogDirPartitionResult = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the order was refused.",
    doc="What became of one partition's order.",
)

AlterReplicaLogDirTopicResult = Struct(
    "topic_name" / TopicName                                * "The topic's name.",
    "partitions" / Array(AlterReplicaLogDirPartitionResult) * "One outcome for each partition.",
    doc="What became of one topic's orders.",
)

AlterReplicaLogDirsResponse = AlterReplicaLogDirs.response(
    "throttle_time_ms" / Int32                                * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(AlterReplicaLogDirTopicResult) * "One outcome for each topic.",
)
