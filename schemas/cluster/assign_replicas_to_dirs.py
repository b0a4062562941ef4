"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Struct, Uuid

AssignReplicasToDirs = Api(
    73, "AssignReplicasToDirs", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

AssignReplicasToDirsRequestPartitionData = Struct(
    "partition_index" / Int32 * "TODO",
    about="TODO",
)

AssignReplicasToDirsRequestTopicData = Struct(
    "topic_id"   / Uuid                                            * "TODO",
    "partitions" / Array(AssignReplicasToDirsRequestPartitionData) * "TODO",
    about="TODO",
)

AssignReplicasToDirsRequestDirectoryData = Struct(
    "id"     / Uuid                                        * "TODO",
    "topics" / Array(AssignReplicasToDirsRequestTopicData) * "TODO",
    about="TODO",
)

AssignReplicasToDirsRequest = AssignReplicasToDirs.request(
    "broker_id"    / Int32                                           * "TODO",
    "broker_epoch" / Default(Int64, -1)                              * "TODO",
    "directories"  / Array(AssignReplicasToDirsRequestDirectoryData) * "TODO",
)

AssignReplicasToDirsResponsePartitionData = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    about="TODO",
)

AssignReplicasToDirsResponseTopicData = Struct(
    "topic_id"   / Uuid                                             * "TODO",
    "partitions" / Array(AssignReplicasToDirsResponsePartitionData) * "TODO",
    about="TODO",
)

AssignReplicasToDirsResponseDirectoryData = Struct(
    "id"     / Uuid                                         * "TODO",
    "topics" / Array(AssignReplicasToDirsResponseTopicData) * "TODO",
    about="TODO",
)

AssignReplicasToDirsResponse = AssignReplicasToDirs.response(
    "throttle_time_ms" / Int32                                            * "TODO",
    "error_code"       / Int16                                            * "TODO",
    "directories"      / Array(AssignReplicasToDirsResponseDirectoryData) * "TODO",
)
