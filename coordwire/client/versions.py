"""Which version of an API a request goes in.

Rules: the newest that the broker and coordwire have and that can carry what the request sets: a field that
newer versions dropped (a topic's name in Fetch) takes an older one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from coordwire.client.errors import VersionUnavailable
from coordwire.codec import Message
from coordwire.errors import NotInVersion
from coordwire.versions import VersionRange, api_name, known_versions

__all__ = ["Fit", "fit_version"]

_NONE = VersionRange(0, -1)


class Fit(NamedTuple):
    """A version that can carry a request, and the bytes that its message has there."""

    version: int
    size_bytes: int


def fit_version(message: Message, offered: Mapping[int, VersionRange], version: int | None) -> Fit:
    """The version in which a request goes to a broker. offered: the broker's, by api key. version: None for
    the newest that fits.

    Raises `VersionUnavailable`, or `EncodeError` for a value that no version takes.
    """
    key = message.api_key
    assert key is not None
    name, known, had = api_name(key), known_versions(key), offered.get(key, _NONE)
    if not had:
        raise VersionUnavailable(f"the broker does not have {name}")
    common = had & known
    if version is not None:
        common &= VersionRange(version, version)
    if not common:
        asked = "" if version is None else f"; expected one of these, got {version}"
        raise VersionUnavailable(f"the broker has {name} {had}, coordwire has {known}{asked}")
    refusal: NotInVersion | None = None
    for candidate in reversed(range(common.first, common.last + 1)):
        try:
            return Fit(candidate, len(message.encode(version=candidate)))
        except NotInVersion as error:
            refusal = refusal or error
    raise VersionUnavailable(f"no version of {name} in {common} can carry the request: {refusal}")
