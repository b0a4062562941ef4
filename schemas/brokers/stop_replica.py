"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Struct,
    Until,
)

StopReplica = Api(
    5, "StopReplica", versions=(0, 4), flexible=2,
    about="TODO",
    changes={},
)

StopReplicaPartitionV0 = Struct(
    "topic_name"      / String * "TODO",
    "partition_index" / Int32  * "TODO",
    about="TODO",
)

StopReplicaTopicV1 = Struct(
    "name"              / String       * "TODO",
    "partition_indexes" / Array(Int32) * "TODO",
    about="TODO",
)

StopReplicaPartitionState = Struct(
    "partition_index"  / Int32              * "TODO",
    "leader_epoch"     / Default(Int32, -1) * "TODO",
    "delete_partition" / Boolean            * "TODO",
    about="TODO",
)

StopReplicaTopicState = Struct(
    "topic_name"       / String                           * "TODO",
    "partition_states" / Array(StopReplicaPartitionState) * "TODO",
    about="TODO",
)

StopReplicaRequest = StopReplica.request(
    "controller_id"        / Int32                                        * "TODO",
    "is_k_raft_controller" / Since(4, Boolean)                            * "TODO",
    "controller_epoch"     / Int32                                        * "TODO",
    "broker_epoch"         / Since(1, Default(Int64, -1), ignorable=True) * "TODO",
    "delete_partitions"    / Until(2, Boolean)                            * "TODO",
    "ungrouped_partitions" / Until(0, Array(StopReplicaPartitionV0))      * "TODO",
    "topics"               / Between(1, 2, Array(StopReplicaTopicV1))     * "TODO",
    "topic_states"         / Since(3, Array(StopReplicaTopicState))       * "TODO",
)

StopReplicaPartitionError = Struct(
    "topic_name"      / String * "TODO",
    "partition_index" / Int32  * "TODO",
    "error_code"      / Int16  * "TODO",
    about="TODO",
)

StopReplicaResponse = StopReplica.response(
    "error_code"       / Int16                            * "TODO",
    "partition_errors" / Array(StopReplicaPartitionError) * "TODO",
)
