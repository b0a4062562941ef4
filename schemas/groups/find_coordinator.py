"""FindCoordinator: which broker coordinates a group, a transactional id or a share partition.

Up to v3 one key is asked for, and the answer is in the response itself; from v4 on both are lists.
"""

from schemas.vocabulary import (
    Api,
    Array,
    Between,
    BrokerHost,
    BrokerId,
    BrokerPort,
    Default,
    ErrorCode,
    Int8,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    Until,
)

FindCoordinator = Api(
    10, "FindCoordinator", versions=(0, 6), flexible=3,
    doc="Any broker answers it. It comes before all that only a coordinator answers, and again after each NOT_COORDINATOR.",
    changes={
        1: "Transaction coordinators by key_type (KIP-98), an error message, and the throttle time (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Flexible lengths and tagged fields (KIP-482).",
        4: "Many keys at once (KIP-699).",
        5: "Same layout; TRANSACTION_ABORTABLE is a possible error (KIP-890).",
        6: "Coordinators of share partitions, key_type 2 (KIP-932).",
    },
    errors={
        "COORDINATOR_NOT_AVAILABLE": "The coordinators' topic is being created, or its partition has no leader.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not describe the group.",
        "CLUSTER_AUTHORIZATION_FAILED": "The key is that of a share partition, and the client may not act as a broker.",
        "INVALID_REQUEST": "The key type is unknown, or the key of a share partition is malformed.",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "The client may not describe the transactional id.",
        "TRANSACTION_ABORTABLE": "",
    },
)

FindCoordinatorRequest = FindCoordinator.request(
    "key"              / Until(3, String)        * "The group or transactional id, as given by key_type; v4+ has coordinator_keys.",
    "key_type"         / Since(1, Int8)          * "0 for groups, 1 for transactions, 2 for share partitions since v6 (KIP-932); INVALID_REQUEST for any other.",
    "coordinator_keys" / Since(4, Array(String)) * 'Keys of one type; for share partitions "group:topic id:partition" (KIP-699).',
)

Coordinator = Struct(
    "key"           / String                        * "The key asked for.",
    "node_id"       / BrokerId                      * "The coordinator's broker id; -1 on an error.",
    "host"          / BrokerHost                    * "Where to connect to; empty on an error.",
    "port"          / BrokerPort                    * "Where to connect to; -1 on an error.",
    "error_code"    / ErrorCode                     * "0, or why no coordinator is named; COORDINATOR_NOT_AVAILABLE is worth a retry.",
    "error_message" / Default(Nullable(String), "") * "More about the error; null or empty for none.",
    doc="The coordinator of one key.",
)

FindCoordinatorResponse = FindCoordinator.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True)                              * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / Until(3, ErrorCode)                                          * "0, or why no coordinator is named; COORDINATOR_NOT_AVAILABLE is worth a retry.",
    "error_message"    / Between(1, 3, Default(Nullable(String), ""), ignorable=True) * "More about the error; null or empty for none.",
    "node_id"          / Until(3, BrokerId)                                           * "The coordinator's broker id; -1 on an error.",
    "host"             / Until(3, BrokerHost)                                         * "Where to connect to; empty on an error.",
    "port"             / Until(3, BrokerPort)                                         * "Where to connect to; -1 on an error.",
    "coordinators"     / Since(4, Array(Coordinator))                                 * "One answer for each key (KIP-699).",
)
