"""How delta-rs gets at a store that pyarrow's file systems serve elsewhere.

Strategy: delta-rs has clients of its own, which look for credentials in the same places: AWS's variables,
profiles and roles, Google's and Azure's defaults. What differs is passed on: an endpoint without TLS has to
be allowed, the region is the one that pyarrow found, an account key has another name. Rules: a commit is a
conditional put; a key is a key, character by character, which a URL has escaped.
"""

from __future__ import annotations

__all__ = ["in_one_line", "storage_options", "url"]

import os
import re
from typing import Any
from urllib.parse import quote

from coordwire.tables.stores import canonical, endpoint, store_of

_COLOURS = re.compile(r"\x1b\[[0-9;]*m|\u21b3")
LONGEST = 500


def url(place: str) -> str:
    """A URI whose path is escaped, from one whose path is as it is."""
    scheme, _, location = canonical(place).partition("://")
    authority, slash, path = location.partition("/")
    return f"{scheme}://{authority}{slash}{quote(path)}"


def storage_options(place: str) -> dict[str, str]:
    """delta-rs's options for a URI. Raises as `store_of`."""
    scheme = canonical(place).partition("://")[0]
    if scheme == "s3":
        store, _ = store_of(place)
        system: Any = store.system
        options = {"aws_conditional_put": "etag", "aws_region": str(system.region)}
        if server := endpoint():
            options["aws_endpoint"] = server
            options["aws_allow_http"] = str(server.lower().startswith("http:")).lower()
        return options
    if scheme == "abfss" and (key := os.environ.get("AZURE_STORAGE_KEY")):
        return {"azure_storage_account_key": key}
    return {}


def in_one_line(error: BaseException) -> str:
    """What delta-rs says on several lines, in colours, on one."""
    sentence = " ".join(_COLOURS.sub(" ", str(error)).split())
    return sentence if len(sentence) <= LONGEST else f"{sentence[:LONGEST]}\N{HORIZONTAL ELLIPSIS}"
