"""TODO"""

from schemas.vocabulary import Api, Array, Int16, String

SaslHandshake = Api(
    17, "SaslHandshake", versions=(0, 1), flexible=None,
    about="TODO",
    changes={},
)

SaslHandshakeRequest = SaslHandshake.request(
    "mechanism" / String * "TODO",
)

SaslHandshakeResponse = SaslHandshake.response(
    "error_code" / Int16         * "TODO",
    "mechanisms" / Array(String) * "TODO",
)
