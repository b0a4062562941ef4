"""ApiVersions: a client learns which APIs and versions a broker supports.

A broker that doesn't know the request's version answers in version 0, with UNSUPPORTED_VERSION and (since KIP-511)
the range that it knows. So that any client can read it, the response header is never flexible.
"""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    Tagged,
)

ApiVersions = Api(
    18, "ApiVersions", versions=(0, 5), flexible=3, listeners=("broker", "controller"), response_headers={0: 0},
    doc="The first request on a connection: which versions of which APIs the broker supports, and which features it has.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Flexible (KIP-482); the client's software (KIP-511) and the cluster's features (KIP-584).",
        4: "Same layout; features whose lowest version is 0 are listed too, not left out.",
        5: "The broker that the client means to reach, by cluster and node id; another one answers with REBOOTSTRAP_REQUIRED (KIP-1242).",
    },
    errors=("UNSUPPORTED_VERSION", "INVALID_REQUEST", "REBOOTSTRAP_REQUIRED"),
)

ApiVersionsRequest = ApiVersions.request(
    "client_software_name"    / Since(3, String, ignorable=True)             * "The client library: letters, digits, dots and hyphens, a letter or digit first and last; otherwise, or if it is empty, brokers answer INVALID_REQUEST (42) and list nothing (KIP-511).",
    "client_software_version" / Since(3, String, ignorable=True)             * "Its version, by the same rule (KIP-511).",
    "cluster_id"              / Since(5, Nullable(String), ignorable=True)   * "The cluster that the client means to reach; null if unknown (KIP-1242).",
    "node_id"                 / Since(5, Default(Int32, -1), ignorable=True) * "The node that the client means to reach; -1 if unknown (KIP-1242).",
)

ApiVersion = Struct(
    "api_key"     / Int16 * "Which API, by the number in request headers.",
    "min_version" / Int16 * "The oldest one.",
    "max_version" / Int16 * "The newest one, itself included.",
    doc="The versions of one API that the broker supports.",
)

SupportedFeatureKey = Struct(
    "name"        / String * 'The feature, such as "metadata.version".',
    "min_version" / Int16  * "The lowest one.",
    "max_version" / Int16  * "The highest one, itself included.",
    doc="The levels of one feature that this broker could run (KIP-584).",
)

FinalizedFeatureKey = Struct(
    "name"              / String * 'The feature, such as "metadata.version".',
    "max_version_level" / Int16  * "The level in force.",
    "min_version_level" / Int16  * "The lowest level that brokers still have to know.",
    doc="The levels of one feature that the whole cluster has settled on (KIP-584).",
)

ApiVersionsResponse = ApiVersions.response(
    "error_code"               / ErrorCode                                                       * "0, or UNSUPPORTED_VERSION (35) in an answer of version 0, INVALID_REQUEST (42), or REBOOTSTRAP_REQUIRED (129).",
    "api_keys"                 / Array(ApiVersion)                                               * "What the broker supports on this listener, an API each; with error 35 ApiVersions alone (KIP-511).",
    "throttle_time_ms"         / Since(1, Int32, ignorable=True)                                 * "Throttling in ms: 0, or how long the quota holds this client back.",
    "supported_features"       / Since(3, Tagged(0, Array(SupportedFeatureKey)), ignorable=True) * "What this broker could run (KIP-584).",
    "finalized_features_epoch" / Since(3, Tagged(1, Default(Int64, -1)), ignorable=True)         * "Grows with each change of finalized_features; -1 if unknown.",
    "finalized_features"       / Since(3, Tagged(2, Array(FinalizedFeatureKey)), ignorable=True) * "What the cluster runs; means something only with an epoch of 0 or more.",
    "zk_migration_ready"       / Since(3, Tagged(3, Boolean), ignorable=True)                    * "True if this KRaft controller is set up to migrate from ZooKeeper (KIP-866).",
)
