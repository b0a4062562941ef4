"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
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
    85, "WriteShareGroupState", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

StateBatch = Struct(
    "first_offset"   / Int64 * "TODO",
    "last_offset"    / Int64 * "TODO",
    "delivery_state" / Int8  * "TODO",
    "delivery_count" / Int16 * "TODO",
    about="TODO",
)

PartitionData = Struct(
    "partition"               / Int32                                        * "TODO",
    "state_epoch"             / Int32                                        * "TODO",
    "leader_epoch"            / Int32                                        * "TODO",
    "start_offset"            / Int64                                        * "TODO",
    "delivery_complete_count" / Since(1, Default(Int32, -1), ignorable=True) * "TODO",
    "state_batches"           / Array(StateBatch)                            * "TODO",
    about="TODO",
)

WriteStateData = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

WriteShareGroupStateRequest = WriteShareGroupState.request(
    "group_id" / String                * "TODO",
    "topics"   / Array(WriteStateData) * "TODO",
)

PartitionResult = Struct(
    "partition"     / Int32            * "TODO",
    "error_code"    / Int16            * "TODO",
    "error_message" / Nullable(String) * "TODO",
    about="TODO",
)

WriteStateResult = Struct(
    "topic_id"   / Uuid                   * "TODO",
    "partitions" / Array(PartitionResult) * "TODO",
    about="TODO",
)

WriteShareGroupStateResponse = WriteShareGroupState.response(
    "results" / Array(WriteStateResult) * "TODO",
)
