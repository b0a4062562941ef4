"""TODO"""

from schemas.vocabulary import Api, Bytes, Default, Int16, Nullable

Envelope = Api(
    58, "Envelope", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

EnvelopeRequest = Envelope.request(
    "request_data"        / Bytes                         * "TODO",
    "request_principal"   / Default(Nullable(Bytes), b"") * "TODO",
    "client_host_address" / Bytes                         * "TODO",
)

EnvelopeResponse = Envelope.response(
    "response_data" / Nullable(Bytes) * "TODO",
    "error_code"    / Int16           * "TODO",
)
