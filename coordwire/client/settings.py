"""The settings of a client: where the brokers are, how to reach them, and how long to try.

    ClientSettings(bootstrap=addresses("broker-1:9093,broker-2:9093"), tls=tls_context(ca="ca.pem"),
                   sasl=Scram("till", password))
    settings_of(read_properties("client.properties"), bootstrap="broker-1:9093")

Rules: names and defaults are those of Kafka's clients, where these have the setting. A setting that coordwire
cannot honour is a `SettingsError`; those of producers, consumers and other programs are ignored. A `repr`
has no secret.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field

from coordwire.client.authentication import Sasl
from coordwire.client.errors import SettingsError

Address = tuple[str, int]
"""A host and a port."""

DEFAULT_PORT = 9092
_ADDRESS = re.compile(
    r"(?:\w+://)?(?:\[(?P<ipv6>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^:\s/\[\]]+))(?::(?P<port>\d{1,5}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """How a client reaches a cluster.

    bootstrap: brokers of which any is asked first. is_controller: these are controllers (KIP-919). tls: None
    for connections without TLS. sasl: who the client is; None for connections without SASL. client_id: what
    requests carry. connection_timeout_ms: for a socket, TLS and SASL together. request_timeout_ms: for one
    answer of a broker. timeout_ms: for a request with all its look-ups and retries. retries: how often a
    request is sent again where the cluster has moved or a connection ended. retry_backoff_ms: the pause
    before the first of them; each further one waits twice as long, up to a second. max_in_flight_bytes: of
    requests that wait for answers; a request that would exceed it waits.
    """

    bootstrap: tuple[Address, ...]
    is_controller: bool = False
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    sasl: Sasl | None = None
    client_id: str = "coordwire"
    connection_timeout_ms: int = 10_000
    request_timeout_ms: int = 30_000
    timeout_ms: int = 60_000
    retries: int = 5
    retry_backoff_ms: int = 100
    max_in_flight_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise SettingsError("expected the address of a broker, got none")
        for name in ("connection_timeout_ms", "request_timeout_ms", "timeout_ms", "max_in_flight_bytes"):
            if getattr(self, name) <= 0:
                raise SettingsError(f"expected {name} above 0, got {getattr(self, name)}")
        if self.retries < 0 or self.retry_backoff_ms < 0:
            raise SettingsError("expected retries and retry_backoff_ms of at least 0")


def addresses(text: str) -> tuple[Address, ...]:
    """The addresses of a list ("broker-1:9092,[::1]:9092"); without a port it is 9092.

    Raises `SettingsError`.
    """
    return tuple(address(part) for part in text.split(",") if part.strip())


def address(text: str, *, default_port: int | None = DEFAULT_PORT, any_port: bool = False) -> Address:
    """An address, as "broker-1:9092" or "[::1]:9092". default_port: without one; None where it is needed.
    any_port: 0 is a port too. Raises `SettingsError`."""
    match = _ADDRESS.fullmatch(text.strip())
    port = None if match is None else match["port"] or default_port
    if match is None or port is None:
        raise SettingsError(f"expected HOST:PORT, got {text.strip()!r}")
    if not (0 if any_port else 1) <= int(port) < 1 << 16:
        raise SettingsError(f"expected HOST:PORT with a port up to 65535, got {text.strip()!r}")
    return match["ipv6"] or match["host"], int(port)


def shown_address(address: Address) -> str:
    """An address as text, with brackets around IPv6."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
