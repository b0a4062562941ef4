"""Vote: a voter of the metadata quorum asks another for its vote (KIP-595)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
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
    Tagged,
    TopicName,
    Uuid,
)

Vote = Api(
    52, "Vote", versions=(0, 2), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent to every other voter at an election; a majority makes the sender leader. A voter grants one vote in each epoch, and only to a log at least as new as its own.",
    changes={
        1: "Candidates and voters go by node and directory id; leaders' addresses (KIP-853).",
        2: "A pre-vote sounds out the voters before the epoch is raised (KIP-996).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "BROKER_NOT_AVAILABLE", "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "FENCED_LEADER_EPOCH", "INCONSISTENT_VOTER_SET", "INCONSISTENT_CLUSTER_ID",
        "INVALID_VOTER_KEY",
    ),
)

VoteRequestPartitionData = Struct(
    "partition_index"      / Int32                          * "The partition's number; 0 for the metadata log.",
    "replica_epoch"        / Int32                          * "The sender's epoch: raised for a real vote, not yet for a pre-vote.",
    "replica_id"           / BrokerId                       * "Node id of the sender, which requests the vote.",
    "replica_directory_id" / Since(1, Uuid, ignorable=True) * "Directory id of the sender (KIP-853).",
    "voter_directory_id"   / Since(1, Uuid, ignorable=True) * "Directory id of the voter asked; all zeros if unknown (KIP-853).",
    "last_offset_epoch"    / Int32                          * "Epoch of the last record in the sender's log.",
    "last_offset"          / Int64                          * "Where the sender's log ends.",
    "pre_vote"             / Since(2, Boolean)              * "True: would you vote for me? Not binding (KIP-996).",
    doc="One candidacy.",
)

VoteRequestTopicData = Struct(
    "topic_name" / TopicName                       * "The topic's name, __cluster_metadata in practice.",
    "partitions" / Array(VoteRequestPartitionData) * "Its partitions.",
    doc="The candidacies in one topic.",
)

VoteRequest = Vote.request(
    "cluster_id" / Nullable(String)                                * "The cluster meant; null for no check.",
    "voter_id"   / Since(1, Default(BrokerId, -1), ignorable=True) * "Node id of the voter asked; -1 if unknown (KIP-853).",
    "topics"     / Array(VoteRequestTopicData)                     * "The partitions that the sender would lead.",
)

VoteResponsePartitionData = Struct(
    "partition_index" / Int32     * "The partition's number.",
    "error_code"      / ErrorCode * "0, or why the request was not judged; a refused vote is not an error.",
    "leader_id"       / BrokerId  * "The leader as the voter knows it; -1 if unknown.",
    "leader_epoch"    / Int32     * "The newest epoch that the voter knows.",
    "vote_granted"    / Boolean   * "True: the sender has this vote.",
    doc="One voter's decision.",
)

VoteResponseTopicData = Struct(
    "topic_name" / TopicName                        * "The topic's name.",
    "partitions" / Array(VoteResponsePartitionData) * "One decision for each partition.",
    doc="The decisions for one topic.",
)

NodeEndpoint = Struct(
    "node_id" / BrokerId        * "The leader's node id.",
    "host"    / BrokerHost      * "Host name or IP address.",
    "port"    / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="The address of a leader named in the answer.",
)

VoteResponse = Vote.response(
    "error_code"     / ErrorCode                                * "0, or why the whole request was refused.",
    "topics"         / Array(VoteResponseTopicData)             * "The voter's decisions; empty on such an error.",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "Addresses of the leaders named above; empty if not known (KIP-853).",
)
