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
    Uuid,
)

ShareAcknowledge = Api(
    79, "ShareAcknowledge", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

AcknowledgementBatch = Struct(
    "first_offset"      / Int64       * "TODO",
    "last_offset"       / Int64       * "TODO",
    "acknowledge_types" / Array(Int8) * "TODO",
    about="TODO",
)

AcknowledgePartition = Struct(
    "partition_index"         / Int32                       * "TODO",
    "acknowledgement_batches" / Array(AcknowledgementBatch) * "TODO",
    about="TODO",
)

AcknowledgeTopic = Struct(
    "topic_id"   / Uuid                        * "TODO",
    "partitions" / Array(AcknowledgePartition) * "TODO",
    about="TODO",
)

ShareAcknowledgeRequest = ShareAcknowledge.request(
    "group_id"            / Nullable(String)              * "TODO",
    "member_id"           / Default(Nullable(String), "") * "TODO",
    "share_session_epoch" / Int32                         * "TODO",
    "is_renew_ack"        / Since(2, Boolean)             * "TODO",
    "topics"              / Array(AcknowledgeTopic)       * "TODO",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Int32 * "TODO",
    "leader_epoch" / Int32 * "TODO",
    about="TODO",
)

PartitionData = Struct(
    "partition_index" / Int32            * "TODO",
    "error_code"      / Int16            * "TODO",
    "error_message"   / Nullable(String) * "TODO",
    "current_leader"  / LeaderIdAndEpoch * "TODO",
    about="TODO",
)

ShareAcknowledgeTopicResponse = Struct(
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

ShareAcknowledgeResponse = ShareAcknowledge.response(
    "throttle_time_ms"            / Int32                                * "TODO",
    "error_code"                  / Int16                                * "TODO",
    "error_message"               / Nullable(String)                     * "TODO",
    "acquisition_lock_timeout_ms" / Since(2, Int32, ignorable=True)      * "TODO",
    "responses"                   / Array(ShareAcknowledgeTopicResponse) * "TODO",
    "node_endpoints"              / Array(NodeEndpoint)                  * "TODO",
)
