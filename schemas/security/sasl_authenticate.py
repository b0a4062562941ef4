"""TODO"""

from schemas.vocabulary import Api, Bytes, Default, Int16, Int64, Nullable, Since, String

SaslAuthenticate = Api(
    36, "SaslAuthenticate", versions=(0, 2), flexible=2,
    about="TODO",
    changes={},
)

SaslAuthenticateRequest = SaslAuthenticate.request(
    "auth_bytes" / Bytes * "TODO",
)

SaslAuthenticateResponse = SaslAuthenticate.response(
    "error_code"          / Int16                           * "TODO",
    "error_message"       / Default(Nullable(String), "")   * "TODO",
    "auth_bytes"          / Bytes                           * "TODO",
    "session_lifetime_ms" / Since(1, Int64, ignorable=True) * "TODO",
)
