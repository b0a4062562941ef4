"""ReadShareGroupStateSummary: the group coordinator asks where share-partitions start."""

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
    Uuid,
)

ReadShareGroupStateSummary = Api(
    87, "ReadShareGroupStateSummary", versions=(0, 2), flexible=0, unreleased=2, coordinator="share",
    request_headers={0: 2, 2: 3},
    partitions="topics[].partitions[].partition",
    doc="Reads the stored state of share-partitions without its batches. Brokers send it to the share coordinator (KIP-932).",
    changes={
        1: "How many records are done with, for the lag (KIP-1226).",
        2: "The client is named once a connection, in header version 3 (KIP-1313).",
    },
    errors=(
        *COORDINATOR, "UNKNOWN_TOPIC_OR_PARTITION", "CLUSTER_AUTHORIZATION_FAILED", "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND", "FENCED_LEADER_EPOCH",
    ),
)

PartitionData = Struct(
    "partition"    / Int32 * "Its number within the topic.",
    "leader_epoch" / Int32 * "The partition's leader epoch, as the sender knows it.",
    doc="A partition whose state is wanted.",
)

ReadStateSummaryData = Struct(
    "topic_id"   / Uuid                 * "The topic's id.",
    "partitions" / Array(PartitionData) * "Whose state to read.",
    doc="The partitions of one topic whose state is wanted.",
)

ReadShareGroupStateSummaryRequest = ReadShareGroupStateSummary.request(
    "group_id" / GroupId                     * "The share group whose state is wanted.",
    "topics"   / Array(ReadStateSummaryData) * "What to read, a topic each.",
)

PartitionResult = Struct(
    "partition"               / Int32                                        * "Its number within the topic.",
    "error_code"              / ErrorCode                                    * "0, or why there is no state.",
    "error_message"           / Nullable(String)                             * "Explains the error; null if there is none.",
    "state_epoch"             / Int32                                        * "The epoch that the state was last set up with.",
    "leader_epoch"            / Int32                                        * "The leader epoch stored with the state.",
    "start_offset"            / Int64                                        * "All records before it are done with; -1 if not yet known.",
    "delivery_complete_count" / Since(1, Default(Int32, -1), ignorable=True) * "Acknowledged and archived records from start_offset on; -1 if unknown (KIP-1226).",
    doc="The state of one partition, in short.",
)

ReadStateSummaryResult = Struct(
    "topic_id"   / Uuid                   * "The topic's id.",
    "partitions" / Array(PartitionResult) * "The state, a partition each.",
    doc="The state of one topic's partitions, in short.",
)

ReadShareGroupStateSummaryResponse = ReadShareGroupStateSummary.response(
    "results" / Array(ReadStateSummaryResult) * "The state, a topic each.",
)
