"""Kafka's client.properties to the settings of a client: security, addresses, times.

Rules: as in `settings.py`. What Kafka does by classes of the user's own (`ssl.engine.factory.class`, callback
handlers) is refused by its name; a login that needs Kerberos, too. Tokens for OAUTHBEARER come from an OAuth
2.0 endpoint, for a client's credentials (RFC 6749, section 4.4), as Kafka's retriever has it: the credentials
go in the header Authorization, and nowhere but to that endpoint; an answer has a bounded size and time; no
secret is in an error.

The file's format is that of `java.util.Properties.load`; logins (`sasl.jaas.config`) are those of Kafka's
`JaasConfig`, and `${provider:path:key}` those of its providers (KIP-297, KIP-421, KIP-887). Rules: an error
names the line or the setting, and never repeats a value, which may be a secret; a provider is used only where
the file declares it, as in Kafka.
"""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode, urlsplit

from coordwire.client.authentication import MOST_ITERATIONS, OAuthBearer, Plain, Sasl, Scram, TokenSource
from coordwire.client.errors import AuthenticationRefused, SettingsError
from coordwire.client.settings import Address, ClientSettings, addresses
from coordwire.client.tls import pem_of_store, tls_context

_LARGEST = 1 << 20
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"
_VARIABLE = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]*)\}")
_PROVIDERS = ("EnvVarConfigProvider", "FileConfigProvider", "DirectoryConfigProvider")


def read_properties(path: str | Path) -> dict[str, str]:
    """The properties of a file, with the values of the providers that it declares.

    Raises `SettingsError`.
    """
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise SettingsError(f"{path}: expected at most {_LARGEST} bytes of properties")
    return _resolved(parse_properties(data.decode("latin-1")))


def parse_properties(text: str) -> dict[str, str]:
    """The properties of a text, as `java.util.Properties` reads it. Raises `SettingsError`."""
    properties: dict[str, str] = {}
    for line in _logical_lines(text):
        name, value = _split(line)
        properties[_unescaped(name)] = _unescaped(value)
    return properties


def _logical_lines(text: str) -> list[str]:
    """Lines without comments and leading blanks, with those that continue them."""
    lines: list[str] = []
    continued = False
    natural_lines = re.split(r"\r\n|\r|\n", text)
    if not natural_lines[-1]:
        natural_lines.pop()  # what follows the last end of line is not a line
    for natural in natural_lines:
        line = natural.lstrip(_BLANK)
        if not continued and (not line or line[0] in "#!"):
            continue
        slashes = len(line) - len(line.rstrip("\\"))
        part = line[:-1] if slashes % 2 else line
        if continued:
            lines[-1] += part
        else:
            lines.append(part)
        continued = bool(slashes % 2)
    last = lines[-1:] if continued else []  # as Java has it, also where it is empty
    return [line for line in lines[: len(lines) - len(last)] if line] + last


def _split(line: str) -> tuple[str, str]:
    """A line's name and value, both still with escapes."""
    end = 0
    while end < len(line) and line[end] not in f"{_BLANK}=:":
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANK)
    if value[:1] in ("=", ":"):
        value = value[1:].lstrip(_BLANK)
    return line[:end], value


