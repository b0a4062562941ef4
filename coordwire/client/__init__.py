"""A client of a Kafka cluster: one request and its answer, sent where Kafka wants it.

settings.py           `ClientSettings`, also from Kafka's own client.properties (client_properties.py, with
                      tokens of an OAuth endpoint: http_exchange.py)
tls.py                what to trust, and the client's certificate
authentication.py     SASL as a generator without I/O; background.py: what it computes, in a thread
opening.py            the beginning of a connection as a generator: versions, then who the client is
streams.py            that beginning with asyncio: `open_stream`; link.py: the connection after
                      it, and how many bytes of requests may wait
socket_link.py        both with a blocking socket: `open_socket`
routing.py            where a request belongs, its parts, and one answer of theirs
requests.py           a request with its version, look-ups and retries as a generator; cluster.py: what
                      is known
async_client.py       its drivers: `connect`, `Client`
sync_client.py        `connect_sync`, `SyncClient`
errors.py             `ClientError` and what is under it

Rules: what decides is without I/O; time limits are on every wait; no secret is in an error or a `repr`.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.client.async_client import Client, connect
    from coordwire.client.authentication import OAuthBearer, Plain, Scram
    from coordwire.client.client_properties import read_properties, settings_of
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
    from coordwire.client.settings import ClientSettings, addresses
    from coordwire.client.socket_link import open_socket
    from coordwire.client.streams import open_stream
    from coordwire.client.sync_client import SyncClient, connect_sync
    from coordwire.client.tls import tls_context

_LAZY = {
    "AuthenticationRefused": "errors",
    "BrokerUnreachable": "errors",
    "Client": "async_client",
    "ClientError": "errors",
    "ClientSettings": "settings",
    "DeadlineExceeded": "errors",
    "OAuthBearer": "authentication",
    "Plain": "authentication",
    "RequestFailed": "errors",
    "Scram": "authentication",
    "Session": "opening",
    "SettingsError": "errors",
    "SyncClient": "sync_client",
    "UnreadableAnswer": "errors",
    "VersionUnavailable": "errors",
    "addresses": "settings",
    "connect": "async_client",
    "connect_sync": "sync_client",
    "open_socket": "socket_link",
    "open_stream": "streams",
    "read_properties": "client_properties",
    "settings_of": "client_properties",
    "tls_context": "tls",
}

__all__ = [
    "AuthenticationRefused",
    "BrokerUnreachable",
    "Client",
    "ClientError",
    "ClientSettings",
    "DeadlineExceeded",
    "OAuthBearer",
    "Plain",
    "RequestFailed",
    "Scram",
    "Session",
    "SettingsError",
    "SyncClient",
    "UnreadableAnswer",
    "VersionUnavailable",
    "addresses",
    "connect",
    "connect_sync",
    "open_socket",
    "open_stream",
    "read_properties",
    "settings_of",
    "tls_context",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
