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

DescribeDelegationToken = Api(
    41, "DescribeDelegationToken", versions=(0, 3), flexible=2,
    about="TODO",
    changes={},
)

DescribeDelegationTokenOwner = Struct(
    "principal_type" / String * "TODO",
    "principal_name" / String * "TODO",
    about="TODO",
)

DescribeDelegationTokenRequest = DescribeDelegationToken.request(
    "owners" / Default(Nullable(Array(DescribeDelegationTokenOwner)), []) * "TODO",
)

DescribedDelegationTokenRenewer = Struct(
    "principal_type" / String * "TODO",
    "principal_name" / String * "TODO",
    about="TODO",
)

DescribedDelegationToken = Struct(
    "principal_type"                 / String                                 * "TODO",
    "principal_name"                 / String                                 * "TODO",
    "token_requester_principal_type" / Since(3, String)                       * "TODO",
    "token_requester_principal_name" / Since(3, String)                       * "TODO",
    "issue_timestamp"                / Int64                                  * "TODO",
    "expiry_timestamp"               / Int64                                  * "TODO",
    "max_timestamp"                  / Int64                                  * "TODO",
    "token_id"                       / String                                 * "TODO",
    "hmac"                           / Bytes                                  * "TODO",
    "renewers"                       / Array(DescribedDelegationTokenRenewer) * "TODO",
    about="TODO",
)

DescribeDelegationTokenResponse = DescribeDelegationToken.response(
    "error_code"       / Int16                           * "TODO",
    "tokens"           / Array(DescribedDelegationToken) * "TODO",
    "throttle_time_ms" / Int32                           * "TODO",
)
