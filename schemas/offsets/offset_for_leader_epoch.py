"""OffsetForLeaderEpoch: where the records of a leader epoch end."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Since,
    Struct,
    TopicName,
)

OffsetForLeaderEpoch = Api(
    23, "OffsetForLeaderEpoch", versions=(0, 4), flexible=4, deprecated=(0, 1),
    partitions="topics[].partitions[].partition",
    doc="Followers find by it where their log leaves the leader's (KIP-101), consumers whether their position was truncated away. The leader of each partition answers.",
    changes={
        1: "The response names the epoch that it found (KIP-279).",
        2: "The sender's leader epoch, checked (KIP-320); the response reports how long it was throttled.",
        3: "The sender states which replica it is.",
        4: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "REPLICA_NOT_AVAILABLE",
        "TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "KAFKA_STORAGE_ERROR",
        "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
    ),
)

OffsetForLeaderPartition = Struct(
    "partition"            / Int32                                        * "The partition's number.",
    "current_leader_epoch" / Since(2, Default(Int32, -1), ignorable=True) * "The leader epoch that the sender knows, checked; -1 to skip that (KIP-320).",
    "leader_epoch"         / Int32                                        * "The epoch whose end is wanted.",
    doc="The question to one partition.",
)

OffsetForLeaderTopic = Struct(
    "topic"      / TopicName                       * "The topic's name.",
    "partitions" / Array(OffsetForLeaderPartition) * "Its partitions that are asked about.",
    doc="The questions to one topic.",
)

OffsetForLeaderEpochRequest = OffsetForLeaderEpoch.request(
    "replica_id" / Since(3, Default(BrokerId, -2), ignorable=True) * "Broker id of a follower that sends it; -1 for a consumer, -2 for a debugging one.",
    "topics"     / Array(OffsetForLeaderTopic)                     * "What to look up.",
)

EpochEndOffset = Struct(
    "error_code"   / ErrorCode                                    * "0, or why there is no answer.",
    "partition"    / Int32                                        * "The partition's number.",
    "leader_epoch" / Since(1, Default(Int32, -1), ignorable=True) * "The greatest epoch known that is not above the one asked; -1 for none (KIP-279).",
    "end_offset"   / Default(Int64, -1)                           * "The offset after that epoch's last record; -1 if unknown.",
    doc="The answer of one partition.",
)

OffsetForLeaderTopicResult = Struct(
    "topic"      / TopicName             * "The topic's name.",
    "partitions" / Array(EpochEndOffset) * "Its answers.",
    doc="The answers of one topic.",
)

OffsetForLeaderEpochResponse = OffsetForLeaderEpoch.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True)   * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(OffsetForLeaderTopicResult) * "One answer for each question.",
)
