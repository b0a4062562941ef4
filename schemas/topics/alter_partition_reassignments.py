"""AlterPartitionReassignments: moves partitions to other brokers, or calls a move off."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
)

AlterPartitionReassignments = Api(
    45, "AlterPartitionReassignments", versions=(0, 1), flexible=0, listeners=("broker", "controller"),
    answered_by="controller", modifies=True,
    doc="Starts, changes or cancels the reassignment of single partitions (KIP-455). The answer comes when the controller has taken the order, not when the data has moved.",
    changes={
        1: "The client may forbid a change of the replication factor (KIP-860).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_REPLICATION_FACTOR", "INVALID_REPLICA_ASSIGNMENT", "NOT_CONTROLLER",
        "NO_REASSIGNMENT_IN_PROGRESS",
    ),
)

ReassignablePartition = Struct(
    "partition_index" / Int32                     * "The partition's number.",
    "replicas"        / Nullable(Array(BrokerId)) * "Broker ids to move to, preferred leader first; null cancels a move under way.",
    doc="The target of one partition.",
)

ReassignableTopic = Struct(
    "name"       / TopicName                    * "The topic's name.",
    "partitions" / Array(ReassignablePartition) * "The partitions to move, or to stop moving.",
    doc="The targets within one topic.",
)

AlterPartitionReassignmentsRequest = AlterPartitionReassignments.request(
    "timeout_ms"                      / Default(Int32, 60_000)           * "How long the controller may take to accept, in ms.",
    "allow_replication_factor_change" / Since(1, Default(Boolean, True)) * "False: refuse targets with more or fewer replicas (KIP-860).",
    "topics"                          / Array(ReassignableTopic)         * "What to reassign, by topic.",
)

ReassignablePartitionResponse = Struct(
    "partition_index" / Int32                         * "The partition's number.",
    "error_code"      / ErrorCode                     * "0, or why this order was refused.",
    "error_message"   / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="What became of one partition's order.",
)

ReassignableTopicResponse = Struct(
    "name"       / TopicName                            * "The topic's name.",
    "partitions" / Array(ReassignablePartitionResponse) * "One outcome for each partition.",
    doc="What became of one topic's orders.",
)

AlterPartitionReassignmentsResponse = AlterPartitionReassignments.response(
    "throttle_time_ms"                / Int32                                            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "allow_replication_factor_change" / Since(1, Default(Boolean, True), ignorable=True) * "The request's choice, repeated (KIP-860).",
    "error_code"                      / ErrorCode                                        * "0, or why the whole request was refused.",
    "error_message"                   / Default(Nullable(String), "")                    * "More about the error; null or empty for none.",
    "responses"                       / Array(ReassignableTopicResponse)                 * "One outcome for each topic.",
)
