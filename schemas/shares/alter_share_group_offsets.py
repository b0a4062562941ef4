"""AlterShareGroupOffsets: an operator moves where a share group reads from."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    GroupId,
    Int32,
    Int64,
    Nullable,
    String,
    Struct,
    TopicName,
    Uuid,
)

AlterShareGroupOffsets = Api(
    91, "AlterShareGroupOffsets", versions=(0, 0), flexible=0, coordinator="group", modifies=True,
    doc="Sets the start offsets of a share group's partitions. The group must have no members (KIP-932).",
    changes={},
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_GROUP_ID", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST", "KAFKA_STORAGE_ERROR", "NON_EMPTY_GROUP",
        "GROUP_ID_NOT_FOUND",
    ),
)

AlterShareGroupOffsetsRequestPartition = Struct(
    "partition_index" / Int32 * "Its number within the topic.",
    "start_offset"    / Int64 * "The first offset to deliver from now on.",
    doc="Where to start in one partition.",
)

AlterShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / TopicName                                     * "Which topic.",
    "partitions" / Array(AlterShareGroupOffsetsRequestPartition) * "Where to start, a partition each.",
    doc="The partitions of one topic to move in.",
)

AlterShareGroupOffsetsRequest = AlterShareGroupOffsets.request(
    "group_id" / GroupId                                   * "The share group to change.",
    "topics"   / Array(AlterShareGroupOffsetsRequestTopic) * "Where to start, a topic each.",
)

AlterShareGroupOffsetsResponsePartition = Struct(
    "partition_index" / Int32            * "Its number within the topic.",
    "error_code"      / ErrorCode        * "0, or why its offset was not changed.",
    "error_message"   / Nullable(String) * "Explains the error; null if there is none.",
    doc="What became of one partition.",
)

AlterShareGroupOffsetsResponseTopic = Struct(
    "topic_name" / TopicName                                      * "Which topic.",
    "topic_id"   / Uuid                                           * "Its id; zero if unknown.",
    "partitions" / Array(AlterShareGroupOffsetsResponsePartition) * "What became of them, a partition each.",
    doc="What became of one topic's partitions.",
)

AlterShareGroupOffsetsResponse = AlterShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                      * "Throttling in ms: 0, or how long the quota holds this client back.",
    "error_code"       / ErrorCode                                  * "0, or why the whole request failed, such as a group with members.",
    "error_message"    / Nullable(String)                           * "Explains the error; null if there is none.",
    "responses"        / Array(AlterShareGroupOffsetsResponseTopic) * "What became of the offsets, a topic each.",
)
