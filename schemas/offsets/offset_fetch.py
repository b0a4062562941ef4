"""OffsetFetch: how far groups have read.

v0 read from ZooKeeper, all later versions from the coordinator's log. Up to v7 one group is asked about, at the
top of the message; from v8 on there is a list of groups, with structs of their own.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Boolean,
    Default,
    ErrorCode,
    GroupId,
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

OffsetFetch = Api(
    9, "OffsetFetch", versions=(0, 10), flexible=6, coordinator="group", deprecated=(0, 0),
    doc="Gives back what OffsetCommit stored. Members read it at their start, operators to compute lags.",
    changes={
        1: "Same layout; offsets live in Kafka, no longer in ZooKeeper.",
        2: "Null topics request everything; an error of the whole request (KIP-88).",
        3: "The response reports how long it was throttled (KIP-124).",
        4: "Same layout; the broker throttles after it has answered (KIP-219).",
        5: "The leader epoch of each position (KIP-320).",
        6: "Flexible lengths and tagged fields (KIP-482).",
        7: "require_stable: no answer while a transaction is open on a position (KIP-447).",
        8: "Many groups at once (KIP-709).",
        9: "The asking member and its epoch, checked in consumer groups (KIP-848).",
        10: "Topics by id instead of name (KIP-848).",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_TOPIC_OR_PARTITION": "",
        "ILLEGAL_GENERATION": "A classic member in a consumer group names another generation than its own (from version 9 on).",
        "INVALID_GROUP_ID": "",
        "UNKNOWN_MEMBER_ID": "The consumer group does not have the member (from version 9 on).",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe the topic.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not describe the group.",
        "GROUP_ID_NOT_FOUND": "",
        "UNSTABLE_OFFSET_COMMIT": "The request asks for stable offsets, and an open transaction has a commit for the partition.",
        "UNKNOWN_TOPIC_ID": "No topic has the id (from version 10 on).",
        "STALE_MEMBER_EPOCH": "The member epoch is not the member's current one (from version 9 on).",
    },
)

OffsetFetchRequestTopic = Struct(
    "name"              / TopicName    * "The topic's name.",
    "partition_indexes" / Array(Int32) * "Numbers of the partitions asked about.",
    doc="Partitions of one topic, up to v7.",
)

OffsetFetchRequestTopics = Struct(
    "name"              / Until(9, TopicName, ignorable=True) * "The topic's name; replaced by topic_id in v10.",
    "topic_id"          / Since(10, Uuid, ignorable=True)     * "The topic's id (v10, KIP-848).",
    "partition_indexes" / Array(Int32)                        * "Numbers of the partitions asked about.",
    doc="Partitions of one topic, since v8.",
)

OffsetFetchRequestGroup = Struct(
    "group_id"     / GroupId                                                * "The group asked about.",
    "member_id"    / Since(9, Nullable(MemberId), ignorable=True)           * "The asking member in a consumer group; null for others (KIP-848).",
    "member_epoch" / Since(9, Default(Int32, -1), ignorable=True)           * "The asking member's epoch; -1 for others (KIP-848).",
    "topics"       / Default(Nullable(Array(OffsetFetchRequestTopics)), []) * "What is asked about; null for all that the group has committed.",
    doc="The question about one group.",
)

OffsetFetchRequest = OffsetFetch.request(
    "group_id"       / Until(7, GroupId)                                                        * "The group asked about; v8+ has groups.",
    "topics"         / Until(7, Default(Nullable(Array(OffsetFetchRequestTopic), since=2), [])) * "What is asked about; null, from v2 on, for all that the group has committed.",
    "groups"         / Since(8, Array(OffsetFetchRequestGroup))                                 * "The groups asked about (KIP-709).",
    "require_stable" / Since(7, Boolean)                                                        * "True: UNSTABLE_OFFSET_COMMIT while a transaction is open on them (KIP-447).",
)

OffsetFetchResponsePartition = Struct(
    "partition_index"        / Int32                                        * "The partition's number.",
    "committed_offset"       / Int64                                        * "The next offset to read; -1 if nothing is committed.",
    "committed_leader_epoch" / Since(5, Default(Int32, -1), ignorable=True) * "Leader epoch of the last record read; -1 if unknown (KIP-320).",
    "metadata"               / Default(Nullable(String), "")                * "The text that came with the commit; null or empty for none.",
    "error_code"             / ErrorCode                                    * "0, or why there is no position.",
    doc="The position in one partition, up to v7.",
)

OffsetFetchResponseTopic = Struct(
    "name"       / TopicName                           * "The topic's name.",
    "partitions" / Array(OffsetFetchResponsePartition) * "Its positions.",
    doc="The positions in one topic, up to v7.",
)

OffsetFetchResponsePartitions = Struct(
    "partition_index"        / Int32                         * "The partition's number.",
    "committed_offset"       / Int64                         * "The next offset to read; -1 if nothing is committed.",
    "committed_leader_epoch" / Default(Int32, -1)            * "Leader epoch of the last record read; -1 if unknown (KIP-320).",
    "metadata"               / Default(Nullable(String), "") * "The text that came with the commit; null or empty for none.",
    "error_code"             / ErrorCode                     * "0, or why there is no position.",
    doc="The position in one partition, since v8.",
)

OffsetFetchResponseTopics = Struct(
    "name"       / Until(9, TopicName, ignorable=True)  * "The topic's name; replaced by topic_id in v10.",
    "topic_id"   / Since(10, Uuid, ignorable=True)      * "The topic's id (v10, KIP-848).",
    "partitions" / Array(OffsetFetchResponsePartitions) * "Its positions.",
    doc="The positions in one topic, since v8.",
)

OffsetFetchResponseGroup = Struct(
    "group_id"   / GroupId                          * "The group asked about.",
    "topics"     / Array(OffsetFetchResponseTopics) * "Its positions; empty on an error.",
    "error_code" / ErrorCode                        * "0, or why this group is not answered.",
    doc="The answer about one group.",
)

OffsetFetchResponse = OffsetFetch.response(
    "throttle_time_ms" / Since(3, Int32, ignorable=True)           * "How long a quota holds the client back, in ms; 0 for not at all.",
    "topics"           / Until(7, Array(OffsetFetchResponseTopic)) * "The positions of the one group, up to v7.",
    "error_code"       / Between(2, 7, ErrorCode, ignorable=True)  * "0, or why nothing is answered; v0 and v1 say it in each partition.",
    "groups"           / Since(8, Array(OffsetFetchResponseGroup)) * "One answer for each group (KIP-709).",
)
