"""ReadShareGroupState: a partition's leader loads its share-partition's state."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    GroupId,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    String,
    Struct,
    Uuid,
)

ReadShareGroupState = Api(
    84, "ReadShareGroupState", versions=(0, 1), flexible=0, unreleased=1, coordinator="share",
    request_headers={0: 2, 1: 3},
    partitions="topics[].partitions[].partition", modifies=True,
    doc="Reads the stored state of share-partitions. Brokers send it to the share coordinator (KIP-932).",
    changes={
        1: "The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND", "FENCED_LEADER_EPOCH",
    ),
)

PartitionData = Struct(
    "partition"    / Int32 * "Its number within the topic.",
    "leader_epoch" / Int32 * "The epoch that the partition's leader acts in; an older one is fenced.",
    doc="A partition whose state is wanted.",
)

ReadStateData = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "Whose state to read.",
    doc="The partitions of one topic whose state is wanted.",
)

ReadShareGroupStateRequest = ReadShareGroupState.request(
    "group_id" / GroupId              * "The share group whose state is wanted.",
    "topics"   / Array(ReadStateData) * "What to read, a topic each.",
)

StateBatch = Struct(
    "first_offset"   / Int64 * "Where the run starts.",
    "last_offset"    / Int64 * "Where it ends, itself included.",
    "delivery_state" / Int8  * "0 available, 2 acknowledged, 4 archived.",
    "delivery_count" / Int16 * "How often the records were handed to a consumer.",
    doc="Offsets in a row that are in the same state.",
)

PartitionResult = Struct(
    "partition"     / Int32             * "Its number within the topic.",
    "error_code"    / ErrorCode         * "0, or why there is no state.",
    "error_message" / Nullable(String)  * "Explains the error; null if there is none.",
    "state_epoch"   / Int32             * "The epoch that the state was last set up with; later writes repeat it.",
    "start_offset"  / Int64             * "All records before it are done with; -1 if not yet known.",
    "state_batches" / Array(StateBatch) * "States from start_offset on; offsets in none of them are available.",
    doc="The state of one partition.",
)

ReadStateResult = Struct(
    "topic_id"   / Uuid                   * "The topic's id.",
    "partitions" / Array(PartitionResult) * "The state, a partition each.",
    doc="The state of one topic's partitions.",
)

ReadShareGroupStateResponse = ReadShareGroupState.response(
    "results" / Array(ReadStateResult) * "The state, a topic each.",
)
