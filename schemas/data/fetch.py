"""Fetch: a consumer or a follower reads records from partition leaders.

Sessions (version 7 on) let later requests name only the partitions that changed. Followers and KRaft voters use
the same request, with fields that a consumer leaves at their defaults.
"""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Int64,
    Nullable,
    ProducerId,
    Records,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Until,
    Uuid,
)

Fetch = Api(
    1, "Fetch", versions=(0, 18), flexible=12, listeners=("broker", "controller"), deprecated=(0, 3),
    partitions="topics[].partitions[].partition",
    doc="Reads record batches from given offsets on; the broker waits until there is enough, or until time is up.",
    changes={
        1: "The response reports how long it was throttled (KIP-13).",
        2: "Same layout; records may carry timestamps, as message format 1 (KIP-32).",
        3: "A byte limit for the whole response; the order of partitions matters (KIP-74).",
        4: "Isolation level, last stable offset and aborted transactions (KIP-98).",
        5: "The log start offset of follower and leader (KIP-107).",
        6: "Same layout; the client understands KAFKA_STORAGE_ERROR (KIP-112).",
        7: "Fetch sessions, with a top-level error and forgotten topics (KIP-227).",
        8: "Same layout; the broker throttles after it has answered (KIP-219).",
        9: "The leader epoch that the client knows, to fence stale ones (KIP-320).",
        10: "Same layout; records may be compressed with zstd (KIP-110).",
        11: "The client's rack, and the replica that it should read from (KIP-392).",
        12: "Flexible lengths and tagged fields (KIP-482); truncation by epoch for KRaft (KIP-595).",
        13: "Topics by id instead of by name (KIP-516).",
        14: "Same layout; the client understands OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405).",
        15: "The replica's id moves into replica_state, with its broker epoch (KIP-903).",
        16: "Endpoints of the new leaders (KIP-951).",
        17: "The directory that a KRaft follower keeps the partition in (KIP-853).",
        18: "The high watermark that the follower knows (KIP-1166).",
    },
    errors={
        "OFFSET_OUT_OF_RANGE": "The offset is before the log's start or after its end.",
        "CORRUPT_MESSAGE": "",
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "NOT_LEADER_OR_FOLLOWER": "The broker does not lead the partition, or has no replica of it.",
        "REPLICA_NOT_AVAILABLE": "",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not read the topic.",
        "CLUSTER_AUTHORIZATION_FAILED": "",
        "UNSUPPORTED_VERSION": "",
        "KAFKA_STORAGE_ERROR": "The partition's log directory is offline.",
        "FETCH_SESSION_ID_NOT_FOUND": "The broker does not have the fetch session; it may have evicted it.",
        "INVALID_FETCH_SESSION_EPOCH": "The session epoch is not the one that follows the last request's.",
        "FENCED_LEADER_EPOCH": "The client's leader epoch is older than the partition's.",
        "UNKNOWN_LEADER_EPOCH": "The client's leader epoch is newer than the broker's.",
        "UNSUPPORTED_COMPRESSION_TYPE": "The records are compressed with zstd (before version 10).",
        "UNKNOWN_TOPIC_ID": "No topic has the id (from version 13 on).",
        "INCONSISTENT_TOPIC_ID": "The topic id is not that of the partition's log.",
        "INCONSISTENT_CLUSTER_ID": "The request names another cluster (the metadata log).",
        "FETCH_SESSION_TOPIC_ID_ERROR": "The session's earlier requests named topics by name, and this one names them by id, or the reverse.",
        "OFFSET_MOVED_TO_TIERED_STORAGE": "A follower asks for an offset that only tiered storage has.",
    },
)

ReplicaState = Struct(
    "replica_id"    / Default(BrokerId, -1) * "The follower's broker id, or -1 for a consumer.",
    "replica_epoch" / Default(Int64, -1)    * "The follower's broker epoch; -1 if unknown or a consumer.",
    doc="Who fetches, if it is a replica (KIP-903).",
)

FetchPartition = Struct(
    "partition"            / Int32                                        * "Its number within the topic.",
    "current_leader_epoch" / Since(9, Default(Int32, -1), ignorable=True) * "Fences on the epoch that the client believes in; -1 to skip that (KIP-320).",
    "fetch_offset"         / Int64                                        * "The first offset wanted.",
    "last_fetched_epoch"   / Since(12, Default(Int32, -1))                * "The epoch that the follower's last record has; -1 if it has none (KIP-595).",
    "log_start_offset"     / Since(5, Default(Int64, -1), ignorable=True) * "Where the follower's log starts; -1 from a consumer (KIP-107).",
    "partition_max_bytes"  / Int32                                        * "Most bytes for this partition; a larger first batch may still come.",
    "replica_directory_id" / Since(17, Tagged(0, Uuid), ignorable=True)   * "Log directory of the KRaft follower; zero if not given (KIP-853).",
    "high_watermark"       / Since(18, Tagged(1, Default(Int64, 0x7FFF_FFFF_FFFF_FFFF)), ignorable=True) * "Known to the follower; the largest int64 if it doesn't take part (KIP-1166).",
    doc="Where to read in one partition.",
)

FetchTopic = Struct(
    "topic"      / Until(12, TopicName, ignorable=True) * "Its name, up to version 12.",
    "topic_id"   / Since(13, Uuid, ignorable=True)      * "Its id, in place of the name (KIP-516).",
    "partitions" / Array(FetchPartition)                * "Where to read, a partition each.",
    doc="The partitions of one topic that are added to the session or changed in it.",
)

ForgottenTopic = Struct(
    "topic"      / Until(12, TopicName, ignorable=True) * "Its name, up to version 12.",
    "topic_id"   / Since(13, Uuid, ignorable=True)      * "Its id, in place of the name (KIP-516).",
    "partitions" / Array(Int32)                         * "Numbers of the partitions that are no longer wanted.",
    doc="Partitions of one topic that leave the session.",
)

