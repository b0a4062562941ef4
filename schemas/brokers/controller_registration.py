"""ControllerRegistration: a controller reports to the active one its addresses and features (KIP-919)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerHost,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Nullable,
    ShortBrokerPort,
    String,
    Struct,
    Uuid,
)

ControllerRegistration = Api(
    70, "ControllerRegistration", versions=(0, 0), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent by each controller to the active one, which records it in the metadata log. Admins can so find controllers, and upgrades see what all support.",
    changes={},
    errors=("CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "NOT_CONTROLLER"),
)

Listener = Struct(
    "name"              / String          * "The listener's name, such as CONTROLLER.",
    "host"              / BrokerHost      * "Host name or IP address.",
    "port"              / ShortBrokerPort * "TCP port, 0 to 65535.",
    "security_protocol" / Int16           * "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.",
    doc="One address at which the controller listens.",
)

Feature = Struct(
    "name"                  / String * "The feature's name, such as metadata.version.",
    "min_supported_version" / Int16  * "Lowest level supported.",
    "max_supported_version" / Int16  * "Highest level supported.",
    doc="The levels of one feature that the controller supports.",
)

ControllerRegistrationRequest = ControllerRegistration.request(
    "controller_id"      / Int32           * "Node id of the controller.",
    "incarnation_id"     / Uuid            * "Drawn at each start, to distinguish a restart from a repetition.",
    "zk_migration_ready" / Boolean         * "True: it is set up to take the metadata over from ZooKeeper.",
    "listeners"          / Array(Listener) * "Where it is reached.",
    "features"           / Array(Feature)  * "What its software supports.",
)

ControllerRegistrationResponse = ControllerRegistration.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                     * "0, or why the controller was not registered.",
    "error_message"    / Default(Nullable(String), "") * "More about the error; null or empty for none.",
)
