"""WriteShareGroupState: a partition's leader stores its share-partition's state."""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    GroupId,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

WriteShareGroupState = Api(
    85, "WriteShareGroupState", versions=(0, 2), flexible=0, unreleased=2, coordinator="share",
    request_headers={0: 2, 2: 3},
    partitions="topics[].partitions[].partition", modifies=True,
    doc="Stores what changed in the state of share-partitions. Brokers send it to the share coordinator (KIP-932).",
    changes={
        1: "How many records are done with, for the lag (KIP-1226).",
        2: "The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND", "FENCED_LEADER_EPOCH", "FENCED_STATE_EPOCH",
    ),
)

StateBatch = Struct(
    "first_offset"   / Int64 * "Where the run starts.",
    "last_offset"    / Int64 * "Where it ends, itself included.",
    "delivery_state" / Int8  * "0 available, 2 acknowledged, 4 archived.",
    "delivery_count" / Int16 * "How often the records were handed to a consumer.",
    doc="Offsets in a row that are in the same state.",
)

PartitionData = Struct(
    "partition"               / Int32                                        * "Its number within the topic.",
    "state_epoch"             / Int32                                        * "The epoch that the leader read the state with; an older one is fenced.",
    "leader_epoch"            / Int32                                        * "The epoch that the partition's leader acts in; an older one is fenced.",
    "start_offset"            / Int64                                        * "All records before it are done with; -1 to leave it as it is.",
    "delivery_complete_count" / Since(1, Default(Int32, -1), ignorable=True) * "Acknowledged and archived records from start_offset on; -1 if unknown (KIP-1226).",
    "state_batches"           / Array(StateBatch)                            * "Only what changed; it goes over what is stored.",
    doc="What changed in one partition.",
)

WriteStateData = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "What changed, a partition each.",
    doc="What changed in one topic's partitions.",
)

WriteShareGroupStateRequest = WriteShareGroupState.request(
    "group_id" / GroupId               * "The share group that the state is of.",
    "topics"   / Array(WriteStateData) * "What changed, a topic each.",
)

PartitionResult = Struct(
    "partition"     / Int32            * "Its number within the topic.",
    "error_code"    / ErrorCode        * "0, or why nothing was stored.",
    "error_message" / Nullable(String) * "Explains the error; null if there is none.",
    doc="What became of one partition's state.",
)

WriteStateResult = Struct(
    "topic_id"   / Uuid                   * "The topic's id.",
    "partitions" / Array(PartitionResult) * "What became of them, a partition each.",
    doc="What became of one topic's partitions.",
)

WriteShareGroupStateResponse = WriteShareGroupState.response(
    "results" / Array(WriteStateResult) * "What became of the state, a topic each.",
)
