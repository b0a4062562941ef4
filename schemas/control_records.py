"""Values of control records: ends of transactions, and what KRaft notes in its own log.

The record's key says which: 0 abort, 1 commit, 2 leader change, 3 snapshot header, 4 snapshot footer,
5 KRaft version, 6 voters. KRaft's values begin with their version as a field; before an EndTxnMarker it
is outside the layout.
"""

from schemas.vocabulary import Array, BrokerId, Data, Int16, Int32, Int64, Since, String, Struct, Uint16, Uuid

EndTxnMarker = Data("EndTxnMarker", versions=(0, 0), flexible=None, doc="The end of a transaction in one partition; abort or commit is given by the record's key (KIP-98).")(
    "coordinator_epoch" / Int32 * "Epoch of the transaction coordinator that ended it.",
)

ControlRecordTypeSchema = Data("ControlRecordTypeSchema", versions=(0, 0), flexible=None, doc="The key of every control record, after an int16 version (KIP-98).")(
    "type" / Int16 * "0 abort, 1 commit, 2 leader change, 3 snapshot header, 4 snapshot footer, 5 KRaft version, 6 voters.",
)

LeaderChangeMessageVoter = Struct(
    "voter_id"           / Int32          * "The voter's node id.",
    "voter_directory_id" / Since(1, Uuid) * "Id of its log directory; all zero if unknown (v1, KIP-853).",
    doc="One voter.",
)

LeaderChangeMessage = Data("LeaderChangeMessage", versions=(0, 1), flexible=0, doc="A new leader's first record in its epoch (KIP-595). v1 adds directory ids (KIP-853).")(
    "version"         / Int16                           * "The version of this value, 0 or 1.",
    "leader_id"       / BrokerId                        * "Node id of the elected leader.",
    "voters"          / Array(LeaderChangeMessageVoter) * "All voters at the time of the election.",
    "granting_voters" / Array(LeaderChangeMessageVoter) * "Those who voted for the leader, itself included.",
)

SnapshotHeaderRecord = Data("SnapshotHeaderRecord", versions=(0, 0), flexible=0, doc="The first record of a snapshot (KIP-630).")(
    "version"                      / Int16 * "The version of this value, 0.",
    "last_contained_log_timestamp" / Int64 * "Time of the last record that the snapshot covers, in ms since the epoch.",
)

SnapshotFooterRecord = Data("SnapshotFooterRecord", versions=(0, 0), flexible=0, doc="The last record of a snapshot; without it the snapshot is incomplete (KIP-630).")(
    "version" / Int16 * "The version of this value, 0.",
)

KRaftVersionRecord = Data("KRaftVersionRecord", versions=(0, 0), flexible=0, doc="From here on the quorum runs by this kraft.version (KIP-853).")(
    "version"        / Int16 * "The version of this value, 0.",
    "k_raft_version" / Int16 * "0 for voters fixed in the configuration, 1 for voters that can change.",
)

Endpoint = Struct(
    "name" / String * 'Name of the listener, such as "CONTROLLER".',
    "host" / String * "Host name or address to connect to.",
    "port" / Uint16 * "Port to connect to, 0 to 65535.",
    doc="Where a voter can be reached.",
)

KRaftVersionFeature = Struct(
    "min_supported_version" / Int16 * "The lowest that it can run by.",
    "max_supported_version" / Int16 * "The highest that it can run by.",
    doc="The range of kraft.version that a voter supports.",
)

VotersRecordVoter = Struct(
    "voter_id"               / BrokerId            * "The voter's node id.",
    "voter_directory_id"     / Uuid                * "Id of its log directory; a voter with a new disk is another voter.",
    "endpoints"              / Array(Endpoint)     * "Where to reach it, by listener.",
    "k_raft_version_feature" / KRaftVersionFeature * "What it can run by; limits the quorum's version.",
    doc="One voter of the quorum.",
)

VotersRecord = Data("VotersRecord", versions=(0, 0), flexible=0, doc="The set of voters from here on (KIP-853).")(
    "version" / Int16                    * "The version of this value, 0.",
    "voters"  / Array(VotersRecordVoter) * "All of them, not a difference.",
)
