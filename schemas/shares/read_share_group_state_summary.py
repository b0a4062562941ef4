"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Uuid,
)

ReadShareGroupStateSummary = Api(
    87, "ReadShareGroupStateSummary", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

PartitionData = Struct(
    "partition"    / Int32 * "TODO",
    "leader_epoch" / Int32 * "TODO",
    about="TODO",
)

ReadStateSummaryData = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

ReadShareGroupStateSummaryRequest = ReadShareGroupStateSummary.request(
    "group_id" / String                      * "TODO",
    "topics"   / Array(ReadStateSummaryData) * "TODO",
)

PartitionResult = Struct(
    "partition"               / Int32                                        * "TODO",
    "error_code"              / Int16                                        * "TODO",
    "error_message"           / Nullable(String)                             * "TODO",
    "state_epoch"             / Int32                                        * "TODO",
    "leader_epoch"            / Int32                                        * "TODO",
    "start_offset"            / Int64                                        * "TODO",
    "delivery_complete_count" / Since(1, Default(Int32, -1), ignorable=True) * "TODO",
    about="TODO",
)

ReadStateSummaryResult = Struct(
    "topic_id"   / Uuid                   * "TODO",
    "partitions" / Array(PartitionResult) * "TODO",
    about="TODO",
)

ReadShareGroupStateSummaryResponse = ReadShareGroupStateSummary.response(
    "results" / Array(ReadStateSummaryResult) * "TODO",
)
