"""TODO"""

from schemas.vocabulary import Api, Array, Int8, Int16, Int32, Int64, Nullable, String, Struct, Uuid

ReadShareGroupState = Api(
    84, "ReadShareGroupState", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

PartitionData = Struct(
    "partition"    / Int32 * "TODO",
    "leader_epoch" / Int32 * "TODO",
    about="TODO",
)

ReadStateData = Struct(
    "topic_id"   / Uuid                 * "TODO",
    "partitions" / Array(PartitionData) * "TODO",
    about="TODO",
)

ReadShareGroupStateRequest = ReadShareGroupState.request(
    "group_id" / String               * "TODO",
    "topics"   / Array(ReadStateData) * "TODO",
)

StateBatch = Struct(
    "first_offset"   / Int64 * "TODO",
    "last_offset"    / Int64 * "TODO",
    "delivery_state" / Int8  * "TODO",
    "delivery_count" / Int16 * "TODO",
    about="TODO",
)

PartitionResult = Struct(
    "partition"     / Int32             * "TODO",
    "error_code"    / Int16             * "TODO",
    "error_message" / Nullable(String)  * "TODO",
    "state_epoch"   / Int32             * "TODO",
    "start_offset"  / Int64             * "TODO",
    "state_batches" / Array(StateBatch) * "TODO",
    about="TODO",
)

ReadStateResult = Struct(
    "topic_id"   / Uuid                   * "TODO",
    "partitions" / Array(PartitionResult) * "TODO",
    about="TODO",
)

ReadShareGroupStateResponse = ReadShareGroupState.response(
    "results" / Array(ReadStateResult) * "TODO",
)
