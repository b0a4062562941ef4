"""TODO"""

from schemas.vocabulary import Api, Boolean, Bytes, Int8, Int16, Int32, Uuid

PushTelemetry = Api(
    72, "PushTelemetry", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

PushTelemetryRequest = PushTelemetry.request(
    "client_instance_id" / Uuid    * "TODO",
    "subscription_id"    / Int32   * "TODO",
    "terminating"        / Boolean * "TODO",
    "compression_type"   / Int8    * "TODO",
    "metrics"            / Bytes   * "TODO",
)

PushTelemetryResponse = PushTelemetry.response(
    "throttle_time_ms" / Int32 * "TODO",
    "error_code"       / Int16 * "TODO",
)
