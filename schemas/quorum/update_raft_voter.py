"""UpdateRaftVoter: a voter reports to the leader its present addresses and versions (KIP-853)."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Nullable,
    ShortBrokerPort,
    String,
    Struct,
    Tagged,
    Uuid,
)

UpdateRaftVoter = Api(
    82, "UpdateRaftVoter", versions=(0, 0), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent by a voter whose entry in the set of voters is out of date, as after a restart with other listeners or newer software.",
    changes={},
    errors=(
        "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION", "INVALID_REQUEST", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH",
        "INCONSISTENT_CLUSTER_ID", "VOTER_NOT_FOUND",
    ),
)

Listener = Struct(
    "name" / String          * "The listener's name, such as CONTROLLER.",
    "host" / BrokerHost      * "Host name or IP address.",
    "port" / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="One address at which the voter listens.",
)

KRaftVersionFeature = Struct(
    "min_supported_version" / Int16 * "Lowest level supported.",
    "max_supported_version" / Int16 * "Highest level supported.",
    doc="The levels of the feature kraft.version that the voter supports.",
)

UpdateRaftVoterRequest = UpdateRaftVoter.request(
    "cluster_id"             / Default(Nullable(String), "") * "The cluster meant; null for no check.",
    "current_leader_epoch"   / Int32                         * "The epoch that the voter believes current; a wrong one is refused.",
    "voter_id"               / Int32                         * "Node id of the voter, which is the sender.",
    "voter_directory_id"     / Uuid                          * "Id of the directory where the voter keeps its metadata log.",
    "listeners"              / Array(Listener)               * "All its addresses; they replace the old ones.",
    "k_raft_version_feature" / KRaftVersionFeature           * "What the voter's software supports.",
)

CurrentLeader = Struct(
    "leader_id"    / Default(BrokerId, -1) * "Node id of the leader; -1 if unknown.",
    "leader_epoch" / Default(Int32, -1)    * "The newest epoch known; -1 if unknown.",
    "host"         / BrokerHost            * "The leader's host name or IP address; empty if unknown.",
    "port"         / BrokerPort            * "The leader's TCP port; 0 if unknown.",
    doc="Leader and address as the answering node knows them.",
)

UpdateRaftVoterResponse = UpdateRaftVoter.response(
    "throttle_time_ms" / Int32                    * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                * "0, or why the voter's entry was not changed.",
    "current_leader"   / Tagged(0, CurrentLeader) * "Whom to turn to if another node leads.",
)