FetchRequest = Fetch.request(
    "cluster_id"            / Since(12, Tagged(0, Nullable(String)), ignorable=True) * "The cluster that a KRaft replica believes in; null to skip the check (KIP-595).",
    "replica_id"            / Until(14, Default(BrokerId, -1))                       * "The follower's broker id, or -1 for a consumer; see replica_state from 15 on.",
    "replica_state"         / Since(15, Tagged(1, ReplicaState))                     * "The follower's id and broker epoch; defaults say it is a consumer (KIP-903).",
    "max_wait_ms"           / Int32                                                  * "Longest wait for min_bytes, in ms.",
    "min_bytes"             / Int32                                                  * "Bytes that must be there before the broker answers early; 0 never waits.",
    "max_bytes"             / Since(3, Default(Int32, 0x7FFF_FFFF), ignorable=True)  * "Most bytes for the response; a larger first batch may still come (KIP-74).",
    "isolation_level"       / Since(4, Int8, ignorable=True)                         * "0 reads uncommitted records too, 1 committed ones only (KIP-98).",
    "session_id"            / Since(7, Int32, ignorable=True)                        * "The fetch session; 0 for none or a new one (KIP-227).",
    "session_epoch"         / Since(7, Default(Int32, -1), ignorable=True)           * "Counts the session's requests: 0 opens or resets it, -1 closes or avoids it.",
    "topics"                / Array(FetchTopic)                                      * "What to read; in a session, only what is new or changed.",
    "forgotten_topics_data" / Since(7, Array(ForgottenTopic))                        * "What to drop from the session (KIP-227).",
    "rack_id"               / Since(11, String, ignorable=True)                      * "The consumer's rack; empty for none. The leader may send it to a nearby replica.",
)

EpochEndOffset = Struct(
    "epoch"      / Default(Int32, -1) * "The leader epoch; -1 if unset.",
    "end_offset" / Default(Int64, -1) * "The offset after its last record; -1 if unset.",
    doc="Where a leader epoch ends in the leader's log.",
)

LeaderIdAndEpoch = Struct(
    "leader_id"    / Default(BrokerId, -1) * "The leader's node id; -1 if unknown.",
    "leader_epoch" / Default(Int32, -1)    * "Its epoch; -1 if unknown.",
    doc="The leader that the broker knows, for a client that came to the wrong one.",
)

SnapshotId = Struct(
    "end_offset" / Default(Int64, -1) * "The offset after the last record in it; -1 if unset.",
    "epoch"      / Default(Int32, -1) * "The epoch of that record; -1 if unset.",
    doc="A KRaft snapshot, by where it ends.",
)

AbortedTransaction = Struct(
    "producer_id"  / ProducerId * "Whose transaction it was.",
    "first_offset" / Int64      * "Its first record; it lasts up to the producer's next abort marker.",
    doc="A transaction whose records the consumer has to skip.",
)

PartitionData = Struct(
    "partition_index"        / Int32                                                                      * "Its number within the topic.",
    "error_code"             / ErrorCode                                                                  * "0, or why the partition could not be read.",
    "high_watermark"         / Int64                                                                      * "The offset after the last record that all in-sync replicas have.",
    "last_stable_offset"     / Since(4, Default(Int64, -1), ignorable=True)                               * "All transactions below it are decided; -1 if unknown (KIP-98).",
    "log_start_offset"       / Since(5, Default(Int64, -1), ignorable=True)                               * "The first offset that is still there; -1 if unknown (KIP-107).",
    "diverging_epoch"        / Since(12, Tagged(0, EpochEndOffset))                                       * "Set if the logs have parted: the follower truncates to it (KIP-595).",
    "current_leader"         / Since(12, Tagged(1, LeaderIdAndEpoch))                                     * "Where to go, if this broker doesn't lead the partition.",
    "snapshot_id"            / Since(12, Tagged(2, SnapshotId))                                           * "Set if the follower has to fetch this snapshot first (KIP-630).",
    "aborted_transactions"   / Since(4, Default(Nullable(Array(AbortedTransaction)), []), ignorable=True) * "Those that touch the records; null or empty if none do.",
    "preferred_read_replica" / Since(11, Default(BrokerId, -1))                                           * "The broker to read from instead; -1 to stay (KIP-392).",
    "records"                / Nullable(Records)                                                          * "Record batches, null or empty if none; the last one may be cut short.",
    doc="What was read from one partition.",
)

FetchableTopicResponse = Struct(
    "topic"      / Until(12, TopicName, ignorable=True) * "Its name, up to version 12.",
    "topic_id"   / Since(13, Uuid, ignorable=True)      * "Its id, in place of the name (KIP-516).",
    "partitions" / Array(PartitionData)                 * "What was read, a partition each.",
    doc="What was read from one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId         * "The broker's id.",
    "host"    / BrokerHost       * "Its host name or address.",
    "port"    / BrokerPort       * "Its TCP port.",
    "rack"    / Nullable(String) * "Its rack; null if it has none.",
    doc="How to reach a broker that current_leader names.",
)

FetchResponse = Fetch.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)           * "Throttling in ms: 0, or how long the quota holds this client back.",
    "error_code"       / Since(7, ErrorCode, ignorable=True)       * "0, or why the whole request failed, such as an unknown session.",
    "session_id"       / Since(7, Int32)                           * "The session to go on with; 0 if there is none.",
    "responses"        / Array(FetchableTopicResponse)             * "What was read; in a session, only partitions with news.",
    "node_endpoints"   / Since(16, Tagged(0, Array(NodeEndpoint))) * "The leaders that current_leader names (KIP-951).",
)
