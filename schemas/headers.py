"""What precedes each request and each response; the api key and version decide on the header's version."""

from schemas.vocabulary import Data, Default, Fixed, Int16, Int32, Nullable, Since, String

RequestHeader = Data("RequestHeader", versions=(0, 3), flexible=2, direction="header", doc="v2 precedes flexible requests, v1 all others; only the oldest ControlledShutdown had v0. v3 waits for a release of Kafka (KIP-1313): the layout of v2, with the client's instance id in tag 0, which is an unknown one until then.")(
    "request_api_key"     / Int16                                                            * "The api key: which API the request is of.",
    "request_api_version" / Int16                                                            * "The version that the request is in and the response will be in.",
    "correlation_id"      / Int32                                                            * "Chosen by the client; comes back with the response.",
    "client_id"           / Since(1, Fixed(Default(Nullable(String), "")), ignorable=True) * "What the client calls itself, for quotas and logs; null for none. Never compact. From v3 on only a connection's first request has it.",
)

ResponseHeader = Data("ResponseHeader", versions=(0, 1), flexible=1, direction="header", doc="v1 precedes flexible responses, v0 all others and, in any version, ApiVersions (KIP-511).")(
    "correlation_id" / Int32 * "That of the request answered; requests are answered in their order.",
)
