"""ShareAcknowledge: a share group's member reports the outcome of its records."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    GroupId,
    Int8,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

ShareAcknowledge = Api(
    79, "ShareAcknowledge", versions=(0, 2), flexible=0,
    partitions="topics[].partitions[].partition_index", modifies=True,
    doc="Acknowledges acquired records without fetching more (KIP-932). It belongs to the session that ShareFetch opened.",
    changes={
        1: "Same layout; v0 was early access only (KIP-932).",
        2: "Locks may be renewed; the response reports how long they last (KIP-1222).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST", "KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_ID",
        "INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH",
    ),
)

AcknowledgementBatch = Struct(
    "first_offset"      / Int64       * "First offset of the batch.",
    "last_offset"       / Int64       * "Last offset of the batch, inclusive.",
    "acknowledge_types" / Array(Int8) * "One for each offset, or one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.",
    doc="What the member did with a run of records. Gaps mark offsets without a record.",
)

AcknowledgePartition = Struct(
    "partition_index"         / Int32                       * "The partition's number.",
    "acknowledgement_batches" / Array(AcknowledgementBatch) * "Records acknowledged.",
    doc="The acknowledgements for one partition.",
)

AcknowledgeTopic = Struct(
    "topic_id"   / Uuid                        * "The topic's id.",
    "partitions" / Array(AcknowledgePartition) * "Its partitions.",
    doc="The acknowledgements for one topic.",
)

ShareAcknowledgeRequest = ShareAcknowledge.request(
    "group_id"            / Nullable(GroupId)               * "The share group that reads; null if not given.",
    "member_id"           / Default(Nullable(MemberId), "") * "The member that acquired the records; null if not given.",
    "share_session_epoch" / Int32                           * "Counts the session's requests, those of ShareFetch too; -1 closes it.",
    "is_renew_ack"        / Since(2, Boolean)               * "True if some acknowledgement renews a lock (KIP-1222).",
    "topics"              / Array(AcknowledgeTopic)         * "What to acknowledge, by topic.",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / BrokerId * "Broker id of the leader; -1 if unknown.",
    "leader_epoch" / Int32    * "The leader's epoch; -1 if unknown.",
    doc="Who leads a partition, for a member that asked the wrong broker.",
)

PartitionData = Struct(
    "partition_index" / Int32            * "The partition's number.",
    "error_code"      / ErrorCode        * "0, or why the acknowledgements were refused.",
    "error_message"   / Nullable(String) * "More about the error; null for none.",
    "current_leader"  / LeaderIdAndEpoch * "The leader to turn to, where the broker asked is not it.",
    doc="What became of one partition's acknowledgements.",
)

ShareAcknowledgeTopicResponse = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "One outcome for each partition.",
    doc="What became of one topic's acknowledgements.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId         * "The broker's id.",
    "host"    / BrokerHost       * "Its host name.",
    "port"    / BrokerPort       * "Its TCP port.",
    "rack"    / Nullable(String) * "Its rack; null for none.",
    doc="How to reach a leader named above.",
)

ShareAcknowledgeResponse = ShareAcknowledge.response(
    "throttle_time_ms"            / Int32                                * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                  / ErrorCode                            * "0, or why the whole request failed.",
    "error_message"               / Nullable(String)                     * "More about the error; null for none.",
    "acquisition_lock_timeout_ms" / Since(2, Int32, ignorable=True)      * "How long acquired records stay locked, in ms (KIP-1222).",
    "responses"                   / Array(ShareAcknowledgeTopicResponse) * "One outcome for each topic.",
    "node_endpoints"              / Array(NodeEndpoint)                  * "Addresses of the leaders in current_leader; empty if none is named.",
)
