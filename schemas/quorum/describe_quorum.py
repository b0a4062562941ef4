"""DescribeQuorum: who leads the metadata quorum, and how far its replicas have come (KIP-595)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    TopicName,
    Uuid,
)

DescribeQuorum = Api(
    55, "DescribeQuorum", versions=(0, 2), flexible=0, listeners=("broker", "controller"),
    doc="Reports leader, epoch, voters and observers of the metadata log. Only the leader can answer; other nodes refuse or forward the request.",
    changes={
        1: "When each replica last fetched, and when it last had caught up (KIP-836).",
        2: "Directory ids, the voters' addresses and error messages (KIP-853).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_OR_FOLLOWER", "BROKER_NOT_AVAILABLE",
        "CLUSTER_AUTHORIZATION_FAILED",
    ),
)

DescribeQuorumRequestPartitionData = Struct(
    "partition_index" / Int32 * "The partition's number; 0 for the metadata log.",
    doc="One partition asked about.",
)

DescribeQuorumRequestTopicData = Struct(
    "topic_name" / TopicName                                 * "The topic's name, __cluster_metadata in practice.",
    "partitions" / Array(DescribeQuorumRequestPartitionData) * "Its partitions.",
    doc="One topic asked about.",
)

DescribeQuorumRequest = DescribeQuorum.request(
    "topics" / Array(DescribeQuorumRequestTopicData) * "What to describe.",
)

ReplicaState = Struct(
    "replica_id"               / BrokerId                                     * "The replica's node id.",
    "replica_directory_id"     / Since(2, Uuid)                               * "Directory of its metadata log; all zeros if unknown (KIP-853).",
    "log_end_offset"           / Int64                                        * "The next offset it will fetch; -1 if the leader has not heard of it.",
    "last_fetch_timestamp"     / Since(1, Default(Int64, -1), ignorable=True) * "Leader's clock at its last fetch, ms since the epoch; -1 if unknown (KIP-836).",
    "last_caught_up_timestamp" / Since(1, Default(Int64, -1), ignorable=True) * "When it last had the whole log, ms since the epoch; -1 if unknown (KIP-836).",
    doc="How far one voter or observer has come, as the leader sees it.",
)

DescribeQuorumResponsePartitionData = Struct(
    "partition_index" / Int32                                                   * "The partition's number.",
    "error_code"      / ErrorCode                                               * "0, or why it is not described; NOT_LEADER_OR_FOLLOWER if another node leads.",
    "error_message"   / Since(2, Default(Nullable(String), ""), ignorable=True) * "More about the error; null or empty for none.",
    "leader_id"       / BrokerId                                                * "Node id of the leader; -1 if unknown.",
    "leader_epoch"    / Int32                                                   * "The newest epoch that the answering node knows.",
    "high_watermark"  / Int64                                                   * "End of what a majority has stored; -1 if not yet known.",
    "current_voters"  / Array(ReplicaState)                                     * "The replicas that elect and commit, the leader among them.",
    "observers"       / Array(ReplicaState)                                     * "Replicas that fetch but do not vote, such as plain brokers.",
    doc="The state of one partition's quorum.",
)

DescribeQuorumResponseTopicData = Struct(
    "topic_name" / TopicName                                  * "The topic's name.",
    "partitions" / Array(DescribeQuorumResponsePartitionData) * "One state for each partition.",
    doc="The quorums of one topic.",
)

Listener = Struct(
    "name" / String          * "The listener's name, such as CONTROLLER.",
    "host" / BrokerHost      * "Host name or IP address.",
    "port" / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="One address of a voter.",
)

Node = Struct(
    "node_id"   / BrokerId        * "The voter's node id.",
    "listeners" / Array(Listener) * "Where it listens.",
    doc="The addresses of one voter.",
)

DescribeQuorumResponse = DescribeQuorum.response(
    "error_code"    / ErrorCode                                               * "0, or why the whole request was refused.",
    "error_message" / Since(2, Default(Nullable(String), ""), ignorable=True) * "More about the error; null or empty for none.",
    "topics"        / Array(DescribeQuorumResponseTopicData)                  * "The quorums asked about.",
    "nodes"         / Since(2, Array(Node))                                   * "Addresses of the voters (KIP-853).",
)
