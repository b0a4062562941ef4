"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    Int16,
    Int32,
    Nullable,
    String,
    Struct,
    Uint16,
    Uuid,
)

ControllerRegistration = Api(
    70, "ControllerRegistration", versions=(0, 0), flexible=0,
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

ControllerRegistrationRequest = ControllerRegistration.request(
    "controller_id"      / Int32           * "TODO",
    "incarnation_id"     / Uuid            * "TODO",
    "zk_migration_ready" / Boolean         * "TODO",
    "listeners"          / Array(Listener) * "TODO",
    "features"           / Array(Feature)  * "TODO",
)

ControllerRegistrationResponse = ControllerRegistration.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
)
