"""OffsetCommit: a group keeps how far it has read.

v0 wrote to ZooKeeper, all later versions to the coordinator's log. A consumer outside any membership commits
with generation -1 and an empty member id.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Default,
    ErrorCode,
    GroupId,
    InstanceId,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Until,
    Uuid,
)

OffsetCommit = Api(
    8, "OffsetCommit", versions=(0, 10), flexible=8, coordinator="group", deprecated=(0, 1), modifies=True,
    doc="Stores positions of a group with its coordinator, where they survive the consumer. Commits within a transaction are made by TxnOffsetCommit.",
    changes={
        1: "Offsets live in Kafka; the sender's membership is checked, and each commit has a time.",
        2: "A retention time for the request replaces the single commits' times.",
        3: "The response reports how long it was throttled (KIP-124).",
        4: "Same layout; the broker throttles after it has answered (KIP-219).",
        5: "No retention time any more: the broker's setting rules (KIP-211).",
        6: "The leader epoch of the last record read (KIP-320).",
        7: "Static members: group_instance_id (KIP-345).",
        8: "Flexible lengths and tagged fields (KIP-482).",
        9: "Same layout; groups of the consumer protocol commit with their member epoch (KIP-848).",
        10: "Topics by id instead of name (KIP-848).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "OFFSET_METADATA_TOO_LARGE": "The metadata is longer than offset.metadata.max.bytes.",
        "ILLEGAL_GENERATION": "The generation is not that of the classic group, or of a classic member in a consumer group; or the group does not exist (before version 9).",
        "INVALID_GROUP_ID": "",
        "UNKNOWN_MEMBER_ID": "The group does not have the member.",
        "REBALANCE_IN_PROGRESS": "The classic group waits for its leader's assignment.",
        "INVALID_COMMIT_OFFSET_SIZE": "The commit does not fit into a batch of the coordinator's log.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not read the topic.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "UNSUPPORTED_VERSION": "A member of a consumer group commits (before version 9).",
        "GROUP_ID_NOT_FOUND": "The request names a generation or member epoch, and the group does not exist (from version 9 on).",
        "FENCED_INSTANCE_ID": "Another member id has taken over the group instance id.",
        "UNKNOWN_TOPIC_ID": "No topic has the id (from version 10 on).",
        "FENCED_MEMBER_EPOCH": "",
        "STALE_MEMBER_EPOCH": "The member epoch is newer than the member's current one, or older than its ownership of the partition.",
    },
)

OffsetCommitRequestPartition = Struct(
    "partition_index"        / Int32                                        * "The partition's number.",
    "committed_offset"       / Int64                                        * "The next offset to read, one after the last one done.",
    "committed_leader_epoch" / Since(6, Default(Int32, -1), ignorable=True) * "Leader epoch of the last record read; -1 if unknown (KIP-320).",
    "commit_timestamp"       / Between(1, 1, Default(Int64, -1))            * "In v1, when the commit counts as made, ms since the epoch; -1 for now.",
    "committed_metadata"     / Default(Nullable(String), "")                * "Any text of the committer, given back on fetching; null or empty for none.",
    doc="The position in one partition.",
)

OffsetCommitRequestTopic = Struct(
    "name"       / Until(9, TopicName, ignorable=True) * "The topic's name; replaced by topic_id in v10.",
    "topic_id"   / Since(10, Uuid, ignorable=True)     * "The topic's id (v10, KIP-848).",
    "partitions" / Array(OffsetCommitRequestPartition) * "Its positions.",
    doc="The positions in one topic.",
)

OffsetCommitRequest = OffsetCommit.request(
    "group_id"                      / GroupId                                           * "The group whose positions these are.",
    "generation_id_or_member_epoch" / Since(1, Default(Int32, -1), ignorable=True)      * "Generation in a classic group, else member epoch; -1 outside any.",
    "member_id"                     / Since(1, MemberId, ignorable=True)                * "The member that commits; empty outside a membership.",
    "group_instance_id"             / Since(7, Nullable(InstanceId))                    * "A static member's own name; null for a dynamic one (KIP-345).",
    "retention_time_ms"             / Between(2, 4, Default(Int64, -1), ignorable=True) * "How long to keep the offsets, in ms; -1 for the broker's setting (v2-4).",
    "topics"                        / Array(OffsetCommitRequestTopic)                   * "What to commit.",
)

OffsetCommitResponsePartition = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why this position was not stored.",
    doc="What became of one position.",
)

OffsetCommitResponseTopic = Struct(
    "name"       / Until(9, TopicName, ignorable=True)  * "The topic's name; replaced by topic_id in v10.",
    "topic_id"   / Since(10, Uuid, ignorable=True)      * "The topic's id (v10, KIP-848).",
    "partitions" / Array(OffsetCommitResponsePartition) * "One outcome for each position.",
    doc="What became of one topic's positions.",
)

OffsetCommitResponse = OffsetCommit.response(
    "throttle_time_ms" / Since(3, Int32, ignorable=True)  * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(OffsetCommitResponseTopic) * "One outcome for each topic; errors of the whole group are repeated in all.",
)
