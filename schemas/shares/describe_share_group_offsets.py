"""DescribeShareGroupOffsets: an operator asks how far share groups have read."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    GroupId,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Uuid,
)

DescribeShareGroupOffsets = Api(
    90, "DescribeShareGroupOffsets", versions=(0, 1), flexible=0, coordinator="group",
    doc="Reports the start offsets of share groups' partitions, and their lag (KIP-932).",
    changes={
        1: "The lag of each partition (KIP-1226).",
    },
    errors=(
        *COORDINATOR, "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND",
    ),
)

DescribeShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / TopicName    * "Which topic.",
    "partitions" / Array(Int32) * "Numbers of its partitions.",
    doc="The partitions of one topic to describe.",
)

DescribeShareGroupOffsetsRequestGroup = Struct(
    "group_id" / GroupId                                                             * "Which group.",
    "topics"   / Default(Nullable(Array(DescribeShareGroupOffsetsRequestTopic)), []) * "The topics to describe; null for all topics with offsets.",
    doc="A share group to describe.",
)

DescribeShareGroupOffsetsRequest = DescribeShareGroupOffsets.request(
    "groups" / Array(DescribeShareGroupOffsetsRequestGroup) * "The groups to describe.",
)

DescribeShareGroupOffsetsResponsePartition = Struct(
    "partition_index" / Int32                                        * "Its number within the topic.",
    "start_offset"    / Int64                                        * "All records before it are done with; -1 if not yet known.",
    "leader_epoch"    / Int32                                        * "The partition's leader epoch, as stored with the offset.",
    "lag"             / Since(1, Default(Int64, -1), ignorable=True) * "Records that are still to be delivered or settled; -1 if unknown (KIP-1226).",
    "error_code"      / ErrorCode                                    * "0, or why it is not described.",
    "error_message"   / Nullable(String)                             * "Explains the error; null if there is none.",
    doc="How far the group is in one partition.",
)

DescribeShareGroupOffsetsResponseTopic = Struct(
    "topic_name" / TopicName                                         * "Which topic.",
    "topic_id"   / Uuid                                              * "Its id; zero if unknown.",
    "partitions" / Array(DescribeShareGroupOffsetsResponsePartition) * "How far it is, a partition each.",
    doc="How far the group is in one topic.",
)

DescribeShareGroupOffsetsResponseGroup = Struct(
    "group_id"      / GroupId                                       * "Which group.",
    "topics"        / Array(DescribeShareGroupOffsetsResponseTopic) * "How far it is, a topic each.",
    "error_code"    / ErrorCode                                     * "0, or why the group is not described.",
    "error_message" / Nullable(String)                              * "Explains the error; null if there is none.",
    doc="How far one group is.",
)

DescribeShareGroupOffsetsResponse = DescribeShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                         * "Throttling in ms: 0, or how long the quota holds this client back.",
    "groups"           / Array(DescribeShareGroupOffsetsResponseGroup) * "How far they are, a group each.",
)
