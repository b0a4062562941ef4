"""Paths and URIs as users write them: which is of the local disk, and the one name that a URI has here.

Rules: the text after the authority is the path, character by character: keys may hold spaces, `%`, `?` and
`#`; s3a and s3n are s3, gcs is gs, so that a file has one name.
"""

from __future__ import annotations

__all__ = ["canonical", "is_uri", "local_path", "parts_of"]

import os
import re

from coordwire.errors import CoordwireError

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
_FILE = re.compile(r"file:(?://(?:localhost)?)?(?=/)|file://", re.IGNORECASE)
_ONE_SLASH = re.compile(r"(s3[an]?|gs|gcs|abfss?|hdfs|viewfs):(?!//)", re.IGNORECASE)
_SAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss"}
"""Schemes that name the same files as another."""


def is_uri(path: str) -> bool:
    """Whether it is not a path of the local disk."""
    return _URI.match(path) is not None and _FILE.match(path) is None


def local_path(path: str) -> str:
    """A path of the local disk without its scheme, if it has one. Raises `CoordwireError` for a URI that
    lacks a slash, unless there is such a file."""
    if (found := _ONE_SLASH.match(path)) and not os.path.lexists(path):
        raise CoordwireError(f"expected {found[1]}://…, got {path}")
    return _FILE.sub("", path, count=1) if _FILE.match(path) else path


def canonical(uri: str) -> str:
    """A URI by the one name that its scheme has here, without a slash at the end."""
    scheme, found, rest = uri.partition("://")
    scheme = scheme.lower()
    return f"{_SAME.get(scheme, scheme)}{found}{rest}".rstrip("/")


def parts_of(uri: str) -> tuple[str, str, str]:
    """A URI's scheme by its one name, its authority, and what follows. Raises `CoordwireError` for other
    text."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise CoordwireError(f"expected a URI, got {uri!r}")
    scheme = found[1].lower()
    return _SAME.get(scheme, scheme), found[2], found[3]
