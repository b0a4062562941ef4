"""Envelope: a broker forwards a client's request to the controller."""

from schemas.security.default_principal import DefaultPrincipalData
from schemas.vocabulary import Api, Bytes, Default, Embedded, Int16, Nullable

Envelope = Api(
    58, "Envelope", versions=(0, 0), flexible=0,
    about="Carries a whole request on behalf of its client, with who sent it and from where (KIP-590). Only brokers may send it.",
    changes={},
)

EnvelopeRequest = Envelope.request(
    "request_data"        / Bytes                         * "The client's request, header and body, without the length in front.",
    "request_principal"   / Default(Nullable(Embedded(DefaultPrincipalData)), b"") * "The client's principal, serialised by the broker; null if there is none.",
    "client_host_address" / Bytes                         * "The client's IP address in network order, 4 or 16 bytes.",
)

EnvelopeResponse = Envelope.response(
    "response_data" / Nullable(Bytes) * "The response to the client, header and body; null if the envelope failed.",
    "error_code"    / Int16           * "0, or why the envelope was not opened; errors inside are in response_data.",
)
