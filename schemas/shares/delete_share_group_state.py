"""DeleteShareGroupState: the group coordinator has share-partitions' state deleted."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import Api, Array, ErrorCode, GroupId, Int32, Nullable, String, Struct, Uuid

DeleteShareGroupState = Api(
    86, "DeleteShareGroupState", versions=(0, 1), flexible=0, unreleased=1, coordinator="share",
    request_headers={0: 2, 1: 3},
    partitions="topics[].partitions[].partition", modifies=True,
    doc="Deletes the stored state of share-partitions. Brokers send it to the share coordinator (KIP-932).",
    changes={
        1: "The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND", "FENCED_STATE_EPOCH",
    ),
)

PartitionData = Struct(
    "partition" / Int32 * "Its number within the topic.",
    doc="A partition whose state shall go.",
)

DeleteStateData = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "Whose state to delete.",
    doc="The partitions of one topic whose state shall go.",
)

DeleteShareGroupStateRequest = DeleteShareGroupState.request(
    "group_id" / GroupId                * "The share group whose state shall go.",
    "topics"   / Array(DeleteStateData) * "What to delete, a topic each.",
)

PartitionResult = Struct(
    "partition"     / Int32            * "Its number within the topic.",
    "error_code"    / ErrorCode        * "0, or why the state is still there.",
    "error_message" / Nullable(String) * "Explains the error; null if there is none.",
    doc="What became of one partition's state.",
)

DeleteStateResult = Struct(
    "topic_id"   / Uuid                   * "The topic's id.",
    "partitions" / Array(PartitionResult) * "What became of them, a partition each.",
    doc="What became of one topic's partitions.",
)

DeleteShareGroupStateResponse = DeleteShareGroupState.response(
    "results" / Array(DeleteStateResult) * "What became of the state, a topic each.",
)
