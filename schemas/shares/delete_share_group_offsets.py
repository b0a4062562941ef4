"""DeleteShareGroupOffsets: an operator removes a share group's offsets of topics."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    GroupId,
    Int32,
    Nullable,
    String,
    Struct,
    TopicName,
    Uuid,
)

DeleteShareGroupOffsets = Api(
    92, "DeleteShareGroupOffsets", versions=(0, 0), flexible=0, coordinator="group", modifies=True,
    doc="Deletes what a share group knows of whole topics. The group must have no members (KIP-932).",
    changes={},
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_GROUP_ID", "TOPIC_AUTHORIZATION_FAILED",
        "GROUP_AUTHORIZATION_FAILED", "INVALID_REQUEST", "KAFKA_STORAGE_ERROR", "NON_EMPTY_GROUP",
        "GROUP_ID_NOT_FOUND",
    ),
)

DeleteShareGroupOffsetsRequestTopic = Struct(
    "topic_name" / TopicName * "Which topic.",
    doc="A topic whose offsets are removed, in all its partitions.",
)

DeleteShareGroupOffsetsRequest = DeleteShareGroupOffsets.request(
    "group_id" / GroupId                                    * "The share group to change.",
    "topics"   / Array(DeleteShareGroupOffsetsRequestTopic) * "The topics whose offsets are removed.",
)

DeleteShareGroupOffsetsResponseTopic = Struct(
    "topic_name"    / TopicName        * "Which topic.",
    "topic_id"      / Uuid             * "Its id; zero if unknown.",
    "error_code"    / ErrorCode        * "0, or why its offsets are still there.",
    "error_message" / Nullable(String) * "Explains the error; null if there is none.",
    doc="What became of one topic.",
)

DeleteShareGroupOffsetsResponse = DeleteShareGroupOffsets.response(
    "throttle_time_ms" / Int32                                       * "Throttling in ms: 0, or how long the quota holds this client back.",
    "error_code"       / ErrorCode                                   * "0, or why the whole request failed, such as a group with members.",
    "error_message"    / Nullable(String)                            * "Explains the error; null if there is none.",
    "responses"        / Array(DeleteShareGroupOffsetsResponseTopic) * "What became of the offsets, a topic each.",
)
