"""TODO"""

from schemas.vocabulary import Api, Default, Int16, Int32, Nullable, String, Uuid

RemoveRaftVoter = Api(
    81, "RemoveRaftVoter", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

RemoveRaftVoterRequest = RemoveRaftVoter.request(
    "cluster_id"         / Default(Nullable(String), "") * "TODO",
    "voter_id"           / Int32                         * "TODO",
    "voter_directory_id" / Uuid                          * "TODO",
)

RemoveRaftVoterResponse = RemoveRaftVoter.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
)
