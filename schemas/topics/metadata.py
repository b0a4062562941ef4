"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
    Default,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

Metadata = Api(
    3, "Metadata", versions=(0, 13), flexible=9,
    about="TODO",
    changes={},
)

MetadataRequestTopic = Struct(
    "topic_id" / Since(10, Uuid, ignorable=True)         * "TODO",
    "name"     / Default(Nullable(String, since=10), "") * "TODO",
    about="TODO",
)

MetadataRequest = Metadata.request(
    "topics"                                / Default(Nullable(Array(MetadataRequestTopic), since=1), []) * "TODO",
    "allow_auto_topic_creation"             / Since(4, Default(Boolean, True))                            * "TODO",
    "include_cluster_authorized_operations" / Between(8, 10, Boolean)                                     * "TODO",
    "include_topic_authorized_operations"   / Since(8, Boolean)                                           * "TODO",
)

MetadataResponseBroker = Struct(
    "node_id" / Int32                                      * "TODO",
    "host"    / String                                     * "TODO",
    "port"    / Int32                                      * "TODO",
    "rack"    / Since(1, Nullable(String), ignorable=True) * "TODO",
    about="TODO",
)

MetadataResponsePartition = Struct(
    "error_code"       / Int16                                        * "TODO",
    "partition_index"  / Int32                                        * "TODO",
    "leader_id"        / Int32                                        * "TODO",
    "leader_epoch"     / Since(7, Default(Int32, -1), ignorable=True) * "TODO",
    "replica_nodes"    / Array(Int32)                                 * "TODO",
    "isr_nodes"        / Array(Int32)                                 * "TODO",
    "offline_replicas" / Since(5, Array(Int32), ignorable=True)       * "TODO",
    about="TODO",
)

MetadataResponseTopic = Struct(
    "error_code"                  / Int16                                    * "TODO",
    "name"                        / Default(Nullable(String, since=12), "")  * "TODO",
    "topic_id"                    / Since(10, Uuid, ignorable=True)          * "TODO",
    "is_internal"                 / Since(1, Boolean, ignorable=True)        * "TODO",
    "partitions"                  / Array(MetadataResponsePartition)         * "TODO",
    "topic_authorized_operations" / Since(8, Default(Int32, -2_147_483_648)) * "TODO",
    about="TODO",
)

MetadataResponse = Metadata.response(
    "throttle_time_ms"              / Since(3, Int32, ignorable=True)                * "TODO",
    "brokers"                       / Array(MetadataResponseBroker)                  * "TODO",
    "cluster_id"                    / Since(2, Nullable(String), ignorable=True)     * "TODO",
    "controller_id"                 / Since(1, Default(Int32, -1), ignorable=True)   * "TODO",
    "topics"                        / Array(MetadataResponseTopic)                   * "TODO",
    "cluster_authorized_operations" / Between(8, 10, Default(Int32, -2_147_483_648)) * "TODO",
    "error_code"                    / Since(13, Int16, ignorable=True)               * "TODO",
)
