"""TODO"""

from schemas.vocabulary import Api, Array, Boolean, Int8, Int16, Int32, String, Uuid

GetTelemetrySubscriptions = Api(
    71, "GetTelemetrySubscriptions", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

GetTelemetrySubscriptionsRequest = GetTelemetrySubscriptions.request(
    "client_instance_id" / Uuid * "TODO",
)

GetTelemetrySubscriptionsResponse = GetTelemetrySubscriptions.response(
    "throttle_time_ms"           / Int32         * "TODO",
    "error_code"                 / Int16         * "TODO",
    "client_instance_id"         / Uuid          * "TODO",
    "subscription_id"            / Int32         * "TODO",
    "accepted_compression_types" / Array(Int8)   * "TODO",
    "push_interval_ms"           / Int32         * "TODO",
    "telemetry_max_bytes"        / Int32         * "TODO",
    "delta_temporality"          / Boolean       * "TODO",
    "requested_metrics"          / Array(String) * "TODO",
)
