"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

LeaderAndIsr = Api(
    4, "LeaderAndIsr", versions=(0, 7), flexible=4,
    about="TODO",
    changes={},
)

LeaderAndIsrPartitionState = Struct(
    "topic_name"            / Until(1, String, ignorable=True)       * "TODO",
    "partition_index"       / Int32                                  * "TODO",
    "controller_epoch"      / Int32                                  * "TODO",
    "leader"                / Int32                                  * "TODO",
    "leader_epoch"          / Int32                                  * "TODO",
    "isr"                   / Array(Int32)                           * "TODO",
    "partition_epoch"       / Int32                                  * "TODO",
    "replicas"              / Array(Int32)                           * "TODO",
    "adding_replicas"       / Since(3, Array(Int32), ignorable=True) * "TODO",
    "removing_replicas"     / Since(3, Array(Int32), ignorable=True) * "TODO",
    "is_new"                / Since(1, Boolean, ignorable=True)      * "TODO",
    "leader_recovery_state" / Since(6, Int8)                         * "TODO",
    about="TODO",
)

LeaderAndIsrTopicState = Struct(
    "topic_name"       / String                            * "TODO",
    "topic_id"         / Since(5, Uuid, ignorable=True)    * "TODO",
    "partition_states" / Array(LeaderAndIsrPartitionState) * "TODO",
    about="TODO",
)

LeaderAndIsrLiveLeader = Struct(
    "broker_id" / Int32  * "TODO",
    "host_name" / String * "TODO",
    "port"      / Int32  * "TODO",
    about="TODO",
)

LeaderAndIsrRequest = LeaderAndIsr.request(
    "controller_id"              / Int32                                        * "TODO",
    "is_k_raft_controller"       / Since(7, Boolean)                            * "TODO",
    "controller_epoch"           / Int32                                        * "TODO",
    "broker_epoch"               / Since(2, Default(Int64, -1), ignorable=True) * "TODO",
    "type"                       / Since(5, Int8)                               * "TODO",
    "ungrouped_partition_states" / Until(1, Array(LeaderAndIsrPartitionState))  * "TODO",
    "topic_states"               / Since(2, Array(LeaderAndIsrTopicState))      * "TODO",
    "live_leaders"               / Array(LeaderAndIsrLiveLeader)                * "TODO",
)

LeaderAndIsrPartitionError = Struct(
    "topic_name"      / Until(4, String, ignorable=True) * "TODO",
    "partition_index" / Int32                            * "TODO",
    "error_code"      / Int16                            * "TODO",
    about="TODO",
)

LeaderAndIsrTopicError = Struct(
    "topic_id"         / Uuid                              * "TODO",
    "partition_errors" / Array(LeaderAndIsrPartitionError) * "TODO",
    about="TODO",
)

LeaderAndIsrResponse = LeaderAndIsr.response(
    "error_code"       / Int16                                       * "TODO",
    "partition_errors" / Until(4, Array(LeaderAndIsrPartitionError)) * "TODO",
    "topics"           / Since(5, Array(LeaderAndIsrTopicError))     * "TODO",
)
