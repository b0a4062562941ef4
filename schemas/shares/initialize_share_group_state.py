"""InitializeShareGroupState: the group coordinator has share-partitions' state created."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import Api, Array, ErrorCode, GroupId, Int32, Int64, Nullable, String, Struct, Uuid

InitializeShareGroupState = Api(
    83, "InitializeShareGroupState", versions=(0, 1), flexible=0, unreleased=1, coordinator="share",
    request_headers={0: 2, 1: 3},
    partitions="topics[].partitions[].partition", modifies=True,
    doc="Creates, or resets, the stored state of share-partitions. Brokers send it to the share coordinator (KIP-932).",
    changes={
        1: "The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "FENCED_STATE_EPOCH",
    ),
)

PartitionData = Struct(
    "partition"    / Int32 * "Its number within the topic.",
    "state_epoch"  / Int32 * "Grows with each reset, and fences writes that came before it.",
    "start_offset" / Int64 * "Where delivery starts; -1 leaves it to the group's reset setting.",
    doc="The state that one partition starts with.",
)

InitializeStateData = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "What each starts with.",
    doc="The partitions of one topic that get a state.",
)

InitializeShareGroupStateRequest = InitializeShareGroupState.request(
    "group_id" / GroupId                    * "The share group that the state is for.",
    "topics"   / Array(InitializeStateData) * "What to create, a topic each.",
)

PartitionResult = Struct(
    "partition"     / Int32            * "Its number within the topic.",
    "error_code"    / ErrorCode        * "0, or why no state was created.",
    "error_message" / Nullable(String) * "Explains the error; null if there is none.",
    doc="What became of one partition's state.",
)

InitializeStateResult = Struct(
    "topic_id"   / Uuid                   * "The topic's id.",
    "partitions" / Array(PartitionResult) * "What became of them, a partition each.",
    doc="What became of one topic's partitions.",
)

InitializeShareGroupStateResponse = InitializeShareGroupState.response(
    "results" / Array(InitializeStateResult) * "What became of the state, a topic each.",
)
