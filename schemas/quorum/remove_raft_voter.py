"""RemoveRaftVoter: an admin takes a voter out of the metadata quorum (KIP-853)."""

from schemas.vocabulary import Api, Default, ErrorCode, Int32, Nullable, String, Uuid

RemoveRaftVoter = Api(
    81, "RemoveRaftVoter", versions=(0, 0), flexible=0, listeners=("broker", "controller"), modifies=True,
    doc="Requests from the quorum's leader to remove one voter; the answer follows the commit. A leader that removes itself resigns afterwards.",
    changes={},
    errors=(
        "NOT_LEADER_OR_FOLLOWER", "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED",
        "UNSUPPORTED_VERSION", "INVALID_REQUEST", "INCONSISTENT_CLUSTER_ID", "VOTER_NOT_FOUND",
    ),
)

RemoveRaftVoterRequest = RemoveRaftVoter.request(
    "cluster_id"         / Default(Nullable(String), "") * "The cluster meant; null for whichever answers.",
    "voter_id"           / Int32                         * "Node id of the voter to remove.",
    "voter_directory_id" / Uuid                          * "Its directory id; must match, so that a replaced disk is not mistaken.",
)

RemoveRaftVoterResponse = RemoveRaftVoter.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                     * "0, or why the voter was not removed.",
    "error_message"    / Default(Nullable(String), "") * "More about the error; null or empty for none.",
)
