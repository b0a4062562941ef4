"""Envelope: a broker forwards a client's request to the controller."""

from schemas.security.default_principal import DefaultPrincipalData
from schemas.vocabulary import Api, Bytes, Default, Embedded, ErrorCode, Nullable, Secret

Envelope = Api(
    58, "Envelope", versions=(0, 0), flexible=0, listeners=("controller",), modifies=True,
    doc="Carries a whole request on behalf of its client, with who sent it and from where (KIP-590). Only brokers may send it.",
    changes={},
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "NOT_CONTROLLER", "INVALID_REQUEST",
        "PRINCIPAL_DESERIALIZATION_FAILURE",
    ),
)

EnvelopeRequest = Envelope.request(
    "request_data"        / Secret(Bytes)                                          * "The client's request, header and body, without the length in front.",
    "request_principal"   / Default(Nullable(Embedded(DefaultPrincipalData)), b"") * "The client's principal, serialised by the broker; null if there is none.",
    "client_host_address" / Bytes                                                  * "The client's IP address in network order, 4 or 16 bytes.",
)

EnvelopeResponse = Envelope.response(
    "response_data" / Nullable(Secret(Bytes)) * "The response to the client, header and body; null if the envelope failed.",
    "error_code"    / ErrorCode               * "0, or why the envelope was not opened; errors inside are in response_data.",
)
