"""GetTelemetrySubscriptions: a client learns which of its metrics the cluster wants (KIP-714)."""

from schemas.vocabulary import Api, Array, Boolean, ErrorCode, Int8, Int32, String, Until, Uuid

GetTelemetrySubscriptions = Api(
    71, "GetTelemetrySubscriptions", versions=(0, 1), flexible=0, unreleased=1, request_headers={0: 2, 1: 3},
    doc="The first step of client telemetry; PushTelemetry then sends the metrics. Asked again when a push is refused for an old subscription.",
    changes={
        1: "The client instance id is in header version 3 (KIP-1313).",
    },
    errors=("INVALID_REQUEST", "THROTTLING_QUOTA_EXCEEDED"),
)

GetTelemetrySubscriptionsRequest = GetTelemetrySubscriptions.request(
    "client_instance_id" / Until(0, Uuid) * "The client's id from an earlier answer; all zeros on the first request.",
)

GetTelemetrySubscriptionsResponse = GetTelemetrySubscriptions.response(
    "throttle_time_ms"           / Int32         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"                 / ErrorCode     * "0, or why there is no subscription.",
    "client_instance_id"         / Uuid          * "The id to go by from now on; drawn by the broker on a first request.",
    "subscription_id"            / Int32         * "Names this set of metrics and settings; each push repeats it.",
    "accepted_compression_types" / Array(Int8)   * "What pushes may use, best first: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    "push_interval_ms"           / Int32         * "Time from one push to the next, in ms.",
    "telemetry_max_bytes"        / Int32         * "The most bytes of metrics that the broker takes in one push.",
    "delta_temporality"          / Boolean       * "True: counters since the last push; false: since the client's start.",
    "requested_metrics"          / Array(String) * "Prefixes of the metrics wanted; empty for none, one empty text for all.",
)
