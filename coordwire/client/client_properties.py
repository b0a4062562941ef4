"""Kafka's client.properties to the settings of a client: security, addresses, times.

Rules: as in `settings.py`. What Kafka does by classes of the user's own (`ssl.engine.factory.class`, callback
handlers) is refused by its name; a login that needs Kerberos, too. Tokens for OAUTHBEARER come from an OAuth
2.0 endpoint, for a client's credentials (RFC 6749, section 4.4), as Kafka's retriever has it: the credentials
go in the header Authorization; an answer has a bounded size; no secret is in an error.
"""

from __future__ import annotations

import json
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from coordwire.client.authentication import OAuthBearer, Plain, Sasl, Scram, TokenSource
from coordwire.client.errors import AuthenticationRefused, SettingsError
from coordwire.client.properties import Login, parse_login
from coordwire.client.settings import ClientSettings, addresses
from coordwire.client.tls import pem_of_store, tls_context

__all__ = ["fetch_token", "settings_of"]

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_CLASSES = (
    "ssl.engine.factory.class",
    "sasl.client.callback.handler.class",
    "sasl.login.class",
)
_TIMES = {
    "socket.connection.setup.timeout.ms": "connection_timeout_ms",
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
}
_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(ClientSettings)}
_MOST_RETRIES = 20
_TOKEN_SECONDS = 3_600


def settings_of(properties: Mapping[str, str], *, bootstrap: str | None = None) -> ClientSettings:
    """The settings that a client's properties hold. bootstrap: instead of bootstrap.servers.

    Raises `SettingsError`.
    """
    for name in _CLASSES:
        if properties.get(name):
            raise SettingsError(f"{name} is a class of Java, which coordwire cannot use")
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise SettingsError(f"security.protocol: expected one of {', '.join(_PROTOCOLS)}, got {protocol!r}")
    servers, is_controller = bootstrap or properties.get("bootstrap.servers", ""), False
    if not servers and (servers := properties.get("bootstrap.controllers", "")):
        is_controller = True
    if not servers:
        raise SettingsError("expected bootstrap.servers, or an address as argument")
    numbers: dict[str, Any] = {
        field: _number(properties, name, _DEFAULTS[field]) for name, field in _TIMES.items()
    }
    return ClientSettings(
        bootstrap=addresses(servers),
        is_controller=is_controller,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        sasl=_sasl(properties) if protocol.startswith("SASL") else None,
        client_id=properties.get("client.id") or _DEFAULTS["client_id"],
        retries=min(_number(properties, "retries", _DEFAULTS["retries"]), _MOST_RETRIES),
        **numbers,
    )


def _number(properties: Mapping[str, str], name: str, default: Any) -> int:
    text = properties.get(name)
    if text is None:
        return int(default)
    try:
        return int(text.strip())
    except ValueError:
        raise SettingsError(f"{name}: expected a number, got {text!r}") from None


# --- TLS ---


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    get = properties.get
    ca_pem = get("ssl.truststore.certificates")
    if ca_pem is None and (location := get("ssl.truststore.location")):
        ca_pem, _ = pem_of_store(Path(location), get("ssl.truststore.password"))
        if not ca_pem:
            raise SettingsError(f"ssl.truststore.location: no certificate in {location}")
    chain, key = get("ssl.keystore.certificate.chain"), get("ssl.keystore.key")
    if chain is None and (location := get("ssl.keystore.location")):
        chain, key = pem_of_store(Path(location), get("ssl.keystore.password"))
    return tls_context(
        ca_pem=ca_pem,
        certificate_pem=chain,
        key_pem=key,
        key_password=get("ssl.key.password"),
        check_hostname=bool(get("ssl.endpoint.identification.algorithm", "https").strip()),
    )


# --- SASL ---


def _sasl(properties: Mapping[str, str]) -> Sasl:
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"):
        raise SettingsError(
            f"sasl.mechanism: expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER, got {mechanism!r}"
        )
    text = properties.get("sasl.jaas.config")
    if not text:
        raise SettingsError("expected sasl.jaas.config, with the login of the user")
    login = parse_login(text)
    if mechanism == "OAUTHBEARER":
        return _bearer(properties, login)
    user, password = _option(login, "username"), _option(login, "password")
    if mechanism == "PLAIN":
        return Plain(user, password)
    is_token = login.options.get("tokenauth", "").lower() == "true"
    return Scram(user, password, mechanism, is_token)


