"""TxnOffsetCommit: positions of a group that hold if, and only if, the transaction commits.

The group's coordinator answers it, not the transaction's.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    GroupId,
    InstanceId,
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    ProducerId,
    Since,
    String,
    Struct,
    TopicName,
    TransactionalId,
    Until,
    Uuid,
)

TxnOffsetCommit = Api(
    28, "TxnOffsetCommit", versions=(0, 6), flexible=3, coordinator="group", modifies=True,
    doc="Makes reading and writing one unit: the offsets become visible with the producer's records. Before v5 AddOffsetsToTxn must come first.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "The leader epoch of the last record read (KIP-320).",
        3: "The consumer's membership, to fence zombies (KIP-447). Flexible lengths and tagged fields (KIP-482).",
        4: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
        5: "Same layout; it adds the group to the transaction by itself (KIP-890).",
        6: "Topics by id instead of name (KIP-1319).",
    },
    errors={
        **COORDINATOR,
        "COORDINATOR_LOAD_IN_PROGRESS": "The coordinator is still loading its log (from version 2 on; before, COORDINATOR_NOT_AVAILABLE).",
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "REQUEST_TIMED_OUT": "",
        "OFFSET_METADATA_TOO_LARGE": "The metadata is longer than offset.metadata.max.bytes.",
        "ILLEGAL_GENERATION": "The generation or member epoch is not the member's current one, or the group does not exist.",
        "INVALID_GROUP_ID": "The group id is empty.",
        "UNKNOWN_MEMBER_ID": "The group does not have the member.",
        "REBALANCE_IN_PROGRESS": "",
        "INVALID_COMMIT_OFFSET_SIZE": "The commit does not fit into a batch of the coordinator's log.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not read the topic.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": "",
        "INVALID_PRODUCER_EPOCH": "The producer epoch is not the transactional id's current one.",
        "INVALID_TXN_STATE": "The partition of the group's offsets is not in the producer's open transaction (before version 4).",
        "INVALID_PRODUCER_ID_MAPPING": "The transactional id is unknown, or has another producer id.",
        "CONCURRENT_TRANSACTIONS": "The coordinator is still completing the producer's previous transaction.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not write to the transactional id.",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
        "PRODUCER_FENCED": "",
        "TRANSACTION_ABORTABLE": "The partition of the group's offsets is not in the producer's open transaction (from version 4 on).",
        "GROUP_ID_NOT_FOUND": "",
        "STALE_MEMBER_EPOCH": "",
        "UNKNOWN_TOPIC_ID": "No topic has the id (from version 6 on).",
    },
)

TxnOffsetCommitRequestPartition = Struct(
    "partition_index"        / Int32                                        * "The partition's number.",
    "committed_offset"       / Int64                                        * "The next offset to read, one after the last one done.",
    "committed_leader_epoch" / Since(2, Default(Int32, -1), ignorable=True) * "Leader epoch of the last record read; -1 if unknown (KIP-320).",
    "committed_metadata"     / Default(Nullable(String), "")                * "Any text of the committer, given back on fetching; null or empty for none.",
    doc="The position in one partition.",
)

TxnOffsetCommitRequestTopic = Struct(
    "name"       / Until(5, TopicName, ignorable=True)    * "The topic's name; topic_id replaces it from v6 on.",
    "topic_id"   / Since(6, Uuid, ignorable=True)         * "The topic's id (v6, KIP-1319).",
    "partitions" / Array(TxnOffsetCommitRequestPartition) * "Its positions.",
    doc="The positions in one topic.",
)

TxnOffsetCommitRequest = TxnOffsetCommit.request(
    "transactional_id"              / TransactionalId                    * "Whose transaction it is.",
    "group_id"                      / GroupId                            * "The group whose positions these are.",
    "producer_id"                   / ProducerId                         * "The producer id that the transaction runs under.",
    "producer_epoch"                / Int16                              * "The epoch that the transaction runs under.",
    "generation_id_or_member_epoch" / Since(3, Default(Int32, -1))       * "The consumer's generation, or its member epoch; checked, -1 to skip that (KIP-447).",
    "member_id"                     / Since(3, MemberId)                 * "The consumer's member id, checked; empty to skip that (KIP-447).",
    "group_instance_id"             / Since(3, Nullable(InstanceId))     * "A static member's own name; null for a dynamic one (KIP-447).",
    "topics"                        / Array(TxnOffsetCommitRequestTopic) * "What to commit.",
)

TxnOffsetCommitResponsePartition = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why this position was not taken.",
    doc="What became of one position.",
)

TxnOffsetCommitResponseTopic = Struct(
    "name"       / Until(5, TopicName, ignorable=True)     * "The topic's name; topic_id replaces it from v6 on.",
    "topic_id"   / Since(6, Uuid, ignorable=True)          * "The topic's id (v6, KIP-1319).",
    "partitions" / Array(TxnOffsetCommitResponsePartition) * "One outcome for each position.",
    doc="What became of one topic's positions.",
)

TxnOffsetCommitResponse = TxnOffsetCommit.response(
    "throttle_time_ms" / Int32                               * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(TxnOffsetCommitResponseTopic) * "One outcome for each topic; errors of the whole request are repeated in all.",
)
