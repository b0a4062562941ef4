"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    Records,
    Since,
    String,
    Struct,
    Tagged,
    Until,
    Uuid,
)

Fetch = Api(
    1, "Fetch", versions=(0, 18), flexible=12,
    about="TODO",
    changes={},
)

ReplicaState = Struct(
    "replica_id"    / Default(Int32, -1) * "TODO",
    "replica_epoch" / Default(Int64, -1) * "TODO",
    about="TODO",
)

FetchPartition = Struct(
    "partition"            / Int32                                                            * "TODO",
    "current_leader_epoch" / Since(9, Default(Int32, -1), ignorable=True)                     * "TODO",
    "fetch_offset"         / Int64                                                            * "TODO",
    "last_fetched_epoch"   / Since(12, Default(Int32, -1))                                    * "TODO",
    "log_start_offset"     / Since(5, Default(Int64, -1), ignorable=True)                     * "TODO",
    "partition_max_bytes"  / Int32                                                            * "TODO",
    "replica_directory_id" / Since(17, Tagged(0, Uuid), ignorable=True)                       * "TODO",
    "high_watermark"       / Since(18, Tagged(1, Default(Int64, 0x7FFF_FFFF_FFFF_FFFF)), ignorable=True) * "TODO",
    about="TODO",
)

FetchTopic = Struct(
    "topic"      / Until(12, String, ignorable=True) * "TODO",
    "topic_id"   / Since(13, Uuid, ignorable=True)   * "TODO",
    "partitions" / Array(FetchPartition)             * "TODO",
    about="TODO",
)

ForgottenTopic = Struct(
    "topic"      / Until(12, String, ignorable=True) * "TODO",
    "topic_id"   / Since(13, Uuid, ignorable=True)   * "TODO",
    "partitions" / Array(Int32)                      * "TODO",
    about="TODO",
)

FetchRequest = Fetch.request(
    "cluster_id"            / Since(12, Tagged(0, Nullable(String)), ignorable=True) * "TODO",
    "replica_id"            / Until(14, Default(Int32, -1))                          * "TODO",
    "replica_state"         / Since(15, Tagged(1, ReplicaState))                     * "TODO",
    "max_wait_ms"           / Int32                                                  * "TODO",
    "min_bytes"             / Int32                                                  * "TODO",
    "max_bytes"             / Since(3, Default(Int32, 0x7FFF_FFFF), ignorable=True)  * "TODO",
    "isolation_level"       / Since(4, Int8, ignorable=True)                         * "TODO",
    "session_id"            / Since(7, Int32, ignorable=True)                        * "TODO",
    "session_epoch"         / Since(7, Default(Int32, -1), ignorable=True)           * "TODO",
    "topics"                / Array(FetchTopic)                                      * "TODO",
    "forgotten_topics_data" / Since(7, Array(ForgottenTopic))                        * "TODO",
    "rack_id"               / Since(11, String, ignorable=True)                      * "TODO",
)

EpochEndOffset = Struct(
    "epoch"      / Default(Int32, -1) * "TODO",
    "end_offset" / Default(Int64, -1) * "TODO",
    about="TODO",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Default(Int32, -1) * "TODO",
    "leader_epoch" / Default(Int32, -1) * "TODO",
    about="TODO",
)

SnapshotId = Struct(
    "end_offset" / Default(Int64, -1) * "TODO",
    "epoch"      / Default(Int32, -1) * "TODO",
    about="TODO",
)

AbortedTransaction = Struct(
    "producer_id"  / Int64 * "TODO",
    "first_offset" / Int64 * "TODO",
    about="TODO",
)

PartitionData = Struct(
    "partition_index"        / Int32                                                            * "TODO",
    "error_code"             / Int16                                                            * "TODO",
    "high_watermark"         / Int64                                                            * "TODO",
    "last_stable_offset"     / Since(4, Default(Int64, -1), ignorable=True)                     * "TODO",
    "log_start_offset"       / Since(5, Default(Int64, -1), ignorable=True)                     * "TODO",
    "diverging_epoch"        / Since(12, Tagged(0, EpochEndOffset))                             * "TODO",
    "current_leader"         / Since(12, Tagged(1, LeaderIdAndEpoch))                           * "TODO",
    "snapshot_id"            / Since(12, Tagged(2, SnapshotId))                                 * "TODO",
    "aborted_transactions"   / Since(4, Default(Nullable(Array(AbortedTransaction)), []), ignorable=True) * "TODO",
    "preferred_read_replica" / Since(11, Default(Int32, -1))                                    * "TODO",
    "records"                / Nullable(Records)                                                * "TODO",
    about="TODO",
)

FetchableTopicResponse = Struct(
    "topic"      / Until(12, String, ignorable=True) * "TODO",
    "topic_id"   / Since(13, Uuid, ignorable=True)   * "TODO",
    "partitions" / Array(PartitionData)              * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32            * "TODO",
    "host"    / String           * "TODO",
    "port"    / Int32            * "TODO",
    "rack"    / Nullable(String) * "TODO",
    about="TODO",
)

FetchResponse = Fetch.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)           * "TODO",
    "error_code"       / Since(7, Int16, ignorable=True)           * "TODO",
    "session_id"       / Since(7, Int32)                           * "TODO",
    "responses"        / Array(FetchableTopicResponse)             * "TODO",
    "node_endpoints"   / Since(16, Tagged(0, Array(NodeEndpoint))) * "TODO",
)
