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
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    Until,
    Uuid,
)

UpdateMetadata = Api(
    6, "UpdateMetadata", versions=(0, 8), flexible=6,
    about="TODO",
    changes={},
)

UpdateMetadataPartitionState = Struct(
    "topic_name"       / Until(4, String, ignorable=True)       * "TODO",
    "partition_index"  / Int32                                  * "TODO",
    "controller_epoch" / Int32                                  * "TODO",
    "leader"           / Int32                                  * "TODO",
    "leader_epoch"     / Int32                                  * "TODO",
    "isr"              / Array(Int32)                           * "TODO",
    "zk_version"       / Int32                                  * "TODO",
    "replicas"         / Array(Int32)                           * "TODO",
    "offline_replicas" / Since(4, Array(Int32), ignorable=True) * "TODO",
    about="TODO",
)

UpdateMetadataTopicState = Struct(
    "topic_name"       / String                              * "TODO",
    "topic_id"         / Since(7, Uuid, ignorable=True)      * "TODO",
    "partition_states" / Array(UpdateMetadataPartitionState) * "TODO",
    about="TODO",
)

UpdateMetadataEndpoint = Struct(
    "port"              / Int32                            * "TODO",
    "host"              / String                           * "TODO",
    "listener"          / Since(3, String, ignorable=True) * "TODO",
    "security_protocol" / Int16                            * "TODO",
    about="TODO",
)

UpdateMetadataBroker = Struct(
    "id"        / Int32                                                   * "TODO",
    "v0_host"   / Until(0, String, ignorable=True)                        * "TODO",
    "v0_port"   / Until(0, Int32, ignorable=True)                         * "TODO",
    "endpoints" / Since(1, Array(UpdateMetadataEndpoint), ignorable=True) * "TODO",
    "rack"      / Since(2, Default(Nullable(String), ""), ignorable=True) * "TODO",
    about="TODO",
)

UpdateMetadataRequest = UpdateMetadata.request(
    "controller_id"              / Int32                                         * "TODO",
    "is_k_raft_controller"       / Since(8, Boolean)                             * "TODO",
    "type"                       / Since(8, Tagged(0, Int8))                     * "TODO",
    "controller_epoch"           / Int32                                         * "TODO",
    "broker_epoch"               / Since(5, Default(Int64, -1), ignorable=True)  * "TODO",
    "ungrouped_partition_states" / Until(4, Array(UpdateMetadataPartitionState)) * "TODO",
    "topic_states"               / Since(5, Array(UpdateMetadataTopicState))     * "TODO",
    "live_brokers"               / Array(UpdateMetadataBroker)                   * "TODO",
)

UpdateMetadataResponse = UpdateMetadata.response(
    "error_code" / Int16 * "TODO",
)
