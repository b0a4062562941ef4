"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Uint16,
    Uuid,
)

BrokerRegistration = Api(
    62, "BrokerRegistration", versions=(0, 4), flexible=0,
    about="TODO",
    changes={},
)

Listener = Struct(
    "name"              / String * "TODO",
    "host"              / String * "TODO",
    "port"              / Uint16 * "TODO",
    "security_protocol" / Int16  * "TODO",
    about="TODO",
)

Feature = Struct(
    "name"                  / String * "TODO",
    "min_supported_version" / Int16  * "TODO",
    "max_supported_version" / Int16  * "TODO",
    about="TODO",
)

BrokerRegistrationRequest = BrokerRegistration.request(
    "broker_id"              / Int32                                        * "TODO",
    "cluster_id"             / String                                       * "TODO",
    "incarnation_id"         / Uuid                                         * "TODO",
    "listeners"              / Array(Listener)                              * "TODO",
    "features"               / Array(Feature)                               * "TODO",
    "rack"                   / Default(Nullable(String), "")                * "TODO",
    "is_migrating_zk_broker" / Since(1, Boolean)                            * "TODO",
    "log_dirs"               / Since(2, Array(Uuid), ignorable=True)        * "TODO",
    "previous_broker_epoch"  / Since(3, Default(Int64, -1), ignorable=True) * "TODO",
)

BrokerRegistrationResponse = BrokerRegistration.response(
    "throttle_time_ms" / Int32              * "TODO",
    "error_code"       / Int16              * "TODO",
    "broker_epoch"     / Default(Int64, -1) * "TODO",
)
