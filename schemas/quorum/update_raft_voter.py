"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    Int16,
    Int32,
    Nullable,
    String,
    Struct,
    Tagged,
    Uint16,
    Uuid,
)

UpdateRaftVoter = Api(
    82, "UpdateRaftVoter", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

Listener = Struct(
    "name" / String * "TODO",
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

KRaftVersionFeature = Struct(
    "min_supported_version" / Int16 * "TODO",
    "max_supported_version" / Int16 * "TODO",
    about="TODO",
)

UpdateRaftVoterRequest = UpdateRaftVoter.request(
    "cluster_id"             / Default(Nullable(String), "") * "TODO",
    "current_leader_epoch"   / Int32                         * "TODO",
    "voter_id"               / Int32                         * "TODO",
    "voter_directory_id"     / Uuid                          * "TODO",
    "listeners"              / Array(Listener)               * "TODO",
    "k_raft_version_feature" / KRaftVersionFeature           * "TODO",
)

CurrentLeader = Struct(
    "leader_id"    / Default(Int32, -1) * "TODO",
    "leader_epoch" / Default(Int32, -1) * "TODO",
    "host"         / String             * "TODO",
    "port"         / Int32              * "TODO",
    about="TODO",
)

UpdateRaftVoterResponse = UpdateRaftVoter.response(
    "throttle_time_ms" / Int32                    * "TODO",
    "error_code"       / Int16                    * "TODO",
    "current_leader"   / Tagged(0, CurrentLeader) * "TODO",
)
