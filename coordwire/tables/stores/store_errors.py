"""What can go wrong with a store, in one sentence that names the URI and what to set or install.

Strategy: pyarrow and fsspec raise what their clients said, sometimes pages of it; `as_store_error` knows the
usual causes by words in it. Rules: at most 500 characters of their text are given on.
"""

from __future__ import annotations

__all__ = ["Replaced", "StoreError", "as_store_error"]

import errno
import re
from typing import Any

_REQUEST_ID = re.compile(r"\s*\(Request ID: [^)]*\)")
_NAMED = re.compile(r"AWS Error ([A-Z_]+)")
_NO_CREDENTIALS = {
    "OAuth2 access token": "Google's token can't be had; set GOOGLE_APPLICATION_CREDENTIALS, or run gcloud "
    "auth application-default login, and check the network",
    "AuthenticationException": "Azure's token can't be had; set AZURE_STORAGE_KEY, or AZURE_TENANT_ID, "
    "AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run az login, and check the network",
}
"""What the errors of stores contain where there are no credentials, and what to do then."""

_DETAIL = 120
"""Characters of their own text that are given with it."""


class Replaced(OSError):
    """An object is another one than it was when it was listed or when its reading began."""

    def __init__(self, uri: str) -> None:
        super().__init__(errno.ESTALE, "the object was replaced while it was read", uri)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.filename,)


class StoreError(OSError):
    """A store that can't be reached, read or written; its text is one sentence.

    lasting: whether it is about the file, as a missing permission; else another attempt may do better.
    """

    def __init__(self, number: int, reason: str, name: str) -> None:
        super().__init__(number, reason, name)
        self.lasting = number in (errno.ENOENT, errno.EACCES, errno.ENOTSUP)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errno, self.strerror, self.filename)


def as_store_error(error: BaseException, uri: str) -> StoreError:
    """An error of pyarrow's or fsspec's about this URI."""
    said = _REQUEST_ID.sub("", " ".join(str(error).replace("\\n", " ").split()))
    named = _NAMED.search(said)
    code = named[1] if named else ""
    if code == "NO_SUCH_BUCKET":
        return StoreError(errno.ENOENT, "the bucket does not exist", uri)
    if code in (
        "ACCESS_DENIED",
        "INVALID_ACCESS_KEY_ID",
        "SIGNATURE_DOES_NOT_MATCH",
        "MISSING_AUTHENTICATION",
    ):
        why = "access was denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        return StoreError(errno.EACCES, f"{why} ({code})", uri)
    if code == "NETWORK_CONNECTION":
        why = "the store can't be reached; check the network, AWS_ENDPOINT_URL and AWS_REGION"
        detail = said[said.index(code) + len(code) :].partition("curlCode: ")[2]
        return StoreError(errno.EHOSTUNREACH, f"{why} ({detail or code})"[:500], uri)
    for words, why in _NO_CREDENTIALS.items():
        if words in said:
            return StoreError(errno.EACCES, f"{why} ({said[:_DETAIL]} …)", uri)
    return StoreError(getattr(error, "errno", None) or errno.EIO, said[:500] or type(error).__name__, uri)
