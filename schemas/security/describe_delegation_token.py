"""DescribeDelegationToken: lists delegation tokens, secrets included."""

from schemas.vocabulary import (
    Api,
    Array,
    Bytes,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    Secret,
    Since,
    String,
    Struct,
)

DescribeDelegationToken = Api(
    41, "DescribeDelegationToken", versions=(0, 3), flexible=2,
    listeners=("broker", "controller"), deprecated=(0, 0),
    doc="Shows the tokens that the asking user owns, may renew or is allowed to describe (KIP-48).",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "The response names each token's requester (KIP-373).",
    },
    errors=("DELEGATION_TOKEN_AUTH_DISABLED", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"),
)

DescribeDelegationTokenOwner = Struct(
    "principal_type" / String * 'Kind of principal, usually "User".',
    "principal_name" / String * "The principal's name.",
    doc="One owner whose tokens are asked for.",
)

DescribeDelegationTokenRequest = DescribeDelegationToken.request(
    "owners" / Default(Nullable(Array(DescribeDelegationTokenOwner)), []) * "Whose tokens to list; null for every owner's, empty for none.",
)

DescribedDelegationTokenRenewer = Struct(
    "principal_type" / String * 'Kind of principal, usually "User".',
    "principal_name" / String * "The principal's name.",
    doc="One who may renew the token, beside its owner.",
)

DescribedDelegationToken = Struct(
    "principal_type"                 / String                                 * 'Kind of the owner, usually "User".',
    "principal_name"                 / String                                 * "Name of the owner.",
    "token_requester_principal_type" / Since(3, String)                       * "Kind of the principal who asked for the token (KIP-373).",
    "token_requester_principal_name" / Since(3, String)                       * "Name of the principal who asked for the token (KIP-373).",
    "issue_timestamp"                / Int64                                  * "When the token was made, ms since the epoch.",
    "expiry_timestamp"               / Int64                                  * "When it ends unless renewed, ms since the epoch.",
    "max_timestamp"                  / Int64                                  * "When it ends for good, ms since the epoch.",
    "token_id"                       / String                                 * "The token's public id, the user name when logging in.",
    "hmac"                           / Secret(Bytes)                          * "The token's secret, the password when logging in (in base64).",
    "renewers"                       / Array(DescribedDelegationTokenRenewer) * "Who else may renew it; empty for the owner alone.",
    doc="One token with its owner, its times and its secret.",
)

DescribeDelegationTokenResponse = DescribeDelegationToken.response(
    "error_code"       / ErrorCode                       * "0, or why nothing could be listed.",
    "tokens"           / Array(DescribedDelegationToken) * "The tokens found; empty for none.",
    "throttle_time_ms" / Int32                           * "How long a quota holds the client back, in ms; 0 for not at all.",
)
