"""TODO"""

from schemas.vocabulary import Array, Data, Int16, Int32, Int64, Since, String, Struct, Uint16, Uuid

EndTxnMarker = Data("EndTxnMarker", versions=(0, 0), flexible=None, about="TODO")(
    "coordinator_epoch" / Int32 * "TODO",
)

LeaderChangeMessageVoter = Struct(
    "voter_id"           / Int32          * "TODO",
    "voter_directory_id" / Since(1, Uuid) * "TODO",
    about="TODO",
)

LeaderChangeMessage = Data("LeaderChangeMessage", versions=(0, 1), flexible=0, about="TODO")(
    "version"         / Int16                           * "TODO",
    "leader_id"       / Int32                           * "TODO",
    "voters"          / Array(LeaderChangeMessageVoter) * "TODO",
    "granting_voters" / Array(LeaderChangeMessageVoter) * "TODO",
)

SnapshotHeaderRecord = Data("SnapshotHeaderRecord", versions=(0, 0), flexible=0, about="TODO")(
    "version"                      / Int16 * "TODO",
    "last_contained_log_timestamp" / Int64 * "TODO",
)

SnapshotFooterRecord = Data("SnapshotFooterRecord", versions=(0, 0), flexible=0, about="TODO")(
    "version" / Int16 * "TODO",
)

KRaftVersionRecord = Data("KRaftVersionRecord", versions=(0, 0), flexible=0, about="TODO")(
    "version"        / Int16 * "TODO",
    "k_raft_version" / Int16 * "TODO",
)

Endpoint = Struct(
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

VotersRecordVoter = Struct(
    "voter_id"               / Int32               * "TODO",
    "voter_directory_id"     / Uuid                * "TODO",
    "endpoints"              / Array(Endpoint)     * "TODO",
    "k_raft_version_feature" / KRaftVersionFeature * "TODO",
    about="TODO",
)

VotersRecord = Data("VotersRecord", versions=(0, 0), flexible=0, about="TODO")(
    "version" / Int16                    * "TODO",
    "voters"  / Array(VotersRecordVoter) * "TODO",
)
