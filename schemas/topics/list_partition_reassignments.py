"""ListPartitionReassignments: which partitions are on the move, and from where to where."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    String,
    Struct,
    TopicName,
)

ListPartitionReassignments = Api(
    46, "ListPartitionReassignments", versions=(0, 0), flexible=0, listeners=("broker", "controller"),
    answered_by="controller",
    doc="Shows the reassignments under way (KIP-455). Partitions at rest are left out of the answer.",
    changes={},
    errors=("REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER"),
)

ListPartitionReassignmentsTopics = Struct(
    "name"              / TopicName    * "The topic's name.",
    "partition_indexes" / Array(Int32) * "Numbers of the partitions to look at.",
    doc="The partitions of one topic asked about.",
)

ListPartitionReassignmentsRequest = ListPartitionReassignments.request(
    "timeout_ms" / Default(Int32, 60_000)                            * "How long the controller may take to answer, in ms.",
    "topics"     / Nullable(Array(ListPartitionReassignmentsTopics)) * "Where to look; null for every partition of the cluster.",
)

OngoingPartitionReassignment = Struct(
    "partition_index"   / Int32           * "The partition's number.",
    "replicas"          / Array(BrokerId) * "Broker ids of all present replicas, those coming and going among them.",
    "adding_replicas"   / Array(BrokerId) * "Brokers that are taking up a replica.",
    "removing_replicas" / Array(BrokerId) * "Brokers that give up their replica at the end.",
    doc="One partition on the move.",
)

OngoingTopicReassignment = Struct(
    "name"       / TopicName                           * "The topic's name.",
    "partitions" / Array(OngoingPartitionReassignment) * "Those of its partitions that are on the move.",
    doc="The moves within one topic.",
)

ListPartitionReassignmentsResponse = ListPartitionReassignments.response(
    "throttle_time_ms" / Int32                           * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                       * "0, or why nothing could be listed.",
    "error_message"    / Default(Nullable(String), "")   * "More about the error; null or empty for none.",
    "topics"           / Array(OngoingTopicReassignment) * "The moves under way, by topic; empty if there are none.",
)
