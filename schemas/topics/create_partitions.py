"""CreatePartitions: gives existing topics more partitions."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    String,
    Struct,
    TopicName,
)

CreatePartitions = Api(
    37, "CreatePartitions", versions=(0, 3), flexible=2, listeners=("broker", "controller"),
    answered_by="controller", modifies=("validate_only", False),
    doc="Raises the number of partitions of topics; it can never be lowered. Records already written stay where they are.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "Same layout; a quota may refuse the request with THROTTLING_QUOTA_EXCEEDED (KIP-599).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT", "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED", "INVALID_PARTITIONS", "INVALID_REPLICA_ASSIGNMENT", "NOT_CONTROLLER",
        "INVALID_REQUEST", "POLICY_VIOLATION", "REASSIGNMENT_IN_PROGRESS", "THROTTLING_QUOTA_EXCEEDED",
    ),
)

CreatePartitionsAssignment = Struct(
    "broker_ids" / Array(BrokerId) * "Brokers to hold the replicas, preferred leader first.",
    doc="Where the replicas of one new partition go.",
)

CreatePartitionsTopic = Struct(
    "name"        / TopicName                                                * "The topic's name.",
    "count"       / Int32                                                    * "How many partitions the topic shall have in all, old and new.",
    "assignments" / Default(Nullable(Array(CreatePartitionsAssignment)), []) * "One entry for each new partition, in order; null lets the controller place them.",
    doc="One topic to enlarge.",
)

CreatePartitionsRequest = CreatePartitions.request(
    "topics"        / Array(CreatePartitionsTopic) * "The topics to enlarge.",
    "timeout_ms"    / Int32                        * "How long to wait for the new partitions, in ms.",
    "validate_only" / Boolean                      * "True: check the request, change nothing.",
)

CreatePartitionsTopicResult = Struct(
    "name"          / TopicName        * "The topic's name.",
    "error_code"    / ErrorCode        * "0, or why the topic was not enlarged.",
    "error_message" / Nullable(String) * "More about the error; null for none.",
    doc="What became of one topic.",
)

CreatePartitionsResponse = CreatePartitions.response(
    "throttle_time_ms" / Int32                              * "How long a quota holds the client back, in ms; 0 for not at all.",
    "results"          / Array(CreatePartitionsTopicResult) * "One outcome for each topic.",
)
