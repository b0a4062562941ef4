"""ExpireDelegationToken: brings the end of a delegation token forward, or ends it now."""

from schemas.vocabulary import Api, Bytes, ErrorCode, Int32, Int64, Secret

ExpireDelegationToken = Api(
    40, "ExpireDelegationToken", versions=(0, 2), flexible=2, modifies=True,
    listeners=("broker", "controller"), deprecated=(0, 0),
    doc="Sets a new expiry time for a token (KIP-48). The owner and the renewers may do so.",
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

ExpireDelegationTokenRequest = ExpireDelegationToken.request(
    "hmac"                  / Secret(Bytes) * "The token's secret, by which it is found.",
    "expiry_time_period_ms" / Int64         * "Time left to the token from now, in ms; negative ends it at once.",
)

ExpireDelegationTokenResponse = ExpireDelegationToken.response(
    "error_code"          / ErrorCode * "0, or why the expiry was not changed.",
    "expiry_timestamp_ms" / Int64     * "The new end of the token's life, ms since the epoch.",
    "throttle_time_ms"    / Int32     * "How long a quota holds the client back, in ms; 0 for not at all.",
)
