"""ShareFetch: a share group's member acquires records, and acknowledges earlier ones."""

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
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Records,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

ShareFetch = Api(
    78, "ShareFetch", versions=(0, 2), flexible=0, partitions="topics[].partitions[].partition_index", modifies=True,
    doc="Fetches in a share group (KIP-932): records are locked for the member until it acknowledges them or the lock runs out. The partitions are kept in a session between the member and the broker, so that a request names only what changed.",
    changes={
        1: "Limits in records instead of bytes per partition, and the lock's duration; v0 was early access only.",
        2: "A strict limit of records (KIP-1206) and the renewal of locks (KIP-1222).",
    },
    errors=(
        "CORRUPT_MESSAGE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER",
        "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "KAFKA_STORAGE_ERROR", "UNKNOWN_TOPIC_ID", "INVALID_RECORD_STATE", "SHARE_SESSION_NOT_FOUND",
        "INVALID_SHARE_SESSION_EPOCH", "SHARE_SESSION_LIMIT_REACHED",
    ),
)

AcknowledgementBatch = Struct(
    "first_offset"      / Int64       * "First offset of the batch.",
    "last_offset"       / Int64       * "Last offset of the batch, inclusive.",
    "acknowledge_types" / Array(Int8) * "One for each offset, or one for all: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.",
    doc="What the member did with a run of records. Gaps mark offsets without a record.",
)

FetchPartition = Struct(
    "partition_index"         / Int32                       * "The partition's number.",
    "partition_max_bytes"     / Until(0, Int32)             * "In v0, most bytes to return from it; 0 to acknowledge only.",
    "acknowledgement_batches" / Array(AcknowledgementBatch) * "Records acknowledged; empty for none.",
    doc="One partition to fetch from, with the acknowledgements for it.",
)

FetchTopic = Struct(
    "topic_id"   / Uuid                  * "The topic's id.",
    "partitions" / Array(FetchPartition) * "Its partitions.",
    doc="The partitions of one topic to fetch from.",
)

ForgottenTopic = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "partitions" / Array(Int32) * "Numbers of the partitions to drop.",
    doc="The partitions of one topic that leave the session.",
)

ShareFetchRequest = ShareFetch.request(
    "group_id"              / Nullable(GroupId)               * "The share group that reads; null if not given.",
    "member_id"             / Default(Nullable(MemberId), "") * "The member that fetches, by the id it chose for itself; null if not given.",
    "share_session_epoch"   / Int32                           * "0 opens a session, -1 closes it; else counts its requests up.",
    "max_wait_ms"           / Int32                           * "How long to wait for min_bytes, in ms.",
    "min_bytes"             / Int32                           * "Answer no sooner than with this many bytes, unless the wait is over.",
    "max_bytes"             / Default(Int32, 0x7FFF_FFFF)     * "Most bytes to return; a first batch beyond it is returned all the same.",
    "max_records"           / Since(1, Int32)                 * "Most records to acquire; whole batches may exceed it, unless the mode is 1.",
    "batch_size"            / Since(1, Int32)                 * "Records that an acquired batch should best have.",
    "share_acquire_mode"    / Since(2, Int8, ignorable=True)  * "0 acquires whole batches, 1 never more than max_records (KIP-1206).",
    "is_renew_ack"          / Since(2, Boolean)               * "True if some acknowledgement renews a lock; nothing is fetched then (KIP-1222).",
    "topics"                / Array(FetchTopic)               * "Partitions new to the session or with acknowledgements.",
    "forgotten_topics_data" / Array(ForgottenTopic)           * "Partitions that leave the session.",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / BrokerId * "Broker id of the leader; -1 if unknown.",
    "leader_epoch" / Int32    * "The leader's epoch; -1 if unknown.",
    doc="Who leads a partition, for a member that asked the wrong broker.",
)

AcquiredRecords = Struct(
    "first_offset"   / Int64 * "First offset acquired.",
    "last_offset"    / Int64 * "Last offset acquired, inclusive.",
    "delivery_count" / Int16 * "How often these were delivered, this time included.",
    doc="A run of records that are now locked for the member.",
)

PartitionData = Struct(
    "partition_index"           / Int32                                    * "The partition's number.",
    "error_code"                / ErrorCode                                * "0, or why nothing was fetched.",
    "error_message"             / Nullable(String)                         * "More about the error; null for none.",
    "acknowledge_error_code"    / ErrorCode                                * "0, or why the acknowledgements were refused.",
    "acknowledge_error_message" / Nullable(String)                         * "More about that error; null for none.",
    "current_leader"            / LeaderIdAndEpoch                         * "The leader to turn to, where the broker asked is not it.",
    "records"                   / Default(Nullable(Records, until=0), b"") * "Record batches; may hold more than what was acquired; empty for none.",
    "acquired_records"          / Array(AcquiredRecords)                   * "Which of the records the member may process.",
    doc="Records and outcome of the acknowledgements in one partition.",
)

ShareFetchableTopicResponse = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "One answer for each partition.",
    doc="The answers for one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId         * "The broker's id.",
    "host"    / BrokerHost       * "Its host name.",
    "port"    / BrokerPort       * "Its TCP port.",
    "rack"    / Nullable(String) * "Its rack; null for none.",
    doc="How to reach a leader named above.",
)

ShareFetchResponse = ShareFetch.response(
    "throttle_time_ms"            / Int32                              * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                  / ErrorCode                          * "0, or why the whole request failed.",
    "error_message"               / Nullable(String)                   * "More about the error; null for none.",
    "acquisition_lock_timeout_ms" / Since(1, Int32)                    * "How long acquired records stay locked, in ms.",
    "responses"                   / Array(ShareFetchableTopicResponse) * "The answers, by topic.",
    "node_endpoints"              / Array(NodeEndpoint)                * "Addresses of the leaders in current_leader; empty if none is named.",
)
