"""Tokens for OAUTHBEARER from an OAuth 2.0 endpoint, for a client's credentials (RFC 6749, section 4.4).

Rules: as Kafka's retriever: the credentials go in the header Authorization; an answer has a bounded size; no
secret is in an error.
"""

from __future__ import annotations

import json
import ssl
from base64 import b64encode
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from coordwire.client.errors import AuthenticationRefused

__all__ = ["fetch_token"]

_SECONDS = 10
_LARGEST = 1 << 20


def fetch_token(url: str, client: str, secret: str, scope: str | None, tls: ssl.SSLContext | None) -> str:
    """Ask an endpoint for a token; this blocks. Raises `AuthenticationRefused`."""
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
