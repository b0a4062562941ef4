"""TODO"""

from schemas.vocabulary import Api, Array, Int16, Int32, String, Struct

AlterReplicaLogDirs = Api(
    34, "AlterReplicaLogDirs", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

AlterReplicaLogDirTopic = Struct(
    "name"       / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

AlterReplicaLogDir = Struct(
    "path"   / String                         * "TODO",
    "topics" / Array(AlterReplicaLogDirTopic) * "TODO",
    about="TODO",
)

AlterReplicaLogDirsRequest = AlterReplicaLogDirs.request(
    "dirs" / Array(AlterReplicaLogDir) * "TODO",
)

AlterReplicaLogDirPartitionResult = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

AlterReplicaLogDirTopicResult = Struct(
    "topic_name" / String                                   * "TODO",
    "partitions" / Array(AlterReplicaLogDirPartitionResult) * "TODO",
    about="TODO",
)

AlterReplicaLogDirsResponse = AlterReplicaLogDirs.response(
    "throttle_time_ms" / Int32                                * "TODO",
    "results"          / Array(AlterReplicaLogDirTopicResult) * "TODO",
)
