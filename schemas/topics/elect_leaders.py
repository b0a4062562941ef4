"""TODO"""

from schemas.vocabulary import Api, Array, Default, Int8, Int16, Int32, Nullable, Since, String, Struct

ElectLeaders = Api(
    43, "ElectLeaders", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

TopicPartitions = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

ElectLeadersRequest = ElectLeaders.request(
    "election_type"    / Since(1, Int8)                                * "TODO",
    "topic_partitions" / Default(Nullable(Array(TopicPartitions)), []) * "TODO",
    "timeout_ms"       / Default(Int32, 60_000)                        * "TODO",
)

PartitionResult = Struct(
    "partition_id"  / Int32                         * "TODO",
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

ReplicaElectionResult = Struct(
    "topic"            / String                 * "TODO",
    "partition_result" / Array(PartitionResult) * "TODO",
    about="TODO",
)

ElectLeadersResponse = ElectLeaders.response(
    "throttle_time_ms"         / Int32                        * "TODO",
    "error_code"               / Since(1, Int16)              * "TODO",
    "replica_election_results" / Array(ReplicaElectionResult) * "TODO",
)
