"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    Default,
    Int8,
    Int16,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Until,
)

FindCoordinator = Api(
    10, "FindCoordinator", versions=(0, 6), flexible=3,
    about="TODO",
    changes={},
)

FindCoordinatorRequest = FindCoordinator.request(
    "key"              / Until(3, String)        * "TODO",
    "key_type"         / Since(1, Int8)          * "TODO",
    "coordinator_keys" / Since(4, Array(String)) * "TODO",
)

Coordinator = Struct(
    "key"           / String                        * "TODO",
    "node_id"       / Int32                         * "TODO",
    "host"          / String                        * "TODO",
    "port"          / Int32                         * "TODO",
    "error_code"    / Int16                         * "TODO",
    "error_message" / Default(Nullable(String), "") * "TODO",
    about="TODO",
)

FindCoordinatorResponse = FindCoordinator.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)                              * "TODO",
    "error_code"       / Until(3, Int16)                                              * "TODO",
    "error_message"    / Between(1, 3, Default(Nullable(String), ""), ignorable=True) * "TODO",
    "node_id"          / Until(3, Int32)                                              * "TODO",
    "host"             / Until(3, String)                                             * "TODO",
    "port"             / Until(3, Int32)                                              * "TODO",
    "coordinators"     / Since(4, Array(Coordinator))                                 * "TODO",
)
