"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
    Uint16,
    Uuid,
)

BeginQuorumEpoch = Api(
    53, "BeginQuorumEpoch", versions=(0, 1), flexible=1,
    about="TODO",
    changes={},
)

BeginQuorumEpochRequestPartitionData = Struct(
    "partition_index"    / Int32                          * "TODO",
    "voter_directory_id" / Since(1, Uuid, ignorable=True) * "TODO",
    "leader_id"          / Int32                          * "TODO",
    "leader_epoch"       / Int32                          * "TODO",
    about="TODO",
)

BeginQuorumEpochRequestTopicData = Struct(
    "topic_name" / String                                      * "TODO",
    "partitions" / Array(BeginQuorumEpochRequestPartitionData) * "TODO",
    about="TODO",
)

LeaderEndpoint = Struct(
    "name" / String * "TODO",
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

BeginQuorumEpochRequest = BeginQuorumEpoch.request(
    "cluster_id"       / Nullable(String)                                * "TODO",
    "voter_id"         / Since(1, Default(Int32, -1), ignorable=True)    * "TODO",
    "topics"           / Array(BeginQuorumEpochRequestTopicData)         * "TODO",
    "leader_endpoints" / Since(1, Array(LeaderEndpoint), ignorable=True) * "TODO",
)

BeginQuorumEpochResponsePartitionData = Struct(
    "partition_index" / Int32 * "TODO",
    "error_code"      / Int16 * "TODO",
    "leader_id"       / Int32 * "TODO",
    "leader_epoch"    / Int32 * "TODO",
    about="TODO",
)

BeginQuorumEpochResponseTopicData = Struct(
    "topic_name" / String                                       * "TODO",
    "partitions" / Array(BeginQuorumEpochResponsePartitionData) * "TODO",
    about="TODO",
)

NodeEndpoint = Struct(
    "node_id" / Int32  * "TODO",
    "host"    / String * "TODO",
    "port"    / Uint16 * "TODO",
    about="TODO",
)

BeginQuorumEpochResponse = BeginQuorumEpoch.response(
    "error_code"     / Int16                                    * "TODO",
    "topics"         / Array(BeginQuorumEpochResponseTopicData) * "TODO",
    "node_endpoints" / Since(1, Tagged(0, Array(NodeEndpoint))) * "TODO",
)
