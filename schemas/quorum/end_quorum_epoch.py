"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    Uint16,
    Until,
    Uuid,
)

EndQuorumEpoch = Api(
    54, "EndQuorumEpoch", versions=(0, 1), flexible=1,
    about="TODO",
    changes={},
)

ReplicaInfo = Struct(
    "candidate_id"           / Int32 * "TODO",
    "candidate_directory_id" / Uuid  * "TODO",
    about="TODO",
)

EndQuorumEpochRequestPartitionData = Struct(
    "partition_index"      / Int32                                        * "TODO",
    "leader_id"            / Int32                                        * "TODO",
    "leader_epoch"         / Int32                                        * "TODO",
    "preferred_successors" / Until(0, Array(Int32), ignorable=True)       * "TODO",
    "preferred_candidates" / Since(1, Array(ReplicaInfo), ignorable=True) * "TODO",
    about="TODO",
)

EndQuorumEpochRequestTopicData = Struct(
    "topic_name" / String                                    * "TODO",
    "partitions" / Array(EndQuorumEpochRequestPartitionData) * "TODO",
    about="TODO",
)

LeaderEndpoint = Struct(
    "name" / String * "TODO",
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

EndQuorumEpochRequest = EndQuorumEpoch.request(
    "cluster_id"       / Nullable(String)                                * "TODO",
    "topics"           / Array(EndQuorumEpochRequestTopicData)           * "TODO",
    "leader_endpoints" / Since(1, Array(LeaderEndpoint), ignorable=True) * "TODO",
)

EndQuorumEpochResponsePartitionData = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    "leader_id"       / Int32 * "TODO",
    "leader_epoch"    / Int32 * "TODO",
    about="TODO",
)

EndQuorumEpochResponseTopicData = Struct(
    "topic_name" / String                                     * "TODO",
    "partitions" / Array(EndQuorumEpochResponsePartitionData) * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32  * "TODO",
    "host"    / String * "TODO",
    "port"    / Uint16 * "TODO",
    about="TODO",
)

EndQuorumEpochResponse = EndQuorumEpoch.response(
    "error_code"     / Int16                                    * "TODO",
    "topics"         / Array(EndQuorumEpochResponseTopicData)   * "TODO",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "TODO",
)