def _unescaped(text: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        position += 1
        if char == "\\" and position < len(text):
            char = text[position]
            position += 1
            if char == "u":
                digits = text[position : position + 4]
                if not re.fullmatch(r"[0-9A-Fa-f]{4}", digits):
                    raise SettingsError("expected 4 hexadecimal digits after \\u in a property")
                char, position = chr(int(digits, 16)), position + 4
            else:
                char = _ESCAPES.get(char, char)
        elif char == "\\":
            break
        parts.append(char)
    return "".join(parts).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# --- providers of values ---


def _resolved(properties: dict[str, str]) -> dict[str, str]:
    """The properties with `${provider:path:key}` replaced, for the providers that are declared."""
    aliases = [alias.strip() for alias in properties.get("config.providers", "").split(",") if alias.strip()]
    providers: dict[str, str] = {}
    for alias in aliases:
        name = properties.get(f"config.providers.{alias}.class", "").rpartition(".")[2]
        if name not in _PROVIDERS:
            expected = ", ".join(_PROVIDERS)
            raise SettingsError(f"config.providers: expected for each a class, one of {expected}")
        providers[alias] = name
    if not providers:
        return properties
    files: dict[str, dict[str, str]] = {}

    def value(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        return (
            match[0] if provider is None else _provided(provider, match[2] or "", match[3], files, match[0])
        )

    resolved = {}
    for name, text in properties.items():
        try:
            resolved[name] = _VARIABLE.sub(value, text)
        except (OSError, ValueError) as error:  # of its path, or text that is not UTF-8
            reason = getattr(error, "strerror", None) or "not a path, or not UTF-8"
            raise SettingsError(f"{name}: the value of a provider: {reason}") from None
    return resolved


def _provided(provider: str, path: str, key: str, files: dict[str, dict[str, str]], variable: str) -> str:
    """A provider's value; the variable itself where it has none, as in Kafka. Raises `OSError`, `ValueError`,
    `SettingsError`."""
    if provider == "EnvVarConfigProvider":
        return os.environ.get(key, variable)
    if provider == "DirectoryConfigProvider":
        return (Path(path) / Path(key).name).read_text(encoding="utf-8")
    if path not in files:
        files[path] = parse_properties(Path(path).read_bytes().decode("latin-1"))
    return files[path].get(key, variable)


# --- logins ---


@dataclass(frozen=True, slots=True)
class Login:
    """A login module of `sasl.jaas.config`: the last part of its class, and its options."""

    module: str
    options: Mapping[str, str] = field(repr=False)


_JAAS_TOKEN = re.compile(
    r"""\s+|//[^\n]*|/\*.*?\*/
    |(?P<quoted>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>[A-Za-z_$\u00a0-\uffff\U00010000-\U0010ffff-][\w$.\u00a0-\uffff-]*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_JAAS_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_JAAS_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_FLAGS = ("required", "requisite", "sufficient", "optional")


def parse_login(text: str) -> Login:
    """The only login module of a JAAS configuration. Raises `SettingsError`."""
    tokens = _jaas_tokens(text)
    logins: list[Login] = []
    while tokens:
        logins.append(_login(tokens))
    if len(logins) != 1:
        raise SettingsError(f"sasl.jaas.config: expected one login module, got {len(logins)}")
    return logins[0]


def _jaas_tokens(text: str) -> list[tuple[str, str]]:
    """Kind and text of each token, the last first."""
    tokens: list[tuple[str, str]] = []
    for match in _JAAS_TOKEN.finditer(text):
        if match.lastgroup == "quoted":
            tokens.append(("word", _JAAS_ESCAPE.sub(_jaas_unescaped, match[0][1:-1])))
        elif match.lastgroup is not None:
            tokens.append((match.lastgroup, match[0]))
    return tokens[::-1]


def _jaas_unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape, 8)) if escape.isdigit() and escape[0] < "8" else _JAAS_ESCAPES.get(escape, escape)


def _login(tokens: list[tuple[str, str]]) -> Login:
    module = _word(tokens, "a login module")
    if _word(tokens, "a control flag").lower() not in _FLAGS:
        raise SettingsError(f"sasl.jaas.config: expected {', '.join(_FLAGS)} after the login module")
    options: dict[str, str] = {}
    while tokens and tokens[-1] != ("sign", ";"):
        name = _word(tokens, "an option")
        if not tokens or tokens.pop() != ("sign", "="):
            raise SettingsError(
                "sasl.jaas.config: expected OPTION=VALUE, in quotes where it has more than letters"
            )
        options[name] = _word(tokens, "a value of each option, in quotes where it has more than letters,")
    if not tokens:
        raise SettingsError("sasl.jaas.config: expected ; at the end")
    tokens.pop()
    return Login(module.rpartition(".")[2], options)


def _word(tokens: list[tuple[str, str]], expected: str) -> str:
    if not tokens or tokens[-1][0] != "word":
        raise SettingsError(f"sasl.jaas.config: expected {expected}")
    return tokens.pop()[1]


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
_MOST_NUMBER = (1 << 31) - 1
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
        raise SettingsError(f"security.protocol: expected one of {', '.join(_PROTOCOLS)}")
    servers, is_controller = bootstrap or properties.get("bootstrap.servers", ""), False
    if not servers and (servers := properties.get("bootstrap.controllers", "")):
        is_controller = True
    if not servers:
        raise SettingsError("expected bootstrap.servers, or an address as argument")
    numbers: dict[str, Any] = {
        field: _number(properties, name, _DEFAULTS[field]) for name, field in _TIMES.items()
    }
    return ClientSettings(
        bootstrap=addresses(servers) if bootstrap else _servers(servers, is_controller),
        is_controller=is_controller,
        tls=_tls(properties) if protocol.endswith("SSL") else None,
        sasl=_sasl(properties) if protocol.startswith("SASL") else None,
        client_id=properties.get("client.id") or _DEFAULTS["client_id"],
        retries=min(_number(properties, "retries", _DEFAULTS["retries"]), _MOST_RETRIES),
        **numbers,
    )


def _number(properties: Mapping[str, str], name: str, default: Any) -> int:
    text = properties.get(name)
    return int(default) if text is None else _int32(name, text)


def _int32(name: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = _MOST_NUMBER + 1
    if not -_MOST_NUMBER <= number <= _MOST_NUMBER:
        raise SettingsError(f"{name}: expected a number of at most {_MOST_NUMBER:,}")
    return number


def _servers(text: str, is_controller: bool) -> tuple[Address, ...]:
    try:
        return addresses(text)
    except SettingsError:
        name = "bootstrap.controllers" if is_controller else "bootstrap.servers"
        raise SettingsError(f"{name}: expected HOST:PORT, with commas between several") from None


# --- TLS ---


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    get = properties.get
    ca_pem = get("ssl.truststore.certificates")
    if ca_pem is None and (location := get("ssl.truststore.location")):
        ca_pem, _ = pem_of_store(location, get("ssl.truststore.password"), "ssl.truststore.location")
        if not ca_pem:
            raise SettingsError("ssl.truststore.location: no certificate in it")
    chain, key = get("ssl.keystore.certificate.chain"), get("ssl.keystore.key")
    if chain is None and (location := get("ssl.keystore.location")):
        chain, key = pem_of_store(location, get("ssl.keystore.password"), "ssl.keystore.location")
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
        expected = "expected PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER"
        raise SettingsError(f"sasl.mechanism: {expected}; the default is GSSAPI, which needs Kerberos")
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
    most = _number(properties, "sasl.scram.max.iterations", MOST_ITERATIONS)
    return Scram(user, password, mechanism, is_token, max_iterations=most)


def _option(login: Login, name: str) -> str:
    try:
        return login.options[name]
    except KeyError:
        raise SettingsError(f"sasl.jaas.config: expected the option {name}") from None


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
    try:
        parts = urlsplit(url)
        is_plain = parts.username is None and parts.password is None
    except ValueError:
        is_plain = False
    if not is_plain or parts.scheme not in ("http", "https", "file"):
        raise SettingsError(
            "sasl.oauthbearer.token.endpoint.url: expected a URL of https, http or file, without credentials"
        )
    if parts.scheme == "file":
        path = Path(unquote(parts.path))
        return OAuthBearer(lambda: _file_token(path), extensions)
    return OAuthBearer(_endpoint_source(url, properties, login), extensions)


def _file_token(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        raise SettingsError("sasl.oauthbearer.token.endpoint.url: the token cannot be read") from None


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
        raise SettingsError(f"sasl.jaas.config: expected the option {prefix}CLAIM, by default {prefix}sub")
    seconds = _int32(
        "unsecuredLoginLifetimeSeconds",
        login.options.get("unsecuredLoginLifetimeSeconds", f"{_TOKEN_SECONDS}"),
    )

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


_SECONDS = 10.0
"""For the whole exchange with an endpoint."""


def fetch_token(url: str, client: str, secret: str, scope: str | None, tls: ssl.SSLContext | None) -> str:
    """Ask an endpoint for a token; this blocks. Raises `AuthenticationRefused`."""
    from http.client import HTTPException  # few clients need HTTP
    from urllib.error import HTTPError
    from urllib.request import Request

    from coordwire.client.http_exchange import http_answer

    body = {"grant_type": "client_credentials"} | ({"scope": scope} if scope else {})
    credentials = b64encode(f"{client}:{secret}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}", "Accept": "application/json"}
    place = url.partition("?")[0]  # what follows it may be a secret
    request = Request(url, data=urlencode(body).encode(), headers=headers)
    end = time.monotonic() + _SECONDS
    try:
        answer = json.loads(http_answer(request, tls, _SECONDS))
    except HTTPError as error:
        error.close()
        redirects = 300 <= error.code < 400
        reason = (
            "; a redirection is not followed, since it would get the client's secret" if redirects else ""
        )
        raise AuthenticationRefused(f"no token from {place}: HTTP status {error.code}{reason}") from None
    except (HTTPException, OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        if time.monotonic() >= end:
            reason = f"no answer within {_SECONDS:g} s"
        raise AuthenticationRefused(f"no token from {place}: {reason}") from None
    token = answer.get("access_token") if isinstance(answer, dict) else None
    if not isinstance(token, str) or not token:
        raise AuthenticationRefused(f"no token from {place}: the answer has no access_token")
    return token
