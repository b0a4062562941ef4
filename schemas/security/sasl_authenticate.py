"""SaslAuthenticate: client and broker exchange the tokens of a SASL mechanism.

It repeats until the mechanism is through; what the tokens mean is the mechanism's own matter.
"""

from schemas.vocabulary import Api, Bytes, Default, ErrorCode, Int64, Nullable, Secret, Since, String

SaslAuthenticate = Api(
    36, "SaslAuthenticate", versions=(0, 2), flexible=2, listeners=("broker", "controller"),
    doc="Carries one step of the exchange that SaslHandshake version 1 opens (KIP-152).",
    changes={
        1: "How long the session lasts, to authenticate again in time (KIP-368).",
        2: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=("ILLEGAL_SASL_STATE", "SASL_AUTHENTICATION_FAILED"),
)

SaslAuthenticateRequest = SaslAuthenticate.request(
    "auth_bytes" / Secret(Bytes) * "The client's token; may hold secrets (PLAIN sends the password).",
)

SaslAuthenticateResponse = SaslAuthenticate.response(
    "error_code"          / ErrorCode                       * "0, or why the client was refused.",
    "error_message"       / Default(Nullable(String), "")   * "Explains the error; null if there is none.",
    "auth_bytes"          / Secret(Bytes)                   * "The broker's token; may be empty.",
    "session_lifetime_ms" / Since(1, Int64, ignorable=True) * "Authenticate again within so many ms; 0 for no end (KIP-368).",
)
