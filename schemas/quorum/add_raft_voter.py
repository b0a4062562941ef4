"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Uint16,
    Uuid,
)

AddRaftVoter = Api(
    80, "AddRaftVoter", versions=(0, 1), flexible=0,
    about="TODO",
    changes={},
)

Listener = Struct(
    "name" / String * "TODO",
    "host" / String * "TODO",
    "port" / Uint16 * "TODO",
    about="TODO",
)

AddRaftVoterRequest = AddRaftVoter.request(
    "cluster_id"         / Default(Nullable(String), "")    * "TODO",
    "timeout_ms"         / Int32                            * "TODO",
    "voter_id"           / Int32                            * "TODO",
    "voter_directory_id" / Uuid                             * "TODO",
    "listeners"          / Array(Listener)                  * "TODO",
    "ack_when_committed" / Since(1, Default(Boolean, True)) * "TODO",
)

AddRaftVoterResponse = AddRaftVoter.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
)
