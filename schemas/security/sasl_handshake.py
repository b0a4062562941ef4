"""SaslHandshake: a client picks the SASL mechanism to authenticate with.

After version 0 the mechanism's tokens follow as bare frames without headers; after version 1, as SaslAuthenticate.
"""

from schemas.vocabulary import Api, Array, ErrorCode, String

SaslHandshake = Api(
    17, "SaslHandshake", versions=(0, 1), flexible=None, listeners=("broker", "controller"),
    doc="Picks the mechanism; the broker agrees or lists those that it takes (KIP-43).",
    changes={
        1: "Same layout; the tokens that follow travel in SaslAuthenticate (KIP-152).",
    },
    errors=("UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"),
)

SaslHandshakeRequest = SaslHandshake.request(
    "mechanism" / String * 'The one picked: "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", …',
)

SaslHandshakeResponse = SaslHandshake.response(
    "error_code" / ErrorCode     * "0, or why the mechanism can't be used.",
    "mechanisms" / Array(String) * "Those that the broker takes on this listener.",
)
