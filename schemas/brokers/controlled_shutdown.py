"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Int64, Since, String, Struct

ControlledShutdown = Api(
    7, "ControlledShutdown", versions=(0, 3), flexible=3,
    about="TODO",
    changes={},
)

ControlledShutdownRequest = ControlledShutdown.request(
    "broker_id"    / Int32                                        * "TODO",
    "broker_epoch" / Since(2, Default(Int64, -1), ignorable=True) * "TODO",
)

RemainingPartition = Struct(
    "topic_name"      / String * "TODO",
    "partition_index" / Int32  * "TODO",
    about="TODO",
)

ControlledShutdownResponse = ControlledShutdown.response(
    "error_code"           / Int16                     * "TODO",
    "remaining_partitions" / Array(RemainingPartition) * "TODO",
)
