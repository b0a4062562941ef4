"""BrokerRegistration: a starting broker enters the cluster and gets its epoch (KIP-631)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerHost,
    BrokerId,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Int64,
    Nullable,
    ShortBrokerPort,
    Since,
    String,
    Struct,
    Uuid,
)

BrokerRegistration = Api(
    62, "BrokerRegistration", versions=(0, 4), flexible=0, listeners=("controller",), modifies=True,
    doc="The first request of a broker to the active controller. The epoch in the answer marks this life of the broker; BrokerHeartbeat keeps it alive.",
    changes={
        1: "States whether the broker is on its way from ZooKeeper (KIP-866).",
        2: "The ids of its log directories (KIP-858).",
        3: "The epoch before a clean shutdown (KIP-966).",
        4: "Same layout; a feature's lowest version may be 0.",
    },
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "NOT_CONTROLLER",
        "DUPLICATE_BROKER_REGISTRATION", "INCONSISTENT_CLUSTER_ID", "INVALID_REGISTRATION",
    ),
)

Listener = Struct(
    "name"              / String          * "The listener's name, such as PLAINTEXT or INTERNAL.",
    "host"              / BrokerHost      * "Host name or IP address.",
    "port"              / ShortBrokerPort * "TCP port, 0 to 65535.",
    "security_protocol" / Int16           * "0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.",
    doc="One address at which the broker listens.",
)

Feature = Struct(
    "name"                  / String * "The feature's name, such as metadata.version.",
    "min_supported_version" / Int16  * "Lowest level supported.",
    "max_supported_version" / Int16  * "Highest level supported.",
    doc="The levels of one feature that the broker supports.",
)

BrokerRegistrationRequest = BrokerRegistration.request(
    "broker_id"              / BrokerId                                     * "Node id of the broker.",
    "cluster_id"             / String                                       * "The cluster it was formatted for; any other refuses it.",
    "incarnation_id"         / Uuid                                         * "Drawn at each start, to distinguish a restart from a repetition.",
    "listeners"              / Array(Listener)                              * "Where clients and other brokers reach it.",
    "features"               / Array(Feature)                               * "What its software supports.",
    "rack"                   / Default(Nullable(String), "")                * "The rack, for spreading replicas; null if not given.",
    "is_migrating_zk_broker" / Since(1, Boolean)                            * "True: it runs on ZooKeeper and is being migrated (KIP-866).",
    "log_dirs"               / Since(2, Array(Uuid), ignorable=True)        * "Ids of the log directories that it can use (KIP-858).",
    "previous_broker_epoch"  / Since(3, Default(Int64, -1), ignorable=True) * "Its epoch before a clean shutdown; -1 after an unclean one (KIP-966).",
)

BrokerRegistrationResponse = BrokerRegistration.response(
    "throttle_time_ms" / Int32              * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode          * "0, or why the broker may not enter, such as DUPLICATE_BROKER_REGISTRATION.",
    "broker_epoch"     / Default(Int64, -1) * "Marks this life of the broker, to be sent from now on; -1 on an error.",
)
