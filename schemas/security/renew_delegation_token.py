"""TODO"""

from schemas.vocabulary import Api, Bytes, Int16, Int32, Int64

RenewDelegationToken = Api(
    39, "RenewDelegationToken", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

RenewDelegationTokenRequest = RenewDelegationToken.request(
    "hmac"            / Bytes * "TODO",
    "renew_period_ms" / Int64 * "TODO",
)

RenewDelegationTokenResponse = RenewDelegationToken.response(
    "error_code"          / Int16 * "TODO",
    "expiry_timestamp_ms" / Int64 * "TODO",
    "throttle_time_ms"    / Int32 * "TODO",
)
