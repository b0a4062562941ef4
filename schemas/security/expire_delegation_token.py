"""TODO"""

from schemas.vocabulary import Api, Bytes, Int16, Int32, Int64

ExpireDelegationToken = Api(
    40, "ExpireDelegationToken", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

ExpireDelegationTokenRequest = ExpireDelegationToken.request(
    "hmac"                  / Bytes * "TODO",
    "expiry_time_period_ms" / Int64 * "TODO",
)

ExpireDelegationTokenResponse = ExpireDelegationToken.response(
    "error_code"          / Int16 * "TODO",
    "expiry_timestamp_ms" / Int64 * "TODO",
    "throttle_time_ms"    / Int32 * "TODO",
)
