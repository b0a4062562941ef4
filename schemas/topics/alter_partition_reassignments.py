"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Default, Int16, Int32, Nullable, Since, String, Struct

AlterPartitionReassignments = Api(
    45, "AlterPartitionReassignments", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

ReassignablePartition = Struct(
    "partition_index" / Int32                  * "TODO",
    "replicas"        / Nullable(Array(Int32)) * "TODO",
    about="TODO",
)

ReassignableTopic = Struct(
    "name"       / String                       * "TODO",
    "partitions" / Array(ReassignablePartition) * "TODO",
    about="TODO",
)

AlterPartitionReassignmentsRequest = AlterPartitionReassignments.request(
    "timeout_ms"                      / Default(Int32, 60_000)           * "TODO",
    "allow_replication_factor_change" / Since(1, Default(Boolean, True)) * "TODO",
    "topics"                          / Array(ReassignableTopic)         * "TODO",
)

ReassignablePartitionResponse = Struct(
    "partition_index" / Int32                         * "TODO",
    "error_code"      / Int16                         * "TODO",
    "error_message"   / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

ReassignableTopicResponse = Struct(
    "name"       / String                               * "TODO",
    "partitions" / Array(ReassignablePartitionResponse) * "TODO",
    about="TODO",
)

AlterPartitionReassignmentsResponse = AlterPartitionReassignments.response(
    "throttle_time_ms"                / Int32                                            * "TODO",
    "allow_replication_factor_change" / Since(1, Default(Boolean, True), ignorable=True) * "TODO",
    "error_code"                      / Int16                                            * "TODO",
    "error_message"                   / Default(Nullable(String), "")                    * "TODO",
    "responses"                       / Array(ReassignableTopicResponse)                 * "TODO",
)
