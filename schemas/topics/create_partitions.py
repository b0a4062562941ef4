"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int16, Int32, Nullable, String, Struct

CreatePartitions = Api(
    37, "CreatePartitions", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

CreatePartitionsAssignment = Struct(
    "broker_ids" / Array(Int32) * "TODO",
    about="TODO",
)

CreatePartitionsTopic = Struct(
    "name"        / String                                                   * "TODO",
    "count"       / Int32                                                    * "TODO",
    "assignments" / Default(Nullable(Array(CreatePartitionsAssignment)), []) * "TODO",
    about="TODO",
)

CreatePartitionsRequest = CreatePartitions.request(
    "topics"        / Array(CreatePartitionsTopic) * "TODO",
    "timeout_ms"    / Int32                        * "TODO",
    "validate_only" / Boolean                      * "TODO",
)

CreatePartitionsTopicResult = Struct(
    "name"          / String           * "TODO",
    "error_code"    / Int16            * "TODO",
    "error_message" / Nullable(String) * "TODO",
    about="TODO",
)

CreatePartitionsResponse = CreatePartitions.response(
    "throttle_time_ms" / Int32                              * "TODO",
    "results"          / Array(CreatePartitionsTopicResult) * "TODO",
)
