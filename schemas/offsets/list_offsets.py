"""ListOffsets: where a partition begins or ends, and which offset a point in time has.

The leader of each partition answers. v0 lists beginnings of segments; from v1 on there is one offset with its timestamp.
"""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerId,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Int64,
    Since,
    Struct,
    TopicName,
    Until,
)

ListOffsets = Api(
    2, "ListOffsets", versions=(0, 11), flexible=6, deprecated=(0, 0),
    partitions="topics[].partitions[].partition_index",
    doc="Turns timestamps, or the negative marks for earliest, latest and others, into offsets. Consumers reset their positions by it, operators compute lags.",
    changes={
        1: "One offset, with its timestamp, by searching records instead of segments (KIP-79).",
        2: "An isolation level (KIP-98); the response reports how long it was throttled (KIP-124).",
        3: "Same layout; the broker throttles after it has answered (KIP-219).",
        4: "Leader epochs, to fence stale clients and leaders (KIP-320).",
        5: "Same layout; OFFSET_NOT_AVAILABLE from a new leader that can't be sure yet (KIP-207).",
        6: "Flexible lengths and tagged fields (KIP-482).",
        7: "Timestamp -3: the record with the greatest timestamp (KIP-734).",
        8: "Timestamp -4: the earliest offset on the leader's own disk (KIP-405).",
        9: "Timestamp -5: the last offset in tiered storage (KIP-1005).",
        10: "A timeout for answers that need tiered storage (KIP-1075).",
        11: "Timestamp -6: the earliest offset not yet in tiered storage (KIP-1023).",
    },
    errors={
        "UNKNOWN_TOPIC_OR_PARTITION": "The topic or partition does not exist.",
        "LEADER_NOT_AVAILABLE": "The same as OFFSET_NOT_AVAILABLE, in versions before 5.",
        "NOT_LEADER_OR_FOLLOWER": "The broker does not lead the partition.",
        "REPLICA_NOT_AVAILABLE": "",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe the topic.",
        "INVALID_REQUEST": "The request names the partition twice.",
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": "",
        "KAFKA_STORAGE_ERROR": "The partition's log directory is offline.",
        "FENCED_LEADER_EPOCH": "The client's leader epoch is older than the partition's.",
        "UNKNOWN_LEADER_EPOCH": "The client's leader epoch is newer than the broker's.",
        "OFFSET_NOT_AVAILABLE": "A new leader's high watermark has not yet reached its epoch's start (from version 5 on).",
    },
)

ListOffsetsPartition = Struct(
    "partition_index"      / Int32                                        * "The partition's number.",
    "current_leader_epoch" / Since(4, Default(Int32, -1), ignorable=True) * "The leader epoch that the sender knows, checked; -1 to skip that (KIP-320).",
    "timestamp"            / Int64                                        * "Ms since the epoch, or -1 latest, -2 earliest, -3 greatest timestamp, -4 to -6 tiers.",
    "max_num_offsets"      / Until(0, Default(Int32, 1))                  * "How many offsets to list at most, in v0.",
    doc="The question to one partition.",
)

ListOffsetsTopic = Struct(
    "name"       / TopicName                   * "The topic's name.",
    "partitions" / Array(ListOffsetsPartition) * "Its partitions that are asked about.",
    doc="The questions to one topic.",
)

ListOffsetsRequest = ListOffsets.request(
    "replica_id"      / BrokerId                         * "Broker id of a follower that sends it; -1 for a client.",
    "isolation_level" / Since(2, Int8)                   * "0 sees all records, 1 only up to the last stable offset (KIP-98).",
    "topics"          / Array(ListOffsetsTopic)          * "What to look up.",
    "timeout_ms"      / Since(10, Int32, ignorable=True) * "How long to wait for tiered storage, in ms (KIP-1075).",
)

ListOffsetsPartitionResponse = Struct(
    "partition_index"   / Int32                        * "The partition's number.",
    "error_code"        / ErrorCode                    * "0, or why there is no offset.",
    "old_style_offsets" / Until(0, Array(Int64))       * "In v0, offsets from the latest downwards; empty on an error.",
    "timestamp"         / Since(1, Default(Int64, -1)) * "Of the record found, in ms since the epoch; -1 where none was looked at.",
    "offset"            / Since(1, Default(Int64, -1)) * "The offset found; -1 if no record is that young, and on an error.",
    "leader_epoch"      / Since(4, Default(Int32, -1)) * "The leader epoch of the offset found; -1 if unknown (KIP-320).",
    doc="The answer of one partition.",
)

ListOffsetsTopicResponse = Struct(
    "name"       / TopicName                           * "The topic's name.",
    "partitions" / Array(ListOffsetsPartitionResponse) * "Its answers.",
    doc="The answers of one topic.",
)

ListOffsetsResponse = ListOffsets.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True) * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Array(ListOffsetsTopicResponse) * "One answer for each question.",
)
