"""What a voter remembers between starts, in the file quorum-state beside its log: whom it voted for.

The file holds the JSON form, with the version under "data_version".
"""

from schemas.vocabulary import (
    Array,
    BrokerId,
    Data,
    Default,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Until,
    Uuid,
)

Voter = Struct(
    "voter_id" / Until(0, Int32) * "The voter's node id.",
    doc="One voter.",
)

QuorumStateData = Data("QuorumStateData", versions=(0, 1), flexible=0, doc="A voter's election state. v1 votes for a directory, and leaves the set of voters to the log (KIP-853).")(
    "cluster_id"         / Until(0, String)                              * "The cluster's id; empty if unknown.",
    "leader_id"          / Default(BrokerId, -1)                         * "Node id of the leader; -1 for none known.",
    "leader_epoch"       / Default(Int32, -1)                            * "The epoch that the voter is in; -1 before the first.",
    "voted_id"           / Default(Int32, -1)                            * "Node id of whom it voted for in this epoch; -1 for none.",
    "voted_directory_id" / Since(1, Uuid)                                * "Log directory of whom it voted for; all zero if unknown (KIP-853).",
    "applied_offset"     / Until(0, Int64)                               * "Not used; 0.",
    "current_voters"     / Until(0, Default(Nullable(Array(Voter)), [])) * "The voters, as configured; null if unknown.",
)
