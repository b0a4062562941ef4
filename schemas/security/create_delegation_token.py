"""CreateDelegationToken: issues a token that is in for a user's own credentials."""

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

CreateDelegationToken = Api(
    38, "CreateDelegationToken", versions=(0, 3), flexible=2, modifies=True,
    listeners=("broker", "controller"), deprecated=(0, 0),
    doc="Makes a token that workers can log in with, instead of carrying their user's secret (KIP-48). It has to be asked for over an authenticated connection.",
    changes={
        1: "Same layout; the broker throttles after it has answered (KIP-219).",
        2: "Flexible lengths and tagged fields (KIP-482).",
        3: "A token may be made for another user; the response names the requester (KIP-373).",
    },
    errors=(
        "NOT_CONTROLLER", "DELEGATION_TOKEN_AUTH_DISABLED", "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
        "DELEGATION_TOKEN_AUTHORIZATION_FAILED", "INVALID_PRINCIPAL_TYPE",
    ),
)

CreatableRenewers = Struct(
    "principal_type" / String * 'Kind of principal; brokers accept "User" only.',
    "principal_name" / String * "The principal's name.",
    doc="One who may renew the token, beside its owner.",
)

CreateDelegationTokenRequest = CreateDelegationToken.request(
    "owner_principal_type" / Since(3, Default(Nullable(String), "")) * "Kind of the owner; null or empty for the requester (KIP-373).",
    "owner_principal_name" / Since(3, Default(Nullable(String), "")) * "Name of the owner; null or empty for the requester (KIP-373).",
    "renewers"             / Array(CreatableRenewers)                * "Who else may renew it; empty for the owner alone.",
    "max_lifetime_ms"      / Int64                                   * "Longest life with all renewals, in ms; -1 for the broker's limit.",
)

CreateDelegationTokenResponse = CreateDelegationToken.response(
    "error_code"                     / ErrorCode        * "0, or why no token was made.",
    "principal_type"                 / String           * 'Kind of the owner, usually "User".',
    "principal_name"                 / String           * "Name of the owner.",
    "token_requester_principal_type" / Since(3, String) * "Kind of the principal who asked (KIP-373).",
    "token_requester_principal_name" / Since(3, String) * "Name of the principal who asked (KIP-373).",
    "issue_timestamp_ms"             / Int64            * "When the token was made, ms since the epoch.",
    "expiry_timestamp_ms"            / Int64            * "When it ends unless renewed, ms since the epoch.",
    "max_timestamp_ms"               / Int64            * "When it ends for good, ms since the epoch.",
    "token_id"                       / String           * "The token's public id, the user name when logging in.",
    "hmac"                           / Secret(Bytes)    * "The token's secret, the password when logging in (in base64).",
    "throttle_time_ms"               / Int32            * "How long a quota holds the client back, in ms; 0 for not at all.",
)
