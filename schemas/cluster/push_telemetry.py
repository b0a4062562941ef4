"""PushTelemetry: a client sends the metrics that the cluster asked for (KIP-714)."""

from schemas.vocabulary import Api, Boolean, Bytes, ErrorCode, Int8, Int32, Uuid

PushTelemetry = Api(
    72, "PushTelemetry", versions=(0, 0), flexible=0, modifies=True,
    doc="Sent at the interval of the subscription, and once more when the client ends. A change of subscription is answered with UNKNOWN_SUBSCRIPTION_ID.",
    changes={},
    errors=(
        "INVALID_REQUEST", "UNSUPPORTED_COMPRESSION_TYPE", "THROTTLING_QUOTA_EXCEEDED",
        "UNKNOWN_SUBSCRIPTION_ID", "TELEMETRY_TOO_LARGE",
    ),
)

PushTelemetryRequest = PushTelemetry.request(
    "client_instance_id" / Uuid    * "The client's id, from GetTelemetrySubscriptions.",
    "subscription_id"    / Int32   * "The subscription that the metrics follow.",
    "terminating"        / Boolean * "True: the client ends, this is its last push.",
    "compression_type"   / Int8    * "How metrics is compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    "metrics"            / Bytes   * "OpenTelemetry's MetricsData in protobuf, compressed.",
)

PushTelemetryResponse = PushTelemetry.response(
    "throttle_time_ms" / Int32     * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode * "0, or why the metrics were not taken, such as TELEMETRY_TOO_LARGE.",
)
