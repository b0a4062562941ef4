"""RenewDelegationToken: puts off the end of a delegation token."""

from schemas.vocabulary import Api, Bytes, ErrorCode, Int32, Int64, Secret

RenewDelegationToken = Api(
    39, "RenewDelegationToken", versions=(0, 2), flexible=2, modifies=True,
    listeners=("broker", "controller"), deprecated=(0, 0),
    doc="Prolongs a token up to its greatest lifetime (KIP-48). The owner and the renewers may do so.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "NOT_CONTROLLER", "DELEGATION_TOKEN_AUTH_DISABLED", "DELEGATION_TOKEN_NOT_FOUND",
        "DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "DELEGATION_TOKEN_EXPIRED",
    ),
)

RenewDelegationTokenRequest = RenewDelegationToken.request(
    "hmac"            / Secret(Bytes) * "The token's secret, by which it is found.",
    "renew_period_ms" / Int64         * "Time to live from now, in ms; -1 for the broker's setting.",
)

RenewDelegationTokenResponse = RenewDelegationToken.response(
    "error_code"          / ErrorCode * "0, or why the token was not renewed.",
    "expiry_timestamp_ms" / Int64     * "The new end of the token's life, ms since the epoch.",
    "throttle_time_ms"    / Int32     * "How long a quota holds the client back, in ms; 0 for not at all.",
)
