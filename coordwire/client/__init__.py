"""A client of a Kafka cluster: one request and its answer, sent where Kafka wants it.

settings.py           `ClientSettings`, also from Kafka's own client.properties (client_properties.py,
                      properties.py)
tls.py                whom to trust, and the client's certificate
authentication.py     SASL as a generator without I/O; token_endpoint.py: tokens of an OAuth endpoint
opening.py            the beginning of a connection as a generator: versions, then who the client is
streams.py            that beginning with asyncio: `open_stream`
sockets.py            and with a blocking socket: `open_socket`
errors.py             `ClientError` and what is under it

Rules: what decides is without I/O; time limits are on every wait; no secret is in an error or a `repr`.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.client.authentication import OAuthBearer, Plain, Scram
    from coordwire.client.client_properties import settings_of
    from coordwire.client.errors import (
        AuthenticationRefused,
        BrokerUnreachable,
        ClientError,
        DeadlineExceeded,
        RequestFailed,
        SettingsError,
        UnreadableAnswer,
        VersionUnavailable,
    )
    from coordwire.client.opening import Session
    from coordwire.client.properties import read_properties
    from coordwire.client.settings import ClientSettings, addresses
    from coordwire.client.sockets import open_socket
    from coordwire.client.streams import open_stream
    from coordwire.client.tls import tls_context

_LAZY = {
    "AuthenticationRefused": "errors",
    "BrokerUnreachable": "errors",
    "ClientError": "errors",
    "ClientSettings": "settings",
    "DeadlineExceeded": "errors",
    "OAuthBearer": "authentication",
    "Plain": "authentication",
    "RequestFailed": "errors",
    "Scram": "authentication",
    "Session": "opening",
    "SettingsError": "errors",
    "UnreadableAnswer": "errors",
    "VersionUnavailable": "errors",
    "addresses": "settings",
    "open_socket": "sockets",
    "open_stream": "streams",
    "read_properties": "properties",
    "settings_of": "client_properties",
    "tls_context": "tls",
}

__all__ = [
    "AuthenticationRefused",
    "BrokerUnreachable",
    "ClientError",
    "ClientSettings",
    "DeadlineExceeded",
    "OAuthBearer",
    "Plain",
    "RequestFailed",
    "Scram",
    "Session",
    "SettingsError",
    "UnreadableAnswer",
    "VersionUnavailable",
    "addresses",
    "open_socket",
    "open_stream",
    "read_properties",
    "settings_of",
    "tls_context",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
