"""AddRaftVoter: an admin or a joining controller adds a voter to the metadata quorum (KIP-853)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerHost,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    Uuid,
)

AddRaftVoter = Api(
    80, "AddRaftVoter", versions=(0, 1), flexible=0, listeners=("broker", "controller"), modifies=True,
    doc="Requests from the quorum's leader to add one voter, which must already have caught up with the log. Only one change of the voters runs at a time.",
    changes={
        1: "The leader may answer before the change is committed, so controllers can join by themselves (KIP-1186).",
    },
    errors=(
        "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INCONSISTENT_CLUSTER_ID", "DUPLICATE_VOTER",
    ),
)

Listener = Struct(
    "name" / String          * "The listener's name, such as CONTROLLER.",
    "host" / BrokerHost      * "Host name or IP address.",
    "port" / ShortBrokerPort * "TCP port, 0 to 65535.",
    doc="One address at which the new voter listens.",
)

AddRaftVoterRequest = AddRaftVoter.request(
    "cluster_id"         / Default(Nullable(String), "")    * "The cluster meant; null for whichever answers.",
    "timeout_ms"         / Int32                            * "How long the leader may take for the change, in ms.",
    "voter_id"           / Int32                            * "Node id of the new voter.",
    "voter_directory_id" / Uuid                             * "Id of the directory where the voter keeps its metadata log.",
    "listeners"          / Array(Listener)                  * "Where the other voters reach it.",
    "ack_when_committed" / Since(1, Default(Boolean, True)) * "True: answered after the commit; false: once in the leader's log (KIP-1186).",
)

AddRaftVoterResponse = AddRaftVoter.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                     * "0, or why the voter was not added.",
    "error_message"    / Default(Nullable(String), "") * "More about the error; null or empty for none.",
)
