"""EndQuorumEpoch: a leader resigns and names its preferred successors (KIP-595)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    ErrorCode,
    Int32,
    Nullable,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Until,
    Uuid,
)

EndQuorumEpoch = Api(
    54, "EndQuorumEpoch", versions=(0, 1), flexible=1, listeners=("controller",), modifies=True,
    doc="Sent by a leader that shuts down, so that the voters elect at once instead of waiting for a timeout. The first on its list becomes a candidate first, the others a little later.",
    changes={
        1: "Successors go by node and directory id, leaders report their addresses; flexible lengths (KIP-853).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "BROKER_NOT_AVAILABLE", "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "FENCED_LEADER_EPOCH", "INCONSISTENT_VOTER_SET", "INCONSISTENT_CLUSTER_ID",
    ),
)

ReplicaInfo = Struct(
    "candidate_id"           / BrokerId * "The voter's node id.",
    "candidate_directory_id" / Uuid     * "Id of the directory where the voter keeps its metadata log.",
    doc="One voter that may become a candidate.",
)

EndQuorumEpochRequestPartitionData = Struct(
    "partition_index"      / Int32                                        * "The partition's number; 0 for the metadata log.",
    "leader_id"            / BrokerId                                     * "Node id of the leader that resigns.",
    "leader_epoch"         / Int32                                        * "The epoch that it led.",
    "preferred_successors" / Until(0, Array(Int32), ignorable=True)       * "Node ids of the voters, best first: the longest log leads the list (v0).",
    "preferred_candidates" / Since(1, Array(ReplicaInfo), ignorable=True) * "The same, best first, each with its directory id (v1, KIP-853).",
    doc="The end of one leadership.",
)

EndQuorumEpochRequestTopicData = Struct(
    "topic_name" / TopicName                                 * "The topic's name, __cluster_metadata in practice.",
    "partitions" / Array(EndQuorumEpochRequestPartitionData) * "Its partitions.",
    doc="One topic whose leader resigns.",
)

LeaderEndpoint = Struct(
    "name" / String          * "The listener's name, such as CONTROLLER.",
    "host" / BrokerHost      * "Host name or IP address.",
    "port" / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="One address at which the resigning leader listens.",
)

EndQuorumEpochRequest = EndQuorumEpoch.request(
    "cluster_id"       / Nullable(String)                                * "The cluster meant; null for no check.",
    "topics"           / Array(EndQuorumEpochRequestTopicData)           * "What the sender no longer leads.",
    "leader_endpoints" / Since(1, Array(LeaderEndpoint), ignorable=True) * "Where the leader is reached (KIP-853).",
)

EndQuorumEpochResponsePartitionData = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the voter ignores the resignation, such as FENCED_LEADER_EPOCH.",
    "leader_id"       / BrokerId  * "The leader as the voter knows it; -1 if unknown.",
    "leader_epoch"    / Int32     * "The newest epoch that the voter knows.",
    doc="One voter's answer for one partition.",
)

EndQuorumEpochResponseTopicData = Struct(
    "topic_name" / TopicName                                  * "The topic's name.",
    "partitions" / Array(EndQuorumEpochResponsePartitionData) * "One answer for each partition.",
    doc="The answers for one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId        * "The leader's node id.",
    "host"    / BrokerHost      * "Host name or IP address.",
    "port"    / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="The address of a leader named in the answer.",
)

EndQuorumEpochResponse = EndQuorumEpoch.response(
    "error_code"     / ErrorCode                                * "0, or why the whole request was refused.",
    "topics"         / Array(EndQuorumEpochResponseTopicData)   * "The voter's answers; empty on such an error.",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "Addresses of the leaders named above; empty if not known (KIP-853).",
)
