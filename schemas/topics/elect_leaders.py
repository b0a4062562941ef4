"""ElectLeaders: has the controller choose the leaders of partitions again."""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
)

ElectLeaders = Api(
    43, "ElectLeaders", versions=(0, 2), flexible=2, listeners=("broker", "controller"),
    answered_by="controller", modifies=True,
    doc="Puts partitions back under their preferred leaders, or brings back leaderless ones at the risk of losing data.",
    changes={
        1: "The kind of election, and an error for the whole request (KIP-460).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER",
        "PREFERRED_LEADER_NOT_AVAILABLE", "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ELECTION_NOT_NEEDED",
    ),
)

TopicPartitions = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of its partitions.",
    doc="The partitions of one topic to hold elections for.",
)

ElectLeadersRequest = ElectLeaders.request(
    "election_type"    / Since(1, Int8)                                * "0 elects the preferred replica, 1 an out-of-sync one if it must; v0 means 0.",
    "topic_partitions" / Default(Nullable(Array(TopicPartitions)), []) * "Where to elect; null for every partition of the cluster.",
    "timeout_ms"       / Default(Int32, 60_000)                        * "How long to wait for the elections, in ms.",
)

PartitionResult = Struct(
    "partition_id"  / Int32                         * "The partition's number.",
    "error_code"    / ErrorCode                     * "0, or why no leader was elected; ELECTION_NOT_NEEDED where all was well.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="What became of one partition's election.",
)

ReplicaElectionResult = Struct(
    "topic"            / TopicName              * "The topic's name.",
    "partition_result" / Array(PartitionResult) * "One outcome for each partition.",
    doc="What became of one topic's elections.",
)

ElectLeadersResponse = ElectLeaders.response(
    "throttle_time_ms"         / Int32                        * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"               / Since(1, ErrorCode)          * "0, or why nothing was elected at all.",
    "replica_election_results" / Array(ReplicaElectionResult) * "One outcome for each topic.",
)