def _option(login: Login, name: str) -> str:
    try:
        return login.options[name]
    except KeyError:
        raise SettingsError(f"sasl.jaas.config: expected the option {name} of {login.module}") from None


def _bearer(properties: Mapping[str, str], login: Login) -> OAuthBearer:
    """OAUTHBEARER with a token from a file or an endpoint, or an unsecured one of the login's claims."""
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in login.options.items()
        if name.startswith("extension_")
    }
    unsecured = {
        name.removeprefix("unsecuredLoginExtension_"): value
        for name, value in login.options.items()
        if name.startswith("unsecuredLoginExtension_")
    }
    url = properties.get("sasl.oauthbearer.token.endpoint.url")
    if url is None:
        return OAuthBearer(_unsecured_source(login), unsecured)
    if urlsplit(url).scheme == "file":
        path = Path(unquote(urlsplit(url).path))
        return OAuthBearer(lambda: _file_token(path), extensions)
    if urlsplit(url).scheme not in ("http", "https"):
        raise SettingsError("sasl.oauthbearer.token.endpoint.url: expected a URL of https, http or file")
    return OAuthBearer(_endpoint_source(url, properties, login), extensions)


def _file_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise SettingsError(f"{path}: the token cannot be read") from None


def _unsecured_source(login: Login) -> TokenSource:
    """Tokens without a signature, as `OAuthBearerUnsecuredLoginCallbackHandler` makes them for tests."""
    prefix, name_claim = (
        "unsecuredLoginStringClaim_",
        login.options.get("unsecuredLoginPrincipalClaimName", "sub"),
    )
    claims = {
        name.removeprefix(prefix): value for name, value in login.options.items() if name.startswith(prefix)
    }
    if name_claim not in claims:
        raise SettingsError(f"sasl.jaas.config: expected the option {prefix}{name_claim} of {login.module}")
    seconds = int(login.options.get("unsecuredLoginLifetimeSeconds", _TOKEN_SECONDS))

    def token() -> str:
        now = time.time()
        return unsecured_token({**claims, "iat": now, "exp": now + seconds})

    return token


def unsecured_token(claims: Mapping[str, object]) -> str:
    """A token of these claims without a signature."""
    parts = ({"alg": "none"}, dict(claims))
    encoded = (urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(encoded) + "."


def _endpoint_source(url: str, properties: Mapping[str, str], login: Login) -> TokenSource:
    """Tokens of an OAuth endpoint, for the client's credentials (KIP-768)."""
    get = properties.get
    client = get("sasl.oauthbearer.client.credentials.client.id") or _option(login, "clientId")
    secret = get("sasl.oauthbearer.client.credentials.client.secret") or _option(login, "clientSecret")
    scope = get("sasl.oauthbearer.scope") or login.options.get("scope")
    tls = _tls(properties) if "ssl.truststore.location" in properties else None

    def token() -> str:
        return fetch_token(url, client, secret, scope, tls)

    return token


_SECONDS = 10
_LARGEST = 1 << 20


def fetch_token(url: str, client: str, secret: str, scope: str | None, tls: ssl.SSLContext | None) -> str:
    """Ask an endpoint for a token; this blocks. Raises `AuthenticationRefused`."""
    from urllib.error import URLError  # few clients need HTTP
    from urllib.request import Request, urlopen

    body = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    credentials = b64encode(f"{client}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Accept": "application/json"}
    request = Request(url, data=urlencode(body).encode(), headers=headers)
    try:
        with urlopen(request, timeout=_SECONDS, context=tls) as response:
            answer = json.loads(response.read(_LARGEST))
    except (URLError, OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        raise AuthenticationRefused(f"no token from {url}: {reason}") from None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token:
        raise AuthenticationRefused(f"no token from {url}: the answer has no access_token")
    return token
