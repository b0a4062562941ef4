"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int16, Int32, Nullable, String, Struct

ListPartitionReassignments = Api(
    46, "ListPartitionReassignments", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

ListPartitionReassignmentsTopics = Struct(
    "name"              / String       * "TODO",
    "partition_indexes" / Array(Int32) * "TODO",
    about="TODO",
)

ListPartitionReassignmentsRequest = ListPartitionReassignments.request(
    "timeout_ms" / Default(Int32, 60_000)                            * "TODO",
    "topics"     / Nullable(Array(ListPartitionReassignmentsTopics)) * "TODO",
)

OngoingPartitionReassignment = Struct(
    "partition_index"   / Int32        * "TODO",
    "replicas"          / Array(Int32) * "TODO",
    "adding_replicas"   / Array(Int32) * "TODO",
    "removing_replicas" / Array(Int32) * "TODO",
    about="TODO",
)

OngoingTopicReassignment = Struct(
    "name"       / String                              * "TODO",
    "partitions" / Array(OngoingPartitionReassignment) * "TODO",
    about="TODO",
)

ListPartitionReassignmentsResponse = ListPartitionReassignments.response(
    "throttle_time_ms" / Int32                           * "TODO",
    "error_code"       / Int16                           * "TODO",
    "error_message"    / Default(Nullable(String), "")   * "TODO",
    "topics"           / Array(OngoingTopicReassignment) * "TODO",
)
