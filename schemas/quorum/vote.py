"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    Uint16,
    Uuid,
)

Vote = Api(
    52, "Vote", versions=(0, 2), flexible=0,
    about="TODO",
    changes={},
)

VoteRequestPartitionData = Struct(
    "partition_index"      / Int32                          * "TODO",
    "replica_epoch"        / Int32                          * "TODO",
    "replica_id"           / Int32                          * "TODO",
    "replica_directory_id" / Since(1, Uuid, ignorable=True) * "TODO",
    "voter_directory_id"   / Since(1, Uuid, ignorable=True) * "TODO",
    "last_offset_epoch"    / Int32                          * "TODO",
    "last_offset"          / Int64                          * "TODO",
    "pre_vote"             / Since(2, Boolean)              * "TODO",
    about="TODO",
)

VoteRequestTopicData = Struct(
    "topic_name" / String                          * "TODO",
    "partitions" / Array(VoteRequestPartitionData) * "TODO",
    about="TODO",
)

VoteRequest = Vote.request(
    "cluster_id" / Nullable(String)                             * "TODO",
    "voter_id"   / Since(1, Default(Int32, -1), ignorable=True) * "TODO",
    "topics"     / Array(VoteRequestTopicData)                  * "TODO",
)

VoteResponsePartitionData = Struct(
    "partition_index" / Int32   * "TODO",
    "error_code"      / Int16   * "TODO",
    "leader_id"       / Int32   * "TODO",
    "leader_epoch"    / Int32   * "TODO",
    "vote_granted"    / Boolean * "TODO",
    about="TODO",
)

VoteResponseTopicData = Struct(
    "topic_name" / String                           * "TODO",
    "partitions" / Array(VoteResponsePartitionData) * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32  * "TODO",
    "host"    / String * "TODO",
    "port"    / Uint16 * "TODO",
    about="TODO",
)

VoteResponse = Vote.response(
    "error_code"     / Int16                                    * "TODO",
    "topics"         / Array(VoteResponseTopicData)             * "TODO",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "TODO",
)
