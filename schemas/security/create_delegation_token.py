"""TODO"""

from schemas.vocabulary import (
    Api,
    Array,
    Bytes,
    Default,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
)

CreateDelegationToken = Api(
    38, "CreateDelegationToken", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

CreatableRenewers = Struct(
    "principal_type" / String * "TODO",
    "principal_name" / String * "TODO",
    about="TODO",
)

CreateDelegationTokenRequest = CreateDelegationToken.request(
    "owner_principal_type" / Since(3, Default(Nullable(String), "")) * "TODO",
    "owner_principal_name" / Since(3, Default(Nullable(String), "")) * "TODO",
    "renewers"             / Array(CreatableRenewers)                * "TODO",
    "max_lifetime_ms"      / Int64                                   * "TODO",
)

CreateDelegationTokenResponse = CreateDelegationToken.response(
    "error_code"                     / Int16            * "TODO",
    "principal_type"                 / String           * "TODO",
    "principal_name"                 / String           * "TODO",
    "token_requester_principal_type" / Since(3, String) * "TODO",
    "token_requester_principal_name" / Since(3, String) * "TODO",
    "issue_timestamp_ms"             / Int64            * "TODO",
    "expiry_timestamp_ms"            / Int64            * "TODO",
    "max_timestamp_ms"               / Int64            * "TODO",
    "token_id"                       / String           * "TODO",
    "hmac"                           / Bytes            * "TODO",
    "throttle_time_ms"               / Int32            * "TODO",
)
