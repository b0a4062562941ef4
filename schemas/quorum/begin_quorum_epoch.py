"""BeginQuorumEpoch: a newly elected leader announces itself to the voters (KIP-595)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Uuid,
)

BeginQuorumEpoch = Api(
    53, "BeginQuorumEpoch", versions=(0, 1), flexible=1, listeners=("controller",), modifies=True,
    doc="Sent by the winner of an election to every other voter, and repeated until each has acknowledged. A voter that knows a newer epoch refuses and names it.",
    changes={
        1: "Voters go by node and directory id, leaders report their addresses; flexible lengths (KIP-853).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "BROKER_NOT_AVAILABLE", "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "FENCED_LEADER_EPOCH", "INCONSISTENT_VOTER_SET", "INCONSISTENT_CLUSTER_ID",
        "INVALID_VOTER_KEY",
    ),
)

BeginQuorumEpochRequestPartitionData = Struct(
    "partition_index"    / Int32                          * "The partition's number; 0 for the metadata log.",
    "voter_directory_id" / Since(1, Uuid, ignorable=True) * "Directory id of the voter addressed; all zeros if unknown (KIP-853).",
    "leader_id"          / BrokerId                       * "Node id of the new leader, which is the sender.",
    "leader_epoch"       / Int32                          * "The epoch that the leader was elected for.",
    doc="The new leadership of one partition.",
)

BeginQuorumEpochRequestTopicData = Struct(
    "topic_name" / TopicName                                   * "The topic's name, __cluster_metadata in practice.",
    "partitions" / Array(BeginQuorumEpochRequestPartitionData) * "Its partitions.",
    doc="One topic with new leaders.",
)

LeaderEndpoint = Struct(
    "name" / String          * "The listener's name, such as CONTROLLER.",
    "host" / BrokerHost      * "Host name or IP address.",
    "port" / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="One address at which the leader listens.",
)

BeginQuorumEpochRequest = BeginQuorumEpoch.request(
    "cluster_id"       / Nullable(String)                                * "The cluster meant; null for no check.",
    "voter_id"         / Since(1, Default(BrokerId, -1), ignorable=True) * "Node id of the voter addressed; -1 if unknown (KIP-853).",
    "topics"           / Array(BeginQuorumEpochRequestTopicData)         * "What the sender now leads.",
    "leader_endpoints" / Since(1, Array(LeaderEndpoint), ignorable=True) * "Where the leader is reached (KIP-853).",
)

BeginQuorumEpochResponsePartitionData = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the leader is not accepted, such as FENCED_LEADER_EPOCH.",
    "leader_id"       / BrokerId  * "The leader as the voter knows it; -1 if unknown.",
    "leader_epoch"    / Int32     * "The newest epoch that the voter knows.",
    doc="One voter's answer for one partition.",
)

BeginQuorumEpochResponseTopicData = Struct(
    "topic_name" / TopicName                                    * "The topic's name.",
    "partitions" / Array(BeginQuorumEpochResponsePartitionData) * "One answer for each partition.",
    doc="The answers for one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId        * "The leader's node id.",
    "host"    / BrokerHost      * "Host name or IP address.",
    "port"    / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="The address of a leader named in the answer.",
)

BeginQuorumEpochResponse = BeginQuorumEpoch.response(
    "error_code"     / ErrorCode                                * "0, or why the whole request was refused.",
    "topics"         / Array(BeginQuorumEpochResponseTopicData) * "The voter's answers; empty on such an error.",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "Addresses of the leaders named above; empty if not known (KIP-853).",
)
