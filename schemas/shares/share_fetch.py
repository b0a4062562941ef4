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
    Records,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

ShareFetch = Api(
    78, "ShareFetch", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

AcknowledgementBatch = Struct(
    "first_offset"      / Int64       * "TODO",
    "last_offset"       / Int64       * "TODO",
    "acknowledge_types" / Array(Int8) * "TODO",
    about="TODO",
)

FetchPartition = Struct(
    "partition_index"         / Int32                       * "TODO",
    "partition_max_bytes"     / Until(0, Int32)             * "TODO",
    "acknowledgement_batches" / Array(AcknowledgementBatch) * "TODO",
    about="TODO",
)

FetchTopic = Struct(
    "topic_id"   / Uuid                  * "TODO",
    "partitions" / Array(FetchPartition) * "TODO",
    about="TODO",
)

ForgottenTopic = Struct(
    "topic_id"   / Uuid         * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

ShareFetchRequest = ShareFetch.request(
    "group_id"              / Nullable(String)               * "TODO",
    "member_id"             / Default(Nullable(String), "")  * "TODO",
    "share_session_epoch"   / Int32                          * "TODO",
    "max_wait_ms"           / Int32                          * "TODO",
    "min_bytes"             / Int32                          * "TODO",
    "max_bytes"             / Default(Int32, 0x7FFF_FFFF)    * "TODO",
    "max_records"           / Since(1, Int32)                * "TODO",
    "batch_size"            / Since(1, Int32)                * "TODO",
    "share_acquire_mode"    / Since(2, Int8, ignorable=True) * "TODO",
    "is_renew_ack"          / Since(2, Boolean)              * "TODO",
    "topics"                / Array(FetchTopic)              * "TODO",
    "forgotten_topics_data" / Array(ForgottenTopic)          * "TODO",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Int32 * "TODO",
    "leader_epoch" / Int32 * "TODO",
    about="TODO",
)

AcquiredRecords = Struct(
    "first_offset"   / Int64 * "TODO",
    "last_offset"    / Int64 * "TODO",
    "delivery_count" / Int16 * "TODO",
    about="TODO",
)

PartitionData = Struct(
    "partition_index"           / Int32                  * "TODO",
    "error_code"                / Int16                  * "TODO",
    "error_message"             / Nullable(String)       * "TODO",
    "acknowledge_error_code"    / Int16                  * "TODO",
    "acknowledge_error_message" / Nullable(String)       * "TODO",
    "current_leader"            / LeaderIdAndEpoch       * "TODO",
    "records"                   / Nullable(Records)      * "TODO",
    "acquired_records"          / Array(AcquiredRecords) * "TODO",
    about="TODO",
)

ShareFetchableTopicResponse = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32            * "TODO",
    "host"    / String           * "TODO",
    "port"    / Int32            * "TODO",
    "rack"    / Nullable(String) * "TODO",
    about="TODO",
)

ShareFetchResponse = ShareFetch.response(
    "throttle_time_ms"            / Int32                              * "TODO",
    "error_code"                  / Int16                              * "TODO",
    "error_message"               / Nullable(String)                   * "TODO",
    "acquisition_lock_timeout_ms" / Since(1, Int32)                    * "TODO",
    "responses"                   / Array(ShareFetchableTopicResponse) * "TODO",
    "node_endpoints"              / Array(NodeEndpoint)                * "TODO",
)
